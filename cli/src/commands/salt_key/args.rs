//! The options of `salt-key`, in Salt's words, and what they ask for.

use std::path::PathBuf;

use brine_protocol::keys::MAX_BITS;
use brine_protocol::secret::Secret;
use clap::{ArgAction, Parser};

use crate::Failure;
use crate::commandline::{VERSION, misuse};
use crate::commands::options::{ConfigArgs, LogInArgs};
use crate::logging::{LEVELS, start_logging};
use crate::print::OutputArgs;
use brine_client::keys::Status;

/// The least size of a key that is made.
const MIN_BITS: usize = 2048;
/// The greatest that Salt's salt-key makes; to use one takes minutes.
const SALTS_MAX_BITS: usize = 32_768;

/// The command line of `salt-key`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "salt-key",
    version = VERSION,
    about = "salt-key is used to manage Salt authentication keys",
    override_usage = "salt-key [options]",
    help_template = "{usage-heading} {usage}\n\n{about}\n\n{all-args}",
    infer_long_args = true,
    args_override_self = true
)]
pub struct SaltKeyArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Specify user to run salt-key: whom the files belong to that it writes.
    #[arg(short = 'u', long, value_name = "USER")]
    pub(super) user: Option<String>,
    /// Console logging log level.
    #[arg(long = "log-level", value_name = "LOG_LEVEL", value_parser = LEVELS)]
    log_level: Option<String>,
    /// Log file path.
    #[arg(long = "log-file", value_name = "KEY_LOGFILE")]
    log_file: Option<PathBuf>,
    /// Logfile logging log level.
    #[arg(long = "log-file-level", value_name = "LOG_LEVEL_LOGFILE", value_parser = LEVELS)]
    log_file_level: Option<String>,
    /// Specify an external authentication system to use: the master then does with the keys what this user may.
    #[arg(long = "auth", aliases = ["eauth", "external-auth"], value_name = "EAUTH", help_heading = "External Authentication")]
    eauth: Option<String>,
    /// Generate and save an authentication token for re-use. The token is generated and made available for the period
    /// defined in the Salt Master.
    #[arg(short = 'T', long = "make-token", help_heading = "External Authentication")]
    make_token: bool,
    /// Username for external authentication.
    #[arg(long, value_name = "USERNAME", help_heading = "External Authentication")]
    username: Option<String>,
    /// Password for external authentication; asked for where it is left out.
    #[arg(long, value_name = "PASSWORD", help_heading = "External Authentication")]
    password: Option<Secret<String>>,
    /// Suppress output.
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
    /// Answer "Yes" to all questions presented. Default: False.
    #[arg(short = 'y', long)]
    pub(super) yes: bool,
    /// Setting this to False keeps the master's publish key when keys are deleted or rejected: the minions they were of can go on
    /// reading what is published. Default: True.
    #[arg(long = "rotate-aes-key", value_name = "ROTATE_AES_KEY", value_parser = python_bool, action = ArgAction::Set)]
    pub(super) rotate_aes_key: Option<bool>,
    /// Setting this to True prevents the master from deleting the minion cache when keys are deleted, this may have
    /// security implications if compromised minions auth with a previous deleted minion ID. Default: False.
    #[arg(long = "preserve-minions", value_name = "PRESERVE_MINIONS", value_parser = python_bool, action = ArgAction::Set)]
    pub(super) preserve_minions: Option<bool>,
    #[command(flatten)]
    pub(super) output: OutputArgs,

    /// List the public keys. The args 'pre', 'un', and 'unaccepted' will list unaccepted/unsigned keys. 'acc' or
    /// 'accepted' will list accepted/signed keys. 'rej' or 'rejected' will list rejected keys. 'den' or 'denied' will
    /// list denied keys. Finally, 'all' will list all keys.
    #[arg(short = 'l', long, value_name = "ARG", help_heading = "Actions", allow_hyphen_values = true)]
    list: Option<String>,
    /// List all public keys. Deprecated: use "--list all".
    #[arg(short = 'L', long = "list-all", help_heading = "Actions")]
    list_all: bool,
    /// Accept the specified public key (use --include-rejected and --include-denied to match rejected and denied keys in
    /// addition to pending keys). Globs are supported.
    #[arg(short = 'a', long, value_name = "ACCEPT", help_heading = "Actions", allow_hyphen_values = true)]
    accept: Option<String>,
    /// Accept all pending keys.
    #[arg(short = 'A', long = "accept-all", help_heading = "Actions")]
    accept_all: bool,
    /// Reject the specified public key. Use --include-accepted and --include-denied to match accepted and denied keys in
    /// addition to pending keys. Globs are supported.
    #[arg(short = 'r', long, value_name = "REJECT", help_heading = "Actions", allow_hyphen_values = true)]
    reject: Option<String>,
    /// Reject all pending keys.
    #[arg(short = 'R', long = "reject-all", help_heading = "Actions")]
    reject_all: bool,
    /// Include rejected/accepted keys when accepting/rejecting. Deprecated: use "--include-rejected" and
    /// "--include-accepted".
    #[arg(long = "include-all", help_heading = "Actions")]
    include_all: bool,
    /// Include accepted keys when rejecting.
    #[arg(long = "include-accepted", help_heading = "Actions")]
    include_accepted: bool,
    /// Include rejected keys when accepting.
    #[arg(long = "include-rejected", help_heading = "Actions")]
    include_rejected: bool,
    /// Include denied keys when accepting/rejecting.
    #[arg(long = "include-denied", help_heading = "Actions")]
    include_denied: bool,
    /// Print the specified public key.
    #[arg(short = 'p', long, value_name = "PRINT", help_heading = "Actions", allow_hyphen_values = true)]
    print: Option<String>,
    /// Print all public keys.
    #[arg(short = 'P', long = "print-all", help_heading = "Actions")]
    print_all: bool,
    /// Delete the specified key. Globs are supported.
    #[arg(short = 'd', long, value_name = "DELETE", help_heading = "Actions", allow_hyphen_values = true)]
    delete: Option<String>,
    /// Delete all keys.
    #[arg(short = 'D', long = "delete-all", help_heading = "Actions")]
    delete_all: bool,
    /// Print the specified key's fingerprint.
    #[arg(short = 'f', long, value_name = "FINGER", help_heading = "Actions", allow_hyphen_values = true)]
    finger: Option<String>,
    /// Print all keys' fingerprints.
    #[arg(short = 'F', long = "finger-all", help_heading = "Actions")]
    finger_all: bool,
    /// The hash of fingerprints: sha1, sha224, sha256, sha384 or sha512. Default: the configuration's hash_type.
    #[arg(long = "finger-hash", value_name = "HASH", help_heading = "Actions")]
    pub(super) finger_hash: Option<String>,

    /// Set a name to generate a keypair for use with salt.
    #[arg(long = "gen-keys", value_name = "GEN_KEYS", help_heading = "Key Generation Options")]
    gen_keys: Option<String>,
    /// Set the directory to save the generated keypair, only works with "--gen-keys" option. Default: '.'.
    #[arg(
        long = "gen-keys-dir",
        value_name = "GEN_KEYS_DIR",
        default_value = ".",
        hide_default_value = true,
        help_heading = "Key Generation Options"
    )]
    pub(super) gen_keys_dir: PathBuf,
    /// Set the keysize for the generated key, only works with the "--gen-keys" option, the key size must be 2048 or
    /// higher. Default: 2048.
    #[arg(
        long,
        value_name = "KEYSIZE",
        default_value_t = MIN_BITS,
        hide_default_value = true,
        help_heading = "Key Generation Options"
    )]
    pub(super) keysize: usize,
    /// Create a signature file of the masters public-key named <id>_pubkey_signature. The signature can be send to a minion in
    /// the masters auth-reply and enables the minion to verify the masters public-key cryptographically. This requires a new
    /// signing-key-pair which can be auto-created with the --auto-create parameter.
    #[arg(long = "gen-signature", help_heading = "Key Generation Options")]
    gen_signature: bool,
    /// The private-key file to create a signature with.
    #[arg(long = "priv", value_name = "PRIV", help_heading = "Key Generation Options")]
    pub(super) private: Option<PathBuf>,
    /// The path where the signature file should be written.
    #[arg(long = "signature-path", value_name = "SIGNATURE_PATH", help_heading = "Key Generation Options")]
    pub(super) signature_path: Option<PathBuf>,
    /// The public-key file to create a signature for.
    #[arg(long = "pub", value_name = "PUB", help_heading = "Key Generation Options")]
    pub(super) public: Option<PathBuf>,
    /// Auto-create a signing key-pair if it does not yet exist.
    #[arg(long = "auto-create", help_heading = "Key Generation Options")]
    pub(super) auto_create: bool,

    #[arg(hide = true)]
    words: Vec<String>,
}

/// What the options ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    List(Vec<Status>),
    Print(String),
    Finger(String),
    Decide(Decision, String),
    Generate(String),
    Sign,
}

/// What is to become of keys.
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

    /// The status that keys get; none when they go.
    pub(super) const fn to(self) -> Option<Status> {
        match self {
            Self::Accept => Some(Status::Accepted),
            Self::Reject => Some(Status::Rejected),
            Self::Delete => None,
        }
    }

    /// What the event calls it.
    pub(super) fn act(self) -> &'static str {
        self.to().map_or("delete", Status::act)
    }
}

impl SaltKeyArgs {
    /// The action, the first of these that is asked for as in Salt; a list if none is.
    pub(super) fn action(&self) -> Result<Action, Failure> {
        let wrong = |what: &str| misuse::<Self>(what);
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
            return statuses(&which)
                .map(Action::List)
                .ok_or_else(|| wrong(&format!("'{which}' is not a valid argument to '--list'")));
        }
        if self.list_all {
            return Ok(Action::List(Status::ALL.to_vec()));
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
        Ok(Action::List(Status::ALL.to_vec()))
    }

    /// Which keys a decision is about, in Salt's order.
    pub(super) fn included(&self, decision: Decision) -> Vec<Status> {
        if decision == Decision::Delete {
            return Status::ALL.to_vec();
        }
        let mut out = vec![Status::Pending];
        let (accepted, rejected) = self.includes(decision);
        for (status, set) in
            [(Status::Accepted, accepted), (Status::Rejected, rejected), (Status::Denied, self.include_denied)]
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

    /// The statuses in which nothing matched, in words.
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

    /// How to log in, where that was asked for.
    pub(super) fn log_in(&self) -> Option<LogInArgs> {
        self.eauth.as_deref().filter(|eauth| !eauth.is_empty())?;
        Some(LogInArgs::new(self.eauth.clone(), self.make_token, self.username.clone(), self.password.clone()))
    }

    pub(super) fn start_logging(&self) -> Result<(), Failure> {
        let level = if self.quiet { Some("quiet") } else { self.log_level.as_deref() };
        start_logging(level, self.log_file.as_deref(), self.log_file_level.as_deref())
    }
}

/// The statuses that an argument of `--list` names.
fn statuses(which: &str) -> Option<Vec<Status>> {
    let all = [
        ("acc", &[Status::Accepted][..]),
        ("pre", &[Status::Pending]),
        ("un", &[Status::Pending]),
        ("rej", &[Status::Rejected]),
        ("den", &[Status::Denied]),
        ("all", &Status::ALL),
    ];
    all.into_iter().find(|(prefix, _)| which.starts_with(prefix)).map(|(_, statuses)| statuses.to_vec())
}

fn python_bool(text: &str) -> Result<bool, String> {
    match text.to_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("it must be True or False".to_owned()),
    }
}
