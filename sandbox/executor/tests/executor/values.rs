//! Values through real components: a value of each WIT type comes back unchanged.

use crate::common::{Executor, assert_failed, component, pack, returned};
use brine_sandbox_wire::{FailKind, Outcome};
use serde_json::{Value, json};

/// `f: func(x: T, …) -> tuple<T, u8>` returns its parameter. So many options follow `x` that the parameters go through
/// memory, where `x` lies at the beginning, at the place of the result's first value.
fn echo(types: &str, ty: &str) -> String {
    let options: String = (0..8).map(|n| format!(r#"(param "o{n}" (option u64))"#)).collect();
    component(
        types,
        &format!(r#"(param "x" {ty}) {options} (result (tuple {ty} u8))"#),
        r#"(func (export "f") (param i32) (result i32) local.get 0)"#,
    )
}

#[tokio::test]
async fn every_type_both_ways() {
    let mode = r#"(type $mode' (enum "read-only" "read-write")) (export $mode "mode" (type $mode'))"#;
    let record = format!(
        r#"{mode} (type $rec' (record (field "max-depth" u8) (field "mode" (option $mode)) (field "tags" (list string))))
           (export $rec "rec" (type $rec'))"#
    );
    let variant = r#"(type $var' (variant (case "all-of-it") (case "one-path" string) (case "pair" (tuple u8 s64))))
                     (export $var "var" (type $var'))"#;
    let flags = r#"(type $flags' (flags "no-follow" "append" "sync")) (export $flags "flags" (type $flags'))"#;
    let data = r#"(type $data' (record (field "msgpack" (list u8)))) (export $data "data" (type $data'))"#;
    let cases: Vec<(&str, &str, Vec<Value>)> = vec![
        ("", "bool", vec![json!(true), json!(false)]),
        ("", "s8", vec![json!(-128), json!(127)]),
        ("", "u8", vec![json!(0), json!(255)]),
        ("", "s16", vec![json!(-32768)]),
        ("", "u16", vec![json!(65535)]),
        ("", "s32", vec![json!(i32::MIN)]),
        ("", "u32", vec![json!(u32::MAX)]),
        ("", "s64", vec![json!(i64::MIN), json!(i64::MAX)]),
        ("", "u64", vec![json!(u64::MAX)]),
        ("", "f32", vec![json!(0.5)]),
        ("", "f64", vec![json!(0.1), json!(-1e300)]),
        ("", "char", vec![json!("ß"), json!("😀")]),
        ("", "string", vec![json!(""), json!("größe 😀"), json!("x".repeat(100_000))]),
        ("", "(list u32)", vec![json!([]), json!([1, 2, 3])]),
        ("", "(list (list string))", vec![json!([["a"], []])]),
        ("", "(tuple string s8 bool)", vec![json!(["a", -1, true])]),
        ("", "(list (tuple string u8))", vec![json!({}), json!({"a": 1, "b": 2})]),
        ("", "(list (tuple string (list (tuple string bool))))", vec![json!({"a": {"b": true}})]),
        ("", "(option string)", vec![json!(null), json!("a")]),
        ("", "(result u8 (error string))", vec![json!({"ok": 1}), json!({"err": "no"})]),
        ("", "(result)", vec![json!({"ok": null}), json!({"err": null})]),
        (mode, "$mode", vec![json!("read_only"), json!("read_write")]),
        (
            &record,
            "$rec",
            vec![
                json!({"max_depth": 1, "mode": "read_write", "tags": ["a", "b"]}),
                json!({"max_depth": 1, "mode": null, "tags": []}),
            ],
        ),
        (&record, "(list $rec)", vec![json!([{"max_depth": 1, "mode": null, "tags": ["x"]}])]),
        (variant, "$var", vec![json!("all_of_it"), json!({"one_path": "/srv"}), json!({"pair": [1, -2]})]),
        (flags, "$flags", vec![json!([]), json!(["no_follow", "sync"])]),
        (data, "$data", vec![json!(null), json!({"any": [1, {"x": 1.5}]})]),
        (data, "(list (tuple string $data))", vec![json!({"a": [1], "b": "text"})]),
        (data, "(option $data)", vec![json!(null), json!([1])]),
    ];
    let mut executor = Executor::start().await;
    for (types, ty, values) in cases {
        let module = executor.load(&echo(types, ty)).await;
        for value in values {
            let outcome = executor.call(module, "f", &json!([value]), &json!({})).await;
            assert_eq!(returned(&outcome)[0], value, "{ty}");
        }
    }
}

#[tokio::test]
async fn bytes_both_ways() {
    let mut executor = Executor::start().await;
    let module = executor.load(&echo("", "(list u8)")).await;
    for (arg, expected) in [
        (rmpv::Value::Binary(vec![0, 255]), vec![0, 255]),
        (rmpv::Value::from("text"), b"text".to_vec()),
        (rmpv::Value::Array(vec![1.into(), 2.into()]), vec![1, 2]),
    ] {
        let mut run = executor.run(module, "f");
        run.args = Vec::new();
        rmpv::encode::write_value(&mut run.args, &rmpv::Value::Array(vec![arg])).unwrap();
        let Outcome::Returned { value, .. } = executor.finish(run).await.0 else { panic!("no value") };
        let value = rmpv::decode::read_value(&mut value.as_slice()).unwrap();
        assert_eq!(value[0], rmpv::Value::Binary(expected));
    }
}

#[tokio::test]
async fn wrong_arguments_name_the_signature() {
    let mut executor = Executor::start().await;
    let fib = r#"(component
        (core module $m (func (export "fib") (param i32) (result i32) local.get 0))
        (core instance $i (instantiate $m))
        (func (export "fib-of") (param "num" u32) (result u32) (canon lift (core func $i "fib"))))"#;
    let module = executor.load(fib).await;
    let usage = "Usage: test.fib_of(num: u32) -> u32";
    let cases = [
        (json!(["abc"]), json!({}), "'num' must be a u32, got 'abc'"),
        (json!([-1]), json!({}), "'num' must be a u32 (0 to 4294967295), got -1"),
        (json!([]), json!({}), "'num' is missing"),
        (json!([1, 2]), json!({}), "it takes 1 positional argument, got 2"),
        (json!([1]), json!({"num": 1}), "'num' is given twice"),
        (json!([1]), json!({"mun": 1}), "it takes no 'mun'"),
    ];
    for (args, kwargs, why) in cases {
        let outcome = executor.call(module, "fib_of", &args, &kwargs).await;
        let line = format!("Passed invalid arguments to test.fib_of: {why}. {usage}");
        assert_failed(&outcome, FailKind::Arguments, &line);
    }
    for (args, kwargs) in [(json!([5]), json!({})), (json!([]), json!({"num": 5, "__pub_user": "root"}))] {
        assert_eq!(returned(&executor.call(module, "fib_of", &args, &kwargs).await), json!(5));
    }
    // The bytes are not even MessagePack.
    for (args, kwargs) in
        [(vec![], vec![0x80]), (vec![0x91], vec![0x80]), (vec![0x90], vec![0xc0]), (vec![0xc1], vec![0xc1])]
    {
        let mut run = executor.run(module, "fib_of");
        (run.args, run.kwargs) = (args, kwargs);
        let (outcome, _) = executor.finish(run).await;
        assert!(matches!(&outcome, Outcome::Failed { kind: FailKind::Arguments, .. }), "{outcome:?}");
    }
}

const DATA: &str = r#"(type $data' (record (field "msgpack" (list u8)))) (export $data "data" (type $data'))"#;

#[tokio::test]
async fn the_dynamic_form() {
    // The `result` is `ok` with the bytes of `kwargs`, or with those of the first of `args`.
    let kwargs = component(
        DATA,
        r#"(param "args" (list $data)) (param "kwargs" $data) (result (result $data (error string)))"#,
        r#"(func (export "f") (param i32 i32 i32 i32) (result i32)
               (i32.store8 (i32.const 0) (i32.const 0))
               (i32.store (i32.const 4) (local.get 2))
               (i32.store (i32.const 8) (local.get 3))
               i32.const 0)"#,
    );
    let first = kwargs
        .replace("(i32.store (i32.const 4) (local.get 2))", "(i32.store (i32.const 4) (i32.load (local.get 0)))")
        .replace(
            "(i32.store (i32.const 8) (local.get 3))",
            "(i32.store (i32.const 8) (i32.load offset=4 (local.get 0)))",
        );
    let mut executor = Executor::start().await;
    let (kwargs, first) = (executor.load(&kwargs).await, executor.load(&first).await);
    let keywords = json!({"a": [1, null], "__pub_user": "root"});
    assert_eq!(returned(&executor.call(kwargs, "f", &json!([1, 2]), &keywords).await), keywords);
    assert_eq!(returned(&executor.call(kwargs, "f", &json!([]), &json!({})).await), json!({}));
    let value = json!({"nested": {"list": [1, 2.5, "x"]}});
    assert_eq!(returned(&executor.call(first, "f", &json!([value, 2]), &json!({})).await), value);
    // 3 MB, far more than dynamic values could hold within the limit on host bytes.
    let large = json!("x".repeat(3_000_000));
    assert_eq!(returned(&executor.call(first, "f", &json!([large]), &json!({})).await), large);
}

#[tokio::test]
async fn static_shapes_return_what_dynamic_values_would() {
    let mut executor = Executor::start().await;
    let back = r#"(func (export "f") (param i32 i32) (result i32)
        (i32.store (i32.const 0) (local.get 0)) (i32.store (i32.const 4) (local.get 1)) i32.const 0)"#;
    let text = executor.load(&component("", r#"(param "x" string) (result string)"#, back)).await;
    assert_eq!(returned(&executor.call(text, "f", &json!(["größe"]), &json!({})).await), json!("größe"));
    assert_failed(
        &executor.call(text, "f", &json!([1]), &json!({})).await,
        FailKind::Arguments,
        "Passed invalid arguments to test.f: 'x' must be a string, got 1. Usage: test.f(x: string) -> string",
    );
    let data = executor.load(&component(DATA, r#"(param "x" $data) (result $data)"#, back)).await;
    assert_eq!(returned(&executor.call(data, "f", &json!([{"a": 1}]), &json!({})).await), json!({"a": 1}));
    let kwargs = executor.load(&component(DATA, r#"(param "kwargs" $data) (result $data)"#, back)).await;
    assert_eq!(returned(&executor.call(kwargs, "f", &json!([]), &json!({"b": 1})).await), json!({"b": 1}));
    assert_failed(
        &executor.call(kwargs, "f", &json!([1]), &json!({})).await,
        FailKind::Arguments,
        "Passed invalid arguments to test.f: it takes no positional arguments, got 1. Usage: test.f(**kwargs) -> data",
    );
}

/// `f` returns the error at 16, which has this type.
fn failing(types: &str, ty: &str, setup: &str) -> String {
    component(types, &format!("(result {ty})"), &format!(r#"(func (export "f") (result i32) {setup} i32.const 0)"#))
}

#[tokio::test]
async fn errors_of_functions_are_failed_returns() {
    let mut executor = Executor::start().await;
    let text = r#"(i32.store8 (i32.const 0) (i32.const 1))
        (i32.store (i32.const 4) (i32.const 16)) (i32.store (i32.const 8) (i32.const 8))
        (i64.store (i32.const 16) (i64.const 0x0a7365202c6f6e0a))"#;
    for ty in ["(result u32 (error string))", "(result (error string))"] {
        let module = executor.load(&failing("", ty, text)).await;
        let outcome = executor.call(module, "f", &json!([]), &json!({})).await;
        assert_failed(&outcome, FailKind::Function, "no, es");
    }
    let module = executor.load(&failing(DATA, "(result $data (error string))", text)).await;
    assert_failed(&executor.call(module, "f", &json!([]), &json!({})).await, FailKind::Function, "no, es");
    let record =
        r#"(type $e' (record (field "exit-code" u8) (field "why" (option string)))) (export $e "e" (type $e'))"#;
    let setup = "(i32.store8 (i32.const 0) (i32.const 1)) (i32.store8 (i32.const 4) (i32.const 7))";
    let module = executor.load(&failing(record, "(result u32 (error $e))", setup)).await;
    let outcome = executor.call(module, "f", &json!([]), &json!({})).await;
    assert_failed(&outcome, FailKind::Function, "{'exit_code': 7, 'why': None}");
    let plain = r#"(component
        (core module $m (func (export "f") (result i32) i32.const 1))
        (core instance $i (instantiate $m))
        (func (export "f") (result (result)) (canon lift (core func $i "f"))))"#;
    let module = executor.load(plain).await;
    let outcome = executor.call(module, "f", &json!([]), &json!({})).await;
    assert_failed(&outcome, FailKind::Function, "test.f failed and does not say why");
}

/// Sets a retcode, then returns ok or an error as its argument says.
const RETCODE: &str = r#"(component
    (import "brine:host/job@1.0.0" (instance $job (export "set-retcode" (func (param "code" s32)))))
    (core func $set (canon lower (func $job "set-retcode")))
    (core module $m
        (import "job" "set" (func $set (param i32)))
        (func (export "f") (param i32 i32) (result i32) (call $set (local.get 0)) local.get 1))
    (core instance $i (instantiate $m (with "job" (instance (export "set" (func $set))))))
    (func (export "f") (param "code" s32) (param "fail" bool) (result (result)) (canon lift (core func $i "f"))))"#;

#[tokio::test]
async fn the_retcode_is_what_was_set() {
    let mut executor = Executor::start().await;
    let module = executor.load(RETCODE).await;
    let cases = [(42, false, 42), (0, false, 0), (-1, false, -1), (42, true, 42), (0, true, 1)];
    for (code, fail, expected) in cases {
        let retcode = match executor.call(module, "f", &json!([code, fail]), &json!({})).await {
            Outcome::Returned { retcode, value } if !fail && value == pack(&Value::Null) => retcode,
            Outcome::Failed { retcode, kind: FailKind::Function, .. } if fail => retcode,
            other => panic!("{other:?}"),
        };
        assert_eq!(retcode, expected, "{code} {fail}");
    }
}

#[tokio::test]
async fn functions_of_interfaces_are_found_and_the_root_comes_first() {
    let wat = r#"(component
        (core module $m
            (func (export "one") (result i32) i32.const 1)
            (func (export "two") (result i32) i32.const 2))
        (core instance $i (instantiate $m))
        (func $one (result u8) (canon lift (core func $i "one")))
        (func $two (result u8) (canon lift (core func $i "two")))
        (instance $api (export "same" (func $two)) (export "only-here" (func $two)))
        (export "brine:test/api@1.0.0" (instance $api))
        (export "same" (func $one)))"#;
    let mut executor = Executor::start().await;
    let module = executor.load(wat).await;
    assert_eq!(returned(&executor.call(module, "same", &json!([]), &json!({})).await), json!(1));
    assert_eq!(returned(&executor.call(module, "only_here", &json!([]), &json!({})).await), json!(2));
    let outcome = executor.call(module, "only-here", &json!([]), &json!({})).await;
    let line = "'test.only-here' is not available. test has: only_here, same";
    assert_failed(&outcome, FailKind::Unknown, line);
}

#[tokio::test]
async fn a_return_without_a_value_is_none() {
    let mut executor = Executor::start().await;
    let (outcome, _) = executor.f(&crate::common::bare(r#"(func (export "f"))"#), Default::default()).await;
    assert_eq!(returned(&outcome), Value::Null);
}
