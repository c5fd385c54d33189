use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::signature::KeyId;
use crate::testing::{all_imports, name, policy as read, sha, yaml};

const GRANTS_IT: &str =
    "; the owner of this host grants it by this line under sandbox: modules: in the minion's configuration: ";
const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";

const OTHER: &str = "RWR0ZXN0a2V5McEDcDky7N5lOKlopH4K4PYQPchhbUfGngoqhHd7JUAp";

fn id(line: &str) -> KeyId {
    crate::SigningKey::line(line).unwrap().id
}

fn key() -> KeyId {
    id(KEY)
}

fn imports(names: &[&str]) -> Vec<String> {
    names
        .iter()
        .map(|name| if name.contains(':') { (*name).to_owned() } else { format!("brine:host/{name}@1.0.0") })
        .collect()
}

fn decide(policy: &Policy, module: &str, standard: bool, names: &[&str]) -> Result<ModuleGrants, Box<Refused>> {
    let module = name(module);
    let subject = Subject { name: &module, standard, sha256: sha(1), signers: &[] };
    policy.decide(&subject, &imports(names), &["f", "g"])
}

/// Checks a decision: `granted …`, or the text of the refusal.
fn check(config: &str, module: &str, standard: bool, names: &[&str], expect: &str) {
    let got = match decide(&read(config), module, standard, names) {
        Ok(grants) => format!("granted {}", grants.interfaces().collect::<Vec<_>>().join(" ")).trim().to_owned(),
        Err(refused) => refused.to_string(),
    };
    assert_eq!(got, expect.replace("LINE", GRANTS_IT));
}

#[test]
fn defaults() {
    let always =
        ["brine:host/log@1.0.0", "brine:host/job@1.0.0", "wasi:clocks/wall-clock@0.2.12", "wasi:cli/stdout@0.2.0"];
    check("{}", "foo", false, &always, "granted");
    check("{}", "foo", false, &["grains", "config"], "granted brine:host/config brine:host/grains");
    for (module, interface) in [
        ("sys", "modules"),
        ("saltutil", "modules"),
        ("saltutil", "jobs"),
        ("sandbox", "policy"),
        ("disk", "disks"),
        ("diskusage", "disks"),
        ("load", "kernel"),
        ("beacons", "beacons"),
        ("cp", "files"),
        ("cp", "metadata"),
        ("file", "metadata"),
        ("cmd", "process"),
        ("pillar", "pillar"),
        ("config", "pillar"),
        ("mine", "pillar"),
        ("mine", "mine"),
        ("mine", "functions"),
    ] {
        check("{}", module, true, &[interface], &format!("granted brine:host/{interface}"));
        assert!(decide(&Policy::default(), module, false, &[interface]).is_err(), "{module}");
    }
    let hash = format!("\"{}\"", "01".repeat(32));
    let foo = |imports: &[&str], words: &str, entry: &str| {
        check(
            "{}",
            "foo",
            false,
            imports,
            &format!("module foo imports {words} not granted to itLINEfoo: {{sha256: {hash}, {entry}}}"),
        );
    };
    foo(&["jobs"], "brine:host/jobs@1.0.0, which is", "jobs: true");
    foo(
        &["process", "wasi:filesystem/types@0.2.12", "wasi:sockets/tcp@0.2.12"],
        "brine:host/process@1.0.0, wasi:filesystem/types@0.2.12 and wasi:sockets/tcp@0.2.12, which are",
        "process: [], filesystem: {}, network: []",
    );
    foo(
        &["pillar", "functions", "files", "events", "mine", "http"],
        "brine:host/events@1.0.0, brine:host/files@1.0.0, brine:host/functions@1.0.0, brine:host/http@1.0.0, brine:host/mine@1.0.0 and \
         brine:host/pillar@1.0.0, which are",
        "network: [], pillar: [], functions: [], files: [], events: [], mine: []",
    );
    // A standard module comes with the package, so its entry names no hash.
    check(
        "{}",
        "sys",
        true,
        &["jobs"],
        "module sys imports brine:host/jobs@1.0.0, which is not granted to itLINEsys: {jobs: true}",
    );
    check("{}", "foo", false, &["acme:x/y@1.0.0"], "module foo imports acme:x/y@1.0.0, which is no interface of Brine");
}

/// Names are compared whole, not by prefix.
#[test]
fn names_are_compared_whole() {
    for import in [
        "brine:host/logs",
        "brine:host/grains-all",
        "brine:host/job/x",
        "wasi:cli/stdoutx",
        "wasi:clocksx/a",
        "x:grains",
    ] {
        let refused = decide(&Policy::default(), "foo", true, &[import]).unwrap_err();
        assert_eq!(refused.unknown, [import]);
        assert_eq!(refused.lines(), None);
    }
}

#[test]
fn the_most_particular_word_counts() {
    let master = ["aa"; 32].join(":");
    let levels = ["{M}x.f", "x.f", "{M}x", "x", "{M}*", "*"];
    // Each level alone, then each with a higher level that says the opposite.
    for (low, lower) in levels.iter().enumerate() {
        for high in levels[..=low].iter() {
            for granted in [true, false] {
                let mut general = std::collections::BTreeMap::new();
                let mut of_master = std::collections::BTreeMap::new();
                for (level, says) in [(*lower, !granted), (*high, granted)] {
                    match level.strip_prefix("{M}") {
                        Some(key) => of_master.insert(key, says),
                        None => general.insert(level, says),
                    };
                }
                let text = |entries: &std::collections::BTreeMap<&str, bool>| {
                    let entries: Vec<String> = entries
                        .iter()
                        .map(|(key, says)| format!("\"{key}\": {{grains: {says}, jobs: {says}}}"))
                        .collect();
                    format!("{{{}}}", entries.join(", "))
                };
                let config = format!(
                    "modules: {}\nmasters: {{\"{master}\": {{modules: {}}}}}",
                    text(&general),
                    text(&of_master)
                );
                let grants = decide(&read(&config), "x", false, &["grains"]);
                let has = grants
                    .is_ok_and(|grants| grants.of("f", Some(&master)).unwrap().grants.allows("brine:host/grains"));
                assert_eq!(has, granted, "{config}");
            }
        }
    }
}

#[test]
fn entries_are_not_merged_and_refusals_are_not_bound() {
    let other = format!("sha256: \"{}\"", "02".repeat(32));
    // An entry bound to another content has no effect.
    let bound = format!("modules: {{x: {{{other}, jobs: true, pillar: [a]}}, \"*\": {{pillar: [b]}}}}");
    assert!(decide(&read(&bound), "x", false, &["jobs"]).is_err());
    let grants = decide(&read(&bound), "x", false, &["pillar"]).unwrap().of("f", None).unwrap().grants;
    assert_eq!(grants.names(Capability::Pillar).to_string(), "[b]");
    // A refusal applies to every content.
    let refused = format!("modules: {{x: {{{other}, grains: false}}, \"*\": {{grains: true}}}}");
    assert!(decide(&read(&refused), "x", false, &["grains"]).is_err());
    // `"*"` also applies to standard modules.
    assert!(decide(&read("modules: {\"*\": {modules: false}}"), "sys", true, &["modules"]).is_err());
    // A list at one level replaces the list of another level.
    let grants = decide(&read("modules: {x.f: {pillar: [a]}, x: {pillar: [b]}}"), "x", false, &["pillar"]).unwrap();
    assert_eq!(grants.of("f", None).unwrap().grants.names(Capability::Pillar).to_string(), "[a]");
    assert_eq!(grants.of("g", None).unwrap().grants.names(Capability::Pillar).to_string(), "[b]");
}

#[test]
fn a_module_is_let_in_where_any_function_has_the_grant() {
    let master = ["aa"; 32].join(":");
    for config in [
        "modules: {x.f: {jobs: true}}".to_owned(),
        format!("masters: {{\"{master}\": {{modules: {{x.f: {{jobs: true}}}}}}}}"),
    ] {
        let grants = decide(&read(&config), "x", false, &["jobs"]).unwrap();
        assert_eq!(grants.interfaces().collect::<Vec<_>>(), ["brine:host/jobs"]);
        assert!(!grants.of("g", Some(&master)).unwrap().grants.allows("brine:host/jobs"));
        assert!(grants.of("f", Some(&master)).unwrap().grants.allows("brine:host/jobs"));
        let general = grants.of("f", None).unwrap().grants.allows("brine:host/jobs");
        assert_eq!(general, !config.starts_with("masters"));
    }
    // An entry for a function that the module does not have grants nothing.
    assert!(decide(&read("modules: {x.nothing: {jobs: true}}"), "x", false, &["jobs"]).is_err());
}

#[test]
fn executors_are_shared_by_equal_grants_only() {
    let config =
        "modules: {x: {filesystem: {/srv: rw}, user: deploy, network: [\"a:1\"]}, x.g: {filesystem: {}, network: []}}";
    let grants = decide(&read(config), "x", false, &["wasi:filesystem/types", "http"]).unwrap();
    let f = grants.of("f", None).unwrap().grants;
    assert_eq!((f.direct.user.as_deref(), f.direct.directories.len(), f.direct.network.len()), (Some("deploy"), 1, 1));
    // A function without direct grants needs no executor of its own, whatever its user.
    let g = grants.of("g", None).unwrap().grants;
    assert_eq!((&g.direct, g.user.as_deref()), (&brine_sandbox_wire::DirectGrants::default(), Some("deploy")));
    assert_eq!(grants.directs().len(), 2);
    // Grants without an import have no effect.
    let grants = decide(&read(config), "x", false, &["grains"]).unwrap();
    assert_eq!(grants.directs().into_iter().collect::<Vec<_>>(), [&brine_sandbox_wire::DirectGrants::default()]);
}

#[test]
fn signatures_that_are_asked_for() {
    let signed = |config: &str, standard: bool, signers: &[KeyId]| {
        let module = name("x");
        let subject = Subject { name: &module, standard, sha256: sha(1), signers };
        let grants =
            read(config).decide(&subject, &imports(&["grains"]), &["f", "g"]).map_err(|refused| refused.to_string())?;
        grants.of("f", None).map(drop)
    };
    let own = format!("modules: {{x: {{signed_by: [{KEY}]}}}}");
    let every = format!("modules: {{\"*\": {{signed_by: [{KEY}]}}}}");
    let how = "have it signed with `salt-module sign x.wasm` and put x.wasm.minisig beside it";
    for config in [&own, &every] {
        assert_eq!(signed(config, false, &[key()]), Ok(()));
        let entry = if config == &own { "x" } else { "*" };
        let expect = format!("and sandbox:modules:{entry}:signed_by asks for a signature of {KEY}; {how}");
        assert_eq!(signed(config, false, &[]), Err(format!("module x is not signed, {expect}")));
        assert_eq!(
            signed(config, false, &[KeyId::UNKNOWN]),
            Err(format!("module x is signed by another key, {expect}"))
        );
    }
    // `"*"` demands no signatures of standard modules; an entry that names one does.
    assert!(signed(&every, true, &[]).is_ok());
    assert!(signed(&own, true, &[]).is_err());
    // An exemption from signatures needs an entry that names the module; with a hash it covers only that content.
    let free = |entry: &str| format!("modules: {{\"*\": {{signed_by: [{KEY}]}}, x: {{{entry}}}}}");
    assert!(signed(&free("signed_by: false"), false, &[]).is_ok());
    let hash = |byte: &str| format!("signed_by: false, sha256: \"{}\"", byte.repeat(32));
    assert!(signed(&free(&hash("01")), false, &[]).is_ok());
    assert!(signed(&free(&hash("02")), false, &[]).is_err());
    // A hash alone says nothing about signatures. A key whose file was not read verifies nothing.
    assert!(signed(&free("jobs: true"), false, &[]).is_err());
    assert!(signed("modules: {x: {signed_by: [ops.pub]}}", false, &[key()]).is_err());
    // A demand on one function.
    let function = format!("modules: {{x.f: {{signed_by: [{KEY}]}}}}");
    let expect =
        format!("module x is not signed, and sandbox:modules:x.f:signed_by asks for a signature of {KEY}; {how}");
    assert_eq!(signed(&function, false, &[]), Err(expect));
    // Grants of an entry with `signed_by` apply to content with such a signature.
    let grants = format!("modules: {{x: {{signed_by: [{KEY}], jobs: true}}}}");
    let module = name("x");
    let decide = |signers: &[KeyId]| {
        let subject = Subject { name: &module, standard: false, sha256: sha(1), signers };
        read(&grants).decide(&subject, &imports(&["jobs"]), &["f"]).is_ok()
    };
    assert!(decide(&[key()]) && !decide(&[]));
    // Grants of `"*"` with `signed_by` do not apply to standard modules, which need no such signature.
    let all = read(&format!("modules: {{\"*\": {{signed_by: [{KEY}], jobs: true}}}}"));
    let standard = |signers: &[KeyId]| {
        let subject = Subject { name: &module, standard: true, sha256: sha(1), signers };
        all.decide(&subject, &imports(&["jobs"]), &["f"]).is_ok()
    };
    assert!(standard(&[key()]) && !standard(&[]));
}

#[test]
fn several_signers() {
    let third = "RWQAAAAAAAAAAMEDcDky7N5lOKlopH4K4PYQPchhbUfGngoqhHd7JUAp";
    let config = format!("modules: {{x: {{signed_by: {{at_least: 2, of: [{KEY}, {OTHER}, {third}]}}, jobs: true}}}}");
    let module = name("x");
    let decide = |signers: &[KeyId]| {
        let subject = Subject { name: &module, standard: false, sha256: sha(1), signers };
        let decided = read(&config).decide(&subject, &imports(&["jobs"]), &["f"]);
        decided.map(drop).map_err(|refused| refused.to_string())
    };
    assert_eq!(decide(&[id(OTHER), key()]), Ok(()));
    assert_eq!(decide(&[id(third), id(OTHER), key()]), Ok(()));
    let expect = format!(
        "and sandbox:modules:x:signed_by asks for signatures of 2 of {KEY}, {OTHER} and {third}; have it signed with `salt-module sign \
         x.wasm` and put x.wasm.minisig beside it"
    );
    let one = format!("module x is signed by 1 of the keys that are asked for, {expect}");
    assert_eq!(decide(&[id(OTHER)]), Err(one.clone()));
    // Two signatures by one key count once.
    assert_eq!(decide(&[id(OTHER), id(OTHER)]), Err(one));
    assert_eq!(decide(&[]), Err(format!("module x is not signed, {expect}")));
    assert_eq!(decide(&[KeyId::UNKNOWN]), Err(format!("module x is signed by another key, {expect}")));
    // `any` without any known key matches no signature.
    let any = read("modules: {x: {signed_by: any}}");
    let subject = Subject { name: &module, standard: false, sha256: sha(1), signers: &[key()] };
    let error = any.decide(&subject, &[], &["f"]).unwrap_err().to_string();
    assert!(error.contains("asks for a signature of a key in the owner's folder of keys; "), "{error}");
}

#[test]
fn revoked_content_is_refused_whatever_is_granted() {
    let hash = sha(1);
    let config = format!("revoked: {{sha256: [\"{hash}\"]}}\nmodules: {{x: {{sha256: \"{hash}\", jobs: true}}}}");
    let module = name("x");
    for standard in [false, true] {
        let subject = |byte: u8| Subject { name: &module, standard, sha256: sha(byte), signers: &[] };
        let refused = read(&config).decide(&subject(1), &imports(&["jobs"]), &["f"]).unwrap_err();
        let expect = format!(
            "module x is refused: the owner of this host revoked this content (sha256 {hash}, by sandbox:revoked:sha256); install \
             another version of it"
        );
        assert_eq!((refused.to_string(), refused.lines()), (expect, None));
        assert!(read(&config).decide(&subject(2), &[], &["f"]).is_ok());
    }
}

#[test]
fn the_most_specific_entry_says_when_calls_are_recorded() {
    let master = "ab:".repeat(31) + "cd";
    let config = format!(
        "modules: {{x.f: {{record: on}}, x: {{record: off}}, \"*\": {{record: asked}}}}\nmasters: {{\"{master}\": {{modules: {{y: {{record: \
         off}}}}}}}}"
    );
    let policy = read(&config);
    let of = |module: &str, function: &str, master: Option<&str>| policy.record(&name(module), function, master);
    assert_eq!([of("x", "f", None), of("x", "g", None)], [RecordWhen::On, RecordWhen::Off]);
    assert_eq!([of("y", "f", None), of("y", "f", Some(&master))], [RecordWhen::Asked, RecordWhen::Off]);
    assert_eq!(read("{}").record(&name("x"), "f", None), RecordWhen::Off);
    assert_eq!(policy.general.every.to_string(), "{record: asked}");
}

#[test]
fn limits_are_each_their_own() {
    let config = "modules: {x.f: {limits: {wall: 1s}}, x: {limits: {wall: 2s, memory: 1MiB}, max_running: 2}, \"*\": {limits: {output: \
                  2048}, max_running: 5, max_queued: 7}}";
    let policy = read(config);
    let of = |function: &str| {
        let limits = policy.limits(&Limits::default(), &name("x"), false, function, None);
        (limits.wall_ms, limits.memory, limits.output)
    };
    assert_eq!(of("f"), (1_000, 1 << 20, 2_048));
    assert_eq!(of("g"), (2_000, 1 << 20, 2_048));
    // `cp` may write larger files by default, unless the owner sets the limit for all modules.
    let written =
        |base: &Limits, module: &str, standard| policy.limits(base, &name(module), standard, "f", None).written;
    let default = Limits::default();
    let less = Limits { written: 1 << 20, ..Limits::default() };
    assert_eq!(
        [written(&default, "cp", true), written(&default, "cp", false), written(&default, "y", true)],
        [1 << 30, 256 << 20, 256 << 20]
    );
    assert_eq!(written(&less, "cp", true), 1 << 20);
    assert_eq!(policy.concurrency(&name("x")), Concurrency { max_running: Some(2), max_queued: Some(7) });
    assert_eq!(policy.concurrency(&name("y")), Concurrency { max_running: Some(5), max_queued: Some(7) });
}

/// Generates unusual names, as they may appear in YAML.
fn odd() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,4}",
        "[ -~]{1,8}",
        select(vec!["yes", "null", "1e5", "0x1", "12:30", "~", "- a", "é", "\"", "a: b", "#x", "2026-11-20"])
            .prop_map(str::to_owned)
    ]
    .prop_filter("as settings take it", |text| {
        !text.starts_with('/') && !text.starts_with("salt:") && !text.contains(['*', '?'])
    })
}

fn grant(capability: Capability) -> BoxedStrategy<Grant> {
    use brine_capabilities::{Kind, Names, ProcessGrant};
    let names = |one: BoxedStrategy<String>| {
        prop_oneof![1 => Just(Names::Any), 3 => proptest::collection::vec(one, 0..3).prop_map(Names::Only)].boxed()
    };
    let path = || "/[a-zA-Z0-9 :{},_-]{1,6}".boxed();
    let some = match capability.kind() {
        Kind::Flag => Just(Grant::Yes).boxed(),
        Kind::Names if capability == Capability::Pillar => {
            names("[a-z]{1,3}(:[a-z]{1,3})?".boxed()).prop_map(Grant::Names).boxed()
        }
        Kind::Names if capability == Capability::Files => {
            names("[a-z]{1,3}(/[a-z*]{1,3})?".boxed()).prop_map(Grant::Names).boxed()
        }
        Kind::Names if capability == Capability::Kernel => {
            let tables = proptest::sample::select(vec!["loadavg", "net/dev", "net/*"]).prop_map(str::to_owned);
            names(tables.boxed()).prop_map(Grant::Names).boxed()
        }
        Kind::Names => names(odd().boxed()).prop_map(Grant::Names).boxed(),
        Kind::Settings => {
            prop_oneof![Just(Grant::Yes), names("[a-z.*]{1,3}(:[a-z]{1,3})?".boxed()).prop_map(Grant::Names)].boxed()
        }
        Kind::Process => (
            names(path()),
            names("[a-z]{1,4}".boxed()),
            names("[A-Z_]{1,4}\\*?".boxed()),
            names(path()),
            any::<bool>(),
            proptest::option::of(0u64..1 << 50),
            proptest::collection::vec("/[a-z]{1,3}( [a-z*?-]{1,3}){0,2}( \\*\\*)?", 0..2),
        )
            .prop_map(|(programs, users, env, cwd, detach, file_size, looks)| {
                Grant::Process(ProcessGrant {
                    looks: looks.iter().filter_map(|text| brine_capabilities::Look::read(text).ok()).collect(),
                    programs,
                    groups: users.clone(),
                    users,
                    env,
                    cwd,
                    detach,
                    file_size,
                    ..ProcessGrant::default()
                })
            })
            .boxed(),
        Kind::Directories => proptest::collection::btree_map(path(), any::<bool>(), 0..3)
            .prop_map(|dirs| {
                let dirs = dirs.into_iter().map(|(path, writable)| brine_sandbox_wire::Directory { path, writable });
                Grant::Directories(dirs.collect())
            })
            .boxed(),
        Kind::Changes => proptest::collection::btree_map(path(), select(vec!["ro", "rw", "rw+setid"]), 0..3)
            .prop_map(|trees| {
                let access = |text| brine_capabilities::Access::read(text).expect("it is one");
                let trees =
                    trees.into_iter().map(|(path, text)| brine_capabilities::Tree { path, access: access(text) });
                Grant::Changes(trees.collect())
            })
            .boxed(),
        Kind::Network => proptest::collection::btree_set(
            (select(vec!["a.example", "10.0.0.0/8", "::1", "fd00::/8"]), 1u16..9, 9u16..12),
            0..3,
        )
        .prop_map(|rules| {
            let rule = |(host, first, last): (&str, u16, u16)| brine_sandbox_wire::NetworkRule {
                host: host.into(),
                ports: (first, last),
            };
            let mut rules: Vec<_> = rules.into_iter().map(rule).collect();
            rules.sort();
            Grant::Network(rules)
        })
        .boxed(),
    };
    prop_oneof![1 => Just(Grant::No), 2 => some].boxed()
}

fn entry() -> impl Strategy<Value = Entry> {
    let one = select(Capability::ALL.to_vec())
        .prop_flat_map(|capability| grant(capability).prop_map(move |grant| (capability, grant)));
    let signed = prop_oneof![
        4 => Just(None),
        1 => Just(Some(Signers::NotNeeded)),
        1 => (1usize..3).prop_map(|at_least| {
            let of = [KEY, OTHER][..at_least].iter().map(|line| Signer { written: (*line).into(), key: Some(id(line)) });
            Some(Signers::Needed(Quorum { at_least, of: of.collect(), any: false }))
        }),
    ];
    let limits = (
        proptest::option::of(1u64..86_400_000),
        proptest::option::of(65_536u64..1 << 32),
        proptest::option::of((0u64..1 << 50, 0u64..1_000_000_000)),
    )
        .prop_map(|(wall_ms, memory, disk)| LimitChanges {
            wall_ms: wall_ms.map(|ms| ms.max(10)),
            memory,
            written: disk.map(|(written, _)| written),
            new_files: disk.map(|(_, new_files)| new_files),
            ..LimitChanges::default()
        });
    let user = proptest::option::of("[a-z]{1,4}|[1-9][0-9]{0,3}");
    (
        proptest::option::weighted(0.3, (0u8..3).prop_map(sha)),
        signed,
        proptest::collection::vec(one, 0..4),
        user,
        limits,
    )
        .prop_map(|(sha256, signed_by, says, user, limits)| Entry {
            sha256,
            signed_by,
            says: says.into_iter().collect(),
            user,
            limits,
            ..Entry::default()
        })
}

/// Generates policies about the functions `f` and `g` of `saltutil`, in general and for one master.
fn policies() -> impl Strategy<Value = Policy> {
    let rules = || {
        let functions = proptest::collection::btree_map(select(vec!["f", "g"]), entry(), 0..2);
        (functions, proptest::option::of(entry()), entry()).prop_map(|(functions, own, every)| Rules {
            functions: functions
                .into_iter()
                .map(|(function, entry)| ((name("saltutil"), function.to_owned()), entry))
                .collect(),
            modules: own.map(|own| (name("saltutil"), own)).into_iter().collect(),
            every,
        })
    };
    (rules(), proptest::option::of(rules())).prop_map(|(general, master)| Policy {
        general,
        masters: master.map(|rules| (master_name(), rules)).into_iter().collect(),
        ..Policy::default()
    })
}

fn master_name() -> String {
    ["aa"; 32].join(":")
}

/// Writes a policy as YAML.
fn written(policy: &Policy) -> String {
    let rules = |rules: &Rules, indent: &str| {
        let functions =
            rules.functions.iter().map(|((module, function), entry)| (format!("{module}.{function}"), entry));
        let modules = rules.modules.iter().map(|(module, entry)| (module.to_string(), entry));
        let every = [("\"*\"".to_owned(), &rules.every)];
        let lines = functions.chain(modules).chain(every).map(|(key, entry)| format!("{indent}  {key}: {entry}\n"));
        format!("{indent}modules:\n{}", lines.collect::<String>())
    };
    let mut text = rules(&policy.general, "");
    if !policy.masters.is_empty() {
        text.push_str("masters:\n");
    }
    for (master, of) in &policy.masters {
        text.push_str(&format!("  \"{master}\":\n{}", rules(of, "    ")));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// A written policy reads back as the same policy.
    #[test]
    fn entries_read_as_they_are_written(policy in policies()) {
        let text = written(&policy);
        let again = crate::Settings::read(&yaml(&text)).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?.policy;
        prop_assert_eq!(&again.general, &policy.general, "{}", text);
        prop_assert_eq!(&again.masters, &policy.masters);
    }

    /// Nothing is granted without an import; more imports never turn a refusal into a grant; a refusal is one line, and
    /// its configuration lines grant exactly what was missing.
    #[test]
    fn decisions(
        policy in policies(),
        wanted in proptest::collection::vec(select(all_imports()), 0..6),
        more in proptest::collection::vec(select(all_imports()), 0..3),
        standard: bool,
        hash in 0u8..3,
        signed in 0usize..3,
    ) {
        let module = name("saltutil");
        let keys = [key(), id(OTHER)];
        let subject = Subject { name: &module, standard, sha256: sha(hash), signers: &keys[..signed] };
        let functions = ["f", "g", "h"];
        let decide = |policy: &Policy, imports: &[String]| policy.decide(&subject, imports, &functions);
        let all: Vec<String> = wanted.iter().chain(&more).cloned().collect();
        match decide(&policy, &wanted) {
            Ok(grants) => {
                // What runs states calls functions too, for templates and conditions.
                let imported = |interface: &str| {
                    let has = |interface| wanted.iter().any(|import| import.split('@').next() == Some(interface));
                    has(interface) || interface == "brine:host/functions" && has("brine:host/states")
                };
                for (_, _, grants) in grants.each() {
                    prop_assert!(grants.interfaces().all(imported));
                    prop_assert!(grants.process == Default::default() || imported("brine:host/process"));
                    prop_assert!(grants.direct.directories.is_empty() || wanted.iter().any(|import| import.contains("filesystem") || import.contains("metadata")));
                    prop_assert!(grants.direct.network.is_empty() || wanted.iter().any(|import| import.contains("sockets") || import.contains("http")));
                }
                prop_assert!(grants.interfaces().all(imported));
            }
            Err(refused) => {
                prop_assert!(decide(&policy, &all).is_err());
                prop_assert!(!refused.to_string().contains('\n'));
                let Some(lines) = refused.lines() else { return Ok(()) };
                prop_assert!(refused.to_string().contains("; the owner of this host grants it by "));
                // Adds the lines to the configuration.
                let added = read(&lines.lines().skip(1).map(|line| format!("{}\n", &line[2..])).collect::<String>());
                let mut granted = policy.clone();
                granted.general.modules.extend(added.general.modules);
                granted.general.functions.extend(added.general.functions);
                for (master, rules) in added.masters {
                    let of_master = granted.masters.entry(master).or_default();
                    of_master.modules.extend(rules.modules);
                    of_master.functions.extend(rules.functions);
                }
                let now = decide(&granted, &wanted);
                prop_assert!(now.is_ok(), "{}\n{}\n{}", written(&policy), lines, now.unwrap_err());
                // The lines change nothing about other imports.
                for import in all_imports() {
                    let one = [import.clone()];
                    if !refused.missing.values().any(|capability| Capability::of(import.split('@').next().unwrap()).unwrap().0 == *capability) {
                        prop_assert!(decide(&granted, &one).is_err() || decide(&policy, &one).is_ok(), "{}", import);
                    }
                }
            }
        }
    }
}

/// A line for a new content asks for what that content lacks. What the owner granted to the content before stays with that one; what he
/// refused, limited or wants signed holds for both.
#[test]
fn a_line_for_a_new_content_has_nothing_of_the_old_one() {
    let config = |hash: u8, signed_by: &str| {
        let hash = format!("{hash:02}").repeat(32);
        format!(
            "modules: {{st: {{sha256: \"{hash}\", signed_by: {signed_by}, downgrade: true, filesystem: {{/srv: rw}}, pillar: \
             [secrets], grains: false, states: [], user: www, limits: {{wall: 5s}}, record: asked}}}}"
        )
    };
    let module = name("st");
    let subject = Subject { name: &module, standard: false, sha256: sha(1), signers: &[key()] };
    let lines = |config: &str| {
        let explain = read(config).explain(&subject, Some("slow"), None);
        let grant = || Grant::Names(brine_capabilities::Names::Only(vec!["st.slow".into()]));
        let line = crate::kernel::broker::Remedy::line(&explain, Capability::States, grant()).unwrap();
        [explain.lifting(Capability::States, grant()).to_string(), line]
    };
    let hash = "01".repeat(32);
    let signed = format!("[{KEY}]");
    for (signed_by, kept) in [("false", String::new()), (&signed, format!("signed_by: {signed}, "))] {
        assert_eq!(
            lines(&config(2, signed_by)),
            [
                format!(
                    "st: {{sha256: \"{hash}\", {kept}grains: false, states: [st.slow], limits: {{wall: 5000ms}}, record: asked}}"
                ),
                format!("st: {{sha256: \"{hash}\", states: [st.slow]}}"),
            ]
        );
    }
    // Its own grants are its own.
    let [whole, added] = lines(&config(1, "false"));
    for part in ["filesystem: {/srv: rw}", "pillar: [secrets]", "user: www", "downgrade: true", "states: [st.slow]"] {
        assert!(whole.contains(part), "{part}: {whole}");
    }
    assert_eq!(added, format!("st: {{sha256: \"{hash}\", states: [st.slow]}}"));
}

/// What came from a master in place of the module `state`, or beside it, steers no runs, unless the owner let it replace it.
#[test]
fn the_module_that_runs_states_is_the_hosts_own() {
    let runs = |config: &str, module: &str, standard: bool| read(config).runs_states(&name(module), standard);
    let granted = "modules: {state: {states: any}, m: {states: any}}";
    for config in ["{}", granted, "replace_standard: [test]"] {
        assert!(runs(config, "state", true), "{config}");
        assert!(!runs(config, "state", false), "{config}");
        assert!(!runs(config, "m", false) && !runs(config, "saltutil", true), "{config}");
    }
    assert!(runs("replace_standard: [state]", "state", false));
    assert!(!runs("replace_standard: [state, m]", "m", false));
}

/// Templates and conditions of states call functions by `brine:host/states`, with the grant of `functions` and nothing more.
#[test]
fn a_module_that_runs_states_calls_what_it_was_granted() {
    let called = |config: &str, module: &str, standard: bool| {
        let grants = decide(&read(config), module, standard, &["states"]).unwrap();
        let granted = grants.of("f", None).unwrap().grants;
        let allowed = granted.allows("brine:host/functions");
        ["test.ping", "cmd.run"].map(|name| allowed && granted.names(Capability::Functions).matches(name))
    };
    assert_eq!(called("{}", "state", true), [true, true]);
    assert_eq!(called("modules: {state: {functions: [\"test.*\"]}}", "state", true), [true, false]);
    assert_eq!(called("modules: {state: {functions: false}}", "state", true), [false, false]);
    assert_eq!(called("modules: {x: {states: any}}", "x", false), [false, false]);
    assert_eq!(called("modules: {x: {states: any, functions: [cmd.run]}}", "x", false), [false, true]);
}

/// A state has the entries of its own, of the module's states, of the module and of every module. A function has none of
/// the states' entries, and the line for a state is one about states.
#[test]
fn states_have_entries_of_their_own() {
    let policy = read(
        "modules: {x: {process: [/bin/true]}, x.states: {pillar: any, limits: {wall: 30m}}, x.states.one: {files: any}, \
         x.states.two: {pillar: false}}",
    );
    let module = name("x");
    let subject = Subject { name: &module, standard: false, sha256: sha(1), signers: &[] };
    let functions = ["f", "states.one", "states.two", "states.three"];
    let grants = policy.decide(&subject, &imports(&["process", "pillar", "files"]), &functions).unwrap();
    for (function, expect) in [
        ("f", "brine:host/process"),
        ("states.one", "brine:host/files brine:host/pillar brine:host/process"),
        ("states.two", "brine:host/process"),
        ("states.three", "brine:host/pillar brine:host/process"),
    ] {
        let granted = grants.of(function, None).unwrap();
        assert_eq!(granted.grants.interfaces().collect::<Vec<_>>().join(" "), expect, "{function}");
    }
    let base = brine_sandbox_wire::Limits::default();
    let wall = |function| policy.limits(&base, &module, false, function, None).wall_ms;
    assert_eq!((wall("f"), wall("states.one")), (60_000, 1_800_000));
    let line = |function| {
        let lifted = Grant::Names(brine_capabilities::Names::Any);
        policy.explain(&subject, Some(function), None).lifting(Capability::Mine, lifted).to_string()
    };
    assert!(line("f").starts_with("x: {process: "), "{}", line("f"));
    assert!(line("states.three").starts_with("x.states: {pillar: any, mine: any"), "{}", line("states.three"));
    let lifted =
        policy.explain(&subject, Some("states.two"), None).lifting(Capability::Pillar, Capability::Pillar.least());
    assert!(lifted.to_string().starts_with("x.states.two: {"), "{lifted}");
    for odd in ["x.states.", "x.states.One", "x.states.a.b", "x.a.b"] {
        let config = yaml(&format!("modules: {{{odd}: {{pillar: any}}}}"));
        assert!(crate::Settings::read(&config).is_err(), "{odd}");
    }
}
