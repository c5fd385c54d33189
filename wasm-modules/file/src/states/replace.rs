//! `file.replace`

use brine_guest::states::is_dry_run;

use super::Ret;
use super::arguments::Arguments;
use crate::edit::{place, run};
use crate::look::text;

pub(crate) fn run(name: &str, arguments: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.replace"));
    }
    if let Err(why) = place::check(name) {
        let may_be_missing = arguments.flag("ignore_if_missing", false) && why.contains("file not found");
        return Ok(if may_be_missing { Ret::good("No changes needed to be made") } else { Ret::bad(why) });
    }
    let edit = replace(name, arguments, is_dry_run())?.run()?;
    Ok(changed(&edit, arguments.flag("show_changes", true), "Changes would have been made"))
}

/// The edit that arguments of the state, or of the function, mean.
pub(crate) fn replace(path: &str, arguments: &Arguments, dry_run: bool) -> Result<run::Replace, String> {
    Ok(run::Replace {
        path: path.to_owned(),
        pattern: arguments.text("pattern").unwrap_or_default(),
        repl: arguments.text("repl").unwrap_or_default(),
        count: arguments.number("count", 0)?.try_into().unwrap_or(0),
        flags: text::flags(&arguments.get("flags").cloned().unwrap_or(8_i64.into()))?,
        append: arguments.flag("append_if_not_found", false),
        prepend: arguments.flag("prepend_if_not_found", false),
        not_found: arguments.text("not_found_content"),
        backup: arguments.ending("backup"),
        dry_run,
        literal: arguments.flag("backslash_literal", false),
        encoding: arguments.named("encoding"),
    })
}

/// The result of an edit; `would` is the comment of a dry run.
pub(super) fn changed(edit: &run::Edit, show_changes: bool, would: &str) -> Ret {
    if !edit.changed {
        return Ret::good("No changes needed to be made");
    }
    let mut ret = match is_dry_run() {
        true => Ret { result: None, ..Ret::good(would) },
        false => Ret::good("Changes were made"),
    };
    ret.change("diff", edit.shown(show_changes));
    ret
}
