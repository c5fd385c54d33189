//! The lists.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState, Wrap};

use super::{BAD, CHOSEN, LOOK};
use crate::app::{App, Pane};
use crate::snapshot::{HeldUpdate, Refusal, Running, Snapshot, line};

/// Cells of a bar.
const BAR: usize = 6;
/// Characters of a master's fingerprint: as many as tell masters apart.
const FINGERPRINT: usize = 11;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let Some(snapshot) = app.snapshot() else { return };
    let (table, empty, detail) = match app.pane() {
        Pane::Running => (running(snapshot), "Nothing runs.", None),
        Pane::Refused => {
            let all = app.refusals();
            let detail = all.get(app.selected()).map(|one| refusal_detail(one));
            (refused(&all), "Nothing was refused.", detail)
        }
        Pane::Held => {
            let all = app.held();
            let detail = all.get(app.selected()).map(|one| vec![Line::from(format!("It is held: {}", one.why))]);
            (held(&all), "No update is held.", detail)
        }
        Pane::Findings => {
            let found = snapshot.findings.get(app.selected()).map(|one| vec![Line::from(one.clone())]);
            (findings(&snapshot.findings), "Nothing needs a look.", found)
        }
    };
    let Some(table) = table else {
        frame.render_widget(Paragraph::new(empty), area);
        return;
    };
    // As many lines as it takes, up to half of the screen, and one for the border.
    let below = detail.as_ref().map_or(0, |lines| {
        let taken: usize = lines.iter().map(|line| rows_of(line.width(), area.width)).sum();
        u16::try_from(taken + 1).unwrap_or(u16::MAX).min(area.height / 2)
    });
    let [list, about] = Layout::vertical([Constraint::Min(1), Constraint::Length(below)]).areas(area);
    let mut state = TableState::default().with_selected(app.selected());
    frame.render_stateful_widget(table.row_highlight_style(CHOSEN), list, &mut state);
    if let Some(detail) = detail {
        let text = Paragraph::new(detail)
            .wrap(Wrap { trim: false })
            .block(Block::new().borders(ratatui::widgets::Borders::TOP));
        frame.render_widget(text, about);
    }
}

/// Rows of a text that is wrapped at words.
fn rows_of(width: usize, screen: u16) -> usize {
    (width * 11 / 10).div_ceil(usize::from(screen).max(1)).max(1)
}

fn table<'a>(rows: Vec<Row<'a>>, widths: &[Constraint], head: &[&'a str]) -> Option<Table<'a>> {
    let head = Row::new(head.to_vec()).style(super::DIM);
    (!rows.is_empty()).then(|| Table::new(rows, widths.to_vec()).header(head))
}

fn running(snapshot: &Snapshot) -> Option<Table<'_>> {
    let rows = snapshot.running.iter().map(|job| {
        let (bar, style) = used(job);
        let cells = [
            job.jid.as_str().into(),
            job.function.as_str().into(),
            job.by.as_str().into(),
            Cell::from(bar).style(style),
        ];
        Row::new(cells)
    });
    let widths = [Constraint::Length(20), Constraint::Fill(1), Constraint::Length(15), Constraint::Length(17)];
    table(rows.collect(), &widths, &["job", "function", "asked by", "time of budget"])
}

/// The time that a job took of its budget, as a bar.
fn used(job: &Running) -> (String, Style) {
    let Some(budget) = job.budget.filter(|budget| *budget > 0) else {
        return (format!("{} s", job.seconds), Style::new());
    };
    let full = usize::try_from(job.seconds.saturating_mul(BAR as u64) / budget).unwrap_or(BAR).min(BAR);
    let style = match full {
        BAR.. => BAD,
        5.. => LOOK,
        _ => Style::new(),
    };
    (format!("{}{} {}/{budget} s", "█".repeat(full), "░".repeat(BAR - full), job.seconds), style)
}

fn refused<'a>(all: &[&'a Refusal]) -> Option<Table<'a>> {
    let rows = all.iter().map(|one| {
        let times = if one.times > 1 { format!("{}×", one.times) } else { String::new() };
        Row::new([Cell::from(one.at.as_str()), one.function.as_str().into(), one.what.as_str().into(), times.into()])
    });
    let widths = [Constraint::Length(19), Constraint::Length(18), Constraint::Fill(1), Constraint::Length(6)];
    table(rows.collect(), &widths, &["last", "function", "wanted", "times"])
}

fn refusal_detail(one: &Refusal) -> Vec<Line<'static>> {
    let grant =
        one.line.as_deref().map_or_else(|| "no line grants it".to_owned(), |of| format!("granted by: {}", line(of)));
    let asked = match one.by.get(..FINGERPRINT) {
        _ if one.by.is_empty() => "this host".to_owned(),
        Some(start) if one.by.len() > FINGERPRINT => format!("the master {start}…"),
        _ => format!("the master {}", one.by),
    };
    // What is decided on comes first, in case that there is no room for all.
    vec![
        Line::from(grant),
        Line::from(format!("wanted: {}", one.what)),
        Line::from(format!("{}, job {}, asked by {asked}", one.function, one.jid)),
    ]
}

fn held<'a>(all: &[&'a HeldUpdate]) -> Option<Table<'a>> {
    let rows = all
        .iter()
        .map(|one| Row::new([Cell::from(one.module.as_str()), one.version.as_str().into(), one.why.as_str().into()]));
    let widths = [Constraint::Length(18), Constraint::Length(12), Constraint::Fill(1)];
    table(rows.collect(), &widths, &["module", "version", "why it is held"])
}

fn findings(all: &[String]) -> Option<Table<'_>> {
    table(all.iter().map(|one| Row::new([one.as_str()])).collect(), &[Constraint::Fill(1)], &["what to look at"])
}
