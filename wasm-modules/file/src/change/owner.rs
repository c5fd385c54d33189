//! Owners as Salt's users write them: a name or a number.

use brine_guest::Value;
use brine_guest::changes::{Entry, Owner};
use brine_guest::host::metadata;

/// A user and a group that are asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) user: Value,
    pub(crate) group: Value,
}

impl Wanted {
    /// Whether a file has another user. As in Salt, `0` and an empty name ask for none.
    pub(crate) fn changes_user(&self, entry: &Entry) -> bool {
        self.user.truthy() && !is(&self.user, entry.user.as_deref(), entry.uid)
    }

    pub(crate) fn changes_group(&self, entry: &Entry) -> bool {
        self.group.truthy() && !is(&self.group, entry.group.as_deref(), entry.gid)
    }

    /// For the host: who is asked for.
    pub(crate) fn owner(&self) -> Owner {
        let name = |value: &Value| value.truthy().then(|| value.to_text());
        Owner { user: name(&self.user), group: name(&self.group) }
    }

    /// Salt's line about a user or group that this host does not know. What a file has already is known.
    pub(crate) fn missing(&self, has: Option<&Entry>) -> Option<String> {
        let known_user = has.is_some_and(|entry| !self.changes_user(entry));
        let known_group = has.is_some_and(|entry| !self.changes_group(entry));
        let mut missing = String::new();
        if self.user.truthy() && !known_user && uid(&self.user).is_none() {
            missing += &format!("User {} is not available ", self.user.to_text());
        }
        if self.group.truthy() && !known_group && gid(&self.group).is_none() {
            missing += &format!("Group {} is not available", self.group.to_text());
        }
        (!missing.is_empty()).then_some(missing)
    }
}

/// Whether a file's user or group is the one that is asked for.
pub(crate) fn is(wanted: &Value, name: Option<&str>, number: u32) -> bool {
    match wanted {
        Value::Text(wanted) => name == Some(wanted),
        Value::Int(wanted) => *wanted == i64::from(number),
        _ => false,
    }
}

/// The name, or the number of a user without a name.
pub(crate) fn user(entry: &Entry) -> Value {
    entry.user.clone().map_or(Value::Int(entry.uid.into()), Value::from)
}

pub(crate) fn group(entry: &Entry) -> Value {
    entry.group.clone().map_or(Value::Int(entry.gid.into()), Value::from)
}

/// The number of a user; none if this host does not know the name.
pub(crate) fn uid(user: &Value) -> Option<u32> {
    match user {
        Value::Int(number) => u32::try_from(*number).ok(),
        other => metadata::find_user(&other.to_text()).map(|account| account.uid),
    }
}

pub(crate) fn gid(group: &Value) -> Option<u32> {
    match group {
        Value::Int(number) => u32::try_from(*number).ok(),
        other => metadata::find_group(&other.to_text()),
    }
}

/// The name of a user's own group, or its number.
pub(crate) fn group_of(user: &Value) -> Value {
    let account = match user {
        Value::Int(number) => {
            let name = u32::try_from(*number).ok().and_then(metadata::user_name);
            name.and_then(|name| metadata::find_user(&name))
        }
        other => metadata::find_user(&other.to_text()),
    };
    let gid = account.map_or(0, |account| account.gid);
    metadata::group_name(gid).map_or(Value::Int(gid.into()), Value::from)
}
