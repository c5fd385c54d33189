//! A question, above the lists.

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout};
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::LOOK;
use crate::app::Question;

/// Columns of the widest question.
const WIDTH_MAX: u16 = 110;

pub(super) fn draw(frame: &mut Frame<'_>, question: &Question) {
    let area = frame.area();
    let width = WIDTH_MAX.min(area.width.saturating_sub(4));
    let inner = usize::from(width.saturating_sub(2)).max(1);
    // As many lines as it takes at most when it is wrapped at words.
    let lines_of = |line: &String| (line.chars().count() * 11 / 10).div_ceil(inner).max(1);
    let height = question.lines.iter().map(lines_of).sum::<usize>() + 3;
    let height = u16::try_from(height).unwrap_or(u16::MAX);
    let lines: Vec<Line<'_>> = question.lines.iter().map(|line| Line::styled(line.as_str(), style(line))).collect();
    let text = Paragraph::new(lines).wrap(Wrap { trim: false });
    let [middle] = Layout::vertical([Constraint::Length(height.min(area.height.saturating_sub(2)))])
        .flex(Flex::Center)
        .areas(area);
    let [middle] = Layout::horizontal([Constraint::Length(width)]).flex(Flex::Center).areas(middle);
    let below = if question.order.is_some() { " y yes · n no " } else { " n back " };
    let block = Block::bordered().title(format!(" {} ", question.title)).title_bottom(below).border_style(LOOK);
    frame.render_widget(Clear, middle);
    frame.render_widget(text.block(block).scroll((u16::try_from(question.first).unwrap_or(u16::MAX), 0)), middle);
}

fn style(line: &str) -> Style {
    match line.bytes().next() {
        Some(b'+') => Style::new().fg(Color::Green),
        Some(b'-') => Style::new().fg(Color::Red),
        _ => Style::new(),
    }
}
