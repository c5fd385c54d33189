//! Groups, and the programs that change them.

use brine_guest::{Result, Value};

use crate::{files, programs};

const FILE: &str = "/etc/group";

/// A line of `/etc/group`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// `x`, as a rule.
    pub passwd: String,
    /// Its number.
    pub gid: i64,
    /// The names of those that it is no primary group of.
    pub members: Vec<String>,
}

impl Group {
    /// What `group.info` returns.
    pub fn value(self) -> Value {
        Value::dict([
            ("name", self.name.into()),
            ("passwd", self.passwd.into()),
            ("gid", Value::Int(self.gid)),
            ("members", self.members.into()),
        ])
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(':');
        let (name, passwd, gid, members) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let members = members.split(',').map(str::trim).filter(|member| !member.is_empty());
        Some(Self {
            name: name.into(),
            passwd: passwd.into(),
            gid: gid.parse().ok()?,
            members: members.map(str::to_owned).collect(),
        })
    }
}

/// The local groups below `root`.
///
/// # Errors
/// When the file cannot be read.
pub fn local(root: Option<&str>) -> Result<Vec<Group>> {
    Ok(files::lines(root, FILE)?.iter().filter_map(|line| Group::parse(line)).collect())
}

/// All groups: of the name service, or with `root` those of the file below it.
///
/// # Errors
/// When they cannot be read.
pub fn all(root: Option<&str>) -> Result<Vec<Group>> {
    match root {
        Some(_) => local(root),
        None => Ok(programs::getent("group", None)?.iter().filter_map(|line| Group::parse(line)).collect()),
    }
}

/// A group by its name, as `grp.getgrnam` finds it; with `root`, in the file below it.
///
/// # Errors
/// When groups cannot be read.
pub fn find(name: &str, root: Option<&str>) -> Result<Option<Group>> {
    let by_name = |groups: Vec<Group>| groups.into_iter().find(|group| group.name == name);
    match by_name(local(root)?) {
        None if root.is_none() => Ok(by_name(remote(name)?)),
        found => Ok(found),
    }
}

/// A group by its number, as `grp.getgrgid` finds it.
///
/// # Errors
/// When groups cannot be read.
pub fn numbered(gid: i64) -> Result<Option<Group>> {
    let by_gid = |groups: Vec<Group>| groups.into_iter().find(|group| group.gid == gid);
    match by_gid(local(None)?) {
        None => Ok(by_gid(remote(&gid.to_string())?)),
        found => Ok(found),
    }
}

fn remote(key: &str) -> Result<Vec<Group>> {
    Ok(programs::getent("group", Some(key))?.iter().filter_map(|line| Group::parse(line)).collect())
}

/// `file.group_to_gid`: the number of a group by name or number; none if there is no group of that name.
///
/// # Errors
/// When groups cannot be read.
pub fn gid(group: &Value) -> Result<Option<i64>> {
    match group {
        Value::Int(gid) => Ok(Some(*gid)),
        Value::None => Ok(None),
        name => Ok(find(&name.to_text(), None)?.map(|group| group.gid)),
    }
}

/// `file.gid_to_group`: the name of a group by number or name; none if no group has that number.
///
/// # Errors
/// When groups cannot be read.
pub fn name(group: &Value) -> Result<Option<String>> {
    let number = match group {
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    match number.map_or_else(|| gid(group), |number| Ok(Some(number)))? {
        Some(gid) => Ok(numbered(gid)?.map(|group| group.name)),
        None => Ok(None),
    }
}

/// How a new group is to be.
#[derive(Debug, Clone, Default)]
pub struct New {
    /// Its number; None for the next that is free.
    pub gid: Value,
    /// Whether the number is one for the system.
    pub system: bool,
    /// Whether another group may have the number.
    pub non_unique: bool,
    /// Whether to use the programs that never ask a name service.
    pub local: bool,
}

/// Makes a group; false if the program refused.
///
/// # Errors
/// When there is no such program, or it was not granted.
pub fn add(name: &str, new: &New, root: Option<&str>) -> Result<bool> {
    let gid = new.gid.to_text();
    let mut options = Vec::new();
    if new.gid.truthy() {
        options.extend(["-g", &gid]);
        if new.non_unique && !new.local {
            options.push("-o");
        }
    }
    if new.system {
        options.push("-r");
    }
    let (program, root) = if new.local { ("lgroupadd", None) } else { ("groupadd", root) };
    Ok(programs::change(program, &options, root, &[name])?.succeeded())
}

/// Removes a group; false if the program refused.
///
/// # Errors
/// As for [`add`].
pub fn delete(name: &str, root: Option<&str>, local: bool) -> Result<bool> {
    let (program, root) = if local { ("lgroupdel", None) } else { ("groupdel", root) };
    Ok(programs::change(program, &[], root, &[name])?.succeeded())
}

/// Gives a group another number; false if there is no such group, or it does not have the number then.
///
/// # Errors
/// As for [`add`].
pub fn set_gid(name: &str, gid: &Value, root: Option<&str>, non_unique: bool) -> Result<bool> {
    let Some(before) = find(name, root)? else { return Ok(false) };
    if *gid == Value::Int(before.gid) {
        return Ok(true);
    }
    let gid_text = gid.to_text();
    let options: &[&str] = if non_unique { &["-o", "-g", &gid_text] } else { &["-g", &gid_text] };
    programs::change("groupmod", options, root, &[name])?;
    Ok(find(name, root)?.is_some_and(|group| *gid == Value::Int(group.gid)))
}

/// Makes a user a member; false if the program refused.
///
/// # Errors
/// As for [`add`].
pub fn add_member(name: &str, user: &str, root: Option<&str>) -> Result<bool> {
    Ok(programs::change("gpasswd", &[&format!("--add={user}")], root, &[name])?.succeeded())
}

/// Makes a user no member; false if the program refused.
///
/// # Errors
/// As for [`add`].
pub fn remove_member(name: &str, user: &str, root: Option<&str>) -> Result<bool> {
    match find(name, None)? {
        Some(group) if group.members.iter().any(|member| member == user) => {
            Ok(programs::change("gpasswd", &[&format!("--delete={user}")], root, &[name])?.succeeded())
        }
        _ => Ok(true),
    }
}

/// Makes these names, joined by commas, the members and no others; false if the program refused.
///
/// # Errors
/// As for [`add`].
pub fn set_members(name: &str, members: &str, root: Option<&str>) -> Result<bool> {
    Ok(programs::change("gpasswd", &[&format!("--members={members}")], root, &[name])?.succeeded())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_group() {
        let group = |members: &[&str]| {
            let members = members.iter().map(|member| member.to_string()).collect();
            Some(Group { name: "adm".into(), passwd: "x".into(), gid: 4, members })
        };
        assert_eq!(Group::parse("adm:x:4:syslog, ada"), group(&["syslog", "ada"]));
        assert_eq!(Group::parse("adm:x:4:"), group(&[]));
        for line in ["", "adm:x:4", "adm:x:four:", "+::::", "# adm"] {
            assert_eq!(Group::parse(line), None, "{line}");
        }
    }
}
