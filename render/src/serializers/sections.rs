//! Files of sections, as Python's `configparser.ConfigParser` reads and writes them.

use crate::value::{Dict, Key, Value};

/// Levels of values that refer to values.
const MAX_INTERPOLATION_DEPTH: usize = 10;

/// What `ConfigParser` takes.
#[derive(Debug, Clone)]
pub struct Options {
    delimiters: Vec<String>,
    /// Keys may stand alone.
    bare_keys: bool,
    /// Values refer to others by `%(name)s`.
    interpolation: bool,
    default_section: String,
    comments: Vec<String>,
    inline_comments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            delimiters: vec!["=".into(), ":".into()],
            bare_keys: false,
            interpolation: true,
            default_section: "DEFAULT".into(),
            comments: vec!["#".into(), ";".into()],
            inline_comments: Vec::new(),
        }
    }
}

impl Options {
    pub(super) fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match name {
            "allow_no_value" => self.bare_keys = value.truthy(),
            "delimiters" => self.delimiters = texts(name, value)?,
            "comment_prefixes" => self.comments = texts(name, value)?,
            "inline_comment_prefixes" => self.inline_comments = texts(name, value)?,
            "interpolation" if matches!(value, Value::None) => self.interpolation = false,
            "default_section" => self.default_section = shown(value),
            // They matter to how strange files are read, and how Python's programs ask for values.
            "strict" | "empty_lines_in_values" | "converters" => {}
            "defaults" | "dict_type" if !value.truthy() => {}
            "defaults" | "dict_type" | "interpolation" => return Err(super::not_here(name, value, "configparser")),
            _ => return Err(format!("RawConfigParser.__init__() got an unexpected keyword argument '{name}'")),
        }
        Ok(())
    }
}

/// A list of texts; of one text its characters.
fn texts(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let texts: Vec<String> = match value {
        Value::None => Vec::new(),
        Value::Str(text) => text.chars().map(String::from).collect(),
        Value::List(items) => items.borrow().iter().map(shown).collect(),
        Value::Tuple(items) => items.iter().map(shown).collect(),
        other => return Err(format!("'{}' object is not iterable", other.type_name())),
    };
    if texts.is_empty() && name == "delimiters" {
        return Err("tuple index out of range".to_owned());
    }
    Ok(texts)
}

fn shown(value: &Value) -> String {
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = value.write_str(&mut text);
    text
}

/// Names of keys in small letters; what stands under the default section comes first.
pub(super) fn write(value: &Value, options: &Options) -> Result<String, String> {
    let Value::Dict(all) = value else {
        return Err(format!("configparser can only serialize dictionaries, not <class '{}'>", value.type_name()));
    };
    let (mut defaults, mut others) = (String::new(), String::new());
    for (section, entries) in all.borrow().iter() {
        let section = shown(section.value());
        let Value::Dict(entries) = entries else {
            return Err(format!("'{}' object has no attribute 'items'", entries.type_name()));
        };
        let is_default = section == options.default_section;
        let text = if is_default { &mut defaults } else { &mut others };
        if is_default && entries.borrow().is_empty() {
            continue;
        }
        text.push_str(&format!("[{section}]\n"));
        for (name, value) in entries.borrow().iter() {
            let name = shown(name.value()).to_lowercase();
            match value {
                Value::None if options.bare_keys => text.push_str(&format!("{name}\n")),
                Value::None => return Err("option values must be strings".into()),
                value => {
                    let value = checked(shown(value), options)?.replace('\n', "\n\t");
                    text.push_str(&format!("{name} {} {value}\n", options.delimiters[0]));
                }
            }
        }
        text.push('\n');
    }
    Ok(defaults + &others)
}

/// Refuses a value with a `%` that refers to nothing.
fn checked(value: String, options: &Options) -> Result<String, String> {
    if !options.interpolation {
        return Ok(value);
    }
    let mut rest = value.replace("%%", "");
    while let Some((start, end)) = reference(&rest) {
        rest.replace_range(start..end, "");
    }
    match rest.find('%') {
        Some(at) => {
            let at = rest[..at].chars().count();
            Err(format!("invalid interpolation syntax in {} at position {at}", Value::str(value).short_repr()))
        }
        None => Ok(value),
    }
}

/// Where the first `%(name)s` is.
fn reference(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("%(")?;
        let close = text[start + 2..].find(')').map(|at| start + 2 + at)?;
        if close > start + 2 && text[close + 1..].starts_with('s') {
            return Some((start, close + 2));
        }
        from = start + 2;
    }
}

/// One section as it is read.
struct Section {
    name: String,
    entries: Vec<(String, Option<Vec<String>>)>,
}

/// The sections of a text but the default one, whose values each of the others has too.
pub(super) fn read(text: &str, options: &Options) -> Result<Value, String> {
    let sections = parse(text, options)?;
    let default = sections.iter().find(|section| section.name == options.default_section);
    let defaults = default.map(values).unwrap_or_default();
    let mut made = Vec::new();
    for section in sections.iter().filter(|section| section.name != options.default_section) {
        let mut entries = defaults.clone();
        for (name, value) in values(section) {
            match entries.iter_mut().find(|(known, _)| *known == name) {
                Some(entry) => entry.1 = value,
                None => entries.push((name, value)),
            }
        }
        let dict = Dict::default();
        for (name, value) in &entries {
            let value = match value {
                Some(value) if options.interpolation => interpolated(value, &entries, &section.name, name, 0)?.into(),
                Some(value) => Value::from(value.as_str()),
                None => Value::None,
            };
            dict.borrow_mut().insert(Key::from(name.as_str()), value);
        }
        made.push((Key::from(section.name.as_str()), dict.into()));
    }
    Ok(Value::dict(made))
}

fn values(section: &Section) -> Vec<(String, Option<String>)> {
    let joined = |lines: &Option<Vec<String>>| lines.as_ref().map(|lines| lines.join("\n").trim_end().to_owned());
    section.entries.iter().map(|(name, lines)| (name.clone(), joined(lines))).collect()
}

fn parse(text: &str, options: &Options) -> Result<Vec<Section>, String> {
    let mut sections: Vec<Section> = Vec::new();
    // The indentation of the key whose value the next line may continue.
    let mut of_key: Option<usize> = None;
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let content = without_comment(line, options).trim();
        if content.is_empty() {
            // An empty line may be within a value; a comment is not.
            if line.trim().is_empty()
                && of_key.is_some()
                && let Some((_, Some(lines))) = sections.last_mut().and_then(|section| section.entries.last_mut())
            {
                lines.push(String::new());
            }
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        if of_key.is_some_and(|key| indent > key)
            && let Some((_, Some(lines))) = sections.last_mut().and_then(|section| section.entries.last_mut())
        {
            lines.push(content.to_owned());
            continue;
        }
        of_key = None;
        if let Some(name) = content.strip_prefix('[').and_then(|rest| rest.rfind(']').map(|end| &rest[..end])) {
            if sections.iter().any(|section| section.name == name) && name != options.default_section {
                return Err(format!(
                    "While reading from '<???>' [line {number:2}]: section {} already exists",
                    Value::str(name).short_repr()
                ));
            }
            sections.push(Section { name: name.to_owned(), entries: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(format!(
                "File contains no section headers.\nfile: '<???>', line: {number}\n{}",
                Value::str(format!("{line}\n")).short_repr()
            ));
        };
        let at = options.delimiters.iter().filter_map(|mark| Some((content.find(mark.as_str())?, mark.len()))).min();
        let (name, value) = match at {
            Some((at, length)) if at > 0 => (&content[..at], Some(content[at + length..].trim())),
            None if options.bare_keys => (content, None),
            _ => {
                return Err(format!(
                    "Source contains parsing errors: '<???>'\n\t[line {number:2}]: {}",
                    Value::str(format!("{line}\n")).short_repr()
                ));
            }
        };
        let name = name.trim_end().to_lowercase();
        if section.entries.iter().any(|(known, _)| *known == name) {
            return Err(format!(
                "While reading from '<???>' [line {number:2}]: option {} in section {} already exists",
                Value::str(name).short_repr(),
                Value::str(section.name.as_str()).short_repr()
            ));
        }
        section.entries.push((name, value.map(|value| vec![value.to_owned()])));
        of_key = Some(indent);
    }
    Ok(sections)
}

fn without_comment<'a>(line: &'a str, options: &Options) -> &'a str {
    if options.comments.iter().any(|mark| line.trim_start().starts_with(mark.as_str())) {
        return "";
    }
    let ends = options.inline_comments.iter().flat_map(|mark| {
        let starts = line.match_indices(mark.as_str()).map(|(at, _)| at);
        starts.filter(|at| line[..*at].chars().next_back().is_none_or(char::is_whitespace)).take(1)
    });
    &line[..ends.min().unwrap_or(line.len())]
}

fn interpolated(
    value: &str,
    entries: &[(String, Option<String>)],
    section: &str,
    option: &str,
    depth: usize,
) -> Result<String, String> {
    if depth > MAX_INTERPOLATION_DEPTH {
        return Err(format!(
            "Recursion limit exceeded in value substitution: option {} in section {} contains an interpolation key \
             which cannot be substituted in {MAX_INTERPOLATION_DEPTH} steps. Raw value: {}",
            Value::str(option).short_repr(),
            Value::str(section).short_repr(),
            Value::str(value).short_repr()
        ));
    }
    let (mut out, mut rest) = (String::new(), value);
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let found = &rest[at..];
        if let Some(after) = found.strip_prefix("%%") {
            out.push('%');
            rest = after;
            continue;
        }
        let Some((0, end)) = reference(found) else {
            return Err(match found.starts_with("%(") {
                true => format!("bad interpolation variable reference {}", Value::str(found).short_repr()),
                false => format!("'%' must be followed by '%' or '(', found: {}", Value::str(found).short_repr()),
            });
        };
        let name = found[2..end - 2].to_lowercase();
        let Some((_, referred)) = entries.iter().find(|(known, _)| *known == name) else {
            return Err(format!(
                "Bad value substitution: option {} in section {} contains an interpolation key {} which is not a valid \
                 option name. Raw value: {}",
                Value::str(option).short_repr(),
                Value::str(section).short_repr(),
                Value::str(name).short_repr(),
                Value::str(value).short_repr()
            ));
        };
        out.push_str(&interpolated(referred.as_deref().unwrap_or_default(), entries, section, option, depth + 1)?);
        rest = &found[end..];
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    fn value(text: &str) -> Value {
        yaml::load(text, &yaml::Limits::default()).unwrap()
    }

    fn with(options: &[(&str, Value)]) -> Options {
        let mut made = Options::default();
        for (name, value) in options {
            made.set(name, value).unwrap();
        }
        made
    }

    /// Recorded from Python 3.11.
    #[test]
    fn texts_are_pythons() {
        let text = |of: &str, options: &[(&str, Value)]| write(&value(of), &with(options));
        let data = "{Sect: {k: v, K2: 5, m: \"a\\nb\", e: ''}, DEFAULT: {a: 1}}";
        assert_eq!(text(data, &[]).as_deref(), Ok("[DEFAULT]\na = 1\n\n[Sect]\nk = v\nk2 = 5\nm = a\n\tb\ne = \n\n"));
        assert_eq!(text("{s: {a: 1}}", &[("delimiters", ":".into())]).as_deref(), Ok("[s]\na : 1\n\n"));
        assert_eq!(
            text("{s: {a: null, b: 1}}", &[("allow_no_value", true.into())]).as_deref(),
            Ok("[s]\na\nb = 1\n\n")
        );
        assert_eq!(text("{s: {a: null}}", &[]), Err("option values must be strings".into()));
        let said = "invalid interpolation syntax in '5% %(a)s' at position 1";
        assert_eq!(text("{s: {a: '5% %(a)s'}}", &[]), Err(said.into()));
        assert_eq!(text("{s: {a: 5%}}", &[("interpolation", Value::None)]).as_deref(), Ok("[s]\na = 5%\n\n"));
        assert_eq!(
            Options::default().set("nope", &Value::None),
            Err("RawConfigParser.__init__() got an unexpected keyword argument 'nope'".into())
        );
    }

    #[test]
    fn texts_are_read_as_python_reads_them() {
        let text = "# c\n[DEFAULT]\nd = 1\n[A b]\nK: v = w\n; c\nm = a\n  b\n\n  c\n\nn=%(k)s!\np=5%%\n[e]\nd=2\n";
        let expect = "{A b: {d: '1', k: v = w, m: \"a\\nb\\n\\nc\", n: v = w!, p: 5%}, e: {d: '2'}}";
        assert_eq!(read(text, &Options::default()).unwrap().equals(&value(expect)), Some(true));
        for (text, said) in [
            ("a = 1\n", "File contains no section headers.\nfile: '<???>', line: 1\n'a = 1\\n'"),
            ("[s]\nnope\n", "Source contains parsing errors: '<???>'\n\t[line  2]: 'nope\\n'"),
            ("[s]\na=1\na=2\n", "While reading from '<???>' [line  3]: option 'a' in section 's' already exists"),
            ("[s]\n[s]\n", "While reading from '<???>' [line  2]: section 's' already exists"),
        ] {
            assert_eq!(read(text, &Options::default()).err().as_deref(), Some(said));
        }
    }
}
