//! What a guest asks of `brine:host/files`.

use brine_sandbox_wire::{ByteBuf, FilesOp, HostOp, ListKind};
use serde_json::json;

use super::{Case, Shape, case};

pub(super) fn cases() -> Vec<Case> {
    let kinds =
        r#"(type $kind' (enum "files" "dirs" "empty-dirs" "symlinks")) (export "kind" (type $kind (eq $kind')))"#;
    let digest = r#"(type $digest' (record (field "hash-type" string) (field "hsum" string) (field "size" (option u64))))
        (export "digest" (type $digest (eq $digest')))"#;
    let list = Shape {
        declared: kinds,
        ty: r#"(param "saltenv" string) (param "prefix" (option string)) (param "kind" $kind)
            (result (result (list string) (error string)))"#,
        lowered: "i32 i32 i32 i32 i32 i32",
        own: (
            r#"(param "e" string) (param "p" (option string)) (param "k" u8)"#,
            "(tuple (result (list string) (error string)))",
        ),
    };
    let envs = Shape {
        declared: "",
        ty: "(result (result (list string) (error string)))",
        lowered: "",
        own: ("", "(tuple (result (list string) (error string)))"),
    };
    let hash = Shape {
        declared: digest,
        ty: r#"(param "path" string) (param "saltenv" string) (result (result (option $digest) (error string)))"#,
        lowered: "i32 i32 i32 i32",
        own: (
            r#"(param "p" string) (param "e" string)"#,
            "(tuple (result (option (tuple string string (option u64))) (error string)))",
        ),
    };
    let mode = Shape {
        declared: "",
        ty: r#"(param "path" string) (param "saltenv" string) (result (result (option u32) (error string)))"#,
        lowered: "i32 i32 i32 i32",
        own: (r#"(param "p" string) (param "e" string)"#, "(tuple (result (option u32) (error string)))"),
    };
    let read = Shape {
        declared: "",
        ty: r#"(param "path" string) (param "saltenv" string) (param "offset" u64) (param "length" u32)
            (result (result (option (list u8)) (error string)))"#,
        lowered: "i32 i32 i32 i32 i64 i32",
        own: (
            r#"(param "p" string) (param "e" string) (param "o" u64) (param "l" u32)"#,
            "(tuple (result (option string) (error string)))",
        ),
    };
    let cache = Shape {
        declared: "",
        ty: r#"(param "path" string) (param "saltenv" string) (result (result (option string) (error string)))"#,
        lowered: "i32 i32 i32 i32",
        own: (r#"(param "p" string) (param "e" string)"#, "(tuple (result (option string) (error string)))"),
    };
    let cache_all = Shape {
        declared: "",
        ty: r#"(param "paths" (list string)) (param "saltenv" string) (result (result (list (option string)) (error string)))"#,
        lowered: "i32 i32 i32 i32",
        own: (
            r#"(param "p" (list string)) (param "e" string)"#,
            "(tuple (result (list (option string)) (error string)))",
        ),
    };
    let hash_all = Shape {
        declared: digest,
        ty: r#"(param "paths" (list string)) (param "saltenv" string)
            (result (result (list (option $digest)) (error string)))"#,
        lowered: "i32 i32 i32 i32",
        own: (
            r#"(param "p" (list string)) (param "e" string)"#,
            "(tuple (result (list (option (tuple string string (option u64)))) (error string)))",
        ),
    };
    let push = Shape {
        declared: "",
        ty: r#"(param "path" (list string)) (param "offset" u64) (param "data" (list u8)) (param "size" u64)
            (result (result bool (error string)))"#,
        lowered: "i32 i32 i64 i32 i32 i64",
        own: (
            r#"(param "p" (list string)) (param "o" u64) (param "d" string) (param "s" u64)"#,
            "(tuple (result bool (error string)))",
        ),
    };
    let (path, saltenv) = ("app/x".to_owned(), "base".to_owned());
    let listed = |prefix: &str, kind| FilesOp::List { saltenv: "base".into(), prefix: prefix.into(), kind };
    let fetched = FilesOp::Read { path: path.clone(), saltenv: saltenv.clone(), offset: 3, length: 9 };
    let pushed =
        FilesOp::Push { path: vec!["a".into(), "b".into()], offset: 3, data: ByteBuf::from(b"xyz".to_vec()), size: 6 };
    vec![
        case(
            "files.list",
            &list,
            json!(["base", "app", 2]),
            HostOp::Files(listed("app", ListKind::EmptyDirs)),
            json!(["app/x"]),
            json!([{"ok": ["app/x"]}]),
        ),
        case(
            "files.list",
            &list,
            json!(["base", null, 0]),
            HostOp::Files(listed("", ListKind::Files)),
            json!([]),
            json!([{"ok": []}]),
        ),
        case("files.envs", &envs, json!([]), HostOp::Files(FilesOp::Envs), json!(["base"]), json!([{"ok": ["base"]}])),
        case(
            "files.hash",
            &hash,
            json!(["app/x", "base"]),
            HostOp::Files(FilesOp::Hash { path: path.clone(), saltenv: saltenv.clone() }),
            json!({"hash_type": "sha256", "hsum": "00", "size": 5}),
            json!([{"ok": ["sha256", "00", 5]}]),
        ),
        case(
            "files.read",
            &read,
            json!(["app/x", "base", 3, 9]),
            HostOp::Files(fetched.clone()),
            json!("content"),
            json!([{"ok": "content"}]),
        ),
        case(
            "files.read",
            &read,
            json!(["app/x", "base", 3, 9]),
            HostOp::Files(fetched),
            json!(null),
            json!([{"ok": null}]),
        ),
        case(
            "files.cache",
            &cache,
            json!(["app/x", "base"]),
            HostOp::Files(FilesOp::Cache { path, saltenv }),
            json!("/var/cache/x"),
            json!([{"ok": "/var/cache/x"}]),
        ),
        case(
            "files.cache-all",
            &cache_all,
            json!([["app/x", "none"], "base"]),
            HostOp::Files(FilesOp::CacheAll { paths: vec!["app/x".into(), "none".into()], saltenv: "base".into() }),
            json!(["/var/cache/x", null]),
            json!([{"ok": ["/var/cache/x", null]}]),
        ),
        case(
            "files.hash-all",
            &hash_all,
            json!([["app/x", "none"], "base"]),
            HostOp::Files(FilesOp::HashAll { paths: vec!["app/x".into(), "none".into()], saltenv: "base".into() }),
            json!([{"hash_type": "sha256", "hsum": "00", "size": 5}, null]),
            json!([{"ok": [["sha256", "00", 5], null]}]),
        ),
        case(
            "files.mode",
            &mode,
            json!(["app/x", "base"]),
            HostOp::Files(FilesOp::Mode { path: "app/x".into(), saltenv: "base".into() }),
            json!(0o755),
            json!([{"ok": 0o755}]),
        ),
        case(
            "files.push",
            &push,
            json!([["a", "b"], 3, "xyz", 6]),
            HostOp::Files(pushed),
            json!(true),
            json!([{"ok": true}]),
        ),
    ]
}
