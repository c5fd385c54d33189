//! Interfaces for requests to the minion: pillar, events, mine, files of the master, configuration, jobs.

use brine_kit::wat::wasm;
use brine_protocol::value::{Value, map};

use crate::guests::importing;
use crate::rig::{AT_ONCE, Gets, Rig, fails, hostile, returns, text, texts};

/// Grants every interface of the module `hostile` and nothing within them.
pub(crate) const NOTHING: &str = "{process: [], filesystem: {}, changes: {}, network: [], pillar: [], functions: [], files: [], events: [], \
     mine: [], static_grains: [], disks: true, policy: true, jobs: true, modules: true}";

/// The text before the line that would grant a request.
pub(crate) const LINE: &str =
    "; the owner of this host grants it by this line under sandbox: modules: in the minion's configuration: hostile: {";

const PARTS: &str = "the path has parts that are empty, . or ..";
const OWN_TAGS: &str = "hostile.fire was stopped: events.fire was refused: the tag … is not one that a module may fire: it begins with a \
     word of the master's own; there are words of one's own, and salt/beacon/hostile-test/ and salt/minion/hostile-test/";

fn denied(op: &str, what: &str, line: &str) -> Gets {
    fails(format!("hostile.{op} was stopped: …was refused: module hostile may not {what}{LINE}…{line}…}}"))
}

fn private(key: &str) -> Gets {
    fails(format!(
        "hostile.config was stopped: config.get was refused: module hostile may not read the setting {key}{LINE}…config: […{key}…], …}}; for all \
         modules, config_public in the minion's configuration names settings that are no secrets"
    ))
}

fn failed(what: &str) -> Gets {
    fails(format!("…{what}…"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_asks() {
    let granted = NOTHING
        .replace("pillar: []", "pillar: [deploy, \"web:tls\"]")
        .replace("files: []", "files: [\"deploy/**\"]")
        .replace("events: []", "events: [\"deploy/*\"]")
        .replace("mine: []", "mine: [load]");
    let rig = Rig::start(&format!("  modules:\n    hostile: {granted}\n")).await;
    rig.install("hostile", &hostile()).await;
    let secret = map([("key", Value::from("secret"))]);
    rig.pillar(map([
        ("deploy", Value::from("mine")),
        ("web", map([("tls", Value::from("cert")), ("password", Value::from("secret"))])),
        ("web:password", Value::from("secret")),
        ("other", secret),
    ]));
    let colon = |key: &str| vec![text(key)];
    let parted = |key: &str, by: &str| vec![text(key), text(by)];
    for (fun, args, gets) in [
        // The pillar: the granted key, and nothing beside or above it.
        ("pillar", colon("deploy"), returns("mine")),
        ("pillar", colon("web:tls"), returns("cert")),
        ("pillar", vec![], returns(r#"{"deploy": "mine", "web": {"tls": "cert"}}"#)),
        ("pillar", colon("other"), denied("pillar", "read the pillar's other", "pillar: [deploy, \"web:tls\", other]")),
        ("pillar", colon("web"), denied("pillar", "read the pillar's web", "")),
        ("pillar", colon("web:password"), denied("pillar", "read the pillar's web:password", "")),
        ("pillar", parted("web.password", "."), denied("pillar", "read the pillar's web:password", "")),
        ("pillar", parted("web", "x"), denied("pillar", "read the pillar's web", "")),
        ("pillar", parted("deployXother", "X"), returns("nil")),
        ("pillar", parted("deploy", ""), fails("the delimiter is empty")),
        ("pillar", colon(""), fails("the key is empty")),
        (
            "pillar",
            colon("*"),
            fails("hostile.pillar was stopped: pillar.get was refused: module hostile may not read the pillar's *"),
        ),
        (
            "pillar",
            colon("web::tls"),
            fails(
                "hostile.pillar was stopped: pillar.get was refused: module hostile may not read the pillar's web::tls",
            ),
        ),
        ("pillar", colon("deploy\n"), fails("the key has control characters")),
        ("pillar", vec![text(&"k".repeat(100_000))], fails("100000 bytes are no key or name")),
        // Events: this minion's own tags, and none of the master's or other minions'.
        ("fire", colon("deploy/done"), failed("there is no master to tell")),
        (
            "fire",
            colon("other/done"),
            denied("fire", "fire the event other/done", "events: [\"deploy/*\", other/done]"),
        ),
        ("fire", colon("salt/job/20260101000000000000/ret/other"), fails(OWN_TAGS)),
        ("fire", colon("salt/minion/other/start"), fails(OWN_TAGS)),
        ("fire", colon("salt/auth"), fails(OWN_TAGS)),
        ("fire", colon("/salt/auth"), fails("the tag starts with a slash")),
        ("fire", colon("deploy/\n\nsalt/auth"), fails("the tag has control characters")),
        ("fire", colon("deploy/../salt/auth"), denied("fire", "fire the event deploy/../salt/auth", "")),
        ("fire", colon(""), fails("the tag is empty")),
        // The mine.
        ("mine", colon("load"), failed("there is no master to tell")),
        ("mine", colon("other"), denied("mine", "publish other to the mine", "mine: [load, other]")),
        ("mine", colon("lo\u{1b}[31mad"), fails("the name in the mine has control characters")),
        // The master's files; without one, the host's own, and there are none.
        ("files", vec![text("read"), text("deploy/a"), text("base")], returns("none")),
        ("files", vec![text("read"), text("other/a"), text("base")], denied("files", "read salt://other/a", "")),
        ("files", vec![text("read"), text("deploy/../other/a"), text("base")], fails(PARTS)),
        ("files", vec![text("read"), text("/etc/shadow"), text("base")], fails(PARTS)),
        ("files", vec![text("read"), text("deploy//a"), text("base")], fails(PARTS)),
        ("files", vec![text("read"), text("deploy/a\0"), text("base")], fails("the path has control characters")),
        ("files", vec![text("read"), text("deploy/a"), text("../base")], fails("the environment is not one name")),
        ("files", vec![text("cache"), text("../../etc/cron.d/x"), text("base")], fails(PARTS)),
        ("files", vec![text("hash"), text("other"), text("base")], denied("files", "read salt://other", "")),
        ("push", vec![texts(&["..", "x"])], fails(PARTS)),
        ("push", vec![texts(&["a/b"])], fails("a part of the path has a slash")),
        ("push", vec![texts(&["etc", "passwd"])], denied("push", "send the master a file as etc/passwd", "")),
        ("push", vec![texts(&[])], fails("the path has none or more than 128 parts")),
        // The configuration's secrets, jobs, and invalid names.
        ("config", colon("id"), returns("hostile-test")),
        ("config", colon("thing"), private("thing")),
        ("config", colon("thing:password"), private("thing:password")),
        ("config", colon("thing:deep"), private("thing:deep")),
        ("config", colon("mysql.pass"), private("mysql.pass")),
        ("kill", colon("../../proc/1"), returns("false")),
        ("kill", colon(""), fails("hostile.kill was stopped: jobs.kill failed: the id of a job is empty")),
        ("describe", colon("../sys"), returns("false")),
        ("disk", colon("/../../etc"), fails("nothing is mounted at \"/../../etc\"")),
    ] {
        let fun = format!("hostile.{fun}");
        rig.attack(&fun, args, AT_ONCE, &gets).await;
    }
    rig.end().await;
}

/// Without grants, each refusal says what was requested and how it would be granted.
#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_was_granted_nothing_is_not_let_in() {
    let rig = Rig::start("  modules: {}\n").await;
    let refused = "module hostile 1.0.0 is held: it asks for what it was not granted: to write this host's static grains (the file \
                   grains beside the configuration) (brine:host/static-grains@1.0.0), list, describe and refresh modules, have grains and \
                   pillar refreshed (brine:host/modules@1.0.0), …; the owner of this host grants it by this line under sandbox: modules: in the \
                   minion's configuration: hostile: {sha256: …}, or lets this content in with `salt-call --local sandbox.approve hostile …`…";
    rig.refused("hostile", &hostile(), AT_ONCE * 3, refused).await;
    rig.attack("hostile.spin", vec![], AT_ONCE, &fails("'hostile.spin' is not available.…")).await;
    for (interface, expect) in [
        (
            "brine:host/process@1.0.0",
            "is held: it asks for what it was not granted: to run programs (brine:host/process@1.0.0); …: one: {sha256: …, process: []}, or …",
        ),
        (
            "wasi:sockets/tcp@0.2.0",
            "is held: it asks for what it was not granted: to reach other hosts (wasi:sockets/tcp@0.2.0); …: one: {sha256: …, network: []}, or \
             …",
        ),
        (
            "wasi:http/outgoing-handler@0.2.0",
            "imports wasi:http/outgoing-handler@0.2.0, which is no interface of Brine",
        ),
        ("brine:host/grains-all@1.0.0", "imports brine:host/grains-all@1.0.0, which is no interface of Brine"),
        (
            "brine:host/../process@1.0.0",
            "is not a valid component: import name `brine:host/../process@1.0.0` is not a valid extern name `` is not in kebab case (at \
             offset …)",
        ),
    ] {
        let (wasm, expect) = (wasm(importing(interface)), format!("module one {expect}"));
        rig.refused("one", &wasm, AT_ONCE, &expect).await;
    }
    rig.end().await;
}
