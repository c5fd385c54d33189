//! The screen: tabs, one list, the last word, and a question above all.

mod lists;
mod question;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Tabs};

use crate::app::{App, Pane};

/// What needs a look.
const LOOK: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Draws everything.
pub(crate) fn screen(frame: &mut Frame<'_>, app: &App) {
    let rows = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [tabs, load, body, said, keys] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(tab_line(app), tabs);
    frame.render_widget(Paragraph::new(load_line(app)).style(DIM), load);
    lists::draw(frame, app, body);
    if let Some((text, failed)) = app.said() {
        frame.render_widget(Paragraph::new(text).style(if failed { BAD } else { Style::new() }), said);
    }
    frame.render_widget(Paragraph::new(keys_line(app)).style(DIM), keys);
    if let Some(question) = app.question() {
        question::draw(frame, question);
    }
}

fn tab_line(app: &App) -> Tabs<'static> {
    let count = |pane| {
        let snapshot = app.snapshot()?;
        Some(match pane {
            Pane::Running => snapshot.running.len(),
            Pane::Refused => app.refusals().len(),
            Pane::Held => app.held().len(),
            Pane::Findings => snapshot.findings.len(),
        })
    };
    let titles = Pane::ALL.into_iter().enumerate().map(|(at, pane)| {
        let number = Span::styled(format!("{} ", at + 1), DIM);
        let Some(count) = count(pane) else { return Line::from(vec![number, pane.title().into()]) };
        let style = if count > 0 && pane != Pane::Running { LOOK } else { Style::new() };
        Line::from(vec![number, pane.title().into(), Span::styled(format!(" {count}"), style)])
    });
    let at = Pane::ALL.iter().position(|pane| *pane == app.pane());
    Tabs::new(titles).select(at).highlight_style(CHOSEN).divider("│")
}

fn load_line(app: &App) -> String {
    let Some(snapshot) = app.snapshot() else { return "asking the host …".to_owned() };
    let load = snapshot.load;
    let processes = if load.executors == 1 { "process" } else { "processes" };
    let memory = load.memory as f64 / f64::from(1 << 20);
    format!("executors: {} {processes}, {memory:.0} MiB, {:.0} % of a core", load.executors, load.cpu)
}

fn keys_line(app: &App) -> &'static str {
    match (app.question().map(|question| question.order.is_some()), app.pane()) {
        (Some(true), _) => "y yes · n no · ↑↓ scroll",
        (Some(false), _) => "n back · ↑↓ scroll",
        (None, Pane::Refused) => "g grant · r leave refused · ↑↓ choose · 1-4 lists · l look now · q leave",
        (None, Pane::Held) => "a admit · r leave held · ↑↓ choose · 1-4 lists · l look now · q leave",
        (None, Pane::Running | Pane::Findings) => "↑↓ choose · 1-4 lists · l look now · q leave",
    }
}
