//! A device is mounted at a place, with its options.

use brine_guest::host::functions;
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Value, changes, path};
use regex_lite::Regex;

use super::{Came, Done};
use crate::active::{self, Mount, at};
use crate::cache;
use crate::file::{self, Line};
use crate::system::{self, Wanted};

/// Options that the kernel does not show.
const INVISIBLE: [&str; 23] = [
    "_netdev",
    "actimeo",
    "bg",
    "comment",
    "defaults",
    "delay_connect",
    "direct-io-mode",
    "intr",
    "loop",
    "nointr",
    "nobootwait",
    "nofail",
    "password",
    "reconnect",
    "retry",
    "soft",
    "auto",
    "users",
    "bind",
    "nonempty",
    "transform_symlinks",
    "port",
    "backup-volfile-servers",
];
/// Options whose value the kernel does not show.
const INVISIBLE_KEYS: [&str; 8] =
    ["actimeo", "comment", "credentials", "direct-io-mode", "password", "port", "retry", "secretfile"];

/// What is wanted of a place.
pub(super) struct Wish<'a> {
    pub name: &'a str,
    pub device: &'a str,
    pub fstype: &'a str,
    pub makes: bool,
    pub opts: Vec<String>,
    pub mounts: bool,
    pub user: Option<&'a str>,
    /// Expressions for devices that count as the wanted one.
    pub devices: Vec<String>,
    pub invisible: Vec<String>,
    pub invisible_keys: Vec<String>,
    /// By file system, a list of options that count as set.
    pub ignored_keys: Value,
    /// By option, the one that the kernel shows.
    pub translated: Value,
    /// Whether a bind mount has the options of its source.
    pub copies: bool,
}

/// What is wanted of the file of mounts.
pub(super) struct Persist<'a> {
    pub is_wanted: bool,
    pub config: Option<&'a str>,
    pub dump: Value,
    pub pass_num: Value,
    pub match_on: Value,
}

impl Wish<'_> {
    fn mount(&self, at: &str, user: Option<&str>) -> Result<Result<(), String>, String> {
        system::mount(&self.wanted(at, user))
    }

    fn wanted<'b>(&'b self, at: &'b str, user: Option<&'b str>) -> Wanted<'b> {
        let device = Some(self.device);
        Wanted { at, device, makes: self.makes, fstype: self.fstype, opts: &self.opts, user }
    }

    /// Whether a change of options needs the place to be unmounted.
    fn is_mounted_anew(&self) -> bool {
        matches!(self.fstype, "nfs" | "cvfs") || self.fstype.starts_with("fuse")
    }

    /// An option as the kernel shows it.
    fn shown(&self, option: &str, active: &Mount) -> Result<String, String> {
        let mut option = match (self.translated.get(option), option) {
            (Some(other), _) => other.to_text(),
            (None, "tcp") => "proto=tcp".into(),
            (None, "udp") => "proto=udp".into(),
            (None, option) => option.to_owned(),
        };
        let (key, given) = match option.split_once('=') {
            Some((key, given)) => (key.to_owned(), Some(given.to_owned())),
            None => (option.clone(), None),
        };
        if INVISIBLE_KEYS.contains(&key.as_str()) || self.invisible_keys.contains(&key) {
            option.clone_from(&key);
        }
        if let Some(size) = in_kilobytes(&option) {
            option = size;
        }
        if self.fstype == "cifs" && key == "user" {
            option = format!("username={}", given.as_deref().unwrap_or_default());
        }
        if self.is_ignored(&key) {
            option.clone_from(&key);
        }
        if let (Some(info), Some(given)) = (user_or_group(&key), &given) {
            option = format!("{key}={}", number(info, &key, given)?);
        }
        // A size that the kernel shows counts for each option: as in Salt.
        Ok(active.superopts.iter().find_map(|shown| in_kilobytes(shown)).unwrap_or(option))
    }

    fn is_ignored(&self, key: &str) -> bool {
        match self.ignored_keys.get(self.fstype) {
            Some(Value::List(keys)) => keys.iter().any(|known| known.text() == Some(key)),
            _ => self.fstype == "ramfs" && key == "size",
        }
    }

    /// The wanted options that the place does not have, and the last one as the kernel would show it.
    fn missing(&self, active: &Mount, own: &[String]) -> Result<(Vec<String>, String), String> {
        let (mut missing, mut last) = (Vec::new(), String::new());
        for option in &self.opts {
            last = self.shown(option, active)?;
            let is_there = own.contains(&last)
                || active.superopts.iter().any(|shown| *shown == last || in_kilobytes(shown).as_deref() == Some(&last))
                || INVISIBLE.contains(&last.as_str())
                || self.invisible.contains(&last)
                || INVISIBLE_KEYS.contains(&last.as_str())
                || self.invisible_keys.contains(&last)
                || self.is_ignored(&last);
            if !is_there {
                missing.push(last.clone());
            }
        }
        Ok((missing, last))
    }
}

/// A size in the kernel's unit: `size=1m` is `size=1024k`.
fn in_kilobytes(option: &str) -> Option<String> {
    let size = option.strip_prefix("size=")?;
    let digits: String = size.chars().take_while(char::is_ascii_digit).collect();
    let factor = match size[digits.len()..].chars().next()? {
        'k' => 1,
        'm' => 1024,
        'g' => 1024 * 1024,
        _ => return None,
    };
    Some(format!("size={}k", digits.parse::<u64>().ok()?.checked_mul(factor)?))
}

fn user_or_group(key: &str) -> Option<&'static str> {
    match key {
        "uid" => Some("user.info"),
        "gid" => Some("group.info"),
        _ => None,
    }
}

/// The number of a user or a group.
fn number(info: &str, key: &str, name: &str) -> Result<String, String> {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(name.to_owned());
    }
    let known = functions::call(info, &[name.into()], &Value::dict([]).into())?.value()?;
    Ok(known.get(key).map_or_else(|| name.to_owned(), Value::to_text))
}

/// Resolves links of what is a path; of what is none, Salt makes one.
fn real(path: &str) -> Result<String, String> {
    if path.starts_with('/') { changes::realpath(path) } else { Ok(format!("/{path}")) }
}

/// The device that is to be found at the place, and others that stand for it. The error is the state's.
fn device(
    wish: &mut Wish<'_>,
    own: &mut Vec<String>,
    mounts: &[Mount],
    place: &str,
) -> Result<(String, Vec<String>), String> {
    let device = wish.device;
    let upper = device.to_uppercase();
    let mut others = Vec::new();
    let mut found = if device.starts_with('/') {
        let bound = wish.opts.iter().any(|option| option == "bind").then(|| at(mounts, place)).flatten();
        match bound {
            None => changes::realpath(device)?,
            Some(there) => {
                let mut source = device.replace(' ', "\\040");
                let is_path = there.device.starts_with('/');
                let holder = loop {
                    match at(mounts, &source) {
                        None if is_path && source != "/" => source = path::dirname(&source).to_owned(),
                        holder => break holder,
                    }
                };
                if let Some(holder) = holder {
                    if wish.copies {
                        wish.opts.extend(holder.opts.iter().chain(&holder.superopts).cloned());
                        wish.opts.sort();
                        wish.opts.dedup();
                    }
                    own.push("bind".into());
                }
                match holder.filter(|_| is_path) {
                    Some(holder) => holder.device.clone(),
                    None => there.device.clone(),
                }
            }
        }
    } else if upper.starts_with("UUID=") {
        device["UUID=".len()..].trim_matches('"').to_lowercase()
    } else if upper.starts_with("LABEL=") {
        let label = &device["LABEL=".len()..];
        others.extend(active::blkid(&["-t", &format!("LABEL={label}")])?.into_iter().map(|device| device.name));
        others.first().cloned().ok_or_else(|| format!("Unable to find device with label {label}."))?
    } else {
        device.to_owned()
    };
    if let Some(("", volume)) = device.split_once("/dev/")
        && let Some((group, name)) = volume.split_once('/')
        && !group.is_empty()
        && !name.is_empty()
        && !name.contains('/')
    {
        let mapped = format!("/dev/mapper/{}-{}", group.replace('-', "--"), name.replace('-', "--"));
        if active::exists(&mapped)? {
            found = mapped;
        }
    }
    if let Some((program, name)) = device.split_once('#')
        && !program.is_empty()
        && program.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.is_empty()
    {
        found = name.to_owned();
    }
    Ok((found, others))
}

pub(super) fn mounted(mut wish: Wish<'_>, entry: Persist<'_>) -> Done {
    let mut came = Came::new();
    let mut mounts = active::all()?;
    let real_name = real(wish.name)?;
    let place = real_name.replace(' ', "\\040");
    let mut own = at(&mounts, &place).map(|mount| mount.opts.clone()).unwrap_or_default();
    let (wanted_device, mut devices) = match device(&mut wish, &mut own, &mounts, &place) {
        Ok(found) => found,
        Err(why) => return Ok(came.fail(why)),
    };
    let mut keeps = false;
    if let Some(there) = at(&mounts, &place).filter(|_| wish.mounts) {
        devices.extend([there.device.clone(), real(&there.device)?]);
        for other in [&there.other_device, &there.uuid, &there.label].into_iter().flatten() {
            if !devices.contains(other) {
                devices.push(other.clone());
            }
        }
        let mut last = String::new();
        if !wish.opts.is_empty() {
            let (mut missing, shown) = wish.missing(there, &own)?;
            last = shown;
            if !missing.is_empty() {
                missing.sort();
                let missing = missing.join(",");
                if is_dry_run() {
                    return Ok(came.would(format!("Remount would be forced because options ({missing}) changed")));
                }
                if let Some(failed) = remount(&wish, &mut came, &real_name, &missing, true)? {
                    return Ok(failed);
                }
                keeps = true;
            }
        }
        match cache::options(&real_name)? {
            None => keeps = true,
            Some(known) => {
                let gone: Vec<String> = known.into_iter().filter(|option| !wish.opts.contains(option)).collect();
                if !gone.is_empty() {
                    if is_dry_run() {
                        let gone = gone.join(",");
                        return Ok(came.would(format!("Remount would be forced because options ({gone})changed")));
                    }
                    if let Some(failed) = remount(&wish, &mut came, &real_name, &last, false)? {
                        return Ok(failed);
                    }
                    keeps = true;
                }
            }
        }
        if devices.contains(&wanted_device) {
            came.comment = "Target was already mounted".into();
        } else if let Some(other) = like(&wish.devices, &devices)? {
            came.result = Some(true);
            came.comment = format!("An umount will not be forced because device matched device_name_regex: {other}");
        } else if is_dry_run() {
            came.result = None;
            let device = wish.device;
            came.comment = format!("An umount would have been forced because devices do not match.  Watched: {device}");
        } else {
            let real = if wanted_device == wish.device { String::new() } else { format!(" ({wanted_device})") };
            let (wanted, current) = (wish.device, devices.join(", "));
            let why = format!("Forced unmount because devices don't match. Wanted: {wanted}{real}, current: {current}");
            came.changes.retain(|(what, _)| *what != "umount");
            came.changes.push(("umount", why.into()));
            // Whether it is gone is looked at.
            let _ = system::umount(&real_name, None, wish.user, false)?;
            mounts = active::all()?;
            if at(&mounts, &place).is_some() {
                return Ok(came.fail("Unable to unmount"));
            }
            keeps = true;
        }
    }
    if at(&mounts, &place).is_none() {
        let name = wish.name;
        let exists = active::exists(name)?;
        match (wish.mounts, exists, wish.makes, is_dry_run()) {
            (true, true, _, true) => return Ok(came.would(format!("{name} would be mounted"))),
            (true, false, true, true) => return Ok(came.would(format!("{name} would be created and mounted"))),
            (true, false, false, true) => {
                return Ok(came.would(format!("{name} does not exist and would not be created")));
            }
            (true, false, false, false) => return Ok(came.fail("Mount directory is not present")),
            (true, ..) => {
                if let Err(why) = wish.mount(name, wish.user)? {
                    return Ok(came.fail(why));
                }
                keeps = true;
                if active::is_at(&place)? {
                    came.comment = "Target was successfully mounted".into();
                    came.changes.push(("mount", true.into()));
                }
            }
            (false, false, makes, true) => {
                came.result = None;
                came.comment = match makes {
                    true => format!("{name} would be created, but not mounted"),
                    false => format!("{name} does not exist and would neither be created nor mounted"),
                };
            }
            (false, false, true, false) => {
                system::make(name, wish.user)?;
                came.comment = format!("{name} was created, not mounted");
            }
            (false, false, false, false) => came.comment = format!("{name} not present and not mounted"),
            (false, true, _, true) => came.comment = format!("{name} would not be mounted"),
            (false, true, _, false) => came.comment = format!("{name} not mounted"),
        }
    }
    if entry.is_wanted {
        persist(&wish, entry, &mut came)?;
    }
    if keeps && !is_dry_run() {
        cache::keep(&real_name, Some(&wish.opts))?;
    }
    Ok(came.into())
}

/// Mounts a place again since options changed. Returns the state's result if it failed for good.
fn remount(
    wish: &Wish<'_>,
    came: &mut Came,
    at: &str,
    options: &str,
    says_lazy: bool,
) -> Result<Option<StateResult>, String> {
    let mut say = |text: &str| {
        came.changes.retain(|(what, _)| *what != "umount");
        came.changes.push(("umount", format!("{text} options ({options}) changed").into()));
    };
    if !wish.is_mounted_anew() {
        say("Forced remount because");
        came.result = Some(system::remount(&wish.wanted(at, None))?.is_ok());
        return Ok(None);
    }
    say("Forced unmount and mount because");
    if system::umount(at, None, None, false)?.is_err() {
        if says_lazy {
            say("Forced a lazy unmount and mount because the previous unmount failed and because the");
        }
        if let Err(why) = system::umount(at, None, None, true)? {
            let failed = std::mem::replace(came, Came::new());
            return Ok(Some(failed.fail(format!("Unable to unmount {at}: {why}."))));
        }
    }
    came.result = Some(wish.mount(at, None)?.is_ok());
    Ok(None)
}

/// The first device that one of the expressions begins to match.
fn like(expressions: &[String], devices: &[String]) -> Result<Option<String>, String> {
    for expression in expressions {
        let expression = Regex::new(&format!("^(?:{expression})")).map_err(|error| error.to_string())?;
        if let Some(device) = devices.iter().find(|device| expression.is_match(device)) {
            return Ok(Some(device.clone()));
        }
    }
    Ok(None)
}

/// The entry in the file of mounts.
fn persist(wish: &Wish<'_>, entry: Persist<'_>, came: &mut Came) -> Result<(), String> {
    let Persist { config, dump, pass_num, match_on, .. } = entry;
    let name = wish.name;
    let (device, fstype, opts) = (wish.device, wish.fstype, &wish.opts.join(","));
    let line = Line { name, device, fstype, opts, dump, pass_num, match_on, keeps: false };
    let word = file::set(&line, config, is_dry_run())?;
    if !is_dry_run() || word == "present" {
        came.persisted(word);
        return Ok(());
    }
    let more = match (word, wish.mounts) {
        ("new", true) => {
            format!("{name} is mounted, but needs to be written to the fstab in order to be made persistent.")
        }
        ("new", false) => format!("{name} needs to be written to the fstab in order to be made persistent."),
        (_, true) => format!("{name} is mounted, but its fstab entry must be updated."),
        (_, false) => format!("The {name} fstab entry must be updated."),
    };
    came.result = None;
    came.comment = format!("{}. {more}", came.comment);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::in_kilobytes;

    #[test]
    fn sizes_are_in_kilobytes() {
        for (option, expect) in [("size=1m", "size=1024k"), ("size=2g", "size=2097152k"), ("size=8k", "size=8k")] {
            assert_eq!(in_kilobytes(option).as_deref(), Some(expect));
        }
        assert_eq!(in_kilobytes("size=50%"), None);
        assert_eq!(in_kilobytes("size=99999999999999999999g"), None);
    }
}
