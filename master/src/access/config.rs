//! The settings of access for other users: `external_auth`, `publisher_acl`, its blacklist, and tokens.

use std::time::Duration;

use brine_protocol::config::settings::{self, Setting};
use brine_protocol::config::{Config, ConfigError};
use brine_protocol::secret::Secret;
use brine_protocol::value::{Value, ValueExt};

use super::permission::{self, Name, Permission};

/// The settings of access.
#[derive(Debug, Clone)]
pub(crate) struct AccessOpts {
    /// `external_auth`: each system with its users.
    pub(super) systems: Vec<System>,
    /// `sharedsecret`.
    pub(super) shared_secret: Option<Secret<String>>,
    /// `auth.pam.service`.
    pub(super) pam_service: String,
    /// `client_acl_verify`: users of `publisher_acl` must be users of this host.
    pub(super) users_must_exist: bool,
    /// `publisher_acl`: users of this host with their permissions.
    pub(super) publisher_acl: Vec<(Name, Vec<Permission>)>,
    /// `publisher_acl_blacklist: users`.
    pub(super) blocked_users: Vec<Name>,
    /// `publisher_acl_blacklist: modules`.
    pub(super) blocked_functions: Vec<Name>,
    /// `permissive_acl`: the permissions of `*` hold for every user; otherwise only for users without an entry of their
    /// own.
    pub(super) permissive: bool,
    /// `token_expire`.
    pub(super) token_expire: Duration,
    /// `token_expire_user_override`.
    pub(super) own_expire: OwnExpire,
}

/// One system of `external_auth`.
#[derive(Debug, Clone)]
pub(super) struct System {
    pub(super) name: String,
    /// The system's options, such as `^filename`, without the `^`.
    pub(super) options: Vec<(String, Value)>,
    pub(super) users: Vec<SystemEntry>,
}

/// One entry of a system.
#[derive(Debug, Clone)]
pub(super) struct SystemEntry {
    pub(super) who: Grantee,
    pub(super) permissions: Vec<Permission>,
    /// The permissions as the configuration has them, for the users who have them.
    pub(super) written: Vec<Value>,
}

/// The users of an entry of `external_auth`.
#[derive(Debug, Clone)]
pub(super) enum Grantee {
    /// `*`.
    Anyone,
    /// `fred`, `web*`: a name, glob or expression.
    User(Name),
    /// `admins%`: a group.
    Group(String),
}

/// The users that may choose the lifetime of their tokens.
#[derive(Debug, Clone)]
pub(super) enum OwnExpire {
    Nobody,
    Everybody,
    /// Users, listed by system.
    Some(Vec<(String, Vec<String>)>),
}

impl AccessOpts {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// If a setting has a wrong type or form. The error never contains `sharedsecret`.
    pub(crate) fn from_config(c: &Config) -> Result<Self, ConfigError> {
        let wrong = |setting: Setting<Value>, expected: &'static str| {
            // What an expression lacks is said in several lines.
            move |why: String| {
                let why: Vec<&str> = why.split_whitespace().collect();
                c.wrong(setting.row.name, format!("{expected} ({})", why.join(" ")))
            }
        };
        let blacklist = |of: Setting<Value>| {
            names(&c.get(of)?).map_err(wrong(
                settings::PUBLISHER_ACL_BLACKLIST,
                "a map with lists of users and modules, names, globs or expressions",
            ))
        };
        // The master does not start with these settings: it would ignore permissions kept elsewhere, and then allow or
        // refuse other calls than the operator intended.
        let here = "nothing: permissions are those of external_auth, as they are when a token is used; leave it out";
        for setting in [settings::EAUTH_ACL_MODULE, settings::KEEP_ACL_IN_TOKEN] {
            if c.find(setting)? == Some(true) {
                return Err(c.wrong(setting.row.name, here));
            }
        }
        Ok(Self {
            systems: systems(&c.get(settings::EXTERNAL_AUTH)?)
                .map_err(wrong(settings::EXTERNAL_AUTH, "a map of systems to users and what they may do"))?,
            shared_secret: c.find(settings::SHAREDSECRET)?.map(Secret::new),
            pam_service: c.get(settings::PAM_SERVICE)?,
            users_must_exist: c.get(settings::CLIENT_ACL_VERIFY)?,
            publisher_acl: publisher_acl(&c.get(settings::PUBLISHER_ACL)?)
                .map_err(wrong(settings::PUBLISHER_ACL, "a map of users to what they may do"))?,
            blocked_users: blacklist(settings::PUBLISHER_ACL_BLACKLIST_USERS)?,
            blocked_functions: blacklist(settings::PUBLISHER_ACL_BLACKLIST_MODULES)?,
            permissive: c.get(settings::PERMISSIVE_ACL)?,
            token_expire: c.get(settings::TOKEN_EXPIRE)?,
            own_expire: own_expire(&c.get(settings::TOKEN_EXPIRE_USER_OVERRIDE)?)
                .map_err(wrong(settings::TOKEN_EXPIRE_USER_OVERRIDE, "true, false, or a map of systems to users"))?,
        })
    }
}

fn entries(value: &Value) -> Result<&[(Value, Value)], String> {
    match value {
        Value::Nil => Ok(&[]),
        Value::Map(entries) => Ok(entries),
        other => Err(format!("{} is not a map", other.python_repr())),
    }
}

fn systems(value: &Value) -> Result<Vec<System>, String> {
    let mut systems = Vec::new();
    for (name, users) in entries(value)? {
        let mut system = System { name: name.python_str(), options: Vec::new(), users: Vec::new() };
        for (key, value) in entries(users)? {
            let key = key.python_str();
            if let Some(option) = key.strip_prefix('^') {
                system.options.push((option.to_owned(), value.clone()));
                continue;
            }
            let who = match key.strip_suffix('%') {
                _ if key == "*" => Grantee::Anyone,
                Some(group) => Grantee::Group(group.to_owned()),
                None => Grantee::User(Name::new(&key)?),
            };
            let permissions = permission::parse(value).map_err(|why| format!("{}: {key}: {why}", system.name))?;
            let written = value.list().unwrap_or_default().to_vec();
            system.users.push(SystemEntry { who, permissions, written });
        }
        systems.push(system);
    }
    Ok(systems)
}

fn publisher_acl(value: &Value) -> Result<Vec<(Name, Vec<Permission>)>, String> {
    let each = entries(value)?.iter().map(|(user, list)| {
        let user = user.python_str();
        let permissions = permission::parse(list).map_err(|why| format!("{user}: {why}"))?;
        Ok((Name::new(&user)?, permissions))
    });
    each.collect()
}

fn names(value: &Value) -> Result<Vec<Name>, String> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::Array(items) => items.iter().map(|item| Name::new(&item.python_str())).collect(),
        other => Err(format!("{} is not a list", other.python_repr())),
    }
}

fn own_expire(value: &Value) -> Result<OwnExpire, String> {
    match value {
        Value::Nil | Value::Boolean(false) => Ok(OwnExpire::Nobody),
        Value::Boolean(true) => Ok(OwnExpire::Everybody),
        Value::Map(systems) => {
            let each = systems.iter().map(|(system, users)| {
                let users = users.list().ok_or("the users of a system must be a list")?;
                Ok((system.python_str(), users.iter().map(ValueExt::python_str).collect()))
            });
            each.collect::<Result<_, String>>().map(OwnExpire::Some)
        }
        other => Err(format!("{} is neither a truth value nor a map", other.python_repr())),
    }
}
