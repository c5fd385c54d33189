//! A page for people: paragraphs, lists and tables within 80 columns, and colour only for what needs a look.
//!
//! `words/` writes one for each function whose answers are read and not searched; `--out` shows their data. Text from a
//! minion becomes one line of visible characters before it is measured.

use brine_protocol::text;

use super::Style;
use super::color::Palette;
use super::highstate::fill;

/// Columns of a page.
pub(super) const WIDTH: usize = 80;
/// Columns between two columns of a table.
const GAP: usize = 2;
/// A column of a table gets no narrower than this, if its cells are wider.
const NARROWEST: usize = 8;

/// One line of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// One text for each column.
    pub(super) cells: Vec<String>,
    /// Whether somebody should look at it.
    pub(super) look: bool,
}

/// A page that is being written.
pub(super) struct Page {
    palette: Palette,
    /// Columns at the left that stay empty.
    indent: usize,
    out: String,
}

impl Page {
    /// An empty page.
    pub(super) fn new(style: &Style) -> Self {
        Self { palette: Palette::new(style.color), indent: 0, out: String::new() }
    }

    /// Sets how many columns at the left stay empty from here on.
    pub(super) const fn indent(&mut self, columns: usize) {
        self.indent = columns;
    }

    /// The text of the page, without a newline at its end.
    pub(super) fn finish(mut self) -> String {
        self.out.truncate(self.out.trim_end_matches('\n').len());
        self.out
    }

    /// An empty line, unless the page begins or one is there.
    pub(super) fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// A paragraph.
    pub(super) fn text(&mut self, text: &str) {
        self.filled(text, "", false);
    }

    /// A paragraph that somebody should look at.
    pub(super) fn look(&mut self, text: &str) {
        self.filled(text, "", true);
    }

    /// An item of a list.
    pub(super) fn item(&mut self, text: &str, look: bool) {
        self.filled(text, "- ", look);
    }

    /// A line to copy, such as one of the configuration or a command: never broken.
    pub(super) fn verbatim(&mut self, line: &str) {
        let line = text::line(line).into_owned();
        self.line(&line, false);
    }

    /// A table. Columns that need more than the page has are narrowed, the widest first, and their cells broken. A row has
    /// as many cells as there are headings; others are left empty or out.
    pub(super) fn table(&mut self, headings: &[&str], rows: &[Row]) {
        let cell =
            |row: &Row, at: usize| row.cells.get(at).map(|cell| text::line(cell).into_owned()).unwrap_or_default();
        let rows: Vec<(Vec<String>, bool)> =
            rows.iter().map(|row| ((0..headings.len()).map(|at| cell(row, at)).collect(), row.look)).collect();
        let natural = |at: usize| {
            let cells = rows.iter().map(|(cells, _)| columns(&cells[at]));
            cells.chain([columns(headings[at])]).max().unwrap_or_default()
        };
        let mut widths: Vec<usize> = (0..headings.len()).map(natural).collect();
        let room = WIDTH.saturating_sub(self.indent + GAP * headings.len().saturating_sub(1));
        narrow(&mut widths, room);
        let heading = headings.iter().map(|heading| (*heading).to_owned()).collect::<Vec<_>>();
        let rule = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>();
        for (cells, look) in [(heading, false), (rule, false)].iter().chain(&rows) {
            self.row(cells, &widths, *look);
        }
    }

    fn row(&mut self, cells: &[String], widths: &[usize], look: bool) {
        let broken: Vec<Vec<String>> = cells.iter().zip(widths).map(|(cell, width)| lines(cell, *width)).collect();
        for at in 0..broken.iter().map(Vec::len).max().unwrap_or(0).max(1) {
            let mut line = String::new();
            for (cell, width) in broken.iter().zip(widths) {
                let part = cell.get(at).map(String::as_str).unwrap_or_default();
                line.push_str(part);
                line.extend(std::iter::repeat_n(' ', (width + GAP).saturating_sub(columns(part))));
            }
            self.line(line.trim_end_matches(' '), look);
        }
    }

    fn filled(&mut self, text: &str, first: &str, look: bool) {
        let room = WIDTH.saturating_sub(self.indent + first.len());
        for (at, line) in lines(&text::line(text), room).iter().enumerate() {
            let before = if at == 0 { first.to_owned() } else { " ".repeat(first.len()) };
            self.line(&format!("{before}{line}"), look);
        }
    }

    /// One line. `text` has no active characters.
    fn line(&mut self, text: &str, look: bool) {
        if !text.is_empty() {
            self.out.extend(std::iter::repeat_n(' ', self.indent));
            let (begin, end) = if look { (self.palette.light_yellow, self.palette.end) } else { ("", "") };
            self.out.extend([begin, text, end]);
        }
        self.out.push('\n');
    }
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

fn lines(text: &str, width: usize) -> Vec<String> {
    fill(text, width, 0).split('\n').map(str::to_owned).collect()
}

/// Takes from the widest columns until all fit.
fn narrow(widths: &mut [usize], room: usize) {
    let mut over = widths.iter().sum::<usize>().saturating_sub(room);
    while over > 0 {
        let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > NARROWEST) else { return };
        *widest -= 1;
        over -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str], look: bool) -> Row {
        Row { cells: cells.iter().map(|cell| (*cell).to_owned()).collect(), look }
    }

    fn page(color: bool, write: impl FnOnce(&mut Page)) -> String {
        let mut page = Page::new(&Style { color, ..Style::default() });
        write(&mut page);
        page.finish()
    }

    #[test]
    fn a_table_stays_within_the_page() {
        let long = "word ".repeat(40);
        let rows = [row(&["a", &long, &"x".repeat(200)], false), row(&["b"], false)];
        for indent in [0, 4] {
            let text = page(false, |page| {
                page.indent(indent);
                page.table(&["name", "what", "more"], &rows);
            });
            let widest = text.lines().map(columns).max().unwrap();
            assert!(widest <= WIDTH && widest > WIDTH - 10, "{widest}: {text}");
            assert_eq!(text.matches("word").count(), 40, "{text}");
            assert_eq!(text.matches('x').count(), 200, "{text}");
        }
        let text = page(false, |page| page.table(&["name", "what"], &[row(&["a", "b c"], false)]));
        assert_eq!(text, "name  what\n----  ----\na     b c");
    }

    #[test]
    fn only_what_needs_a_look_has_a_colour() {
        let write = |page: &mut Page| {
            page.text("fine");
            page.look("odd");
            page.table(&["n"], &[row(&["fine"], false), row(&["odd"], true)]);
        };
        assert!(!page(false, write).contains('\x1b'));
        assert_eq!(
            page(true, write),
            "fine\n\x1b[0;1;33modd\x1b[0;0m\nn\n---\nfine\n\x1b[0;1;33modd\x1b[0;0m".replace("---", "----")
        );
    }

    #[test]
    fn foreign_text_obeys_nobody() {
        let bad = "a\x1b[2Jb\nc\u{202e}d";
        let text = page(true, |page| {
            page.text(bad);
            page.item(bad, false);
            page.verbatim(bad);
            page.table(&["name"], &[row(&[bad], false)]);
        });
        assert_eq!(text.matches(r"a\x1b[2Jb\nc\u202ed").count(), 4, "{text}");
        assert!(!text.contains(['\x1b', '\u{202e}']));
    }

    #[test]
    fn lines_to_copy_are_whole() {
        let line = "cmd: {process: [/usr/bin/uptime]} ".repeat(5);
        assert_eq!(page(false, |page| page.verbatim(&line)), line);
        let items = page(false, |page| page.item(&line, false));
        assert!(items.starts_with("- cmd: ") && items.lines().skip(1).all(|line| line.starts_with("  ")), "{items}");
    }

    /// A table of a large answer, with columns that cannot be narrowed any more.
    #[test]
    fn many_columns_end() {
        let headings = ["heading of a column"; 30];
        let text = page(false, |page| page.table(&headings, &[row(&["cell"; 30], false)]));
        assert_eq!(text.matches("cell").count(), 30);
    }
}
