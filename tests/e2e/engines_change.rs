//! Engines whose modules and settings change: signatures, and what SIGHUP takes up.

use std::fs;

use brine_kit::programs::testing;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::engines::{engines, fire, http_server, log, wait_engine};
use crate::signatures::Author;

/// Writes the configuration, sends SIGHUP and waits for the master's word on it.
fn hup(master: &Master, before: &str, more: &str, said: &str) {
    fs::write(master.path("conf/master"), format!("{before}\n{more}\n")).expect("our own folder");
    let seen = log(master).len();
    master.daemon.as_ref().expect("it runs").signal(Signal::HUP);
    wait_for(said, || log(master)[seen..].contains(said).then_some(()));
}

const READ: &str = "configuration read again";

#[test]
fn engines_run_only_with_the_signatures_that_the_owner_asks_for() {
    let author = Author::new(&["ops", "stranger"]);
    let wasm = fs::read(testing("odd_engine")).expect("run `make modules` first");
    // An additional empty custom section makes it another valid component.
    let altered = [&wasm[..], &[0, 2, 1, b'x']].concat();
    let names = ["plain", "foreign", "renamed", "changed", "good"];
    let each: String = names.iter().map(|name| format!("  - {name}: {{interval: 1}}\n")).collect();
    let mut master = Master::prepare(Kind::Brine, "");
    let folder = master.path("engines");
    for made in [&folder, &master.path("conf/module_keys")] {
        fs::create_dir_all(made).expect("our own folder");
    }
    fs::write(master.path("conf/module_keys/ops.pub"), author.public("ops")).expect("our own folder");
    for name in names {
        let file = format!("{name}.wasm");
        let signature = match name {
            "plain" => None,
            "foreign" => Some(author.sign(&["stranger"], &file, &wasm)),
            "renamed" => Some(author.sign(&["ops"], "other.wasm", &wasm)),
            _ => Some(author.sign(&["ops"], &file, &wasm)),
        };
        fs::write(folder.join(&file), if name == "changed" { &altered } else { &wasm }).expect("our own folder");
        if let Some(signature) = signature {
            fs::write(folder.join(format!("{file}.minisig")), signature).expect("our own folder");
        }
    }
    let config = format!(
        "engines:\n{each}engines_dirs: [{}]\nsandbox: {{modules: {{'*': {{signed_by: any, events: ['odd/*'], network: ['127.0.0.1:9']}}}}}}\n",
        folder.display()
    );
    let conf = fs::read_to_string(master.path("conf/master")).expect("just written");
    fs::write(master.path("conf/master"), format!("{conf}\n{config}")).expect("our own folder");
    master.up();
    for (name, why) in [
        ("plain", "module plain is not signed"),
        ("foreign", "module foreign is signed by another key"),
        ("renamed", "module renamed was signed as other.wasm and not as renamed.wasm"),
        ("changed", "module changed is not what was signed"),
    ] {
        wait_for(why, || log(&master).contains(why).then_some(()));
        let engine = wait_engine(&master, name, "an error", |it| it["last_error"].is_string());
        assert_eq!((&engine["state"], &engine["handled"]), (&json!("backed off"), &json!(0)), "{engine}");
        assert!(engine["last_error"].as_str().is_some_and(|error| error.contains(why)), "{engine}");
    }
    let good = engines(&master)["good"].clone();
    assert_eq!((&good["state"], &good["last_error"]), (&json!("running"), &json!(null)), "{good}");
    // What was refused is looked at again, and runs once it is signed.
    let signed = author.sign(&["ops"], "plain.wasm", &wasm);
    fs::write(folder.join("plain.wasm.minisig"), signed).expect("our own folder");
    hup(&master, &conf, &config, READ);
    wait_engine(&master, "plain", "it works", |it| it["state"] == json!("running"));
    let foreign = engines(&master)["foreign"].clone();
    assert_eq!(foreign["state"], json!("backed off"), "{foreign}");
    // A key that the owner takes away counts no more, and its modules are refused.
    fs::write(master.path("conf/module_keys/other.pub"), author.public("stranger")).expect("our own folder");
    fs::remove_file(master.path("conf/module_keys/ops.pub")).expect("just written");
    hup(&master, &conf, &config, READ);
    let good = wait_engine(&master, "good", "a refusal", |it| it["last_error"].is_string());
    assert!(
        good["last_error"].as_str().is_some_and(|why| why.contains("module good is signed by another key")),
        "{good}"
    );
}

#[test]
fn a_changed_configuration_of_engines_counts_at_sighup() {
    let (http, posts) = http_server(&[]);
    let mut master = Master::prepare(Kind::Brine, "");
    let folder = master.path("engines");
    fs::create_dir_all(&folder).expect("our own folder");
    fs::copy(testing("odd_engine"), folder.join("odd_engine.wasm")).expect("run `make modules` first");
    let conf = fs::read_to_string(master.path("conf/master")).expect("just written");
    let dirs = format!("engines_dirs: [{}]\n", folder.display());
    let kept = "  - kept: {engine_module: odd_engine, interval: 1}\n";
    let first = format!(
        "engines:\n{kept}  - moved: {{engine_module: odd_engine, tags: [old/*, both/*]}}\n  \
         - ill: {{engine_module: odd_engine, do: crash, tags: ill/*}}\n  - gone: {{engine_module: odd_engine, tags: gone/*}}\n\
         {dirs}sandbox: {{modules: {{odd_engine: {{events: [odd/*], network: ['127.0.0.1:9']}}}}}}\n"
    );
    fs::write(master.path("conf/master"), format!("{conf}\n{first}")).expect("our own folder");
    master.up();
    let events = master.events();
    let calls = |least: u64| {
        let at_least = |data: &Value| data["calls"].as_u64().is_some_and(|calls| calls >= least);
        let data = events.wait("a later call", |tag, data| tag == "odd/poll" && at_least(data));
        data["calls"].as_u64().unwrap_or_default()
    };
    let fires = |tag: &str| fire(&master, tag, &json!({"do": "fire", "tag": "odd/done", "mark": tag}));
    let done = |tag: &str| events.wait(tag, |done, data| done == "odd/done" && data["mark"] == tag);
    fires("old/1");
    done("old/1");
    fires("ill/1");
    // Several failures in a row: the next call is seconds away.
    wait_engine(&master, "ill", "failures", |it| it["failures"].as_u64() >= Some(3));
    let before = calls(2);

    // One goes, one comes with a module and a grant of its own, two change, one stays.
    let second = format!(
        "engines:\n  - hook: {{engine_module: webhook, url: 'http://127.0.0.1:{http}/in', tags: hook/*}}\n{kept}  \
         - moved: {{engine_module: odd_engine, tags: [new/*, both/*]}}\n  - ill: {{engine_module: odd_engine, tags: ill/*}}\n\
         {dirs}sandbox: {{modules: {{odd_engine: {{events: [odd/*], network: ['127.0.0.1:9']}}, webhook: {{network: ['127.0.0.1:{http}']}}}}}}\n"
    );
    hup(&master, &conf, &second, READ);
    wait_engine(&master, "hook", "it is there", Value::is_object);
    fire(&master, "hook/1", &json!({"mark": "hook"}));
    let (_, body) = posts.recv_timeout(brine_kit::wait::DEADLINE).expect("a request");
    assert_eq!((&body["tag"], &body["data"]["mark"]), (&json!("hook/1"), &json!("hook")));
    for tag in ["old/2", "new/1", "both/1"] {
        fires(tag);
    }
    done("both/1");
    done("new/1");
    // The event that waited while it failed.
    done("ill/1");
    let all = engines(&master);
    let names: Vec<&String> = all.as_object().expect("a dict").keys().collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(all["gone"].is_null());
    assert_eq!((&all["moved"]["seen"], &all["moved"]["lost"]), (&json!(3), &json!(0)), "{all}");
    let marks =
        |mark: &str| events.all().iter().filter(|(tag, data)| tag == "odd/done" && data["mark"] == mark).count();
    assert_eq!(marks("old/2"), 0);
    // What one engine keeps between calls is there still: it went on.
    calls(before + 2);
    let of = |calls: u64| events.all().iter().filter(|(tag, data)| tag == "odd/poll" && data["calls"] == calls).count();
    assert_eq!((of(1), of(before)), (1, 1), "it began anew");

    // What is wrong changes nothing.
    hup(&master, &conf, "engines: [{x: {interval: 0}}]", "the configuration is not taken up");
    fires("new/2");
    done("new/2");
    // The last one goes, and others come later.
    hup(&master, &conf, "", READ);
    wait_for("no engine", || engines(&master).as_object().is_some_and(serde_json::Map::is_empty).then_some(()));
    hup(&master, &conf, &second, READ);
    wait_engine(&master, "moved", "it is there", Value::is_object);
    fires("new/3");
    done("new/3");
    wait_for("the one that stayed to begin anew", || (of(1) == 2).then_some(()));
}
