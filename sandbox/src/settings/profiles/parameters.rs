//! Paths and names that a profile takes. They stand in its texts for `{path}`, `{service}` or `{name}`, after YAML was
//! read: whatever is in one, it is a part of one text. An item of a list and a key of a dict with it are there once for each.

use rmpv::Value;

use super::super::{Result, error, values};

/// Upper bound on the parameters of one profile.
const MAX_PARAMETERS: usize = 64;
/// Upper bound on the bytes of one.
const MAX_BYTES: usize = 1_024;
/// Upper bound on the texts that parameters stand in, of one profile.
const MAX_TEXTS: usize = 10_000;
/// Types of units other than services.
const OTHER_UNITS: [&str; 8] = [".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer"];

/// What a profile takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Absolute paths of directories and files.
    Path,
    /// Services, as systemd names them, without their type.
    Service,
    /// Names of letters, digits and `_.-`.
    Name,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Path, Self::Service, Self::Name];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Service => "service",
            Self::Name => "name",
        }
    }

    /// The text that it stands for.
    fn mark(self) -> String {
        format!("{{{}}}", self.word())
    }

    /// Reads the parameters of a profile.
    pub(super) fn read(self, path: &str, value: &Value) -> Result<Vec<String>> {
        let Value::Array(items) = value else {
            return error(path, format!("a list of {}s is expected, not {value}", self.word()));
        };
        if items.is_empty() {
            return error(path, format!("it has no {}: name one at least", self.word()));
        }
        if items.len() > MAX_PARAMETERS {
            return error(path, format!("it has more than {MAX_PARAMETERS} items"));
        }
        items.iter().map(|item| self.one(path, values::text(path, item)?)).collect()
    }

    fn one(self, path: &str, text: &str) -> Result<String> {
        if text.len() > MAX_BYTES {
            return error(path, format!("a {} has more than {MAX_BYTES} bytes", self.word()));
        }
        // What a terminal would obey or hide is no part of a name, and neither is what stands for other characters.
        if text.chars().any(brine_text::is_active) || text.contains(['*', '?', '{', '}']) {
            return error(path, format!("{text:?} has characters that a {} cannot have", self.word()));
        }
        let plain = |more: &[char]| {
            text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
                && !text.contains("..")
        };
        match self {
            Self::Path => {
                values::absolute(path, text)?;
                if text == "/" {
                    return error(
                        path,
                        "\"/\" is all files: the owner grants that in sandbox: modules:, or by another profile",
                    );
                }
                Ok(text.to_owned())
            }
            Self::Service => {
                let name = text.strip_suffix(".service").unwrap_or(text);
                if !plain(&['_', '.', '-', '@', ':', '\\']) || name.is_empty() {
                    return error(path, format!("{text:?} cannot be a service's name"));
                }
                if OTHER_UNITS.iter().any(|kind| name.ends_with(kind)) {
                    return error(
                        path,
                        format!("{text:?} is no service: units of other types have to be granted in sandbox: modules:"),
                    );
                }
                Ok(name.to_owned())
            }
            Self::Name if plain(&['_', '.', '-']) => Ok(text.to_owned()),
            Self::Name => error(path, format!("{text:?} is not a name of letters, digits and _.-")),
        }
    }
}

/// Puts parameters into a profile's entries.
pub(super) fn fill(path: &str, value: Value, kind: Kind, parameters: &[String]) -> Result<Value> {
    let mut filling = Filling { path, mark: kind.mark(), parameters, texts: 0 };
    Ok(filling.value(value)?.into_iter().next().unwrap_or(Value::Nil))
}

struct Filling<'a> {
    path: &'a str,
    mark: String,
    parameters: &'a [String],
    texts: usize,
}

impl Filling<'_> {
    /// What a value becomes: a text with the mark, one text for each parameter.
    fn value(&mut self, value: Value) -> Result<Vec<Value>> {
        Ok(match value {
            Value::String(text) => {
                let text = text.into_str().unwrap_or_default();
                self.text(&text)?.into_iter().map(Value::from).collect()
            }
            Value::Array(items) => {
                let mut all = Vec::with_capacity(items.len());
                for item in items {
                    all.extend(self.value(item)?);
                }
                vec![Value::Array(all)]
            }
            Value::Map(entries) => {
                let mut all = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    let keys = match key.as_str() {
                        Some(key) => self.text(key)?.into_iter().map(Value::from).collect(),
                        None => vec![key],
                    };
                    if value.as_str().is_some_and(|text| text.contains(&self.mark)) {
                        return error(
                            self.path,
                            format!("{} is in a value of a dict; it belongs into a key or a list", self.mark),
                        );
                    }
                    let value = self.value(value)?.into_iter().next().unwrap_or(Value::Nil);
                    all.extend(keys.into_iter().map(|key| (key, value.clone())));
                }
                vec![Value::Map(all)]
            }
            value => vec![value],
        })
    }

    fn text(&mut self, text: &str) -> Result<Vec<String>> {
        if !text.contains(&self.mark) {
            return Ok(vec![text.to_owned()]);
        }
        self.texts += self.parameters.len();
        if self.texts > MAX_TEXTS {
            return error(self.path, format!("with its parameters it has more than {MAX_TEXTS} texts"));
        }
        let mut all = Vec::with_capacity(self.parameters.len());
        for parameter in self.parameters {
            // In a command line, a blank would begin another word.
            if text != self.mark && parameter.contains(char::is_whitespace) {
                return error(self.path, format!("{parameter:?} has a blank, and is to be a part of {text:?}"));
            }
            all.push(text.replace(&self.mark, parameter));
        }
        Ok(all)
    }
}
