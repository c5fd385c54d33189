//! The module `group`: this host's groups, and the states `group.present` and `group.absent`. The functions and their
//! documentation are in `wit/world.wit`.
//!
//! - [`states`]: the states

wit_bindgen::generate!({
    world: "group",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/process@1.0.0": brine_guest::host::process,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
    },
    generate_all,
});

mod states;

use brine_accounts::groups::{self, Group, New};
use brine_accounts::values::{flag, value};
use brine_guest::Value;

struct Module;

impl Guest for Module {
    fn add(
        name: String,
        gid: Option<Data>,
        system: Option<Data>,
        root: Option<String>,
        non_unique: Option<Data>,
        local: Option<Data>,
    ) -> Result<bool, String> {
        let new = New {
            gid: value(gid.as_ref())?,
            system: flag(system.as_ref(), false)?,
            non_unique: flag(non_unique.as_ref(), false)?,
            local: flag(local.as_ref(), false)?,
        };
        groups::add(&name, &new, root.as_deref())
    }

    fn delete(name: String, root: Option<String>, local: Option<Data>) -> Result<bool, String> {
        groups::delete(&name, root.as_deref(), flag(local.as_ref(), false)?)
    }

    fn info(name: String, root: Option<String>) -> Result<Data, String> {
        Ok(groups::find(&name, root.as_deref())?.map_or_else(|| Value::Dict(Vec::new()), Group::value).into())
    }

    fn getent(_refresh: Option<Data>, root: Option<String>) -> Result<Vec<Data>, String> {
        Ok(groups::all(root.as_deref())?.into_iter().map(|group| group.value().into()).collect())
    }

    fn chgid(name: String, gid: Data, root: Option<String>, non_unique: Option<Data>) -> Result<bool, String> {
        groups::set_gid(&name, &gid.value()?, root.as_deref(), flag(non_unique.as_ref(), false)?)
    }

    fn adduser(name: String, username: String, root: Option<String>) -> Result<bool, String> {
        groups::add_member(&name, &username, root.as_deref())
    }

    fn deluser(name: String, username: String, root: Option<String>) -> Result<bool, String> {
        groups::remove_member(&name, &username, root.as_deref())
    }

    fn members(name: String, members_list: String, root: Option<String>) -> Result<bool, String> {
        groups::set_members(&name, &members_list, root.as_deref())
    }
}

export!(Module);
