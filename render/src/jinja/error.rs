//! What goes wrong in a template, in the words that Salt prints.

use std::fmt;
use std::rc::Rc;

use crate::data::CallError;

/// The family of an exception: Salt has a sentence for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// `jinja2.UndefinedError`
    Undefined,
    /// `TemplateSyntaxError`, `TemplateRuntimeError`, `SecurityError`
    Template,
    /// An execution function refused (`CommandExecutionError`, `SaltInvocationError`).
    Function,
    /// An exception of Python: `TypeError` and the like.
    Python,
    /// Python's `KeyError`, `IndexError`: a lookup catches it.
    Lookup,
    /// A template that is not there.
    NotFound,
    /// The template is outside the bounds.
    Limit,
}

/// Why a template does not render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JinjaError {
    /// The family.
    pub kind: ErrorKind,
    /// What is wrong.
    pub message: String,
    /// The line in the innermost template, from 1; 0 while unknown.
    pub line: u32,
    /// The path of the innermost template, unless it is the one that was given to be rendered.
    pub file: Option<Rc<str>>,
    /// The excerpt that Salt prints after the message.
    pub excerpt: String,
}

pub(crate) type Res<T> = Result<T, Box<JinjaError>>;

impl JinjaError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { kind, message: message.into(), line: 0, file: None, excerpt: String::new() })
    }

    pub(crate) fn python(message: impl Into<String>) -> Box<Self> {
        Self::new(ErrorKind::Python, message)
    }

    pub(crate) fn template(message: impl Into<String>) -> Box<Self> {
        Self::new(ErrorKind::Template, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Box<Self> {
        Self::new(ErrorKind::Limit, message)
    }

    pub(crate) fn syntax(message: impl Into<String>, line: u32) -> Box<Self> {
        let mut error = Self::template(message);
        error.line = line;
        error
    }

    /// Notes where the error is, unless that is known. `source` is the template's text.
    pub(crate) fn locate(mut self: Box<Self>, file: Option<&Rc<str>>, line: u32, source: &str) -> Box<Self> {
        if self.excerpt.is_empty() {
            if self.line == 0 {
                self.line = line;
            }
            self.file = file.cloned();
            self.excerpt = excerpt(source, self.line);
        }
        self
    }
}

/// The lines around a line, which has the marker (`salt.utils.stringutils.get_context`).
fn excerpt(source: &str, line: u32) -> String {
    const AROUND: usize = 5;
    // a template can be one line of megabytes
    const LONGEST: usize = 400;
    let cut = |text: &str| match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}[...]", &text[..end]),
        None => text.to_owned(),
    };
    let lines: Vec<&str> = source.lines().collect();
    let line = line as usize;
    if line > lines.len() || line == 0 {
        return cut(source);
    }
    let (start, end) = (line.saturating_sub(AROUND + 1), (line + AROUND).min(lines.len()));
    let mut out = String::from("---\n");
    if start > 0 {
        out.push_str("[...]\n");
    }
    for (at, text) in lines.iter().enumerate().take(end).skip(start) {
        out.push_str(&cut(text));
        if at + 1 == line {
            out.push_str("    <======================");
        }
        out.push('\n');
    }
    if end < lines.len() {
        out.push_str("[...]\n");
    }
    out + "---"
}

impl std::error::Error for JinjaError {}

impl From<CallError> for Box<JinjaError> {
    fn from(error: CallError) -> Self {
        JinjaError::new(if error.refused { ErrorKind::Function } else { ErrorKind::Python }, error.message)
    }
}

/// As Salt's `SaltRenderError`, without Python's traceback.
impl fmt::Display for JinjaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ErrorKind::Undefined => "Jinja variable ",
            ErrorKind::Template => "Jinja syntax error: ",
            ErrorKind::Function => "Problem running salt function in Jinja template: ",
            ErrorKind::Python | ErrorKind::Lookup | ErrorKind::NotFound | ErrorKind::Limit => "Jinja error: ",
        })?;
        f.write_str(&self.message)?;
        match &self.file {
            _ if self.line == 0 => Ok(()),
            Some(file) => write!(f, "\n{file}({}):\n{}", self.line, self.excerpt),
            None => write!(f, "; line {}\n\n{}", self.line, self.excerpt),
        }
    }
}
