//! What a guest asks of all other interfaces that need a grant.

use brine_sandbox_wire::{
    ByteBuf, ConfigOp, DisksOp, EventsOp, FunctionsOp, HostOp, HttpOp, HttpRequest, MineOp, PillarOp, PolicyOp,
    ProgressOp, StatesOp, UsersOp,
};
use serde_json::{Value, json};

use super::{Case, Shape, case};
use crate::common::pack;

pub(super) fn cases() -> Vec<Case> {
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
