//! The programs that change users.

use brine_guest::host::grains;
use brine_guest::{Result, Value};

use crate::users::{User, find};
use crate::values::set as sorted;
use crate::{files, groups, membership, programs};

const DEFINITIONS: &str = "/etc/login.defs";

/// How a new user is to be.
#[derive(Debug, Clone, Default)]
pub struct New {
    /// Its number; None for the next that is free.
    pub uid: Value,
    /// The name or number of its own group.
    pub gid: Value,
    /// Its other groups.
    pub groups: Option<Vec<String>>,
    /// Its directory.
    pub home: Option<String>,
    /// Its shell.
    pub shell: Option<String>,
    /// Whether another user may have the number.
    pub non_unique: bool,
    /// Whether the number is one for the system.
    pub system: bool,
    /// Full name, room number, telephone numbers at work and at home, and the rest.
    pub gecos: [String; 5],
    /// Whether the directory is not to be made.
    pub no_home: bool,
    /// Whether to leave the logs of log-ins alone.
    pub nologinit: bool,
    /// Whether it is to have a group of its own name; none for what the host usually does.
    pub usergroup: Option<bool>,
    /// Whether to use the programs that never ask a name service.
    pub local: bool,
}

/// Makes a user; false if the program refused. That a group or a part of the full name was not set is no error here: it
/// shows at the next look.
///
/// # Errors
/// When there is no such program, or it was not granted.
pub fn add(name: &str, new: &New, root: Option<&str>) -> Result<bool> {
    let options = options(name, new)?;
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (program, own_root) = if new.local { ("luseradd", None) } else { ("useradd", root) };
    if !programs::change(program, &options, own_root, &[name])?.succeeded() {
        return Ok(false);
    }
    if let Some(groups) = new.groups.as_ref().filter(|groups| !groups.is_empty()) {
        set_groups(name, groups, false, root)?;
    }
    for (place, value) in new.gecos.iter().enumerate().filter(|(_, value)| !value.is_empty()) {
        set_gecos(name, place, value, root)?;
    }
    Ok(true)
}

fn options(name: &str, new: &New) -> Result<Vec<String>> {
    let mut options: Vec<String> = Vec::new();
    let mut pair = |option: &str, value: String| options.extend([option.to_owned(), value]);
    let given = |value: &Value| *value != Value::None && value.text() != Some("");
    if let Some(shell) = new.shell.as_ref().filter(|shell| !shell.is_empty()) {
        pair("-s", shell.clone());
    }
    if given(&new.uid) {
        pair("-u", new.uid.to_text());
    }
    let own_group = new.groups.as_ref().is_some_and(|groups| groups.iter().any(|group| group == name));
    if given(&new.gid) {
        pair("-g", new.gid.to_text());
    } else if new.usergroup == Some(true) {
        if !new.local {
            options.push("-U".into());
        }
    } else if own_group && has_user_groups()? {
        pair("-g", groups::gid(&name.into())?.map_or_else(String::new, |gid| gid.to_string()));
    }
    if new.usergroup == Some(false) {
        options.push(if new.local { "-n" } else { "-N" }.into());
    }
    match (new.no_home, new.local) {
        (true, _) => options.push("-M".into()),
        (false, false) => options.push("-m".into()),
        (false, true) => {}
    }
    if new.nologinit {
        options.push("-l".into());
    }
    if let Some(home) = &new.home {
        options.extend(["-d".into(), home.clone()]);
    }
    if new.non_unique {
        options.push("-o".into());
    }
    if new.system {
        options.push("-r".into());
    }
    Ok(options)
}

/// Whether this host gives each new user a group of its own name.
fn has_user_groups() -> Result<bool> {
    let lines = files::lines(None, DEFINITIONS)?;
    Ok(lines.iter().find(|line| line.starts_with("USERGROUPS_ENAB")).is_some_and(|line| line.contains("yes")))
}

/// Removes a user, with `remove` its directory too; false if the program refused.
///
/// # Errors
/// As for [`add`].
pub fn delete(name: &str, remove: bool, force: bool, root: Option<&str>, local: bool) -> Result<bool> {
    let mut options = Vec::new();
    if remove {
        options.push("-r");
    }
    if force && !local {
        options.push("-f");
    }
    let (program, root) = if local { ("luserdel", None) } else { ("userdel", root) };
    let output = programs::change(program, &options, root, &[name])?;
    // Debian's userdel ends with 12 where there is no mail to remove.
    let only_mail = output.code == 12
        && (output.stderr.contains("var/mail") || output.stderr.contains("var/spool/mail"))
        && is_debian();
    Ok(output.succeeded() || only_mail)
}

fn is_debian() -> bool {
    grains::get("os_family", None)
        .and_then(|family| family.value().ok())
        .is_some_and(|family| family.text() == Some("Debian"))
}

/// What of a user can be changed by one option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribute {
    /// Its number.
    Uid,
    /// Its own group, by name or number.
    Gid,
    /// Its directory.
    Home,
    /// Its directory, which moves along.
    MovedHome,
    /// Its shell.
    Shell,
    /// Its name.
    Name,
}

impl Attribute {
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Uid => &["-u"],
            Self::Gid => &["-g"],
            Self::Home => &["-d"],
            Self::MovedHome => &["-m", "-d"],
            Self::Shell => &["-s"],
            Self::Name => &["-l"],
        }
    }

    fn of(self, user: &User) -> Value {
        match self {
            Self::Uid => Value::Int(user.uid),
            Self::Gid => Value::Int(user.gid),
            Self::Home | Self::MovedHome => user.home.as_str().into(),
            Self::Shell => user.shell.as_str().into(),
            Self::Name => user.name.as_str().into(),
        }
    }
}

/// Changes a user; false if it has another value then.
///
/// # Errors
/// When there is no such user, and as for [`add`].
pub fn set(name: &str, attribute: Attribute, value: &Value, root: Option<&str>) -> Result<bool> {
    let Some(user) = find(name, root)? else { return Err(format!("User '{name}' does not exist")) };
    if attribute.of(&user) == *value {
        return Ok(true);
    }
    let text = value.to_text();
    let options = [attribute.options(), &[&text]].concat();
    programs::change("usermod", &options, root, &[name])?;
    let now = if attribute == Attribute::Name { &text } else { name };
    Ok(find(now, root)?.is_some_and(|user| attribute.of(&user) == *value))
}

/// Makes the directory of a user, with its missing parents.
///
/// # Errors
/// As for [`add`].
pub fn make_home(path: &str, uid: i64, gid: i64) -> Result<bool> {
    programs::make_directory(path, uid, gid)
}

/// Sets the groups of a user beside its own, or adds to them.
///
/// # Errors
/// As for [`add`].
pub fn set_groups(name: &str, wanted: &[String], append: bool, root: Option<&str>) -> Result<bool> {
    if membership::of_user(name)? == sorted(wanted.to_vec()) {
        return Ok(true);
    }
    let joined = wanted.join(",");
    let options: &[&str] = if append { &["-a", "-G", &joined] } else { &["-G", &joined] };
    let output = programs::change("usermod", options, root, &[name])?;
    if output.succeeded() || !output.stderr.contains("not found in") {
        return Ok(output.succeeded());
    }
    // Groups that only the name service knows.
    let mut all = true;
    for group in wanted {
        all &= programs::change("gpasswd", &[&format!("--add={name}")], None, &[group])?.succeeded();
    }
    Ok(all)
}

/// Sets one part of the field with the full name, by its place; false if it has another value then.
///
/// # Errors
/// When there is no such user, and as for [`add`].
pub fn set_gecos(name: &str, place: usize, value: &str, root: Option<&str>) -> Result<bool> {
    let Some(user) = find(name, root)? else { return Err(format!("getpwnam(): name not found: '{name}'")) };
    let mut parts = user.gecos();
    if parts[place] == value {
        return Ok(true);
    }
    value.clone_into(&mut parts[place]);
    let joined = parts.join(",");
    programs::change("usermod", &["-c", joined.trim_end_matches(',')], root, &[name])?;
    Ok(find(name, root)?.is_some_and(|user| user.gecos()[place] == value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_useradds() {
        let made = |new: &New| options("ada", new).unwrap().join(" ");
        assert_eq!(made(&New::default()), "-m");
        let all = New {
            uid: Value::Int(7),
            gid: "adm".into(),
            home: Some("/srv/ada".into()),
            shell: Some("/bin/sh".into()),
            non_unique: true,
            system: true,
            no_home: true,
            nologinit: true,
            usergroup: Some(false),
            ..New::default()
        };
        assert_eq!(made(&all), "-s /bin/sh -u 7 -g adm -N -M -l -d /srv/ada -o -r");
        assert_eq!(made(&New { usergroup: Some(true), ..New::default() }), "-U -m");
        assert_eq!(made(&New { local: true, usergroup: Some(false), ..New::default() }), "-n");
    }
}
