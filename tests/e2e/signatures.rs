//! Required signatures from the viewpoint of authors, operators and owners, with keys and signatures made by the
//! author's tool and by minisign.
#![allow(clippy::disallowed_methods, reason = "tests start the programs that they test")]

use std::fs;
use std::path::{Path, PathBuf};

use brine_kit::process::{Output, run, run_with};
use brine_kit::programs::{example, program, program_folder};
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::json;

/// An author's folder with keys.
pub(crate) struct Author(tempfile::TempDir);

impl Author {
    pub(crate) fn new(keys: &[&str]) -> Self {
        let author = Self(tempfile::tempdir().expect("a folder"));
        for key in keys {
            let prefix = author.path(key);
            tool(&["keygen", "--no-password", "-o", prefix.to_str().expect("UTF-8")]).exits(0);
        }
        author
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn public(&self, key: &str) -> Vec<u8> {
        fs::read(self.path(&format!("{key}.pub"))).expect("a public key")
    }

    /// Signs a module with these keys under this name. Returns the signature file.
    pub(crate) fn sign(&self, keys: &[&str], name: &str, wasm: &[u8]) -> Vec<u8> {
        let file = self.path(name);
        fs::write(&file, wasm).expect("our own folder");
        let _ = fs::remove_file(self.path(&format!("{name}.minisig")));
        for key in keys {
            let key = self.path(&format!("{key}.key"));
            let (key, file) = (key.to_str().expect("UTF-8"), file.to_str().expect("UTF-8"));
            tool(&["sign", "--add", "--key", key, file]).exits(0);
        }
        fs::read(self.path(&format!("{name}.minisig"))).expect("a signature")
    }

    /// Signs with minisign, or with the author's tool if minisign is not installed.
    fn minisign(&self, key: &str, name: &str, wasm: &[u8]) -> Vec<u8> {
        let ours = self.sign(&[key], name, wasm);
        let paths = [format!("{key}.key"), format!("{key}.pub"), name.to_owned()].map(|name| self.path(&name));
        let [secret, public, file] = paths.each_ref().map(|path| path.to_str().expect("UTF-8"));
        let installed = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).find_map(|folder| {
            let program = folder.join("minisign");
            program.exists().then_some(program)
        });
        let Some(minisign) = installed else {
            eprintln!("minisign is not installed here (`tools/setup.sh peers` does that)");
            return ours;
        };
        // minisign accepts the tool's signature and makes one that is accepted here.
        run(&minisign, &["-V", "-p", public, "-m", file]).exits(0);
        run(&minisign, &["-S", "-s", secret, "-m", file]).exits(0);
        tool(&["verify", file, "--key", public]).exits(0);
        fs::read(self.path(&format!("{name}.minisig"))).expect("a signature")
    }
}

fn tool(args: &[&str]) -> Output {
    run(&program("salt-module"), args)
}

fn serve(master: &Master, wasm: &[u8], signature: Option<&[u8]>) {
    master.serve("_modules/hello.wasm", wasm);
    match signature {
        Some(signature) => master.serve("_modules/hello.wasm.minisig", signature),
        None => {
            let _ = fs::remove_file(master.path("srv/salt/_modules/hello.wasm.minisig"));
        }
    }
}

/// Starts a minion with these keys in the owner's folder.
fn minion(master: &Master, author: &Author, keys: &[&str], sandbox: &str) -> Minion {
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, sandbox);
    fs::create_dir(minion.path("conf/module_keys")).expect("our own folder");
    for key in keys {
        fs::write(minion.path(&format!("conf/module_keys/{key}.pub")), author.public(key)).expect("our own folder");
    }
    master.accept(&mut minion);
    minion
}

/// Syncs and returns the message about the refused module.
fn refused(master: &Master) -> String {
    let output = master.salt(&["--out=txt", "web1", "saltutil.sync_modules"]).exits(1);
    let line = output.stdout.trim();
    assert!(line.contains("hello") && !line.contains('\n'), "{output:?}");
    line.to_owned()
}

fn greets(master: &Master) -> bool {
    master.json("web1", &["hello.world", "Brine"]).as_str().is_some_and(|text| text.starts_with("Hello, Brine!"))
}

/// Restarts the minion with additional configuration.
fn again(master: &Master, minion: &mut Minion, sandbox: &str) {
    minion.stop();
    fs::create_dir_all(minion.path("conf/minion.d")).expect("our own folder");
    fs::write(minion.path("conf/minion.d/sandbox.conf"), sandbox).expect("our own folder");
    let events = master.events();
    minion.up();
    events.wait_tag("salt/minion/web1/start");
}

#[test]
fn a_module_runs_when_a_key_of_the_owners_signed_it_and_stops_when_that_is_revoked() {
    let master = Master::start("");
    let author = Author::new(&["ops", "dev", "stranger"]);
    let wasm = fs::read(example("hello")).expect("an example");
    let every = "sandbox: {modules: {\"*\": {signed_by: any}}}";
    let mut minion = minion(&master, &author, &["ops", "dev"], every);

    serve(&master, &wasm, None);
    let ask = "and sandbox:modules:*:signed_by asks for a signature of a key in the owner's folder of keys; have it signed with \
               `salt-module sign hello.wasm`";
    assert!(refused(&master).contains(&format!("module hello is not signed, {ask}")), "{}", refused(&master));
    // A call of the module gets the same message.
    let called = master.json("web1", &["hello.world"]);
    assert!(called.as_str().expect("text").contains("module hello is not signed"), "{called}");
    serve(&master, &wasm, Some(&author.sign(&["stranger"], "hello.wasm", &wasm)));
    assert!(refused(&master).contains(&format!("module hello is signed by another key, {ask}")));
    serve(&master, &wasm, Some(&author.sign(&["ops"], "other.wasm", &wasm)));
    assert!(refused(&master).contains("module hello was signed as other.wasm and not as hello.wasm"));
    let signature = author.minisign("ops", "hello.wasm", &wasm);
    // An additional empty custom section makes it another valid component.
    let altered = [&wasm[..], &[0, 2, 1, b'x']].concat();
    serve(&master, &altered, Some(&signature));
    assert!(
        refused(&master)
            .contains("module hello is not what was signed: hello.wasm.minisig does not fit it; fetch both")
    );
    serve(&master, &wasm, Some(b"no signature\n"));
    assert!(refused(&master).contains("hello.wasm.minisig is no signature of minisign"));

    serve(&master, &wasm, Some(&signature));
    assert_eq!(master.json("web1", &["saltutil.sync_modules"]), json!(["modules.hello"]));
    assert!(greets(&master));
    let shown = master.json("web1", &["sandbox.show", "hello"]);
    assert_eq!(shown["signed_by"], json!(["ops.pub"]));
    assert!(shown["signed_at"].as_u64().is_some_and(|time| time > 1_700_000_000), "{shown}");
    // An unsigned update leaves the installed version in place.
    serve(&master, &altered, None);
    assert!(refused(&master).contains("is not signed"));
    assert!(greets(&master));

    // Signatures by two of the owner's keys are required.
    let several = "sandbox: {modules: {\"*\": {signed_by: {at_least: 2, of: [ops.pub, dev.pub]}}}}";
    serve(&master, &wasm, Some(&signature));
    again(&master, &mut minion, several);
    let one = "module hello is signed by 1 of the keys that are asked for, and sandbox:modules:*:signed_by asks for signatures of 2 of \
               ops.pub and dev.pub";
    assert!(refused(&master).contains(one));
    assert!(!greets(&master));
    serve(&master, &wasm, Some(&author.sign(&["ops", "ops"], "hello.wasm", &wasm)));
    assert!(refused(&master).contains(one));
    serve(&master, &wasm, Some(&author.sign(&["ops", "dev"], "hello.wasm", &wasm)));
    assert_eq!(master.json("web1", &["saltutil.sync_modules"]), json!(["modules.hello"]));
    assert!(greets(&master));

    // A revoked key: modules signed only by it stop working, whatever the rest of the configuration says.
    serve(&master, &wasm, Some(&signature));
    again(&master, &mut minion, "sandbox: {revoked: {keys: [ops.pub]}}");
    let why = "module hello is signed with a key that the owner of this host revoked (ops.pub, by sandbox:revoked:keys); ask the owner";
    assert!(refused(&master).contains(why));
    // The version with two signatures is still installed, and the other key's signature suffices.
    assert!(greets(&master));
    minion.stop();
    let beside = minion.path("cache/modules/hello.wasm.minisig");
    fs::write(&beside, &signature).expect("our own folder");
    let said = minion.salt_call(&["--local", "hello.world"]);
    assert!(said.code != 0 && (said.stdout + &said.stderr).contains(why));

    // A revoked content.
    let sha256 = shown["sha256"].as_str().expect("a hash");
    again(
        &master,
        &mut minion,
        &format!("sandbox: {{revoked: {{sha256: [\"{sha256}\"]}}, modules: {{hello: {{sha256: \"{sha256}\"}}}}}}"),
    );
    let revoked = refused(&master);
    assert!(
        revoked.contains(&format!(
            "module hello is refused: the owner of this host revoked this content (sha256 {sha256}, by sandbox:revoked:sha256)"
        )),
        "{revoked}"
    );
    assert!(!greets(&master));
}

/// Makes a package with copies of the standard modules.
fn package(folder: &Path) -> PathBuf {
    for name in ["brine-executor", "brine-compiler"] {
        std::os::unix::fs::symlink(program(name), folder.join(name)).expect("our own folder");
    }
    let modules = folder.join("modules");
    fs::create_dir(&modules).expect("our own folder");
    for entry in fs::read_dir(program_folder().join("../modules")).expect("the modules").flatten() {
        if entry.path().is_file() {
            fs::copy(entry.path(), modules.join(entry.file_name())).expect("our own folder");
        }
    }
    modules
}

#[test]
fn standard_modules_are_those_of_the_build() {
    let folder = tempfile::tempdir().expect("a folder");
    let modules = package(folder.path());
    assert!(modules.join("standard.pub").exists(), "`make modules` signs the standard modules");
    let minion = Minion::prepare(Kind::Brine, "web1", 1, "");
    let call = |function: &str| {
        let (conf, lib) = (minion.conf(), folder.path().to_str().expect("UTF-8"));
        run_with(&program("salt-call"), &["-c", &conf, "--local", function], &[("BRINE_LIB", lib)])
    };
    call("test.ping").exits(0);
    let says = |output: Output, why: &str| {
        assert!(output.code != 0, "{output:?}");
        let all = format!("{}{}", output.stdout, output.stderr);
        assert!(all.contains(&format!("the standard module test {why}; install the package again")), "{all}");
    };
    let (wasm, signature) = (modules.join("test.wasm"), modules.join("test.wasm.minisig"));
    let (bytes, signed) = (fs::read(&wasm).expect("a module"), fs::read(&signature).expect("a signature"));
    fs::write(&wasm, [&bytes[..], &[0, 2, 1, b'x']].concat()).expect("our own folder");
    says(call("test.ping"), "is not what was signed when the package was built");
    // The other standard modules still work.
    call("grains.items").exits(0);
    fs::write(&wasm, &bytes).expect("our own folder");
    fs::remove_file(&signature).expect("our own folder");
    says(call("test.ping"), "is not signed, as all of the package are");
    // Another standard module replaces it.
    fs::copy(modules.join("cmd.wasm"), &wasm).expect("our own folder");
    fs::copy(modules.join("cmd.wasm.minisig"), &signature).expect("our own folder");
    says(call("test.ping"), "was signed as cmd.wasm");
    fs::write(&wasm, &bytes).expect("our own folder");
    fs::write(&signature, &signed).expect("our own folder");
    call("test.ping").exits(0);
}
