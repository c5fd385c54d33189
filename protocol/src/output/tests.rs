//! Every case of vectors.json, which holds what Python Salt printed.

use rmpv::Value;

use super::{Indent, Outputter, StateSettings, Style};

fn style(settings: &serde_json::Value) -> Style {
    Style {
        color: settings["color"].as_bool().unwrap_or(false),
        indent: match settings.get("output_indent") {
            None => Indent::Unset,
            Some(serde_json::Value::Null) => Indent::Null,
            Some(serde_json::Value::String(_)) => Indent::Pretty,
            Some(number) => Indent::Columns(number.as_i64().unwrap()),
        },
        retcode: settings["_retcode"].as_i64().unwrap_or(0),
        nested_indent: settings["nested_indent"].as_u64().unwrap_or(0) as usize,
        strip_colors: settings["strip_colors"].as_bool().unwrap_or(true),
        state: state(settings),
        ..Style::default()
    }
}

fn state(settings: &serde_json::Value) -> StateSettings {
    let flag = |name: &str, default| settings[name].as_bool().unwrap_or(default);
    let texts = |name: &str| {
        let items = settings[name].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let mut state = StateSettings {
        verbose: flag("state_verbose", true),
        diff: flag("state_output_diff", false),
        profile: flag("state_output_profile", true),
        percent: flag("state_output_pct", false),
        tabular: flag("state_tabular", false),
        exclude: texts("state_output_exclude"),
        terse: texts("state_output_terse"),
        ..StateSettings::default()
    };
    state.set_output(settings["state_output"].as_str().unwrap_or_default());
    state
}

#[test]
fn prints_what_python_salt_prints() {
    let path = std::env::var("BRINE_OUTPUT_VECTORS").ok();
    let text =
        path.map_or_else(|| include_str!("vectors.json").to_owned(), |path| std::fs::read_to_string(path).unwrap());
    let vectors: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut wrong = Vec::new();
    let cases = vectors["cases"].as_array().unwrap();
    for case in cases {
        let (name, out) = (case[0].as_str().unwrap(), case[1].as_str().unwrap());
        let packed = hex::decode(vectors["values"][name].as_str().unwrap()).unwrap();
        let value: Value = rmpv::decode::read_value(&mut packed.as_slice()).unwrap();
        let got = Outputter::by_name(out).unwrap().render(&value, &style(&case[2]));
        // Python's outputter failed.
        let Some(expect) = case[3].as_str() else { continue };
        if got != expect {
            wrong.push(format!("{name} / {out} {}\n   got {got:?}\n  want {expect:?}", case[2]));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
}

#[test]
fn a_terminal_gets_no_control_characters_from_values() {
    let evil = "\x1b[2J \u{9b}31m \x07 \u{202e} \x7f";
    let map = |key: &str, value: &str| Value::Map(vec![(key.into(), value.into())]);
    for out in [
        "nested",
        "json",
        "yaml",
        "txt",
        "raw",
        "pprint",
        "no_return",
        "key",
        "highstate",
        "table",
        "newline_values_only",
    ] {
        for value in [map(evil, "x"), map("m1", evil), map("minions", evil), Value::from(evil)] {
            let plain = Style { visible: true, ..Style::default() };
            let shown = super::render(out, &value, &plain);
            let active = shown.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
            assert_eq!(active, None, "{out}: {shown:?}");
        }
    }
}

#[test]
fn names() {
    assert_eq!(Outputter::by_name("text"), Some(Outputter::Txt));
    assert_eq!(Outputter::by_name(""), Some(Outputter::Nested));
    assert_eq!(Outputter::by_name("bogus"), None);
    assert_eq!(super::render("bogus", &Value::from(1), &Style::default()), "1");
    assert_eq!(super::render("quiet", &Value::from(1), &Style::default()), "");
}

#[test]
fn values_without_their_minions() {
    let list = Value::Array(vec!["a".into(), Value::Nil, Value::Array(vec![1.into()])]);
    let value = Value::Map(vec![("m2".into(), list), ("m1".into(), Value::from(8))]);
    assert_eq!(super::render("newline_values_only", &value, &Style::default()), "a\nNone\n[1]\n8");
    assert_eq!(super::render("newline_values_only", &Value::from("x"), &Style::default()), "x");
}
