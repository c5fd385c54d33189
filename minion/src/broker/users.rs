//! `brine:host/metadata`: names of users and groups as the system looks them up (nsswitch), cached for a minute; their
//! numbers; and the line of configuration that would grant a directory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::value::{Value, list};
use brine_sandbox::{Broker as _, Caller, DirectoriesOp, Directory, HostError, RefusedCall, UsersOp};
use nix::unistd::{Gid, Group, Uid, User};

use super::slow::Slow;
use super::{MinionBroker, Perform};

/// Age at which a cached name is looked up again.
const FRESH: Duration = Duration::from_secs(60);
/// Upper bound on cached names: more than the owners of the files in one directory.
const MAX_NAMES: usize = 4_096;
/// Upper bound on look-ups at once.
const MAX_QUESTIONS: usize = 8;
/// The time for one look-up: a site's user directory may be away.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Number {
    User(u32),
    Group(u32),
}

impl Perform<UsersOp> for MinionBroker {
    async fn perform(&self, _: &Caller, op: UsersOp) -> Result<Value, HostError> {
        self.users.answer(op).await
    }
}

impl Perform<DirectoriesOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: DirectoriesOp) -> Result<Value, HostError> {
        let DirectoriesOp::Line { path, wanted } = op;
        // Who walks down to a granted directory looks at its parents first.
        let parent = Directory { path: wanted.clone(), writable: false };
        let leads = |granted: &Directory| parent.rest(&granted.path).is_some();
        if !caller.grants.direct.directories.iter().any(leads) {
            let what = format!("read {wanted}");
            let line = || caller.reading_line(&wanted);
            self.refused(&RefusedCall { job: &caller.job, module: caller.module.as_str(), what: &what, line: &line });
        }
        Ok(Value::from(caller.directory_line(&path, false)))
    }
}

/// Looks up names and caches them.
pub(super) struct Users {
    known: Mutex<HashMap<Number, (Instant, Option<String>)>>,
    slow: Slow,
}

impl Users {
    pub(super) fn new() -> Self {
        Self { known: Mutex::new(HashMap::new()), slow: Slow::new(MAX_QUESTIONS, PATIENCE) }
    }

    pub(super) async fn answer(&self, op: UsersOp) -> Result<Value, HostError> {
        match op {
            UsersOp::UserName { uid } => self.name(Number::User(uid), format!("the name of the user {uid}")).await,
            UsersOp::GroupName { gid } => self.name(Number::Group(gid), format!("the name of the group {gid}")).await,
            UsersOp::Account { user } => {
                let what = format!("the user {user}");
                let found = self.slow.ask(&what, move || User::from_name(&user)).await?;
                let user = found.map_err(|error| not_looked_up(&what, error))?;
                Ok(user.map_or(Value::Nil, |user| list([user.uid.as_raw(), user.gid.as_raw()])))
            }
            UsersOp::GroupId { group } => {
                let what = format!("the group {group}");
                let found = self.slow.ask(&what, move || Group::from_name(&group)).await?;
                let group = found.map_err(|error| not_looked_up(&what, error))?;
                Ok(group.map_or(Value::Nil, |group| Value::from(group.gid.as_raw())))
            }
        }
    }

    async fn name(&self, number: Number, what: String) -> Result<Value, HostError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
        let name = match known {
            Some((since, name)) if since.elapsed() < FRESH => name,
            _ => {
                let found = self.slow.ask(&what, move || look_up(number)).await?;
                let name = found.map_err(|error| not_looked_up(&what, error))?;
                // A user that is missing may be made by the next state.
                if name.is_some() {
                    self.remember(number, name.clone());
                }
                name
            }
        };
        Ok(name.map_or(Value::Nil, Value::from))
    }

    fn remember(&self, number: Number, name: Option<String>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_NAMES {
            known.retain(|_, (since, _)| since.elapsed() < FRESH);
        }
        if known.len() >= MAX_NAMES {
            known.clear();
        }
        known.insert(number, (Instant::now(), name));
    }
}

fn not_looked_up(what: &str, error: nix::Error) -> HostError {
    HostError::Failed(format!("{what} cannot be looked up: {}", error.desc()))
}

fn look_up(number: Number) -> nix::Result<Option<String>> {
    Ok(match number {
        Number::User(uid) => User::from_uid(Uid::from_raw(uid))?.map(|user| user.name),
        Number::Group(gid) => Group::from_gid(Gid::from_raw(gid))?.map(|group| group.name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_are_found_and_remembered_within_bounds() {
        let users = Users::new();
        let root = users.answer(UsersOp::UserName { uid: 0 }).await.unwrap();
        assert_eq!(root, Value::from("root"));
        assert_eq!(users.answer(UsersOp::GroupName { gid: 0 }).await.unwrap(), Value::from("root"));
        assert_eq!(users.answer(UsersOp::UserName { uid: u32::MAX - 7 }).await.unwrap(), Value::Nil);
        assert_eq!(users.known.lock().unwrap().len(), 2, "what is missing may come");
        let account = |user: &str| UsersOp::Account { user: user.to_owned() };
        assert_eq!(users.answer(account("root")).await.unwrap(), list([0, 0]));
        assert_eq!(users.answer(account("no such user")).await.unwrap(), Value::Nil);
        let group = |group: &str| UsersOp::GroupId { group: group.to_owned() };
        assert_eq!(users.answer(group("root")).await.unwrap(), Value::from(0));
        assert_eq!(users.answer(group("no such group")).await.unwrap(), Value::Nil);
        users.remember(Number::User(0), Some("remembered".to_owned()));
        assert_eq!(users.answer(UsersOp::UserName { uid: 0 }).await.unwrap(), Value::from("remembered"));
        for uid in 0..10_000 {
            users.remember(Number::User(uid), None);
        }
        assert!(users.known.lock().unwrap().len() <= MAX_NAMES);
    }
}
