//! Entries and what they can be used for.

use super::*;
use brine_protocol::config::yaml;

fn said(key: &str, entry: &str) -> String {
    of(key, &yaml::load(entry).unwrap())
}

fn check(level: &str, entries: &[(&str, &str)]) {
    for (entry, words) in entries {
        let said = said("m", entry);
        assert!(said.starts_with(&format!("{level}: m could ")) && said.contains(words), "{entry}: {said}");
    }
}

#[test]
fn what_is_as_good_as_the_host_is_high() {
    check(
        "high",
        &[
            ("{process: any}", "any program"),
            ("{process: [/usr/bin/uptime, /usr/bin/python3.12]}", "/usr/bin/python3.12, which does what it is told"),
            ("{process: {programs: [/bin/sh]}}", "/bin/sh"),
            ("{process: [/lib64/ld-linux-x86-64.so.2]}", "/lib64/ld-linux"),
            ("{process: [\"/opt/*\"]}", "what is like \"/opt/*\""),
            ("{process: [/bin/cp]}", "change what this host runs by /bin/cp"),
            ("{process: {programs: [], env: [LD_PRELOAD]}}", "variables (LD_PRELOAD)"),
            ("{process: {programs: [/usr/bin/uptime], env: [LD_PRELOAD]}}", "variables (LD_PRELOAD)"),
            ("{process: {env: [BASH_ENV], users: [root], detach: true}}", "as root"),
            ("{process: {env: [\"SYSTEMD_*\"]}}", "variables"),
            ("{process: {env: any}}", "variables"),
            ("{process: {groups: [docker]}}", "get root's rights"),
            ("{process: {users: [0]}}", "as root"),
            ("{process: {lines: [\"/bin/sh -c **\"]}}", "\"/bin/sh -c **\""),
            ("{process: {lines: [/bin/sh /opt/x.sh]}}", "run anything by the line"),
            ("{process: {lines: [\"/opt/x **\"]}}", "any arguments"),
            ("{process: {lines: [\"/usr/bin/systemctl restart *\"]}}", "change what this host runs"),
            ("{process: {looks: [\"/bin/sh -c **\"]}}", "run anything by the line"),
            // What it may write is what it may run.
            ("{process: [/srv/app/run], changes: {/srv/app: rw}}", "run anything as /srv/app/run"),
            ("{process: [/srv/app/run], filesystem: {/srv: rw}}", "run anything as /srv/app/run"),
            ("{filesystem: {/etc/ssh: rw}}", "change what is in /etc/ssh"),
            ("{filesystem: {/: rw}}", "change what is in"),
            ("{changes: {/var: rw}}", "change what is in /var"),
            ("{changes: {/home/x/.ssh/authorized_keys: rw}}", "authorized_keys"),
            ("{changes: {/srv/x: rw+setid}}", "another user's rights"),
            ("{changes: {/etc/shadow: ro}}", "read what is in /etc/shadow with the minion's rights"),
            ("{changes: {/etc: ro}}", "passwords"),
            ("{filesystem: {/root: ro}, user: root}", "passwords"),
            ("{user: root}", "act as root"),
            ("{schedule: true}", "any job"),
            ("{publish: any}", "any job on any host"),
            ("{functions: any}", "every function"),
            ("{functions: [\"*\"]}", "every function"),
            ("{states: any}", "every state"),
            ("{pillar: any}", "every secret"),
            ("{network: [\"0.0.0.0/0:*\"]}", "any host"),
            // Two halves are the whole.
            ("{network: [\"0.0.0.0/1:*\", \"128.0.0.0/1:*\"]}", "any host"),
            ("{network: [\"[::/2]:443\"]}", "any host"),
            ("{network: [\"169.254.169.254:80\"]}", "this machine's credentials"),
            ("{network: [\"169.254.0.0/16:80\"]}", "this machine's credentials"),
            // However root is written.
            ("{process: {users: [\"00\"]}}", "as root"),
            ("{process: {groups: [\"00\"]}}", "get root's rights"),
            ("{user: \"000\"}", "act as root"),
            ("{changes: {/srv/salt: rw}}", "decides what this host runs"),
            ("{changes: {/var/lib/dpkg/info: rw}}", "decides what this host runs"),
            ("{changes: {/var/spool/at: rw}}", "decides what this host runs"),
            ("{changes: {/var/backups: ro}}", "passwords"),
            ("{changes: {/etc/letsencrypt: ro}}", "passwords"),
            ("{process: [/usr/bin/ssh-keygen]}", "does what it is told"),
            ("{process: [/sbin/mkfs.ext4]}", "change what this host runs"),
            ("{process: [/usr/bin/update-alternatives]}", "change what this host runs"),
        ],
    );
}

#[test]
fn whatever_is_no_harmless_look_is_medium() {
    check(
        "medium",
        &[
            ("{process: [/usr/bin/uptime]}", "run /usr/bin/uptime with arguments of its choice"),
            ("{process: [/usr/bin/nmap-ssh]}", "arguments of its choice"),
            (
                "{process: {lines: [/usr/bin/systemctl restart nginx]}}",
                "run the line \"/usr/bin/systemctl restart nginx\"",
            ),
            ("{process: {looks: [\"/usr/bin/mylook *\"]}}", "run the line"),
            ("{process: {env: [TZDIR]}}", "variables TZDIR"),
            ("{process: {users: [deploy]}}", "as deploy"),
            ("{process: {groups: [deploy]}}", "groups deploy"),
            ("{process: {cwd: [/srv]}}", "start programs in /srv"),
            ("{process: {detach: true}}", "run on after the job"),
            (
                "{process: [/srv/app/bin/run], changes: {/srv/app: rw, /srv/app/bin: ro}}",
                "/srv/app/bin/run with arguments",
            ),
            ("{changes: {/etcetera: rw}}", "change files in /etcetera"),
            ("{changes: {/srv/app: ro}}", "read what is in /srv/app with the minion's rights"),
            ("{filesystem: {/srv/app: rw}}", "change files in /srv/app"),
            ("{filesystem: {/root: ro}}", "read what is in /root"),
            ("{filesystem: {/etc/ssh: ro}}", "read what is in /etc/ssh"),
            ("{network: [\"example.org:443\"]}", "send what it knows to [\"example.org:443\"]"),
            ("{network: [\"127.0.0.1:6379\"]}", "offers to itself alone"),
            ("{publish: [test.ping]}", "test.ping"),
            ("{jobs: true}", "end them"),
            ("{beacons: true}", "watches"),
            ("{config: any}", "passwords"),
            ("{config: [\"a:b\"]}", "a:b"),
            ("{modules: true}", "fetched"),
            ("{policy: true}", "refused"),
            ("{receipts: true}", "who ran what"),
            ("{kernel: [process-arguments]}", "process-arguments"),
            ("{kernel: [loadavg, net/tcp]}", "net/tcp"),
            ("{kernel: any}", "arguments of programs"),
            ("{events: any}", "events any"),
            ("{mine: any}", "mine"),
            ("{static_grains: any}", "grains"),
            ("{files: any}", "files"),
            ("{pillar: [\"web:tls\"]}", "web:tls"),
            ("{functions: [cmd.run]}", "call cmd.run"),
            ("{states: [st.slow]}", "run the states st.slow"),
            ("{signed_by: false}", "without a signature"),
            ("{signed_by: [ops.pub], grains: true}", "signed with the keys"),
            ("{downgrade: true}", "older version"),
            ("{user: www}", "the user www"),
            ("{limits: {memory: 4GiB}}", "limits"),
            ("{max_running: 100}", "limits"),
            ("{record: asked}", "recordings"),
            ("{a_key_of_tomorrow: true}", "cannot be judged"),
            ("{process: [relative]}", "cannot be judged"),
        ],
    );
}

#[test]
fn harmless_looks_alone_are_low() {
    check(
        "low",
        &[
            ("{grains: true}", "read this host's grains"),
            ("{sha256: \"0101010101010101010101010101010101010101010101010101010101010101\", grains: true}", "grains"),
            ("{progress: true, disks: true, config: true}", "how full"),
            ("{kernel: [loadavg, uptime]}", "counters"),
            ("{process: []}", "get nothing yet"),
            ("{filesystem: {}, changes: {}, network: []}", "get nothing yet"),
            ("{states: [], pillar: []}", "get nothing yet"),
        ],
    );
    assert_eq!(said("m", "{process: false, pillar: false, record: off}"), "low: m gets nothing by it");
}

/// What one key of the entry opens is not hidden by another one.
#[test]
fn the_worst_of_an_entry_comes_first() {
    let whole = said("cmd.run", "{grains: true, network: [\"example.org:443\"], process: any}");
    let places = ["high: cmd.run could run any program", "; send what it knows", "; read this host's grains"];
    let places: Vec<usize> =
        places.iter().map(|part| whole.find(part).unwrap_or_else(|| panic!("{part}: {whole}"))).collect();
    assert!(places.is_sorted(), "{whole}");
    assert!(said("*", "{process: any}").starts_with("high: every module could "));
}

/// A granted capability is never harmless by oversight.
#[test]
fn low_is_a_fixed_list() {
    let low: Vec<&str> = Capability::ALL
        .into_iter()
        .map(Capability::key)
        .filter(|key| {
            ["true", "any"].iter().any(|value| {
                let entry = format!("{{{key}: {value}}}");
                said("m", &entry).starts_with("low")
            })
        })
        .collect();
    assert_eq!(low, ["grains", "config", "disks", "progress"]);
}

#[test]
fn a_name_cannot_be_taken_for_the_sentence() {
    let odd = said("m", "{filesystem: {\"/srv/x; read this host's grains\\u202e\": ro}}");
    assert!(odd.starts_with("medium: m could read what is in \"/srv/x; read this host's grains"), "{odd}");
    assert!(!odd.contains('\u{202e}'), "{odd}");
    assert!(said("m", &format!("{{pillar: [{}]}}", "x".repeat(5_000))).chars().count() < 1_000);
}
