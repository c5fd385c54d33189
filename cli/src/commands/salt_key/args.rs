//! The options of `salt-key`, with Salt's names, and the actions that they select.

use std::path::PathBuf;

use brine_protocol::keys::{KeyState, MAX_BITS};
use brine_protocol::secret::Secret;
use clap::{ArgAction, Parser};

use crate::Failure;
use crate::commandline::misuse;
use crate::commands::options::{ConfigArgs, LogInArgs};
use crate::logging::{LEVELS, start_logging};
use crate::print::OutputArgs;

/// Lower bound on the bits of a new key.
const MIN_BITS: usize = 2048;
/// Upper bound on the bits in Salt's salt-key; using such a key takes minutes.
const SALTS_MAX_BITS: usize = 32_768;

/// The command line of `salt-key`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "salt-key",
    about = "Lists the keys of minions, and accepts, rejects or deletes them.",
    override_usage = "salt-key [options]"
)]
pub struct SaltKeyArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Give the files that are written to this user. Default: the master's user.
    #[arg(short = 'u', long, value_name = "USER")]
    pub(super) user: Option<String>,
    /// What to log to stderr. Default: warning.
    #[arg(long = "log-level", value_name = "LOG_LEVEL", value_parser = LEVELS)]
    log_level: Option<String>,
    /// Also log to this file.
    #[arg(long = "log-file", value_name = "KEY_LOGFILE")]
    log_file: Option<PathBuf>,
    /// What to log to that file. Default: warning.
    #[arg(long = "log-file-level", value_name = "LOG_LEVEL_LOGFILE", value_parser = LEVELS)]
    log_file_level: Option<String>,
    /// Log in by this system of the master's external_auth; the master then does with the keys what this user may do.
    #[arg(long = "auth", aliases = ["eauth", "external-auth"], value_name = "EAUTH", help_heading = "External Authentication")]
    eauth: Option<String>,
    /// Keep the token that the master gives for a log-in; later calls use it until it expires (token_expire).
    #[arg(short = 'T', long = "make-token", help_heading = "External Authentication")]
    make_token: bool,
    /// The user to log in as. Default: asked for.
    #[arg(long, value_name = "USERNAME", help_heading = "External Authentication")]
    username: Option<String>,
    /// The password to log in with. Default: asked for.
    #[arg(long, value_name = "PASSWORD", help_heading = "External Authentication")]
    password: Option<Secret<String>>,
    /// Log nothing, and print no refusal.
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
    /// The keys of nodes, salt-api on other hosts (api_port), instead of those of minions.
    #[arg(long)]
    pub(super) nodes: bool,
    /// Do not ask before keys are changed.
    #[arg(short = 'y', long)]
    pub(super) yes: bool,
    /// False keeps the key of publications when minions' keys are deleted or rejected: those minions can still read what is
    /// published. Default: True.
    #[arg(long = "rotate-aes-key", value_name = "ROTATE_AES_KEY", value_parser = python_bool, action = ArgAction::Set)]
    pub(super) rotate_aes_key: Option<bool>,
    /// True keeps the cached data of minions whose keys are deleted; a new minion with such an id then inherits it. Default:
    /// False.
    #[arg(long = "preserve-minions", value_name = "PRESERVE_MINIONS", value_parser = python_bool, action = ArgAction::Set)]
    pub(super) preserve_minions: Option<bool>,
    #[command(flatten)]
    pub(super) output: OutputArgs,

    /// List the ids whose keys have a status: acc, pre (or un), rej, den, or all.
    #[arg(short = 'l', long, value_name = "ARG", help_heading = "Actions", allow_hyphen_values = true)]
    list: Option<String>,
    /// List all ids. Old form of --list all.
    #[arg(short = 'L', long = "list-all", help_heading = "Actions")]
    list_all: bool,
    /// Accept the keys of these ids, globs separated by commas. Looks among those that wait; see --include-rejected and
    /// --include-denied.
    #[arg(short = 'a', long, value_name = "ACCEPT", help_heading = "Actions", allow_hyphen_values = true)]
    accept: Option<String>,
    /// Accept all keys that wait.
    #[arg(short = 'A', long = "accept-all", help_heading = "Actions")]
    accept_all: bool,
    /// Reject the keys of these ids, globs separated by commas. Looks among those that wait; see --include-accepted and
    /// --include-denied.
    #[arg(short = 'r', long, value_name = "REJECT", help_heading = "Actions", allow_hyphen_values = true)]
    reject: Option<String>,
    /// Reject all keys that wait.
    #[arg(short = 'R', long = "reject-all", help_heading = "Actions")]
    reject_all: bool,
    /// Accept also rejected keys, or reject also accepted ones. Old form of --include-rejected and --include-accepted.
    #[arg(long = "include-all", help_heading = "Actions")]
    include_all: bool,
    /// Reject also accepted keys.
    #[arg(long = "include-accepted", help_heading = "Actions")]
    include_accepted: bool,
    /// Accept also rejected keys.
    #[arg(long = "include-rejected", help_heading = "Actions")]
    include_rejected: bool,
    /// Accept or reject also denied keys.
    #[arg(long = "include-denied", help_heading = "Actions")]
    include_denied: bool,
    /// Print the public keys of these ids, globs separated by commas.
    #[arg(short = 'p', long, value_name = "PRINT", help_heading = "Actions", allow_hyphen_values = true)]
    print: Option<String>,
    /// Print all public keys.
    #[arg(short = 'P', long = "print-all", help_heading = "Actions")]
    print_all: bool,
    /// Delete the keys of these ids, globs separated by commas.
    #[arg(short = 'd', long, value_name = "DELETE", help_heading = "Actions", allow_hyphen_values = true)]
    delete: Option<String>,
    /// Delete all keys.
    #[arg(short = 'D', long = "delete-all", help_heading = "Actions")]
    delete_all: bool,
    /// Print the fingerprints of these ids' keys, globs separated by commas.
    #[arg(short = 'f', long, value_name = "FINGER", help_heading = "Actions", allow_hyphen_values = true)]
    finger: Option<String>,
    /// Print the fingerprints of all keys.
    #[arg(short = 'F', long = "finger-all", help_heading = "Actions")]
    finger_all: bool,
    /// The hash of fingerprints: sha1, sha224, sha256, sha384 or sha512. Default: the setting hash_type.
    #[arg(long = "finger-hash", value_name = "HASH", help_heading = "Actions")]
    pub(super) finger_hash: Option<String>,

    /// Make a key pair of this name: NAME.pem and NAME.pub.
    #[arg(long = "gen-keys", value_name = "GEN_KEYS", help_heading = "Key Generation Options")]
    gen_keys: Option<String>,
    /// The folder for --gen-keys. Default: this one.
    #[arg(
        long = "gen-keys-dir",
        value_name = "GEN_KEYS_DIR",
        default_value = ".",
        hide_default_value = true,
        help_heading = "Key Generation Options"
    )]
    pub(super) gen_keys_dir: PathBuf,
    /// Bits of the key that --gen-keys makes, at least 2048. Default: 2048.
    #[arg(
        long,
        value_name = "KEYSIZE",
        default_value_t = MIN_BITS,
        hide_default_value = true,
        help_heading = "Key Generation Options"
    )]
    pub(super) keysize: usize,
    /// Sign the master's public key, so that minions that know the signing key trust a new master key. Needs a signing key pair;
    /// see --auto-create.
    #[arg(long = "gen-signature", help_heading = "Key Generation Options")]
    gen_signature: bool,
    /// The private key that --gen-signature signs with. Default: the master's signing key.
    #[arg(long = "priv", value_name = "PRIV", help_heading = "Key Generation Options")]
    pub(super) private: Option<PathBuf>,
    /// The folder for the signature. Default: pki_dir.
    #[arg(long = "signature-path", value_name = "SIGNATURE_PATH", help_heading = "Key Generation Options")]
    pub(super) signature_path: Option<PathBuf>,
    /// The public key that --gen-signature signs. Default: the master's.
    #[arg(long = "pub", value_name = "PUB", help_heading = "Key Generation Options")]
    pub(super) public: Option<PathBuf>,
    /// Make the signing key pair if there is none.
    #[arg(long = "auto-create", help_heading = "Key Generation Options")]
    pub(super) auto_create: bool,

    #[arg(hide = true)]
    words: Vec<String>,
}

/// The action that the options select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    List(Vec<KeyState>),
    Print(String),
    Finger(String),
    Decide(Decision, String),
    Generate(String),
    Sign,
}

/// A decision about keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Accept,
    Reject,
    Delete,
}

impl Decision {
    pub(super) const fn verb(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Delete => "delete",
        }
    }

    pub(super) const fn past(self) -> &'static str {
        match self {
            Self::Accept => "accepted",
            Self::Reject => "rejected",
            Self::Delete => "deleted",
        }
    }

    /// The status that keys get; none if they are deleted.
    pub(super) const fn to(self) -> Option<KeyState> {
        match self {
            Self::Accept => Some(KeyState::Accepted),
            Self::Reject => Some(KeyState::Rejected),
            Self::Delete => None,
        }
    }

    /// The name of the decision in the event.
    pub(super) fn act(self) -> &'static str {
        self.to().map_or("delete", KeyState::act)
    }
}

impl SaltKeyArgs {
    /// The selected action; of several, the first in this order, as in Salt; a listing if there is none.
    pub(super) fn action(&self) -> Result<Action, Failure> {
        let wrong = |what: &str| misuse::<Self>(what);
        if self.nodes && self.log_in().is_some() {
            return Err(wrong(
                "--nodes goes without --auth: only this host's operator decides which salt-api speaks for callers",
            ));
        }
        if self.nodes && (self.gen_keys.is_some() || self.gen_signature) {
            return Err(wrong("--nodes goes without --gen-keys and --gen-signature"));
        }
        if self.keysize < MIN_BITS {
            return Err(wrong("The minimum value for keysize is 2048"));
        }
        if self.keysize > MAX_BITS {
            return Err(wrong(&format!(
                "The maximum value for keysize is {SALTS_MAX_BITS} in Salt and {MAX_BITS} here: masters and minions of Brine refuse \
                 larger keys"
            )));
        }
        if self.delete_all && !self.words.is_empty() {
            return Err(wrong("Delete all takes no arguments. Use -d to delete specified keys"));
        }
        let given = |option: &Option<String>| option.clone().filter(|text| !text.is_empty());
        let all = |set: bool| set.then(|| "*".to_owned());
        if let Some(name) = given(&self.gen_keys) {
            return Ok(Action::Generate(name));
        }
        if self.gen_signature {
            return Ok(Action::Sign);
        }
        if let Some(which) = given(&self.list) {
            return KeyState::listed_by(&which)
                .map(|states| Action::List(states.to_vec()))
                .ok_or_else(|| wrong(&format!("'{which}' is not a valid argument to '--list'")));
        }
        if self.list_all {
            return Ok(Action::List(KeyState::ALL.to_vec()));
        }
        if let Some(globs) = given(&self.print).or_else(|| all(self.print_all)) {
            return Ok(Action::Print(globs));
        }
        for (decision, one, every) in [
            (Decision::Accept, &self.accept, self.accept_all),
            (Decision::Reject, &self.reject, self.reject_all),
            (Decision::Delete, &self.delete, self.delete_all),
        ] {
            if let Some(globs) = given(one).or_else(|| all(every)) {
                return Ok(Action::Decide(decision, globs));
            }
        }
        if let Some(globs) = given(&self.finger).or_else(|| all(self.finger_all)) {
            return Ok(Action::Finger(globs));
        }
        Ok(Action::List(KeyState::ALL.to_vec()))
    }

    /// The statuses that a decision applies to, in Salt's order.
    pub(super) fn included(&self, decision: Decision) -> Vec<KeyState> {
        if decision == Decision::Delete {
            return KeyState::ALL.to_vec();
        }
        let mut out = vec![KeyState::Pending];
        let (accepted, rejected) = self.includes(decision);
        for (status, set) in
            [(KeyState::Accepted, accepted), (KeyState::Rejected, rejected), (KeyState::Denied, self.include_denied)]
        {
            if set {
                out.push(status);
            }
        }
        out
    }

    /// Whether accepted and rejected keys are included.
    const fn includes(&self, decision: Decision) -> (bool, bool) {
        match decision {
            Decision::Accept => (false, self.include_all || self.include_rejected),
            Decision::Reject => (self.include_all || self.include_accepted, false),
            Decision::Delete => (self.include_accepted, self.include_rejected),
        }
    }

    /// The text for the statuses in which nothing matched.
    pub(super) fn not_matched(&self, decision: Decision) -> String {
        let (accepted, rejected) = self.includes(decision);
        let mut names = vec!["unaccepted"];
        for (name, set) in [("accepted", accepted), ("rejected", rejected), ("denied", self.include_denied)] {
            if set {
                names.push(name);
            }
        }
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => names.concat(),
        }
    }

    /// The log-in, if the options select one.
    pub(super) fn log_in(&self) -> Option<LogInArgs> {
        self.eauth.as_deref().filter(|eauth| !eauth.is_empty())?;
        Some(LogInArgs::new(self.eauth.clone(), self.make_token, self.username.clone(), self.password.clone()))
    }

    pub(super) fn start_logging(&self) -> Result<(), Failure> {
        let level = if self.quiet { Some("quiet") } else { self.log_level.as_deref() };
        start_logging(level, self.log_file.as_deref(), self.log_file_level.as_deref())
    }
}

fn python_bool(text: &str) -> Result<bool, String> {
    match text.to_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("it must be True or False".to_owned()),
    }
}
