//! Outputters: how a value is shown to an operator. One file an outputter, chosen by Salt's names (`--out`, or the
//! `out` a return carries). What they print is byte for byte what Python Salt prints (vectors.json, made by
//! make_vectors.py), with one difference: [`Style::visible`] shows by their number the characters that a terminal would obey or
//! hide ([`brine_text`] decides which); json, yaml and pprint write them in the escapes of their own syntax, so that what is parsed is the
//! same.

mod color;
mod highstate;
mod json;
mod key;
mod nested;
mod no_return;
mod pprint;
mod table;
mod text;
mod yaml;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use brine_protocol::value::Value;

use brine_protocol::pyrepr;
use brine_protocol::text::visible;
pub use color::Palette;
pub use highstate::{StateOutput, StateSettings};

/// How to render: everything an outputter may look at besides the value.
#[derive(Debug, Clone)]
pub struct Style {
    /// Salt's colours, for a terminal.
    pub color: bool,
    /// Show what a terminal would obey or hide as `\x1b` instead of emitting it; for people.
    pub visible: bool,
    /// `--out-indent` (json, yaml, pprint).
    pub indent: Indent,
    /// The highest retcode of what is shown; `nested` colours failures red.
    pub retcode: i64,
    /// Columns that `nested` starts at.
    pub nested_indent: usize,
    /// Replace escapes in returned text by `?`, as Salt does unless `strip_colors: False`.
    pub strip_colors: bool,
    /// The lists in the outermost dict are tuples, which a literal of Python's tells from lists (txt, raw, pprint).
    pub tuples: bool,
    /// What of states is shown.
    pub state: StateSettings,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            color: false,
            visible: false,
            indent: Indent::Unset,
            retcode: 0,
            nested_indent: 0,
            strip_colors: true,
            tuples: false,
            state: StateSettings::default(),
        }
    }
}

impl Style {
    /// The style for text that goes straight to a terminal.
    pub fn terminal() -> Self {
        Self { color: true, visible: true, ..Self::default() }
    }

    /// `text` as this style lets it through: [`visible`] on a terminal, unchanged elsewhere.
    pub fn pass<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.visible { visible(text) } else { Cow::Borrowed(text) }
    }

    /// The same for an id in a list of ids.
    fn pass_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if self.visible { brine_protocol::text::name(name) } else { Cow::Borrowed(name) }
    }
}

/// The setting `output_indent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indent {
    /// Not set: each outputter's own default.
    #[default]
    Unset,
    /// Set to null: json on one line.
    Null,
    /// `pretty`: json with four columns and sorted keys.
    Pretty,
    /// A number of columns; negative means one line.
    Columns(i64),
}

/// The outputters there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outputter {
    /// The default: indented, one entry a line.
    Nested,
    /// JSON.
    Json,
    /// YAML 1.1 as PyYAML writes it.
    Yaml,
    /// `minion: line` for every line of text.
    Txt,
    /// The Python literal on one line.
    Raw,
    /// The Python literal, broken at 80 columns.
    Pprint,
    /// The values alone, one a line, a list's items each on its own.
    NewlineValuesOnly,
    /// Lists of rows as tables.
    Table,
    /// What states did.
    Highstate,
    /// What salt-key prints.
    Key,
    /// Minions that did not answer.
    NoReturn,
    /// Nothing at all.
    Quiet,
}

impl Outputter {
    /// The outputter of that name; `None` if there is none. An empty name is the default.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "" | "nested" => Self::Nested,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            "txt" | "text" => Self::Txt,
            "raw" => Self::Raw,
            "pprint" => Self::Pprint,
            "newline_values_only" => Self::NewlineValuesOnly,
            "table" => Self::Table,
            "highstate" => Self::Highstate,
            "key" => Self::Key,
            "no_return" => Self::NoReturn,
            "quiet" => Self::Quiet,
            _ => return None,
        })
    }

    /// Whether `text` is what this outputter prints of a value that it cannot express, which is not this value.
    pub fn gave_up(self, value: &Value, text: &str) -> bool {
        self == Self::Json && text == "{}" && value.as_map().is_none_or(|entries| !entries.is_empty())
    }

    /// Whether its syntax has escapes for any character, so that [`Style::visible`] does not change what a program reads.
    pub const fn has_escapes(self) -> bool {
        matches!(self, Self::Json | Self::Yaml | Self::Pprint)
    }

    /// `value` as this outputter shows it, without a newline at the end. Empty means there is nothing to print.
    pub fn render(self, value: &Value, style: &Style) -> String {
        let mut out = match self {
            Self::Nested => nested::render(value, style),
            Self::Json => json::render(value, style),
            Self::Yaml => yaml::render(value, style),
            Self::Txt => text::txt(value, style),
            Self::Raw => text::raw(value, style),
            Self::Pprint => pprint::render(value, style),
            Self::Highstate => highstate::render(value, style),
            Self::Table => table::render(value, style).unwrap_or_else(|| nested::render(value, style)),
            Self::NewlineValuesOnly => text::values(value, style).unwrap_or_else(|| nested::render(value, style)),
            // a value of another shape falls back to nested, as in Salt
            Self::Key => key::render(value, style).unwrap_or_else(|| nested::render(value, style)),
            Self::NoReturn => no_return::render(value, style).unwrap_or_else(|| nested::render(value, style)),
            Self::Quiet => String::new(),
        };
        out.truncate(out.trim_end_matches(pyrepr::is_space).len());
        out
    }
}

/// `value` as the outputter `name` shows it; an unknown name falls back to `nested`, as in Salt.
pub fn render(name: &str, value: &Value, style: &Style) -> String {
    Outputter::by_name(name).unwrap_or(Outputter::Nested).render(value, style)
}
