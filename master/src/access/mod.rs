//! Access of other users to the master (§7): local users by their key, others by a log-in or a token, each with
//! permissions.
//!
//! - `config.rs`     the settings: `external_auth`, `publisher_acl` and related ones
//! - `backend/`      checks of names and passwords, one file for each system
//! - `principal.rs`  the proved identity of a caller
//! - `address.rs`    the origin of a request
//! - `logins/`       bounds on the rate of password guesses
//! - `tokens.rs`     tokens that replace a log-in
//! - `permission.rs` lists of permissions
//! - `authorize.rs`  decides whether a caller may do what it requests
//! - `sight.rs`      which minions and jobs a caller may see
//! - `proof.rs`      the fields of a request that prove the caller
//! - `viewer.rs`     the user of a token that watches events

mod address;
mod authorize;
mod backend;
mod config;
mod logins;
pub(crate) mod permission;
mod principal;
mod proof;
mod sight;
mod tokens;
mod viewer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use brine_protocol::secret::Secret;
use brine_protocol::value::{Value, ValueExt, empty_map, map};

use crate::keys::{LocalKeys, LocalUser};
pub(crate) use address::Address;
pub(crate) use authorize::{Extent, allowed};
use backend::{Backend, StaticTokens};
pub(crate) use config::AccessOpts;
use config::{Grantee, OwnExpire, System, SystemEntry};
use logins::{Attempt, Held, Logins};
pub(crate) use permission::{Allowed, Name, Permission, parse as permissions};
pub(crate) use principal::{Principal, REACTOR, Reaction};
use principal::{Proof, User};
pub(crate) use proof::Claim;
use tokens::Tokens;
pub(crate) use viewer::Viewer;

/// Longest name or password in characters. Longer ones are wrong.
const CREDENTIAL_MAX: usize = 1_024;
/// Characters of a name that an answer or a log repeats.
const NAME_SHOWN_MAX: usize = 64;

/// Identifies callers and knows their permissions.
pub(crate) struct Access {
    known: ArcSwap<AccessSettings>,
    cachedir: PathBuf,
    /// Users with a key that is equal to the master's own: `root` and the master's `user`.
    masters: Vec<String>,
    logins: Logins,
    tokens: Tokens,
    /// Counts the settings that were applied.
    generation: AtomicU64,
}

/// The settings, and the backends and keys made from them.
pub(crate) struct AccessSettings {
    opts: AccessOpts,
    systems: Vec<(System, Arc<dyn Backend>)>,
    local_keys: LocalKeys,
    static_tokens: Option<StaticTokens>,
}

/// The refusal of a caller, which becomes the `error` of a reply (§7.3).
#[derive(Debug, Clone)]
pub(crate) struct Denied {
    pub(crate) name: &'static str,
    pub(crate) message: String,
    /// A further reason for the operator only.
    pub(crate) why: Option<&'static str>,
    /// Whether the refusal was reported to the operator. In a flood it is not.
    pub(crate) told: bool,
    /// When another attempt is looked at, if this one was not.
    pub(crate) wait: Option<Duration>,
}

impl Denied {
    /// Makes the refusal of a request that is malformed or cannot be served now.
    pub(crate) const fn invocation(message: String) -> Self {
        Self { name: "SaltInvocationError", message, why: None, told: false, wait: None }
    }

    pub(crate) fn value(&self) -> Value {
        map([("name", self.name), ("message", &self.message)])
    }
}

impl Proof {
    const fn error(self) -> &'static str {
        match self {
            Self::Key => "UserAuthenticationError",
            Self::Token => "TokenAuthenticationError",
            Self::Eauth => "EauthAuthenticationError",
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "user",
            Self::Token => "token",
            Self::Eauth => "eauth",
        }
    }

    fn failed(self, user: Option<&str>) -> Denied {
        let of = user.map(|user| format!(" for user {}", shown(user))).unwrap_or_default();
        let message = format!("Authentication failure of type \"{}\" occurred{of}.", self.as_str());
        Denied { name: self.error(), message, why: None, told: false, wait: None }
    }
}

/// Shortens a name for an answer or a log.
pub(crate) fn shown(user: &str) -> String {
    brine_protocol::text::short(user, NAME_SHOWN_MAX)
}

impl AccessSettings {
    fn read(opts: AccessOpts, cachedir: &Path, masters: &[String]) -> std::io::Result<Self> {
        let mut others =
            crate::keys::users_of_host(|user| opts.publisher_acl.iter().any(|(name, _)| name.matches(user)));
        for name in opts.publisher_acl.iter().filter_map(|(name, _)| name.plain()) {
            if others.iter().any(|user| user.name == name) {
                continue;
            }
            // Users of a directory service are looked up by name. Patterns match only users in /etc/passwd.
            let uid = match nix::unistd::User::from_name(name) {
                Ok(Some(user)) => user.uid.as_raw(),
                // The key file belongs to the master's user, and the operator passes it on.
                _ if !opts.users_must_exist => rustix::process::geteuid().as_raw(),
                _ => {
                    tracing::warn!(
                        "publisher_acl: there is no user {name} here, who so gets no key (client_acl_verify)"
                    );
                    continue;
                }
            };
            others.push(LocalUser { name: name.to_owned(), uid });
        }
        let local_keys = LocalKeys::open(cachedir, masters, &others)?;
        let mut systems = Vec::new();
        for system in &opts.systems {
            match backend::of(system, &opts) {
                Ok(backend) => systems.push((system.clone(), Arc::from(backend))),
                Err(why) => {
                    tracing::error!("external_auth: {} is not used, nobody can log in with it: {why}", system.name)
                }
            }
        }
        let static_tokens = opts.systems.iter().find(|system| system.name == StaticTokens::SYSTEM);
        let static_tokens = static_tokens.and_then(|system| StaticTokens::new(&system.options).ok());
        Ok(Self { opts, systems, local_keys, static_tokens })
    }
}

impl AccessSettings {
    /// Returns the entries of `external_auth` that apply to a user; `None` if the system is not in use.
    fn entries_of(&self, system: &str, user: &str, groups: &[String]) -> Option<Vec<&SystemEntry>> {
        let (system, _) = self.systems.iter().find(|(known, _)| known.name == system)?;
        let mut entries = Vec::new();
        let mut named = false;
        for entry in &system.users {
            let applies = match &entry.who {
                Grantee::Anyone => self.opts.permissive,
                Grantee::User(name) => {
                    let is_it = name.matches(user);
                    named |= is_it;
                    is_it
                }
                Grantee::Group(group) => groups.iter().any(|known| known == group),
            };
            if applies {
                entries.push(entry);
            }
        }
        if !named && !self.opts.permissive {
            entries.extend(system.users.iter().filter(|entry| matches!(entry.who, Grantee::Anyone)));
        }
        Some(entries)
    }
}

impl Access {
    /// Reads the settings and the keys of local users in `cachedir`. The users `masters` may do everything.
    pub(crate) fn open(opts: AccessOpts, cachedir: &Path, masters: &[String]) -> std::io::Result<Self> {
        let tokens = Tokens::new(cachedir.join("tokens"));
        tokens.make_dir()?;
        Ok(Self {
            known: ArcSwap::from_pointee(AccessSettings::read(opts, cachedir, masters)?),
            cachedir: cachedir.to_owned(),
            masters: masters.to_vec(),
            logins: Logins::default(),
            tokens,
            generation: AtomicU64::new(0),
        })
    }

    /// Reads new settings without applying them.
    pub(crate) fn read(&self, opts: AccessOpts) -> std::io::Result<AccessSettings> {
        AccessSettings::read(opts, &self.cachedir, &self.masters)
    }

    /// Applies new settings, also to users who have already logged in. The records of failed log-ins stay.
    pub(crate) fn replace(&self, known: AccessSettings) {
        self.known.store(Arc::new(known));
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Removes expired tokens, because they contain names of users and groups.
    pub(crate) fn forget_expired_tokens(&self) {
        if let Err(error) = self.tokens.forget_expired() {
            tracing::warn!("expired tokens stay: {error}");
        }
    }

    /// Identifies the caller by `token`, by `eauth` with name and password, or by `key`. Only the first of these that
    /// is present counts, even if it is wrong and another would be right.
    pub(crate) async fn identify(&self, claim: &Claim<'_>) -> Result<Principal, Denied> {
        let (load, address) = (claim.load, self.address(claim));
        if let Some(token) = claim.given("token") {
            return self.by_token(token, address);
        }
        if claim.needs_log_in() {
            return self.by_password(claim).await.map(|(principal, _)| principal);
        }
        self.by_key(load, address)
    }

    /// Returns the origin of a request, as a front end of this host reports it.
    pub(crate) fn address(&self, claim: &Claim<'_>) -> Address {
        claim.address.behind_front_end(claim.load, |key| {
            let known = self.known.load();
            known.local_keys.user_of(key).is_some_and(|user| self.masters.iter().any(|master| master == user))
        })
    }

    /// Returns the number of waiting log-ins, for the log.
    pub(crate) fn log_ins_waiting(&self) -> usize {
        self.logins.waiting()
    }

    fn by_key(&self, load: &Value, address: Address) -> Result<Principal, Denied> {
        let known = self.known.load();
        let user = load.get_text("key").and_then(|key| known.local_keys.user_of(key));
        let user = user.ok_or_else(|| Proof::Key.failed(None))?;
        if self.masters.iter().any(|master| master == user) {
            // The holder of this key can read all files of the master, so the name it gives is only a label.
            let name = load.get_text("user").filter(|name| !name.is_empty()).unwrap_or(user).to_owned();
            return Ok(Principal::Root { name, address });
        }
        let lists = known.opts.publisher_acl.iter().filter(|(name, _)| name.matches(user));
        let permissions = lists.flat_map(|(_, list)| list.iter().cloned()).collect();
        Ok(Principal::User(User { name: user.to_owned(), address, proof: Proof::Key, permissions }))
    }

    fn by_token(&self, text: &Value, address: Address) -> Result<Principal, Denied> {
        let token = self.token(text).ok_or_else(|| Proof::Token.failed(None))?;
        let permissions = self.permissions_of(&token.eauth, &token.name, &token.groups);
        let permissions = permissions.ok_or_else(|| Proof::Token.failed(None))?;
        Ok(Principal::User(User { name: token.name, address, proof: Proof::Token, permissions }))
    }

    fn token(&self, text: &Value) -> Option<tokens::Token> {
        let text = text.text()?;
        let known = self.known.load();
        if let Some(user) = known.static_tokens.as_ref().and_then(|tokens| tokens.user_of(text)) {
            return Some(tokens::Token::standing(user, StaticTokens::SYSTEM, text));
        }
        self.tokens.read(text).unwrap_or_else(|error| {
            tracing::error!("a token cannot be read: {error}");
            None
        })
    }

    /// Returns the caller and its groups, if name and password are right.
    async fn by_password(&self, claim: &Claim<'_>) -> Result<(Principal, Vec<String>), Denied> {
        let (load, address) = (claim.load, self.address(claim));
        let username = load.get_text("username").unwrap_or("UNKNOWN");
        let failed = || Proof::Eauth.failed(Some(username));
        let system = load.get_text("eauth").unwrap_or_default();
        let password = load.get_text("password").unwrap_or_default();
        let all = self.known.load_full();
        let known = all.systems.iter().find(|(known, _)| known.name == system);
        let usable = |text: &str| !text.is_empty() && text.chars().count() <= CREDENTIAL_MAX;
        let whole =
            usable(username) && usable(password) && load.has("username") && !username.contains(['\n', '\r', '\0']);
        let mut groups = Vec::new();
        let check = async {
            // An unknown system fails inside the delayed check, so that callers cannot find out which systems exist.
            let Some((_, backend)) = known.filter(|_| whole) else { return false };
            let (backend, name) = (Arc::clone(backend), username.to_owned());
            let password = Secret::new(password.to_owned());
            let ask = move || backend.check(&name, password.expose());
            match tokio::task::spawn_blocking(ask).await {
                Ok(Ok(Some(of_user))) => {
                    groups = of_user;
                    true
                }
                Ok(Ok(None)) | Err(_) => false,
                Ok(Err(why)) => {
                    tracing::error!("external_auth: {system}: {why}");
                    false
                }
            }
        };
        let attempt = Attempt { from: address, user: (system, username), bytes: claim.bytes, is_gone: claim.is_gone };
        match self.logins.attempt(attempt, check).await {
            Ok(true) => {}
            Ok(false) => return Err(failed()),
            // The reply is the same as for a wrong password.
            Err(Held { why, wait }) => return Err(Denied { why: Some(why), wait: Some(wait), ..failed() }),
        }
        let permissions = self.permissions_of(system, username, &groups).ok_or_else(failed)?;
        let user = User { name: username.to_owned(), address, proof: Proof::Eauth, permissions };
        Ok((Principal::User(user), groups))
    }

    /// Returns the permissions of a user by name and groups; `None` if the system is not in use.
    fn permissions_of(&self, system: &str, user: &str, groups: &[String]) -> Option<Vec<Permission>> {
        let all = self.known.load();
        let entries = all.entries_of(system, user, groups)?;
        Some(entries.into_iter().flat_map(|entry| entry.permissions.iter().cloned()).collect())
    }

    /// Makes a token for a user who logs in. Returns the reply to `mk_token`, and the user.
    pub(crate) async fn mint(&self, claim: &Claim<'_>) -> Result<(Value, Principal), Denied> {
        let load = claim.load;
        let (principal, groups) = self.by_password(claim).await?;
        let system = load.get_text("eauth").unwrap_or_default();
        let minted = self.tokens.mint(principal.name(), system, &groups, self.lifetime(load, system, principal.name()));
        minted.map(|data| (data, principal)).map_err(|error| {
            tracing::error!("no token was made: {error}");
            Denied { why: Some("the token could not be written"), ..Proof::Eauth.failed(None) }
        })
    }

    fn lifetime(&self, load: &Value, system: &str, user: &str) -> Duration {
        let known = self.known.load();
        let may = match &known.opts.own_expire {
            OwnExpire::Nobody => false,
            OwnExpire::Everybody => true,
            OwnExpire::Some(users) => {
                users.iter().any(|(of, names)| of == system && names.iter().any(|name| name == user))
            }
        };
        let asked = load.get("token_expire").filter(|_| may).and_then(Value::as_f64);
        asked.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(known.opts.token_expire)
    }

    /// Answers `token_perms`: the permissions of a token's user as `external_auth` lists them, an empty map for an
    /// unknown token.
    pub(crate) fn token_perms(&self, load: &Value) -> Value {
        let Some(token) = load.get("token").and_then(|text| self.token(text)) else { return empty_map() };
        let all = self.known.load();
        let Some(entries) = all.entries_of(&token.eauth, &token.name, &token.groups) else { return empty_map() };
        let perms = entries.into_iter().flat_map(|entry| entry.written.iter().cloned());
        map([("perms", Value::Array(perms.collect()))])
    }

    /// Ends a token, for a caller that proved its identity by it. Returns false for a token of the configuration, which
    /// ends with its line there.
    pub(crate) fn end_token(&self, text: &str) -> std::io::Result<bool> {
        let standing = self.known.load().static_tokens.as_ref().is_some_and(|tokens| tokens.user_of(text).is_some());
        if !standing {
            self.tokens.end(text)?;
        }
        Ok(!standing)
    }

    /// Answers `get_token`: the data of a token, an empty map for an unknown token, false without a token.
    pub(crate) fn get_token(&self, load: &Value) -> Value {
        match load.get("token").filter(|token| token.truthy()) {
            None => Value::from(false),
            Some(text) => {
                // As for a request with it: of a system that is no longer configured, it is none.
                let known = self.known.load();
                let is_known =
                    |token: &tokens::Token| known.entries_of(&token.eauth, &token.name, &token.groups).is_some();
                self.token(text).filter(is_known).map_or_else(empty_map, |token| token.data().clone())
            }
        }
    }
}

#[cfg(test)]
mod tests;
