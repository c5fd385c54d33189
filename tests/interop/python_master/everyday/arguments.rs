//! Arguments and returns arrive unchanged.

use serde_json::{Value, json};

use super::super::client::{answers, call, calls};
use super::Fleet;

pub(super) fn check(fleet: &Fleet) {
    let master = &fleet.master;
    let nested =
        json!({"a": [1, 2.5, {"b": "ünïcödé ☃"}, [], {}], "c": null, "-": [true, false], "n": -9007199254740993_i64});
    answers(
        master,
        "brine1",
        &[
            ("test.ping", json!([]), json!(true)),
            ("test.echo", json!([nested]), nested),
            ("test.echo", json!([""]), json!("")),
            ("test.echo", json!(["x".repeat(300)]), json!("x".repeat(300))),
            // Bytes that are not UTF-8 stay bytes. Other bytes return as text, because the wire does not distinguish
            // them.
            ("test.echo", json!([{"bytes": "ff00fe"}]), json!({"bytes": "ff00fe"})),
            ("test.echo", json!([{"bytes": "61c3bc"}]), json!("aü")),
            // Salt parses texts of this form as keyword arguments, wherever they come from.
            ("test.echo", json!(["text=ünïcödé"]), json!("ünïcödé")),
        ],
    );
    // The same as for the Python minion, which adds the publication's fields as `__pub_*`; these are no arguments.
    let made = [
        call("*", "test.arg", json!([1, "x", ["y"], {"k": "v"}])).kwarg(json!({"key": [1, 2], "ü": {"a": null}})),
        call("*", "test.kwarg", json!([])).kwarg(json!({"num": 1, "text": "two", "env": {"a": 1, "b": "hello"}})),
        call("*", "test.arg", json!(["a=1", "b=[2, 3]", "c = 4", "=5", "6"])),
    ];
    for answer in calls(master, &made) {
        assert!(answer.as_object().is_some_and(|all| all.len() == 3), "{answer}");
        let theirs = without_publication(answer["python"].clone());
        assert_eq!((&answer["brine1"], &answer["brine2"]), (&theirs, &theirs));
    }
    // Python parses the words of the command line; the result must arrive.
    let arg = master.json("brine1", &["test.arg", "1", "x", "{a: [b, null]}", "key=[1, 2]", "text=a=b"]);
    assert_eq!((&arg["args"], &arg["kwargs"]["key"]), (&json!([1, "x", {"a": ["b", null]}]), &json!([1, 2])));
    assert_eq!(arg["kwargs"]["text"], "a=b");
}

fn without_publication(mut answer: Value) -> Value {
    fn drop_from(map: &mut Value) {
        if let Some(entries) = map.as_object_mut() {
            entries.retain(|key, _| !key.starts_with("__pub_"));
        }
    }
    drop_from(&mut answer);
    drop_from(&mut answer["kwargs"]);
    if answer["kwargs"].is_null() {
        answer.as_object_mut().expect("a dict").remove("kwargs");
    }
    answer
}
