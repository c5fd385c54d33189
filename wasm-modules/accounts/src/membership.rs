//! Which groups a user is in.

use brine_guest::{Result, Value};

use crate::groups::{Group, all, local, numbered};
use crate::programs;
use crate::users::{self, User};
use crate::values::set;

/// Local ids from here on do not count in Salt's bound between local and remote groups.
const LOCAL: i64 = 65_000;
/// The parts of the field with the full name.
pub const GECOS: [&str; 5] = ["fullname", "roomnumber", "workphone", "homephone", "other"];

/// The sorted names of the groups of a user, its own group among them: `user.list_groups`.
///
/// # Errors
/// When groups cannot be read.
pub fn of_user(user: &str) -> Result<Vec<String>> {
    if let Some(account) = users::find(user, None)? {
        let mut gids = programs::group_ids(user)?;
        gids.push(account.gid);
        let groups = local(None)?;
        let most = groups.iter().map(|group| group.gid).filter(|gid| *gid < LOCAL).max();
        let is_local = |gid: i64| most.is_some_and(|most| gid <= most);
        let here = groups.iter().filter(|group| is_local(group.gid) && gids.contains(&group.gid));
        let mut names: Vec<String> = here.map(|group| group.name.clone()).collect();
        let mut complete = true;
        for gid in gids.into_iter().filter(|gid| !is_local(*gid)) {
            match numbered(gid)? {
                Some(group) => names.push(group.name),
                None => complete = false,
            }
        }
        if complete {
            return Ok(set(names));
        }
    }
    let member = |group: &Group| group.members.iter().any(|member| member == user);
    let mut names: Vec<String> = all(None)?.into_iter().filter(|group| member(group)).map(|group| group.name).collect();
    if let Some(account) = users::find(user, None)? {
        names.extend(numbered(account.gid)?.map(|group| group.name));
    }
    Ok(set(names))
}

/// What `user.info` returns: an empty dict if there is no such user.
///
/// # Errors
/// When users cannot be read.
pub fn info(name: &str, root: Option<&str>) -> Result<Value> {
    users::find(name, root)?.map_or_else(|| Ok(Value::Dict(Vec::new())), info_of)
}

/// What `user.info` returns, with the user's groups.
///
/// # Errors
/// When groups cannot be read.
pub fn info_of(user: User) -> Result<Value> {
    let groups = of_user(&user.name)?;
    let gecos = user.gecos();
    let mut info = vec![
        ("gid", Value::Int(user.gid)),
        ("groups", groups.into()),
        ("home", user.home.into()),
        ("name", user.name.into()),
        ("passwd", user.passwd.into()),
        ("shell", user.shell.into()),
        ("uid", Value::Int(user.uid)),
    ];
    info.extend(GECOS.into_iter().zip(gecos.map(Value::from)));
    Ok(Value::dict(info))
}
