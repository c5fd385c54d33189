//! Loads and removes modules.

use std::collections::BTreeSet;

use crate::{kernel, persistent};

/// The words of a module and its parameters: `bonding mode=4`.
fn words(module: &str) -> Result<Vec<&str>, String> {
    let words: Vec<&str> = module.split_whitespace().collect();
    match words.is_empty() || words.iter().any(|word| word.starts_with('-')) || module.contains(char::is_control) {
        true => Err(format!("{module:?} is no module of the kernel")),
        false => Ok(words),
    }
}

/// Loads a module. The inner error says why it was not loaded.
pub(crate) fn load(module: &str, persist: bool) -> Result<Result<Vec<String>, String>, String> {
    let before = kernel::set()?;
    let done = kernel::run("modprobe", &words(module)?)?;
    if done.code != 0 {
        return Ok(Err(format!("Error loading module {module}: {}", done.stderr)));
    }
    let mut new: BTreeSet<String> = kernel::set()?.difference(&before).cloned().collect();
    if persist {
        new.extend(persistent::add(module)?);
    }
    Ok(Ok(new.into_iter().collect()))
}

/// Removes a module. The inner error says why it was not removed.
pub(crate) fn remove(module: &str, persist: bool, comment: bool) -> Result<Result<Vec<String>, String>, String> {
    let before = kernel::set()?;
    let done = kernel::run("rmmod", &words(module)?)?;
    if done.code != 0 {
        return Ok(Err(format!("Error removing module {module}: {}", done.stderr)));
    }
    let after = kernel::set()?;
    let mut gone: BTreeSet<String> = before.difference(&after).cloned().collect();
    if persist {
        gone.extend(persistent::remove(module, comment)?);
    }
    Ok(Ok(gone.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn modules_are_no_options() {
        assert_eq!(words("bonding mode=4"), Ok(vec!["bonding", "mode=4"]));
        assert!(words("").is_err() && words("-r").is_err() && words("x -C /tmp/evil").is_err());
    }
}
