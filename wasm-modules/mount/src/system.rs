//! Mounts and unmounts, by the programs of the host.

use brine_guest::Value;
use brine_guest::changes::{self, Owner};
use brine_guest::program::Program;

use crate::active;

/// What is to be mounted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub at: &'a str,
    /// None for what the file of mounts says.
    pub device: Option<&'a str>,
    /// Whether to make the place.
    pub makes: bool,
    /// Empty to let `mount` find out.
    pub fstype: &'a str,
    pub opts: &'a [String],
    pub user: Option<&'a str>,
}

/// An argument of a program that is none of its options.
fn checked(text: &str) -> Result<&str, String> {
    match text.is_empty() || text.starts_with('-') || text.contains(char::is_control) {
        true => Err(format!("{text:?} is no device and no place")),
        false => Ok(text),
    }
}

/// Runs a program; the inner error is what it complained of.
fn run(words: Vec<String>, user: Option<&str>) -> Result<Result<(), String>, String> {
    let mut program = Program::new(words);
    if let Some(user) = user {
        program = program.run_as(user);
    }
    let done = program.run()?;
    Ok(if done.code == 0 { Ok(()) } else { Err(done.stderr) })
}

/// Mounts. The inner error says why it was not mounted.
pub(crate) fn mount(wanted: &Wanted<'_>) -> Result<Result<(), String>, String> {
    if wanted.makes && !active::exists(wanted.at)? {
        make(wanted.at, wanted.user)?;
    }
    let mut words = vec!["mount".to_owned()];
    if let Some(device) = wanted.device {
        words.extend(["-o".to_owned(), wanted.opts.join(",")]);
        if !wanted.fstype.is_empty() {
            words.extend(["-t".to_owned(), wanted.fstype.to_owned()]);
        }
        words.push(checked(device)?.to_owned());
    }
    words.push(checked(wanted.at)?.to_owned());
    run(words, wanted.user)
}

/// Makes the directory of a place.
pub(crate) fn make(at: &str, user: Option<&str>) -> Result<(), String> {
    let owner = Owner { user: user.map(str::to_owned), group: None };
    changes::make_directory(at, true, &owner, None).map(drop)
}

/// Mounts again what is mounted; mounts what is not.
pub(crate) fn remount(wanted: &Wanted<'_>) -> Result<Result<(), String>, String> {
    if !active::is_at(wanted.at)? {
        return mount(wanted);
    }
    let mut opts = wanted.opts.to_vec();
    if !opts.iter().any(|option| option == "remount") {
        opts.push("remount".into());
    }
    mount(&Wanted { opts: &opts, makes: false, ..*wanted })
}

/// Unmounts. The inner error says why it is mounted still.
pub(crate) fn umount(
    at: &str,
    device: Option<&str>,
    user: Option<&str>,
    lazy: bool,
) -> Result<Result<(), String>, String> {
    if !active::is_at(at)? {
        return Ok(Err(format!("{at} does not have anything mounted")));
    }
    let mut words = vec!["umount".to_owned()];
    words.extend(lazy.then(|| "-l".to_owned()));
    words.push(checked(device.unwrap_or(at))?.to_owned());
    run(words, user)
}

/// The fields of a swap area in use; none if it is not.
pub(crate) fn swap(name: &str) -> Result<Option<Value>, String> {
    Ok(active::swaps()?.into_iter().find(|(known, _)| known == name).map(|(_, fields)| fields))
}

pub(crate) fn swapon(name: &str, priority: Option<&str>) -> Result<(), String> {
    let mut words = vec!["swapon".to_owned(), checked(name)?.to_owned()];
    words.extend(priority.into_iter().flat_map(|priority| ["-p".to_owned(), priority.to_owned()]));
    // Whether it is in use is looked at.
    run(words, None).map(drop)
}

pub(crate) fn swapoff(name: &str) -> Result<(), String> {
    run(vec!["swapoff".into(), checked(name)?.to_owned()], None).map(drop)
}
