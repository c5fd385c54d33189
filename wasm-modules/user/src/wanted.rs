//! How a user is to be, as `user.present` says it.

use brine_accounts::shadow::Age;
use brine_guest::{Result, Value};

/// The arguments of `user.present`. What is None is left as it is.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub name: String,
    pub uid: Value,
    pub gid: Value,
    pub usergroup: Option<bool>,
    pub groups: Option<Vec<String>>,
    pub optional_groups: Option<Vec<String>>,
    pub remove_groups: bool,
    pub home: Option<String>,
    pub createhome: bool,
    pub persist_home: bool,
    pub password: Option<String>,
    pub enforce_password: bool,
    pub empty_password: bool,
    pub shell: Option<String>,
    pub unique: bool,
    pub system: bool,
    /// Full name, room number, telephone numbers at work and at home, and the rest.
    pub gecos: [Option<String>; 5],
    /// With the key of the change, in Salt's order.
    pub ages: [(Age, &'static str, Value); 6],
    pub nologinit: bool,
    pub allow_uid_change: bool,
    pub allow_gid_change: bool,
    pub password_lock: Option<bool>,
    pub local: bool,
}

impl Wanted {
    /// With `local`, only the files are looked at.
    pub(crate) fn root(&self) -> Option<&'static str> {
        self.local.then_some("/")
    }

    /// What keeps a part of the full name from being one: the comma between the parts.
    pub(crate) fn check(&self) -> Result<()> {
        match self.gecos.iter().take(3).flatten().find(|part| part.contains(',')) {
            Some(part) => Err(format!("Unsupported char ',' in {part}")),
            None => Ok(()),
        }
    }
}
