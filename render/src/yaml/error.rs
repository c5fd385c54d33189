//! What is wrong with a YAML text, in PyYAML's words: programs and people read them.

use std::fmt;

/// A place in a text; all counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The character of the text.
    pub index: u32,
    /// The line.
    pub line: u32,
    /// The character of the line.
    pub column: u32,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  in \"<unicode string>\", line {}, column {}", self.line + 1, self.column + 1)
    }
}

/// The exception that Python raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YamlErrorKind {
    /// `yaml.reader.ReaderError`: a character that YAML does not allow.
    Reader,
    /// `yaml.scanner.ScannerError`
    Scanner,
    /// `yaml.parser.ParserError`
    Parser,
    /// `yaml.composer.ComposerError`
    Composer,
    /// `yaml.constructor.ConstructorError`
    Constructor,
    /// `ValueError`, from the text of a number
    Value,
    /// `IndexError`, from an empty number
    Index,
    /// `KeyError`, from the text of a boolean
    Key,
    /// `AttributeError`, from a list that claims to be a number
    Attribute,
    /// The text is outside our bounds. Python has none, or ends otherwise.
    Limit,
}

/// Why a text is not YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// The exception that Python raises.
    pub kind: YamlErrorKind,
    /// What was being read, and where that began.
    pub context: Option<(String, Option<Mark>)>,
    /// What is wrong.
    pub problem: String,
    /// Where.
    pub mark: Option<Mark>,
}

impl YamlError {
    pub(super) fn new(kind: YamlErrorKind, problem: impl Into<String>, mark: Mark) -> Box<Self> {
        Box::new(Self { kind, context: None, problem: problem.into(), mark: Some(mark) })
    }

    pub(super) fn within(mut self: Box<Self>, context: &str, mark: Mark) -> Box<Self> {
        self.context = Some((context.to_owned(), Some(mark)));
        self
    }

    pub(super) fn limit(problem: impl Into<String>, mark: Mark) -> Box<Self> {
        Self::new(YamlErrorKind::Limit, problem, mark)
    }

    /// The line, counted from 1.
    pub fn line(&self) -> Option<u32> {
        self.mark.map(|mark| mark.line + 1)
    }

    /// What Salt's YAML renderer says: of a scanner's error it leaves out where.
    pub fn render_message(&self) -> String {
        match self.kind {
            YamlErrorKind::Scanner => self.problem.clone(),
            _ => self.to_string(),
        }
    }
}

impl std::error::Error for YamlError {}

/// Python's `str(error)`.
impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use YamlErrorKind as K;
        if matches!(self.kind, K::Reader | K::Value | K::Index | K::Key | K::Attribute) {
            return f.write_str(&self.problem);
        }
        if let Some((context, mark)) = &self.context {
            writeln!(f, "{context}")?;
            // PyYAML leaves out a first place that is also the second
            if let Some(mark) = mark
                && self.mark.is_none_or(|at| (at.line, at.column) != (mark.line, mark.column))
            {
                writeln!(f, "{mark}")?;
            }
        }
        f.write_str(&self.problem)?;
        match self.mark {
            Some(mark) => write!(f, "\n{mark}"),
            None => Ok(()),
        }
    }
}
