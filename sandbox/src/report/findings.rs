//! Findings about the owner's configuration: names that refer to nothing, and grants that are wider than they look.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brine_capabilities::{Directory, Names, ProcessGrant, is_glob};
use brine_component::{BEACONS, STATES};

use crate::kernel::directories::NOT_THERE;
use crate::policy::{Capability, Entry, Grant, Never, Policy, Rules};
use crate::settings::others_may_write;
use crate::store::{Store, Table};

/// Programs that can run any other program.
const SHELLS: [&str; 16] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "csh", "tcsh", "env", "busybox", "sudo", "su", "python3",
    "perl", "xargs",
];

/// Returns one line for each finding.
pub(super) fn of(store: &Store) -> Vec<String> {
    let table = store.table();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let mut findings = of_policy(&store.policy(), &table, &Accounts { users: &users, groups: &groups });
    let left_out = store.all_left_out();
    findings.extend(left_out.iter().map(|(name, left_out)| format!("module {name} is left out: {}", left_out.why)));
    let refused = store.refused();
    let refused = refused.iter().filter(|(name, _)| !left_out.contains_key(*name));
    findings.extend(refused.map(|(name, refused)| {
        let what = if table.contains_key(name) { "an update of module" } else { "module" };
        format!("{what} {name} was not taken: {}", refused.why)
    }));
    findings.extend(store.all_held().values().map(|held| held.to_string()));
    if let Err(why) = store.decided_at_all() {
        findings.push(format!("{why}; nothing is installed until that file is put right or taken away"));
    }
    findings
}

/// The host's tables of users and groups.
struct Accounts<'a> {
    users: &'a str,
    groups: &'a str,
}

impl Accounts<'_> {
    fn has(table: &str, name: &str) -> bool {
        // A number is valid with or without an entry in the table.
        name.bytes().all(|c| c.is_ascii_digit()) || table.lines().any(|line| line.split(':').next() == Some(name))
    }
}

fn of_policy(policy: &Policy, table: &Table, accounts: &Accounts<'_>) -> Vec<String> {
    let mut findings = policy.findings.clone();
    of_rules("sandbox:modules", &policy.general, table, accounts, &mut findings);
    for (master, rules) in &policy.masters {
        of_rules(&format!("sandbox:masters:{master}:modules"), rules, table, accounts, &mut findings);
    }
    for profile in &policy.profiles {
        let words = &profile.words.never;
        if words.contains(&Never::Run) || words.contains(&Never::RunAny) {
            continue;
        }
        findings.push(format!(
            "sandbox:profiles: {} lets the master do what the minion's user may do, through the standard modules",
            profile.name
        ));
    }
    for name in policy.replace_standard.iter().filter(|name| !table.contains_key(*name)) {
        findings.push(format!("sandbox:replace_standard: there is no module {name}"));
    }
    findings
}

fn of_rules(path: &str, rules: &Rules, table: &Table, accounts: &Accounts<'_>, findings: &mut Vec<String>) {
    for (name, entry) in &rules.modules {
        let path = format!("{path}:{name}");
        match table.get(name) {
            None => findings.push(format!("{path}: there is no module {name}")),
            Some(module) => of_binding(&path, entry, module, findings),
        }
        of_entry(&path, entry, table, accounts, findings);
    }
    for ((name, function), entry) in &rules.functions {
        let path = format!("{path}:{name}.{function}");
        match table.get(name) {
            None => findings.push(format!("{path}: there is no module {name}")),
            Some(module)
                if function == STATES && !module.module.info.states.is_empty()
                    || function == BEACONS && !module.module.info.beacons.is_empty() =>
            {
                of_binding(&path, entry, module, findings);
            }
            Some(module) if !module.module.info.all().any(|known| known.name == *function) => {
                findings.push(format!("{path}: module {name} has no function {function}"));
            }
            Some(module) => of_binding(&path, entry, module, findings),
        }
        of_entry(&path, entry, table, accounts, findings);
    }
    let path = format!("{path}:*");
    for capability in Capability::ALL.into_iter().filter(|capability| capability.is_reported_for_all()) {
        if rules.every.says.get(&capability).is_some_and(|grant| *grant != Grant::No && *grant != capability.least()) {
            findings.push(format!("{path}:{}: it is granted to every module that asks for it", capability.key()));
        }
    }
    of_entry(&path, &rules.every, table, accounts, findings);
}

/// Reports an entry that is bound to another content than the installed one.
fn of_binding(path: &str, entry: &Entry, module: &crate::store::Entry, findings: &mut Vec<String>) {
    let now = module.module.sha256;
    if entry.sha256.is_some_and(|bound| bound != now) {
        findings.push(format!(
            "{path}:sha256: module {} is {now} now, and the grants here do not count for it",
            module.name()
        ));
    }
}

fn of_entry(path: &str, entry: &Entry, table: &Table, accounts: &Accounts<'_>, findings: &mut Vec<String>) {
    if let Some(user) = entry.user.as_deref().filter(|user| !Accounts::has(accounts.users, user)) {
        findings.push(format!("{path}:user: /etc/passwd has no user {user}"));
    }
    for (capability, grant) in &entry.says {
        let path = format!("{path}:{}", capability.key());
        match grant {
            Grant::Process(process) => of_process(&path, process, accounts, findings),
            Grant::Directories(directories) => of_directories(&path, directories, findings),
            Grant::Names(Names::Only(names)) if *capability == Capability::Functions => {
                for name in names.iter().filter(|name| !is_glob(name) && !is_there(table, name)) {
                    findings.push(format!("{path}: there is no function {name}"));
                }
            }
            _ => {}
        }
    }
}

fn of_directories(path: &str, directories: &[Directory], findings: &mut Vec<String>) {
    for inner in directories {
        let at = &inner.path;
        let outer = directories.iter().find(|outer| !inner.writable && outer.writable && outer.rest(at).is_some());
        let left_out = crate::kernel::directories::why_left_out_now(at);
        match (&left_out, outer) {
            // The directory may not be created there: whoever creates it would choose what may be read.
            (Some(why), Some(outer)) if why != NOT_THERE => findings.push(format!(
                "{path}: {at} {why}; it is left out as long as that is so, and {}, which it is within, cannot be changed",
                outer.path
            )),
            (Some(why), _) if why != NOT_THERE => {
                findings.push(format!("{path}: {at} {why}; it is left out as long as that is so"));
            }
            (Some(_), _) => findings.push(format!("{path}: there is no directory {at}; it is left out until there is")),
            (None, _) => {}
        }
        if let Some(outer) = outer {
            findings.push(format!(
                "{path}: {at} (ro) is within {} (rw): it can only be read, and neither it nor what is on the way to it can be made, \
                 moved or removed",
                outer.path
            ));
        }
    }
}

fn is_there(table: &Table, name: &str) -> bool {
    let Some((module, function)) = name.split_once('.') else { return false };
    table.get(module).is_some_and(|entry| entry.module.info.function(function).is_some())
}

fn of_process(path: &str, process: &ProcessGrant, accounts: &Accounts<'_>, findings: &mut Vec<String>) {
    let only = |names: &Names| if let Names::Only(names) = names { names.clone() } else { Vec::new() };
    for program in only(&process.programs) {
        match fs::metadata(&program) {
            Err(_) => findings.push(format!("{path}: there is no program {program}")),
            Ok(meta) if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 => {
                findings.push(format!("{path}: {program} is not a program"));
            }
            Ok(_) => findings.extend(others_may_write(Path::new(&program)).map(|why| format!("{path}: {why}"))),
        }
        let name = program.rsplit('/').next().unwrap_or_default();
        if SHELLS.contains(&name) {
            findings.push(format!("{path}: through {program} any program can be run"));
        }
    }
    for user in only(&process.users).iter().filter(|user| !Accounts::has(accounts.users, user)) {
        findings.push(format!("{path}:users: /etc/passwd has no user {user}"));
    }
    for group in only(&process.groups).iter().filter(|group| !Accounts::has(accounts.groups, group)) {
        findings.push(format!("{path}:groups: /etc/group has no group {group}"));
    }
    for cwd in only(&process.cwd).iter().filter(|cwd| !Path::new(cwd).is_dir()) {
        findings.push(format!("{path}:cwd: there is no directory {cwd}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::testing::yaml;

    #[test]
    fn what_leads_nowhere_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let file = |name: &str, mode| {
            let path = base.join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (run, text, open, shell) =
            (file("run", 0o755), file("text", 0o644), file("open", 0o757), file("bash", 0o755));
        let config = format!(
            "modules:\n  mine: {{user: nobody-here, process: {{programs: [{run}, {text}, {open}, {shell}, /no/such], users: \
             [root, 4711, other], groups: [root, others], cwd: [/, /no/dir]}}, filesystem: {{/: ro, /no/dir: rw}}, functions: \
             [mine.f, mine.*, x]}}\n  mine.f: {{jobs: true}}\n  \"*\": {{network: [\"a:1\"], jobs: true}}\nreplace_standard: [test]\n"
        );
        let policy = Settings::read(&yaml(&config)).unwrap().policy;
        let accounts = Accounts { users: "root:x:0:0::/root:/bin/sh\n", groups: "root:x:0:\n" };
        let found = of_policy(&policy, &Table::new(), &accounts);
        let expect = [
            "sandbox:modules:mine: there is no module mine".to_owned(),
            "sandbox:modules:mine:user: /etc/passwd has no user nobody-here".to_owned(),
            format!("sandbox:modules:mine:process: {text} is not a program"),
            format!(
                "sandbox:modules:mine:process: {open} may be written by others (mode 757); `chmod go-w` it and give it to root"
            ),
            format!("sandbox:modules:mine:process: through {shell} any program can be run"),
            "sandbox:modules:mine:process: there is no program /no/such".to_owned(),
            "sandbox:modules:mine:process:users: /etc/passwd has no user other".to_owned(),
            "sandbox:modules:mine:process:groups: /etc/group has no group others".to_owned(),
            "sandbox:modules:mine:process:cwd: there is no directory /no/dir".to_owned(),
            "sandbox:modules:mine:filesystem: there is no directory /no/dir; it is left out until there is".to_owned(),
            "sandbox:modules:mine:functions: there is no function mine.f".to_owned(),
            "sandbox:modules:mine:functions: there is no function x".to_owned(),
            "sandbox:modules:mine.f: there is no module mine".to_owned(),
            "sandbox:modules:*:network: it is granted to every module that asks for it".to_owned(),
            "sandbox:replace_standard: there is no module test".to_owned(),
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn what_of_directories_does_not_hold_as_written_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let base = base.to_str().unwrap();
        fs::create_dir_all(format!("{base}/outer/inner")).unwrap();
        fs::write(format!("{base}/file"), "").unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, format!("{base}/fifo"), kind, mode, 0).unwrap();
        std::os::unix::fs::symlink("inner", format!("{base}/outer/link")).unwrap();
        let found = |directories: &str| {
            let config = format!("modules:\n  mine: {{filesystem: {{{}}}}}\n", directories.replace('@', base));
            let policy = Settings::read(&yaml(&config)).unwrap().policy;
            let found = of_policy(&policy, &Table::new(), &Accounts { users: "", groups: "" });
            let about = found.iter().filter_map(|line| line.strip_prefix("sandbox:modules:mine:filesystem: "));
            about.map(|line| line.replace(base, "@")).collect::<Vec<_>>()
        };
        let within = "(ro) is within @/outer (rw): it can only be read, and neither it nor what is on the way to it can be made, \
                      moved or removed";
        assert_eq!(found("@/outer: rw, @/outer/inner: ro"), [format!("@/outer/inner {within}")]);
        assert_eq!(found("@/outer: ro, @/outer/inner: rw"), [""; 0]);
        assert_eq!(found("@/file: ro"), [""; 0]);
        let fifo = "@/fifo is neither a directory nor a regular file; it is left out as long as that is so";
        assert_eq!(found("@/fifo: ro"), [fifo]);
        let real = "@/outer/link is @/outer/inner by its real name; that is what a grant has to say; it is left out as long as that \
                    is so";
        assert_eq!(found("@/outer/link: rw"), [real]);
        assert_eq!(
            found("@/outer: rw, @/outer/link: ro"),
            [format!("{real}, and @/outer, which it is within, cannot be changed"), format!("@/outer/link {within}"),]
        );
    }
}
