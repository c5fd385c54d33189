//! `file.append` and `file.prepend`

use brine_guest::changes::{self, Owner};
use brine_guest::states::is_dry_run;
use brine_guest::{Value, diff, path};

use super::Ret;
use super::arguments::Arguments;
use super::texts;
use crate::edit::{append as edit, lines, place, run};

pub(crate) fn append(name: &str, arguments: &Arguments) -> Result<Ret, String> {
    let (texts, content) = match prepare(name, arguments, "file.append")? {
        Ok(prepared) => prepared,
        Err(ret) => return Ok(ret),
    };
    let old = lines::text(&content)?;
    let mut added: Vec<String> = Vec::new();
    for text in &texts {
        let expression =
            if arguments.flag("ignore_whitespace", true) { edit::whatever_space(text)? } else { text.clone() };
        if !run::is_in(name, &content, &expression)? {
            added.extend(lines::plain(text).into_iter().map(str::to_owned));
        }
    }
    let new = if added.is_empty() { content.clone() } else { edit::append(&content, &added) };
    let mut ret = if added.is_empty() {
        Ret::good(format!("File {name} is in correct state"))
    } else if is_dry_run() {
        Ret { result: None, ..Ret::good(format!("File {name} is set to be updated")) }
    } else {
        place::write(name, Some(&content), new.clone())?;
        Ret::good(format!("Appended {} lines", added.len()))
    };
    let (before, after) = (lines::plain(old), lines::text(&new)?);
    let after = lines::plain(after);
    if before != after {
        ret.change("diff", shown(&new, arguments, || lines::joined_differences(&before, &after)));
    }
    Ok(ret)
}

pub(crate) fn prepend(name: &str, arguments: &Arguments) -> Result<Ret, String> {
    let (texts, content) = match prepare(name, arguments, "file.prepend")? {
        Ok(prepared) => prepared,
        Err(ret) => return Ok(ret),
    };
    let header = arguments.flag("header", false);
    let old = lines::text(&content)?;
    let mut added: Vec<String> = Vec::new();
    for text in &texts {
        if header || !run::is_in(name, &content, &edit::whatever_space(text)?)? {
            added.extend(lines::plain(text).into_iter().map(str::to_owned));
        }
    }
    let before = lines::of_text(old);
    if is_dry_run() {
        if added.is_empty() {
            return Ok(Ret::good(format!("File {name} is in correct state")));
        }
        let ended: Vec<String> = added.iter().map(|line| format!("{line}\n")).collect();
        let after: Vec<&str> = ended.iter().map(String::as_str).chain(before.iter().copied()).collect();
        let mut ret = Ret { result: None, ..Ret::good(format!("File {name} is set to be updated")) };
        ret.change("diff", shown(&content, arguments, || diff::unified(&before, &after, "", "")));
        return Ok(ret);
    }
    let top: Vec<&str> = before.iter().take(added.len()).flat_map(|line| lines::plain(line)).collect();
    let is_there = header && top == added;
    let new = if is_there { old.to_owned() } else { edit::prepend(old, &added) };
    if new != old {
        place::write(name, Some(&content), new.clone().into_bytes())?;
    }
    let mut ret = match added.len() {
        count if count > 0 && !is_there => Ret::good(format!("Prepended {count} lines")),
        _ => Ret::good(format!("File {name} is in correct state")),
    };
    let after = lines::of_text(&new);
    if before != after {
        ret.change("diff", shown(new.as_bytes(), arguments, || diff::unified(&before, &after, "", "")));
    }
    Ok(ret)
}

fn shown(new: &[u8], arguments: &Arguments, diff: impl Fn() -> String) -> Value {
    if !diff::is_text(new) {
        "Replace binary file".into()
    } else if arguments.flag("show_changes", true) {
        diff().into()
    } else {
        "<show_changes=False>".into()
    }
}

/// The texts to add, and the content of the file.
type Prepared = (Vec<String>, Vec<u8>);

/// The texts to add and the content of the file, which is made if it is not there; else the state's result.
fn prepare(name: &str, arguments: &Arguments, state: &str) -> Result<Result<Prepared, Ret>, String> {
    if name.is_empty() {
        return Ok(Err(Ret::bad(format!("Must provide name to {state}"))));
    }
    let sources = match texts::sources(arguments) {
        Ok(sources) => sources,
        Err(why) => return Ok(Err(Ret::bad(why))),
    };
    if let Err(why) = place::check(name) {
        if !name.starts_with('/') {
            return Ok(Err(Ret::bad(why)));
        }
        if is_dry_run() {
            let mut ret = Ret { result: None, ..Ret::good(format!("File {name} is set to be created")) };
            ret.change("new", name);
            return Ok(Err(ret));
        }
        let around = path::dirname(name);
        if arguments.flag("makedirs", false) {
            changes::make_directory(around, true, &Owner { user: None, group: None }, None)?;
        } else if !changes::is(around, changes::Kind::Directory)? {
            return Ok(Err(Ret::bad(why)));
        }
        changes::touch(name, None, None)?;
    }
    let texts = match sources.is_empty() {
        // As in Salt, no text is the text `None`.
        true => arguments.get("text").map_or_else(|| vec!["None".into()], texts::of),
        false => match texts::load(&sources, arguments)? {
            Ok(texts) => texts,
            Err(ret) => return Ok(Err(ret)),
        },
    };
    let content = place::read(name)?.ok_or_else(|| format!("{name}: file not found"))?;
    Ok(Ok((texts, content)))
}
