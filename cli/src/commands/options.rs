//! Options that the commands share: the configuration and the log-in.

use std::path::PathBuf;

use brine_protocol::config::{Config, Role};
use brine_protocol::exit;
use brine_protocol::secret::Secret;
use clap::Args;

use crate::Failure;
use crate::commandline::VERSION;
use brine_client::{ClientOpts, LogIn, login};

/// The default folder of Salt's configuration.
const CONFIG_DIR: &str = "/etc/salt";

/// `-c`, and the layout and rules of all commands' lines, which clap takes from here into the command.
#[derive(Debug, Clone, Args)]
#[command(
    version = VERSION,
    help_template = "{usage-heading} {usage}\n\n{about}\n\n{all-args}",
    infer_long_args = true,
    args_override_self = true
)]
pub struct ConfigArgs {
    /// Changes nothing: errors are always told as they are.
    #[arg(long = "hard-crash", hide = true)]
    _hard_crash: bool,
    /// The folder with the configuration. Default: /etc/salt.
    #[arg(short = 'c', long = "config-dir", value_name = "CONFIG_DIR")]
    pub config_dir: Option<PathBuf>,
}

impl ConfigArgs {
    /// Reads the master's configuration.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub fn load(&self) -> Result<(Config, ClientOpts), Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::new(exit::USAGE, error.to_string());
        let from_env = || std::env::var_os("SALT_CONFIG_DIR").map(PathBuf::from);
        let named = self.config_dir.clone().or_else(from_env);
        // Salt would warn and continue with its defaults, and so address another master or none.
        if let Some(dir) = &named
            && let Err(error) = std::fs::metadata(dir)
            && error.kind() == std::io::ErrorKind::NotFound
        {
            return Err(usage(&format_args!(
                "the configuration folder {} does not exist: name the one that salt-master was started with (-c)",
                dir.display()
            )));
        }
        let dir = named.unwrap_or_else(|| CONFIG_DIR.into());
        let config = Config::load(&dir.join("master"), Role::Master).map_err(|error| usage(&error))?;
        let opts = ClientOpts::new(&config).map_err(|error| usage(&error))?;
        Ok((config, opts))
    }
}

/// `-a` and the like.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "External Authentication")]
pub struct LogInArgs {
    /// Log in by this system of the master's external_auth, for example pam or ldap.
    #[arg(short = 'a', long = "auth", aliases = ["eauth", "external-auth"], value_name = "EAUTH")]
    eauth: Option<String>,
    /// Keep the token that the master gives for a log-in; later calls use it until it expires (token_expire).
    #[arg(short = 'T', long = "make-token")]
    make_token: bool,
    /// The user to log in as. Default: asked for.
    #[arg(long, value_name = "USERNAME")]
    username: Option<String>,
    /// The password to log in with. Default: asked for.
    #[arg(long, value_name = "PASSWORD")]
    password: Option<Secret<String>>,
}

/// The systems of `external_auth` in Salt's and Brine's masters. The master itself decides which of them it uses.
const SYSTEMS: [&str; 12] = [
    "auto",
    "django",
    "file",
    "keystone",
    "ldap",
    "mysql",
    "pam",
    "pki",
    "rest",
    "sharedsecret",
    "statictoken",
    "yubico",
];

impl LogInArgs {
    /// For a command with other names for these options.
    pub(super) const fn new(
        eauth: Option<String>,
        make_token: bool,
        username: Option<String>,
        password: Option<Secret<String>>,
    ) -> Self {
        Self { eauth, make_token, username, password }
    }

    /// Reports, as Salt does, a log-in system that no master has.
    ///
    /// # Errors
    /// When there is no such system: the message is printed, and the failure has this exit code.
    pub(super) fn check_system(&self, code: i32) -> Result<(), Failure> {
        match &self.eauth {
            Some(eauth) if !eauth.is_empty() && !SYSTEMS.contains(&eauth.as_str()) => {
                let shown = brine_protocol::text::visible(eauth);
                crate::print::stdout(&format!(
                    "The specified external authentication system \"{shown}\" is not available\nAvailable eauth types: {}",
                    SYSTEMS.join(", ")
                ));
                Err(Failure::new(code, "ERROR: Authentication failed"))
            }
            _ => Ok(()),
        }
    }

    /// Chooses the log-in: the saved token, a name and a password, or the master's own key. Prompts at the terminal for
    /// missing data.
    ///
    /// # Errors
    /// When there is no terminal for a prompt.
    pub async fn resolve(&self, config: &Config, opts: &ClientOpts) -> Result<LogIn, Failure> {
        let token_file = login::token_file(config);
        let eauth = self.eauth.as_deref().filter(|eauth| !eauth.is_empty());
        let again = eauth.is_some() && (self.make_token || self.username.is_some() || self.password.is_some());
        if !again && let Some(token) = login::saved_token(&token_file, config) {
            return Ok(if login::has_key(opts) { LogIn::Key } else { LogIn::Token(token) });
        }
        let Some(eauth) = eauth else { return Ok(LogIn::Key) };
        let nobody = |what: &str, error: std::io::Error| {
            Failure::new(
                exit::STATE_FAILURE,
                format!("ERROR: Authentication failed: no {what}: {error}; name it with --{what}"),
            )
        };
        let username = match &self.username {
            Some(name) => name.clone(),
            None => ask("username: ").map_err(|error| nobody("username", error))?,
        };
        let username = if username.is_empty() { opts.user.clone() } else { username };
        let password = match &self.password {
            Some(password) => password.clone(),
            None => {
                rpassword::prompt_password("password: ").map(Secret::new).map_err(|error| nobody("password", error))?
            }
        };
        let log_in = LogIn::External { eauth: eauth.to_owned(), username, password, token_expire: None };
        if !self.make_token {
            return Ok(log_in);
        }
        match login::make_token(opts, &log_in).await {
            Ok(token) => {
                if let Err(error) = login::save_token(&token_file, &token) {
                    tracing::warn!("the token cannot be kept in {}: {error}", token_file.display());
                }
                Ok(LogIn::Token(token))
            }
            // The master then refuses the request itself with the same error.
            Err(error) => {
                tracing::debug!("no token: {error}");
                Ok(log_in)
            }
        }
    }
}

/// Reads a line from the terminal.
#[expect(clippy::print_stdout, reason = "the answer is typed behind it")]
fn ask(prompt: &str) -> std::io::Result<String> {
    use std::io::Write as _;
    print!("{}", brine_protocol::text::visible(prompt));
    std::io::stdout().flush()?;
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line)? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end_matches(['\n', '\r']).to_owned()),
    }
}
