//! Salt's serializers: values as the text of a file and back, with the options that Python's dumpers take.
//!
//! `file.serialize` and `slsutil.serialize` are two users of the same ones.

mod sections;

use crate::value::Value;
use crate::yaml::Style;
use crate::{json, yaml};

/// A serializer and its options.
#[derive(Debug, Clone)]
pub enum Serializer {
    /// `yaml`
    Yaml(YamlOptions),
    /// `json`
    Json(JsonOptions),
    /// `configparser`: sections of keys and values.
    Sections(sections::Options),
}

/// What the YAML serializer takes.
#[derive(Debug, Clone, Default)]
pub struct YamlOptions {
    dump: yaml::DumpOptions,
    /// What ends a line.
    line_break: Option<&'static str>,
}

/// What the JSON serializer takes.
#[derive(Debug, Clone, Default)]
pub struct JsonOptions {
    dump: json::DumpOptions,
    /// Keys that JSON cannot have are left out.
    skip_keys: bool,
    /// `NaN` and `Infinity`, which JSON does not know, are errors.
    strict_numbers: bool,
}

impl Serializer {
    /// A serializer by Salt's name, with the defaults of its module.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            // Salt's serializer looks for text beyond ASCII to write with escapes.
            "yaml" => Self::Yaml(YamlOptions {
                dump: yaml::DumpOptions { allow_unicode: false, ..yaml::DumpOptions::default() },
                line_break: None,
            }),
            "json" => Self::Json(JsonOptions::default()),
            "configparser" => Self::Sections(sections::Options::default()),
            _ => return None,
        })
    }

    /// Sets an option by the name that it has in Python.
    ///
    /// # Errors
    /// In Python's words: there is no such option, or not with this value.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match self {
            Self::Yaml(options) => options.set(name, value),
            Self::Json(options) => options.set(name, value),
            Self::Sections(options) => options.set(name, value),
        }
    }

    /// The text of a value.
    ///
    /// # Errors
    /// In Python's words: the value cannot be written so.
    pub fn text(&self, value: &Value) -> Result<String, String> {
        match self {
            Self::Yaml(options) => options.text(value),
            Self::Json(options) => options.text(value),
            Self::Sections(options) => sections::write(value, options),
        }
    }

    /// The value of a text.
    ///
    /// # Errors
    /// The text is none of this serializer's.
    pub fn value(&self, text: &str) -> Result<Value, String> {
        match self {
            Self::Yaml(_) => yaml::load(text, &yaml::Limits::default()).map_err(|error| error.to_string()),
            Self::Json(_) => json::load(text, &yaml::Limits::default()).map_err(|error| error.to_string()),
            Self::Sections(options) => sections::read(text, options),
        }
    }
}

fn integer(value: &Value) -> Result<i64, String> {
    match value {
        Value::Bool(b) => Ok(i64::from(*b)),
        Value::Int(n) => i64::try_from(*n).map_err(|_| "Python int too large to convert to C int".to_owned()),
        _ => Err("an integer is required".to_owned()),
    }
}

fn not_here(name: &str, value: &Value, serializer: &str) -> String {
    format!("the option {name} of the serializer {serializer} is not offered with the value {}", value.short_repr())
}

impl YamlOptions {
    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let is_none = matches!(value, Value::None);
        let dump = &mut self.dump;
        match name {
            "default_flow_style" => dump.default_flow_style = (!is_none).then(|| value.truthy()),
            "default_style" => {
                dump.default_style = (!is_none).then(|| match value.as_str() {
                    Some("'") => Style::SingleQuoted,
                    Some("\"") => Style::DoubleQuoted,
                    Some("|") => Style::Literal,
                    Some(">") => Style::Folded,
                    _ => Style::Plain,
                });
            }
            "allow_unicode" => dump.allow_unicode = value.truthy(),
            "sort_keys" => dump.sort_keys = value.truthy(),
            "explicit_start" => dump.explicit_start = value.truthy(),
            "explicit_end" => dump.explicit_end = value.truthy(),
            "indent" => dump.indent = if is_none { 2 } else { integer(value)? },
            "width" => dump.width = if is_none { 80 } else { integer(value)? },
            "line_break" => {
                self.line_break = match value.as_str() {
                    Some("\r\n") => Some("\r\n"),
                    Some("\r") => Some("\r"),
                    _ => None,
                };
            }
            "version" => {
                dump.version = match value {
                    _ if !value.truthy() => None,
                    Value::List(_) | Value::Tuple(_) => match value.short_repr().trim_matches(['[', ']', '(', ')']) {
                        "1, 1" => Some("1.1"),
                        "1, 2" => Some("1.2"),
                        _ => return Err("incompatible %YAML directive".to_owned()),
                    },
                    _ => return Err(not_here(name, value, "yaml")),
                };
            }
            "canonical" | "tags" | "encoding" | "stream" if !value.truthy() => {}
            "encoding" => return Err("endswith first arg must be bytes or a tuple of bytes, not str".to_owned()),
            "canonical" | "tags" | "stream" | "Dumper" => return Err(not_here(name, value, "yaml")),
            _ => return Err(format!("dump_all() got an unexpected keyword argument '{name}'")),
        }
        Ok(())
    }

    fn text(&self, value: &Value) -> Result<String, String> {
        let mut text = yaml::dump(value, &self.dump).map_err(|error| error.to_string())?;
        if let Some(end) = self.line_break {
            text = text.replace('\n', end);
        }
        // What ends a document is not wanted in a file of one.
        Ok(text.strip_suffix("\n...\n").or_else(|| text.strip_suffix('\n')).unwrap_or(&text).to_owned())
    }
}

impl JsonOptions {
    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match name {
            "indent" => {
                self.dump.indent = match value {
                    Value::None => None,
                    Value::Str(text) => Some(text.to_string()),
                    value => Some(" ".repeat(usize::try_from(integer(value)?).unwrap_or(0).min(64))),
                };
            }
            "separators" => self.dump.separators = separators(value)?,
            "sort_keys" => self.dump.sort_keys = value.truthy(),
            "ensure_ascii" => self.dump.ascii = value.truthy(),
            "skipkeys" => self.skip_keys = value.truthy(),
            "allow_nan" => self.strict_numbers = !value.truthy(),
            // Both matter to Python alone: values here do not contain themselves, and have a form in JSON.
            "check_circular" | "default" => {}
            "cls" if matches!(value, Value::None) => {}
            "cls" | "fp" => return Err(not_here(name, value, "json")),
            _ => return Err(format!("JSONEncoder.__init__() got an unexpected keyword argument '{name}'")),
        }
        Ok(())
    }

    fn text(&self, value: &Value) -> Result<String, String> {
        if self.strict_numbers && has_strange_number(value, 0) {
            return Err("Out of range float values are not JSON compliant".to_owned());
        }
        if self.skip_keys {
            return json::dump(&without_strange_keys(value, 0)?, &self.dump);
        }
        json::dump(value, &self.dump)
    }
}

fn separators(value: &Value) -> Result<Option<(String, String)>, String> {
    let parts: Vec<Value> = match value {
        Value::None => return Ok(None),
        Value::List(items) => items.borrow().clone(),
        Value::Tuple(items) => items.to_vec(),
        Value::Str(text) => text.chars().map(|c| Value::str(c.to_string())).collect(),
        other => return Err(format!("cannot unpack non-iterable {} object", other.type_name())),
    };
    match &parts[..] {
        [Value::Str(comma), Value::Str(colon)] => Ok(Some((comma.to_string(), colon.to_string()))),
        [_, _] => Err("make_encoder() arguments 4 and 5 must be str".to_owned()),
        _ if parts.len() < 2 => Err(format!("not enough values to unpack (expected 2, got {})", parts.len())),
        _ => Err("too many values to unpack (expected 2)".to_owned()),
    }
}

const DEEP: usize = crate::value::MAX_DEPTH;

fn has_strange_number(value: &Value, depth: usize) -> bool {
    let within = |value: &Value| depth < DEEP && has_strange_number(value, depth + 1);
    match value {
        Value::Float(n) => !n.is_finite(),
        Value::List(items) => items.borrow().iter().any(within),
        Value::Tuple(items) => items.iter().any(within),
        Value::Dict(dict) => dict.borrow().iter().any(|(key, value)| within(key.value()) || within(value)),
        _ => false,
    }
}

fn without_strange_keys(value: &Value, depth: usize) -> Result<Value, String> {
    if depth > DEEP {
        return Err("Circular reference detected".to_owned());
    }
    let within = |value: &Value| without_strange_keys(value, depth + 1);
    Ok(match value {
        Value::List(items) => Value::list(items.borrow().iter().map(within).collect::<Result<Vec<_>, _>>()?),
        Value::Tuple(items) => Value::list(items.iter().map(within).collect::<Result<Vec<_>, _>>()?),
        Value::Dict(dict) => {
            let is_plain = |key: &Value| {
                matches!(key, Value::Str(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::None)
            };
            let dict = dict.borrow();
            let entries = dict.iter().filter(|(key, _)| is_plain(key.value()));
            Value::dict(
                entries.map(|(key, value)| Ok((key.clone(), within(value)?))).collect::<Result<Vec<_>, String>>()?,
            )
        }
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        yaml::load(text, &yaml::Limits::default()).unwrap()
    }

    fn text(name: &str, options: &str, of: &str) -> Result<String, String> {
        let mut serializer = Serializer::named(name).unwrap();
        let Value::Dict(options) = value(options) else { panic!("a dict") };
        for (name, value) in options.borrow().iter() {
            serializer.set(name.as_str().unwrap(), value)?;
        }
        serializer.text(&value(of))
    }

    /// Recorded from Salt 3008.5.
    #[test]
    fn options_are_those_of_pythons_dumpers() {
        let data = "{b: [1, {k: 2}], a: é}";
        for (name, options, expect) in [
            ("yaml", "{default_flow_style: false}", "a: \"\\xE9\"\nb:\n- 1\n- k: 2"),
            (
                "yaml",
                "{default_flow_style: false, explicit_start: true, explicit_end: true}",
                "---\na: \"\\xE9\"\nb:\n- 1\n- k: 2",
            ),
            (
                "yaml",
                "{default_flow_style: true, explicit_start: true, allow_unicode: true}",
                "--- {a: é, b: [1, {k: 2}]}",
            ),
            (
                "yaml",
                "{default_flow_style: false, version: [1, 1], indent: 4}",
                "%YAML 1.1\n---\na: \"\\xE9\"\nb:\n- 1\n-   k: 2",
            ),
            (
                "yaml",
                "{default_flow_style: false, line_break: \"\\r\\n\", sort_keys: false}",
                "b:\r\n- 1\r\n- k: 2\r\na: \"\\xE9\"\r",
            ),
            ("json", "{}", r#"{"b": [1, {"k": 2}], "a": "é"}"#),
            (
                "json",
                "{indent: 1, sort_keys: true, ensure_ascii: true}",
                "{\n \"a\": \"\\u00e9\",\n \"b\": [\n  1,\n  {\n   \"k\": 2\n  }\n ]\n}",
            ),
            ("json", "{separators: [',', ':']}", r#"{"b":[1,{"k":2}],"a":"é"}"#),
            (
                "json",
                "{indent: \"\\t\", separators: [', ', ' = ']}",
                "{\n\t\"b\" = [\n\t\t1, \n\t\t{\n\t\t\t\"k\" = 2\n\t\t}\n\t], \n\t\"a\" = \"é\"\n}",
            ),
            ("json", "{indent: null, skipkeys: true, allow_nan: false}", r#"{"b": [1, {"k": 2}], "a": "é"}"#),
        ] {
            assert_eq!(text(name, options, data).as_deref(), Ok(expect), "{name} {options}");
        }
        assert_eq!(text("json", "{sort_keys: true}", "{10: a, 9: b}").as_deref(), Ok(r#"{"9": "b", "10": "a"}"#));
    }

    #[test]
    fn mistakes_have_pythons_words() {
        for (name, options, of, expect) in [
            ("yaml", "{nope: 1}", "{}", "dump_all() got an unexpected keyword argument 'nope'"),
            ("yaml", "{indent: '4'}", "{}", "an integer is required"),
            ("json", "{nope: 1}", "{}", "JSONEncoder.__init__() got an unexpected keyword argument 'nope'"),
            ("json", "{separators: [a]}", "{}", "not enough values to unpack (expected 2, got 1)"),
            ("json", "{allow_nan: false}", "[.nan]", "Out of range float values are not JSON compliant"),
            ("json", "{sort_keys: true}", "{a: 1, 2: 3}", "'<' not supported between instances of 'int' and 'str'"),
        ] {
            assert_eq!(text(name, options, of), Err(expect.to_owned()), "{name} {options}");
        }
    }
}
