//! The master's key for clients on its host: `cachedir/.<user>_key` (§7.1). Any user that can read it may command the
//! master.

use brine_protocol::secret::Secret;

use crate::{ClientOpts, LogIn};

/// Upper bound on the bytes of a key file; Salt's keys have 76 characters.
const MAX_KEY: u64 = 4096;

/// The key, or why there is none. A client without a key still sends its request, as Salt does: the master refuses it
/// as it refuses a wrong key, and the reason is displayed with the refusal.
pub(crate) struct LocalKey {
    pub(crate) key: Secret<String>,
    pub(crate) problem: Option<String>,
}

impl LocalKey {
    pub(crate) fn read(opts: &ClientOpts) -> Self {
        // the name becomes part of a path
        let user: String =
            opts.key_user().chars().map(|c| if matches!(c, '/' | '\\' | '\0') { '_' } else { c }).collect();
        let path = opts.cachedir.join(format!(".{user}_key"));
        match brine_files::read_named_text(&path, MAX_KEY) {
            Ok(text) if !text.trim().is_empty() => Self { key: Secret::new(text), problem: None },
            Ok(_) => Self::none(format!("the master's key file {} is empty; restart the master", path.display())),
            Err(error) => {
                let advice = match error.kind() {
                    std::io::ErrorKind::PermissionDenied if opts.master_user == "root" => "run this as root".to_owned(),
                    std::io::ErrorKind::PermissionDenied => {
                        format!("run this as root or as {}", opts.master_user)
                    }
                    std::io::ErrorKind::NotFound => {
                        "the master writes it when it starts: has it run with this configuration?".to_owned()
                    }
                    _ => "it must be a file of text".to_owned(),
                };
                Self::none(format!("cannot read the master's key {}: {error}; {advice}", path.display()))
            }
        }
    }

    /// The key for this log-in: none for a token or a password.
    pub(crate) fn for_log_in(log_in: &LogIn, opts: &ClientOpts) -> Self {
        match log_in {
            LogIn::Key => Self::read(opts),
            LogIn::Token(_) | LogIn::External { .. } => Self { key: Secret::new(String::new()), problem: None },
        }
    }

    fn none(problem: String) -> Self {
        Self { key: Secret::new(String::new()), problem: Some(problem) }
    }
}
