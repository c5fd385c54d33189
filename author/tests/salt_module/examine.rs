//! inspect and diff: what a module is, from the compiler in its cage.

use brine_kit::wat::{nested, wasm};
use serde_json::Value;

use crate::bench::Bench;

const V1: &str = "
package brine:report@1.0.0;
interface types { record data { msgpack: list<u8> } }
/// Reports.
world report {
    import brine:host/job@1.0.0;
    import brine:host/disks@1.0.0;
    /// How full it is.
    export usage: func(mount: string, deep: option<bool>) -> result<list<string>, string>;
    export gone: func();
}
";

fn v2() -> String {
    V1.replace("@1.0.0;\ninterface", "@1.1.0;\ninterface")
        .replace("import brine:host/disks@1.0.0;", "import brine:host/process@1.0.0; import brine:host/disks@1.0.0;")
        .replace("mount: string,", "mount: option<string>,")
        .replace("export gone: func();", "export fresh: func() -> string;")
}

/// The module with its docs, as a build makes it.
fn documented(bench: &Bench, name: &str, wit: &str) {
    bench.component(name, wit);
    bench.write(&format!("{name}/world.wit"), wit);
    let host = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit");
    bench.good(&format!("docs {name}.wasm --wit {host} --wit {name} -o {name}.wasm"));
}

#[test]
fn inspect_says_what_a_module_is() {
    let bench = Bench::new();
    documented(&bench, "report", V1);
    bench.good("keygen -o ops --no-password");
    bench.good("sign report.wasm --key ops.key");
    let out = bench.good("inspect report.wasm");
    for expect in [
        "report 1.0.0\n  Reports.\n",
        &format!("report.wasm, {} bytes\n", bench.read("report.wasm").len()),
        "sha256    ",
        "signed    by key ",
        ", version 1.0.0, as it says: `salt-module verify` checks that",
        "compiles  in ",
        "MB of memory at most, into ",
        "report.usage(mount: string, deep: option<bool>) -> result<list<string>, string>\n      How full it is.\n",
        "disks       see what is mounted and how full it is (brine:host/disks)\n",
        "      report: {sha256: ",
        ", disks: true}",
    ] {
        assert!(out.contains(expect), "{expect}: {out}");
    }
    // What every module may have is nothing asked.
    assert!(!out.contains("brine:host/job"), "{out}");

    let json: Value = serde_json::from_str(&bench.good("inspect report.wasm --json")).unwrap();
    assert_eq!(json["asks"]["granted"]["disks"]["interfaces"], serde_json::json!(["brine:host/disks"]));
    assert_eq!(json["functions"][1]["params"][1]["optional"], true);
    assert_eq!(json["signatures"][0]["version"], "1.0.0");
    assert!(json["compile"]["memory"].as_u64().unwrap() > 1_000_000, "{json}");
    assert!(json["configuration"].as_str().unwrap().starts_with("sandbox:\n  modules:\n"), "{json}");
    let json: Value = serde_json::from_str(&bench.good("inspect report.wasm --json --no-compile")).unwrap();
    assert_eq!(json["compile"], Value::Null);
}

#[test]
fn inspect_refuses_what_no_minion_takes() {
    let bench = Bench::new();
    bench.write("text.wasm", "text");
    bench.write("core.wasm", wasm("(module)"));
    bench.write("empty.wasm", wasm("(component)"));
    bench.write("broken.wasm", &wasm("(component (core module))")[..14]);
    for (file, code, expect) in [
        ("text", 65, "is not WebAssembly"),
        ("core", 65, "is a core WebAssembly module, not a component"),
        ("empty", 65, "exports no function"),
        ("broken", 65, "is not a valid component"),
        ("none", 66, "cannot be read"),
    ] {
        let err = bench.bad(&format!("inspect {file}.wasm"), code);
        assert!(err.contains(expect), "{file}: {err}");
        // Not the code of a module that asks for more.
        bench.bad(&format!("diff {file}.wasm {file}.wasm"), code);
    }
    // It can be described, and asks for what nobody has.
    let wit = "package a:b; interface magic { cast: func(); } world odd { import magic; export f: func(); }";
    bench.component("odd", wit);
    let ended = bench.run("inspect odd.wasm");
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.out.contains("a:b/magic: no host of Brine has this, so every minion refuses the module"),
        "{ended:?}"
    );
}

#[test]
fn what_costs_too_much_to_compile_hurts_nobody() {
    let bench = Bench::new();
    // Ten components in each of eight levels are 10^8 instances to a compiler, in less than 2 KB.
    bench.write("bomb.wasm", wasm(nested(10, 8)));
    let ended = bench.run("inspect bomb.wasm");
    assert_eq!(ended.code, 1, "{ended:?}");
    let why = ["needs more than 1024 MiB of memory to compile", "takes more than 60 s of CPU to compile"];
    assert!(why.iter().any(|why| ended.out.contains(&format!("so every minion refuses it: it {why}"))), "{ended:?}");
    assert!(ended.out.contains("bomb.number() -> u32"), "{ended:?}");
}

#[test]
fn diff_says_what_became_more() {
    let bench = Bench::new();
    documented(&bench, "report", V1);
    documented(&bench, "next", &v2());
    let ended = bench.run("diff report.wasm next.wasm");
    assert_eq!(ended.code, 1, "{ended:?}");
    for expect in [
        "report 1.0.0 -> 1.1.0\n",
        "  - report.gone()\n",
        "  - report.usage(mount: string, deep: option<bool>) -> result<list<string>, string>\n  + report.usage(mount: option<string>,",
        "  + report.fresh() -> string\n",
        "  + process     run programs (brine:host/process)\n",
        "  more: a minion keeps the old one until its owner grants that\n",
    ] {
        assert!(ended.out.contains(expect), "{expect}: {}", ended.out);
    }
    assert!(!ended.out.contains("brine:host/disks"), "{}", ended.out);

    let back = bench.good("diff next.wasm report.wasm");
    assert!(
        back.contains("  - process     run programs (brine:host/process)\n  less: minions take it by themselves"),
        "{back}"
    );
    let same = bench.good("diff next.wasm next.wasm");
    assert!(same.contains("they are the same, byte for byte"), "{same}");

    let ended = bench.run("diff report.wasm next.wasm --json");
    let json: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(ended.code, 1);
    assert_eq!(json["asks"]["more"]["granted"]["process"]["words"], "run programs");
    assert_eq!(json["functions"]["added"], serde_json::json!(["report.fresh() -> string"]));
    assert_eq!(json["functions"]["changed"].as_array().unwrap().len(), 1);
}
