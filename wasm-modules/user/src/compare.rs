//! What is different between a user and how it is to be.

use brine_accounts::membership::GECOS;
use brine_accounts::shadow::{self, Shadow};
use brine_accounts::users::{self, User};
use brine_accounts::values::set;
use brine_accounts::{groups, is_directory, membership};
use brine_guest::{Result, Value};

use crate::wanted::Wanted;

/// What is shown in the place of a hash.
pub(crate) const REDACTED: &str = "XXX-REDACTED-XXX";

/// A difference.
#[derive(Clone, PartialEq)]
pub(crate) enum Change {
    Uid(Value),
    Gid(Value),
    Groups(Vec<String>),
    Home(String),
    /// The home is not there.
    HomeDoesNotExist(String),
    Shell(String),
    Password,
    EmptyPassword,
    /// By its place among those wanted.
    Age(usize),
    PasswordLock(bool),
    /// By its place among those wanted.
    Gecos(usize),
}

impl Change {
    /// The key and the value that Salt shows for it.
    pub(crate) fn shown(&self, wanted: &Wanted) -> (&'static str, Value) {
        match self {
            Self::Uid(uid) => ("uid", uid.clone()),
            Self::Gid(gid) => ("gid", gid.clone()),
            Self::Groups(groups) => ("groups", groups.clone().into()),
            Self::Home(home) => ("home", home.as_str().into()),
            Self::HomeDoesNotExist(home) => ("homeDoesNotExist", home.as_str().into()),
            Self::Shell(shell) => ("shell", shell.as_str().into()),
            Self::Password => ("passwd", REDACTED.into()),
            Self::EmptyPassword => ("empty_password", true.into()),
            Self::Age(place) => (wanted.ages[*place].1, wanted.ages[*place].2.clone()),
            Self::PasswordLock(locked) => ("password_lock", (*locked).into()),
            Self::Gecos(place) => (GECOS[*place], wanted.gecos[*place].clone().into()),
        }
    }
}

/// What is different; none if there is no such user. `gid` is that of the group that the user is to have, and `optional`
/// are the optional groups that are there.
///
/// # Errors
/// When accounts cannot be read, or a number would change that may not.
pub(crate) fn changes(wanted: &Wanted, gid: &Value, optional: &[String]) -> Result<Option<Vec<Change>>> {
    let Some(user) = users::find(&wanted.name, wanted.root())? else { return Ok(None) };
    let shadow = shadow::find(&wanted.name, None)?;
    let mut changes = Vec::new();
    if wanted.uid.truthy() && wanted.uid != Value::Int(user.uid) {
        changes.push(Change::Uid(wanted.uid.clone()));
    }
    let own = Value::Int(user.gid);
    if *gid != Value::None && *gid != own && groups::gid(gid)? != Some(user.gid) {
        changes.push(Change::Gid(gid.clone()));
    }
    let names = membership::of_user(&user.name)?;
    changes.extend(changed_groups(wanted, &user, names, gid, optional)?.map(Change::Groups));
    if let Some(home) = wanted.home.as_ref().filter(|home| !home.is_empty() && **home != user.home) {
        changes.push(Change::Home(home.clone()));
    }
    if wanted.createhome {
        let home = wanted.home.as_ref().filter(|home| !home.is_empty()).unwrap_or(&user.home);
        if !is_directory(home)? {
            changes.push(Change::HomeDoesNotExist(home.clone()));
        }
    }
    if let Some(shell) = wanted.shell.as_ref().filter(|shell| !shell.is_empty() && **shell != user.shell) {
        changes.push(Change::Shell(shell.clone()));
    }
    changes.extend(changed_password(wanted, shadow.as_ref()));
    for (place, (wanted, now)) in wanted.gecos.iter().zip(user.gecos()).enumerate() {
        if wanted.as_ref().is_some_and(|wanted| *wanted != now) {
            changes.push(Change::Gecos(place));
        }
    }
    let mut errors = String::new();
    for change in &changes {
        let (what, from, to) = match change {
            Change::Uid(uid) if !wanted.allow_uid_change => ("uid", user.uid, uid),
            Change::Gid(_) if !wanted.allow_gid_change => ("gid", user.gid, gid),
            _ => continue,
        };
        errors.push_str(&format!(
            "\n- Changing {what} ({from} -> {}) not permitted, set allow_{what}_change to True to force this change. Note \
             that this will not change file ownership.",
            to.to_text()
        ));
    }
    match errors.is_empty() {
        true => Ok(Some(changes)),
        false => Err(format!("Encountered error checking for needed changes. Additional info follows:\n{errors}")),
    }
}

fn changed_password(wanted: &Wanted, shadow: Option<&Shadow>) -> Vec<Change> {
    let now = shadow.map_or("", |shadow| shadow.passwd.as_str());
    let mut changes = Vec::new();
    let may = now == shadow::UNSET || wanted.enforce_password;
    let password = wanted.password.as_ref().filter(|password| !password.is_empty());
    if password.is_some_and(|password| !wanted.empty_password && may && password != now) {
        changes.push(Change::Password);
    }
    if wanted.empty_password && !now.is_empty() {
        changes.push(Change::EmptyPassword);
    }
    for (place, (age, key, value)) in wanted.ages.iter().enumerate() {
        let said = if *key == "expire" { value.truthy() } else { *value != Value::None };
        let differs = shadow.is_none_or(|shadow| *value != Value::Int(shadow.age(*age)));
        if said && differs {
            changes.push(Change::Age(place));
        }
    }
    if let Some(locked) = wanted.password_lock.filter(|locked| *locked != now.starts_with('!')) {
        changes.push(Change::PasswordLock(locked));
    }
    changes
}

/// The groups that the user is to be in, if those that it is in have to change. Its own group does not count, nor one of
/// its name unless it is wanted; groups with the same number are one.
fn changed_groups(
    wanted: &Wanted,
    user: &User,
    mut now: Vec<String>,
    gid: &Value,
    optional: &[String],
) -> Result<Option<Vec<String>>> {
    let mut names = set([wanted.groups.as_deref().unwrap_or_default(), optional].concat());
    let gids = now.iter().map(|name| groups::gid(&name.as_str().into())).collect::<Result<Vec<_>>>()?;
    // The names of the user's groups that share a number with another one of them.
    let twins = |name: &str| -> Vec<String> {
        let Some(own) = now.iter().position(|other| other == name).map(|place| gids[place]) else {
            return vec![name.to_owned()];
        };
        now.iter().zip(&gids).filter(|(_, gid)| **gid == own).map(|(name, _)| name.clone()).collect()
    };
    if !wanted.remove_groups || wanted.groups.is_none() && optional.is_empty() {
        names = set([&names[..], &now].concat());
    }
    let own = groups::name(&Value::Int(user.gid))?;
    let default = match gid {
        Value::None => own.clone(),
        gid => groups::name(gid)?,
    };
    let default_twins = default.as_deref().map(twins).unwrap_or_default();
    let own_twins = own.as_deref().filter(|_| own != default).map(twins).unwrap_or_default();
    let name_twins = if names.contains(&user.name) { Vec::new() } else { twins(&user.name) };
    now.retain(|name| !default_twins.contains(name) && !own_twins.contains(name));
    names.retain(|name| !default_twins.contains(name));
    if !names.contains(&user.name) {
        now.retain(|name| !name_twins.contains(name) && *name != user.name);
    }
    let differ =
        groups_differ(
            &now,
            &names,
            wanted.remove_groups,
            &|name| Ok(groups::find(name, None)?.map(|group| group.gid)),
        )?;
    Ok((differ && (!names.is_empty() || wanted.remove_groups)).then_some(names))
}

/// Whether the groups have to change. `gid` tells the number of a group: one that has the number of another is no
/// difference.
fn groups_differ(
    now: &[String],
    wanted: &[String],
    remove: bool,
    gid: &dyn Fn(&str) -> Result<Option<i64>>,
) -> Result<bool> {
    let missing = wanted.iter().filter(|name| !now.contains(name));
    let too_many = now.iter().filter(|name| remove && !wanted.contains(name));
    let different: Vec<&String> = missing.chain(too_many).collect();
    if different.is_empty() {
        return Ok(false);
    }
    let all = set([now, wanted].concat());
    let gids = all.iter().map(|name| Ok((name, gid(name)?))).collect::<Result<Vec<_>>>()?;
    for name in different {
        let own = gids.iter().find(|(other, _)| *other == name).and_then(|(_, gid)| *gid);
        let has_twin = gids.iter().any(|(other, gid)| *other != name && gid.is_some() && *gid == own);
        if !has_twin {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_differ_by_their_numbers() {
        let gid = |name: &str| -> Result<Option<i64>> {
            Ok(match name {
                "a" | "twin" => Some(1),
                "b" => Some(2),
                _ => None,
            })
        };
        let differ = |now: &[&str], wanted: &[&str], remove| {
            let own = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
            groups_differ(&own(now), &own(wanted), remove, &gid).unwrap()
        };
        assert!(!differ(&["a"], &["a"], true));
        assert!(differ(&["a"], &["b"], true));
        assert!(differ(&["a", "b"], &["a"], true));
        assert!(!differ(&["a", "b"], &["a"], false));
        assert!(differ(&["a"], &["a", "b"], false));
        assert!(!differ(&["a"], &["twin"], true));
        assert!(differ(&[], &["none"], true));
    }
}
