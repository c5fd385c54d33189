//! The file with the modules that are loaded at the start.

use brine_guest::changes;
use brine_guest::host::grains;

use crate::kernel;

fn file() -> Result<&'static str, String> {
    let systemd = grains::items().value()?.get("systemd").is_some();
    Ok(if systemd { "/etc/modules-load.d/salt_managed.conf" } else { "/etc/modules" })
}

/// The name of a module without its parameters.
fn name(module: &str) -> Option<&str> {
    module.split_whitespace().next()
}

/// The names in the file, sorted.
pub(crate) fn names() -> Result<Vec<String>, String> {
    let text = changes::read_text(file()?)?.unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let mut names: Vec<String> = lines.filter_map(name).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Adds a module to the file, if the kernel has it and the file has not. Returns its name if it was added.
pub(crate) fn add(module: &str) -> Result<Option<String>, String> {
    let file = file()?;
    let old = match changes::read_text(file)? {
        Some(old) => old,
        None => {
            changes::touch(file, None, None)?;
            String::new()
        }
    };
    let Some(name) = name(module) else { return Ok(None) };
    if names()?.iter().any(|known| known == name) || !kernel::available()?.iter().any(|known| known == name) {
        return Ok(None);
    }
    match uncommented(&old, module) {
        Some(new) => changes::edit(file, &old, &new)?,
        None => {
            let end = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
            changes::Put::new(file).instead_of(Some(old.as_bytes())).text(&format!("{old}{end}{module}\n"))?;
        }
    }
    Ok(Some(name.to_owned()))
}

/// The text with each comment that begins with a module as a line of its own; none if none is only the module.
fn uncommented(text: &str, module: &str) -> Option<String> {
    let is_it = |line: &str| {
        let line = line.strip_prefix('#')?.trim_start_matches(['\t', ' ', '#']);
        Some(line.strip_prefix(module)?.trim_matches(['\t', ' ', '\n']).is_empty())
    };
    text.lines().any(|line| is_it(line) == Some(true)).then(|| {
        let line = |line: &str| match line.strip_prefix('#').is_some_and(|line| line.trim_start().starts_with(module)) {
            true => line.trim_start_matches('#').to_owned(),
            false => line.to_owned(),
        };
        text.split_inclusive('\n').map(line).collect()
    })
}

/// Removes a module from the file, or makes its line a comment. Returns its name if it was there.
pub(crate) fn remove(module: &str, comment: bool) -> Result<Option<String>, String> {
    let file = file()?;
    let Some(name) = name(module).filter(|name| names().is_ok_and(|names| names.iter().any(|known| known == name)))
    else {
        return Ok(None);
    };
    let old = changes::read_text(file)?.unwrap_or_default();
    let new = without(&old, module, comment);
    if new != old {
        changes::edit(file, &old, &new)?;
    }
    Ok(Some(name.to_owned()))
}

/// The text in which each line that begins with a module is a comment, or without the module.
fn without(text: &str, module: &str, comment: bool) -> String {
    let line = |line: &str| match line.trim_start_matches(['\t', ' ']).strip_prefix(module) {
        None => line.to_owned(),
        Some(_) if comment => format!("#{line}"),
        Some(rest) => rest.strip_prefix(['\t', ' ']).unwrap_or(rest).to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_comments_and_back() {
        let text = "# a\nloop\n  dummy numdummies=2\n";
        assert_eq!(without(text, "loop", true), "# a\n#loop\n  dummy numdummies=2\n");
        assert_eq!(without(text, "dummy", false), "# a\nloop\nnumdummies=2\n");
        assert_eq!(uncommented("# loop\n#x\n", "loop").as_deref(), Some(" loop\n#x\n"));
        assert_eq!(uncommented("#loop is nice\n", "loop"), None);
    }
}
