//! The lists.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState, Wrap};

use super::{BAD, CHOSEN, LOOK};
use crate::app::{App, Pane};
use crate::snapshot::{HeldUpdate, Refusal, Running, Share, Snapshot, line};

/// Cells of a bar.
const BAR: usize = 10;
/// Parts of a limit, of which the last one needs a look.
const NEARLY: usize = 6;
/// Characters of a master's fingerprint: as many as tell masters apart.
const FINGERPRINT: usize = 11;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let Some(snapshot) = app.snapshot() else { return };
    let (table, empty, detail) = match app.pane() {
        Pane::Running => {
            let detail = snapshot.running.get(app.selected()).map(running_detail);
            (running(snapshot, area.width), "Nothing runs.", detail)
        }
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

/// Columns from which a row has room for the job's id, and for bars.
const WITH_JID: u16 = 100;
const WITH_BARS: u16 = 150;

fn running(snapshot: &Snapshot, width: u16) -> Option<Table<'_>> {
    let bar = if width >= WITH_BARS { BAR } else { 0 };
    let rows = snapshot.running.iter().map(|call| {
        let share = |share: Option<Share>, unit: fn(Share) -> String| {
            share.map_or_else(Cell::default, |it| used(it, unit, bar))
        };
        let mut cells = vec![
            Cell::from(name_of(call)),
            call.by.as_str().into(),
            share(Some(call.time), seconds),
            share(call.memory, mebibytes),
            share(call.cpu, tenths),
        ];
        if width >= WITH_JID {
            cells.insert(0, call.jid.as_str().into());
        }
        Row::new(cells)
    });
    let bar = if bar > 0 { u16::try_from(bar + 1).unwrap_or_default() } else { 0 };
    let mut widths = vec![Constraint::Fill(1), Constraint::Length(15)];
    widths.extend([14, 15, 14].map(|text| Constraint::Length(text + bar)));
    let mut head = vec!["function", "asked by", "time", "memory", "CPU"];
    if width >= WITH_JID {
        widths.insert(0, Constraint::Length(20));
        head.insert(0, "job");
    }
    table(rows.collect(), &widths, &head)
}

/// A call that a function made is below the job's own.
fn name_of(call: &Running) -> String {
    let name = match &call.state {
        Some(state) => format!("{} {state}", call.function),
        None => call.function.clone(),
    };
    if call.called_by.is_some() { format!("↳ {name}") } else { name }
}

fn running_detail(call: &Running) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(format!("{}, job {}, asked by {}", name_of(call), call.jid, call.by))];
    if let Some(caller) = &call.called_by {
        lines.push(Line::from(format!("called by {caller}")));
    }
    lines.push(Line::from(match (call.memory, call.time.most) {
        (None, None) => "It waits for its turn, or its process does not tell what it uses.",
        (None, Some(_)) => "Its executor did not tell in time what it uses.",
        (Some(_), _) => "Memory and CPU time are what its executor tells.",
    }));
    lines
}

/// What is used of a limit, after a bar with this many cells.
fn used(share: Share, unit: fn(Share) -> String, bar: usize) -> Cell<'static> {
    let Some(most) = share.most.filter(|most| *most > 0) else { return Cell::from(unit(share)) };
    let of = |parts: usize| {
        usize::try_from(u128::from(share.used) * parts as u128 / u128::from(most)).unwrap_or(parts).min(parts)
    };
    let style = match of(NEARLY) {
        NEARLY.. => BAD,
        part if part == NEARLY - 1 => LOOK,
        _ => Style::new(),
    };
    let full = of(bar);
    let gap = if bar > 0 { " " } else { "" };
    Cell::from(format!("{}{}{gap}{}", "█".repeat(full), "░".repeat(bar - full), unit(share))).style(style)
}

fn seconds(time: Share) -> String {
    of_most(time, |ms| format!("{}", ms / 1_000), "s")
}

fn tenths(time: Share) -> String {
    let shown = |ms: u64| match ms % 1_000 {
        0 => format!("{}", ms / 1_000),
        rest => format!("{}.{}", ms / 1_000, rest / 100),
    };
    of_most(time, shown, "s")
}

fn mebibytes(memory: Share) -> String {
    // Small instances have less than ten.
    let shown = |bytes: u64| match (bytes >> 20, bytes % (1 << 20)) {
        (whole @ 0..10, rest) if rest > 0 => format!("{whole}.{}", (rest * 10) >> 20),
        (whole, _) => format!("{whole}"),
    };
    of_most(memory, shown, "MiB")
}

fn of_most(share: Share, shown: impl Fn(u64) -> String, unit: &str) -> String {
    match share.most {
        Some(most) => format!("{} of {} {unit}", shown(share.used), shown(most)),
        None => format!("{} {unit}", shown(share.used)),
    }
}

fn refused<'a>(all: &[&'a Refusal]) -> Option<Table<'a>> {
    let rows = all.iter().map(|one| {
        let times = if one.times > 1 { format!("{}×", one.times) } else { String::new() };
        Row::new([Cell::from(one.at.as_str()), one.function.as_str().into(), one.what.as_str().into(), times.into()])
    });
    // A cut number would be another one.
    let most = all.iter().map(|one| one.times).max().unwrap_or_default();
    let times = u16::try_from(most.to_string().len() + 1).unwrap_or(u16::MAX).max(6);
    let widths = [Constraint::Length(19), Constraint::Length(18), Constraint::Fill(1), Constraint::Length(times)];
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
    let by = match one.function.as_str() {
        // What the list had no room for is counted for each master.
        "" => format!("asked by {asked}"),
        function => format!("{function}, job {}, asked by {asked}", one.jid),
    };
    // What is decided on comes first, in case that there is no room for all.
    vec![Line::from(grant), Line::from(format!("wanted: {}", one.what)), Line::from(by)]
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
