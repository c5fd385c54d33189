use std::collections::BTreeSet;

use minisign::{KeyPair, PublicKeyBox, SecretKeyBox};

use super::*;
use crate::testing::name;

// From the tests of minisign-verify: the content is `test`, and so was the file's name.
const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
const SIGNATURE: &str = "untrusted comment: signature from minisign secret key\n\
    RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n\
    trusted comment: timestamp:1633700835\tfile:test\tprehashed\n\
    wLMDjy9FLAuxZ3q4NlEvkgtyhrr0gtTu6KC4KBJdITbbOeAi1zBIYo0v4iTgt8jJpIidRJnp94ABQkJAgAooBQ==\n";
const LEGACY: &str = "untrusted comment: signature from minisign secret key\n\
    RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=\n\
    trusted comment: timestamp:1555779966\tfile:test\n\
    QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==\n";

/// A key pair that signs.
struct Signer(KeyPair);

impl Signer {
    fn new() -> Self {
        Self(KeyPair::generate_unencrypted_keypair().unwrap())
    }

    fn key(&self) -> SigningKey {
        let file = self.0.pk.to_box().unwrap().to_string();
        SigningKey::file(&file, "ops.pub").unwrap()
    }

    fn sign(&self, content: &[u8], comment: &str) -> String {
        minisign::sign(Some(&self.0.pk), &self.0.sk, content, Some(comment), None).unwrap().to_string()
    }
}

fn ids(keys: &[&SigningKey]) -> Vec<KeyId> {
    keys.iter().map(|key| key.id).collect()
}

/// Returns the signers of the module `deploy`, with no revoked keys.
fn look(content: &str, signatures: &str, keys: &[&SigningKey]) -> Result<Signed, String> {
    without(&[], content, signatures, keys)
}

fn without(revoked: &[&SigningKey], content: &str, signatures: &str, keys: &[&SigningKey]) -> Result<Signed, String> {
    let keys: Vec<SigningKey> = keys.iter().map(|key| (*key).clone()).collect();
    let revoked: BTreeSet<KeyId> = revoked.iter().map(|key| key.id).collect();
    signed(&name("deploy"), content.as_bytes(), Some(signatures.as_bytes()), &keys, &revoked)
        .map_err(|error| error.to_string())
}

/// Calls `signed` for the fixed signatures, which are for a file `test`.
fn fixed(content: &str, signature: Option<&str>, keys: &[&str]) -> Result<Vec<KeyId>, String> {
    let keys: Vec<SigningKey> = keys.iter().map(|line| SigningKey::line(line).unwrap()).collect();
    let found = signature.map(|signature| verify::read(&name("deploy"), signature.as_bytes())).transpose();
    let read = found.map_err(|error| error.to_string())?;
    let Some(read) = read else { return Ok(Vec::new()) };
    let mut by = Vec::new();
    for key in &keys {
        match verify::verify(&name("deploy"), content.as_bytes(), &read[0], key) {
            Ok(None) => {}
            Ok(Some(_)) | Err(SignatureError::OtherName { .. }) => by.push(key.id),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(by)
}

#[test]
fn content_is_what_was_signed() {
    let key = SigningKey::line(KEY).unwrap().id;
    assert_eq!(fixed("test", Some(SIGNATURE), &[KEY]), Ok(vec![key]));
    let altered = "module deploy is not what was signed: deploy.wasm.minisig does not fit it; fetch both again, or have it signed again \
                   with `salt-module sign deploy.wasm`";
    assert_eq!(fixed("Test", Some(SIGNATURE), &[KEY]), Err(altered.into()));
    // The signature covers the trusted comment.
    let comment = SIGNATURE.replace("file:test", "file:best");
    assert_eq!(fixed("test", Some(&comment), &[KEY]), Err(altered.into()));
    let legacy = "module deploy is signed in the old way (minisign -l), which is not taken; have it signed again with `salt-module sign \
                  deploy.wasm`";
    assert_eq!(fixed("test", Some(LEGACY), &[KEY]), Err(legacy.into()));
    let malformed = "the signature of module deploy cannot be read: deploy.wasm.minisig is no signature of minisign; fetch it again, or \
                     have the module signed again with `salt-module sign deploy.wasm`";
    let long = format!("{SIGNATURE}{}", "x".repeat(MAX_SIGNATURE));
    for bad in ["", "x", "\0\n\n\n\n", &SIGNATURE[..100], &SIGNATURE.replace("RUQ", "RUX"), &long] {
        let key = SigningKey::line(KEY).unwrap();
        assert_eq!(look("test", bad, &[&key]), Err(malformed.into()), "{bad:?}");
    }
    // With no keys in the policy, signatures are not read.
    assert_eq!(look("test", "x", &[]), Ok(Signed::default()));
}

#[test]
fn another_key_signs_nothing() {
    // Another key number, and another key with the same number.
    let number = KEY.replacen("RWQf6", "RWQg6", 1);
    assert_eq!(look("test", SIGNATURE, &[&SigningKey::line(&number).unwrap()]).unwrap().keys, [KeyId::UNKNOWN]);
    let other = KEY.replacen("GFO3", "GFO4", 1);
    assert!(fixed("test", Some(SIGNATURE), &[&other]).is_err());
    assert_eq!(fixed("test", Some(SIGNATURE), &[&number, KEY]), Ok(vec![SigningKey::line(KEY).unwrap().id]));
}

#[test]
fn several_signers_in_one_file() {
    let (a, b, stranger) = (Signer::new(), Signer::new(), Signer::new());
    let (x, y) = (a.key(), b.key());
    let comment = |time: u64| format!("timestamp:{time}\tfile:deploy.wasm\tprehashed\tversion:1.2.0");
    let one = a.sign(b"content", &comment(100));
    let two = b.sign(b"content", &comment(300));
    let three = stranger.sign(b"content", &comment(900));
    let file = format!("{one}{two}\n{three}");
    let signed = look("content", &file, &[&x, &y]).unwrap();
    // Only the signing times of the policy's keys count.
    assert_eq!(signed, Signed { keys: ids(&[&x, &y]), time: Some(300) });
    assert_eq!(look("content", &file, &[&x]).unwrap(), Signed { keys: ids(&[&x]), time: Some(100) });
    // Two signatures by one key are one signer.
    assert_eq!(look("content", &format!("{one}{one}"), &[&x, &y]).unwrap().keys, ids(&[&x]));
    // One invalid or unreadable signature makes the file invalid.
    let altered = b.sign(b"other", &comment(1));
    assert!(look("content", &format!("{one}{altered}"), &[&x, &y]).unwrap_err().contains("is not what was signed"));
    assert!(look("content", &format!("{one}x\n"), &[&x]).unwrap_err().contains("cannot be read"));
    let many = one.repeat(MAX_SIGNERS);
    assert_eq!(look("content", &many, &[&x]).unwrap().keys, ids(&[&x]));
    let error = look("content", &format!("{many}{one}"), &[&x]).unwrap_err();
    assert!(error.contains("too many signatures") && error.contains("may have 8"), "{error}");
}

#[test]
fn a_signature_is_for_the_name_that_was_signed() {
    let signer = Signer::new();
    let key = signer.key();
    let sign = |comment: &str| look("content", &signer.sign(b"content", comment), &[&key]);
    assert_eq!(
        sign("timestamp:7\tfile:fetch.wasm\thashed"),
        Err("module deploy was signed as fetch.wasm and not as deploy.wasm, and a signature is good for the name that was signed; give \
             the file that name again, or have it signed again with `salt-module sign deploy.wasm`"
            .to_owned())
    );
    assert!(sign("file:deploy.wasm\tfile:fetch.wasm").is_err());
    assert!(sign("file:").is_err());
    // Without a file name the signature is for the content alone; without a valid timestamp it has no time.
    assert_eq!(sign("release of today"), Ok(Signed { keys: ids(&[&key]), time: None }));
    assert_eq!(sign("timestamp:-5\tfile:deploy.wasm"), Ok(Signed { keys: ids(&[&key]), time: None }));
    assert_eq!(sign("timestamp:7\tfile:deploy.wasm\thashed"), Ok(Signed { keys: ids(&[&key]), time: Some(7) }));
}

#[test]
fn a_revoked_key_signs_nothing() {
    let (good, bad) = (Signer::new(), Signer::new());
    let (x, y) = (good.key(), bad.key());
    let comment = |time: u64| format!("timestamp:{time}\tfile:deploy.wasm");
    let (by_good, by_bad) = (good.sign(b"content", &comment(1)), bad.sign(b"content", &comment(2)));
    assert_eq!(look("content", &by_bad, &[&x, &y]).unwrap().keys, ids(&[&y]));
    let revoked = |file: &str| without(&[&y], "content", file, &[&x, &y]);
    assert_eq!(
        revoked(&by_bad),
        Err("module deploy is signed with a key that the owner of this host revoked (ops.pub, by sandbox:revoked:keys); ask the owner \
             which key is good, and have it signed again with that: `salt-module sign deploy.wasm`"
            .to_owned())
    );
    // A signature by an unknown key does not help.
    let stranger = Signer::new().sign(b"content", &comment(3));
    assert!(revoked(&format!("{by_bad}{stranger}")).is_err());
    // The signature by the other key counts, with its own time.
    let both = revoked(&format!("{by_bad}{by_good}")).unwrap();
    assert_eq!(both, Signed { keys: ids(&[&x]), time: Some(1) });
}

#[test]
fn keys_are_lines_or_files() {
    for bad in ["", "ops.pub", &KEY[1..], &KEY.replace("RWQ", "RXQ"), &format!("{KEY} "), "é".repeat(28).as_str()] {
        assert!(SigningKey::line(bad).is_none(), "{bad}");
    }
    let file = SigningKey::file(&format!("untrusted comment: minisign public key\n{KEY}\n"), "ops.pub").unwrap();
    assert_eq!((file.id.to_string().as_str(), file.written.as_str()), (KEY, "ops.pub"));
    assert_eq!(SigningKey::file(KEY, "ops.pub").unwrap().id, file.id);
    assert!(SigningKey::file("untrusted comment: x\n", "ops.pub").is_none());
}

/// Interoperation with minisign, if it is installed: each side accepts the other's signatures.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test, and the program is the test's subject")]
fn minisign_and_we_read_each_other() {
    use std::process::Command;
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let output = Command::new("minisign").args(args).current_dir(dir.path()).output();
        output.map(|output| (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    if run(&["-v"]).is_err() {
        eprintln!("minisign is not installed here (tools/setup.sh does that)");
        return;
    }
    let file = |name: &str| dir.path().join(name);
    std::fs::write(file("deploy.wasm"), "content").unwrap();
    // A key without a password, made by the crate: minisign 0.11 reads it and signs with it.
    let signer = Signer::new();
    let (public, secret): (PublicKeyBox, SecretKeyBox) =
        (signer.0.pk.to_box().unwrap(), signer.0.sk.to_box(None).unwrap());
    std::fs::write(file("ops.pub"), public.to_string()).unwrap();
    std::fs::write(file("ops.key"), secret.to_string()).unwrap();
    let (made, why) = run(&["-S", "-s", "ops.key", "-m", "deploy.wasm"]).unwrap();
    assert!(made, "{why}");
    let theirs = std::fs::read_to_string(file("deploy.wasm.minisig")).unwrap();
    let signed = look("content", &theirs, &[&signer.key()]).unwrap();
    assert_eq!(signed.keys, ids(&[&signer.key()]));
    assert!(signed.time.is_some_and(|time| time > 1_700_000_000), "{theirs}");
    // A signature made here, with extra fields in the comment. minisign reads only the first of several signatures.
    let ours = signer.sign(b"content", "timestamp:1\tfile:deploy.wasm\tprehashed\tversion:1.2.0");
    let second = Signer::new().sign(b"content", "timestamp:1\tfile:deploy.wasm\tprehashed");
    std::fs::write(file("deploy.wasm.minisig"), format!("{ours}{second}")).unwrap();
    let (good, why) = run(&["-V", "-p", "ops.pub", "-m", "deploy.wasm"]).unwrap();
    assert!(good, "{why}");
    std::fs::write(file("deploy.wasm"), "other").unwrap();
    assert!(!run(&["-V", "-p", "ops.pub", "-m", "deploy.wasm"]).unwrap().0);
}

#[test]
fn the_packages_modules_are_as_they_were_built() {
    let dir = tempfile::tempdir().unwrap();
    let builder = Signer::new();
    let check = |content: &[u8], signature: Option<&str>| {
        let key = StandardKey::look(dir.path());
        key.check(&name("deploy"), content, signature.map(str::as_bytes)).map_err(|error| error.to_string())
    };
    let good = builder.sign(b"content", "timestamp:1\tfile:deploy.wasm");
    // A package without a key, as built without signatures.
    assert_eq!(check(b"content", None), Ok(()));
    std::fs::write(dir.path().join("standard.pub"), builder.0.pk.to_box().unwrap().to_string()).unwrap();
    assert_eq!(check(b"content", Some(&good)), Ok(()));
    let refused = |why: &str| Err(format!("the standard module deploy {why}; install the package again"));
    assert_eq!(check(b"content", None), refused("is not signed, as all of the package are"));
    assert_eq!(check(b"other", Some(&good)), refused("is not what was signed when the package was built"));
    assert_eq!(check(b"content", Some("x")), refused("has a signature that cannot be read"));
    let other = Signer::new().sign(b"content", "timestamp:1\tfile:deploy.wasm");
    assert_eq!(check(b"content", Some(&other)), refused("is not signed with the package's key"));
    let renamed = builder.sign(b"content", "timestamp:1\tfile:cmd.wasm");
    assert_eq!(check(b"content", Some(&renamed)), refused("was signed as cmd.wasm"));
    std::fs::write(dir.path().join("standard.pub"), "x").unwrap();
    assert_eq!(
        check(b"content", Some(&good)),
        refused("cannot be verified, because standard.pub has no key of minisign in it")
    );
}
