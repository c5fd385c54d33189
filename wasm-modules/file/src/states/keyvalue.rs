//! `file.keyvalue`

use brine_guest::Value;
use brine_guest::states::is_dry_run;

use super::Ret;
use super::arguments::Arguments;
use crate::edit::keyvalue::{Done, KeyValue, Missing};
use crate::edit::{lines, place};

pub(crate) fn run(name: &str, arguments: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.keyvalue"));
    }
    let values = match values(arguments) {
        Ok(values) => values,
        Err(why) => return Ok(Ret::bad(why)),
    };
    let old = place::read(name)?;
    let create = arguments.flag("create_if_missing", false);
    if old.is_none() && !create {
        let comment = format!("unable to open {name}");
        return Ok(if arguments.flag("ignore_if_missing", false) { Ret::good(comment) } else { Ret::bad(comment) });
    }
    let uncomment = arguments.text("uncomment");
    let separator = arguments.text("separator").unwrap_or_else(|| "=".into());
    if separator.is_empty() {
        return Err("empty separator".into());
    }
    let missing = if arguments.flag("append_if_not_found", false) || old.is_none() {
        Missing::Appended
    } else if arguments.flag("prepend_if_not_found", false) {
        Missing::Prepended
    } else {
        Missing::Left
    };
    let edit = KeyValue {
        values,
        separator: &separator,
        missing,
        count: arguments.number("count", 1)?,
        uncomment: uncomment.as_deref(),
        key_ignore_case: arguments.flag("key_ignore_case", false),
        value_ignore_case: arguments.flag("value_ignore_case", false),
        prune: arguments.flag("prune", false),
    };
    let done = edit.apply(lines::text(old.as_deref().unwrap_or_default())?);
    let ret = told(name, &done, arguments.flag("show_changes", true));
    if !is_dry_run() && (done.changes > 0 || done.deletions > 0) {
        place::write(name, old.as_deref(), done.content.concat().into_bytes())?;
    }
    Ok(ret)
}

fn told(name: &str, done: &Done, show_changes: bool) -> Ret {
    let Done { changes, deletions, .. } = done;
    if *changes == 0 && *deletions == 0 {
        return Ret::new();
    }
    let mut ret = Ret::good(format!("Changed {changes}, deleted {deletions} lines"));
    if is_dry_run() {
        let comment = format!("File {name} is set to be changed ({changes} lines modified, {deletions} deleted)");
        ret = Ret { result: None, ..Ret::good(comment) };
        if show_changes {
            ret.comment.push_str("\nPredicted diff:\n\r\t\t");
            ret.comment.push_str(&done.diff.join("\r\t\t"));
        }
    }
    if show_changes {
        ret.change("diff", done.diff.concat());
    }
    ret
}

/// The keys with their values; the error is the comment of a failed state.
fn values(arguments: &Arguments) -> Result<Vec<(String, Value)>, String> {
    let given = arguments.get("key_values");
    match (arguments.get("key"), arguments.get("value"), given) {
        (Some(_), Some(_), Some(Value::Dict(_))) => {
            Err("file.keyvalue can not combine key_values with key and value".into())
        }
        (Some(key), Some(value), _) => Ok(vec![(key.to_text(), value.clone())]),
        (_, _, Some(Value::Dict(values))) if !values.is_empty() => {
            Ok(values.iter().map(|(key, value)| (key.to_text(), value.clone())).collect())
        }
        _ => {
            let why = if given.is_some_and(Value::truthy) { "is not a dictionary" } else { "is empty" };
            Err(format!("file.keyvalue key and value not supplied and key_values {why}"))
        }
    }
}
