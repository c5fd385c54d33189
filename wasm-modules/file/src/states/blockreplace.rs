//! `file.blockreplace`

use brine_guest::Value;
use brine_guest::states::is_dry_run;

use super::Ret;
use super::arguments::Arguments;
use super::replace::changed;
use super::texts;
use crate::edit::{place, run};

const START: &str = "#-- start managed zone --";
const END: &str = "#-- end managed zone --";

pub(crate) fn run(name: &str, arguments: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.blockreplace"));
    }
    let sources = match texts::sources(arguments) {
        Ok(sources) => sources,
        Err(why) => return Ok(Ret::bad(why)),
    };
    if let Err(why) = place::check(name) {
        return Ok(Ret::bad(why));
    }
    let mut content = arguments.text("content").unwrap_or_default();
    // The lines of earlier states `file.accumulated`, as the run gives them.
    for line in arguments.list("accumulator").iter().map(Value::to_text) {
        content = if content.is_empty() { line } else { format!("{content}\n{line}") };
    }
    match texts::load(&sources, arguments)? {
        Ok(texts) => texts.iter().for_each(|text| content.push_str(text)),
        Err(ret) => return Ok(ret),
    }
    let newline = arguments.get("append_newline").map(Value::truthy);
    match block(name, arguments, content, newline, is_dry_run()).run() {
        Ok(edit) => Ok(changed(&edit, arguments.flag("show_changes", true), "Changes would be made")),
        Err(why) => Ok(Ret::bad(format!("Encountered error managing block: {why}. See the log for details."))),
    }
}

/// The edit that arguments of the state, or of the function, mean.
pub(crate) fn block(
    path: &str,
    arguments: &Arguments,
    content: String,
    append_newline: Option<bool>,
    dry_run: bool,
) -> run::BlockReplace {
    run::BlockReplace {
        path: path.to_owned(),
        start: arguments.text("marker_start").unwrap_or_else(|| START.into()),
        end: arguments.text("marker_end").unwrap_or_else(|| END.into()),
        content,
        append: arguments.flag("append_if_not_found", false),
        prepend: arguments.flag("prepend_if_not_found", false),
        before: arguments.text("insert_before_match"),
        after: arguments.text("insert_after_match"),
        backup: arguments.ending("backup"),
        dry_run,
        append_newline,
    }
}
