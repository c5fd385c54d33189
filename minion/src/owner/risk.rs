//! A word on what a grant can be used for.

use brine_protocol::value::{Value, ValueExt};

/// Programs that run whatever they are told, or change who runs it.
const RUN_ANYTHING: [&str; 95] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "busybox",
    "env",
    "xargs",
    "find",
    "awk",
    "gawk",
    "mawk",
    "sed",
    "perl",
    "python",
    "python3",
    "ruby",
    "node",
    "lua",
    "php",
    "tclsh",
    "sudo",
    "su",
    "doas",
    "runuser",
    "setpriv",
    "chroot",
    "nsenter",
    "unshare",
    "ssh",
    "systemd-run",
    "docker",
    "podman",
    "make",
    "gdb",
    "vi",
    "vim",
    "tar",
    "rsync",
    "crontab",
    "at",
    "pypy",
    "ed",
    "emacs",
    "nano",
    "less",
    "more",
    "man",
    "git",
    "strace",
    "ltrace",
    "screen",
    "tmux",
    "watch",
    "nice",
    "ionice",
    "nohup",
    "timeout",
    "stdbuf",
    "flock",
    "taskset",
    "time",
    "script",
    "expect",
    "socat",
    "nc",
    "pkexec",
    "ninja",
    "cmake",
    "gcc",
    "cc",
    "rustc",
    "cargo",
    "go",
    "java",
    "ld.so",
    "ld-linux-x86-64.so",
    "salt-call",
    "salt",
    "start-stop-daemon",
    "run-parts",
    "batch",
    "parallel",
    "mysql",
    "psql",
    "sqlite",
    "ftp",
    "zip",
    "pwsh",
    "ansible",
    "puppet",
    "capsh",
    "prlimit",
    "setsid",
];
/// Programs that change files, packages, services or accounts as they are told, and so what runs.
const WRITE_ANYTHING: [&str; 39] = [
    "cp",
    "mv",
    "dd",
    "tee",
    "ln",
    "install",
    "chmod",
    "chown",
    "chgrp",
    "setfacl",
    "setcap",
    "mount",
    "modprobe",
    "insmod",
    "debugfs",
    "passwd",
    "chpasswd",
    "useradd",
    "usermod",
    "visudo",
    "systemctl",
    "apt",
    "apt-get",
    "dpkg",
    "yum",
    "dnf",
    "rpm",
    "zypper",
    "apk",
    "pip",
    "npm",
    "gem",
    "unzip",
    "cpio",
    "curl",
    "wget",
    "scp",
    "patch",
    "truncate",
];
/// Directories whose files decide what the host runs.
const HOSTS_OWN: [&str; 13] = [
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/boot",
    "/root",
    "/var/spool/cron",
    "/proc",
    "/sys",
    "/dev",
    "/run",
];

/// What an entry for this module can be used for.
pub(super) fn of(module: &str, entry: &Value) -> String {
    let mut words = Vec::new();
    for (key, value) in entry.entries().unwrap_or_default() {
        let word = match key.text().unwrap_or_default() {
            "process" => process(value),
            "changes" => below(value, "changes files", |access| access != "ro"),
            "filesystem" => below(value, "reads or changes files", |mode| mode == "rw"),
            "network" => Some("what the module knows can be sent there".to_owned()),
            "pillar" => Some("the pillar may hold secrets, which the module then knows".to_owned()),
            "functions" => Some("it acts by the grants of those functions' modules".to_owned()),
            "user" => Some(format!("it acts as the user {}", value.python_str())),
            _ => None,
        };
        words.extend(word);
    }
    if words.is_empty() {
        format!("low: {module} reads only")
    } else {
        brine_protocol::text::short(&words.join("; "), 600)
    }
}

fn process(value: &Value) -> Option<String> {
    let programs = value.get("programs").unwrap_or(value);
    if programs.text() == Some("any") {
        return Some("high: any program is as good as the whole host".to_owned());
    }
    let names: Vec<&str> = programs.list().unwrap_or_default().iter().filter_map(ValueExt::text).collect();
    if names.iter().any(|name| name.contains(['*', '?', '['])) {
        return Some("high: a pattern, which other programs may match too".to_owned());
    }
    let is_of = |name: &str, all: &[&str]| {
        let base = name.rsplit('/').next().unwrap_or(name);
        let plain = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        all.contains(&base) || all.contains(&plain)
    };
    let strong = |name: &&&str| is_of(name, &RUN_ANYTHING);
    let writes = |name: &&str| is_of(name, &WRITE_ANYTHING);
    match names.iter().find(strong) {
        Some(name) => Some(format!("high: {name} runs what it is told, so this is as good as any program")),
        None if names.iter().any(writes) => {
            Some("high: the program can change what this host runs, so this is as good as any program".to_owned())
        }
        None if names.is_empty() && value.get("lines").is_some() => {
            Some("medium: the programs run with these arguments alone".to_owned())
        }
        None if names.is_empty() => None,
        None => Some("medium: the program runs with arguments of the module's choice".to_owned()),
    }
}

fn below(value: &Value, what: &str, writes: fn(&str) -> bool) -> Option<String> {
    let entries = value.entries()?;
    let written = entries.iter().filter(|(_, mode)| mode.text().is_none_or(writes)).filter_map(|(path, _)| path.text());
    let mut writes_any = false;
    for path in written {
        writes_any = true;
        let within =
            |path: &str, dir: &str| path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let host = |dir: &&str| path == "/" || within(path, dir) || within(dir, path);
        if HOSTS_OWN.iter().any(host) || path.split('/').any(|part| part == ".ssh") {
            return Some(format!("high: what is in {path} decides what the host runs"));
        }
    }
    (!entries.is_empty()).then(|| match writes_any {
        true => format!("medium: it {what} there"),
        false => "low: it reads files there, whatever is in them".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strong_grants_are_called_so() {
        for (entry, word) in [
            ("{process: any}", "high"),
            ("{process: [/usr/bin/uptime]}", "medium"),
            ("{process: [/usr/bin/uptime, /usr/bin/python3.12]}", "high: /usr/bin/python3.12"),
            ("{process: {programs: [/bin/sh]}}", "high: /bin/sh"),
            ("{process: [/opt/*]}", "high: a pattern"),
            ("{filesystem: {/etc/ssh: rw}}", "high: what is in /etc/ssh"),
            ("{changes: {/var: rw}}", "high: what is in /var"),
            ("{changes: {/home/x/.ssh/authorized_keys: rw}}", "high"),
            ("{changes: {/etcetera: rw}}", "medium"),
            ("{process: [/bin/cp]}", "high: the program can change"),
            ("{process: [/usr/bin/nmap-ssh]}", "medium"),
            ("{process: {lines: [/usr/bin/systemctl restart nginx]}}", "medium: the programs run with these"),
            ("{filesystem: {/etc/ssh: ro}}", "low"),
            ("{filesystem: {/: rw}}", "high"),
            ("{filesystem: {/srv/app: rw}}", "medium"),
            ("{network: [example.org:443]}", "can be sent"),
            ("{grains: true}", "low"),
        ] {
            let entry = brine_protocol::config::yaml::load(entry).unwrap();
            assert!(of("m", &entry).contains(word), "{entry}: {}", of("m", &entry));
        }
    }
}
