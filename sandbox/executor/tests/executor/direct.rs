//! Files and connections through the whole executor with its walls: the granted interfaces are linked, and the process
//! has the rights that they need.
#![allow(clippy::disallowed_methods, reason = "the test makes the files")]

use std::net::TcpListener;
use std::path::Path;

use crate::common::{Executor, STREAMS, assert_failed, pack, returned};
use brine_kit::wait::within;
use brine_sandbox_wire::{
    ByteBuf, Directory, FailKind, FromExecutor, HostOp, NetworkOp, NetworkRule, Outcome, PathAccess, Run, ToExecutor,
    Wanted,
};
use serde_json::{Value, json};

const FILE_ERRORS: &str = "access would-block already bad-descriptor busy deadlock quota exist file-too-large \
    illegal-byte-sequence in-progress interrupted invalid io is-directory loop too-many-links message-size name-too-long \
    no-device no-entry no-lock insufficient-memory insufficient-space not-directory not-empty not-recoverable unsupported \
    no-tty no-such-device overflow not-permitted pipe read-only invalid-seek text-file-busy cross-device";

const NETWORK_ERRORS: &str = "unknown access-denied not-supported invalid-argument out-of-memory timeout \
    concurrency-conflict not-in-progress would-block invalid-state new-socket-limit address-not-bindable address-in-use \
    remote-unreachable connection-refused connection-reset connection-aborted datagram-too-large name-unresolvable \
    temporary-resolver-failure permanent-resolver-failure";

fn names(list: &str) -> String {
    list.split_whitespace().map(|name| format!("\"{name}\" ")).collect()
}

/// The name of the error with this number.
fn name(list: &'static str, number: &Value) -> &'static str {
    list.split_whitespace().nth(usize::try_from(number.as_u64().unwrap()).unwrap()).unwrap()
}

const MEMORY: &str = r#"
    (core module $memory
        (memory (export "memory") 16)
        (global $top (mut i32) (i32.const 4096))
        (func (export "realloc") (param i32 i32 i32 i32) (result i32)
            (global.set $top (i32.and (i32.add (global.get $top) (i32.const 15)) (i32.const -16)))
            (global.get $top)
            (global.set $top (i32.add (global.get $top) (local.get 3)))))
    (core instance $memory (instantiate $memory))
    (alias core export $memory "memory" (core memory $mem))
    (alias core export $memory "realloc" (core func $realloc))"#;

/// `paths()` returns the directories' own paths. `read(path)` returns the first bytes of a file below the first
/// directory, `write(path)` writes "new" to a file and appends "er", `held(path, n)` opens a file n times.
fn files() -> String {
    let errors = names(FILE_ERRORS);
    format!(
        r#"(component
            {STREAMS}
            (alias export $streams "output-stream" (type $stream))
            (import "wasi:filesystem/types@0.2.0" (instance $types
                (export "descriptor" (type $descriptor (sub resource)))
                (alias outer 1 $stream (type $stream'))
                (export "output-stream" (type $s (eq $stream')))
                (type $path' (flags "symlink-follow")) (export "path-flags" (type $path (eq $path')))
                (type $open' (flags "create" "directory" "exclusive" "truncate"))
                (export "open-flags" (type $open (eq $open')))
                (type $flags' (flags "read" "write" "file-integrity-sync" "data-integrity-sync" "requested-write-sync"
                    "mutate-directory"))
                (export "descriptor-flags" (type $flags (eq $flags')))
                (type $code' (enum {errors})) (export "error-code" (type $code (eq $code')))
                (export "[method]descriptor.open-at" (func (param "self" (borrow $descriptor)) (param "path-flags" $path)
                    (param "path" string) (param "open-flags" $open) (param "flags" $flags)
                    (result (result (own $descriptor) (error $code)))))
                (export "[method]descriptor.read" (func (param "self" (borrow $descriptor)) (param "length" u64)
                    (param "offset" u64) (result (result (tuple (list u8) bool) (error $code)))))
                (export "[method]descriptor.write" (func (param "self" (borrow $descriptor)) (param "buffer" (list u8))
                    (param "offset" u64) (result (result u64 (error $code)))))
                (export "[method]descriptor.append-via-stream" (func (param "self" (borrow $descriptor))
                    (result (result (own $s) (error $code)))))))
            (alias export $types "descriptor" (type $descriptor))
            (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
                (alias outer 1 $descriptor (type $descriptor'))
                (export "descriptor" (type $d (eq $descriptor')))
                (export "get-directories" (func (result (list (tuple (own $d) string)))))))
            {MEMORY}
            (core func $open (canon lower (func $types "[method]descriptor.open-at")
                (memory (core memory $mem)) (realloc (core func $realloc))))
            (core func $read (canon lower (func $types "[method]descriptor.read")
                (memory (core memory $mem)) (realloc (core func $realloc))))
            (core func $write (canon lower (func $types "[method]descriptor.write")
                (memory (core memory $mem)) (realloc (core func $realloc))))
            (core func $append (canon lower (func $types "[method]descriptor.append-via-stream")
                (memory (core memory $mem))))
            (core func $send (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
                (memory (core memory $mem)) (realloc (core func $realloc))))
            (core func $directories (canon lower (func $preopens "get-directories")
                (memory (core memory $mem)) (realloc (core func $realloc))))
            (core module $m
                (import "host" "memory" (memory 1))
                (import "host" "open" (func $open (param i32 i32 i32 i32 i32 i32 i32)))
                (import "host" "read" (func $read (param i32 i64 i64 i32)))
                (import "host" "write" (func $write (param i32 i32 i32 i64 i32)))
                (import "host" "append" (func $append (param i32 i32)))
                (import "host" "send" (func $send (param i32 i32 i32 i32)))
                (import "host" "directories" (func $directories (param i32)))
                (data (i32.const 1024) "newer")
                ;; The first directory's number.
                (func $first (result i32)
                    (call $directories (i32.const 0))
                    (if (i32.eqz (i32.load (i32.const 4))) (then unreachable))
                    (i32.load (i32.load (i32.const 0))))
                ;; 0, the paths as (text)s at 2048, their number at 4
                (func (export "paths") (result i32) (local $n i32)
                    (call $directories (i32.const 0))
                    (block $done (loop $next
                        (br_if $done (i32.ge_u (local.get $n) (i32.load (i32.const 4))))
                        (i64.store
                            (i32.add (i32.const 2048) (i32.mul (local.get $n) (i32.const 8)))
                            (i64.load offset=4 (i32.add (i32.load (i32.const 0)) (i32.mul (local.get $n) (i32.const 12)))))
                        (local.set $n (i32.add (local.get $n) (i32.const 1)))
                        (br $next)))
                    (i32.store (i32.const 64) (i32.const 2048))
                    (i32.store (i32.const 68) (i32.load (i32.const 4)))
                    (i32.const 64))
                ;; A result<string, u8> at 64.
                (func (export "read") (param i32 i32) (result i32)
                    (call $open (call $first) (i32.const 1) (local.get 0) (local.get 1) (i32.const 0) (i32.const 1) (i32.const 32))
                    (i32.store (i32.const 64) (i32.load8_u (i32.const 32)))
                    (i32.store (i32.const 68) (i32.load8_u (i32.const 36)))
                    (if (i32.eqz (i32.load8_u (i32.const 32))) (then
                        (call $read (i32.load (i32.const 36)) (i64.const 100) (i64.const 0) (i32.const 48))
                        (i32.store (i32.const 64) (i32.load8_u (i32.const 48)))
                        (i64.store (i32.const 68) (i64.load (i32.const 52)))))
                    (i32.const 64))
                (func (export "write") (param i32 i32) (result i32) (local $file i32)
                    (call $open (call $first) (i32.const 1) (local.get 0) (local.get 1) (i32.const 9) (i32.const 2) (i32.const 32))
                    (i32.store (i32.const 64) (i32.load8_u (i32.const 32)))
                    (i32.store (i32.const 68) (i32.load8_u (i32.const 36)))
                    (if (i32.eqz (i32.load8_u (i32.const 32))) (then
                        (local.set $file (i32.load (i32.const 36)))
                        (call $write (local.get $file) (i32.const 1024) (i32.const 3) (i64.const 0) (i32.const 48))
                        (if (i32.load8_u (i32.const 48)) (then unreachable))
                        (call $append (local.get $file) (i32.const 48))
                        (if (i32.load8_u (i32.const 48)) (then unreachable))
                        (call $send (i32.load (i32.const 52)) (i32.const 1027) (i32.const 2) (i32.const 48))
                        (if (i32.load8_u (i32.const 48)) (then unreachable))
                        (i64.store (i32.const 68) (i64.const 0))))
                    (i32.const 64))
                (func (export "held") (param i32 i32 i32)
                    (local $dir i32)
                    (local.set $dir (call $first))
                    (loop $more
                        (call $open (local.get $dir) (i32.const 1) (local.get 0) (local.get 1) (i32.const 0) (i32.const 1) (i32.const 32))
                        (if (i32.load8_u (i32.const 32)) (then unreachable))
                        (local.set 2 (i32.sub (local.get 2) (i32.const 1)))
                        (br_if $more (local.get 2)))))
            (core instance $i (instantiate $m (with "host" (instance
                (export "memory" (memory $mem)) (export "open" (func $open)) (export "read" (func $read))
                (export "write" (func $write)) (export "append" (func $append)) (export "send" (func $send))
                (export "directories" (func $directories))))))
            (func (export "paths") (result (list string)) (canon lift (core func $i "paths") (memory (core memory $mem))))
            (func (export "read") (param "path" string) (result (tuple (result string (error u8))))
                (canon lift (core func $i "read") (memory (core memory $mem)) (realloc (core func $realloc))))
            (func (export "write") (param "path" string) (result (tuple (result string (error u8))))
                (canon lift (core func $i "write") (memory (core memory $mem)) (realloc (core func $realloc))))
            (func (export "held") (param "path" string) (param "times" u32)
                (canon lift (core func $i "held") (memory (core memory $mem)) (realloc (core func $realloc)))))"#
    )
}

/// With all interfaces for files, and these directories.
fn granted(mut run: Run, args: &Value, directories: &[(&Path, bool)]) -> Run {
    run.args = pack(args);
    run.imports_granted = vec!["wasi:filesystem/types".into(), "wasi:filesystem/preopens".into()];
    run.direct.directories = directories
        .iter()
        .map(|(path, writable)| Directory { path: path.to_str().unwrap().to_owned(), writable: *writable })
        .collect();
    run
}

#[tokio::test]
async fn files_within_the_walls() {
    let (fixed, writable) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (fixed, writable) = (fixed.path(), writable.path());
    std::fs::write(fixed.join("file"), "inside").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", fixed.join("out")).unwrap();
    let fifo = fixed.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap();
    let options = ["--read-only", fixed.to_str().unwrap(), "--read-write", writable.to_str().unwrap()];
    let mut executor = Executor::with(&options).await;
    let module = executor.load(&files()).await;

    let missing = fixed.join("missing");
    let run =
        granted(executor.run(module, "paths"), &json!([]), &[(fixed, false), (&missing, false), (writable, true)]);
    let paths = json!([fixed.to_str().unwrap(), writable.to_str().unwrap(), "/"]);
    assert_eq!(returned(&executor.finish(run).await.0), paths);
    let line = format!("the directory {} cannot be seen: No such file or directory (os error 2)", missing.display());
    assert_eq!(executor.log.pop().map(|(_, _, line)| line), Some(line));

    let run = granted(executor.run(module, "read"), &json!(["file"]), &[(fixed, false)]);
    assert_eq!(returned(&executor.finish(run).await.0), json!([{"ok": "inside"}]));
    for path in ["out", "fifo", "..", "../../etc/passwd", "/etc/passwd"] {
        let run = granted(executor.run(module, "read"), &json!([path]), &[(fixed, false)]);
        let outcome = returned(&executor.finish(run).await.0);
        assert_eq!(name(FILE_ERRORS, &outcome[0]["err"]), "not-permitted", "{path}");
    }
    let run = granted(executor.run(module, "write"), &json!(["file"]), &[(fixed, false)]);
    let outcome = returned(&executor.finish(run).await.0);
    assert_eq!(name(FILE_ERRORS, &outcome[0]["err"]), "not-permitted");
    assert_eq!(std::fs::read_to_string(fixed.join("file")).unwrap(), "inside");

    let run = granted(executor.run(module, "write"), &json!(["new"]), &[(writable, true)]);
    assert_eq!(returned(&executor.finish(run).await.0), json!([{"ok": ""}]));
    assert_eq!(std::fs::read_to_string(writable.join("new")).unwrap(), "newer");

    let run = granted(executor.run(module, "held"), &json!(["file", 101]), &[(fixed, false)]);
    let line = "test.held was stopped: its limit of 100 open files is used up";
    assert_failed(&executor.finish(run).await.0, FailKind::Host, line);
    // The files are closed with the call.
    for _ in 0..5 {
        let run = granted(executor.run(module, "held"), &json!(["file", 100]), &[(fixed, false)]);
        assert_eq!(returned(&executor.finish(run).await.0), Value::Null);
    }
    let open = std::fs::read_dir(format!("/proc/{}/fd", executor.child.id())).unwrap().count();
    // Those of the previous call may still be closing.
    assert!(open < 200, "{open}");
}

/// The kernel lets the process read and write the granted files, and nothing beside them.
#[tokio::test]
async fn files_without_their_directory_within_the_walls() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["read", "write", "beside"] {
        std::fs::write(path(name), name).unwrap();
    }
    let (fixed, writable) = (path("read"), path("write"));
    let options = ["--read-only", fixed.to_str().unwrap(), "--read-write", writable.to_str().unwrap()];
    let mut executor = Executor::with(&options).await;
    let module = executor.load(&files()).await;
    let mut ask = async |function: &str, name: &str, grants: &[(&Path, bool)]| {
        let below = path(name).to_str().unwrap().trim_start_matches('/').to_owned();
        let run = granted(executor.run(module, function), &json!([below]), grants);
        let outcome = returned(&executor.finish(run).await.0);
        let wanted = std::mem::take(&mut executor.refused).len();
        (outcome[0].clone(), wanted)
    };
    let both = [(&*fixed, false), (&*writable, true)];
    assert_eq!(ask("read", "read", &both).await, (json!({"ok": "read"}), 0));
    assert_eq!(ask("write", "write", &both).await, (json!({"ok": ""}), 0));
    assert_eq!(std::fs::read_to_string(&writable).unwrap(), "newer");
    for (function, name) in [("read", "beside"), ("write", "read"), ("write", "new")] {
        let (outcome, wanted) = ask(function, name, &both).await;
        assert!(outcome["err"].is_number() && wanted == 1, "{function} {name}: {outcome} {wanted}");
    }
    // The second wall holds where the first one would not: this call claims a file that its process was not given.
    let (outcome, _) = ask("read", "beside", &[(&path("beside"), false)]).await;
    if lacks_landlock() {
        return;
    }
    assert!(outcome["err"].is_number(), "{outcome}");
}

/// Whether this kernel confines no files.
fn lacks_landlock() -> bool {
    std::fs::read_to_string("/sys/kernel/security/lsm").is_ok_and(|all| !all.contains("landlock"))
}

#[tokio::test]
async fn a_file_that_may_not_grow_ends_nobody_else() {
    let writable = tempfile::tempdir().unwrap();
    let mut executor = Executor::with(&["--read-write", writable.path().to_str().unwrap()]).await;
    let module = executor.load(&files()).await;
    let pid = rustix::process::Pid::from_child(&executor.child);
    let none = rustix::process::Rlimit { current: Some(0), maximum: None };
    rustix::process::prlimit(Some(pid), rustix::process::Resource::Fsize, none).unwrap();
    let run = granted(executor.run(module, "write"), &json!(["new"]), &[(writable.path(), true)]);
    // The guest gives up at the error.
    let line = "test.write trapped: it gave up (`unreachable` was executed)";
    assert_failed(&executor.finish(run).await.0, FailKind::Trap, line);
    executor.still_works().await;
}

#[tokio::test]
async fn nothing_is_seen_where_a_function_has_no_directory() {
    let mut executor = Executor::start().await;
    let module = executor.load(&files()).await;
    let run = granted(executor.run(module, "paths"), &json!([]), &[]);
    assert_eq!(returned(&executor.finish(run).await.0), json!(["/"]));
    // Below that nothing is found, and the owner is told.
    let run = granted(executor.run(module, "read"), &json!(["etc/passwd"]), &[]);
    let outcome = returned(&executor.finish(run).await.0);
    assert_eq!(name(FILE_ERRORS, &outcome[0]["err"]), "not-permitted");
    let wanted = Wanted::Path { path: "/etc/passwd".into(), access: PathAccess::Read };
    assert_eq!(std::mem::take(&mut executor.refused), [wanted]);
    for granted in [&["wasi:filesystem/types"][..], &["wasi:filesystem/preopens"], &[]] {
        let mut run = executor.run(module, "paths");
        run.imports_granted = granted.iter().map(ToString::to_string).collect();
        let (outcome, _) = executor.finish(run).await;
        let Outcome::Failed { kind: FailKind::Refused, message, .. } = &outcome else { panic!("{outcome:?}") };
        assert!(message.starts_with("module 'test' was not granted wasi:filesystem/"), "{message}");
    }
}

/// `f(a, b, c, d, port)` connects, sends "hi" and returns the error's number, or 255 without an error. `g(name)`
/// returns the number of the name's addresses, or the error's number plus 100.
fn tcp() -> String {
    let errors = names(NETWORK_ERRORS);
    format!(
        r#"(component
            (import "wasi:io/poll@0.2.0" (instance $poll
                (export "pollable" (type $pollable (sub resource)))
                (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
            (alias export $poll "pollable" (type $pollable))
            {STREAMS}
            (alias export $streams "output-stream" (type $out))
            (alias export $streams "input-stream" (type $in))
            (import "wasi:sockets/network@0.2.0" (instance $network
                (export "network" (type (sub resource)))
                (type $code' (enum {errors})) (export "error-code" (type $code (eq $code')))
                (type $family' (enum "ipv4" "ipv6")) (export "ip-address-family" (type $family (eq $family')))
                (type $v4' (tuple u8 u8 u8 u8)) (export "ipv4-address" (type $v4 (eq $v4')))
                (type $v6' (tuple u16 u16 u16 u16 u16 u16 u16 u16)) (export "ipv6-address" (type $v6 (eq $v6')))
                (type $ip' (variant (case "ipv4" $v4) (case "ipv6" $v6))) (export "ip-address" (type $ip (eq $ip')))
                (type $s4' (record (field "port" u16) (field "address" $v4))) (export "ipv4-socket-address" (type $s4 (eq $s4')))
                (type $s6' (record (field "port" u16) (field "flow-info" u32) (field "address" $v6) (field "scope-id" u32)))
                (export "ipv6-socket-address" (type $s6 (eq $s6')))
                (type $address' (variant (case "ipv4" $s4) (case "ipv6" $s6)))
                (export "ip-socket-address" (type $address (eq $address')))))
            (alias export $network "network" (type $network-type))
            (alias export $network "error-code" (type $code))
            (alias export $network "ip-address-family" (type $family))
            (alias export $network "ip-address" (type $ip))
            (alias export $network "ip-socket-address" (type $address))
            (import "wasi:sockets/instance-network@0.2.0" (instance $instance
                (alias outer 1 $network-type (type $n')) (export "network" (type $n (eq $n')))
                (export "instance-network" (func (result (own $n))))))
            (import "wasi:sockets/tcp@0.2.0" (instance $tcp
                (export "tcp-socket" (type $socket (sub resource)))
                (alias outer 1 $network-type (type $n')) (export "network" (type $n (eq $n')))
                (alias outer 1 $in (type $i')) (export "input-stream" (type $i (eq $i')))
                (alias outer 1 $out (type $o')) (export "output-stream" (type $o (eq $o')))
                (alias outer 1 $pollable (type $p')) (export "pollable" (type $p (eq $p')))
                (alias outer 1 $code (type $c')) (export "error-code" (type $c (eq $c')))
                (alias outer 1 $address (type $a')) (export "ip-socket-address" (type $a (eq $a')))
                (export "[method]tcp-socket.start-connect" (func (param "self" (borrow $socket)) (param "network" (borrow $n))
                    (param "remote-address" $a) (result (result (error $c)))))
                (export "[method]tcp-socket.finish-connect" (func (param "self" (borrow $socket))
                    (result (result (tuple (own $i) (own $o)) (error $c)))))
                (export "[method]tcp-socket.subscribe" (func (param "self" (borrow $socket)) (result (own $p))))))
            (alias export $tcp "tcp-socket" (type $socket))
            (import "wasi:sockets/tcp-create-socket@0.2.0" (instance $create
                (alias outer 1 $socket (type $s')) (export "tcp-socket" (type $s (eq $s')))
                (alias outer 1 $code (type $c')) (export "error-code" (type $c (eq $c')))
                (alias outer 1 $family (type $f')) (export "ip-address-family" (type $f (eq $f')))
                (export "create-tcp-socket" (func (param "address-family" $f) (result (result (own $s) (error $c)))))))
            (import "wasi:sockets/ip-name-lookup@0.2.0" (instance $lookup
                (export "resolve-address-stream" (type $stream (sub resource)))
                (alias outer 1 $network-type (type $n')) (export "network" (type $n (eq $n')))
                (alias outer 1 $pollable (type $p')) (export "pollable" (type $p (eq $p')))
                (alias outer 1 $code (type $c')) (export "error-code" (type $c (eq $c')))
                (alias outer 1 $ip (type $a')) (export "ip-address" (type $a (eq $a')))
                (export "resolve-addresses" (func (param "network" (borrow $n)) (param "name" string)
                    (result (result (own $stream) (error $c)))))
                (export "[method]resolve-address-stream.resolve-next-address" (func (param "self" (borrow $stream))
                    (result (result (option $a) (error $c)))))
                (export "[method]resolve-address-stream.subscribe" (func (param "self" (borrow $stream)) (result (own $p))))))
            {MEMORY}
            (core func $block (canon lower (func $poll "[method]pollable.block")))
            (core func $network (canon lower (func $instance "instance-network")))
            (core func $create (canon lower (func $create "create-tcp-socket") (memory (core memory $mem))))
            (core func $start (canon lower (func $tcp "[method]tcp-socket.start-connect") (memory (core memory $mem))))
            (core func $finish (canon lower (func $tcp "[method]tcp-socket.finish-connect") (memory (core memory $mem))))
            (core func $subscribe (canon lower (func $tcp "[method]tcp-socket.subscribe")))
            (core func $send (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
                (memory (core memory $mem)) (realloc (core func $realloc))))
            (core func $resolve (canon lower (func $lookup "resolve-addresses")
                (memory (core memory $mem)) (realloc (core func $realloc))))
            (core func $next (canon lower (func $lookup "[method]resolve-address-stream.resolve-next-address")
                (memory (core memory $mem))))
            (core func $found (canon lower (func $lookup "[method]resolve-address-stream.subscribe")))
            (core module $m
                (import "host" "memory" (memory 1))
                (import "host" "block" (func $block (param i32)))
                (import "host" "network" (func $network (result i32)))
                (import "host" "create" (func $create (param i32 i32)))
                (import "host" "start"
                    (func $start (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
                (import "host" "finish" (func $finish (param i32 i32)))
                (import "host" "subscribe" (func $subscribe (param i32) (result i32)))
                (import "host" "send" (func $send (param i32 i32 i32 i32)))
                (import "host" "resolve" (func $resolve (param i32 i32 i32 i32)))
                (import "host" "next" (func $next (param i32 i32)))
                (import "host" "found" (func $found (param i32) (result i32)))
                (data (i32.const 1024) "hi")
                (func (export "f") (param i32 i32 i32 i32 i32) (result i32) (local $socket i32)
                    (call $create (i32.const 0) (i32.const 0))
                    (if (i32.load8_u (i32.const 0)) (then (return (i32.load8_u (i32.const 4)))))
                    (local.set $socket (i32.load (i32.const 4)))
                    (call $start (local.get $socket) (call $network) (i32.const 0) (local.get 4)
                        (local.get 0) (local.get 1) (local.get 2) (local.get 3)
                        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
                    (if (i32.load8_u (i32.const 0)) (then (return (i32.load8_u (i32.const 1)))))
                    (call $block (call $subscribe (local.get $socket)))
                    (call $finish (local.get $socket) (i32.const 0))
                    (if (i32.load8_u (i32.const 0)) (then (return (i32.load8_u (i32.const 4)))))
                    (call $send (i32.load (i32.const 8)) (i32.const 1024) (i32.const 2) (i32.const 0))
                    (if (i32.load8_u (i32.const 0)) (then unreachable))
                    (i32.const 255))
                (func (export "g") (param i32 i32) (result i32) (local $stream i32) (local $n i32)
                    (call $resolve (call $network) (local.get 0) (local.get 1) (i32.const 0))
                    (if (i32.load8_u (i32.const 0)) (then (return (i32.add (i32.const 100) (i32.load8_u (i32.const 4))))))
                    (local.set $stream (i32.load (i32.const 4)))
                    (call $block (call $found (local.get $stream)))
                    (loop $more
                        (call $next (local.get $stream) (i32.const 0))
                        (if (i32.load8_u (i32.const 0)) (then (return (i32.add (i32.const 100) (i32.load8_u (i32.const 2))))))
                        (if (i32.eqz (i32.load8_u (i32.const 2))) (then (return (local.get $n))))
                        (local.set $n (i32.add (local.get $n) (i32.const 1)))
                        (br $more))
                    unreachable))
            (core instance $i (instantiate $m (with "host" (instance
                (export "memory" (memory $mem)) (export "block" (func $block)) (export "network" (func $network))
                (export "create" (func $create)) (export "start" (func $start)) (export "finish" (func $finish))
                (export "subscribe" (func $subscribe)) (export "send" (func $send)) (export "resolve" (func $resolve))
                (export "next" (func $next)) (export "found" (func $found))))))
            (func (export "f") (param "a" u8) (param "b" u8) (param "c" u8) (param "d" u8) (param "port" u16) (result u8)
                (canon lift (core func $i "f")))
            (func (export "g") (param "name" string) (result u8)
                (canon lift (core func $i "g") (memory (core memory $mem)) (realloc (core func $realloc)))))"#
    )
}

fn networked(mut run: Run, args: &Value, rules: &[(&str, u16)]) -> Run {
    run.args = pack(args);
    let sockets = ["network", "instance-network", "tcp", "tcp-create-socket", "ip-name-lookup"];
    run.imports_granted = sockets.iter().map(|name| format!("wasi:sockets/{name}")).collect();
    let rule = |(host, port): &(&str, u16)| NetworkRule { host: (*host).to_owned(), ports: (*port, *port) };
    run.direct.network = rules.iter().map(rule).collect();
    run
}

#[tokio::test]
async fn a_connection_within_the_walls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut executor = Executor::with(&["--connect-port", &port.to_string()]).await;
    let module = executor.load(&tcp()).await;
    let to = json!([127, 0, 0, 1, port]);

    let accepted = tokio::task::spawn_blocking(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::read_to_string(&mut stream).unwrap()
    });
    let run = networked(executor.run(module, "f"), &to, &[("127.0.0.1", port)]);
    assert_eq!(returned(&executor.finish(run).await.0), json!(255));
    assert_eq!(within(accepted).await.unwrap(), "hi");

    // Another call in the same process has its own grants.
    for rules in [&[][..], &[("127.0.0.2", port)], &[("127.0.0.1", port ^ 1)], &[("localhost", port)]] {
        let run = networked(executor.run(module, "f"), &to, rules);
        let outcome = returned(&executor.finish(run).await.0);
        assert_eq!(name(NETWORK_ERRORS, &outcome), "access-denied", "{rules:?}");
    }
    let run = networked(executor.run(module, "f"), &json!([169, 254, 169, 254, port]), &[("127.0.0.1", port)]);
    assert_eq!(name(NETWORK_ERRORS, &returned(&executor.finish(run).await.0)), "access-denied");
}

#[tokio::test]
async fn a_name_is_the_minions_to_resolve() {
    let mut executor = Executor::with(&["--connect-port", "443"]).await;
    let module = executor.load(&tcp()).await;
    let run = networked(executor.run(module, "g"), &json!(["repo.example"]), &[("repo.example", 443)]);
    let call = run.call;
    executor.send(ToExecutor::Run(Box::new(run))).await;
    let FromExecutor::HostCall { request, op, .. } = executor.next().await else { panic!("it asks") };
    assert_eq!(op, HostOp::Network(NetworkOp::Resolve { name: "repo.example".into() }));
    let result = Ok(ByteBuf::from(pack(&json!(["192.0.2.1", "192.0.2.2", "127.0.0.1"]))));
    executor.send(ToExecutor::HostReply { call, request, result }).await;
    assert_eq!(returned(&executor.done(call).await.0), json!(2));
}
