//! The interfaces that need a grant: the requests to the minion and the results. In memory, a type has the layout of a
//! simpler one: a record that of the tuple of its fields, bytes that of text.
#![allow(clippy::unwrap_used, reason = "it is test code")]

mod common;

use brine_sandbox_wire::{
    ByteBuf, ConfigOp, DisksOp, EventsOp, FailKind, FilesOp, FromExecutor, FunctionsOp, HostError, HostOp, HttpOp,
    HttpRequest, ListKind, MineOp, Outcome, PillarOp, PolicyOp, ProcessOp, ProcessRun, ProgressOp, StatesOp,
    ToExecutor, UsersOp,
};
use common::{Executor, assert_failed, forward, pack, returned};
use serde_json::{Value, json};

struct Case {
    interface: &'static str,
    /// `interface.function`, for the types of the guest and for refusals.
    name: &'static str,
    wat: String,
    args: Value,
    op: HostOp,
    reply: Value,
    expected: Value,
    /// Whether the guest can handle an error of the minion.
    handles: bool,
}

/// `declared`: the declarations of the interface before the function. `ty`: the type of the function there; `own`: the
/// guest's parameters and result.
struct Shape {
    declared: &'static str,
    ty: &'static str,
    lowered: &'static str,
    own: (&'static str, &'static str),
}

fn case(name: &'static str, shape: &Shape, args: Value, op: HostOp, reply: Value, expected: Value) -> Case {
    let (interface, function) = name.split_once('.').unwrap();
    let types = format!(r#"{} (export "{function}" (func {}))"#, shape.declared, shape.ty);
    let wat = forward(interface, &types, function, shape.lowered, shape.own.0, shape.own.1);
    let handles = shape.ty.contains("(error");
    Case { interface, name, wat, args, op, reply, expected, handles }
}

async fn ask(executor: &mut Executor, case: &Case, reply: Result<Vec<u8>, HostError>) -> Outcome {
    executor.ask(&case.wat, case.interface, &case.args, &case.op, reply).await
}

const COMMAND: &str = r#"
    (type $command' (record (field "argv" (list string)) (field "cwd" (option string))
        (field "env" (list (tuple string string))) (field "clean-env" bool) (field "stdin" (option (list u8)))
        (field "timeout-ms" (option u64)) (field "run-as" (option string)) (field "group" (option string))
        (field "umask" (option u32)) (field "max-output" (option u64)) (field "merge-stderr" bool)))
    (export "command" (type $command (eq $command')))
    (type $finished' (record (field "pid" u32) (field "code" (option s32)) (field "signal" (option s32))
        (field "stdout" (list u8)) (field "stderr" (list u8)) (field "stdout-dropped" u64) (field "stderr-dropped" u64)
        (field "timed-out" bool)))
    (export "finished" (type $finished (eq $finished')))"#;

fn process() -> Vec<Case> {
    let run = Shape {
        declared: COMMAND,
        ty: r#"(param "command" $command) (result (result $finished (error string)))"#,
        lowered: "i32",
        own: (
            r#"(param "c" (tuple (list string) (option string) (list (tuple string string)) bool (option string) (option u64)
                (option string) (option string) (option u32) (option u64) bool))"#,
            "(tuple (result (tuple u32 (option s32) (option s32) string string u64 u64 bool) (error string)))",
        ),
    };
    let which = Shape {
        declared: "",
        ty: r#"(param "name" string) (result (result (option string) (error string)))"#,
        lowered: "i32 i32",
        own: (r#"(param "n" string)"#, "(tuple (result (option string) (error string)))"),
    };
    let shell = Shape {
        declared: "",
        ty: r#"(param "path" (option string)) (result (result (option string) (error string)))"#,
        lowered: "i32 i32 i32",
        own: (r#"(param "p" (option string))"#, "(tuple (result (option string) (error string)))"),
    };
    let command = ProcessRun {
        argv: vec!["ls".into(), "-l".into()],
        cwd: Some("/srv".into()),
        env: vec![("LANG".into(), "C".into())],
        clean_env: true,
        stdin: Some(ByteBuf::from(b"in".to_vec())),
        timeout_ms: Some(5_000),
        run_as: Some("nobody".into()),
        group: None,
        umask: Some(0o22),
        max_output: Some(100),
        merge_stderr: true,
    };
    vec![
        case(
            "process.run",
            &run,
            json!([[["ls", "-l"], "/srv", {"LANG": "C"}, true, "in", 5000, "nobody", null, 18, 100, true]]),
            HostOp::Process(ProcessOp::Run(Box::new(command))),
            json!({"pid": 7, "code": 2, "signal": null, "stdout": "out", "stderr": "", "stdout_dropped": 1, "stderr_dropped": 0,
                "timed_out": false}),
            json!([{"ok": [7, 2, null, "out", "", 1, 0, false]}]),
        ),
        case(
            "process.which",
            &which,
            json!(["ls"]),
            HostOp::Process(ProcessOp::Which { name: "ls".into() }),
            json!("/bin/ls"),
            json!([{"ok": "/bin/ls"}]),
        ),
        case(
            "process.shell",
            &shell,
            json!([null]),
            HostOp::Process(ProcessOp::Shell { path: None }),
            json!(null),
            json!([{"ok": null}]),
        ),
    ]
}

fn files() -> Vec<Case> {
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

fn others() -> Vec<Case> {
    let call = Shape {
        declared: "",
        ty: r#"(param "function" string) (param "args" (list $data)) (param "kwargs" $data) (result (result $data (error string)))"#,
        lowered: "i32 i32 i32 i32 i32 i32",
        own: (r#"(param "f" string) (param "a" (list $d)) (param "k" $d)"#, "(tuple (result $d (error string)))"),
    };
    let http = Shape {
        declared: r#"(type $request' (record (field "method" string) (field "url" string)
                (field "headers" (list (tuple string string))) (field "body" (option (list u8)))
                (field "timeout-ms" (option u64)) (field "max-body" (option u64)) (field "max-redirects" u32)))
            (export "request" (type $request (eq $request')))
            (type $response' (record (field "status" u16) (field "headers" (list (tuple string string)))
                (field "body" (list u8)) (field "url" string)))
            (export "response" (type $response (eq $response')))"#,
        ty: r#"(param "request" $request) (result (result $response (error string)))"#,
        lowered: "i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i32 i64 i32",
        own: (
            r#"(param "r" (tuple string string (list (tuple string string)) (option string) (option u64) (option u64) u32))"#,
            "(tuple (result (tuple u16 (list (tuple string string)) string string) (error string)))",
        ),
    };
    let items = Shape {
        declared: "",
        ty: "(result (result $data (error string)))",
        lowered: "",
        own: ("", "(tuple (result $d (error string)))"),
    };
    let get = Shape {
        declared: "",
        ty: r#"(param "key" string) (param "delimiter" (option string)) (result (result (option $data) (error string)))"#,
        lowered: "i32 i32 i32 i32 i32",
        own: (r#"(param "k" string) (param "d" (option string))"#, "(tuple (result (option $d) (error string)))"),
    };
    let put = |name: &'static str| Shape {
        declared: "",
        ty: match name {
            "tag" => r#"(param "tag" string) (param "data" $data) (result (result (error string)))"#,
            _ => r#"(param "name" string) (param "data" $data) (result (result (error string)))"#,
        },
        lowered: "i32 i32 i32 i32",
        own: (r#"(param "n" string) (param "d" $d)"#, "(tuple (result (error string)))"),
    };
    let report = Shape {
        declared: "",
        ty: r#"(param "value" $data) (result (result (error string)))"#,
        lowered: "i32 i32",
        own: (r#"(param "d" $d)"#, "(tuple (result (error string)))"),
    };
    let delete = Shape {
        declared: "",
        ty: r#"(param "name" string) (result (result (error string)))"#,
        lowered: "i32 i32",
        own: (r#"(param "n" string)"#, "(tuple (result (error string)))"),
    };
    let name = |what: &'static str| Shape {
        declared: "",
        ty: match what {
            "uid" => r#"(param "uid" u32) (result (option string))"#,
            _ => r#"(param "gid" u32) (result (option string))"#,
        },
        lowered: "i32",
        own: (r#"(param "n" u32)"#, "(option string)"),
    };
    let account = Shape {
        declared: r#"(type $account' (record (field "uid" u32) (field "gid" u32)))
            (export "account" (type $account (eq $account')))"#,
        ty: r#"(param "name" string) (result (option $account))"#,
        lowered: "i32 i32",
        own: (r#"(param "n" string)"#, "(option (tuple u32 u32))"),
    };
    let number = Shape {
        declared: "",
        ty: r#"(param "name" string) (result (option u32))"#,
        lowered: "i32 i32",
        own: (r#"(param "n" string)"#, "(option u32)"),
    };
    let use_pillar = Shape {
        declared: "",
        ty: r#"(param "pillar" $data) (result (result (error string)))"#,
        lowered: "i32 i32",
        own: (r#"(param "d" $d)"#, "(tuple (result (error string)))"),
    };
    let mounts = Shape {
        declared: r#"(type $mount' (record (field "device" string) (field "mount-point" string) (field "fstype" string)
                (field "options" (list string)) (field "device-number" u64)))
            (export "mount" (type $mount (eq $mount')))"#,
        ty: "(result (result (list $mount) (error string)))",
        lowered: "",
        own: ("", "(tuple (result (list (tuple string string string (list string) u64)) (error string)))"),
    };
    let usage = Shape {
        declared: r#"(type $space' (record (field "block-size" u64) (field "blocks" u64) (field "blocks-free" u64)
                (field "blocks-available" u64) (field "inodes" u64) (field "inodes-free" u64)))
            (export "space" (type $space (eq $space')))"#,
        ty: r#"(param "mount-point" string) (result (result $space (error string)))"#,
        lowered: "i32 i32",
        own: (r#"(param "m" string)"#, "(tuple (result (tuple u64 u64 u64 u64 u64 u64) (error string)))"),
    };
    let file_system = r#"(type $mount' (record (field "device" string) (field "mount-point" string) (field "fstype" string)
                (field "options" (list string)) (field "device-number" u64)))
            (export "mount" (type $mount (eq $mount')))
            (type $space' (record (field "block-size" u64) (field "blocks" u64) (field "blocks-free" u64)
                (field "blocks-available" u64) (field "inodes" u64) (field "inodes-free" u64)))
            (export "space" (type $space (eq $space')))
            (type $fs' (record (field "mount" $mount) (field "space" $space)))
            (export "file-system" (type $fs (eq $fs')))"#;
    let file_systems = Shape {
        declared: file_system,
        ty: "(result (result (list $fs) (error string)))",
        lowered: "",
        own: (
            "",
            "(tuple (result (list (tuple (tuple string string string (list string) u64) (tuple u64 u64 u64 u64 u64 u64)))
                (error string)))",
        ),
    };
    let file_system = Shape {
        declared: file_system,
        ty: r#"(param "mount-point" string) (result (result $fs (error string)))"#,
        lowered: "i32 i32",
        own: (
            r#"(param "m" string)"#,
            "(tuple (result (tuple (tuple string string string (list string) u64) (tuple u64 u64 u64 u64 u64 u64))
                (error string)))",
        ),
    };
    let all = Shape { declared: "", ty: "(result $data)", lowered: "", own: ("", "$d") };
    let show = Shape {
        declared: "",
        ty: r#"(param "name" string) (result (option $data))"#,
        lowered: "i32 i32",
        own: (r#"(param "n" string)"#, "(option $d)"),
    };
    let decide = Shape {
        declared: "",
        ty: r#"(param "name" string) (result (result $data (error string)))"#,
        lowered: "i32 i32",
        own: (r#"(param "n" string)"#, "(tuple (result $d (error string)))"),
    };
    let change = Shape { ty: r#"(param "line" string) (result (result $data (error string)))"#, ..decide };
    let approve = Shape {
        declared: "",
        ty: r#"(param "name" string) (param "sha256" string) (result (result $data (error string)))"#,
        lowered: "i32 i32 i32 i32",
        own: (r#"(param "n" string) (param "s" string)"#, "(tuple (result $d (error string)))"),
    };
    let bytes = |value: &Value| ByteBuf::from(pack(value));
    let request = HttpRequest {
        method: "PUT".into(),
        url: "https://repo.example/".into(),
        headers: vec![("accept".into(), "*/*".into())],
        body: Some(ByteBuf::from(b"body".to_vec())),
        timeout_ms: Some(1),
        max_body: None,
        max_redirects: 3,
    };
    let called = FunctionsOp::Call {
        function: "test.echo".into(),
        args: bytes(&json!(["a", 1])),
        kwargs: bytes(&json!({"b": null})),
        written_left: 256 << 20,
        new_files_left: 10_000,
    };
    let on_root = json!({
        "mount": {"device": "/dev/vda", "mount_point": "/", "fstype": "ext4", "options": ["rw"], "device_number": 64768},
        "space": {"block_size": 4096, "blocks": 5, "blocks_free": 4, "blocks_available": 3, "inodes": 2, "inodes_free": 1},
    });
    vec![
        case(
            "functions.call",
            &call,
            json!(["test.echo", ["a", 1], {"b": null}]),
            HostOp::Functions(called.clone()),
            json!({"value": {"x": 1}, "retcode": 0, "success": true}),
            json!([{"ok": {"x": 1}}]),
        ),
        case(
            "functions.call",
            &call,
            json!(["test.echo", ["a", 1], {"b": null}]),
            HostOp::Functions(called),
            json!({"value": "it went wrong", "retcode": 1, "success": false}),
            json!([{"err": "it went wrong"}]),
        ),
        case(
            "http.send",
            &http,
            json!([["PUT", "https://repo.example/", {"accept": "*/*"}, "body", 1, null, 3]]),
            HostOp::Http(HttpOp::Request(Box::new(request))),
            json!({"status": 200, "headers": [["a", "b"]], "body": "answer", "url": "https://repo.example/x"}),
            json!([{"ok": [200, {"a": "b"}, "answer", "https://repo.example/x"]}]),
        ),
        case(
            "pillar.items",
            &items,
            json!([]),
            HostOp::Pillar(PillarOp::Items),
            json!({"deploy": 1}),
            json!([{"ok": {"deploy": 1}}]),
        ),
        case(
            "pillar.fetch",
            &items,
            json!([]),
            HostOp::Pillar(PillarOp::Fetch),
            json!({"deploy": 2}),
            json!([{"ok": {"deploy": 2}}]),
        ),
        case(
            "pillar.get",
            &get,
            json!(["a:b", null]),
            HostOp::Pillar(PillarOp::Get { key: "a:b".into(), delimiter: None }),
            json!(null),
            json!([{"ok": null}]),
        ),
        case(
            "events.fire",
            &put("tag"),
            json!(["mine/x", {"a": 1}]),
            HostOp::Events(EventsOp::Fire { tag: "mine/x".into(), data: bytes(&json!({"a": 1})) }),
            json!(true),
            json!([{"ok": null}]),
        ),
        case(
            "mine.publish",
            &put("name"),
            json!(["network", ["10.0.0.1"]]),
            HostOp::Mine(MineOp::Publish { name: "network".into(), data: bytes(&json!(["10.0.0.1"])) }),
            json!(true),
            json!([{"ok": null}]),
        ),
        case(
            "progress.report",
            &report,
            json!([{"done": 5}]),
            HostOp::Progress(ProgressOp::Report { value: bytes(&json!({"done": 5})) }),
            json!(true),
            json!([{"ok": null}]),
        ),
        case(
            "mine.delete",
            &delete,
            json!(["network"]),
            HostOp::Mine(MineOp::Delete { name: "network".into() }),
            json!(true),
            json!([{"ok": null}]),
        ),
        case(
            "metadata.user-name",
            &name("uid"),
            json!([5]),
            HostOp::Users(UsersOp::UserName { uid: 5 }),
            json!("games"),
            json!("games"),
        ),
        case(
            "metadata.group-name",
            &name("gid"),
            json!([5]),
            HostOp::Users(UsersOp::GroupName { gid: 5 }),
            json!(null),
            json!(null),
        ),
        case(
            "metadata.find-user",
            &account,
            json!(["games"]),
            HostOp::Users(UsersOp::Account { user: "games".into() }),
            json!([5, 60]),
            json!([5, 60]),
        ),
        case(
            "metadata.find-group",
            &number,
            json!(["none"]),
            HostOp::Users(UsersOp::GroupId { group: "none".into() }),
            json!(null),
            json!(null),
        ),
        case(
            "config.items",
            &all,
            json!([]),
            HostOp::Config(ConfigOp::Items),
            json!({"id": "m1"}),
            json!({"id": "m1"}),
        ),
        case(
            "states.use-pillar",
            &use_pillar,
            json!([{"a": 1}]),
            HostOp::States(StatesOp::UsePillar { pillar: bytes(&json!({"a": 1})) }),
            json!(null),
            json!([{"ok": null}]),
        ),
        case(
            "disks.mounts",
            &mounts,
            json!([]),
            HostOp::Disks(DisksOp::Mounts),
            json!([{"device": "/dev/vda", "mount_point": "/", "fstype": "ext4", "options": ["rw"], "device_number": 64768}]),
            json!([{"ok": [["/dev/vda", "/", "ext4", ["rw"], 64768]]}]),
        ),
        case(
            "disks.usage",
            &usage,
            json!(["/"]),
            HostOp::Disks(DisksOp::Usage { mount_point: "/".into() }),
            json!({"block_size": 4096, "blocks": 5, "blocks_free": 4, "blocks_available": 3, "inodes": 2, "inodes_free": 1}),
            json!([{"ok": [4096, 5, 4, 3, 2, 1]}]),
        ),
        case(
            "disks.file-systems",
            &file_systems,
            json!([]),
            HostOp::Disks(DisksOp::FileSystems),
            json!([on_root]),
            json!([{"ok": [[["/dev/vda", "/", "ext4", ["rw"], 64768], [4096, 5, 4, 3, 2, 1]]]}]),
        ),
        case(
            "disks.file-system-at",
            &file_system,
            json!(["/"]),
            HostOp::Disks(DisksOp::FileSystemAt { mount_point: "/".into() }),
            on_root,
            json!([{"ok": [["/dev/vda", "/", "ext4", ["rw"], 64768], [4096, 5, 4, 3, 2, 1]]}]),
        ),
        case("policy.list", &all, json!([]), HostOp::Policy(PolicyOp::List), json!({"test": {}}), json!({"test": {}})),
        case(
            "policy.check",
            &all,
            json!([]),
            HostOp::Policy(PolicyOp::Check),
            json!({"walls": []}),
            json!({"walls": []}),
        ),
        case(
            "policy.diff",
            &decide,
            json!(["mine"]),
            HostOp::Policy(PolicyOp::Diff { name: "mine".into() }),
            json!({"name": "mine"}),
            json!([{"ok": {"name": "mine"}}]),
        ),
        case(
            "policy.approve",
            &approve,
            json!(["mine", "00ff"]),
            HostOp::Policy(PolicyOp::Approve { name: "mine".into(), sha256: "00ff".into() }),
            json!({"name": "mine"}),
            json!([{"ok": {"name": "mine"}}]),
        ),
        case(
            "policy.refusals",
            &all,
            json!([]),
            HostOp::Policy(PolicyOp::Refusals),
            json!([{"what": "x"}]),
            json!([{"what": "x"}]),
        ),
        case(
            "policy.grant",
            &change,
            json!(["cmd: {grains: true}"]),
            HostOp::Policy(PolicyOp::Grant { line: "cmd: {grains: true}".into() }),
            json!({"diff": ""}),
            json!([{"ok": {"diff": ""}}]),
        ),
        case(
            "policy.revoke",
            &change,
            json!(["cmd: {grains: true}"]),
            HostOp::Policy(PolicyOp::Revoke { line: "cmd: {grains: true}".into() }),
            json!({"diff": ""}),
            json!([{"ok": {"diff": ""}}]),
        ),
        case(
            "policy.rollback",
            &decide,
            json!(["mine"]),
            HostOp::Policy(PolicyOp::Rollback { name: "mine".into() }),
            json!({"name": "mine"}),
            json!([{"ok": {"name": "mine"}}]),
        ),
        case(
            "policy.show",
            &show,
            json!(["none"]),
            HostOp::Policy(PolicyOp::Show { name: "none".into() }),
            json!(null),
            json!(null),
        ),
    ]
}

fn cases() -> Vec<Case> {
    [process(), files(), others()].into_iter().flatten().collect()
}

#[tokio::test]
async fn what_guests_ask_and_get() {
    let mut executor = Executor::start().await;
    for case in cases() {
        let outcome = ask(&mut executor, &case, Ok(pack(&case.reply))).await;
        assert_eq!(returned(&outcome), case.expected, "{}", case.name);
    }
}

#[tokio::test]
async fn a_failure_is_the_guests_to_handle_and_a_refusal_ends_it_with_its_whole_text() {
    let mut executor = Executor::start().await;
    let refusal = format!("no; the owner of this host grants it by this line {} test: {{…}}", "x".repeat(1_000));
    for case in cases() {
        let outcome = ask(&mut executor, &case, Err(HostError::Failed("it went wrong".into()))).await;
        let ended = format!("test.f was stopped: {} failed: it went wrong", case.name);
        match case.handles {
            true => assert_eq!(returned(&outcome), json!([{"err": "it went wrong"}]), "{}", case.name),
            false => assert_failed(&outcome, FailKind::Host, &ended),
        }
        let outcome = ask(&mut executor, &case, Err(HostError::Denied(refusal.clone()))).await;
        assert_failed(&outcome, FailKind::Host, &format!("test.f was stopped: {} was refused: {refusal}", case.name));
    }
}

#[tokio::test]
async fn answers_of_another_shape_end_the_guest() {
    let mut executor = Executor::start().await;
    for case in cases() {
        // The results of these are not checked.
        if matches!(case.op, HostOp::Events(_) | HostOp::Mine(_) | HostOp::Progress(_) | HostOp::States(_)) {
            continue;
        }
        for reply in [vec![0xc1], vec![], vec![0xc0, 0xc0], pack(&json!(1.5)), pack(&json!({"pid": "x"}))] {
            let whole = reply.len() > 2;
            match ask(&mut executor, &case, Ok(reply)).await {
                Outcome::Failed { kind: FailKind::Host, message, .. } => {
                    assert!(message.contains("the minion's answer"), "{message}");
                }
                Outcome::Returned { .. }
                    if whole && matches!(case.op, HostOp::Config(_) | HostOp::Pillar(_) | HostOp::Policy(_)) => {}
                other => panic!("{}: {other:?}", case.name),
            }
        }
    }
}

#[tokio::test]
async fn an_answer_is_bounded() {
    let mut executor = Executor::start().await;
    let case = files().remove(4);
    let module = executor.load(&case.wat).await;
    let mut run = executor.run(module, "f");
    (run.args, run.imports_granted) = (pack(&case.args), vec!["brine:host/files".into()]);
    run.limits.host_bytes = 1 << 20;
    let call = run.call;
    executor.send(ToExecutor::Run(Box::new(run))).await;
    let FromExecutor::HostCall { request, .. } = executor.next().await else { panic!("it asks") };
    let result = Ok(ByteBuf::from(pack(&json!("x".repeat(1 << 20)))));
    executor.send(ToExecutor::HostReply { call, request, result }).await;
    let line = "test.f was stopped: files.read has an answer of more than its limit of 1 MiB";
    assert_failed(&executor.done(call).await.0, FailKind::Host, line);
}

#[tokio::test]
async fn what_is_no_dict_or_value_is_not_sent() {
    let mut executor = Executor::start().await;
    let fire = others().into_iter().find(|case| case.interface == "events").expect("there is one");
    let module = executor.load(&fire.wat).await;
    let mut run = executor.run(module, "f");
    run.args = pack(&json!(["tag", [1]]));
    run.imports_granted = vec!["brine:host/events".into()];
    let text = "the data of an event is a dict with text for keys: the value has another type";
    assert_eq!(returned(&executor.finish(run).await.0), json!([{"err": text}]));
}

#[tokio::test]
async fn nothing_is_there_without_its_grant() {
    let mut executor = Executor::start().await;
    for case in cases() {
        let module = executor.load(&case.wat).await;
        let mut run = executor.run(module, "f");
        run.args = pack(&case.args);
        // All except one.
        let all = [
            "process",
            "functions",
            "files",
            "http",
            "pillar",
            "events",
            "mine",
            "metadata",
            "disks",
            "policy",
            "progress",
            "config",
            "states",
        ];
        let others = all.into_iter().filter(|name| *name != case.interface);
        run.imports_granted = others.map(|name| format!("brine:host/{name}@1.0.0")).collect();
        let line = format!("module 'test' was not granted brine:host/{}, which it imports", case.interface);
        assert_failed(&executor.finish(run).await.0, FailKind::Refused, &line);
    }
}
