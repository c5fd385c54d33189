//! A word on what a grant can be used for.

use brine_protocol::value::{Value, ValueExt};

/// Programs that run whatever they are told, or change who runs it.
const RUN_ANYTHING: [&str; 42] = [
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
    let strong = |name: &&&str| {
        let base = name.rsplit('/').next().unwrap_or(name);
        let plain = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        RUN_ANYTHING.contains(&base) || RUN_ANYTHING.contains(&plain)
    };
    match names.iter().find(strong) {
        Some(name) => Some(format!("high: {name} runs what it is told, so this is as good as any program")),
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
        let host = |dir: &&str| path == "/" || path == *dir || path.starts_with(&format!("{dir}/"));
        if HOSTS_OWN.iter().any(|dir| host(&dir)) {
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
