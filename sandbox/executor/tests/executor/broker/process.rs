//! What a guest asks of `brine:host/process`.

use brine_sandbox_wire::{ByteBuf, HostOp, ProcessOp, ProcessRun};
use serde_json::json;

use super::{Case, Shape, case};

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

pub(super) fn cases() -> Vec<Case> {
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
