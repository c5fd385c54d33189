//! `jinja_env`, `jinja_sls_env` and the bounds of a render.

use crate::value::Value;

/// What `jinja_env`, `jinja_sls_env` and a `#jinja2:` line can set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The line end after a block is dropped.
    pub trim_blocks: bool,
    /// Space before a block is dropped.
    pub lstrip_blocks: bool,
    /// The line end at the end of the text is kept.
    pub keep_trailing_newline: bool,
    /// `{%`
    pub block_start_string: String,
    /// `%}`
    pub block_end_string: String,
    /// `{{`
    pub variable_start_string: String,
    /// `}}`
    pub variable_end_string: String,
    /// `{#`
    pub comment_start_string: String,
    /// `#}`
    pub comment_end_string: String,
    /// What makes a line a statement.
    pub line_statement_prefix: Option<String>,
    /// What makes the rest of a line a comment.
    pub line_comment_prefix: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            trim_blocks: false,
            lstrip_blocks: false,
            keep_trailing_newline: false,
            block_start_string: "{%".into(),
            block_end_string: "%}".into(),
            variable_start_string: "{{".into(),
            variable_end_string: "}}".into(),
            comment_start_string: "{#".into(),
            comment_end_string: "#}".into(),
            line_statement_prefix: None,
            line_comment_prefix: None,
        }
    }
}

impl Settings {
    /// Sets what a dict names; says false if it is unknown.
    pub fn set(&mut self, name: &str, value: &Value) -> bool {
        let text = value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let place = match name.to_lowercase().as_str() {
            "trim_blocks" => return set_flag(&mut self.trim_blocks, value),
            "lstrip_blocks" => return set_flag(&mut self.lstrip_blocks, value),
            "keep_trailing_newline" => return set_flag(&mut self.keep_trailing_newline, value),
            "line_statement_prefix" => {
                self.line_statement_prefix = text;
                return true;
            }
            "line_comment_prefix" => {
                self.line_comment_prefix = text;
                return true;
            }
            "block_start_string" => &mut self.block_start_string,
            "block_end_string" => &mut self.block_end_string,
            "variable_start_string" => &mut self.variable_start_string,
            "variable_end_string" => &mut self.variable_end_string,
            "comment_start_string" => &mut self.comment_start_string,
            "comment_end_string" => &mut self.comment_end_string,
            _ => return false,
        };
        if let Some(text) = text {
            *place = text;
        }
        true
    }

    /// Takes the `#jinja2:` line out of a text; the settings with what it says.
    pub(super) fn for_file(&self, text: &str) -> (String, Self) {
        let mut settings = self.clone();
        let mut start = 0;
        if text.starts_with("#!") && !text.starts_with("#!/") {
            start = text.find('\n').map_or(text.len(), |at| at + 1);
        }
        let Some(rest) = text[start..].strip_prefix("#jinja2:") else { return (text.to_owned(), settings) };
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let Ok(Value::Dict(options)) = super::json::parse(&rest[..end]) else { return (text.to_owned(), settings) };
        for (name, value) in options.borrow().iter() {
            settings.set(name.as_str().unwrap_or_default(), value);
        }
        (format!("{}{}", &text[..start], &rest[end..]), settings)
    }
}

fn set_flag(flag: &mut bool, value: &Value) -> bool {
    *flag = value.truthy();
    true
}

/// The bounds of a render.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Upper bound on the bytes of the template that is rendered.
    pub text: usize,
    /// Upper bound on expressions, statements and rounds of loops.
    pub steps: u64,
    /// Upper bound on the bytes of all text and values that are made.
    pub bytes: usize,
    /// Upper bound on nested calls and expressions: each takes stack.
    pub depth: usize,
    /// Upper bound on the templates that are loaded.
    pub templates: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { text: 4 << 20, steps: 4_000_000, bytes: 40 << 20, depth: 150, templates: 500 }
    }
}
