//! Minions of both kinds together: one command for all, the mine, `publish`.

use brine_tests::salt::{Kind, Master};
use serde_json::json;

#[test]
fn both_kinds_of_minion_work_together() {
    let master = Master::start(
        "timeout: 30\npeer:\n  python1: &ours [test.*, 'L@python2': [grains.get: [args: [id]]]]\n  brine: *ours\n\
         peer_run:\n  python1: &runs [manage.up]\n  brine: *runs\n\
         nodegroups: {pythons: 'G@kind:python'}\n",
    );
    let [_one, _two] =
        ["python1", "python2"].map(|id| master.minion_kind(Kind::Python, id, "grains: {kind: python, tier: [a, b]}"));
    let _brine = master.minion_kind(Kind::Brine, "brine", "grains: {kind: brine, tier: [b]}");

    // One command, both kinds.
    let who = |args: &[&str]| {
        let mut all = vec!["--out=json", "--static"];
        all.extend(args);
        all.push("test.ping");
        let found = master.salt(&all).exits(0).json();
        let mut ids: Vec<_> = found.as_object().expect("a dict of minions").keys().cloned().collect();
        ids.sort();
        ids.join(" ")
    };
    assert_eq!(who(&["*"]), "brine python1 python2");
    assert_eq!(who(&["-G", "kind:python"]), "python1 python2");
    assert_eq!(who(&["-G", "tier:b"]), "brine python1 python2");
    assert_eq!(who(&["-P", "kind:(brine|none)"]), "brine");
    assert_eq!(who(&["-C", "G@kind:python and not python2 or brine"]), "brine python1");
    assert_eq!(who(&["-L", "brine,python2"]), "brine python2");
    assert_eq!(who(&["-E", "(brine|python2)$"]), "brine python2");
    assert_eq!(who(&["-N", "pythons"]), "python1 python2");
    assert_eq!(who(&["-S", "127.0.0.0/8"]), "brine python1 python2");
    let text = master.salt(&["--static", "*", "test.echo", "same"]).exits(0).stdout;
    assert_eq!(text, "brine:\n    same\npython1:\n    same\npython2:\n    same\n");
    let args = master.salt(&["--out=json", "--static", "*", "test.arg", "1", "{a: b}", "x=ý"]).exits(0).json();
    for id in ["brine", "python1"] {
        assert_eq!((&args[id]["args"], &args[id]["kwargs"]["x"]), (&json!([1, {"a": "b"}]), &json!("ý")), "{id}");
    }
    let up = master.command("salt-run", &["--out=json", "manage.up"]).exits(0).json();
    assert_eq!(up, json!(["brine", "python1", "python2"]));

    // The mine.
    let send = |who: &str, args: &[&str]| {
        let mut all = vec!["mine.send"];
        all.extend(args);
        assert_eq!(master.json(who, &all), json!(true));
    };
    let get = |who: &str, tgt: &str, fun: &str| master.json(who, &["mine.get", tgt, fun]);
    send("python1", &["shown", "mine_function=test.echo", "one"]);
    send("python2", &["shown", "mine_function=test.echo", "two"]);
    send("python1", &["for_two", "mine_function=test.echo", "hidden", "allow_tgt=python2"]);
    assert_eq!(get("python2", "*", "shown"), json!({"python1": "one", "python2": "two"}));
    assert_eq!(get("python2", "python1", "shown"), json!({"python1": "one"}));
    assert_eq!(master.json("python2", &["mine.get", "python1,python2", "shown", "list"])["python2"], json!("two"));
    assert_eq!(get("python2", "*", "for_two"), json!({"python1": "hidden"}));
    assert_eq!(get("python1", "*", "for_two"), json!({}), "it is for python2 only");
    assert_eq!(master.json("python1", &["mine.delete", "shown"]), json!(true));
    assert_eq!(get("python2", "*", "shown"), json!({"python2": "two"}));
    assert_eq!(master.json("python1", &["mine.flush"]), json!(true));
    assert_eq!(get("python2", "*", "for_two"), json!({}));

    // `publish`, as far as `peer` permits it. Minions of both kinds return.
    let publish = |who: &str, args: &[&str]| {
        let mut all = vec!["publish.publish"];
        all.extend(args);
        master.json(who, &all)
    };
    for who in ["python1", "brine"] {
        let publish = |args: &[&str]| publish(who, args);
        assert_eq!(publish(&["*", "test.ping"]), json!({"brine": true, "python1": true, "python2": true}), "{who}");
        assert_eq!(publish(&["*", "test.echo", "[ahoj]"])["brine"], json!("ahoj"), "{who}");
        assert_eq!(publish(&["brine", "test.echo", "one"]), json!({"brine": "one"}), "{who}");
        assert_eq!(publish(&["kind:brine", "test.ping", "tgt_type=grain"]), json!({"brine": true}), "{who}");
        let others = publish(&["G@kind:python and not python1", "test.ping", "tgt_type=compound"]);
        assert_eq!(others, json!({"python2": true}), "{who}");
        assert_eq!(publish(&["python2", "grains.get", "[id]"]), json!({"python2": "python2"}), "{who}");
        assert_eq!(publish(&["*", "publish.publish", "['*', test.ping]"]), json!({}), "{who}");
        assert_eq!(publish(&["nobody", "test.ping"]), json!({}), "{who}");
        let several = publish(&["brine", "test.ping,test.echo", "['', 'x y']"]);
        assert_eq!(several["brine"]["test.ping"], json!(true), "{who} {several}");
        let kwargs = publish(&["brine", "test.kwarg", "['cheese=spam','spam=cheese']"]);
        assert_eq!((&kwargs["brine"]["cheese"], &kwargs["brine"]["spam"]), (&json!("spam"), &json!("cheese")), "{who}");
        let full = master.json(who, &["publish.full_data", "brine", "test.ping"]);
        assert_eq!(full["brine"]["ret"], json!(true), "{who}");
    }
    let events = master.events();
    for (who, tgt, fun, arg) in [
        ("python1", "*", "cmd.run", "[id]"),
        ("python1", "python2", "grains.get", "[os]"),
        ("python1", "brine", "grains.get", "[id]"),
        ("python1", "*", "test.ping,cmd.run", "['', id]"),
        ("python2", "*", "test.ping", "[]"),
        ("brine", "*", "cmd.run", "[id]"),
        ("brine", "brine", "grains.get", "[id]"),
        ("brine", "*", "test.ping,cmd.run", "['', id]"),
    ] {
        assert_eq!(publish(who, &[tgt, fun, arg]), json!({}), "{who} {fun} {arg} on {tgt}");
        events.wait(fun, |tag, data| tag == format!("brine/refused/peer/{who}") && data["fun"] == fun);
    }
    for who in ["python1", "brine"] {
        let runner = |name: &str| master.json(who, &["publish.runner", name]);
        assert_eq!(runner("manage.up"), json!(["brine", "python1", "python2"]), "{who}");
        assert_eq!(runner("jobs.list_jobs"), json!({}), "{who}");
    }
    assert_eq!(master.json("python2", &["publish.runner", "manage.up"]), json!({}));
}
