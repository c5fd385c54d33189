//! The configuration of the program salt-master: read with who may write it, laid under the command line, and read again at SIGHUP.

use brine_daemon::args::DaemonArgs;
use brine_daemon::{ProcessError, reload, trust};
use brine_protocol::config::{Config, Role};
use brine_protocol::exit;

use crate::{MasterOpts, Server};

/// Reads and checks the configuration.
///
/// # Errors
/// When it cannot be used, or others may write it; one line.
pub(crate) fn load(args: &DaemonArgs) -> Result<(Config, MasterOpts), ProcessError> {
    let usage = |why: String| ProcessError::new(exit::USAGE, why);
    let dir = args.conf_dir()?;
    // Also the folder that holds nothing yet.
    trust::check(&dir.join("master.d")).map_err(|error| usage(error.to_string()))?;
    let trust = |file: &std::path::Path| trust::check(file).map_err(|error| error.to_string());
    let config = Config::load_trusted(&dir.join("master"), Role::Master, &trust);
    let mut config = config.map_err(|error| usage(error.to_string()))?;
    args.overrule(&mut config);
    let opts = MasterOpts::from_config(&config).map_err(|error| usage(error.to_string()))?;
    Ok((config, opts))
}

/// Reads the configuration again and lets the master take up what can change while it runs. Returns the new configuration, or none if
/// it cannot be used: the one before stays then.
pub(crate) fn reload(args: &DaemonArgs, before: &Config, server: &Server) -> Option<Config> {
    let taken = load(args).map_err(|error| error.to_string()).and_then(|(config, opts)| {
        brine_daemon::args::levels(&config)?;
        server.reload(&opts)?;
        reload::logs(&config)?;
        // Whoever moves logs away moves this one too.
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
