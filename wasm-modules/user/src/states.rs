//! The states `user.present` and `user.absent`.

use brine_accounts::hash::{self, Algorithm};
use brine_accounts::shadow::{self, Age};
use brine_accounts::useradd::{self, Attribute, New};
use brine_accounts::values::{flag, names, text, value};
use brine_accounts::{groups, is_directory, membership, users};
use brine_guest::host::log;
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Result, Value};

use crate::compare::{self, Change, REDACTED};
use crate::exports::states::Guest;
use crate::wanted::Wanted;
use crate::wasi::random::random::get_random_u64;
use crate::{Data, Module};

impl Guest for Module {
    fn present(
        name: String,
        uid: Option<Data>,
        gid: Option<Data>,
        usergroup: Option<Data>,
        groups: Option<Data>,
        optional_groups: Option<Data>,
        remove_groups: Option<Data>,
        home: Option<Data>,
        createhome: Option<Data>,
        persist_home: Option<Data>,
        password: Option<Data>,
        hash_password: Option<Data>,
        enforce_password: Option<Data>,
        empty_password: Option<Data>,
        shell: Option<Data>,
        unique: Option<Data>,
        system: Option<Data>,
        fullname: Option<Data>,
        roomnumber: Option<Data>,
        workphone: Option<Data>,
        homephone: Option<Data>,
        other: Option<Data>,
        _loginclass: Option<Data>,
        date: Option<Data>,
        mindays: Option<Data>,
        maxdays: Option<Data>,
        inactdays: Option<Data>,
        warndays: Option<Data>,
        expire: Option<Data>,
        _win_homedrive: Option<Data>,
        _win_profile: Option<Data>,
        _win_logonscript: Option<Data>,
        _win_description: Option<Data>,
        nologinit: Option<Data>,
        allow_uid_change: Option<Data>,
        allow_gid_change: Option<Data>,
        password_lock: Option<Data>,
        local: Option<Data>,
    ) -> Result<StateResult> {
        let given = |argument: &Option<Data>, default| flag(argument.as_ref(), default);
        let optional = |argument: &Option<Data>| -> Result<Option<bool>> {
            argument.as_ref().map(|argument| Ok(argument.value()?.truthy())).transpose()
        };
        let text = |argument: &Option<Data>| text(argument.as_ref());
        let value = |argument: &Option<Data>| value(argument.as_ref());
        let mut wanted = Wanted {
            uid: value(&uid)?,
            gid: value(&gid)?,
            usergroup: optional(&usergroup)?,
            groups: names(groups.as_ref(), "groups")?,
            optional_groups: names(optional_groups.as_ref(), "optional_groups")?,
            remove_groups: given(&remove_groups, true)?,
            home: text(&home)?,
            createhome: given(&createhome, true)?,
            persist_home: given(&persist_home, false)?,
            password: text(&password)?,
            enforce_password: given(&enforce_password, true)?,
            empty_password: given(&empty_password, false)?,
            shell: text(&shell)?,
            unique: given(&unique, true)?,
            system: given(&system, false)?,
            gecos: [text(&fullname)?, text(&roomnumber)?, text(&workphone)?, text(&homephone)?, text(&other)?],
            ages: [
                (Age::Changed, "date", value(&date)?),
                (Age::Min, "mindays", value(&mindays)?),
                (Age::Max, "maxdays", value(&maxdays)?),
                (Age::Inactive, "inactdays", value(&inactdays)?),
                (Age::Warn, "warndays", value(&warndays)?),
                (Age::Expire, "expire", value(&expire)?),
            ],
            nologinit: given(&nologinit, false)?,
            allow_uid_change: given(&allow_uid_change, false)?,
            allow_gid_change: given(&allow_gid_change, false)?,
            password_lock: optional(&password_lock)?,
            local: given(&local, false)?,
            name,
        };
        if given(&hash_password, false)? {
            hash_wanted(&mut wanted)?;
        }
        present(wanted)
    }

    fn absent(name: String, purge: Option<Data>, force: Option<Data>, local: Option<Data>) -> Result<StateResult> {
        let given = |argument: &Option<Data>| flag(argument.as_ref(), false);
        absent(&name, given(&purge)?, given(&force)?, given(&local)?)
    }
}

/// Makes a hash of the password, with the salt of the one that is there, so that it stays the same.
fn hash_wanted(wanted: &mut Wanted) -> Result<()> {
    let Some(password) = wanted.password.clone().filter(|password| !password.is_empty()) else { return Ok(()) };
    let now = shadow::find(&wanted.name, None)?.map(|shadow| shadow.passwd).unwrap_or_default();
    let parts: Vec<&str> = now.split('$').collect();
    let hashed = match parts[..] {
        [_, ident, salt, _] => hash::hash(&password, salt, Algorithm::identified(ident)?)?,
        _ => {
            let random = [get_random_u64().to_le_bytes(), get_random_u64().to_le_bytes()].concat();
            let random = random.try_into().map_err(|_| "no random numbers".to_owned())?;
            hash::hash(&password, &hash::salt(random), Algorithm::Sha512)?
        }
    };
    wanted.password = Some(hashed);
    Ok(())
}

fn present(mut wanted: Wanted) -> Result<StateResult> {
    if let Err(why) = wanted.check() {
        return Ok(StateResult::bad(why));
    }
    let exists = |name: &String| Ok(groups::find(name, None)?.is_some());
    let (here, missing) = split(wanted.groups.as_deref().unwrap_or_default(), exists)?;
    if !missing.is_empty() {
        if !is_dry_run() {
            return Ok(StateResult::bad(format!("The following group(s) are not present: {}", missing.join(","))));
        }
        // What is to come before this state may make them.
        wanted.groups = Some(here);
    }
    let (optional, none) = split(wanted.optional_groups.as_deref().unwrap_or_default(), exists)?;
    for group in none {
        let said = format!("Optional group \"{group}\" for user \"{}\" is not present", wanted.name);
        log::write(log::Level::Debug, &said);
    }
    for group in wanted.groups.iter().flatten() {
        if wanted.optional_groups.iter().flatten().any(|other| other == group) {
            let name = &wanted.name;
            let said = format!("Group \"{group}\" specified in both groups and optional_groups for user {name}");
            log::write(log::Level::Warning, &said);
        }
    }
    let own = wanted.name.as_str().into();
    let has_own = wanted.usergroup == Some(true) && groups::gid(&own)?.is_some();
    let gid = if has_own { own } else { wanted.gid.clone() };
    match compare::changes(&wanted, &gid, &optional) {
        Err(why) => Ok(StateResult::bad(why)),
        Ok(None) => make(&wanted, &optional, &missing),
        Ok(Some(changes)) if changes.is_empty() => {
            Ok(StateResult::good(format!("User {} is present and up to date", wanted.name)))
        }
        Ok(Some(changes)) if is_dry_run() => {
            let mut comment = "The following user attributes are set to be changed:\n".to_owned();
            for (key, value) in changes.iter().map(|change| change.shown(&wanted)) {
                comment.push_str(&format!("{key}: {}\n", value.to_text()));
            }
            if !missing.is_empty() {
                comment.push_str(&format!("groups (pending creation): {}\n", missing.join(",")));
            }
            Ok(StateResult::would(comment, Value::Dict(Vec::new())))
        }
        Ok(Some(changes)) => change(&mut wanted, &gid, &optional, &changes),
    }
}

/// Those for which something holds, and the others.
fn split(names: &[String], holds: impl Fn(&String) -> Result<bool>) -> Result<(Vec<String>, Vec<String>)> {
    let (mut yes, mut no) = (Vec::new(), Vec::new());
    for name in names {
        if holds(name)? { yes.push(name.clone()) } else { no.push(name.clone()) }
    }
    Ok((yes, no))
}

/// Changes a user who is there.
fn change(wanted: &mut Wanted, gid: &Value, optional: &[String], changes: &[Change]) -> Result<StateResult> {
    let name = wanted.name.clone();
    let Some(user) = users::find(&name, wanted.root())? else { return Err(format!("User '{name}' does not exist")) };
    let ids = (user.uid, user.gid);
    let (before, hash_before) = (membership::info_of(user)?, shadow::find(&name, None)?);
    apply(wanted, ids, changes)?;
    let after = membership::info(&name, wanted.root())?;
    let mut shown = differences(&before, &after);
    if hash_before.as_ref().map_or("", |shadow| &shadow.passwd) != wanted.password.as_deref().unwrap_or("\0") {
        let hash_after = shadow::find(&name, None)?;
        for (key, value) in differences(&shadow::value(hash_before.as_ref()), &shadow::value(hash_after.as_ref())) {
            let value = if key.text() == Some("passwd") { REDACTED.into() } else { value };
            shown.retain(|(other, _)| *other != key);
            shown.push((key, value));
        }
    }
    let comment = match shown.is_empty() {
        true => format!("User {name} is present and up to date"),
        false => format!("Updated user {name}"),
    };
    // A change that was not permitted was found at the first look.
    (wanted.allow_uid_change, wanted.allow_gid_change) = (true, true);
    let left = compare::changes(wanted, gid, optional)?.unwrap_or_default();
    if left.is_empty() {
        return Ok(StateResult::changed(comment, Value::Dict(shown)));
    }
    let left = Value::dict(left.iter().map(|change| change.shown(wanted)));
    let comment = format!("These values could not be changed: {}", left.to_text());
    Ok(StateResult::new(Some(false), comment, Value::Dict(shown)))
}

/// Makes the changes in Salt's order: passwords, the home, the ages, all else, and the groups at the end.
fn apply(wanted: &Wanted, (uid, gid): (i64, i64), changes: &[Change]) -> Result<()> {
    let name = wanted.name.as_str();
    for change in changes {
        match change {
            Change::Password if wanted.empty_password => {
                log::write(log::Level::Warning, "No password will be set when empty_password=True");
            }
            Change::Password => {
                shadow::set_hash(name, wanted.password.as_deref().unwrap_or_default(), None)?;
            }
            Change::EmptyPassword => {
                shadow::delete_hash(name, None)?;
            }
            Change::PasswordLock(locked) => {
                shadow::lock(name, *locked, None)?;
            }
            _ => {}
        }
    }
    let age = |place: &usize| {
        let (age, _, value) = &wanted.ages[*place];
        shadow::set_age(name, *age, value, None)
    };
    if changes.contains(&Change::Age(0)) {
        age(&0)?;
    }
    let missing = changes.iter().find_map(|change| match change {
        Change::HomeDoesNotExist(home) => Some(home),
        _ => None,
    });
    let new = changes.iter().find_map(|change| match change {
        Change::Home(home) => Some(home),
        _ => None,
    });
    if let Some(home) = missing.or(new) {
        let attribute = if wanted.persist_home { Attribute::MovedHome } else { Attribute::Home };
        useradd::set(name, attribute, &home.as_str().into(), None)?;
    }
    if let Some(home) = missing
        && !is_directory(home)?
    {
        useradd::make_home(home, uid, gid)?;
    }
    for change in changes {
        match change {
            Change::Age(place) if *place > 0 => age(place)?,
            Change::Uid(uid) => useradd::set(name, Attribute::Uid, uid, None)?,
            Change::Gid(gid) => useradd::set(name, Attribute::Gid, gid, None)?,
            Change::Shell(shell) => useradd::set(name, Attribute::Shell, &shell.as_str().into(), None)?,
            Change::Gecos(place) => {
                useradd::set_gecos(name, *place, wanted.gecos[*place].as_deref().unwrap_or_default(), None)?
            }
            _ => true,
        };
    }
    for change in changes {
        if let Change::Groups(groups) = change {
            useradd::set_groups(name, groups, !wanted.remove_groups, None)?;
        }
    }
    Ok(())
}

/// The entries of the second dict that are not those of the first.
fn differences(before: &Value, after: &Value) -> Vec<(Value, Value)> {
    let Value::Dict(entries) = after else { return Vec::new() };
    entries.iter().filter(|(key, value)| key.text().and_then(|key| before.get(key)) != Some(value)).cloned().collect()
}

/// Makes a user.
fn make(wanted: &Wanted, optional: &[String], missing: &[String]) -> Result<StateResult> {
    let name = wanted.name.as_str();
    if is_dry_run() {
        let pending = match missing.is_empty() {
            true => String::new(),
            false => format!(" (pending groups: {})", missing.join(",")),
        };
        return Ok(StateResult::would(format!("User {name} set to be added{pending}"), Value::Dict(Vec::new())));
    }
    let groups = [wanted.groups.as_deref().unwrap_or_default(), optional].concat();
    let new = New {
        uid: wanted.uid.clone(),
        gid: wanted.gid.clone(),
        groups: (wanted.groups.is_some() || !groups.is_empty()).then_some(groups),
        home: wanted.home.clone(),
        shell: wanted.shell.clone(),
        non_unique: !wanted.unique,
        system: wanted.system,
        gecos: wanted.gecos.clone().map(Option::unwrap_or_default),
        no_home: !wanted.createhome,
        nologinit: wanted.nologinit,
        usergroup: wanted.usergroup,
        local: wanted.local,
    };
    if !useradd::add(name, &new, None)? {
        return Ok(StateResult::bad(format!("Failed to create new user {name}")));
    }
    let mut changes = match membership::info(name, wanted.root())? {
        Value::Dict(entries) => entries,
        _ => Vec::new(),
    };
    if !wanted.createhome {
        changes.iter_mut().filter(|(key, _)| key.text() == Some("home")).for_each(|(_, home)| *home = "".into());
    }
    let failed = set_passwords(wanted, &mut changes)?;
    let comment = match &failed {
        None => format!("New user {name} created"),
        Some(what) => format!("User {name} created but failed to {what}"),
    };
    Ok(StateResult::new(Some(failed.is_none()), comment, Value::Dict(changes)))
}

/// Sets the password of a new user and its ages. Returns the last that failed.
fn set_passwords(wanted: &Wanted, changes: &mut Vec<(Value, Value)>) -> Result<Option<String>> {
    let name = wanted.name.as_str();
    let mut failed = None;
    let password = wanted.password.as_ref().filter(|password| !password.is_empty());
    if let Some(password) = password.filter(|_| !wanted.empty_password) {
        if !shadow::set_hash(name, password, None)? {
            failed = Some(format!("set password to {REDACTED}"));
        }
        changes.push(("password".into(), REDACTED.into()));
    }
    if wanted.empty_password && password.is_none() {
        if !shadow::delete_hash(name, None)? {
            failed = Some("empty password".into());
        }
        changes.push(("password".into(), "".into()));
    }
    for (age, key, wanted) in &wanted.ages {
        let said = if *age == Age::Changed { *wanted != Value::None } else { wanted.truthy() };
        if !said {
            continue;
        }
        shadow::set_age(name, *age, wanted, None)?;
        if shadow::find(name, None)?.is_none_or(|shadow| *wanted != Value::Int(shadow.age(*age))) {
            failed = Some(format!("set {} to {}", named(*age), wanted.to_text()));
        }
        changes.push(((*key).into(), wanted.clone()));
    }
    Ok(failed)
}

/// How Salt calls it when it could not be set.
fn named(age: Age) -> &'static str {
    match age {
        Age::Changed => "last change date",
        Age::Min => "minimum days",
        Age::Max => "maximum days",
        Age::Warn => "warn days",
        Age::Inactive => "inactive days",
        Age::Expire => "expire days",
    }
}

fn absent(name: &str, purge: bool, force: bool, local: bool) -> Result<StateResult> {
    if users::find(name, local.then_some("/"))?.is_none() {
        return Ok(StateResult::good(format!("User {name} is not present")));
    }
    if is_dry_run() {
        return Ok(StateResult::would(format!("User {name} set for removal"), Value::Dict(Vec::new())));
    }
    let before = membership::of_user(name)?;
    if !useradd::delete(name, purge, force, None, local)? {
        return Ok(StateResult::bad(format!("Failed to remove user {name}")));
    }
    let mut changes = Vec::new();
    for group in before {
        if groups::find(&group, None)?.is_none() {
            changes.push((format!("{group} group").into(), "removed".into()));
        }
    }
    changes.push((name.into(), "removed".into()));
    Ok(StateResult::changed(format!("Removed user {name}"), Value::Dict(changes)))
}
