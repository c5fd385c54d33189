//! Compares the output of Python's outputters and ours for the same values: chosen ones, and many generated ones. The
//! script that makes them also makes the vectors of the unit tests.

use brine_cli::output::{Indent, Outputter, Style};
use brine_kit::process::run;
use brine_protocol::rmpv;
use brine_tests::salt::python;
use serde_json::Value;

/// The number of generated values, and the first seed, which differs from that of the unit tests.
const COUNT: &str = "250";
const SEED: &str = "5000";

#[test]
fn the_same_values_print_the_same() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("vectors.json").display().to_string();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/src/output/make_vectors.py");
    run(&python(), &[script, &file, COUNT, SEED]).exits(0);
    let vectors: Value = serde_json::from_slice(&std::fs::read(file).expect("just written")).expect("JSON");

    let mut wrong = Vec::new();
    let mut compared = std::collections::BTreeMap::new();
    // Highstates are compared elsewhere: with real states, and in the unit tests.
    let cases = vectors["cases"].as_array().expect("cases").iter().filter(|case| case[1] != "highstate");
    for case in cases {
        let (name, out) = (case[0].as_str().expect("a name"), case[1].as_str().expect("an outputter"));
        // If Python's outputter fails, there is nothing to compare.
        let Some(expect) = case[3].as_str() else { continue };
        let packed = bytes(vectors["values"][name].as_str().expect("its value"));
        let value = rmpv::decode::read_value(&mut packed.as_slice()).expect("MessagePack");
        let got = Outputter::by_name(out).expect("an outputter").render(&value, &style(&case[2]));
        *compared.entry(out).or_insert(0) += 1;
        if got != expect {
            wrong.push(format!("{name} / {out} {}\n   got {got:?}\n  want {expect:?}", case[2]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(8)].join("\n"));
    for out in ["nested", "json", "yaml", "txt", "raw", "pprint", "no_return", "table"] {
        assert!(compared.get(out).is_some_and(|count| *count > 250), "{compared:?}");
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn style(settings: &Value) -> Style {
    Style {
        color: settings["color"].as_bool().unwrap_or(false),
        indent: match settings.get("output_indent") {
            None => Indent::Unset,
            Some(Value::Null) => Indent::Null,
            Some(Value::String(_)) => Indent::Pretty,
            Some(number) => Indent::Columns(number.as_i64().expect("a number")),
        },
        retcode: settings["_retcode"].as_i64().unwrap_or(0),
        nested_indent: settings["nested_indent"].as_u64().map_or(0, |indent| usize::try_from(indent).expect("small")),
        strip_colors: settings["strip_colors"].as_bool().unwrap_or(true),
        ..Style::default()
    }
}
