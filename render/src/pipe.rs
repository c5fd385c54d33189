//! Renderers in a row: the line `#!jinja|yaml`, and what goes from one to the next (`salt/template.py`).
//!
//! As in Salt, each renderer sees the line too: for YAML it is a comment, JSON and text leave it out.

use crate::json::{self, JsonError};
use crate::value::Value;
use crate::yaml::{self, Limits, YamlError};

/// A renderer that the crate has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renderer {
    /// Text to text.
    Jinja,
    /// Text to a value.
    Yaml,
    /// Text to a value.
    Json,
    /// Text as it is. Not one of stock Salt's.
    Text,
}

/// A renderer with its option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The renderer.
    pub renderer: Renderer,
    /// What follows its name.
    pub option: String,
}

/// What decides about the renderers of a file.
#[derive(Clone, Copy, Debug)]
pub struct PipeOptions<'a> {
    /// The pipe of files that name none: the setting `renderer`.
    pub default: &'a str,
    /// `renderer_whitelist`: if there are any, others are left out.
    pub whitelist: &'a [String],
    /// `renderer_blacklist`: these are left out.
    pub blacklist: &'a [String],
    /// What YAML and JSON may be.
    pub limits: Limits,
}

impl Default for PipeOptions<'_> {
    fn default() -> Self {
        Self { default: "jinja|yaml", whitelist: &[], blacklist: &[], limits: Limits::default() }
    }
}

/// The renderers of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pipe {
    /// In their order.
    pub steps: Vec<Step>,
    /// Names that the configuration does not allow. They are left out, which the caller should log.
    pub skipped: Vec<String>,
}

/// What a file is rendered to.
#[derive(Clone, Debug, PartialEq)]
pub enum Rendered {
    /// The last renderer makes text.
    Text(String),
    /// The last renderer makes values.
    Value(Value),
}

/// Why a file is not rendered. The text is Salt's, where Salt has one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PipeError {
    /// A renderer that is not there.
    #[error("The renderer \"{0}\" is not available")]
    Unknown(String),
    /// An option that the renderer does not have.
    #[error("Unknown renderer option: {0}")]
    Option(String),
    /// A renderer of text behind one that makes values.
    #[error("'{0}' object has no attribute 'read'")]
    NotText(String),
    /// The text is not YAML.
    #[error("{}", .0.render_message())]
    Yaml(Box<YamlError>),
    /// The text is not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// What the Jinja renderer said.
    #[error("{0}")]
    Jinja(String),
}

/// Salt's names for pairs of renderers, from the last to the first.
const OLD_STYLE: &[(&str, &str)] = &[
    ("yaml_jinja", "jinja|yaml"),
    ("yaml_mako", "mako|yaml"),
    ("yaml_wempy", "wempy|yaml"),
    ("json_jinja", "jinja|json"),
    ("json_mako", "mako|json"),
    ("json_wempy", "wempy|json"),
    ("yamlex_jinja", "jinja|yamlex"),
];

impl Pipe {
    /// The renderers of a file: those of its first line, or the default.
    ///
    /// # Errors
    /// A renderer is not there.
    pub fn of_file(text: &str, options: &PipeOptions<'_>) -> Result<Self, PipeError> {
        let line = text.split('\n').next().unwrap_or_default();
        match line.strip_prefix("#!") {
            // `#!/` is a program's
            Some(names) if !names.starts_with('/') => Self::parse(names.trim_end(), options),
            _ => Self::parse(options.default, options),
        }
    }

    /// Parses `jinja|yaml`.
    ///
    /// # Errors
    /// A renderer is not there.
    pub fn parse(names: &str, options: &PipeOptions<'_>) -> Result<Self, PipeError> {
        let names = OLD_STYLE.iter().find(|(old, _)| *old == names).map_or(names, |(_, pipe)| *pipe);
        let mut pipe = Self::default();
        for part in names.split('|').map(str::trim) {
            let (name, option) = part.split_once(' ').unwrap_or((part, ""));
            let listed = |names: &[String]| names.iter().any(|listed| listed == name);
            if !options.whitelist.is_empty() && !listed(options.whitelist) || listed(options.blacklist) {
                pipe.skipped.push(name.to_owned());
                continue;
            }
            let renderer = match name {
                "jinja" => Renderer::Jinja,
                "yaml" => Renderer::Yaml,
                "json" => Renderer::Json,
                "text" => Renderer::Text,
                _ => return Err(PipeError::Unknown(name.to_owned())),
            };
            pipe.steps.push(Step { renderer, option: option.trim().to_owned() });
        }
        Ok(pipe)
    }

    /// Renders a text. `jinja` gets the text, and whether it is a text only and not a file (its option `-s`).
    /// A pipe without steps makes an empty dict, as in Salt.
    ///
    /// # Errors
    /// What a renderer says.
    pub fn render(
        &self,
        text: &str,
        limits: &Limits,
        mut jinja: impl FnMut(&str, bool) -> Result<String, PipeError>,
    ) -> Result<Rendered, PipeError> {
        let windows = text.contains("\r\n");
        if text.trim().is_empty() || self.steps.is_empty() {
            return Ok(Rendered::Value(empty()));
        }
        let mut now = Rendered::Text(text.to_owned());
        for step in &self.steps {
            let text = match now {
                Rendered::Text(text) => text,
                Rendered::Value(value) => {
                    let class = match value.type_name() {
                        "OrderedDict" => "collections.OrderedDict",
                        other => other,
                    };
                    return Err(PipeError::NotText(class.to_owned()));
                }
            };
            now = match step.renderer {
                Renderer::Jinja => match step.option.as_str() {
                    option @ ("" | "-s") => Rendered::Text(jinja(&text, option == "-s")?),
                    other => return Err(PipeError::Option(other.to_owned())),
                },
                Renderer::Yaml => Rendered::Value(load_yaml(&text, limits)?),
                Renderer::Json => Rendered::Value(load_json(&text, limits)?),
                Renderer::Text => Rendered::Text(without_shebang(&text).to_owned()),
            };
        }
        Ok(match now {
            // a file with Windows' line breaks keeps them
            Rendered::Text(text) if windows && !text.contains("\r\n") => Rendered::Text(text.replace('\n', "\r\n")),
            now => now,
        })
    }
}

/// Renders a file by the renderers that it names.
///
/// # Errors
/// As [`Pipe::of_file`] and [`Pipe::render`].
pub fn render(
    text: &str,
    options: &PipeOptions<'_>,
    jinja: impl FnMut(&str, bool) -> Result<String, PipeError>,
) -> Result<Rendered, PipeError> {
    Pipe::of_file(text, options)?.render(text, &options.limits, jinja)
}

fn empty() -> Value {
    Value::dict([])
}

/// Salt's YAML renderer: what is false is an empty dict.
fn load_yaml(text: &str, limits: &Limits) -> Result<Value, PipeError> {
    let value = yaml::load_ordered(text, limits).map_err(PipeError::Yaml)?;
    Ok(if value.truthy() { value } else { empty() })
}

/// Salt's JSON renderer: white space is an empty dict.
fn load_json(text: &str, limits: &Limits) -> Result<Value, PipeError> {
    let text = without_shebang(text);
    if text.trim().is_empty() { Ok(empty()) } else { Ok(json::load(text, limits)?) }
}

fn without_shebang(text: &str) -> &str {
    match text.split_once('\n') {
        Some((line, rest)) if line.starts_with("#!") => rest,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders with a Jinja that knows `{{ x }}`, and shows the result.
    fn rendered(text: &str, options: &PipeOptions<'_>) -> String {
        let jinja = |text: &str, from_str: bool| Ok(text.replace("{{ x }}", if from_str { "string" } else { "file" }));
        match render(text, options, jinja) {
            Ok(Rendered::Text(text)) => format!("text {text:?}"),
            Ok(Rendered::Value(value)) => format!("{value:?}"),
            Err(error) => format!("error {error}"),
        }
    }

    #[test]
    fn a_file_names_its_renderers() {
        let cases = [
            ("a: {{ x }}", "OrderedDict([('a', 'file')])"),
            ("#!jinja|yaml\na: {{ x }}", "OrderedDict([('a', 'file')])"),
            ("#!yaml\na: 1", "OrderedDict([('a', 1)])"),
            ("#! jinja -s | yaml \na: {{ x }}", "OrderedDict([('a', 'string')])"),
            ("#!yaml_jinja\na: {{ x }}", "OrderedDict([('a', 'file')])"),
            ("#!jinja\na {{ x }}\n", "text \"#!jinja\\na file\\n\""),
            ("#!text\na {{ x }}\n", "text \"a {{ x }}\\n\""),
            ("#!jinja|text\na {{ x }}\n", "text \"a file\\n\""),
            ("#!jinja|json\n{\"a\": \"{{ x }}\"}", "{'a': 'file'}"),
            ("#!json\n", "{}"),
            ("#!json", "error Expecting value: line 1 column 1 (char 0)"),
            (
                "#!json\n{\"a\": 1,}",
                "error Expecting property name enclosed in double quotes: line 1 column 9 (char 8)",
            ),
            ("#!/bin/sh\n", "{}"),
            ("#!jinja | jinja|yaml\r\na: {{ x }}\r\n", "OrderedDict([('a', 'file')])"),
            ("#!jinja\r\n{{ x }}\r\n", "text \"#!jinja\\r\\nfile\\r\\n\""),
            (" \n", "{}"),
            ("false", "{}"),
            ("- 1", "[1]"),
        ];
        for (text, expect) in cases {
            assert_eq!(rendered(text, &PipeOptions::default()), expect, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let cases = [
            ("#!py\ndef run(): return {}", "error The renderer \"py\" is not available"),
            ("#!mako|yaml\na: 1", "error The renderer \"mako\" is not available"),
            ("#!jinja|yaml|stateconf -p\na: 1", "error The renderer \"stateconf\" is not available"),
            ("#!yaml_mako\na: 1", "error The renderer \"mako\" is not available"),
            ("#!jinja|yaml|gpg\na: 1", "error The renderer \"gpg\" is not available"),
            ("#!jinja -x|yaml\na: 1", "error Unknown renderer option: -x"),
            ("#!yaml|jinja\na: 1", "error 'collections.OrderedDict' object has no attribute 'read'"),
            ("#!json|yaml\n[1]", "error 'list' object has no attribute 'read'"),
            ("a: b: c", "error mapping values are not allowed in this context"),
        ];
        for (text, expect) in cases {
            assert_eq!(rendered(text, &PipeOptions::default()), expect, "{text:?}");
        }
    }

    #[test]
    fn lists_of_the_configuration_leave_renderers_out() {
        let names = ["jinja".to_owned()];
        let black = PipeOptions { blacklist: &names, ..PipeOptions::default() };
        assert_eq!(rendered("a: '{{ x }}'", &black), "OrderedDict([('a', '{{ x }}')])");
        assert_eq!(Pipe::parse("jinja|yaml", &black).unwrap().skipped, ["jinja"]);
        let white = PipeOptions { whitelist: &names, ..PipeOptions::default() };
        assert_eq!(rendered("a: {{ x }}", &white), "text \"a: file\"");
        assert_eq!(rendered("#!py\n", &white), "{}");
    }
}
