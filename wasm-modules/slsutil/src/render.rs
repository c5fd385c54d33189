//! `slsutil.renderer`: a file or a text by Salt's renderers.

use brine_guest::keywords::Keywords;
use brine_guest::template::{self, Templates};
use brine_guest::{Data, Value, changes, wire};
use brine_render::pipe::{self, PipeError, PipeOptions, Rendered};
use brine_render::yaml::Limits;

/// A file of the master.
const SALT: &str = "salt://";

pub(crate) fn renderer(
    path: Option<String>,
    string: Option<String>,
    default: &str,
    kwargs: &Data,
) -> Result<Data, String> {
    let (path, string) = (path.filter(|path| !path.is_empty()), string.filter(|string| !string.is_empty()));
    let keywords = Keywords::new(kwargs, [])?;
    let saltenv = keywords.text("saltenv").unwrap_or_else(|| crate::BASE.to_owned());
    let text = match (&path, string) {
        (None, None) => return Err("Must pass path or string.".into()),
        (Some(_), Some(_)) => return Err("Must not pass both path and string.".into()),
        (None, Some(string)) => string,
        (Some(path), None) => read(path, &saltenv)?,
    };
    let mut names: Vec<(String, Data)> = vec![("sls".into(), keywords.text("sls").unwrap_or_default().into())];
    if let Some(name) = path.as_deref() {
        names.push(("tplfile".into(), name.strip_prefix(SALT).unwrap_or(name).into()));
    }
    let given = keywords.iter().filter(|(name, _)| !name.starts_with("__"));
    names.extend(given.map(|(name, value): (&str, &Value)| (name.to_owned(), value.clone().into())));
    let templates = Templates::new(&saltenv)?;
    let (limits, none) = (Limits::default(), Vec::new());
    let options = PipeOptions { default, whitelist: &none, blacklist: &none, limits };
    let rendered = pipe::render(&text, &options, |text, _| templates.render(text, &names).map_err(PipeError::Jinja));
    match rendered.map_err(|error| error.to_string())? {
        Rendered::Text(text) => Ok(text.into()),
        Rendered::Value(value) => wire::data(&value),
    }
}

fn read(path: &str, saltenv: &str) -> Result<String, String> {
    let content = match path.strip_prefix(SALT) {
        Some(name) => {
            let (name, saltenv) = match name.split_once("?saltenv=") {
                Some((name, saltenv)) => (name, saltenv),
                None => (name, saltenv),
            };
            template::load(name, saltenv)?
        }
        None => changes::read(path)?,
    };
    let content = content.ok_or_else(|| format!("Template does not exist: {path}"))?;
    String::from_utf8(content).map_err(|_| format!("{path} is no text in UTF-8"))
}
