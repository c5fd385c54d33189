//! The states `group.present` and `group.absent`.

use brine_accounts::groups::{self, Group, New};
use brine_accounts::values::{flag, integer, names, set, value};
use brine_guest::states::{StateResult, is_dry_run, no_changes};
use brine_guest::{Result, Value};

use crate::exports::states::Guest;
use crate::{Data, Module};

/// How a group is to be.
struct Wanted {
    name: String,
    gid: Value,
    addusers: Option<Vec<String>>,
    delusers: Option<Vec<String>>,
    members: Option<Vec<String>>,
    non_unique: bool,
    local: bool,
}

/// A difference.
#[derive(Debug, Clone, PartialEq)]
enum Change {
    Gid(i64),
    /// The number that is wanted is none.
    Invalid,
    Members(Vec<String>),
    Add(Vec<String>),
    /// `true` if it is all of them, because none is wanted.
    Remove(Vec<String>, bool),
}

impl Guest for Module {
    fn present(
        name: String,
        gid: Option<Data>,
        system: Option<Data>,
        addusers: Option<Data>,
        delusers: Option<Data>,
        members: Option<Data>,
        non_unique: Option<Data>,
        local: Option<Data>,
    ) -> Result<StateResult> {
        let wanted = Wanted {
            name,
            gid: value(gid.as_ref())?,
            addusers: names(addusers.as_ref(), "addusers")?,
            delusers: names(delusers.as_ref(), "delusers")?,
            members: names(members.as_ref(), "members")?,
            non_unique: flag(non_unique.as_ref(), false)?,
            local: flag(local.as_ref(), false)?,
        };
        present(&wanted, flag(system.as_ref(), false)?)
    }

    fn absent(name: String, local: Option<Data>) -> Result<StateResult> {
        let local = flag(local.as_ref(), false)?;
        if groups::find(&name, local.then_some("/"))?.is_none() {
            return Ok(StateResult::good("Group not present"));
        }
        if is_dry_run() {
            return Ok(StateResult::would(format!("Group {name} is set for removal"), no_changes()));
        }
        if !groups::delete(&name, None, local)? {
            return Ok(StateResult::bad(format!("Failed to remove group {name}")));
        }
        Ok(StateResult::changed(format!("Removed group {name}"), Value::dict([(name.as_str(), "".into())])))
    }
}

fn present(wanted: &Wanted, system: bool) -> Result<StateResult> {
    let refused = |comment: &str| Ok(StateResult::new(None, comment, no_changes()));
    if wanted.members.is_some() && (wanted.addusers.is_some() || wanted.delusers.is_some()) {
        return refused(
            "Error: Conflicting options \"members\" with \"addusers\" and/or \"delusers\" can not be used together. ",
        );
    }
    let removed = |user: &String| wanted.delusers.iter().flatten().any(|other| other == user);
    if wanted.addusers.iter().flatten().any(removed) {
        return refused("Error. Same user(s) can not be added and deleted simultaneously");
    }
    let Some(group) = find(wanted)? else { return make(wanted, system) };
    let changes = changes(wanted, &group);
    if changes.is_empty() {
        return Ok(StateResult::good(format!("Group {} is present and up to date", wanted.name)));
    }
    let mut comment = "The following group attributes are set to be changed:\n".to_owned();
    for (key, value) in changes.iter().flat_map(Change::texts) {
        comment.push_str(&format!("{key}: {value}\n"));
    }
    if is_dry_run() {
        return Ok(StateResult::would(comment, no_changes()));
    }
    changes.iter().try_for_each(|change| apply(wanted, change))?;
    let left = left(wanted)?;
    if left.is_empty() {
        let all = Value::dict([("Final", "All changes applied successfully".into())]);
        return Ok(StateResult::changed(comment, all));
    }
    comment.push_str("Some changes could not be applied");
    Ok(StateResult::new(Some(false), comment, failed(&left)))
}

fn find(wanted: &Wanted) -> Result<Option<Group>> {
    groups::find(&wanted.name, wanted.local.then_some("/"))
}

/// What is different now; if the group is gone, nothing.
fn left(wanted: &Wanted) -> Result<Vec<Change>> {
    Ok(find(wanted)?.map_or_else(Vec::new, |group| changes(wanted, &group)))
}

fn changes(wanted: &Wanted, group: &Group) -> Vec<Change> {
    let mut changes = Vec::new();
    if wanted.gid.truthy() {
        match integer(&wanted.gid) {
            None => return vec![Change::Invalid],
            Some(gid) if gid != group.gid => changes.push(Change::Gid(gid)),
            Some(_) => {}
        }
    }
    let now = set(group.members.clone());
    let users = |users: &Option<Vec<String>>| users.clone().unwrap_or_default();
    match &wanted.members {
        Some(members) if set(members.clone()) == now => {}
        Some(members) if members.is_empty() => changes.push(Change::Remove(now.clone(), true)),
        Some(members) => changes.push(Change::Members(members.clone())),
        None => {}
    }
    let mut add = users(&wanted.addusers);
    add.retain(|user| !now.contains(user));
    if !add.is_empty() {
        changes.push(Change::Add(add));
    }
    let mut remove = users(&wanted.delusers);
    remove.retain(|user| now.contains(user));
    if !remove.is_empty() {
        changes.push(Change::Remove(remove, false));
    }
    changes
}

impl Change {
    /// The keys and values of Salt's dict of changes.
    fn values(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Gid(gid) => vec![("gid", Value::Int(*gid))],
            Self::Invalid => vec![("result", false.into()), ("comment", "Invalid gid".into())],
            Self::Members(users) => vec![("members", users.clone().into())],
            Self::Add(users) => vec![("addusers", users.clone().into())],
            Self::Remove(users, _) => vec![("delusers", users.clone().into())],
        }
    }

    /// The same as Python writes them: all members are a set.
    fn texts(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Remove(users, true) => {
                let list = Value::from(users.clone()).to_text();
                vec![("delusers", format!("{{{}}}", list.trim_start_matches('[').trim_end_matches(']')))]
            }
            other => other.values().into_iter().map(|(key, value)| (key, value.to_text())).collect(),
        }
    }
}

fn failed(left: &[Change]) -> Value {
    Value::dict([("Failed", Value::dict(left.iter().flat_map(Change::values)))])
}

fn apply(wanted: &Wanted, change: &Change) -> Result<()> {
    let name = wanted.name.as_str();
    match change {
        Change::Gid(_) => {
            groups::set_gid(name, &wanted.gid, None, wanted.non_unique)?;
        }
        Change::Invalid => {}
        Change::Members(users) => {
            groups::set_members(name, &users.join(","), None)?;
        }
        Change::Add(users) => {
            for user in users {
                groups::add_member(name, user, None)?;
            }
        }
        Change::Remove(users, _) => {
            for user in users {
                groups::remove_member(name, user, None)?;
            }
        }
    }
    Ok(())
}

/// Makes a group.
fn make(wanted: &Wanted, system: bool) -> Result<StateResult> {
    let name = wanted.name.as_str();
    if is_dry_run() {
        return Ok(StateResult::would(format!("Group {name} set to be added"), no_changes()));
    }
    if wanted.gid != Value::None && !wanted.non_unique {
        let taken = groups::all(None)?.into_iter().find(|group| wanted.gid == Value::Int(group.gid));
        if let Some(other) = taken {
            return Ok(StateResult::bad(format!(
                "Group {name} is not present but gid {} is already taken by group {}",
                other.gid, other.name
            )));
        }
    }
    let new = New { gid: wanted.gid.clone(), system, non_unique: wanted.non_unique, local: wanted.local };
    if !groups::add(name, &new, None)? {
        return Ok(StateResult::bad(format!("Failed to create new group {name}")));
    }
    let members = [&wanted.addusers, &wanted.members].into_iter().flatten().find(|users| !users.is_empty());
    if let Some(members) = members {
        groups::set_members(name, &members.join(","), None)?;
    }
    let left = left(wanted)?;
    if left.is_empty() {
        let made = find(wanted)?.map_or_else(no_changes, Group::value);
        return Ok(StateResult::changed(format!("New group {name} created"), made));
    }
    let comment = format!("Group {name} has been created but, some changes could not be applied");
    Ok(StateResult::new(Some(false), comment, failed(&left)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn what_differs_is_a_change() {
        let group = Group { name: "staff".into(), passwd: "x".into(), gid: 50, members: names(&["ada", "bob"]) };
        let wanted = || Wanted {
            name: "staff".into(),
            gid: Value::None,
            addusers: None,
            delusers: None,
            members: None,
            non_unique: false,
            local: false,
        };
        let found = |wanted: Wanted| changes(&wanted, &group);
        assert_eq!(found(wanted()), []);
        assert_eq!(found(Wanted { gid: "50".into(), ..wanted() }), []);
        assert_eq!(found(Wanted { gid: Value::Int(51), ..wanted() }), [Change::Gid(51)]);
        assert_eq!(found(Wanted { gid: "many".into(), ..wanted() }), [Change::Invalid]);
        assert_eq!(found(Wanted { members: Some(names(&["bob", "ada"])), ..wanted() }), []);
        let none = found(Wanted { members: Some(Vec::new()), ..wanted() });
        assert_eq!(none, [Change::Remove(names(&["ada", "bob"]), true)]);
        assert_eq!(none[0].texts(), [("delusers", "{'ada', 'bob'}".to_owned())]);
        let both = Wanted { addusers: Some(names(&["eve", "ada"])), delusers: Some(names(&["bob", "x"])), ..wanted() };
        assert_eq!(found(both), [Change::Add(names(&["eve"])), Change::Remove(names(&["bob"]), false)]);
    }
}
