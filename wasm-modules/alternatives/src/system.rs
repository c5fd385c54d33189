//! The host's alternatives: changed by its program, which says what it did.

use brine_guest::changes::{self, Kind};
use brine_guest::host::grains;
use brine_guest::program::{Output, Program};

/// The links that names lead through.
const LINKS: &str = "/etc/alternatives";

/// Whether this host has alternatives.
pub(crate) fn is_here() -> Result<bool, String> {
    changes::is(LINKS, Kind::Directory)
}

fn family() -> Result<String, String> {
    Ok(grains::items().value()?.get("os_family").map(|family| family.to_text()).unwrap_or_default())
}

/// An argument of the program that is none of its options.
fn checked<'a>(what: &str, text: &'a str) -> Result<&'a str, String> {
    match text.is_empty() || text.starts_with('-') || text.contains(char::is_control) {
        true => Err(format!("{text:?} is no {what} of an alternative")),
        false => Ok(text),
    }
}

/// A name of an alternative: a file in [`LINKS`].
fn name(text: &str) -> Result<&str, String> {
    match text.contains('/') || matches!(text, "." | "..") {
        true => Err(format!("{text:?} is no name of an alternative")),
        false => checked("name", text),
    }
}

fn run(words: &[&str]) -> Result<Output, String> {
    let program = if family()? == "RedHat" { "alternatives" } else { "update-alternatives" };
    Program::new([program]).args(words.iter().copied()).run()
}

/// What the program said of what it did.
fn said(done: Output) -> String {
    if done.code > 0 { done.stderr } else { done.stdout }
}

/// What the program says of a name.
pub(crate) fn display(of: &str) -> Result<String, String> {
    let done = run(&["--display", name(of)?])?;
    Ok(if done.code > 0 && !done.stderr.is_empty() { done.stderr } else { done.stdout })
}

/// The link of a name; none if there is no such name.
pub(crate) fn link(of: &str) -> Result<Option<String>, String> {
    let kept = match family()?.as_str() {
        "RedHat" => "/var/lib/alternatives",
        "Suse" => "/var/lib/rpm/alternatives",
        _ => {
            let done = run(&["--query", name(of)?])?;
            return Ok(if done.code > 0 && !done.stderr.is_empty() { None } else { queried(&done.stdout) });
        }
    };
    let text = changes::read_text(&format!("{kept}/{}", name(of)?))?;
    Ok(text.and_then(|text| text.lines().nth(1).map(str::to_owned)))
}

/// The link in the program's answer.
fn queried(text: &str) -> Option<String> {
    let mut block = text.lines().take_while(|line| !line.is_empty());
    block.find_map(|line| line.strip_prefix("Link:")).map(|link| link.trim().to_owned())
}

/// What a name means now; none if there is no such name.
pub(crate) fn current(of: &str) -> Result<Option<String>, String> {
    Ok(changes::look(&format!("{LINKS}/{}", name(of)?), false)?.and_then(|entry| entry.target))
}

/// Whether a path is one of those that a name may mean.
pub(crate) fn is_registered(of: &str, path: &str) -> Result<bool, String> {
    let done = run(&["--display", name(of)?])?;
    let fails = done.code > 0 && !done.stderr.is_empty();
    Ok(!fails && done.stdout.lines().any(|line| line.starts_with(path)))
}

pub(crate) fn install(of: &str, link: &str, path: &str, priority: &str) -> Result<String, String> {
    // A priority may be less than zero.
    let done = run(&["--install", checked("link", link)?, name(of)?, checked("path", path)?, priority])?;
    Ok(if done.code > 0 && !done.stderr.is_empty() { done.stderr } else { done.stdout })
}

pub(crate) fn remove(of: &str, path: &str) -> Result<String, String> {
    run(&["--remove", name(of)?, checked("path", path)?]).map(said)
}

pub(crate) fn auto(of: &str) -> Result<String, String> {
    run(&["--auto", name(of)?]).map(said)
}

pub(crate) fn set(of: &str, path: &str) -> Result<String, String> {
    run(&["--set", name(of)?, checked("path", path)?]).map(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_is_in_the_first_block() {
        let text = "Name: editor\nLink: /usr/bin/editor\nStatus: auto\n\nAlternative: /bin/ed\nLink: /other\n";
        assert_eq!(queried(text).as_deref(), Some("/usr/bin/editor"));
        assert_eq!(queried("Name: x\n\nLink: /other\n"), None);
    }

    #[test]
    fn names_are_files_and_no_options() {
        assert_eq!(name("vi"), Ok("vi"));
        for bad in ["", "--force", "../shadow", "a/b", "..", "a\nb"] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
    }
}
