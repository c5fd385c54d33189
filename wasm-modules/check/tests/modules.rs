//! The built modules (`$BRINE_MODULES/*.wasm`) have only their intended imports, are small, and are documented.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wit_component::DecodedWasm;
use wit_parser::{Function, Resolve, TypeDefKind, WorldItem, WorldKey};

/// Every standard module with its permitted imports and its largest size. An import is a request for rights, so a new
/// one is a decision, made here and in the sandbox's policy. Each module is read, compiled and mapped on every minion.
const STANDARD: &[(&str, &[&str], usize)] = &[
    ("alias", &["brine:host/changes", "brine:host/job", "brine:host/log", "brine:host/process"], 140_000),
    ("aliases", &["brine:host/changes", "brine:host/log", "brine:host/process"], 140_000),
    (
        "alternatives",
        &["brine:host/changes", "brine:host/grains", "brine:host/job", "brine:host/log", "brine:host/process"],
        150_000,
    ),
    (
        "archive",
        &[
            "brine:host/changes",
            "brine:host/files",
            "brine:host/functions",
            "brine:host/grains",
            "brine:host/http",
            "brine:host/job",
            "brine:host/log",
            "brine:host/process",
        ],
        // With what decompresses.
        750_000,
    ),
    ("beacon", &["brine:host/functions", "brine:host/job", "brine:host/log"], 140_000),
    ("beacons", &["brine:host/beacons", "brine:host/job", "brine:host/log"], 280_000),
    ("cert_info", &["brine:host/changes", "brine:host/log", "wasi:clocks/wall-clock"], 370_000),
    (
        "cmd",
        &[
            "brine:host/changes",
            "brine:host/files",
            "brine:host/functions",
            "brine:host/grains",
            "brine:host/job",
            "brine:host/log",
            "brine:host/process",
            "wasi:random/random",
        ],
        300_000,
    ),
    (
        "config",
        &["brine:host/config", "brine:host/grains", "brine:host/job", "brine:host/log", "brine:host/pillar"],
        // With YAML, for Salt's own defaults.
        420_000,
    ),
    (
        "cp",
        &[
            "brine:host/config",
            "brine:host/files",
            "brine:host/log",
            "brine:host/metadata",
            "wasi:filesystem/preopens",
            "wasi:filesystem/types",
        ],
        270_000,
    ),
    (
        "cron",
        &[
            "brine:host/files",
            "brine:host/functions",
            "brine:host/grains",
            "brine:host/job",
            "brine:host/log",
            "brine:host/process",
            "wasi:random/random",
        ],
        230_000,
    ),
    (
        "debconf",
        &["brine:host/changes", "brine:host/files", "brine:host/job", "brine:host/log", "brine:host/process"],
        115_000,
    ),
    // With YAML and JSON, for the files.
    ("defaults", &["brine:host/files", "brine:host/log"], 420_000),
    ("dig", &["brine:host/log", "brine:host/process"], 120_000),
    ("disk", &["brine:host/disks", "brine:host/log"], 100_000),
    (
        "http",
        &[
            "brine:host/config",
            "brine:host/http",
            "brine:host/job",
            "brine:host/log",
            "wasi:clocks/monotonic-clock",
            "wasi:io/poll",
        ],
        330_000,
    ),
    (
        "tcp_events",
        &[
            "brine:host/log",
            "wasi:io/error",
            "wasi:io/poll",
            "wasi:io/streams",
            "wasi:sockets/instance-network",
            "wasi:sockets/ip-name-lookup",
            "wasi:sockets/network",
            "wasi:sockets/tcp",
            "wasi:sockets/tcp-create-socket",
        ],
        130_000,
    ),
    ("webhook", &["brine:host/http", "brine:host/log"], 110_000),
    (
        "rawfile_json",
        &[
            "brine:host/config",
            "brine:host/log",
            "brine:host/metadata",
            "wasi:filesystem/preopens",
            "wasi:filesystem/types",
            // Lines are appended by a stream.
            "wasi:io/error",
            "wasi:io/poll",
            "wasi:io/streams",
        ],
        130_000,
    ),
    ("stateconf", &["brine:host/log"], 60_000),
    // With the tables of Unicode, for expressions.
    ("diskusage", &["brine:host/disks", "brine:host/log"], 1_450_000),
    ("environ", &["brine:host/job", "brine:host/log"], 60_000),
    (
        "dnsutil",
        &["brine:host/changes", "brine:host/functions", "brine:host/grains", "brine:host/kernel", "brine:host/log"],
        175_000,
    ),
    ("hashutil", &["brine:host/changes", "brine:host/log"], 290_000),
    (
        "match",
        &["brine:host/config", "brine:host/grains", "brine:host/job", "brine:host/log", "brine:host/pillar"],
        // With the tables of Unicode, for expressions.
        1_780_000,
    ),
    (
        "slsutil",
        &[
            "brine:host/changes",
            "brine:host/config",
            "brine:host/files",
            "brine:host/functions",
            "brine:host/grains",
            "brine:host/job",
            "brine:host/log",
            "brine:host/pillar",
            "wasi:clocks/wall-clock",
            "wasi:random/random",
        ],
        // With the renderers, as state.
        3_000_000,
    ),
    ("random", &["brine:host/grains", "brine:host/log", "wasi:random/random"], 190_000),
    (
        "event",
        &[
            "brine:host/config",
            "brine:host/events",
            "brine:host/grains",
            "brine:host/job",
            "brine:host/log",
            "brine:host/pillar",
        ],
        90_000,
    ),
    (
        "file",
        &[
            "brine:host/changes",
            "brine:host/config",
            "brine:host/files",
            "brine:host/functions",
            "brine:host/grains",
            "brine:host/http",
            "brine:host/job",
            "brine:host/log",
            "brine:host/metadata",
            "brine:host/pillar",
            "wasi:clocks/wall-clock",
            "wasi:filesystem/preopens",
            "wasi:filesystem/types",
            "wasi:random/random",
        ],
        // With the renderer of templates, as state.
        3_350_000,
    ),
    ("firewall", &["brine:host/functions", "brine:host/job", "brine:host/log"], 120_000),
    (
        "git",
        &["brine:host/changes", "brine:host/files", "brine:host/job", "brine:host/log", "brine:host/process"],
        460_000,
    ),
    ("grains", &["brine:host/grains", "brine:host/job", "brine:host/log", "brine:host/static-grains"], 190_000),
    ("group", &["brine:host/changes", "brine:host/job", "brine:host/log", "brine:host/process"], 170_000),
    ("host", &["brine:host/changes", "brine:host/job", "brine:host/log"], 160_000),
    ("hosts", &["brine:host/changes", "brine:host/log"], 150_000),
    ("ini", &["brine:host/changes", "brine:host/job", "brine:host/log"], 200_000),
    (
        "iptables",
        &["brine:host/changes", "brine:host/grains", "brine:host/job", "brine:host/log", "brine:host/process"],
        240_000,
    ),
    (
        "kmod",
        &["brine:host/changes", "brine:host/grains", "brine:host/job", "brine:host/log", "brine:host/process"],
        190_000,
    ),
    // With the tables of Unicode, for expressions.
    ("inotify", &["brine:host/log", "brine:host/watches"], 1_450_000),
    ("jinja", &["brine:host/functions", "brine:host/log"], 120_000),
    ("journald", &["brine:host/log", "brine:host/process"], 180_000),
    ("key", &["brine:host/config", "brine:host/kernel", "brine:host/log"], 130_000),
    ("load", &["brine:host/kernel", "brine:host/log"], 90_000),
    ("local", &["brine:host/log"], 80_000),
    (
        "locale",
        &["brine:host/changes", "brine:host/grains", "brine:host/job", "brine:host/log", "brine:host/process"],
        280_000,
    ),
    // With the tables of Unicode, for expressions.
    ("log", &["brine:host/changes", "brine:host/log"], 1_450_000),
    ("logrotate", &["brine:host/changes", "brine:host/functions", "brine:host/job", "brine:host/log"], 160_000),
    (
        "loop",
        &["brine:host/functions", "brine:host/job", "brine:host/log", "wasi:clocks/monotonic-clock", "wasi:io/poll"],
        240_000,
    ),
    ("memusage", &["brine:host/kernel", "brine:host/log"], 100_000),
    (
        "mine",
        &[
            "brine:host/config",
            "brine:host/functions",
            "brine:host/job",
            "brine:host/log",
            "brine:host/mine",
            "brine:host/modules",
            "brine:host/pillar",
        ],
        100_000,
    ),
    ("module", &["brine:host/functions", "brine:host/job", "brine:host/log", "brine:host/modules"], 120_000),
    (
        "mount",
        &["brine:host/changes", "brine:host/functions", "brine:host/job", "brine:host/log", "brine:host/process"],
        420_000,
    ),
    (
        "network",
        &[
            "brine:host/changes",
            "brine:host/grains",
            "brine:host/kernel",
            "brine:host/log",
            "brine:host/process",
            "wasi:clocks/monotonic-clock",
            "wasi:io/poll",
            "wasi:io/streams",
            "wasi:sockets/instance-network",
            "wasi:sockets/ip-name-lookup",
            "wasi:sockets/network",
            "wasi:sockets/tcp",
            "wasi:sockets/tcp-create-socket",
        ],
        380_000,
    ),
    ("network_info", &["brine:host/kernel", "brine:host/log"], 120_000),
    ("pillar", &["brine:host/config", "brine:host/log", "brine:host/pillar"], 140_000),
    (
        "pip",
        &["brine:host/changes", "brine:host/files", "brine:host/job", "brine:host/log", "brine:host/process"],
        360_000,
    ),
    (
        "pkg",
        &[
            "brine:host/changes",
            "brine:host/files",
            "brine:host/functions",
            "brine:host/grains",
            "brine:host/http",
            "brine:host/job",
            "brine:host/log",
            "brine:host/process",
            "wasi:clocks/monotonic-clock",
            "wasi:clocks/wall-clock",
            "wasi:io/poll",
        ],
        600_000,
    ),
    ("pkgrepo", &["brine:host/changes", "brine:host/functions", "brine:host/job", "brine:host/log"], 210_000),
    (
        "ps",
        &[
            "brine:host/changes",
            "brine:host/disks",
            "brine:host/kernel",
            "brine:host/log",
            "brine:host/process",
            "wasi:clocks/monotonic-clock",
            "wasi:io/poll",
        ],
        330_000,
    ),
    ("process", &["brine:host/functions", "brine:host/job", "brine:host/log"], 140_000),
    (
        "postgres",
        &[
            "brine:host/changes",
            "brine:host/config",
            "brine:host/log",
            "brine:host/pillar",
            "brine:host/process",
            "wasi:io/error",
            "wasi:io/poll",
            "wasi:io/streams",
            "wasi:random/random",
            "wasi:sockets/instance-network",
            "wasi:sockets/ip-name-lookup",
            "wasi:sockets/network",
            "wasi:sockets/tcp",
            "wasi:sockets/tcp-create-socket",
        ],
        // With Unicode's tables, for passwords.
        600_000,
    ),
    (
        "postgres_cluster",
        &["brine:host/changes", "brine:host/config", "brine:host/functions", "brine:host/job", "brine:host/log"],
        130_000,
    ),
    (
        "postgres_database",
        &["brine:host/changes", "brine:host/config", "brine:host/functions", "brine:host/job", "brine:host/log"],
        130_000,
    ),
    (
        "postgres_extension",
        &["brine:host/changes", "brine:host/config", "brine:host/functions", "brine:host/job", "brine:host/log"],
        130_000,
    ),
    (
        "postgres_group",
        &[
            "brine:host/changes",
            "brine:host/config",
            "brine:host/functions",
            "brine:host/job",
            "brine:host/log",
            "wasi:random/random",
        ],
        450_000,
    ),
    (
        "postgres_initdb",
        &["brine:host/changes", "brine:host/config", "brine:host/functions", "brine:host/job", "brine:host/log"],
        130_000,
    ),
    (
        "postgres_language",
        &["brine:host/changes", "brine:host/config", "brine:host/functions", "brine:host/job", "brine:host/log"],
        130_000,
    ),
    (
        "postgres_privileges",
        &["brine:host/changes", "brine:host/config", "brine:host/functions", "brine:host/job", "brine:host/log"],
        130_000,
    ),
    (
        "postgres_schema",
        &["brine:host/changes", "brine:host/config", "brine:host/functions", "brine:host/job", "brine:host/log"],
        130_000,
    ),
    (
        "postgres_tablespace",
        &["brine:host/changes", "brine:host/config", "brine:host/functions", "brine:host/job", "brine:host/log"],
        130_000,
    ),
    (
        "postgres_user",
        &[
            "brine:host/changes",
            "brine:host/config",
            "brine:host/functions",
            "brine:host/job",
            "brine:host/log",
            "wasi:random/random",
        ],
        450_000,
    ),
    ("publish", &["brine:host/log", "brine:host/publish", "wasi:clocks/monotonic-clock", "wasi:io/poll"], 90_000),
    ("receipts", &["brine:host/log", "brine:host/receipts"], 70_000),
    ("salt_version", &["brine:host/grains", "brine:host/log"], 160_000),
    (
        "saltutil",
        &["brine:host/files", "brine:host/job", "brine:host/jobs", "brine:host/log", "brine:host/modules"],
        170_000,
    ),
    ("sandbox", &["brine:host/log", "brine:host/policy"], 110_000),
    (
        "schedule",
        &["brine:host/functions", "brine:host/job", "brine:host/log", "brine:host/modules", "brine:host/schedule"],
        280_000,
    ),
    (
        "service",
        &[
            "brine:host/changes",
            "brine:host/grains",
            "brine:host/job",
            "brine:host/log",
            "brine:host/process",
            "wasi:clocks/monotonic-clock",
            "wasi:clocks/wall-clock",
            "wasi:io/poll",
        ],
        350_000,
    ),
    ("shadow", &["brine:host/changes", "brine:host/log", "brine:host/process", "wasi:random/random"], 190_000),
    (
        "ssh",
        &["brine:host/changes", "brine:host/files", "brine:host/log", "brine:host/process", "wasi:random/random"],
        300_000,
    ),
    ("ssh_auth", &["brine:host/changes", "brine:host/files", "brine:host/job", "brine:host/log"], 240_000),
    (
        "ssh_known_hosts",
        &["brine:host/changes", "brine:host/job", "brine:host/log", "brine:host/process", "wasi:random/random"],
        220_000,
    ),
    (
        "state",
        &[
            "brine:host/files",
            "brine:host/functions",
            "brine:host/grains",
            "brine:host/job",
            "brine:host/jobs",
            "brine:host/log",
            "brine:host/modules",
            "brine:host/pillar",
            "brine:host/progress",
            "brine:host/states",
            "wasi:clocks/monotonic-clock",
            "wasi:clocks/wall-clock",
            "wasi:random/random",
        ],
        // With the renderers: Jinja, YAML, and regular expressions with Unicode's tables.
        3_200_000,
    ),
    // With expressions, for processes.
    ("status", &["brine:host/kernel", "brine:host/log", "wasi:clocks/wall-clock"], 260_000),
    ("swapusage", &["brine:host/kernel", "brine:host/log"], 100_000),
    ("sys", &["brine:host/log", "brine:host/modules"], 120_000),
    (
        "sysctl",
        &["brine:host/changes", "brine:host/grains", "brine:host/job", "brine:host/log", "brine:host/process"],
        160_000,
    ),
    ("temp", &["brine:host/changes", "brine:host/log", "wasi:random/random"], 80_000),
    (
        "test",
        &[
            "brine:host/functions",
            "brine:host/job",
            "brine:host/log",
            "wasi:clocks/monotonic-clock",
            "wasi:io/poll",
            "wasi:random/random",
        ],
        230_000,
    ),
    (
        "timezone",
        &["brine:host/changes", "brine:host/grains", "brine:host/job", "brine:host/log", "brine:host/process"],
        190_000,
    ),
    (
        "user",
        &[
            "brine:host/changes",
            "brine:host/grains",
            "brine:host/job",
            "brine:host/log",
            "brine:host/process",
            "wasi:random/random",
        ],
        320_000,
    ),
    (
        "virtualenv",
        &[
            "brine:host/changes",
            "brine:host/files",
            "brine:host/functions",
            "brine:host/job",
            "brine:host/log",
            "brine:host/process",
        ],
        200_000,
    ),
];

fn folder() -> PathBuf {
    std::env::var_os("BRINE_MODULES").expect("BRINE_MODULES names the folder that tools/build-modules.sh wrote").into()
}

fn module(path: &Path) -> (usize, Resolve, wit_parser::WorldId) {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    match wit_component::decode(&bytes) {
        Ok(DecodedWasm::Component(resolve, world)) => (bytes.len(), resolve, world),
        Ok(DecodedWasm::WitPackage(..)) => panic!("{} is WIT and no component", path.display()),
        Err(error) => panic!("{}: {error:#}", path.display()),
    }
}

#[test]
fn there_are_the_standard_modules_and_no_others() {
    let found: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".wasm").map(str::to_owned))
        .collect();
    assert_eq!(found, STANDARD.iter().map(|(name, ..)| name.to_string()).collect());
}

#[test]
fn they_import_what_they_are_meant_to() {
    for (name, expected, _) in STANDARD {
        let (_, resolve, world) = module(&folder().join(name).with_extension("wasm"));
        let imports: BTreeSet<String> = resolve.worlds[world]
            .imports
            .iter()
            .filter(|(_, item)| !types_only(&resolve, item))
            .map(|(key, _)| without_version(resolve.name_world_key(key)))
            .collect();
        assert_eq!(imports, expected.iter().map(|import| import.to_string()).collect(), "{name}");
    }
}

/// The linker may write a later version of WASI than was requested.
fn without_version(mut name: String) -> String {
    name.truncate(name.find('@').unwrap_or(name.len()));
    name
}

/// Importing types needs no grant; resources are more than types.
fn types_only(resolve: &Resolve, item: &WorldItem) -> bool {
    let resource = |id: &wit_parser::TypeId| matches!(resolve.types[*id].kind, TypeDefKind::Resource);
    match item {
        WorldItem::Interface { id, .. } => {
            let interface = &resolve.interfaces[*id];
            interface.functions.is_empty() && !interface.types.values().any(resource)
        }
        WorldItem::Type { id, .. } => !resource(id),
        WorldItem::Function(_) => false,
    }
}

#[test]
fn they_are_small() {
    // The bounds are those of what is shipped. What was built for tests alone is not optimized across crates and may have a half more.
    let built = std::fs::read_to_string(folder().join(".built")).unwrap_or_default();
    let quick = built.starts_with("quick\n");
    for (name, _, most) in STANDARD.iter().copied() {
        let most = if quick { most / 2 * 3 } else { most };
        let (size, ..) = module(&folder().join(name).with_extension("wasm"));
        assert!(size <= most, "{name} has {size} bytes, more than {most}");
    }
}

#[test]
fn every_function_is_documented_with_an_example() {
    for (name, ..) in STANDARD {
        let (_, resolve, world) = module(&folder().join(name).with_extension("wasm"));
        let functions: Vec<&Function> = resolve.worlds[world]
            .exports
            .iter()
            .filter_map(|(key, item)| match (key, item) {
                (WorldKey::Name(_), WorldItem::Function(function)) => Some(function),
                _ => None,
            })
            .collect();
        let has_more = |key| matches!(resolve.name_world_key(key).as_str(), "states" | "beacons");
        assert!(resolve.worlds[world].exports.keys().any(has_more) || !functions.is_empty(), "{name}");
        for function in functions {
            let full = format!("{name}.{}", function.name.replace('-', "_"));
            let docs = function.docs.contents.as_deref().unwrap_or_default();
            let example = match full.as_str() {
                // Operations reserved for the host's owner are shown as the owner's commands.
                "sandbox.approve" | "sandbox.refusals" | "sandbox.suggest" | "sandbox.grant" | "sandbox.revoke"
                | "receipts.list" | "receipts.show" | "receipts.verify" | "receipts.export" => {
                    format!("    salt-call --local {full}")
                }
                // Other functions are called by a command of their own.
                "cp.recv" | "cp.recv_chunked" => "    salt-cp ".to_owned(),
                // A return is given to them.
                "http.returner" | "local.returner" | "postgres.returner" | "rawfile_json.returner" => {
                    format!("    salt '*' test.ping --return {name}")
                }
                // Nobody calls them: the master does by itself.
                "tcp_events.engine" | "webhook.engine" => "    salt-run engines.list".to_owned(),
                _ => format!("    salt '*' {full}"),
            };
            assert!(docs.contains("CLI Example:") && shows(docs, &example), "{full}: {docs}");
        }
    }
}

/// Whether a line begins as the example does, leaving out options of `salt` that stand before the function.
fn shows(docs: &str, example: &str) -> bool {
    const TO_ALL: &str = "    salt '*' ";
    docs.lines().any(|line| match line.strip_prefix(TO_ALL) {
        Some(mut command) => {
            while let Some((_, rest)) = command.split_once(' ').filter(|(word, _)| word.starts_with("--")) {
                command = rest;
            }
            format!("{TO_ALL}{command}").starts_with(example)
        }
        None => line.starts_with(example),
    })
}

/// Grains of modules are collected at the start, which does not wait for the standard modules.
#[test]
fn none_of_them_has_grains() {
    for (name, ..) in STANDARD {
        let (_, resolve, world) = module(&folder().join(name).with_extension("wasm"));
        let exports = &resolve.worlds[world].exports;
        assert!(!exports.keys().any(|key| resolve.name_world_key(key) == "grains"), "{name} has grains");
    }
}

#[test]
fn the_version_is_brines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let manifest = std::fs::read_to_string(root).unwrap();
    let version = format!("version = \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(manifest.lines().any(|line| line == version), "{version} is not the one of the workspace above");
}
