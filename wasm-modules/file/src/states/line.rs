//! `file.line`

use brine_guest::changes::{self, Put};
use brine_guest::states::is_dry_run;

use super::Ret;
use super::arguments::Arguments;
use super::replace::changed;
use crate::edit::{place, run};

pub(crate) fn run(name: &str, arguments: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.line"));
    }
    prepare(name, arguments)?;
    if let Err(why) = place::check(name) {
        return Ok(Ret::bad(why));
    }
    let Some(mode) = arguments.named("mode").map(|mode| mode.to_lowercase()) else {
        return Ok(Ret::bad("Mode was not defined. How to process the file?"));
    };
    if mode != "delete" && arguments.get("content").is_none() {
        return Ok(Ret::bad("Content can only be empty if mode is ['delete']"));
    }
    let edit = line(name, arguments).run()?;
    Ok(changed(&edit, arguments.flag("show_changes", true), "Changes would be made"))
}

/// The edit that arguments of the state, or of the function, mean.
pub(crate) fn line(path: &str, arguments: &Arguments) -> run::OneLine {
    run::OneLine {
        path: path.to_owned(),
        content: arguments.text("content"),
        matching: arguments.text("match"),
        mode: arguments.named("mode"),
        location: arguments.text("location"),
        before: arguments.text("before"),
        after: arguments.text("after"),
        backup: arguments.flag("backup", false),
        quiet: arguments.flag("quiet", false),
        indent: arguments.flag("indent", true),
    }
}

/// Makes the file if that is wanted, and gives it owner and mode.
fn prepare(name: &str, arguments: &Arguments) -> Result<(), String> {
    if is_dry_run() || !name.starts_with('/') {
        return Ok(());
    }
    let mode = arguments.mode("file_mode").and_then(|mode| u32::from_str_radix(&mode, 8).ok());
    let (user, group) = (arguments.named("user"), arguments.named("group"));
    if changes::look(name, true)?.is_none() {
        if arguments.flag("create", false) {
            Put::new(name).owner(user, group).mode(mode).text("")?;
        }
    } else if user.is_some() || group.is_some() || mode.is_some() {
        changes::set_permissions(name, &changes::Owner { user, group }, mode, true)?;
    }
    Ok(())
}
