//! replay, test: calls again from their recordings, without a host.

use std::fs;
use std::path::PathBuf;

use brine_recording::{HostCall, MAGIC, Recording};
use brine_sandbox::ByteBuf;

use crate::bench::Bench;
use crate::run::built;

/// A folder with a module of the standard ones, and the recording of one call.
struct Recorded {
    bench: Bench,
    file: String,
}

fn recorded(module: &str, words: &[&str]) -> Recorded {
    recorded_of(&built(&format!("{module}.wasm")), module, words)
}

fn recorded_of(content: &[u8], module: &str, words: &[&str]) -> Recorded {
    let bench = Bench::new();
    bench.write(&format!("{module}.wasm"), content);
    let file = format!("{module}.wasm");
    let all = [&["run", &file], words, &["--record", "calls"]].concat();
    let ended = bench.run_in(&bench.path(""), &all);
    assert_eq!(ended.code, 0, "{ended:?}");
    let files: Vec<PathBuf> = fs::read_dir(bench.path("calls")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert!(ended.err.contains("recorded: calls/"), "{ended:?}");
    let file = format!("calls/{}", file.file_name().unwrap().to_str().unwrap());
    Recorded { bench, file }
}

impl Recorded {
    fn read(&self) -> Recording {
        Recording::from_bytes(&self.bench.read(&self.file)).unwrap()
    }

    fn write(&self, recording: &Recording) {
        self.bench.write(&self.file, recording.to_bytes());
    }

    #[track_caller]
    fn bad(&self, content: &[u8], expect: &str) {
        self.bench.write("calls/bad.recording", content);
        let err = self.bench.bad("replay calls/bad.recording", 65);
        assert_eq!(err.trim_end(), format!("salt-module: calls/bad.recording {expect}"));
    }
}

#[test]
fn a_recorded_call_returns_the_same() {
    let it = recorded("disk", &["percent", "/", "--grant", "disks"]);
    let words = format!("replay {} --out json", it.file);
    let ended = it.bench.run(&words);
    assert!(ended.code == 0 && ended.out.contains("%\""), "{ended:?}");
    assert_eq!(ended.err, "The same as in the recording, with 1 call of the host.\n");
    let tested = it.bench.good("test calls");
    assert!(tested.ends_with(".recording  ok\n1 recording: 1 ok, 0 not\n"), "{tested}");
}

/// Directories, files and clocks: what WASI is asked is answered from the recording, and by no host.
#[test]
fn files_and_clocks_come_from_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(folder.join(name), name).unwrap();
    }
    let none = "network: [], pillar: [], files: [], functions: []";
    let grants = format!("{{filesystem: {{{0}: ro}}, changes: {{{0}: ro}}, {none}}}", folder.display());
    let it = recorded("file", &["readdir", folder.to_str().unwrap(), "--grant", &grants, "--out", "json"]);
    let names: Vec<String> = it.read().calls.into_iter().map(|call| call.name).collect();
    for expect in ["preopens.get-directories", "types.directory-entry-stream.read-directory-entry"] {
        assert!(names.contains(&format!("wasi:filesystem/{expect}")), "{names:?}");
    }
    fs::remove_dir_all(&folder).unwrap();
    let replayed = it.bench.good(&format!("replay {} --out json", it.file));
    for name in ["a", "b", "c"] {
        assert!(replayed.contains(&format!("\"{name}\"")), "{replayed}");
    }
    // What it waits for is over at once.
    let it = recorded("test", &["sleep", "5", "--grant", "{functions: [], config: true}"]);
    let began = std::time::Instant::now();
    assert_eq!(it.bench.good(&format!("replay {}", it.file)), "local:\n    True\n");
    assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
    let names: Vec<String> = it.read().calls.into_iter().map(|call| call.name).collect();
    assert!(names.contains(&"wasi:io/poll.pollable.block".to_owned()), "{names:?}");
}

#[test]
fn a_module_that_asks_something_else_is_told_where() {
    let it = recorded("grains", &["get", "os", "--grant", "{grains: true, static_grains: []}"]);
    // The recorded module asked for another grain, as if this one were changed.
    let mut other = it.read();
    let asked = other.calls[0].asked.clone().into_vec();
    let at = asked.windows(3).position(|window| window == b"\xa2os").unwrap() + 1;
    other.calls[0].asked[at] = b'x';
    it.write(&other);
    let ended = it.bench.run(&format!("replay {}", it.file));
    let name = &other.calls[0].name;
    assert_eq!(ended.code, 1, "{ended:?}");
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(lines[0], "call 1 of the host");
    assert!(lines[1].starts_with(&format!("  recorded: {name}(key='xs'")), "{ended:?}");
    assert!(lines[2].starts_with(&format!("  now:      {name}(key='os'")), "{ended:?}");
    let tested = it.bench.run("test calls");
    assert!(tested.code == 1 && tested.out.ends_with("1 recording: 0 ok, 1 not\n"), "{tested:?}");
    assert!(tested.out.contains("differs: call 1 of the host\n"), "{tested:?}");

    // It asked for more, or for less.
    let more = HostCall { name: "grains.items".into(), ..other.calls[0].clone() };
    other.calls = vec![it_asked(&asked, &other.calls[0]), more];
    it.write(&other);
    let ended = it.bench.run(&format!("replay {}", it.file));
    let expect = "call 2 of the host\n  recorded: grains.items(key='xs'";
    assert!(
        ended.code == 1 && ended.out.starts_with(expect) && ended.out.contains("now:      nothing, it returned '"),
        "{ended:?}"
    );
    other.calls.clear();
    it.write(&other);
    let ended = it.bench.run(&format!("replay {}", it.file));
    assert!(ended.code == 1 && ended.out.contains("  recorded: nothing, it returned '"), "{ended:?}");
}

fn it_asked(asked: &[u8], call: &HostCall) -> HostCall {
    HostCall { asked: ByteBuf::from(asked.to_vec()), ..call.clone() }
}

/// A module with `number`, which asks the clock these things in this order.
fn clock(asks: &[&str]) -> Vec<u8> {
    let asks: String = asks.iter().map(|ask| format!("(drop (call ${ask}))")).collect();
    brine_kit::wat::wasm(format!(
        r#"(component
            (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
                (export "now" (func (result u64)))
                (export "resolution" (func (result u64)))))
            (core func $now (canon lower (func $clock "now")))
            (core func $resolution (canon lower (func $clock "resolution")))
            (core module $m
                (import "clock" "now" (func $now (result i64)))
                (import "clock" "resolution" (func $resolution (result i64)))
                (func (export "number") (result i32) {asks} i32.const 7))
            (core instance $i (instantiate $m (with "clock" (instance
                (export "now" (func $now)) (export "resolution" (func $resolution))))))
            (func (export "number") (result u32) (canon lift (core func $i "number"))))"#
    ))
}

#[test]
fn a_changed_module_is_refused_unless_it_is_named_and_then_told_where_it_differs() {
    let it = recorded_of(&clock(&["now", "resolution", "now"]), "clock", &["number"]);
    assert_eq!(it.bench.good(&format!("replay {}", it.file)), "local:\n    7\n");
    // It changed in a way that asks for the same.
    let mut other = clock(&["now", "resolution", "now"]);
    brine_kit::wat::add_section(&mut other, "note", b"built again");
    it.bench.write("clock.wasm", &other);
    let refused = it.bench.bad(&format!("replay {}", it.file), 65);
    let name = format!("salt-module replay {} clock.wasm", it.file);
    assert!(refused.contains(" is a recording of another content than clock.wasm has (sha256 "), "{refused}");
    assert!(refused.trim_end().ends_with(&name), "it says how to go on: {refused}");
    it.bench.good(&format!("replay {} clock.wasm", it.file));
    assert!(it.bench.good("test calls").ends_with("  ok\n1 recording: 1 ok, 0 not\n"));
    // It asks for something else in the second place, and in a later one as well.
    it.bench.write("clock.wasm", clock(&["now", "now", "resolution"]));
    let ended = it.bench.run(&format!("replay {} clock.wasm", it.file));
    let expect = "call 2 of the host\n  recorded: wasi:clocks/monotonic-clock.resolution()\n  now:      \
                  wasi:clocks/monotonic-clock.now()\n";
    assert_eq!((ended.code, ended.out.as_str()), (1, expect), "{ended:?}");
    let tested = it.bench.run("test calls");
    assert!(tested.code == 1 && tested.out.contains("  differs: call 2 of the host\n"), "{tested:?}");
}

#[test]
fn another_return_is_a_difference() {
    let it = recorded("hello", &["world", "Ada"]);
    let mut other = it.read();
    other.end.outcome = brine_sandbox::Outcome::Returned { value: b"\xa3Bye".to_vec(), retcode: 0 };
    it.write(&other);
    let ended = it.bench.run(&format!("replay {}", it.file));
    let expect = "the return\n  recorded: it returned 'Bye'\n  now:      it returned 'Hello, Ada! This is local.'\n";
    assert_eq!((ended.code, ended.out.as_str()), (1, expect));
}

#[test]
fn a_recording_of_another_module_is_refused() {
    let it = recorded("hello", &["world"]);
    it.bench.write("disk.wasm", built("disk.wasm"));
    let err = it.bench.bad(&format!("replay {} disk.wasm", it.file), 65);
    assert!(err.contains(" is a recording of the module hello, and disk.wasm is the module disk"), "{err}");
    // The same name and another content: only if it is named.
    it.bench.write("hello.wasm", built("disk.wasm"));
    let err = it.bench.bad(&format!("replay {}", it.file), 65);
    assert!(err.contains(" is a recording of another content than hello.wasm has (sha256 "), "{err}");
    let ended = it.bench.run(&format!("replay {} hello.wasm", it.file));
    assert!(ended.code == 1 && ended.out.contains("now:      it failed: 'hello.world' is not available."), "{ended:?}");
    fs::remove_file(it.bench.path("hello.wasm")).unwrap();
    let err = it.bench.bad(&format!("replay {}", it.file), 66);
    assert!(err.contains("there is no hello.wasm beside it or in this folder"), "{err}");
    let err = it.bench.run("test calls --module disk.wasm");
    assert!(err.out.contains("  not run: there is no hello.wasm in this folder"), "{err:?}");
    assert!(
        err.code == 65 && err.err.contains("--module disk.wasm: no recording here is of the module disk"),
        "{err:?}"
    );
    it.bench.write("hello.wasm", "no module");
    let err = it.bench.bad(&format!("replay {} hello.wasm", it.file), 65);
    assert!(err.contains("hello.wasm is not WebAssembly"), "{err}");
}

#[test]
fn what_is_no_recording_is_refused() {
    let it = recorded("hello", &["world"]);
    let bytes = it.bench.read(&it.file);
    it.bad(b"", "is no recording of a call");
    it.bad(&built("hello.wasm"), "is no recording of a call");
    let cut = "is cut off: it ends after 0 calls of the host, without the end of the call";
    it.bad(&bytes[..bytes.len() - 1], cut);
    it.bad(&bytes[..MAGIC.len()], cut);
    it.bad(&[MAGIC, &[0xff; 8]].concat(), cut);
    // A file of 1 GiB that takes no place on the disk.
    let large = fs::File::create(it.bench.path("calls/large.recording")).unwrap();
    large.set_len(1 << 30).unwrap();
    drop(large);
    for begin in [&b""[..], MAGIC] {
        let mut file = fs::File::options().write(true).open(it.bench.path("calls/large.recording")).unwrap();
        std::io::Write::write_all(&mut file, begin).unwrap();
        let err = it.bench.bad("replay calls/large.recording", 65);
        assert!(err.contains("is larger than the 24 MiB that a recording may have"), "{err}");
    }
    // A folder with all of them is run to its end.
    let tested = it.bench.run("test calls");
    assert!(tested.code == 1 && tested.out.ends_with("3 recordings: 1 ok, 2 not\n"), "{tested:?}");
    assert_eq!(tested.out.matches("  not run: ").count(), 2, "{tested:?}");
    // A recording that names another function, or calls nothing of its kind.
    let mut other = it.read();
    other.head.module = "../../x".into();
    it.write(&other);
    let err = it.bench.bad(&format!("replay {} hello.wasm", it.file), 65);
    assert!(err.contains("is damaged"), "{err}");
    for (words, code, expect) in [
        ("replay none.recording", 66, "none.recording cannot be read"),
        ("replay calls", 66, "it is no file"),
        ("test none", 66, "none cannot be read"),
        ("test .", 66, ". has no recordings, NAME.recording"),
        ("replay calls/large.recording --out nope", 64, "there is no outputter nope"),
    ] {
        let err = it.bench.bad(words, code);
        assert!(err.contains(expect), "{words}: {err}");
    }
}
