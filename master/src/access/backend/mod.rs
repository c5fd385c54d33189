//! Where names and passwords are checked: one file a system of `external_auth`.

mod file;
mod htpasswd;
mod pam;
mod shared_secret;
mod static_token;

use super::config::{AccessOpts, System};

pub(super) use static_token::StaticTokens;

/// A system that knows users. It reads files, hashes passwords, waits for programs: it blocks.
pub(super) trait Backend: Send + Sync {
    /// The groups of the user, if the password is theirs; none if it is not. The error is the operator's, who set the system up.
    fn check(&self, username: &str, password: &str) -> Result<Option<Vec<String>>, String>;
}

/// The backend of a system; or why there is none.
pub(super) fn of(system: &System, opts: &AccessOpts) -> Result<Box<dyn Backend>, String> {
    match system.name.as_str() {
        "file" => Ok(Box::new(file::File::new(&system.options)?)),
        "pam" => Ok(Box::new(pam::Pam::find(&opts.pam_service)?)),
        "sharedsecret" => Ok(Box::new(shared_secret::SharedSecret::new(opts.shared_secret.clone())?)),
        static_token::NAME => Ok(Box::new(StaticTokens::new(&system.options)?)),
        // Anybody is let in by it: it is for Salt's own tests.
        "auto" => Err("anybody could log in with it".to_owned()),
        _ => Err("this master has it not; file, pam, sharedsecret and statictoken are offered".to_owned()),
    }
}
