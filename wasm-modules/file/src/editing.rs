//! The functions that edit text. In a dry run the host records what would be put.

use brine_guest::{Data, Value, changes};

use crate::edit::{pattern, place, run};
use crate::look::text;
use crate::states::{Arguments, blockreplace, line, replace};

/// `file.replace`
pub(crate) fn replace(
    path: &str,
    arguments: &Arguments,
    dry_run: bool,
    search_only: bool,
    ignore_if_missing: bool,
) -> Result<Value, String> {
    if changes::look(path, true)?.is_none() {
        return if ignore_if_missing { Ok(false.into()) } else { Err(format!("File not found: {path}")) };
    }
    if search_only {
        if arguments.flag("append_if_not_found", false) || arguments.flag("prepend_if_not_found", false) {
            return Err("search_only cannot be used with append/prepend_if_not_found".into());
        }
        let content = place::read_text(path)?;
        let flags = text::flags(&arguments.get("flags").cloned().unwrap_or(8_i64.into()))?;
        let pattern = arguments.text("pattern").unwrap_or_default();
        return Ok(pattern::Pattern::new(&pattern, flags, content.len())?.is_in(&content)?.into());
    }
    let edit = replace::replace(path, arguments, dry_run)?.run()?;
    Ok(shown(edit, arguments))
}

/// `file.line`
pub(crate) fn line(path: &str, arguments: &Arguments) -> Result<Value, String> {
    let path = place::file_of(path)?;
    Ok(line::line(&path, arguments).run()?.shown(arguments.flag("show_changes", true)))
}

/// `file.blockreplace`
pub(crate) fn blockreplace(path: &str, arguments: &Arguments, dry_run: bool) -> Result<Value, String> {
    // As in Salt, where the state has another default.
    let newline = match arguments.has("append_newline") {
        true => arguments.get("append_newline").map(Value::truthy),
        false => Some(false),
    };
    let content = arguments.text("content").unwrap_or_default();
    let edit = blockreplace::block(path, arguments, content, newline, dry_run).run()?;
    Ok(shown(edit, arguments))
}

/// `file.comment_line`
pub(crate) fn comment_line(path: &str, arguments: &Arguments, commenting: bool) -> Result<Value, String> {
    let regex = arguments.text("regex").unwrap_or_default();
    let mark = arguments.text("char").unwrap_or_else(|| "#".into());
    let done = run::comment_line(path, &regex, &mark, commenting, arguments.ending("backup").as_deref())?;
    Ok(done.map_or(false.into(), Value::from))
}

/// The lines that `append` and `prepend` are given: arguments, or the keyword `args`.
pub(crate) fn lines(args: &[Data], kwargs: &Data) -> Result<Vec<String>, String> {
    match kwargs.value()?.get("args") {
        Some(Value::List(lines)) => Ok(lines.iter().map(Value::to_text).collect()),
        Some(line) => Ok(vec![line.to_text()]),
        None => args.iter().map(|line| Ok(line.value()?.to_text())).collect(),
    }
}

/// The differences, which may be empty, or whether there are some.
fn shown(edit: run::Edit, arguments: &Arguments) -> Value {
    if arguments.flag("show_changes", true) { edit.diff.into() } else { edit.changed.into() }
}
