//! Components made from WIT are read back, and other files are refused with a reason.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};

use brine_component::{ModuleInfo, ReadError, Rest, embed_docs, read, signature};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

/// Returns the folder of the host's interfaces.
fn host() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit")
}

/// Builds a component of the world in this WIT, whose functions do nothing.
fn component(wit: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    resolve.push_path(host()).unwrap();
    let package = resolve.push_str("test.wit", wit).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

fn signatures(info: &ModuleInfo) -> Vec<String> {
    info.functions.iter().map(|function| signature("m", function)).collect()
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

const EVERYTHING: &str = r#"
package brine:everything@1.2.3;

interface api {
    use brine:host/types@1.0.0.{data};
    record point { x: s32, y: s32 }
    variant shape { dot(point), none }
    /// Draws it.
    draw: func(shape: shape, on-top: option<bool>) -> result<point, string>;
    /// Hidden by the root's.
    ping: func();
    raw: func(args: list<data>, kwargs: data) -> result<data, string>;
}

/// Every kind of type there is.
///
/// Twice.
world everything {
    import brine:host/log@1.0.0;
    import brine:host/grains@1.0.0;
    use brine:host/types@1.0.0.{data};
    export api;
    export plain: interface {
        /// In an interface without a package.
        in-plain: func();
    }
    /// Answers.
    export ping: func() -> bool;
    export get-or-default: func(key: string, default: option<data>, bytes: list<u8>) -> data;
    export nested: func(a: list<tuple<string, option<list<u64>>>>, b: result<_, string>, c: result<u8>, d: result, e: char) -> tuple<f32, f64>;
    /// Not the rest: its type is another.
    export not-rest: func(args: list<string>, kwargs: list<u8>);
    export rest-in-the-middle: func(first: u8, args: list<data>, last: option<u8>, kwargs: data);
}
"#;

#[test]
fn functions_types_imports() {
    let info = read(&component(EVERYTHING)).unwrap();
    assert_eq!(
        signatures(&info),
        [
            "m.draw(shape: shape, on_top: option<bool>) -> result<point, string>",
            "m.get_or_default(key: string, default: option<data>, bytes: list<u8>) -> data",
            "m.in_plain()",
            "m.nested(a: list<tuple<string, option<list<u64>>>>, b: result<_, string>, c: result<u8>, d: result, e: char) -> \
             tuple<f32, f64>",
            "m.not_rest(args: list<string>, kwargs: list<u8>)",
            "m.ping() -> bool",
            "m.raw(*args, **kwargs) -> result<data, string>",
            "m.rest_in_the_middle(first: u8, *args, last: option<u8>, **kwargs)",
        ]
    );
    // `types` has no functions, so it is no import.
    assert_eq!(info.imports, ["brine:host/grains@1.0.0", "brine:host/log@1.0.0"]);
    assert_eq!(info.notes, ["brine:everything/api@1.2.3.ping is hidden by the export ping at the root"]);
    assert_eq!(info.function("draw").unwrap().export, ["brine:everything/api@1.2.3", "draw"]);
    assert_eq!(info.function("get_or_default").unwrap().export, ["get-or-default"]);
    let params = &info.function("rest_in_the_middle").unwrap().params;
    let rests: Vec<_> = params.iter().map(|param| (param.rest, param.optional)).collect();
    assert_eq!(rests, [(Rest::No, false), (Rest::Args, false), (Rest::No, true), (Rest::Kwargs, false)]);
    assert_eq!(info.doc, None);
    assert!(info.functions.iter().all(|function| function.doc.is_none()));
    info.check().unwrap();
    let json = serde_json::to_string(&info).unwrap();
    assert_eq!(serde_json::from_str::<ModuleInfo>(&json).unwrap(), info);
}

#[test]
fn docs_go_in_and_come_out() {
    let plain = component(EVERYTHING);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("everything.wit"), EVERYTHING).unwrap();
    let wit = [host(), dir.path().to_owned()];
    let with = embed_docs(&plain, &wit, Some("everything")).unwrap();
    let info = read(&with).unwrap();
    assert_eq!(info.doc.as_deref(), Some("Every kind of type there is.\n\nTwice."));
    let doc = |name: &str| info.function(name).unwrap().doc.clone();
    assert_eq!(doc("ping").as_deref(), Some("Answers."));
    assert_eq!(doc("draw").as_deref(), Some("Draws it."));
    assert_eq!(doc("in_plain").as_deref(), Some("In an interface without a package."));
    assert_eq!(doc("raw"), None);
    assert_eq!(signatures(&info), signatures(&read(&plain).unwrap()));
    // A second run changes nothing, and other tools decode the result.
    assert_eq!(embed_docs(&with, &wit, None).unwrap(), with);
    let decoded = wit_parser::decoding::decode(&with).unwrap();
    let world = decoded.resolve().worlds.iter().map(|(_, world)| world).find(|world| world.name == "root").unwrap();
    assert!(world.docs.contents.as_deref().unwrap().starts_with("Every kind"));

    let error = embed_docs(&plain, &wit, Some("other")).unwrap_err().to_string();
    assert!(error.starts_with("the WIT: "), "{error}");
    let error = embed_docs(b"text", &wit, None).unwrap_err().to_string();
    assert_eq!(error, "the component is not WebAssembly: it does not begin with \"\\0asm\"");
}

/// Whatever is in the sections of docs, the module is read.
#[test]
fn foreign_and_broken_docs_do_no_harm() {
    let plain = component("package a:b; world w { export ping: func(); }");
    for docs in [
        b"".as_slice(),
        b"\x01",
        b"\x09{}",
        b"\x01{",
        b"\x01[1]",
        br#"{"worlds":{"nowhere":{"docs":"x"}}}"#,
        b"\x01{\"worlds\":{\"elsewhere\":{\"func_exports\":{\"pong\":{\"docs\":\"x\"}}}},\"interfaces\":{\"gone\":{}}}",
        b"\x01\xff\xff",
    ] {
        let mut module = plain.clone();
        for _ in 0..2 {
            custom(&mut module, "package-docs", docs);
        }
        let info = read(&module).unwrap();
        assert_eq!(signatures(&info), ["m.ping()"], "{docs:?}");
    }
    // Other tools name the world by its own name.
    let mut module = plain.clone();
    custom(
        &mut module,
        "package-docs",
        b"\x01{\"worlds\":{\"w\":{\"docs\":\"D\",\"func_exports\":{\"ping\":{\"docs\":\"P\\u001b[31m\"}}}}}",
    );
    let info = read(&module).unwrap();
    assert_eq!(info.doc.as_deref(), Some("D"));
    assert_eq!(info.functions[0].doc.as_deref(), Some("P[31m"), "nothing that a terminal obeys");
    // An overlong text is truncated.
    let mut module = plain;
    let long = format!("\x01{{\"worlds\":{{\"w\":{{\"docs\":\"{}\"}}}}}}", "ä".repeat(1_000_000));
    custom(&mut module, "package-docs", long.as_bytes());
    let info = read(&module).unwrap();
    assert_eq!(info.doc.unwrap().len(), brine_component::MAX_DOC);
}

fn custom(module: &mut Vec<u8>, name: &str, data: &[u8]) {
    use wasm_encoder::Section;
    wasm_encoder::CustomSection { name: name.into(), data: data.into() }.append_to(module);
}

/// A section of docs at a deeper level, as in a component that was composed of others.
#[test]
fn docs_of_inner_components_are_left_alone() {
    let mut inner = component("package a:b; world w { export pong: func(); }");
    custom(&mut inner, "package-docs", b"\x01{\"worlds\":{\"w\":{\"docs\":\"inner\"}}}");
    let outer = component("package a:b; world w { export ping: func(); }");
    let mut composed = outer;
    use wasm_encoder::Section;
    wasm_encoder::RawSection { id: 4, data: &inner }.append_to(&mut composed);
    let info = read(&composed).unwrap();
    assert_eq!((signatures(&info), info.doc), (vec!["m.ping()".to_owned()], None));
}

#[test]
fn what_is_no_module_is_refused() {
    let good = component("package a:b; world w { export ping: func(); }");
    let wit = {
        let mut resolve = Resolve::default();
        let package = resolve.push_str("t.wit", "package a:b; world w { export ping: func(); }").unwrap();
        wit_component::encode(&resolve, package).unwrap()
    };
    for (bytes, expect) in [
        (b"".to_vec(), "is not WebAssembly: it does not begin with \"\\0asm\""),
        (b"(component)".to_vec(), "is not WebAssembly: it does not begin with \"\\0asm\""),
        (wat("(module)"), "is a core WebAssembly module, not a component"),
        (wat("(component)"), "exports no function"),
        (wit, "is a WIT package, not a component: it has no code"),
        (good[..good.len() / 2].to_vec(), "is not a valid component: "),
        (good[..7].to_vec(), "is not a valid component: "),
        (b"\0asm\x0d\0\x01\0\xff\xff\xff\xff\xff".to_vec(), "is not a valid component: "),
        (
            wat(r#"(component (import "m" (core module $m)) (export "m" (core module $m)))"#),
            "is not a valid component: ",
        ),
    ] {
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.starts_with(expect), "{error}");
        assert!(!error.contains('\n') && error.len() < 600, "{error}");
    }
}

/// Every file truncated at every length, and with every byte changed, is refused or read without a panic.
#[test]
fn no_bytes_panic() {
    let good = component(
        "package a:b; interface i { f: func(a: list<string>) -> option<u8>; } world w { export i; export ping: func(); }",
    );
    for length in 0..good.len() {
        // A cut between two sections can leave a valid component.
        let _ =
            std::panic::catch_unwind(|| read(&good[..length]).is_err()).unwrap_or_else(|_| panic!("cut at {length}"));
    }
    let mut refused = 0;
    for at in 0..good.len() {
        for bit in [0x01, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= bit;
            let result = std::panic::catch_unwind(|| read(&bad));
            refused += usize::from(result.unwrap_or_else(|_| panic!("byte {at} ^ {bit:#x}")).is_err());
        }
    }
    assert!(refused > good.len() / 2, "{refused} of {}", good.len() * 3);
}

#[test]
fn clashes_are_errors() {
    let error = read(&component(
        "package a:b; interface i { same-name: func(); } interface j { same-name: func(); } world w { export i; export j; }",
    ))
    .unwrap_err();
    assert_eq!(error.to_string(), "exports a:b/i.same-name and a:b/j.same-name, which would both be called same_name");
    assert!(matches!(error, ReadError::Clash { .. }));
}

#[test]
fn sizes_are_bounded() {
    let many: String = (0..=brine_component::MAX_FUNCTIONS).map(|n| format!("export x{n}: func();")).collect();
    let error = read(&component(&format!("package a:b; world w {{ {many} }}"))).unwrap_err().to_string();
    assert_eq!(error, "exports more than 1000 functions; the limit is 1000");

    let long = "a".repeat(brine_component::MAX_NAME + 1);
    let error =
        read(&component(&format!("package a:b; world w {{ export {long}: func(); }}"))).unwrap_err().to_string();
    assert_eq!(error, "has a function whose name has 201 bytes; the limit is 200");

    // Each step adds thirty bytes of WIT and doubles the text.
    let mut ty = "u8".to_owned();
    for _ in 0..9 {
        ty = format!("tuple<{ty}, {ty}>");
    }
    let error =
        read(&component(&format!("package a:b; world w {{ export f: func(a: {ty}); }}"))).unwrap_err().to_string();
    assert_eq!(error, "has a function f with a type that is too long to write down; the limit is 1000");
}

/// Each text continues a sentence that begins with the module's name.
#[test]
fn refusals_follow_a_module_s_name() {
    let long = "a".repeat(brine_component::MAX_NAME + 1);
    let params: String = (0..=brine_component::MAX_PARAMS).map(|n| format!("p{n}: u8,")).collect();
    for (wit, words) in [
        (
            format!("interface {long} {{ f: func(); }} world w {{ import {long}; export ping: func(); }}"),
            "has an import whose name has 205 bytes; the limit is 200",
        ),
        (
            format!("world w {{ export run: func({long}: u8); }}"),
            "has a parameter whose name has 201 bytes; the limit is 200",
        ),
        (
            format!("interface {long} {{ f: func(); }} world w {{ export {long}; }}"),
            "has an export whose name has 205 bytes; the limit is 200",
        ),
        (
            format!("world w {{ export run: func({params}); }}"),
            "has a function run with 65 parameters; the limit is 64",
        ),
    ] {
        assert_eq!(read(&component(&format!("package a:b; {wit}"))).unwrap_err().to_string(), words);
    }
    let described = |change: fn(&mut ModuleInfo)| {
        let mut info = read(&component("package a:b; world w { export ping: func(); }")).unwrap();
        change(&mut info);
        ModuleInfo::parse(&info.write().unwrap()).unwrap_err().to_string()
    };
    assert_eq!(described(|info| info.functions.clear()), "exports no function");
    assert_eq!(
        described(|info| info.functions[0].name = "a\x1b".into()),
        "is described with a name that is too long or has control characters; the limit is 200"
    );
}

/// Builds a component with this many exports of one function, which has 17 parameters with long names and types.
fn shared(exports: usize) -> Vec<u8> {
    let params: String = (0..40)
        .map(|n| {
            let ty = "(tuple ".to_owned() + &"string ".repeat(10) + ")";
            format!("(param \"{}-{n}\" {ty})", "a".repeat(150))
        })
        .collect();
    let exports: String = (0..exports).map(|n| format!("(export \"f{n}\" (func $f))")).collect();
    wat(&format!(
        r#"(component
            (core module $m
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 0)
                (func (export "f") (param i32)))
            (core instance $i (instantiate $m))
            (func $f {params}
                (canon lift (core func $i "f") (memory $i "memory") (realloc (func $i "realloc"))))
            {exports})"#
    ))
}

#[test]
fn types_are_said_once_and_not_once_a_use() {
    let component = shared(150);
    assert!(component.len() < 30_000, "{}", component.len());
    let info = read(&component).unwrap();
    assert_eq!(info.functions.len(), 150);
    let written = info.write().unwrap();
    assert!(written.len() < 100_000, "{} bytes", written.len());
    let parsed = ModuleInfo::parse(&written).unwrap();
    assert_eq!(parsed, info);
    // The texts are shared in memory too.
    let [first, second] = [&parsed.functions[0].params[3], &parsed.functions[1].params[3]];
    assert!(std::sync::Arc::ptr_eq(&first.ty, &second.ty) && std::sync::Arc::ptr_eq(&first.name, &second.name));
}

/// They are said once for each use where functions are listed.
#[test]
fn signatures_have_a_bound_together() {
    let component = shared(brine_component::MAX_FUNCTIONS);
    assert!(component.len() < 30_000, "{}", component.len());
    let why = read(&component).unwrap_err().to_string();
    let words = "has functions whose signatures take ";
    assert!(why.starts_with(words) && why.ends_with(" bytes together; the limit is 8388608"), "{why}");
    let mut info = read(&shared(100)).unwrap();
    info.functions = info.functions.iter().cycle().take(brine_component::MAX_FUNCTIONS).cloned().collect();
    assert!(ModuleInfo::parse(&info.write().unwrap()).unwrap_err().to_string().starts_with(words));
}

/// Descriptions that an escaped guest of the compiler may write.
#[test]
fn descriptions_that_are_none_are_refused() {
    let good = read(&component("package a:b; world w { export f: func(a: u8) -> string; }")).unwrap();
    let good = serde_json::to_value(&good).unwrap();
    type Change = fn(&mut serde_json::Value);
    let changes: [Change; 7] = [
        |it| it["functions"][0]["signature"] = 1.into(),
        |it| it["functions"][0]["signature"] = (-1).into(),
        |it| it["signatures"][0]["params"][0][1] = 2.into(),
        |it| it["signatures"][0]["result"] = u64::MAX.into(),
        |it| it["types"] = serde_json::json!([]),
        |it| it["signatures"] = serde_json::json!({}),
        // The earlier form.
        |it| {
            it["functions"][0]["params"] =
                serde_json::json!([{"name": "a", "ty": "u8", "optional": false, "rest": "no"}])
        },
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut bad = good.clone();
        change(&mut bad);
        if index == 6 {
            bad.as_object_mut().unwrap().remove("signatures");
        }
        let error = ModuleInfo::parse(&serde_json::to_vec(&bad).unwrap()).unwrap_err();
        assert_eq!(error, ReadError::Garbled, "{index}");
    }
    // A short form that expands to many parameters is refused before the expansion.
    let mut bad = good;
    let param = bad["signatures"][0]["params"][0].clone();
    bad["signatures"][0]["params"] = vec![param; 50_000].into();
    bad["functions"] = vec![bad["functions"][0].clone(); 1_000].into();
    let error = ModuleInfo::parse(&serde_json::to_vec(&bad).unwrap()).unwrap_err().to_string();
    assert_eq!(error, "is described with too many parameters; the limit is 64");
}

/// A resource's methods are no functions of the module. A resource that the host must provide is an import.
#[test]
fn resources() {
    let info = read(&component(
        "package a:b; interface i { resource r { constructor(); m: func(); s: static func(); } make: func() -> r; }
         world w { export i; }",
    ))
    .unwrap();
    assert_eq!(signatures(&info), ["m.make() -> r"]);
    assert_eq!(info.notes.len(), 3);
    let info = read(&component("package a:b; interface i { resource r; } world w { import i; export ping: func(); }"));
    let info = info.unwrap();
    assert!(info.imports.is_empty() || info.imports == ["a:b/i"], "{:?}", info.imports);
    // Imports of core modules and components: no host provides them, but the policy sees them.
    let imports = wat(r#"(component (import "code" (core module)) (import "f" (func))
            (core module $m (func (export "ping")))
            (core instance $i (instantiate $m))
            (func (export "ping") (canon lift (core func $i "ping"))))"#);
    assert_eq!(read(&imports).unwrap().imports, ["code", "f"]);
}
