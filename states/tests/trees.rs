//! Small trees compile as with stock Salt: values, errors and exceptions.
#![allow(clippy::unwrap_used)]

mod common;

use brine_states::{Compiled, Compiler, Fault, Limits};
use common::{Memory, encode};
use serde_json::{Value as Json, json};

/// An answer in the form of the oracle.
fn answer<T>(compiled: Compiled<T>, value: impl FnOnce(T) -> Json) -> Json {
    match compiled {
        Ok(Ok(done)) => value(done),
        Ok(Err(errors)) => json!({ "errors": errors }),
        Err(fault) => json!({ "raises": fault.to_string() }),
    }
}

/// What is compared: errors lose excerpts of templates and the frames of tracebacks.
fn comparable(answer: &Json) -> Json {
    let shorten = |text: &Json| {
        let text = text.as_str().unwrap_or_default();
        let text = text.split("\n---\n").next().unwrap_or_default();
        let mut lines = Vec::new();
        let mut is_frame = false;
        for line in text.lines() {
            if is_frame && line.starts_with(' ') {
                continue;
            }
            is_frame = line.ends_with("Traceback (most recent call last):");
            lines.push(line);
        }
        json!(lines.join("\n").trim_end())
    };
    match (answer["errors"].as_array(), answer.get("raises")) {
        (Some(errors), _) => json!({ "errors": errors.iter().map(shorten).collect::<Vec<_>>() }),
        (None, Some(raises)) => json!({ "raises": shorten(raises) }),
        _ => answer.clone(),
    }
}

#[test]
fn trees_compile_as_with_stock_salt() {
    let (mut count, mut different) = (0, Vec::new());
    let names = ["a".to_owned()];
    for line in include_str!("data/trees.jsonl").lines() {
        let tree: Json = serde_json::from_str(line).unwrap();
        let host = Memory::new(&tree["files"]);
        let high = |high: brine_render::Dict| encode(&high.into());
        let low = |low: Vec<brine_render::Dict>| low.into_iter().map(|low| encode(&low.into())).collect();
        for form in ["top", "highstate", "lowstate", "sls", "low_sls"] {
            let options = host.options(&tree["options"]);
            let compiler = Compiler::new(&host, &options, Limits::default());
            let ours = match form {
                "top" => answer(compiler.show_top(), high),
                "highstate" => answer(compiler.show_highstate(), high),
                "lowstate" => answer(compiler.show_lowstate(), low),
                "sls" => answer(compiler.show_sls(&names), high),
                _ => answer(compiler.show_low_sls(&names), low),
            };
            count += 1;
            let (ours, stock) = (comparable(&ours), comparable(&tree[form]));
            if ours != stock {
                different.push(format!("{}, {form}\n    ours  {ours}\n    stock {stock}", tree["name"]));
            }
        }
    }
    assert!(different.is_empty(), "{}\n{} of {count} differ", different.join("\n"), different.len());
}

/// A tree of one file.
fn one_file(text: &str, limits: Limits) -> Result<Result<usize, Vec<String>>, Fault> {
    let host = Memory::new(&json!({"base": {"a.sls": text}}));
    let options = host.options(&json!({}));
    let compiler = Compiler::new(&host, &options, limits);
    Ok(compiler.show_low_sls(&["a".to_owned()])?.map(|low| low.len()))
}

fn limit(text: &str, limits: Limits) -> String {
    match one_file(text, limits) {
        Err(Fault::Limit(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_bound_holds() {
    let all = Limits::default;
    let names = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| n.to_string()).map(|n| format!("'{n}'")).collect();
        format!("x: {{test.nop: [{{names: [{}]}}]}}", names.join(", "))
    };
    assert_eq!(one_file(&names(50), all()).unwrap().unwrap(), 50);
    assert_eq!(limit(&names(50), Limits { chunks: 49, ..all() }), "more than 49 states");
    assert_eq!(limit(&names(50), Limits { values: 100, ..all() }), "the states have more than 100 values");
    let required = "x: {test.nop: [{names: [a, b, c]}]}\ny: {test.nop: [{require: [{test: x}]}]}";
    assert_eq!(limit(required, Limits { edges: 2, ..all() }), "more than 2 requisites");
    let patterns = "x: test.nop\ny: {test.nop: [{require: [{test: 'x*'}]}]}";
    assert!(limit(patterns, Limits { searches: 1, ..all() }).ends_with("more than 1 comparisons"));
    assert_eq!(limit("x: test.nop", Limits { rendered: 5, ..all() }), "the SLS files render to more than 5 bytes");
    let text = limit("include: [a.b]\nx: test.nop", Limits { files: 1, ..all() });
    assert_eq!(text, "more than 1 SLS files");
}

#[test]
fn a_chain_of_includes_ends() {
    let files: serde_json::Map<String, Json> =
        (0..500).map(|n| (format!("s{n}.sls"), json!(format!("include: [s{}]\nx{n}: test.nop", n + 1)))).collect();
    let host = Memory::new(&json!({ "base": files }));
    let options = host.options(&json!({}));
    let compiler = Compiler::new(&host, &options, Limits::default());
    let ended = compiler.show_sls(&["s0".to_owned()]).unwrap_err();
    assert_eq!(ended.to_string(), "more than 100 includes within includes");
}

#[test]
fn as_many_states_as_allowed_compile_and_one_more_is_refused() {
    let text = "{% for n in range(COUNT) %}\nx{{ n }}: test.nop\n{% endfor %}";
    let limits = Limits { chunks: 5_000, ..Limits::default() };
    assert_eq!(one_file(&text.replace("COUNT", "5000"), limits.clone()).unwrap().unwrap(), 5_000);
    assert_eq!(limit(&text.replace("COUNT", "5001"), limits), "more than 5000 states");
}

/// As many states as there may be, with the bounds as they are, and one more.
#[test]
fn a_hundred_thousand_states_compile_and_one_more_is_refused() {
    // A range of templates has no more either.
    let most = "x:\n  test.nop:\n    - names: {{ range(100000)|map('string')|list|tojson }}";
    assert_eq!(Limits::default().chunks, 100_000);
    assert_eq!(one_file(most, Limits::default()).unwrap().unwrap(), 100_000);
    assert_eq!(limit(&format!("{most}\ny: test.nop"), Limits::default()), "more than 100000 states");
}
