//! keygen, sign, verify.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use brine_kit::files::set_mode;

use crate::bench::Bench;

const WIT: &str =
    "package brine:deploy@1.2.0; interface functions { ping: func() -> bool; } world deploy { export functions; }";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.component("deploy", WIT);
    bench.good("keygen -o ops --no-password");
    bench
}

#[test]
fn signed_is_verified_and_everything_else_says_what_is_wrong() {
    let bench = bench();
    bench.good("keygen -o dev --no-password");
    let unsigned = bench.bad("verify deploy.wasm --key ops.pub", 1);
    assert!(unsigned.contains("deploy.wasm is not signed: there is no deploy.wasm.minisig"), "{unsigned}");

    let signed = bench.good("sign deploy.wasm --key ops.key");
    assert!(signed.starts_with("deploy.wasm.minisig: deploy version 1.2.0 signed by key "), "{signed}");
    let verified = bench.good("verify deploy.wasm --key ops.pub");
    assert!(verified.contains("signed by ops.pub (key ") && verified.contains(" UTC, version 1.2.0"), "{verified}");
    // A line is a key as good as its file.
    let line = String::from_utf8(bench.read("ops.pub")).unwrap().lines().nth(1).unwrap().to_owned();
    bench.good(&format!("verify deploy.wasm --key {line}"));
    let text = String::from_utf8(bench.read("deploy.wasm.minisig")).unwrap();
    assert!(text.contains("\tfile:deploy.wasm\tprehashed\tversion:1.2.0\n"), "{text}");

    let other = bench.bad("verify deploy.wasm --key dev.pub", 1);
    assert!(other.contains("is signed by another key: by "), "{other}");

    for from in ["deploy.wasm", "deploy.wasm.minisig"] {
        bench.write(&from.replace("deploy", "copy"), bench.read(from));
    }
    let renamed = bench.bad("verify copy.wasm --key ops.pub", 1);
    assert!(renamed.contains("was signed under another name, deploy.wasm"), "{renamed}");

    let comment = text.replace("version:1.2.0", "version:1.3.0");
    bench.write("deploy.wasm.minisig", comment);
    let altered = bench.bad("verify deploy.wasm --key ops.pub", 1);
    assert!(altered.contains("is not what ops.pub signed: it was altered"), "{altered}");
    bench.write("deploy.wasm.minisig", &text);
    let mut wasm = bench.read("deploy.wasm");
    wasm.extend([0, 2, 1, b'x']);
    bench.write("deploy.wasm", wasm);
    let altered = bench.bad("verify deploy.wasm --key ops.pub", 1);
    assert!(altered.contains("is not what ops.pub signed: it was altered"), "{altered}");
    for bad in ["", "x", &text[..100], &text.repeat(9)] {
        bench.write("deploy.wasm.minisig", bad);
        let broken = bench.bad("verify deploy.wasm --key ops.pub", 65);
        assert!(broken.contains("is no signature of minisign"), "{broken}");
    }
}

#[test]
fn several_sign() {
    let bench = bench();
    bench.good("keygen -o dev --no-password");
    bench.good("sign deploy.wasm --key ops.key");
    let few = bench.bad("verify deploy.wasm --key ops.pub dev.pub --at-least 2", 1);
    assert!(few.contains("signed by 1 of the given keys, and 2 are asked for"), "{few}");
    let added = bench.good("sign deploy.wasm --key dev.key --add");
    assert!(added.ends_with(", beside 1 other\n"), "{added}");
    let both = bench.good("verify deploy.wasm --key ops.pub dev.pub --at-least 2");
    assert!(both.contains("signed by ops.pub") && both.contains("signed by dev.pub"), "{both}");
    // Again by the same key: no third block.
    bench.good("sign deploy.wasm --key ops.key --add");
    assert_eq!(String::from_utf8(bench.read("deploy.wasm.minisig")).unwrap().lines().count(), 8);
    // One signer of two whose key is here vouches for nothing of the other.
    let one = bench.good("verify deploy.wasm --key dev.pub");
    assert!(one.contains("which was not given: not checked"), "{one}");
    let replaced = bench.good("sign deploy.wasm --key ops.key");
    assert!(replaced.contains("in place of 1 other signer (--add keeps them)"), "{replaced}");
    bench.bad("verify deploy.wasm --key dev.pub", 1);
    bench.bad("verify deploy.wasm --key ops.pub --at-least 2", 64);
}

#[test]
fn keys_are_never_overwritten_and_secret() {
    let bench = bench();
    let mode = std::fs::metadata(bench.path("ops.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = bench.read("ops.key");
    let again = bench.bad("keygen -o ops --no-password", 73);
    assert!(again.contains("keys are never overwritten"), "{again}");
    // Half a pair is in the way too.
    bench.write("half.pub", "");
    bench.bad("keygen -o half --no-password", 73);
    assert!(!bench.path("half.key").exists());
    assert_eq!(bench.read("ops.key"), before);
    set_mode(bench.path("ops.key"), 0o644);
    let ended = bench.run("sign deploy.wasm --key ops.key");
    assert!(ended.code == 0 && ended.err.contains("warning: others may read ops.key (mode 644)"), "{ended:?}");
}

#[test]
fn passwords() {
    let bench = bench();
    bench.write("password", "correct horse\n");
    bench.write("wrong", "battery\n");
    bench.good("keygen -o two --password-file password");
    bench.good("sign deploy.wasm --key two.key --password-file password");
    bench.good("verify deploy.wasm --key two.pub");
    let wrong = bench.bad("sign deploy.wasm --key two.key --password-file wrong", 1);
    assert!(wrong.contains("the password is not the one it was made with"), "{wrong}");
    let unset = bench.bad("sign deploy.wasm --key two.key --password-env SALT_MODULE_TEST_UNSET", 64);
    assert!(unset.contains("the environment has no variable SALT_MODULE_TEST_UNSET"), "{unset}");
    bench.bad("keygen -o three --no-password --password-file password", 64);
    bench.write("empty", "");
    let empty = bench.bad("keygen -o three --password-file empty", 64);
    assert!(empty.contains("--no-password makes a key without one"), "{empty}");
}

#[test]
fn what_is_not_signed() {
    let bench = bench();
    bench.write("junk.wasm", "junk");
    bench.write("core.wasm", brine_kit::wat::wasm("(module)"));
    bench.write("Deploy.wasm", "");
    bench.write("long.pub", "x".repeat(9_999));
    for (words, code, expect) in [
        ("sign junk.wasm --key ops.key", 65, "is not WebAssembly"),
        ("sign core.wasm --key ops.key", 65, "is a core WebAssembly module, not a component"),
        ("sign Deploy.wasm --key ops.key", 65, "lower-case letters, digits and _ only"),
        ("sign ops.pub --key ops.key", 65, "a module's file is NAME.wasm"),
        ("sign none.wasm --key ops.key", 66, "none.wasm cannot be read"),
        ("sign deploy.wasm --key ops.pub", 65, "is a public key; modules are signed with the secret one"),
        ("sign deploy.wasm --key junk.wasm", 65, "is no secret key"),
        ("sign deploy.wasm --key none.key", 66, "none.key cannot be read"),
        ("verify deploy.wasm --key none.pub", 65, "there is no such file"),
        ("verify deploy.wasm --key ops.key", 65, "is no public key of minisign"),
        ("verify deploy.wasm --key long.pub", 65, "is no public key"),
        ("verify deploy.wasm", 64, "--key <PUB>"),
    ] {
        let err = bench.bad(words, code);
        assert!(err.contains(expect), "{words}: {err}");
    }
    // All or nothing.
    bench.bad("sign deploy.wasm junk.wasm --key ops.key", 65);
    assert!(!bench.path("deploy.wasm.minisig").exists());
}

/// Debian's minisign, where it is installed, in the folder.
fn minisign(bench: &Bench, args: &[&str]) -> Option<String> {
    let output = Command::new("minisign").args(args).current_dir(bench.path("")).output().ok()?;
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {err}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn minisign_agrees() {
    let bench = bench();
    bench.good("sign deploy.wasm --key ops.key");
    let Some(out) = minisign(&bench, &["-V", "-p", "ops.pub", "-m", "deploy.wasm"]) else {
        brine_kit::missing("minisign", "`tools/setup.sh peers` installs it");
        return;
    };
    assert!(out.contains("file:deploy.wasm\tprehashed\tversion:1.2.0"), "{out}");
    // The other way round: its keys and its signatures.
    minisign(&bench, &["-S", "-s", "ops.key", "-m", "deploy.wasm"]);
    let verified = bench.good("verify deploy.wasm --key ops.pub");
    assert!(!verified.contains("version"), "{verified}");
    minisign(&bench, &["-G", "-W", "-s", "own.key", "-p", "own.pub"]);
    bench.good("sign deploy.wasm --key own.key");
    bench.good("verify deploy.wasm --key own.pub");
    minisign(&bench, &["-V", "-p", "own.pub", "-m", "deploy.wasm"]);
    minisign(&bench, &["-S", "-l", "-s", "own.key", "-m", "deploy.wasm"]);
    let legacy = bench.bad("verify deploy.wasm --key own.pub", 1);
    assert!(legacy.contains("in the old way"), "{legacy}");
}
