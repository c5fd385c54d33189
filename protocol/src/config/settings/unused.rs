//! Settings of Salt that are accepted and change nothing here. Their defaults are what `config.get` answers.

use super::*;

settings! { AREA = "Accepted without effect";
    /// IPv6 is used where an address says so.
    IPV6: Value = any("ipv6", both("null")).unused();
    /// Nothing is logged to this file.
    KEY_LOGFILE: Value = setting("key_logfile", master("/var/log/salt/key"), SettingKind::Path).unused();
    /// Sockets are always Unix sockets.
    IPC_MODE: Value = any("ipc_mode", both("ipc")).unused();
    /// The master has no worker processes.
    WORKER_THREADS: Value = any("worker_threads", master("5")).unused();
    /// The master has no worker processes.
    WORKER_POOLS_ENABLED: Value = any("worker_pools_enabled", master("true")).unused();
    /// `timeout` is the time that commands wait.
    PUBLISH_TIMEOUT: Value = any("publish_timeout", master("30")).unused();
    /// There is one way to authenticate.
    AUTH_MODE: Value = any("auth_mode", master("1")).unused();
    /// Publications are always signed, and minions always verify them.
    SIGN_PUB_MESSAGES: Value = any("sign_pub_messages", each("true", "false")).unused();
    /// `master_sign_pubkey` is what counts.
    MASTER_USE_PUBKEY_SIGNATURE: Value = any("master_use_pubkey_signature", master("false")).unused();
    /// Keys are kept without a passphrase.
    KEY_PASS: Value = any("key_pass", master("null")).unused().private();
    /// Keys are kept without a passphrase.
    SIGNING_KEY_PASS: Value = any("signing_key_pass", master("null")).unused().private();
    /// Events of sockets are not logged.
    ZMQ_MONITOR: Value = any("zmq_monitor", each("false", "true")).unused();
    /// There are no syndics.
    ORDER_MASTERS: Value = any("order_masters", master("false")).unused();
    /// `keep_jobs_seconds` is what counts.
    KEEP_JOBS: Value = any("keep_jobs", master("24")).unused();
    /// Job ids are always unique.
    UNIQUE_JID: Value = any("unique_jid", master("false")).unused();
    /// The bus has bounds of its own.
    IPC_WRITE_BUFFER: Value = any("ipc_write_buffer", master("0")).unused();
    /// Files come from `file_roots`.
    FILESERVER_BACKEND: Value = any("fileserver_backend", master("[roots]")).unused();
    /// `fileserver_followsymlinks` is what counts.
    FILESERVER_IGNORESYMLINKS: Value = any("fileserver_ignoresymlinks", master("false")).unused();
    /// There is one form of pillar requests.
    PILLAR_VERSION: Value = any("pillar_version", master("2")).unused();
    /// Users that came by sudo are root.
    SUDO_ACL: Value = any("sudo_acl", master("false")).unused();
    /// `salt --hide-timeout` is what counts.
    SHOW_TIMEOUT: Value = any("show_timeout", master("true")).unused();
    /// `salt --show-jid` is what counts.
    SHOW_JID: Value = any("show_jid", master("false")).unused();
    /// `salt --summary` is what counts.
    CLI_SUMMARY: Value = any("cli_summary", master("false")).unused();
    /// Keys are read from `pki_dir`.
    KEY_CACHE: Value = any("key_cache", master("''")).unused();
    /// Masters do not form clusters.
    CLUSTER_ID: Value = any("cluster_id", master("null")).unused();
    /// Keys are files in `pki_dir`.
    KEYS_CACHE_DRIVER: Value = any("keys.cache_driver", master("localfs_key")).unused();
    /// `minion_data_cache` is what counts.
    ENFORCE_MINE_CACHE: Value = any("enforce_mine_cache", master("false")).unused();
    /// Of several masters the first is used.
    MASTER_TYPE: Value = any("master_type", minion("str")).unused();
    /// Of several masters the first is used.
    MASTER_SHUFFLE: Value = any("master_shuffle", minion("false")).unused();
    /// Of several masters the first is used.
    RANDOM_MASTER: Value = any("random_master", minion("false")).unused();
    /// The minion tries to connect until it is asked to end.
    MASTER_TRIES: Value = any("master_tries", minion("-1")).unused();
    /// `zmq_heartbeat_ivl` finds a master that vanished.
    MASTER_ALIVE_INTERVAL: Value = any("master_alive_interval", minion("0")).unused();
    /// `source_address` is what counts.
    SOURCE_INTERFACE_NAME: Value = any("source_interface_name", minion("''")).unused();
    /// Publications are always verified.
    ALWAYS_VERIFY_SIGNATURE: Value = any("always_verify_signature", minion("false")).unused();
    /// There are no syndics.
    SYNDIC_FINGER: Value = any("syndic_finger", minion("''")).unused();
    /// `auth_tries` is what counts.
    AUTH_RETRIES: Value = any("auth_retries", minion("0")).unused();
    /// The minion tries to authenticate until it is asked to end.
    AUTH_SAFEMODE: Value = any("auth_safemode", minion("false")).unused();
    /// Names are resolved anew with each attempt to connect.
    RETRY_DNS: Value = any("retry_dns", minion("30")).unused();
    /// Names are resolved anew with each attempt to connect.
    RETRY_DNS_COUNT: Value = any("retry_dns_count", minion("null")).unused();
    /// A return is sent until the master has it.
    RETURN_RETRY_TRIES: Value = any("return_retry_tries", minion("3")).unused();
    /// Jobs run in the sandbox.
    MULTIPROCESSING: Value = any("multiprocessing", minion("true")).unused();
    /// The spool keeps returns until the master has them.
    CACHE_JOBS: Value = any("cache_jobs", minion("false")).unused();
    /// A value to read in tests.
    TEST_FOO: Value = any("test.foo", minion("unconfigured")).unused();
    /// Results are always returned to the master.
    PUB_RET: Value = any("pub_ret", minion("true")).unused();
    /// `saltenv` is what counts.
    ENVIRONMENT: Value = any("environment", minion(NONE)).unused();
    /// Python's programs write it; it is not read.
    MASTER_URI: Value = any("master_uri", minion(NONE)).unused();
    /// Path that is derived from `cachedir` where it is not set.
    EXTENSION_MODULES: Value = setting("extension_modules", both(NONE), SettingKind::Path).unused();
}
