//! Texts that states add to a file: of an argument, or of files that are rendered.

use brine_guest::host::job;
use brine_guest::template::Templates;
use brine_guest::{Data, Value, host};

use super::Ret;
use super::arguments::Arguments;
use crate::edit::lines;
use crate::manage::body;
use crate::manage::source::Place;

/// The files that `source` or `sources` name.
///
/// # Errors
/// Salt's sentence, when both are given, of files or of their hashes.
pub(super) fn sources(arguments: &Arguments) -> Result<Vec<String>, String> {
    let (source, sources) = (arguments.named("source"), arguments.list("sources"));
    if source.is_some() && !sources.is_empty() {
        return Err("source and sources are mutually exclusive".into());
    }
    if arguments.named("source_hash").is_some() && !arguments.list("source_hashes").is_empty() {
        return Err("source_hash and source_hashes are mutually exclusive".into());
    }
    Ok(match source {
        Some(source) => vec![source],
        None => sources.iter().map(Value::to_text).collect(),
    })
}

/// The rendered files; the inner error is the result of a state that fails.
pub(super) fn load(sources: &[String], arguments: &Arguments) -> Result<Result<Vec<String>, Ret>, String> {
    if sources.is_empty() {
        return Ok(Ok(Vec::new()));
    }
    let saltenv = job::state().map_or_else(|| "base".into(), |state| state.saltenv);
    let kind = arguments.text("template").unwrap_or_else(|| "jinja".into());
    if kind != "jinja" {
        return Ok(Err(Ret::bad(format!("Specified template format {kind} is not supported."))));
    }
    let templates = Templates::new(&saltenv)?;
    let mut names: Vec<(String, Data)> = Vec::new();
    for dict in ["defaults", "context"] {
        if let Some(Value::Dict(entries)) = arguments.get(dict) {
            names.extend(entries.iter().map(|(name, value)| (name.to_text(), value.clone().into())));
        }
    }
    let mut texts = Vec::new();
    for source in sources {
        let Some(bytes) = body::load(&Place::of(source, &saltenv))? else {
            return Ok(Err(Ret::bad(format!("Failed to load template file {source}"))));
        };
        let text = templates.render(lines::text(&bytes)?, &names)?;
        if text.is_empty() {
            return Ok(Err(Ret::bad(format!("Failed to read rendered template file ({source})"))));
        }
        texts.push(text);
    }
    Ok(Ok(texts))
}

/// A list of texts, or one, as Salt's states take lines.
pub(super) fn of(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().map(Value::to_text).collect(),
        value => vec![value.to_text()],
    }
}

/// A value of the pillar, by a path of keys; none if there is none.
pub(super) fn pillar(key: &str) -> Result<Option<Value>, String> {
    let all = host::pillar::items()?.value()?;
    Ok(brine_guest::lookup::traverse(&all, key, ":").cloned())
}
