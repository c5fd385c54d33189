//! Compares the loader with Python's, and checks its bounds and hostile text.

use proptest::prelude::*;
use serde_json::Value as Json;

use super::scalar::integer;
use super::*;
use crate::value::{list, map, text};

/// Texts for which this loader differs from Salt's, on purpose or because its scanner is for YAML 1.2.
const KNOWN_DIFFERENCES: &[&str] = &[
    // Accepted by YAML 1.2, refused by 1.1.
    "...",
    ":",
    "[!]",
    "[|]",
    "[>]",
    "[?]",
    "[:]",
    "[!!str]",
    "\ta: b",
    ": a",
    "a: \u{2028}b",
    "&: b",
    // Refused by the scanner, each with a line and a reason.
    "?",
    "[-]",
    "a: [-, b]",
    "a:\tb",
    "a: \u{feff}b",
    "a: \"b\"#c",
    "autosign: \"a\nb\"",
    // YAML 1.1 and 1.2 disagree on the end of the last line.
    "a:\n  |\n   b",
    // Salt parses the sign as a digit of a job id.
    "-9223372036854775808",
];

fn cases() -> Json {
    serde_json::from_str(include_str!("../../../tests/yaml_cases.json")).unwrap()
}

/// Converts a value written by `make_yaml_cases.py`.
fn expected(json: &Json) -> Value {
    match json {
        Json::Object(o) => match o.iter().next().map(|(k, v)| (k.as_str(), v)).unwrap() {
            ("$bytes", Json::String(hex)) => Value::Binary(hex::decode(hex).unwrap()),
            ("$float", Json::String(n)) => Value::F64(n.parse().unwrap()),
            ("$int", Json::String(n)) => integer(n.parse().unwrap()),
            ("$map", Json::Array(entries)) => {
                Value::Map(entries.iter().map(|e| (expected(&e[0]), expected(&e[1]))).collect())
            }
            other => panic!("{other:?}"),
        },
        Json::Array(items) => list(items.iter().map(expected)),
        Json::String(s) => text(s),
        Json::Bool(b) => Value::from(*b),
        Json::Null => Value::Nil,
        Json::Number(n) => panic!("{n}"),
    }
}

/// Compares values by Python's representation, so that NaN equals itself.
fn same(a: &Value, b: &Value) -> bool {
    a == b || a.python_repr() == b.python_repr()
}

#[test]
fn every_text_is_read_as_salts_loader_reads_it() {
    let cases = cases();
    let mut wrong = Vec::new();
    for case in cases["yaml"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let ours = load(text);
        let fits = match (&ours, case.get("error")) {
            (Ok(value), None) => same(value, &expected(&case["value"])),
            (Err(_), Some(_)) => true,
            _ => false,
        };
        if !fits && !KNOWN_DIFFERENCES.contains(&text) {
            wrong.push(format!("{text:?}: ours {ours:?}, Salt's {case}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_word_is_read_as_salts_parse_input_reads_it() {
    let cases = cases();
    let mut wrong = Vec::new();
    for case in cases["parse_input"].as_array().unwrap() {
        let word = case["word"].as_str().unwrap();
        let ours = Value::Array(crate::args::parse_input(&[word.to_owned()]));
        if !same(&ours, &expected(&case["arg"])) && !KNOWN_DIFFERENCES.contains(&word) {
            wrong.push(format!("{word:?}: ours {ours}, Salt's {}", case["arg"]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Complete tags that make some loader call a function, or that have a meaning to some loader.
const TAGS: &[&str] = &[
    "!!python/object/apply:os.system",
    "!!python/object/new:os.system",
    "!!python/object:os.system",
    "!!python/name:os.system",
    "!!python/module:os",
    "!!python/tuple",
    "!!python/dict",
    "!!python/list",
    "!!python/none",
    "!!python/bool",
    "!!python/int",
    "!!python/long",
    "!!python/float",
    "!!python/complex",
    "!!python/str",
    "!!python/bytes",
    "!!ruby/object:Gem::Installer",
    "!!javax.script.ScriptEngineManager",
    "!!perl/code",
    "!<tag:yaml.org,2002:python/object/apply:os.system>",
    "!<!python/object/apply:os.system>",
    "!<tag:example.com,2000:anything>",
    "!python/object/apply:os.system",
    "!include",
    "!env",
    "!vault",
    "!Ref",
    "!!timestamp2",
    "!!Str",
];

/// Returns documents with the tag in every possible place.
fn tagged(tag: &str) -> Vec<String> {
    vec![
        format!("{tag} ['touch /tmp/x']"),
        format!("{tag} {{args: ['touch /tmp/x']}}"),
        format!("{tag} 'text'"),
        format!("{tag}\n"),
        format!("a: {tag} ['touch /tmp/x']"),
        format!("a: {{b: [c, {tag} text]}}"),
        format!("{tag} a: b"),
        format!("? {tag} a\n: b"),
        format!("a: &x {tag} [text]\nb: *x"),
        format!("a: &x {tag} {{b: c}}\nd:\n  <<: *x"),
        format!("--- {tag}\na: b"),
    ]
}

/// CVE-2025-62348: no tag makes anything other than plain data, in any place.
#[test]
fn cve_2025_62348_a_tag_makes_no_object() {
    for tag in TAGS {
        for text in tagged(tag) {
            let error = load(&text).expect_err(&text);
            assert!(!error.message.contains('\n'), "{text}: {error}");
        }
    }
    // A handle declared in the document has no effect.
    for text in [
        "%TAG !! tag:yaml.org,2002:python/object/apply:\n---\na: !!os.system ['touch /tmp/x']",
        "%TAG !e! tag:yaml.org,2002:python/\n---\na: !e!name:os.system ''",
        "%TAG ! tag:yaml.org,2002:python/object/\n---\n!apply:os.system ['touch /tmp/x']",
        "%TAG !! !\n---\n!!include /etc/shadow",
    ] {
        assert!(load(text).is_err(), "{text}");
    }
    // Tags of plain data are allowed. Salt's safe loader has always accepted the tag of Python 2's texts.
    for (yaml, value) in [
        ("!!python/unicode x", text("x")),
        ("!!str 7", text("7")),
        ("!!int '7'", Value::from(7)),
        ("!!binary eA==", Value::Binary(b"x".to_vec())),
        ("!!set {a, b}", list(["a", "b"])),
        ("!!timestamp 2001-12-14", text("2001-12-14")),
    ] {
        assert_eq!(load(yaml).as_ref(), Ok(&value), "{yaml}");
    }
}

/// The same for each way in which YAML is read: an error, or the text as it was written.
#[test]
fn cve_2025_62348_a_tag_is_refused_or_text_wherever_yaml_is_read() {
    use crate::config::{Config, Role};
    let dir = tempfile::tempdir().unwrap();
    for tag in TAGS {
        let line = format!("x: {tag} ['touch /tmp/x']\n");
        for role in [Role::Master, Role::Minion] {
            assert!(Config::from_yaml(&line, &dir.path().join("file"), role).is_err(), "{line}");
        }
        // A file, and an included file.
        let file = dir.path().join("minion");
        std::fs::write(&file, &line).unwrap();
        assert!(Config::load(&file, Role::Minion).is_err(), "{line}");
        std::fs::write(&file, "include: more\n").unwrap();
        std::fs::write(dir.path().join("more"), &line).unwrap();
        assert!(Config::load(&file, Role::Minion).is_err(), "{line}");
        // Arguments on the command line: `salt '*' f WORD`, `name=WORD`.
        let word = format!("{tag} [1]");
        assert_eq!(crate::args::parse_input(std::slice::from_ref(&word)), vec![text(&word)]);
        let named = crate::args::parse_input(&[format!("name={word}")]);
        assert_eq!(named, vec![map([("__kwarg__", Value::from(true)), ("name", text(&word))])], "{word}");
    }
}

#[test]
fn alias_bombs_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let before = n - 1;
        bomb += &format!("a{n}: &a{n} [{}]\n", vec![format!("*a{before}"); 10].join(", "));
    }
    assert!(load(&bomb).unwrap_err().message.contains("values after aliases"));

    let mut merges = "m0: &m0 {a: 1, b: 2}\n".to_owned();
    for n in 1..40 {
        let before = n - 1;
        merges += &format!("m{n}: &m{n} {{<<: [*m{before}, *m{before}]}}\n");
    }
    assert!(load(&merges).is_err());

    let long = format!("a: &a '{}'\nb: [{}]", "x".repeat(1 << 20), vec!["*a"; 100].join(", "));
    assert!(load(&long).unwrap_err().message.contains("bytes after aliases"));
}

#[test]
fn depth_is_bounded() {
    for deep in ["[".repeat(50_000), "{a: ".repeat(50_000), "- ".repeat(50_000), "? ".repeat(50_000)] {
        assert!(load(&deep).is_err());
    }
    // Each level is an alias of the one before: the text is not deep, but the value would be.
    let mut chain = "a0: &a0 x\n".to_owned();
    for n in 1..200 {
        chain += &format!("a{n}: &a{n} [*a{}]\n", n - 1);
    }
    assert!(load(&chain).unwrap_err().message.contains("levels"));
}

#[test]
fn errors_say_where() {
    let error = load("a: 1\nb: 2\na: 3\n").unwrap_err();
    assert_eq!((error.line, error.column), (3, 1));
    assert_eq!(error.to_string(), r#"line 3, column 1: the key "a" is there twice in the map that begins in line 1"#);
    assert_eq!(load("a: \x01").unwrap_err().to_string(), "line 1, column 4: the character U+0001 is not allowed");
}

#[test]
fn a_configuration_reads_as_an_operator_means_it() {
    let yaml = "master: 10.0.0.1\nopen_mode: no\nmode: 0644\nfile_roots:\n  base:\n    - /srv/salt\n";
    assert_eq!(
        load(yaml).unwrap(),
        map([
            ("master", text("10.0.0.1")),
            ("open_mode", Value::from(false)),
            ("mode", Value::from(644)),
            ("file_roots", map([("base", list(["/srv/salt"]))])),
        ])
    );
}

proptest! {
    #[test]
    fn no_text_panics(s in ".{0,80}") {
        let _ = load(&s);
    }

    #[test]
    fn nothing_like_yaml_panics(s in "[-?:,\\[\\]{}#&*!|>'\"%@`<=~ \n\tab01.]{0,60}") {
        let _ = load(&s);
    }

    #[test]
    fn whole_numbers_are_read_back(n in any::<i64>()) {
        prop_assert_eq!(load(&n.to_string()).unwrap(), Value::from(n));
    }

    #[test]
    fn plain_json_is_yaml(n in any::<u32>(), s in "[a-z]{1,5}", b in any::<bool>()) {
        let json = serde_json::json!({ "x": [n, b, null], s: { "y": "z" } });
        prop_assert_eq!(crate::value::to_json(&load(&json.to_string()).unwrap()), json);
    }
}
