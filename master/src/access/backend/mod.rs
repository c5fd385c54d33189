//! Where names and passwords are checked: one file a system of `external_auth`.

mod file;
mod htpasswd;
mod shared_secret;

use super::config::{AccessOpts, System};

/// A system that knows users. Its methods read files and hash passwords: they block.
pub(super) trait Backend: Send + Sync {
    /// Whether the password is this user's. The error is the operator's, who set the system up.
    fn accepts(&self, username: &str, password: &str) -> Result<bool, String>;

    /// The groups that the user is in.
    fn groups(&self, username: &str) -> Result<Vec<String>, String>;
}

/// The backend of a system; or why there is none.
pub(super) fn of(system: &System, opts: &AccessOpts) -> Result<Box<dyn Backend>, String> {
    match system.name.as_str() {
        "file" => Ok(Box::new(file::File::new(&system.options)?)),
        "sharedsecret" => Ok(Box::new(shared_secret::SharedSecret::new(opts.shared_secret.clone())?)),
        // Anybody is let in by it: it is for Salt's own tests.
        "auto" => Err("anybody could log in with it".to_owned()),
        _ => Err("this master has it not; file and sharedsecret are offered".to_owned()),
    }
}
