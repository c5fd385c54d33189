//! Values as the text of a file, and back: `file.serialize`.

use brine_render::data::merge::{How, update};
use brine_render::data::{Budget, deep_copy};
use brine_render::yaml::{self, DumpOptions};
use brine_render::{Value, json};

/// The kinds of text that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Yaml,
    Json,
    /// Sections of keys and values, as Python's `configparser` writes them.
    Sections,
}

impl Kind {
    /// A kind by Salt's name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "yaml" => Self::Yaml,
            "json" => Self::Json,
            "configparser" => Self::Sections,
            _ => return None,
        })
    }

    /// The text of a value. `options` are those of Salt's serializer; `unicode` leaves text beyond ASCII as it is.
    pub(crate) fn text(self, value: &Value, options: &[(String, Value)], unicode: bool) -> Result<String, String> {
        match self {
            Self::Yaml => yaml_text(value, options, unicode),
            Self::Json => json_text(value, options),
            Self::Sections => sections(value),
        }
    }

    /// The value of a text; `path` is where it is, for the error.
    pub(crate) fn value(self, text: &str, path: &str) -> Result<Value, String> {
        match self {
            Self::Yaml => yaml::load(text, &yaml::Limits::default()).map_err(|error| {
                let text = error.to_string();
                text.replace("\"<unicode string>\"", &format!("\"{path}\""))
            }),
            Self::Json => json::load(text, &yaml::Limits::default()).map_err(|error| error.to_string()),
            Self::Sections => Err("files of sections are not read".into()),
        }
    }
}

fn yaml_text(value: &Value, options: &[(String, Value)], unicode: bool) -> Result<String, String> {
    let mut dump = DumpOptions { default_flow_style: Some(false), allow_unicode: unicode, ..DumpOptions::default() };
    for (name, option) in options {
        match (name.as_str(), option) {
            ("default_flow_style", Value::None) => dump.default_flow_style = None,
            ("default_flow_style", option) => dump.default_flow_style = Some(option.truthy()),
            ("allow_unicode", option) => dump.allow_unicode = option.truthy(),
            ("sort_keys", option) => dump.sort_keys = option.truthy(),
            ("indent", Value::Int(number)) => dump.indent = i64::try_from(*number).unwrap_or(2),
            ("width", Value::Int(number)) => dump.width = i64::try_from(*number).unwrap_or(80),
            _ => return Err(format!("the YAML serializer has no option {name} of this kind here")),
        }
    }
    let text = yaml::dump(value, &dump).map_err(|error| error.to_string())?;
    let text = text.strip_suffix("\n...\n").or_else(|| text.strip_suffix('\n')).unwrap_or(&text);
    Ok(text.to_owned())
}

fn json_text(value: &Value, options: &[(String, Value)]) -> Result<String, String> {
    let mut dump = json::DumpOptions { sort_keys: true, ascii: false, indent: Some(2) };
    for (name, option) in options {
        match (name.as_str(), option) {
            ("indent", Value::None) => dump.indent = None,
            ("indent", Value::Int(number)) => dump.indent = usize::try_from(*number).ok(),
            ("sort_keys", option) => dump.sort_keys = option.truthy(),
            ("ensure_ascii", option) => dump.ascii = option.truthy(),
            _ => return Err(format!("the JSON serializer has no option {name} of this kind here")),
        }
    }
    json::dump(value, dump)
}

/// As Python's `configparser`: option names in small letters.
fn sections(value: &Value) -> Result<String, String> {
    let Value::Dict(all) = value else {
        return Err(format!("configparser can only serialize dictionaries, not <class '{}'>", value.type_name()));
    };
    let mut text = String::new();
    for (section, options) in all.borrow().iter() {
        let Value::Dict(options) = options else {
            return Err(format!("'{}' object has no attribute 'items'", options.type_name()));
        };
        text.push_str(&format!("[{}]\n", shown(section.value())));
        for (name, value) in options.borrow().iter() {
            let name = shown(name.value()).to_lowercase();
            match value {
                Value::None => return Err("option values must be strings".into()),
                value => text.push_str(&format!("{name} = {}\n", shown(value).replace('\n', "\n\t"))),
            }
        }
        text.push('\n');
    }
    Ok(text)
}

fn shown(value: &Value) -> String {
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = value.write_str(&mut text);
    text
}

/// A value with another merged into it, on every level; lists are replaced.
pub(crate) fn merged(old: &Value, new: &Value) -> Result<Value, String> {
    let how = How { recursive: true, merge_lists: false, strict: false };
    update(&deep_copy(old, &Budget::default()).map_err(|error| error.message)?, new, how, &Budget::default())
        .map_err(|error| error.message)
}

/// What changed, by key: `{"old": …, "new": …}`, and dicts below dicts. Keys that went are left out, as in Salt.
pub(crate) fn changes(old: &Value, new: &Value) -> Value {
    let (Value::Dict(old), Value::Dict(new)) = (old, new) else { return Value::dict([]) };
    let mut changes = Vec::new();
    let old = old.borrow();
    for (key, value) in new.borrow().iter() {
        let before = old.get(key);
        match (before, value) {
            (Some(before), value) if before.equals(value) == Some(true) => {}
            (Some(before @ Value::Dict(_)), value @ Value::Dict(_)) => {
                changes.push((key.clone(), self::changes(before, value)));
            }
            (before, value) => {
                let before = before.cloned().unwrap_or_else(|| Value::str("<_null_>"));
                changes.push((key.clone(), Value::dict([("old".into(), before), ("new".into(), value.clone())])));
            }
        }
    }
    Value::dict(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        yaml::load(text, &yaml::Limits::default()).unwrap()
    }

    /// Recorded from Salt 3008.3.
    #[test]
    fn texts_are_salts() {
        let data = value("{b: [1, 2.5, true, null, 'x: y'], a: {z: {}, y: []}, ü: é}");
        let text = |kind: Kind, options: &[(String, Value)]| kind.text(&data, options, false).unwrap();
        assert_eq!(
            text(Kind::Yaml, &[]),
            "a:\n  y: []\n  z: {}\nb:\n- 1\n- 2.5\n- true\n- null\n- 'x: y'\n\"\\xFC\": \"\\xE9\""
        );
        let one_line = [("indent".to_owned(), Value::None)];
        assert_eq!(
            text(Kind::Json, &one_line),
            r#"{"a": {"y": [], "z": {}}, "b": [1, 2.5, true, null, "x: y"], "ü": "é"}"#
        );
        assert_eq!(Kind::Yaml.text(&value("5"), &[], false).unwrap(), "5");
        let file = value("{sect: {k: v, K2: 5}}");
        assert_eq!(Kind::Sections.text(&file, &[], false).unwrap(), "[sect]\nk = v\nk2 = 5\n\n");
        assert!(Kind::Sections.text(&value("[1]"), &[], false).is_err());
        assert!(Kind::Json.text(&data, &[("skipkeys".into(), true.into())], false).is_err());
    }

    #[test]
    fn values_are_merged() {
        let (old, new) = (value("{a: 1, b: {c: 2}}"), value("{b: {d: 3}}"));
        let merged = merged(&old, &new).unwrap();
        assert_eq!(merged.equals(&value("{a: 1, b: {c: 2, d: 3}}")), Some(true));
        assert_eq!(changes(&old, &merged).equals(&value("{b: {d: {old: <_null_>, new: 3}}}")), Some(true));
        assert_eq!(old.equals(&value("{a: 1, b: {c: 2}}")), Some(true));
    }
}
