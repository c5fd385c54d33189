use std::fs;
use std::os::unix::fs::PermissionsExt;

use brine_component::STATES;

use super::*;
use crate::Settings;
use crate::policy::{Capability, Grant, Never, Policy, Subject};
use crate::testing::{name, sha, yaml};

fn names(config: &str) -> std::result::Result<Vec<String>, String> {
    let settings = Settings::read(&yaml(config)).map_err(|error| error.to_string())?;
    Ok(settings.policy.profiles.into_iter().map(|profile| profile.name).collect())
}

#[test]
fn the_owner_names_profiles() {
    assert_eq!(names("{}").unwrap(), [""; 0]);
    assert_eq!(names("profiles: []").unwrap(), [""; 0]);
    assert_eq!(names("profiles: [states, states]").unwrap(), ["states"]);
    let both = "profiles: [observe, {services: [nginx], files: [/srv/app]}]";
    assert_eq!(names(both).unwrap(), ["observe", "services", "files"]);
    let there_are = "there are: files, observe, packages, salt, services, states";
    for (config, why) in [
        ("profiles: [state]", format!("there is no profile state; {there_are}")),
        ("profiles: states", format!("a list of profiles is expected, not \"states\"; {there_are}")),
        ("profiles: [1]", "text is expected, not 1".to_owned()),
        ("profiles: [{}]", "an item is empty".to_owned()),
        ("profiles: [services]", "services takes services, as in {services: [service]}".to_owned()),
        ("profiles: [{observe: [a]}]", "the profile observe takes nothing".to_owned()),
    ] {
        assert_eq!(names(config).unwrap_err(), format!("sandbox:profiles: {why}"));
    }
}

/// Each parameter becomes a part of a command line or a path, with the minion's rights behind it.
#[test]
fn parameters_are_checked_where_they_are_read() {
    let long = format!("/{}", "a".repeat(4_000));
    for (kind, bad) in [
        ("files", "/"),
        ("files", "srv"),
        ("files", "/srv/../etc"),
        ("files", "/srv/"),
        ("files", "/srv/\\n/etc"),
        ("files", "/srv/*"),
        ("files", "/srv/{path}"),
        ("files", "/srv/\\u202e"),
        ("files", long.as_str()),
        ("services", "-H example"),
        ("services", "--host=x"),
        ("services", "nginx stop"),
        ("services", "a/b"),
        ("services", "../x"),
        ("services", "*"),
        ("services", "nginx.socket"),
        ("services", ".service"),
        ("services", "nginx\\n"),
        ("services", ""),
    ] {
        let why = names(&format!("profiles: [{{{kind}: [\"{bad}\"]}}]")).unwrap_err();
        assert!(why.starts_with(&format!("sandbox:profiles:{kind}: ")) && !why.contains('\n'), "{bad}: {why}");
    }
    for bad in ["profiles: [{files: []}]", "profiles: [{files: /srv}]", "profiles: [{files: [1]}]"] {
        assert!(names(bad).is_err(), "{bad}");
    }
    let many = format!("profiles: [{{files: [{}]}}]", vec!["/srv"; 65].join(", "));
    assert!(names(&many).unwrap_err().contains("more than 64"));
}

#[test]
fn parameters_stand_in_the_texts_of_a_profile() {
    let policy = Settings::read(&yaml("profiles: [{services: [nginx, a.service]}, {files: [/srv/a, /srv/b c]}]"))
        .unwrap()
        .policy;
    let lines = policy.profiles[0].lines(&name("service")).join("\n");
    assert!(lines.contains("systemctl start nginx.service") && lines.contains("systemctl stop a.service"), "{lines}");
    assert!(!lines.contains("a.service.service") && !lines.contains("{service}"), "{lines}");
    let files = policy.profiles[1].lines(&name("file")).join("\n");
    assert!(files.contains("/srv/a: rw") && files.contains("\"/srv/b c\": rw"), "{files}");
}

/// A folder of the owner's profiles.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("profiles.d")).unwrap();
        for (name, text) in files {
            fs::write(dir.path().join("profiles.d").join(name), text).unwrap();
        }
        Self(dir)
    }

    fn load(&self, config: &str) -> std::result::Result<Policy, String> {
        let settings = Settings::load(&yaml(config), self.0.path()).map_err(|error| error.to_string())?;
        Ok(settings.policy)
    }
}

const WORDS: &str = "opens: It opens something.\ncannot: It cannot.\n";

#[test]
fn an_owner_has_profiles_of_the_same_kind() {
    let web = format!(
        "{WORDS}takes: service\nincludes: [observe, {{files: [/srv/web]}}]\nmodules:\n  cmd: {{process: {{lines: [\"/usr/bin/uptime\", \"/bin/x {{service}}\"]}}}}\n"
    );
    let folder = Folder::new(&[("web.yaml", &web), ("README", "no profile")]);
    let policy = folder.load("profiles: [{web: [nginx]}]").unwrap();
    let profile = &policy.profiles[0];
    assert_eq!(profile.words.opens, "It opens something.");
    assert!(profile.words.from.ends_with("profiles.d/web.yaml"));
    assert_eq!(profile.lines(&name("cmd")), ["cmd: {process: {lines: [/usr/bin/uptime, \"/bin/x nginx\"]}}"]);
    // What it includes, and both together where they are about the same.
    let file = profile.lines(&name("file")).join("");
    assert!(file.contains("/srv/web: rw") && file.contains("/var/log: ro"), "{file}");
    assert!(policy.own_profiles.iter().any(|known| known.name == "web"));
    // Another folder, by its name.
    fs::rename(folder.0.path().join("profiles.d"), folder.0.path().join("other")).unwrap();
    assert!(folder.load("profiles: [{web: [nginx]}]").is_err());
    assert!(folder.load("profiles_dir: other\nprofiles: [{web: [nginx]}]").is_ok());
    assert!(folder.load("profiles_dir: nowhere").unwrap_err().contains("cannot be read"));
}

#[test]
fn a_profile_that_includes_itself_is_an_error() {
    let modules = "modules: {disk: {disks: true}}\n";
    let own = Folder::new(&[("a.yaml", &format!("{WORDS}{modules}includes: [a]\n"))]);
    assert!(own.load("{}").unwrap_err().contains("a profile cannot include itself: a includes a"));
    let circle = Folder::new(&[
        ("a.yaml", &format!("{WORDS}{modules}includes: [b]\n")),
        ("b.yaml", &format!("{WORDS}{modules}includes: [c]\n")),
        ("c.yaml", &format!("{WORDS}{modules}includes: [a]\n")),
    ]);
    let why = circle.load("{}").unwrap_err();
    assert!(why.contains("a includes b includes c includes a") && why.contains("c.yaml:includes: line 4"), "{why}");
    // Not in a circle, and yet more than anybody reads.
    let wide: Vec<(String, String)> = (0..8)
        .map(|n| {
            let next: Vec<String> = (0..6).map(|_| format!("p{}", n + 1)).collect();
            let includes = if n < 7 { format!("includes: [{}]\n", next.join(", ")) } else { String::new() };
            (format!("p{n}.yaml"), format!("{WORDS}{modules}{includes}"))
        })
        .collect();
    let wide: Vec<(&str, &str)> = wide.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert!(Folder::new(&wide).load("{}").unwrap_err().contains("more than"));
}

/// A word that this version does not know may be one that takes something away.
#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place() {
    for (text, why) in [
        ("modules: {disk: {disks: true}}\n".to_owned(), "a.yaml: opens and cannot are missing"),
        (WORDS.to_owned(), "a.yaml: it grants nothing"),
        (format!("{WORDS}newer: 1\n"), "a.yaml:newer: line 3: there is no such word; there are opens, cannot"),
        (format!("{WORDS}never: [fly]\n"), "a.yaml:never: line 3: there is no \"fly\"; there are change, run,"),
        (
            format!("{WORDS}takes: paths\n"),
            "a.yaml:takes: line 3: there is no \"paths\"; there are path, service, name",
        ),
        (
            format!("{WORDS}modules:\n  cmd:\n    proces: any\n"),
            "a.yaml:modules:cmd:proces: line 5: there is no such grant",
        ),
        (
            format!("{WORDS}modules:\n  cmd: {{user: root}}\n"),
            "a.yaml:modules: line 3: a profile has entries of modules",
        ),
        (format!("{WORDS}modules:\n  cmd: {{process: false}}\n"), "a profile has entries of modules"),
        (format!("{WORDS}modules:\n  cmd: {{signed_by: any}}\n"), "a profile has entries of modules"),
        (format!("{WORDS}modules:\n  \"*\": {{jobs: true}}\n"), "a profile has entries of modules"),
        (format!("{WORDS}takes: path\nmodules:\n  cmd: {{process: \"{{path}}\"}}\n"), "is in a value of a dict"),
        (format!("{WORDS}includes: [nothing]\n"), "a.yaml:includes: line 3: there is no profile nothing"),
        (format!("{WORDS}modules: [\n"), "a.yaml: "),
        ("opens: 1\n".to_owned(), "a.yaml:opens: line 1: text is expected"),
        (format!("opens: {}\n", "a".repeat(700)), "more than 600 bytes"),
        (format!("{WORDS}# {}\n", "a".repeat(70_000)), "cannot be read"),
        // What the text says is held against what it grants.
        (
            format!("{WORDS}never: [change]\nmodules:\n  file: {{changes: {{/etc: ro, /srv: rw}}}}\n"),
            "modules:file:changes: line 5: it grants {/etc: ro, /srv: rw}, by which modules can change a file; the file says",
        ),
    ] {
        let said = Folder::new(&[("a.yaml", &text)]).load("{}").unwrap_err();
        assert!(said.contains(why) && !said.contains('\n'), "{said}\n{why}");
    }
    for bad in ["states.yaml", "A.yaml", "a b.yaml", ".yaml"] {
        let text = format!("{WORDS}modules: {{disk: {{disks: true}}}}\n");
        assert!(Folder::new(&[(bad, &text)]).load("{}").is_err(), "{bad}");
    }
}

/// Whoever can write a profile can grant.
#[test]
fn nobody_else_writes_profiles() {
    let text = format!("{WORDS}modules: {{disk: {{disks: true}}}}\n");
    let folder = Folder::new(&[("a.yaml", &text)]);
    assert!(folder.load("profiles: [a]").is_ok());
    let mode = |path: &str, mode| {
        fs::set_permissions(folder.0.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    for (path, bad, good) in
        [("profiles.d/a.yaml", 0o666, 0o644), ("profiles.d", 0o777, 0o755), ("profiles.d", 0o1777, 0o755)]
    {
        mode(path, bad);
        assert!(folder.load("{}").unwrap_err().contains("may be written by others"), "{path}");
        mode(path, good);
    }
    assert!(folder.load("profiles: [a]").is_ok());
}

/// The sentence of a profile of Brine's names exactly what was checked, so that no word of it is a mere claim.
#[test]
fn the_text_of_a_profile_says_what_was_checked() {
    for profile in all().unwrap() {
        let words = &profile.words;
        for sentence in [&words.opens, &words.cannot] {
            assert!(sentence.ends_with('.') && sentence.matches(". ").count() == 0, "{sentence}");
        }
        for never in Never::ALL {
            // "change a file elsewhere" is about the paths that were named.
            let said = words.cannot.replace("change a file elsewhere", "").contains(never.words());
            let also = never == Never::RunAny && words.never.contains(&Never::Run)
                || never == Never::Become && words.cannot.contains("make a file that runs as its owner");
            assert!(said == words.never.contains(&never) || also, "{}: {}", profile.name, never.words());
        }
        let powerful = ["packages", "salt", "states"].contains(&profile.name.as_str());
        assert_eq!(words.opens.contains("this is root's power"), powerful, "{}", profile.name);
    }
}

/// Grants that break each promise, so that a promise cannot be checked by nothing.
#[test]
fn every_promise_is_broken_by_something() {
    let read = |grant: &str| {
        let policy = Settings::read(&yaml(&format!("modules: {{m: {{{grant}}}}}"))).unwrap().policy;
        policy.general.modules["m"].says.clone().into_iter().next().unwrap()
    };
    let breaks = |grant: &str| {
        let (capability, grant) = read(grant);
        let broken = Never::ALL.into_iter().filter(|never| never.is_broken_by(capability, &grant));
        broken.map(Never::word).collect::<Vec<_>>().join(" ")
    };
    for (grant, expect) in [
        ("process: {lines: []}", ""),
        ("process: {lines: [/bin/x a]}", "change run"),
        ("process: {lines: [], looks: [/bin/x a]}", "change run"),
        ("process: [/bin/x]", "change run run-any secrets"),
        ("process: {lines: [], users: [root]}", "become"),
        ("process: any", "change run run-any become secrets"),
        ("changes: {/etc/hosts: ro}", ""),
        ("changes: {/etc/hosts: rw}", "change"),
        ("changes: {/srv: rw+setid}", "change become"),
        ("changes: {/etc: ro}", "secrets"),
        ("changes: {/etc/shadow: ro}", "secrets"),
        ("changes: {/root/x: ro}", "secrets"),
        ("filesystem: {/srv: ro}", ""),
        ("filesystem: {/srv: rw}", "change"),
        ("filesystem: {/: ro}", "secrets"),
        ("network: [\"a:1\"]", "reach"),
        ("network: []", ""),
        ("pillar: [a]", "secrets"),
        ("config: [a]", "secrets"),
        ("config: true", ""),
        ("files: any", ""),
        ("kernel: any", ""),
        ("functions: [a.b]", "change run run-any become secrets call"),
        ("states: any", "change run run-any become secrets call"),
        ("events: [a]", "change send"),
        ("mine: [a]", "change send"),
        ("static_grains: [a]", "change"),
        ("schedule: true", "change"),
        ("jobs: true", "change"),
        ("modules: true", "change"),
        ("beacons: true", "change"),
    ] {
        assert_eq!(breaks(grant), expect, "{grant}");
    }
}

/// What a function has of a capability.
fn grant_of(grants: &brine_capabilities::Grants, capability: Capability) -> Option<Grant> {
    use brine_capabilities::Kind;
    capability.interfaces().iter().find(|interface| grants.allows(interface))?;
    Some(match capability.kind() {
        Kind::Flag => Grant::Yes,
        Kind::Names | Kind::Settings => Grant::Names(grants.names(capability).clone()),
        Kind::Process => Grant::Process(grants.process.clone()),
        Kind::Directories => Grant::Directories(grants.direct.directories.clone()),
        Kind::Changes => Grant::Changes(grants.changes.clone()),
        Kind::Network => Grant::Network(grants.direct.network.clone()),
    })
}

/// Of every standard module's every function: what the profile's grants come to, decided as for a job, is within what its
/// text says, whatever else counts for the module.
#[test]
fn no_profile_grants_more_than_it_says() {
    let modules = standard_modules();
    let every = |name: &str| match name {
        "services" => "{services: [nginx, ssh]}".to_owned(),
        "files" => "{files: [/srv/app, /opt]}".to_owned(),
        name => name.to_owned(),
    };
    let mut looked_at = 0;
    for profile in all().unwrap() {
        let policy = Settings::read(&yaml(&format!("profiles: [{}]", every(&profile.name)))).unwrap().policy;
        let before = Policy::default();
        for Module { name: module, imports, functions } in &modules {
            let subject = Subject { name: module, standard: true, sha256: sha(1), signers: &[] };
            let decide = |policy: &Policy| policy.decide(&subject, imports, functions).unwrap();
            let (with, without) = (decide(&policy), decide(&before));
            for function in functions {
                let (with, without) =
                    (with.of(function, None).unwrap().grants, without.of(function, None).unwrap().grants);
                for capability in Capability::ALL {
                    let (now, was) = (grant_of(&with, capability), grant_of(&without, capability));
                    let Some(now) = now.filter(|now| Some(now) != was.as_ref()) else { continue };
                    looked_at += 1;
                    for never in &profile.words.never {
                        assert!(
                            !never.is_broken_by(capability, &now),
                            "{}: {module}.{function} has {}: {now}, by which it can {}",
                            profile.name,
                            capability.key(),
                            never.words()
                        );
                    }
                }
            }
        }
    }
    assert!(looked_at > 1_000, "{looked_at}");
}

/// A standard module, as its world describes it.
struct Module {
    name: crate::ModuleName,
    imports: Vec<String>,
    /// Functions, states and those of its beacon.
    functions: Vec<String>,
}

/// The standard modules.
fn standard_modules() -> Vec<Module> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wasm-modules");
    let mut modules = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let Ok(world) = fs::read_to_string(entry.path().join("wit/world.wit")) else { continue };
        // What modules are written with has all interfaces, and is no module.
        if entry.file_name() == "sdk" {
            continue;
        }
        let Ok(name) = entry.file_name().to_str().unwrap().parse::<crate::ModuleName>() else { continue };
        let imports = world.lines().filter_map(|line| line.trim().strip_prefix("import ")?.strip_suffix(';'));
        // The others have types alone.
        let asks = |import: &&str| {
            let interface = import.split('@').next().unwrap();
            Capability::of(interface).is_some() || crate::policy::always(interface)
        };
        let imports: Vec<String> = imports.filter(asks).map(str::to_owned).collect();
        // `export %list: func`, `export states: interface {` and what is in it.
        let mut functions = Vec::new();
        let mut group = String::new();
        for line in world.lines().map(str::trim) {
            let (exported, rest) = match line.strip_prefix("export ") {
                Some(rest) => (true, rest),
                None => (false, line),
            };
            let Some((word, kind)) = rest.split_once(':') else {
                if line.starts_with('}') {
                    group.clear();
                }
                continue;
            };
            let word = word.trim_start_matches('%').replace('-', "_");
            if exported && kind.trim().starts_with("interface") {
                group = format!("{word}.");
            } else if kind.trim().starts_with("func") && (exported || !group.is_empty()) {
                functions.push(format!("{group}{word}"));
            }
        }
        // What modules are made of has a world too, and no functions.
        if !functions.is_empty() {
            modules.push(Module { name, imports, functions });
        }
    }
    assert!(modules.len() > 50, "{}", modules.len());
    let all = || modules.iter().flat_map(|module| &module.functions);
    assert!(all().count() > 500 && all().filter(|name| name.starts_with(STATES)).count() > 50, "{}", all().count());
    modules
}

/// What `salt` is for: no standard module is refused anything that it asks for.
#[test]
fn the_profile_salt_leaves_nothing_out() {
    let policy = Settings::read(&yaml("profiles: [salt]")).unwrap().policy;
    for Module { name: module, imports, .. } in standard_modules() {
        let subject = Subject { name: &module, standard: true, sha256: sha(1), signers: &[] };
        let grants = policy.decide(&subject, &imports, &["any"]).unwrap().of("any", None).unwrap().grants;
        for import in &imports {
            let interface = import.split('@').next().unwrap();
            let Some((capability, _)) = Capability::of(interface) else { continue };
            // Directories of the sandbox's own user stay with the owner: `changes` has all files.
            if capability == Capability::Filesystem {
                continue;
            }
            assert!(grants.allows(interface), "{module}: {interface}");
            assert!(!grants.names_nothing(capability), "{module}: {}", capability.key());
        }
    }
}

/// Profiles add up: whoever takes over two has what either opens.
#[test]
fn profiles_add_up() {
    let policy = Settings::read(&yaml("profiles: [observe, {services: [nginx]}, {services: [ssh]}]")).unwrap().policy;
    let sum = |policy: &Policy| {
        let (grant, names) = policy.granted_by_profiles(&name("service"), Some("start"), Capability::Process).unwrap();
        let Grant::Process(process) = grant else { panic!("{grant:?}") };
        (process, names)
    };
    let (process, names) = sum(&policy);
    assert_eq!(names, "observe and services");
    let argv = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for (line, may) in [
        ("/usr/bin/systemctl start nginx.service", true),
        ("/usr/bin/systemctl stop ssh.service", true),
        ("/usr/bin/systemctl start cron.service", false),
        ("/usr/bin/systemctl start nginx.service cron.service", false),
        ("/usr/bin/systemctl --host=example start nginx.service", false),
    ] {
        assert_eq!(process.line(&argv(line)).is_some(), may, "{line}");
    }
    assert!(process.programs.is_none());
    // With a profile that grants a whole program, that program runs in any way.
    let policy = Settings::read(&yaml("profiles: [observe, states]")).unwrap().policy;
    assert!(sum(&policy).0.programs.has("/usr/bin/systemctl"));
    let changes =
        |policy: &Policy| policy.granted_by_profiles(&name("file"), Some("states.managed"), Capability::Changes);
    // The smaller of two does not take away what the larger one opens.
    let Some((Grant::Changes(trees), _)) = changes(&policy) else { panic!() };
    assert!(trees.iter().all(|tree| tree.access == brine_capabilities::Access::ChangeSetId), "{trees:?}");
}
