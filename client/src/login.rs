//! The log-in of a client: with the master's own key, with a name and a password of an `external_auth` system, or with
//! a token that the master issued for such a log-in (PROTOCOL.md §7.2).

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use brine_protocol::config::{Config, settings};
use brine_protocol::files;
use brine_protocol::secret::Secret;
use brine_protocol::value::{Value, ValueExt, map};

use crate::local_key::LocalKey;
use crate::{ClientError, ClientOpts, request};

/// Upper bound on the bytes of a token file; Salt's tokens have 64 to 128 characters.
const MAX_TOKEN: u64 = 4096;
/// The time for the master's check of a password. The check is slow on purpose, and checks wait for each other.
const MAKE: Duration = Duration::from_secs(60);

/// How the client proves its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogIn {
    /// With the master's key of this user, `cachedir/.<user>_key`.
    Key,
    /// With a token that the master issued.
    Token(Secret<String>),
    /// With a name and a password.
    External {
        /// The system, as in `external_auth`.
        eauth: String,
        /// The name.
        username: String,
        /// The password.
        password: Secret<String>,
        /// How long a new token should live. The master grants it to whom `token_expire_user_override` names.
        token_expire: Option<Duration>,
    },
}

impl LogIn {
    /// The fields that the log-in adds to a request (for a publish request, to its `kwargs`); none for the key.
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Key => Vec::new(),
            Self::Token(token) => vec![("token", token.expose().as_str().into())],
            Self::External { eauth, username, password, token_expire } => {
                let mut fields = vec![
                    ("eauth", eauth.as_str().into()),
                    ("username", username.as_str().into()),
                    ("password", password.expose().as_str().into()),
                ];
                fields.extend(token_expire.map(|life| ("token_expire", life.as_secs_f64().into())));
                fields
            }
        }
    }
}

/// Whether this user can read the master's key, which then takes precedence.
pub fn has_key(opts: &ClientOpts) -> bool {
    LocalKey::read(opts).problem.is_none()
}

/// Requests a token from the master.
///
/// # Errors
/// When the master refuses the log-in or cannot be reached.
pub async fn make_token(opts: &ClientOpts, log_in: &LogIn) -> Result<Secret<String>, ClientError> {
    let load = map(std::iter::once(("cmd", Value::from("mk_token"))).chain(log_in.fields()));
    let reply = request::clear(opts, load, MAKE, None).await?;
    let token = reply.get_text("token").filter(|token| !token.is_empty());
    token.map(|token| Secret::new(token.to_owned())).ok_or_else(|| ClientError::Reply("it has no token".to_owned()))
}

/// The file for a user's token: the option `token_file`, or `salt_token` in `~/.config/salt` (if that folder exists) or
/// `~`.
pub fn token_file(config: &Config) -> PathBuf {
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    if let Some(file) = config.find(settings::TOKEN_FILE).ok().flatten() {
        return file.strip_prefix("~/").map_or_else(|| PathBuf::from(&file), |below| home.join(below));
    }
    let config_home = std::env::var_os("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
    let folder = config_home.join("salt");
    if folder.is_dir() { folder } else { home }.join("salt_token")
}

/// The saved token, unless it has expired.
pub fn saved_token(file: &Path, config: &Config) -> Option<Secret<String>> {
    let written = file.metadata().ok().filter(std::fs::Metadata::is_file)?.modified().ok()?;
    let expire = config.get(settings::TOKEN_EXPIRE).ok()?;
    if SystemTime::now().duration_since(written).is_ok_and(|age| age > expire) {
        return None;
    }
    let text = brine_files::read_named_text(file, MAX_TOKEN).ok()?;
    let token = Secret::new(text.trim().to_owned());
    (!token.expose().is_empty()).then_some(token)
}

/// Saves a token with access for this user only.
///
/// # Errors
/// When the file cannot be written.
pub fn save_token(file: &Path, token: &Secret<String>) -> std::io::Result<()> {
    files::write_synced(file, token.expose().as_bytes(), 0o600)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use brine_protocol::config::Role;

    use super::*;

    #[test]
    fn a_token_is_kept_for_its_user_and_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("salt_token");
        let config = |yaml: &str| Config::from_yaml(yaml, Path::new("master"), Role::Master).unwrap();
        let named = config(&format!("token_file: {}\ntoken_expire: 60", file.display()));
        assert_eq!(token_file(&named), file);
        assert_eq!(saved_token(&file, &named), None);
        let token = Secret::new("abc".to_owned());
        save_token(&file, &token).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(saved_token(&file, &named), Some(token));
        let old = SystemTime::now() - Duration::from_secs(61);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
        assert_eq!(saved_token(&file, &named), None, "it has expired");
    }
}
