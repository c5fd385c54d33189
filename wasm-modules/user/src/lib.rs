//! The module `user`: this host's users, and the states `user.present` and `user.absent`. The functions and their
//! documentation are in `wit/world.wit`.
//!
//! - [`states`]: the states
//! - [`wanted`]: how a user is to be, as a state says it
//! - [`compare`]: what of that is different

wit_bindgen::generate!({
    world: "user",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/process@1.0.0": brine_guest::host::process,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
    },
    generate_all,
});

mod compare;
mod states;
mod wanted;

use brine_accounts::useradd::{self, Attribute, New};
use brine_accounts::values::{flag, names, text, value};
use brine_accounts::{membership, users};
use brine_guest::Value;

struct Module;

/// The places of the parts of the field with the full name.
const FULLNAME: usize = 0;
const ROOMNUMBER: usize = 1;
const WORKPHONE: usize = 2;
const HOMEPHONE: usize = 3;
const OTHER: usize = 4;

impl Guest for Module {
    fn add(
        name: String,
        uid: Option<Data>,
        gid: Option<Data>,
        groups: Option<Data>,
        home: Option<String>,
        shell: Option<String>,
        unique: Option<Data>,
        system: Option<Data>,
        fullname: Option<Data>,
        roomnumber: Option<Data>,
        workphone: Option<Data>,
        homephone: Option<Data>,
        other: Option<Data>,
        createhome: Option<Data>,
        _loginclass: Option<Data>,
        nologinit: Option<Data>,
        root: Option<String>,
        usergroup: Option<Data>,
        local: Option<Data>,
    ) -> Result<bool, String> {
        let gecos = |part: &Option<Data>| Ok::<_, String>(text(part.as_ref())?.unwrap_or_default());
        let new = New {
            uid: value(uid.as_ref())?,
            gid: value(gid.as_ref())?,
            groups: match value(groups.as_ref())? {
                Value::Text(joined) => Some(split(&joined)),
                _ => names(groups.as_ref(), "groups")?,
            },
            home,
            shell,
            non_unique: !flag(unique.as_ref(), true)?,
            system: flag(system.as_ref(), false)?,
            gecos: [gecos(&fullname)?, gecos(&roomnumber)?, gecos(&workphone)?, gecos(&homephone)?, gecos(&other)?],
            no_home: !flag(createhome.as_ref(), true)?,
            nologinit: flag(nologinit.as_ref(), false)?,
            usergroup: usergroup.map(|usergroup| flag(Some(&usergroup), false)).transpose()?,
            local: flag(local.as_ref(), false)?,
        };
        useradd::add(&name, &new, root.as_deref())
    }

    fn delete(
        name: String,
        remove: Option<Data>,
        force: Option<Data>,
        root: Option<String>,
        local: Option<Data>,
    ) -> Result<bool, String> {
        let given = |argument: &Option<Data>| flag(argument.as_ref(), false);
        useradd::delete(&name, given(&remove)?, given(&force)?, root.as_deref(), given(&local)?)
    }

    fn getent(_refresh: Option<Data>, root: Option<String>) -> Result<Vec<Data>, String> {
        users::all(root.as_deref())?.into_iter().map(|user| Ok(membership::info_of(user)?.into())).collect()
    }

    fn chuid(name: String, uid: Data, root: Option<String>) -> Result<bool, String> {
        useradd::set(&name, Attribute::Uid, &uid.value()?, root.as_deref())
    }

    fn chgid(name: String, gid: Data, root: Option<String>) -> Result<bool, String> {
        useradd::set(&name, Attribute::Gid, &gid.value()?, root.as_deref())
    }

    fn chshell(name: String, shell: String, root: Option<String>) -> Result<bool, String> {
        useradd::set(&name, Attribute::Shell, &shell.into(), root.as_deref())
    }

    fn chhome(name: String, home: String, persist: Option<Data>, root: Option<String>) -> Result<bool, String> {
        let attribute = if flag(persist.as_ref(), false)? { Attribute::MovedHome } else { Attribute::Home };
        useradd::set(&name, attribute, &home.into(), root.as_deref())
    }

    fn chgroups(name: String, groups: Data, append: Option<Data>, root: Option<String>) -> Result<bool, String> {
        let groups = match groups.value()? {
            Value::Text(joined) => split(&joined),
            _ => names(Some(&groups), "groups")?.unwrap_or_default(),
        };
        useradd::set_groups(&name, &groups, flag(append.as_ref(), false)?, root.as_deref())
    }

    fn chfullname(name: String, fullname: Option<Data>, root: Option<String>) -> Result<bool, String> {
        gecos(&name, FULLNAME, fullname, root)
    }

    fn chroomnumber(name: String, roomnumber: Option<Data>, root: Option<String>) -> Result<bool, String> {
        gecos(&name, ROOMNUMBER, roomnumber, root)
    }

    fn chworkphone(name: String, workphone: Option<Data>, root: Option<String>) -> Result<bool, String> {
        gecos(&name, WORKPHONE, workphone, root)
    }

    fn chhomephone(name: String, homephone: Option<Data>, root: Option<String>) -> Result<bool, String> {
        gecos(&name, HOMEPHONE, homephone, root)
    }

    fn chother(name: String, other: Option<Data>, root: Option<String>) -> Result<bool, String> {
        gecos(&name, OTHER, other, root)
    }

    fn chloginclass(_name: String, _loginclass: Data, _root: Option<String>) -> bool {
        false
    }

    fn get_loginclass(_name: String) -> bool {
        false
    }

    fn info(name: String, root: Option<String>) -> Result<Data, String> {
        Ok(membership::info(&name, root.as_deref())?.into())
    }

    fn primary_group(name: String) -> Result<String, String> {
        users::primary_group(&name)
    }

    fn list_groups(name: String) -> Result<Vec<String>, String> {
        membership::of_user(&name)
    }

    fn list_users(root: Option<String>) -> Result<Vec<String>, String> {
        let mut names: Vec<String> = users::all(root.as_deref())?.into_iter().map(|user| user.name).collect();
        names.sort();
        Ok(names)
    }

    fn rename(name: String, new_name: String, root: Option<String>) -> Result<bool, String> {
        if users::find(&new_name, root.as_deref())?.is_some() {
            return Err(format!("User '{new_name}' already exists"));
        }
        useradd::set(&name, Attribute::Name, &new_name.into(), root.as_deref())
    }
}

fn split(joined: &str) -> Vec<String> {
    joined.split(',').map(str::to_owned).collect()
}

fn gecos(name: &str, place: usize, part: Option<Data>, root: Option<String>) -> Result<bool, String> {
    useradd::set_gecos(name, place, &text(part.as_ref())?.unwrap_or_default(), root.as_deref())
}

export!(Module);
