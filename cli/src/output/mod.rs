//! Outputters: the display of a value to an operator. Each outputter has one file and is selected by Salt's names
//! (`--out`, or the `out` of a return). Its output equals Python Salt's byte for byte (vectors.json, made by
//! make_vectors.py), with one difference: [`Style::visible`] displays by number the characters that a terminal would
//! obey or hide ([`brine_protocol::text`] defines them). json, yaml and pprint write these characters with the escapes
//! of their own syntax, so that parsing gives the same value.

mod color;
mod highstate;
mod json;
mod key;
mod nested;
mod no_return;
mod page;
mod pprint;
mod table;
mod text;
mod words;
mod yaml;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use brine_protocol::value::Value;

use brine_protocol::pyrepr;
use brine_protocol::text::visible;
pub use color::Palette;
pub use highstate::{StateOutput, StateSettings};

/// The options of rendering: everything that an outputter reads besides the value.
#[derive(Debug, Clone)]
pub struct Style {
    /// Salt's colours, for a terminal.
    pub color: bool,
    /// Display characters that a terminal would obey or hide by number (`\x1b`); for people.
    pub visible: bool,
    /// `--out-indent` (json, yaml, pprint).
    pub indent: Indent,
    /// The highest retcode of the displayed returns; `nested` colours failures red.
    pub retcode: i64,
    /// The column at which `nested` starts.
    pub nested_indent: usize,
    /// Replace escapes in returned text by `?`, as Salt does unless `strip_colors: False`.
    pub strip_colors: bool,
    /// Whether the lists in the outermost dict are tuples, which Python literals distinguish from lists (txt, raw,
    /// pprint).
    pub tuples: bool,
    /// The settings for states.
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
    /// The style of text for a terminal.
    pub fn terminal() -> Self {
        Self { color: true, visible: true, ..Self::default() }
    }

    /// Applies the style to `text`: [`visible`] for a terminal, unchanged elsewhere.
    pub fn pass<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.visible { visible(text) } else { Cow::Borrowed(text) }
    }

    /// Applies the style to an id in a list of ids.
    fn pass_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if self.visible { brine_protocol::text::name(name) } else { Cow::Borrowed(name) }
    }
}

/// The setting `output_indent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indent {
    /// Not set: the outputter's own default.
    #[default]
    Unset,
    /// Set to null: json on one line.
    Null,
    /// `pretty`: json with four columns and sorted keys.
    Pretty,
    /// A number of columns; negative means one line.
    Columns(i64),
}

/// The outputters.
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
    /// Only the values, one a line, and each item of a list on a line of its own.
    NewlineValuesOnly,
    /// Lists of rows as tables.
    Table,
    /// The results of states.
    Highstate,
    /// The listing of salt-key.
    Key,
    /// Minions that did not return.
    NoReturn,
    /// No output.
    Quiet,
    /// Tables and paragraphs for the answers of one function that people read, by its place in the list of them.
    Words(usize),
}

impl Outputter {
    /// The outputter with this name; `None` if there is none. An empty name means the default.
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
            fun => Self::Words(words::of(fun)?),
        })
    }

    /// The name of the outputter that a function's answers are shown by if neither the operator nor the return names one.
    pub fn of_function(fun: &str) -> &str {
        if words::of(fun).is_some() { fun } else { "" }
    }

    /// Whether `text` is this outputter's output for a value that it cannot express.
    pub fn gave_up(self, value: &Value, text: &str) -> bool {
        self == Self::Json && text == "{}" && value.as_map().is_none_or(|entries| !entries.is_empty())
    }

    /// Whether its syntax has escapes for all characters, so that a program reads the same value with
    /// [`Style::visible`].
    pub const fn has_escapes(self) -> bool {
        matches!(self, Self::Json | Self::Yaml | Self::Pprint)
    }

    /// Renders `value` without a newline at the end. Empty text means that there is nothing to print.
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
            // a value of another shape is rendered as nested, as in Salt
            Self::Key => key::render(value, style).unwrap_or_else(|| nested::render(value, style)),
            Self::NoReturn => no_return::render(value, style).unwrap_or_else(|| nested::render(value, style)),
            Self::Quiet => String::new(),
            Self::Words(words) => words::render(words, value, style),
        };
        out.truncate(out.trim_end_matches(pyrepr::is_space).len());
        out
    }
}

/// Renders `value` with the outputter `name`; an unknown name selects `nested`, as in Salt.
pub fn render(name: &str, value: &Value, style: &Style) -> String {
    Outputter::by_name(name).unwrap_or(Outputter::Nested).render(value, style)
}
