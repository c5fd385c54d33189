//! The configuration of the program salt-master: checks that only trusted users can write it, applies the command line
//! over it, and reads it again at SIGHUP.

use brine_daemon::args::DaemonArgs;
use brine_daemon::{ProcessError, reload, trust};
use brine_protocol::config::{Config, Role};
use brine_protocol::exit;

use crate::{MasterOpts, Server};

/// Reads and checks the configuration.
///
/// # Errors
/// If the configuration is unusable or untrusted users can write it; the error is one line.
pub(crate) fn load(args: &DaemonArgs) -> Result<(Config, MasterOpts), ProcessError> {
    let usage = |why: String| ProcessError::new(exit::USAGE, why);
    let dir = args.conf_dir()?;
    // The folder is checked even if it is empty.
    trust::check(&dir.join("master.d")).map_err(|error| usage(error.to_string()))?;
    let trust = |file: &std::path::Path| trust::check(file).map_err(|error| error.to_string());
    let config = Config::load_trusted(&dir.join("master"), Role::Master, &trust);
    let mut config = config.map_err(|error| usage(error.to_string()))?;
    args.overrule(&mut config);
    let opts = MasterOpts::from_config(&config).map_err(|error| usage(error.to_string()))?;
    Ok((config, opts))
}

/// Reads the configuration again and applies the live settings. Returns the new configuration, or `None` if it is
/// unusable; the former one then stays.
pub(crate) fn reload(args: &DaemonArgs, before: &Config, server: &Server) -> Option<Config> {
    let taken = load(args).map_err(|error| error.to_string()).and_then(|(config, opts)| {
        brine_daemon::args::levels(&config)?;
        server.reload(&opts)?;
        reload::logs(&config)?;
        // The audit log is rotated together with the other logs.
        if let Err(error) = server.reopen_audit_log() {
            tracing::error!("the audit log cannot be opened anew, it goes on into the file that was open: {error}");
        }
        Ok(config)
    });
    match taken {
        Ok(config) => {
            reload::report(before, &config);
            Some(config)
        }
        Err(why) => {
            tracing::error!("the configuration is not taken up, the one before stays: {why}");
            None
        }
    }
}
