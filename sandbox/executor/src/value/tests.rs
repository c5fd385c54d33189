//! The table of DESIGN.md §3.2, row by row, in both directions; and refused values with their messages.

use rmpv::Value;
use wasmtime::component::Val;

use super::lift::{Unfit, lift};
use super::lower::{ValueBudget, lower_all};
use super::msgpack::{self, Full, Item, MAX_DEPTH, MAX_ITEMS, Malformed, Reader, Writer};
use super::show::show;
use super::signature::{Given, Signature, TypedParam};
use super::ty::{Int, Name, Ty};

fn packed(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    rmpv::encode::write_value(&mut out, value).unwrap();
    out
}

fn json(text: &str) -> Value {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    rmpv::decode::read_value(&mut rmp_serde::to_vec(&value).unwrap().as_slice()).unwrap()
}

fn bin(bytes: &[u8]) -> Value {
    Value::Binary(bytes.to_vec())
}

fn names(names: &[&str]) -> Vec<Name> {
    names.iter().map(|name| Name::new(name)).collect()
}

fn boxed(ty: Ty) -> Box<Ty> {
    Box::new(ty)
}

fn bytes_val(bytes: &[u8]) -> Val {
    Val::List(bytes.iter().copied().map(Val::U8).collect())
}

fn data_val(value: &Value) -> Val {
    Val::Record(vec![("msgpack".into(), bytes_val(&packed(value)))])
}

fn some(value: Val) -> Val {
    Val::Option(Some(Box::new(value)))
}

fn text(text: &str) -> Val {
    Val::String(text.into())
}

/// `test.f(x: ty)`
fn signature(ty: Ty) -> Signature {
    Signature { name: "test.f".into(), params: [TypedParam::new("x", ty)].into(), result: None }
}

fn lowered(ty: &Ty, value: &Value) -> Result<Val, String> {
    let signature = signature(ty.clone());
    let args = packed(&Value::Array(vec![value.clone()]));
    let given = signature.bind(&args, &[0x80]).map_err(|misfit| misfit.0)?;
    lower_all(&signature, &given, &mut ValueBudget::new(1 << 20))
        .map(|mut values| values.remove(0))
        .map_err(|misfit| misfit.0)
}

fn lifted(ty: &Ty, value: &Val) -> Result<Value, Unfit> {
    let mut out = Writer::new(1 << 20);
    lift(value, ty, &mut out)?;
    let bytes = out.into_bytes();
    assert_eq!(msgpack::check(&bytes).map(drop), Ok(()));
    Ok(rmpv::decode::read_value(&mut bytes.as_slice()).unwrap())
}

/// wasmtime's `Val` compares NaN and similar values as components do; everything else is compared as text.
#[track_caller]
fn same(left: &Val, right: &Val) {
    assert_eq!(format!("{left:?}"), format!("{right:?}"));
}

fn mode() -> Ty {
    Ty::Enum(names(&["read-only", "read-write"]))
}

fn options() -> Ty {
    Ty::Record(vec![(Name::new("max-depth"), Ty::Int(Int::U8)), (Name::new("mode"), Ty::Option(boxed(mode())))])
}

fn target() -> Ty {
    Ty::Variant(vec![
        (Name::new("all-of-it"), None),
        (Name::new("one-path"), Some(Ty::Text)),
        (Name::new("maybe"), Some(Ty::Option(boxed(Ty::Bool)))),
    ])
}

#[test]
fn values_that_are_the_same_both_ways() {
    let cases: Vec<(Ty, Value, Val)> = vec![
        (Ty::Bool, Value::from(true), Val::Bool(true)),
        (Ty::Int(Int::S8), Value::from(-128), Val::S8(-128)),
        (Ty::Int(Int::U8), Value::from(255), Val::U8(255)),
        (Ty::Int(Int::S16), Value::from(-32768), Val::S16(-32768)),
        (Ty::Int(Int::U16), Value::from(65535), Val::U16(65535)),
        (Ty::Int(Int::S32), Value::from(i32::MIN), Val::S32(i32::MIN)),
        (Ty::Int(Int::U32), Value::from(u32::MAX), Val::U32(u32::MAX)),
        (Ty::Int(Int::S64), Value::from(i64::MIN), Val::S64(i64::MIN)),
        (Ty::Int(Int::U64), Value::from(u64::MAX), Val::U64(u64::MAX)),
        (Ty::F32, Value::F64(0.5), Val::Float32(0.5)),
        (Ty::F64, Value::F64(0.1), Val::Float64(0.1)),
        (Ty::F64, Value::F64(f64::INFINITY), Val::Float64(f64::INFINITY)),
        (Ty::Char, Value::from("ß"), Val::Char('ß')),
        (Ty::Text, Value::from("größe"), text("größe")),
        (Ty::Text, Value::from("x".repeat(70_000)), text(&"x".repeat(70_000))),
        (Ty::Bytes, bin(&[0, 255]), bytes_val(&[0, 255])),
        (Ty::Bytes, bin(&[]), bytes_val(&[])),
        (
            Ty::List(boxed(Ty::Int(Int::U32))),
            json("[1, 2, 70000]"),
            Val::List(vec![Val::U32(1), Val::U32(2), Val::U32(70_000)]),
        ),
        (
            Ty::Fixed(boxed(Ty::Bool), 2),
            json("[true, false]"),
            Val::FixedLengthList(vec![Val::Bool(true), Val::Bool(false)]),
        ),
        (Ty::Tuple(vec![Ty::Text, Ty::Int(Int::S8)]), json(r#"["a", -1]"#), Val::Tuple(vec![text("a"), Val::S8(-1)])),
        (
            Ty::Dict(boxed(Ty::Int(Int::U8))),
            json(r#"{"a": 1, "b": 2}"#),
            Val::List(vec![Val::Tuple(vec![text("a"), Val::U8(1)]), Val::Tuple(vec![text("b"), Val::U8(2)])]),
        ),
        (Ty::Dict(boxed(Ty::Text)), json("{}"), Val::List(vec![])),
        (
            options(),
            json(r#"{"max_depth": 3, "mode": "read_only"}"#),
            Val::Record(vec![("max-depth".into(), Val::U8(3)), ("mode".into(), some(Val::Enum("read-only".into())))]),
        ),
        (Ty::Option(boxed(Ty::Text)), Value::from("a"), some(text("a"))),
        (Ty::Option(boxed(Ty::Text)), Value::Nil, Val::Option(None)),
        (mode(), Value::from("read_write"), Val::Enum("read-write".into())),
        (Ty::Flags(names(&["no-follow", "append"])), json(r#"["no_follow"]"#), Val::Flags(vec!["no-follow".into()])),
        (target(), Value::from("all_of_it"), Val::Variant("all-of-it".into(), None)),
        (target(), json(r#"{"one_path": "/srv"}"#), Val::Variant("one-path".into(), Some(Box::new(text("/srv"))))),
        (target(), json(r#"{"maybe": null}"#), Val::Variant("maybe".into(), Some(Box::new(Val::Option(None))))),
        (
            Ty::Result(Some(boxed(Ty::Bool)), Some(boxed(Ty::Text))),
            json(r#"{"err": "no"}"#),
            Val::Result(Err(Some(Box::new(text("no"))))),
        ),
        (Ty::Result(None, None), json(r#"{"ok": null}"#), Val::Result(Ok(None))),
        (Ty::Data, json(r#"{"any": [1, null, {"x": 1.5}]}"#), data_val(&json(r#"{"any": [1, null, {"x": 1.5}]}"#))),
        (Ty::Data, bin(&[1]), data_val(&bin(&[1]))),
        (Ty::Data, Value::Ext(78, vec![1, 2]), data_val(&Value::Ext(78, vec![1, 2]))),
    ];
    for (ty, salt, component) in cases {
        let value = lowered(&ty, &salt).unwrap_or_else(|error| panic!("{ty}: {error}"));
        same(&value, &component);
        assert_eq!(lifted(&ty, &component).as_ref(), Ok(&salt), "{ty}");
    }
}

#[test]
fn values_that_are_taken_for_others() {
    let pairs = Ty::Dict(boxed(Ty::Int(Int::U8)));
    let cases: Vec<(Ty, Value, Val)> = vec![
        (Ty::F64, Value::from(3), Val::Float64(3.0)),
        (Ty::F32, Value::from(-3), Val::Float32(-3.0)),
        (Ty::F64, Value::F32(0.5), Val::Float64(0.5)),
        (Ty::Text, bin("größe".as_bytes()), text("größe")),
        (Ty::Bytes, Value::from("ab"), bytes_val(b"ab")),
        (Ty::Bytes, json("[1, 255]"), bytes_val(&[1, 255])),
        (pairs, json(r#"[["a", 1]]"#), Val::List(vec![Val::Tuple(vec![text("a"), Val::U8(1)])])),
        (mode(), Value::from("read-only"), Val::Enum("read-only".into())),
        (Ty::Flags(names(&["a", "b"])), json(r#"["b", "b"]"#), Val::Flags(vec!["b".into()])),
        (target(), json(r#"{"all_of_it": null}"#), Val::Variant("all-of-it".into(), None)),
        (target(), Value::from("maybe"), Val::Variant("maybe".into(), Some(Box::new(Val::Option(None))))),
        (
            options(),
            json(r#"{"max-depth": 1}"#),
            Val::Record(vec![("max-depth".into(), Val::U8(1)), ("mode".into(), Val::Option(None))]),
        ),
    ];
    for (ty, salt, component) in cases {
        same(&lowered(&ty, &salt).unwrap_or_else(|error| panic!("{ty}: {error}")), &component);
    }
}

/// Callers over HTTP, and templates, often have texts only.
#[test]
fn a_text_that_is_a_number_or_a_truth_value_is_one() {
    for (ty, text, component) in [
        (Ty::Int(Int::U32), "10", Val::U32(10)),
        (Ty::Int(Int::S8), "-7", Val::S8(-7)),
        (Ty::F64, "1.5", Val::Float64(1.5)),
        (Ty::F64, "2", Val::Float64(2.0)),
        (Ty::F32, "1e3", Val::Float32(1000.0)),
        (Ty::Bool, "True", Val::Bool(true)),
        (Ty::Bool, "no", Val::Bool(false)),
        (Ty::Option(boxed(Ty::Bool)), "false", Val::Option(Some(Box::new(Val::Bool(false))))),
        (Ty::Text, "10", Val::String("10".into())),
    ] {
        same(&lowered(&ty, &Value::from(text)).unwrap_or_else(|error| panic!("{ty}: {error}")), &component);
    }
}

#[test]
fn values_that_do_not_fit() {
    let cases: Vec<(Ty, Value, &str)> = vec![
        (Ty::Int(Int::U32), Value::from("abc"), "'x' must be a u32, got 'abc'"),
        (Ty::Int(Int::U32), Value::from("5.0"), "'x' must be a u32, got '5.0'"),
        (Ty::Int(Int::U32), Value::from("0x5"), "'x' must be a u32, got '0x5'"),
        (Ty::Int(Int::U32), Value::from(""), "'x' must be a u32, got ''"),
        (Ty::Int(Int::U32), Value::from("-5"), "'x' must be a u32 (0 to 4294967295), got '-5'"),
        (Ty::Int(Int::U32), Value::from(true), "'x' must be a u32, got True"),
        (Ty::Int(Int::U32), Value::F64(1.0), "'x' must be a u32, got 1.0"),
        (Ty::Int(Int::U32), Value::from(-1), "'x' must be a u32 (0 to 4294967295), got -1"),
        (Ty::Int(Int::S8), Value::from(128), "'x' must be an s8 (-128 to 127), got 128"),
        (
            Ty::Int(Int::S64),
            Value::from(u64::MAX),
            "'x' must be an s64 (-9223372036854775808 to 9223372036854775807), got 18446744073709551615",
        ),
        (Ty::Bool, Value::from(1), "'x' must be a bool (True or False), got 1"),
        (Ty::Bool, Value::from("1"), "'x' must be a bool (True or False), got '1'"),
        (Ty::Bool, Value::from(""), "'x' must be a bool (True or False), got ''"),
        (Ty::F32, Value::F64(1e300), "'x' must be an f32, got 1e300"),
        (Ty::F64, Value::from("inf"), "'x' must be an f64, got 'inf'"),
        (Ty::F64, Value::from("1 "), "'x' must be an f64, got '1 '"),
        (Ty::Char, Value::from("ab"), "'x' must be a single character, got 'ab'"),
        (Ty::Char, Value::from(""), "'x' must be a single character, got ''"),
        (Ty::Text, Value::from(5), "'x' must be a string, got 5"),
        (Ty::Text, Value::Nil, "'x' must be a string, got None"),
        (Ty::Text, bin(&[0xff]), "'x' must be text, got b'\\xff'"),
        (Ty::Bytes, json("[1, 256]"), "'x[1]' must be a u8 (0 to 255), got 256"),
        (Ty::Bytes, Value::from(1), "'x' must be bytes or text, got 1"),
        (Ty::List(boxed(Ty::Bool)), json("[true, [1]]"), "'x[1]' must be a bool (True or False), got [1]"),
        (Ty::List(boxed(Ty::Bool)), json("{}"), "'x' must be a list of bool, got {}"),
        (
            Ty::Tuple(vec![Ty::Bool, Ty::Text]),
            json("[true]"),
            "'x' must be a list of 2 values (tuple<bool, string>), got [True]",
        ),
        (Ty::Fixed(boxed(Ty::Bool), 2), json("[true]"), "'x' must be a list of 2 bool, got [True]"),
        (Ty::Dict(boxed(Ty::Bool)), json(r#"{"a": 1}"#), "'x.a' must be a bool (True or False), got 1"),
        (
            Ty::Dict(boxed(Ty::Bool)),
            Value::Map(vec![(Value::from(1), Value::from(true))]),
            "'x' must have text for keys, got 1",
        ),
        (options(), json(r#"{"mode": null}"#), "'x.max_depth' is missing"),
        (options(), json(r#"{"max_depth": 1, "nope": 1}"#), "'x' has no 'nope', only max_depth, mode"),
        (options(), json(r#"{"max_depth": 1, "max-depth": 2}"#), "'x.max_depth' is given twice"),
        (
            options(),
            json(r#"{"max_depth": 1, "mode": "x"}"#),
            "'x.mode' must be one of 'read_only', 'read_write', got 'x'",
        ),
        (options(), json("[]"), "'x' must be a dict with 'max_depth', 'mode', got []"),
        (mode(), Value::from(1), "'x' must be one of 'read_only', 'read_write', got 1"),
        (Ty::Flags(names(&["a"])), json(r#"["a", "b"]"#), "'x' must be a list of any of 'a', got ['a', 'b']"),
        (
            target(),
            Value::from("one_path"),
            "'x' must be one of 'all_of_it', 'one_path', 'maybe', with its value in a dict of one key, got 'one_path'",
        ),
        (target(), json(r#"{"one_path": 1}"#), "'x.one_path' must be a string, got 1"),
        (
            Ty::Result(None, None),
            json(r#"{"okay": 1}"#),
            "'x' must be a dict of one key, 'ok' or 'err', got {'okay': 1}",
        ),
        (Ty::Foreign("resource"), json("1"), "'x' must be a resource, which no argument can be, got 1"),
        (
            Ty::Text,
            json(r#"{"a": [[[1]]], "b\u001b": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#),
            "'x' must be a string, got {'a': [[…",
        ),
    ];
    for (ty, value, expected) in cases {
        assert_eq!(lowered(&ty, &value).unwrap_err(), expected, "{ty}");
    }
}

fn function() -> Signature {
    Signature {
        name: "test.f".into(),
        params: [
            TypedParam::new("num", Ty::Int(Int::U32)),
            TypedParam::new("max-depth", Ty::Option(boxed(Ty::Int(Int::U8)))),
        ]
        .into(),
        result: Some(Ty::List(boxed(Ty::Int(Int::U64))).into()),
    }
}

fn rest() -> Signature {
    Signature {
        name: "test.arg".into(),
        params: [
            TypedParam::new("args", Ty::List(boxed(Ty::Data))),
            TypedParam::new("delimiter", Ty::Option(boxed(Ty::Text))),
            TypedParam::new("kwargs", Ty::Data),
        ]
        .into(),
        result: Some(Ty::Data.into()),
    }
}

#[test]
fn arguments_find_their_parameters() {
    let cases: [(&str, &str, [Option<&str>; 2]); 6] = [
        ("[5]", "{}", [Some("5"), None]),
        ("[5, 6]", "{}", [Some("5"), Some("6")]),
        ("[5]", r#"{"max_depth": 6}"#, [Some("5"), Some("6")]),
        ("[5]", r#"{"max-depth": 6}"#, [Some("5"), Some("6")]),
        ("[]", r#"{"max_depth": null, "num": 5}"#, [Some("5"), Some("null")]),
        ("[5]", r#"{"__pub_jid": "1", "__pub_user": "root"}"#, [Some("5"), None]),
    ];
    for (args, kwargs, expected) in cases {
        let (args, kwargs) = (packed(&json(args)), packed(&json(kwargs)));
        let given = function().bind(&args, &kwargs).unwrap();
        let expected: Vec<_> = expected.map(|text| text.map(|text| packed(&json(text)))).into();
        let expected: Vec<_> =
            expected.iter().map(|value| value.as_deref().map_or(Given::Nothing, Given::Value)).collect();
        assert_eq!(given, expected);
    }
}

#[test]
fn the_rest_of_the_arguments_finds_its_parameters() {
    let (args, kwargs) = (packed(&json("[1, [2]]")), packed(&json(r#"{"a": 1, "delimiter": ":", "__pub_jid": "1"}"#)));
    let signature = rest();
    let given = signature.bind(&args, &kwargs).unwrap();
    let values = lower_all(&signature, &given, &mut ValueBudget::new(1 << 20)).unwrap();
    same(&values[0], &Val::List(vec![data_val(&json("1")), data_val(&json("[2]"))]));
    same(&values[1], &some(text(":")));
    same(&values[2], &data_val(&json(r#"{"a": 1, "__pub_jid": "1"}"#)));
    let given = signature.bind(&[0x90], &[0x80]).unwrap();
    let values = lower_all(&signature, &given, &mut ValueBudget::new(1 << 20)).unwrap();
    same(&values[0], &Val::List(vec![]));
    same(&values[2], &data_val(&json("{}")));
}

#[test]
fn arguments_that_do_not_fit_the_function() {
    let nothing = Signature { name: "test.ping".into(), params: [].into(), result: Some(Ty::Bool.into()) };
    let usage = "Usage: test.f(num: u32, max_depth: option<u8>) -> list<u64>";
    let cases = [
        (function(), "[]", "{}", format!("Passed invalid arguments to test.f: 'num' is missing. {usage}")),
        (function(), "[1, 2, 3]", "{}", format!("Passed invalid arguments to test.f: it takes up to 2 positional arguments, got 3. {usage}")),
        (function(), "[1]", r#"{"num": 2}"#, format!("Passed invalid arguments to test.f: 'num' is given twice. {usage}")),
        (function(), "[1]", r#"{"max_depth": 2, "max-depth": 2}"#, format!("Passed invalid arguments to test.f: 'max_depth' is given twice. {usage}")),
        (function(), "[1]", r#"{"depth\u001b": 2}"#, format!("Passed invalid arguments to test.f: it takes no 'depth\\x1b'. {usage}")),
        (nothing.clone(), "[1]", "{}", "Passed invalid arguments to test.ping: it takes no positional arguments, got 1. Usage: test.ping() -> bool".into()),
        (nothing, "[]", r#"{"a": 1}"#, "Passed invalid arguments to test.ping: it takes no 'a'. Usage: test.ping() -> bool".into()),
        (rest(), "{}", "{}", "Passed invalid arguments to test.arg: they are not what a minion sends: the value has another type. Usage: test.arg(*args, delimiter: option<string>, **kwargs) -> data".into()),
        (rest(), "[]", "[]", "Passed invalid arguments to test.arg: they are not what a minion sends: the value has another type. Usage: test.arg(*args, delimiter: option<string>, **kwargs) -> data".into()),
    ];
    for (signature, args, kwargs, expected) in cases {
        let (args, kwargs) = (packed(&json(args)), packed(&json(kwargs)));
        assert_eq!(signature.refusal(&signature.bind(&args, &kwargs).unwrap_err()), expected);
    }
}

#[test]
fn the_error_of_the_contract() {
    let mut fib = function();
    fib.params = fib.params[..1].into();
    fib.name = "test.fib".into();
    let args = packed(&json(r#"["abc"]"#));
    let given = fib.bind(&args, &[0x80]).unwrap();
    let misfit = lower_all(&fib, &given, &mut ValueBudget::new(1 << 20)).unwrap_err();
    let line =
        "Passed invalid arguments to test.fib: 'num' must be a u32, got 'abc'. Usage: test.fib(num: u32) -> list<u64>";
    assert_eq!(fib.refusal(&misfit), line);
}

#[test]
fn arguments_are_bounded_in_what_they_cost() {
    let error = lowered(&Ty::Bytes, &bin(&vec![0; 1 << 20])).unwrap_err();
    assert_eq!(error, "they take more than the 1048576 bytes that the host may hold for one call");
    let error = lowered(&Ty::Text, &Value::from("x".repeat(1 << 20))).unwrap_err();
    assert_eq!(error, "they take more than the 1048576 bytes that the host may hold for one call");
}

#[test]
fn results_that_are_no_value() {
    let data = |bytes: &[u8]| Val::Record(vec![("msgpack".into(), bytes_val(bytes))]);
    let deep = [vec![0x91; MAX_DEPTH + 1], vec![0xc0]].concat();
    let cases: Vec<(Val, Malformed)> = vec![
        (data(&[]), Malformed::Truncated),
        (data(&[0x92, 0xc0]), Malformed::Truncated),
        (data(&[0xc1]), Malformed::Reserved),
        (data(&[0xc0, 0xc0]), Malformed::Trailing),
        (data(&[0xa1, 0xff]), Malformed::NotUtf8),
        (data(&[0xdd, 0xff, 0xff, 0xff, 0xff]), Malformed::Truncated),
        (data(&[0xdb, 0xff, 0xff, 0xff, 0xff]), Malformed::Truncated),
        (data(&deep), Malformed::TooDeep),
    ];
    for (value, expected) in cases {
        assert_eq!(lifted(&Ty::Data, &value), Err(Unfit::Data(expected)));
    }
    assert!(lifted(&Ty::Data, &data(&deep[1..])).is_ok());
    assert_eq!(lifted(&Ty::Foreign("stream"), &Val::Bool(true)), Err(Unfit::Foreign("stream")));
    let mut out = Writer::new(4);
    assert_eq!(lift(&text("four"), &Ty::Text, &mut out), Err(Unfit::Full(Full::Bytes(4))));
}

#[test]
fn items_are_counted_at_every_level() {
    let nils = |count: usize| {
        let mut bytes = vec![0xdd];
        bytes.extend_from_slice(&u32::try_from(count).unwrap().to_be_bytes());
        bytes.resize(bytes.len() + count, 0xc0);
        bytes
    };
    assert_eq!(msgpack::check(&nils(MAX_ITEMS - 1)), Ok(MAX_ITEMS));
    assert_eq!(msgpack::check(&nils(MAX_ITEMS)), Err(Malformed::TooMany));
    let mut out = Writer::new(usize::MAX);
    for _ in 0..MAX_ITEMS {
        out.nil().unwrap();
    }
    assert_eq!(out.nil(), Err(Full::Items));
}

#[test]
fn what_is_written_is_what_others_write() {
    let values = [
        0,
        1,
        127,
        128,
        255,
        256,
        65_535,
        65_536,
        4_294_967_295,
        4_294_967_296,
        i64::MAX.into(),
        u64::MAX.into(),
        -1,
        -32,
        -33,
        -128,
        -129,
        -32_768,
        -32_769,
        i32::MIN.into(),
        i128::from(i32::MIN) - 1,
        i64::MIN.into(),
    ];
    for value in values {
        let mut out = Writer::new(100);
        out.int(value).unwrap();
        let expected = match u64::try_from(value) {
            Ok(value) => Value::from(value),
            Err(_) => Value::from(i64::try_from(value).unwrap()),
        };
        let bytes = out.into_bytes();
        assert_eq!(bytes, packed(&expected));
        assert_eq!(Reader::new(&bytes).item(), Ok(Item::Int(value)));
    }
    for length in [0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536] {
        let (text, bytes) = ("x".repeat(length), vec![7; length]);
        let mut out = Writer::new(usize::MAX);
        out.str(&text).unwrap();
        out.bin(&bytes).unwrap();
        out.array(length).unwrap();
        out.map(length).unwrap();
        let mut expected = packed(&Value::from(text));
        expected.extend(packed(&Value::Binary(bytes)));
        let length = u32::try_from(length).unwrap();
        rmp::encode::write_array_len(&mut expected, length).unwrap();
        rmp::encode::write_map_len(&mut expected, length).unwrap();
        assert_eq!(out.into_bytes(), expected);
    }
}

#[test]
fn no_bytes_make_the_reader_panic_and_it_agrees_with_another() {
    // Every prefix of the message, and every prefix with further bytes.
    let tail = [0x00, 0xc0, 0xa1, 0x61, 0x91, 0x81, 0x01, 0xff, 0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05];
    for first in 0..=255u8 {
        for second in (0..=255u8).step_by(17) {
            let bytes = [&[first, second], &tail[..]].concat();
            for end in 0..bytes.len() {
                let bytes = &bytes[..end];
                let ours = Reader::new(bytes).value();
                assert!(!show(bytes).contains('\n'));
                let mut rest = bytes;
                let theirs = rmpv::decode::read_value_ref(&mut rest);
                match (ours, theirs) {
                    (Ok(value), Ok(_)) => assert_eq!(value.len(), bytes.len() - rest.len()),
                    (Err(Malformed::NotUtf8 | Malformed::Reserved), _) => {}
                    (Err(_), Err(_)) => {}
                    other => panic!("{other:?} for {bytes:02x?}"),
                }
            }
        }
    }
}

#[test]
fn types_are_written_in_wit_words() {
    let cases = [
        (Ty::Dict(boxed(Ty::Data)), "list<tuple<string, data>>"),
        (Ty::Result(None, Some(boxed(Ty::Text))), "result<_, string>"),
        (Ty::Result(Some(boxed(Ty::Bool)), None), "result<bool>"),
        (options(), "record{max_depth: u8, mode: option<enum{read_only, read_write}>}"),
        (target(), "variant{all_of_it, one_path: string, maybe: option<bool>}"),
        (Ty::Fixed(boxed(Ty::Bytes), 3), "list<list<u8>, 3>"),
    ];
    for (ty, expected) in cases {
        assert_eq!(ty.to_string(), expected);
    }
    let long = Ty::Tuple(vec![Ty::Text; 1_000]).to_string();
    assert!(long.len() < 400 && long.ends_with('…'), "{long}");
}

#[test]
fn values_in_messages_are_short_and_on_one_line() {
    let cases = [
        (json("null"), "None"),
        (json("[true, -1, 1.5]"), "[True, -1, 1.5]"),
        (json(r#"{"a": {"b": []}}"#), "{'a': {'b': []}}"),
        (Value::from("a\nb\u{202e}\u{1b}"), "'a\\nb\\u202e\\x1b'"),
        (bin(b"\x00a'"), "b'\\x00a\\''"),
        (Value::Ext(5, vec![1]), "an extension 5 of 1 bytes"),
        (json("[[[[1]]]]"), "[[[…"),
    ];
    for (value, expected) in cases {
        assert_eq!(show(&packed(&value)), expected);
    }
    let long = show(&packed(&Value::from("x".repeat(100_000))));
    assert!(long.chars().count() <= 61 && long.ends_with('…'), "{long}");
}

/// A simple random generator with the same sequence on every platform.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % sides as u64).unwrap()
    }
}

#[test]
fn damaged_arguments_are_errors_and_never_panics() {
    let whole =
        packed(&json(r#"[5, "text", [1, 2, {"a": null}], {"max_depth": 1, "mode": "read_only"}, 1.5, true, ["a"]]"#));
    let keywords = packed(&json(r#"{"x": {"one_path": "p"}, "delimiter": ":", "num": [1, {"b": 2}]}"#));
    let types = [
        Ty::Int(Int::S16),
        Ty::F32,
        Ty::Char,
        Ty::Text,
        Ty::Bytes,
        Ty::Data,
        mode(),
        options(),
        target(),
        Ty::Dict(boxed(Ty::Data)),
        Ty::List(boxed(Ty::Dict(boxed(Ty::Text)))),
        Ty::Tuple(vec![Ty::Data, options()]),
        Ty::Flags(names(&["a"])),
        Ty::Result(Some(boxed(Ty::Data)), None),
        Ty::Option(boxed(Ty::Option(boxed(Ty::Bool)))),
    ];
    let mut signatures = vec![function(), rest()];
    signatures.extend(types.map(signature));
    let mut dice = Dice(2);
    for _ in 0..20_000 {
        let (mut args, mut kwargs) = (whole.clone(), keywords.clone());
        for bytes in [&mut args, &mut kwargs] {
            for _ in 0..dice.roll(4) {
                let at = dice.roll(bytes.len());
                bytes[at] = u8::try_from(dice.roll(256)).unwrap();
            }
            if dice.roll(8) == 0 {
                bytes.truncate(dice.roll(bytes.len()) + 1);
            }
        }
        let signature = &signatures[dice.roll(signatures.len())];
        if let Ok(given) = signature.bind(&args, &kwargs) {
            let _ = lower_all(signature, &given, &mut ValueBudget::new(1 << 16));
        }
    }
}
