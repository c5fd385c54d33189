//! Tests of all cases in vectors.json, which holds the output of Python Salt.

use brine_protocol::value::Value;

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
        compress_ids: flag("state_compress_ids", false),
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
        let value: Value = brine_protocol::rmpv::decode::read_value(&mut packed.as_slice()).unwrap();
        let got = Outputter::by_name(out).unwrap().render(&value, &style(&case[2]));
        // Python's outputter fails for this value.
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

const ALL: [&str; 11] =
    ["nested", "json", "yaml", "txt", "raw", "pprint", "no_return", "key", "highstate", "table", "newline_values_only"];

/// One of each kind of character that a terminal obeys or hides, alone and within words.
const EVIL: &str = "\x1b[2J \u{9b}31m \x07 a\u{202e}b \x7f \u{200b} x\u{feff}y \u{ad} \u{e0041}\u{e007f} \u{2062} \u{3164} \u{2028} \
                    \u{fe0f} a\u{200d}b \u{61c} \u{2066}";

#[test]
fn a_terminal_gets_nothing_that_it_obeys_or_hides() {
    let map = |key: &str, value: &str| Value::Map(vec![(key.into(), value.into())]);
    let list = |text: &str| Value::Array(vec![Value::Array(vec![text.into()])]);
    let state = Value::Map(vec![
        ("result".into(), true.into()),
        ("comment".into(), EVIL.into()),
        ("name".into(), EVIL.into()),
        ("warnings".into(), Value::Array(vec![EVIL.into()])),
        ("changes".into(), map(EVIL, EVIL)),
        ("__run_num__".into(), 0.into()),
    ]);
    let states = Value::Map(vec![("m1".into(), Value::Map(vec![(format!("a_|-{EVIL}_|-b_|-c").into(), state)]))]);
    // Each is also tested alone, because another character may make the text special.
    let alone: Vec<String> = EVIL
        .chars()
        .filter(|c| brine_protocol::text::is_active(*c))
        .flat_map(|c| [format!("{c}"), format!("a{c}b")])
        .collect();
    for out in ALL {
        let mut values = vec![states.clone(), list(EVIL), Value::from(EVIL), map("m1", EVIL), map("minions", EVIL)];
        for text in alone.iter().map(String::as_str).chain([EVIL]) {
            values.extend([map(text, "x"), map("m1", text), Value::from(text), list(text)]);
            values.push(Value::Map(vec![("minions_pre".into(), Value::Array(vec![text.into()]))]));
        }
        for value in values {
            let plain = Style { visible: true, ..Style::default() };
            let shown = super::render(out, &value, &plain);
            let active = brine_protocol::text::marked(&shown).find(|(c, mark)| *mark && *c != '\n');
            assert_eq!(active, None, "{out}: {shown:?}");
        }
    }
}

#[test]
fn escapes_leave_the_values_of_json_and_yaml() {
    let style = Style { visible: true, ..Style::default() };
    for text in [
        EVIL,
        "'\u{202e}'",
        "\"\u{e0041}\\",
        "- \u{200b}",
        "\u{feff}",
        "# a\u{ad}\n b: \u{2029}",
        "👩\u{200d}💻 ❤\u{fe0f}",
    ] {
        let value = Value::Map(vec![(text.into(), Value::Array(vec![text.into(), format!(" {text} ").into()]))]);
        let json: serde_json::Value = serde_json::from_str(&super::render("json", &value, &style)).unwrap();
        assert_eq!(json, serde_json::json!({ text: [text, format!(" {text} ")] }));
        let yaml = super::render("yaml", &value, &style);
        assert_eq!(brine_protocol::config::yaml::load(&yaml).unwrap(), value, "{yaml}");
        // Python reads the same value from this output as from its own.
        let pprint = super::render("pprint", &value, &style);
        assert!(pprint.contains("\\u") || pprint.contains("\\U") || pprint.contains("\\x"), "{pprint}");
    }
}

#[test]
fn emoji_and_letters_of_all_scripts_are_printed_as_python_does() {
    for text in ["žluť 日本 עברית عربي हिन्दी ⚠️ ❤️ 1️⃣", "👍🏽 🎉"] {
        let value = Value::Map(vec![("m1".into(), text.into())]);
        for out in ALL {
            let plain = super::render(out, &value, &Style::default());
            assert_eq!(super::render(out, &value, &Style { visible: true, ..Style::default() }), plain, "{out}");
        }
    }
}

#[test]
fn ids_that_differ_look_different_in_a_list_of_keys() {
    let ids = ["web1", "web1 ", "web1\u{200b}", "web1\u{ad}", "web1\u{202e}", "web1\u{a0}", "web1\u{fe0f}"];
    let value = Value::Map(vec![("minions_pre".into(), Value::Array(ids.map(Value::from).to_vec()))]);
    let shown = super::render("key", &value, &Style { visible: true, ..Style::default() });
    let lines: std::collections::BTreeSet<&str> = shown.lines().skip(1).map(str::trim).collect();
    assert_eq!(lines.len(), ids.len(), "{shown}");
    for line in ["web1", "web1\\x20", "web1\\u200b", "web1\\xad", "web1\\u202e", "web1\\xa0", "web1\\ufe0f"] {
        assert!(lines.contains(line), "{line} in {shown}");
    }
}

/// Python cannot have such keys. For keys that json refuses, the output says so.
#[test]
fn json_drops_no_entry_without_a_word() {
    let key = Value::Array(vec![1.into(), "a\"".into()]);
    let map = Value::Map(vec![("b".into(), 1.into())]);
    let value = Value::Map(vec![
        (key, 1.into()),
        (map, Value::Map(vec![(Value::Array(vec![]), 2.into())])),
        ("z".into(), 3.into()),
    ]);
    for indent in [Indent::Unset, Indent::Null, Indent::Pretty, Indent::Columns(2)] {
        let text = super::render("json", &value, &Style { indent, ..Style::default() });
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json, serde_json::json!({"[1, 'a\"']": 1, "{'b': 1}": {"[]": 2}, "z": 3}), "{text}");
        assert!(!Outputter::Json.gave_up(&value, &text));
    }
    let bytes = Value::Map(vec![(Value::Binary(vec![1]), 1.into())]);
    assert!(Outputter::Json.gave_up(&bytes, &super::render("json", &bytes, &Style::default())));
    assert!(!Outputter::Json.gave_up(&Value::Map(Vec::new()), "{}"));
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
    let of_a_runner = Value::Array(vec!["a".into(), 8.into()]);
    assert_eq!(super::render("newline_values_only", &of_a_runner, &Style::default()), "a\n8");
}

#[test]
fn tuples_are_written_as_pythons_where_a_literal_tells_them() {
    let value = |items: Vec<Value>| Value::Map(vec![(Value::from("local"), Value::Array(items))]);
    let style = Style { tuples: true, ..Style::default() };
    let shown = |out: &str, value: &Value| Outputter::by_name(out).unwrap().render(value, &style);
    let fib = value(vec![Value::from(2), Value::from(0.000_012)]);
    assert_eq!(shown("txt", &fib), "local: (2, 1.2e-05)");
    assert_eq!(shown("raw", &fib), "{'local': (2, 1.2e-05)}");
    assert_eq!(shown("pprint", &fib), "{'local': (2, 1.2e-05)}");
    assert_eq!(shown("nested", &fib), "local:\n    - 2\n    - 1.2e-05");
    let inner = Value::Array(vec![Value::from(1)]);
    assert_eq!(shown("txt", &value(vec![inner])), "local: ([1],)");
    // The line breaks of pprint.pformat.
    let steps = Value::Array((0..30).map(|_| Value::from(1_000)).collect());
    let long = shown("pprint", &value(vec![steps, Value::from(0.5)]));
    assert!(
        long.starts_with("{'local': ([1000,\n            1000,\n") && long.ends_with("1000],\n           0.5)}"),
        "{long}"
    );
}
