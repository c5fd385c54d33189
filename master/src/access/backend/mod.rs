//! The systems that check names and passwords: one file for each system of `external_auth`.

mod file;
mod htpasswd;
mod pam;
mod shared_secret;
mod static_token;

use super::config::{AccessOpts, System};

pub(super) use static_token::StaticTokens;

/// A system that authenticates users. It blocks: it reads files, hashes passwords and waits for programs.
pub(super) trait Backend: Send + Sync {
    /// Returns the user's groups if the password is right, and `None` if not. The error is for the operator.
    fn check(&self, username: &str, password: &str) -> Result<Option<Vec<String>>, String>;
}

/// Makes the backend of a system, or returns why that is impossible.
pub(super) fn of(system: &System, opts: &AccessOpts) -> Result<Box<dyn Backend>, String> {
    match system.name.as_str() {
        "file" => Ok(Box::new(file::File::new(&system.options)?)),
        "pam" => Ok(Box::new(pam::Pam::find(&opts.pam_service)?)),
        "sharedsecret" => Ok(Box::new(shared_secret::SharedSecret::new(opts.shared_secret.clone())?)),
        static_token::NAME => Ok(Box::new(StaticTokens::new(&system.options)?)),
        // Salt's own tests use it to let every user log in.
        "auto" => Err("anybody could log in with it".to_owned()),
        _ => Err("this master has it not; file, pam, sharedsecret and statictoken are offered".to_owned()),
    }
}
