//! The daemons as processes: user, folders, logs.

use std::path::PathBuf;

use super::*;

settings! { AREA = "Process, folders and logs";
    /// User that the daemon runs as when root starts it. On a minion: user that its programs run as.
    USER: String = text("user", both("root"));
    /// Further configuration files that are read after the main file, relative to its folder; `*`, `?` and `[` are wildcards.
    DEFAULT_INCLUDE: String = text("default_include", each("master.d/*.conf", "minion.d/*.conf"));
    /// More files to read, as `default_include`: one pattern or a list of patterns.
    INCLUDE: Value = any("include", both(NONE));
    /// Folder that is put before every path of the configuration that is not below it already.
    ROOT_DIR: String = text("root_dir", both("/"));
    /// Folder of the daemon's own keys and of the keys that it trusts.
    PKI_DIR: PathBuf = path("pki_dir", each("/etc/salt/pki/master", "/etc/salt/pki/minion"));
    /// Folder of everything that the daemon keeps: jobs, spools, compiled modules.
    CACHEDIR: PathBuf = path("cachedir", each("/var/cache/salt/master", "/var/cache/salt/minion"));
    /// Folder of the master's event sockets. Where its path is much longer than `cachedir`, `.salt-unix` in `cachedir` is used.
    SOCK_DIR: PathBuf = path("sock_dir", each("/var/run/salt/master", "/var/run/salt/minion")).unused_on(Role::Minion);
    /// File with the number of the process. It is locked, so that a second daemon does not start.
    PIDFILE: PathBuf = path("pidfile", each("/var/run/salt-master.pid", "/var/run/salt-minion.pid"));
    /// Log file, or a log service: `file:///dev/log`, `udp://HOST:PORT`.
    LOG_FILE: PathBuf = path("log_file", each("/var/log/salt/master", "/var/log/salt/minion"));
    /// Level of what is logged to the console: quiet, critical, error, warning, info, debug, trace or all.
    LOG_LEVEL: String = text("log_level", both("warning")).live();
    /// Level of what is logged to the log file; without it, that of the console.
    LOG_LEVEL_LOGFILE: String = text("log_level_logfile", both("null")).live();
    /// Number of open files to ask the system for. Root raises its hard limit to it.
    MAX_OPEN_FILES: u64 = integer("max_open_files", both("100000"), "files", POSITIVE);
    /// Settings that everybody may read besides the public ones: names or globs; `a:b` names the key `b` of the mapping `a`.
    CONFIG_PUBLIC: Value = any("config_public", both(NONE));
    /// Name of the audit log, which has one JSON line for each use of the master. Without it there is none.
    AUDIT_LOG: PathBuf = path("audit_log", master("null"));
    /// Refuse to act while the audit log cannot be written.
    AUDIT_LOG_REQUIRED: bool = flag("audit_log_required", master("false"));
    /// Functions whose arguments are left out of the audit log, as globs, besides those that are known to take secrets.
    AUDIT_LOG_HIDE: Vec<String> = list("audit_log_hide", master("[]"));
}
