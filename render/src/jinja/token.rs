//! The tokens of a template.

/// A token, and the line that it is on.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) line: u32,
    pub(super) kind: Tok,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tok {
    Data(String),
    VariableBegin,
    VariableEnd,
    BlockBegin,
    BlockEnd,
    Name(String),
    Text(String),
    Int(i128),
    Float(f64),
    Op(&'static str),
    /// The text is wrong from here: what Jinja says when it gets there.
    Wrong(String),
    Eof,
}

impl Tok {
    /// Jinja's description for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Data(_) => "template data / text",
            Self::VariableBegin => "begin of print statement",
            Self::VariableEnd => "end of print statement",
            Self::BlockBegin => "begin of statement block",
            Self::BlockEnd => "end of statement block",
            Self::Name(name) => name,
            Self::Text(_) => "string",
            Self::Int(_) => "integer",
            Self::Float(_) => "float",
            Self::Op(op) => op,
            Self::Wrong(_) => "error",
            Self::Eof => "end of template",
        }
        .to_owned()
    }
}

/// The operators, longest first.
pub(super) const OPERATORS: [&str; 25] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
    ":", "|", ",",
];
