//! Hostile YAML and values end soon, in an error or small.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use brine_render::convert::{ConvertError, ConvertLimits};
use brine_render::value::{List, Object};
use brine_render::yaml::{self, DumpError, DumpOptions, Limits, YamlErrorKind};
use brine_render::{Dict, Value};

fn limit_of(text: &str) -> String {
    let Err(error) = yaml::load(text, &Limits::default()) else { panic!("no bound") };
    assert_eq!(error.kind, YamlErrorKind::Limit, "{error}");
    error.problem
}

/// Ten aliases of ten aliases, `levels` times.
fn laughs(levels: usize) -> String {
    let mut text = "a0: &a0 [lol]\n".to_owned();
    for level in 1..=levels {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    text
}

#[test]
fn a_billion_laughs_are_shared_and_cannot_be_sent() {
    let value = yaml::load(&laughs(20), &Limits::default()).unwrap();
    let limits = ConvertLimits::default();
    assert_eq!(value.to_wire(limits), Err(ConvertError::Values(limits.values)));
    // shared lists are written once
    let text = yaml::dump(&value, &DumpOptions::default()).unwrap();
    assert!(text.len() < 10_000, "{} bytes", text.len());
    assert!(value.short_repr().len() < 2000);
}

#[test]
fn nesting_is_bounded() {
    for piece in ["[", "{", "{a: ", "- ", "? ", "[{a: [", "[a: ", "!!map {x: "] {
        assert_eq!(limit_of(&piece.repeat(20_000)), "more than 100 levels", "{piece:?}");
    }
    let steps: String = (0..200).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert_eq!(limit_of(&steps), "more than 100 levels");
    assert!(yaml::load(&format!("{}{}", "[".repeat(100), "]".repeat(100)), &Limits::default()).is_ok());
}

#[test]
fn merges_are_bounded() {
    let mut doubling = "- &a0 {k: v}\n".to_owned();
    let mut chain = doubling.clone();
    for level in 1..300 {
        let last = level - 1;
        if level < 40 {
            doubling.push_str(&format!("- &a{level} {{<<: [*a{last}, *a{last}]}}\n"));
        }
        chain.push_str(&format!("- &a{level} {{<<: *a{last}, k{level}: v}}\n"));
    }
    // the duplicate is found first, or there are too many
    assert!(yaml::load(&doubling, &Limits::default()).is_err());
    // from the front, each merge is a step
    assert!(yaml::load(&chain, &Limits::default()).is_ok());
    // the last first: a merge of a merge of …
    let last_first = format!("{}\n- - - {{<<: *a299}}", chain.replace("- &", "- - - - &"));
    let _ = yaml::load(&last_first, &Limits::default());
    let turned = format!("a:\n  b:\n{}\nz: {{<<: *a299}}", chain.replace("- &", "  - &"));
    assert_eq!(limit_of(&turned), "more than 100 levels of merges");
}

#[test]
fn size_is_bounded() {
    assert_eq!(limit_of(&"a".repeat((8 << 20) + 1)), "the text has more than 8388608 bytes");
    assert_eq!(limit_of(&"- a\n".repeat(300_000)), "more than 262144 values");
    assert_eq!(limit_of(&format!("[&a b{}]", ",*a".repeat(300_000))), "more than 262144 values");
    assert_eq!(limit_of(&"9".repeat(100)), format!("the number {} has more than 127 bits", "9".repeat(60)));
}

#[test]
fn what_contains_itself_is_refused() {
    // Python finds nothing to merge
    let merged = yaml::load("&a {<<: *a, b: 1}", &Limits::default()).unwrap();
    assert_eq!(format!("{merged:?}"), "{'b': 1}");
    for text in ["&a [*a]", "&a {b: *a}", "&a {b: [*a]}", "&a {b: {<<: *a}}", "&a [{<<: *a}]"] {
        let error = yaml::load(text, &Limits::default()).unwrap_err();
        assert_eq!(error.problem, "found unconstructable recursive node", "{text}");
    }
}

#[test]
fn repeated_pieces_take_no_square_time() {
    let pieces = [
        "a",
        "a ",
        "a\n",
        "a: b\n",
        "- a\n",
        "? a\n",
        "?\n",
        ":\n",
        "- ",
        "[",
        "[]",
        "[a,",
        "{",
        "{a: b},",
        "&a ",
        "*a ",
        "!a ",
        "!!",
        "'",
        "''",
        "\"",
        "\\",
        "|\n",
        ">\n a\n\n",
        "#",
        "# a\n",
        "%",
        "---\n",
        "...\n",
        "\t",
        "\r\n",
        "\u{feff}",
        "é",
        "😀",
        "a:",
        "a,",
        "\"\\x41\"",
        " ",
        "\n",
    ];
    for piece in pieces {
        for before in ["", "a: ", "[", "\"", "'", "|\n ", "- "] {
            let text = format!("{before}{}", piece.repeat(30_000 / piece.len()));
            let start = Instant::now();
            let _ = yaml::load(&text, &Limits::default());
            // some 10 ms where nothing is optimised; a square takes minutes
            assert!(start.elapsed() < Duration::from_secs(5), "{before:?} {piece:?}: {:?}", start.elapsed());
        }
    }
}

#[derive(Debug)]
struct Macro;

impl Object for Macro {
    fn type_name(&self) -> &str {
        "Macro"
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

#[test]
fn what_is_dumped_twice_has_an_anchor() {
    let dump = |value: &Value, flow: Option<bool>| {
        yaml::dump(value, &DumpOptions { default_flow_style: flow, ..DumpOptions::default() }).unwrap()
    };
    let one = Value::list([1.into()]);
    let two = Value::dict([("y".into(), one.clone()), ("x".into(), one.clone())]);
    // by stock Salt
    assert_eq!(dump(&two, None), "x: &id001 [1]\ny: *id001\n");
    assert_eq!(dump(&two, Some(false)), "x: &id001\n- 1\ny: *id001\n");
    let nested = Dict::ordered();
    nested.set("b", two.clone());
    nested.set("a", Value::list([two, one]));
    let nested = Value::Dict(nested);
    assert_eq!(dump(&nested, None), "b: &id002\n  x: &id001 [1]\n  y: *id001\na:\n- *id002\n- *id001\n");
    assert_eq!(dump(&nested, Some(true)), "{b: &id002 {x: &id001 [1], y: *id001}, a: [*id002, *id001]}\n");
    let pair = Value::tuple([1.into(), 2.into()]);
    assert_eq!(dump(&Value::list([pair.clone(), pair]), Some(false)), "- &id001\n  - 1\n  - 2\n- *id001\n");
    let nothing = Value::tuple([]);
    assert_eq!(dump(&Value::list([nothing.clone(), nothing]), None), "- []\n- []\n");
    let object = Value::Object(std::rc::Rc::new(Macro));
    assert_eq!(dump(&Value::list([object.clone(), object]), None), "[&id001 NULL, *id001]\n");
    let list = List::default();
    list.borrow_mut().push(Value::List(list.clone()));
    assert_eq!(dump(&Value::List(list.clone()), None), "&id001\n- *id001\n");
    list.borrow_mut().clear();
}

#[test]
fn dumps_are_bounded() {
    let deep = (0..300).fold(Value::None, |inner, _| Value::list([inner]));
    assert_eq!(yaml::dump(&deep, &DumpOptions::default()), Err(DumpError::Depth));
    let options = DumpOptions { max_values: 100, max_bytes: 1000, ..DumpOptions::default() };
    let many = Value::list((0..100).map(Value::from));
    assert_eq!(yaml::dump(&many, &options), Err(DumpError::Values(100)));
    let long = Value::str("x".repeat(1001));
    assert_eq!(yaml::dump(&long, &options), Err(DumpError::Bytes(1000)));
    // text can grow tenfold when it is written
    assert_eq!(yaml::dump(&Value::str("\u{10ffff}".repeat(200)), &options), Err(DumpError::Bytes(1000)));
}

#[test]
fn a_renderers_maps_are_ordered_and_salts_message_names_the_key() {
    let value = yaml::load_ordered("z: {y: 1, x: 2}\na: []", &Limits::default()).unwrap();
    assert_eq!(format!("{value:?}"), "OrderedDict([('z', OrderedDict([('y', 1), ('x', 2)])), ('a', [])])");
    let error = yaml::load_ordered("a:\n  b: 1\n  b: 2", &Limits::default()).unwrap_err();
    assert_eq!(
        error.render_message(),
        "while constructing a mapping\n  in \"<unicode string>\", line 2, column 3\nfound conflicting ID 'b'\n  in \"<unicode \
         string>\", line 3, column 3"
    );
    assert_eq!(error.line(), Some(3));
    let error = yaml::load_ordered("!!omap [a: 1]", &Limits::default()).unwrap_err();
    assert_eq!(error.problem, "expected a mapping node, but found sequence");
}
