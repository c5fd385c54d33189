//! Salt's defaults (§12) for the options that some part of Brine reads, per role; other keys are kept as they are written.

use super::Role;

/// The defaults of a role, in YAML.
pub(super) const fn of(role: Role) -> &'static str {
    match role {
        Role::Master => MASTER,
        Role::Minion => MINION,
    }
}

/// The options that get `root_dir` before them, as Salt does it; log files too, unless they are URIs.
pub(super) const fn paths(role: Role) -> &'static [&'static str] {
    match role {
        Role::Master => &[
            "pki_dir",
            "cachedir",
            "pidfile",
            "sock_dir",
            "extension_modules",
            "autosign_file",
            "autoreject_file",
            "token_dir",
            "syndic_dir",
            "autosign_grains_dir",
            "log_file",
            "key_logfile",
            "audit_log",
        ],
        Role::Minion => &["pki_dir", "cachedir", "sock_dir", "extension_modules", "pidfile", "log_file"],
    }
}

const MASTER: &str = "\
default_include: master.d/*.conf
interface: 0.0.0.0
publish_port: 4505
ret_port: 4506
user: root
ipv6: null
root_dir: /
pki_dir: /etc/salt/pki/master
cachedir: /var/cache/salt/master
sock_dir: /var/run/salt/master
pidfile: /var/run/salt-master.pid
log_file: /var/log/salt/master
key_logfile: /var/log/salt/key
audit_log: null
audit_log_required: false
audit_log_hide: []
log_level: warning
log_level_logfile: null
transport: zeromq
ipc_mode: ipc
worker_threads: 5
worker_pools_enabled: true
timeout: 5
gather_job_timeout: 10
publish_timeout: 30
loop_interval: 60
keysize: 2048
hash_type: sha256
auto_accept: false
open_mode: false
autosign_timeout: 120
autosign_file: /etc/salt/autosign.conf
autoreject_file: /etc/salt/autoreject.conf
autosign_grains_dir: null
auth_mode: 1
auth_events: true
auth_events_autosign_grains: []
minimum_auth_version: 3
request_server_ttl: 0
publish_session: 86400
rotate_aes_key: true
ping_on_rotate: false
max_minions: 0
sign_pub_messages: true
publish_signing_algorithm: PKCS1v15-SHA1
master_sign_pubkey: false
master_sign_key_name: master_sign
master_use_pubkey_signature: false
master_pubkey_signature: null
key_pass: null
signing_key_pass: null
require_minion_sign_messages: false
drop_messages_signature_fail: true
allow_minion_key_revoke: true
permissive_pki_access: false
zmq_filtering: false
zmq_backlog: 1000
pub_hwm: 1000
zmq_monitor: false
zmq_heartbeat_ivl: 10000
zmq_heartbeat_timeout: 30000
tcp_keepalive: true
tcp_keepalive_idle: 300
tcp_keepalive_cnt: -1
tcp_keepalive_intvl: -1
presence_events: false
order_masters: false
minion_data_cache: true
minion_data_cache_events: true
job_cache: true
master_job_cache: local_cache
keep_jobs_seconds: 86400
keep_jobs: 24
job_cache_store_endtime: false
ext_job_cache: ''
event_return: ''
unique_jid: false
max_event_size: 1048576
ipc_write_buffer: 0
event_publisher_framing: bare
file_buffer_size: 1048576
file_recv: false
file_recv_max_size: 100
file_roots: {base: [/srv/salt, /srv/spm/salt]}
pillar_roots: {base: [/srv/pillar, /srv/spm/pillar]}
fileserver_backend: [roots]
fileserver_followsymlinks: true
fileserver_ignoresymlinks: false
file_ignore_regex: []
file_ignore_glob: []
pillar_version: 2
peer: {}
peer_run: {}
external_auth: {}
publisher_acl: {}
publisher_acl_blacklist: {}
client_acl_verify: true
auth.pam.service: login
sudo_acl: false
token_expire: 43200
token_expire_user_override: false
keep_acl_in_token: false
nodegroups: {}
show_timeout: true
show_jid: false
cli_summary: false
state_output: full
state_verbose: true
output: null
color: true
key_cache: ''
cluster_id: null
keys.cache_driver: localfs_key
max_open_files: 100000
enforce_mine_cache: false
runner_returns: true
default_top: base
top_file_merging_strategy: merge
env_order: []
";

const MINION: &str = "\
default_include: minion.d/*.conf
master: salt
master_port: 4506
publish_port: 4506
master_type: str
master_shuffle: false
random_master: false
interface: 0.0.0.0
source_interface_name: ''
source_address: ''
source_ret_port: 0
source_publish_port: 0
ipv6: null
user: root
root_dir: /
pki_dir: /etc/salt/pki/minion
cachedir: /var/cache/salt/minion
sock_dir: /var/run/salt/minion
pidfile: /var/run/salt-minion.pid
log_file: /var/log/salt/minion
log_level: warning
log_level_logfile: null
keysize: 2048
hash_type: sha256
encryption_algorithm: OAEP-SHA1
signing_algorithm: PKCS1v15-SHA1
sign_pub_messages: false
minion_sign_messages: false
verify_master_pubkey_sign: false
always_verify_signature: false
master_sign_key_name: master_sign
master_finger: ''
syndic_finger: ''
open_mode: false
acceptance_wait_time: 10
acceptance_wait_time_max: 0
rejected_retry: false
auth_timeout: 5
auth_tries: 7
auth_retries: 0
auth_safemode: false
random_reauth_delay: 10
master_tries: -1
retry_dns: 30
retry_dns_count: null
request_channel_timeout: 60
request_channel_tries: 3
return_retry_timer: 5
return_retry_timer_max: 10
return_retry_tries: 3
recon_default: 1000
recon_max: 10000
recon_randomize: true
tcp_keepalive: true
tcp_keepalive_idle: 300
tcp_keepalive_cnt: -1
tcp_keepalive_intvl: -1
ping_interval: 0
master_alive_interval: 0
zmq_filtering: false
zmq_monitor: true
zmq_heartbeat_ivl: 10000
zmq_heartbeat_timeout: 30000
ipc_mode: ipc
transport: zeromq
file_buffer_size: 262144
file_client: remote
file_roots: {base: [/srv/salt, /srv/spm/salt]}
pillar_roots: {base: [/srv/pillar, /srv/spm/pillar]}
fileserver_followsymlinks: true
saltenv: null
pillarenv: null
multiprocessing: true
process_count_max: -1
minion_jid_queue_hwm: 100
multifunc_ordered: false
mine_enabled: true
mine_interval: 60
mine_functions: {}
cache_jobs: false
grains: {}
grains_cache: false
autosign_grains: []
enable_legacy_startup_events: true
start_event_grains: []
test.foo: unconfigured
pub_ret: true
loop_interval: 1
beacons: {}
schedule: {}
color: true
output: null
minion_id_caching: true
minion_id_lowercase: false
max_open_files: 100000
sandbox: {}
";
