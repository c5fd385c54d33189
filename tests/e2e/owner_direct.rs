//! What an executor or the daemon's network refuses by itself is in the owner's list, and the line that is suggested lets the job run.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use brine_kit::programs::testing;
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::Value;

/// Nothing of what the module asks for, but asking.
const NOTHING: &str = "grains: true, config: true, modules: true, jobs: true, disks: true, policy: true, process: [], \
                       changes: {}, pillar: [], functions: [], files: [], events: [], mine: [], static_grains: []";

/// A minion with the module `hostile`, which does what it is told by plain WASI.
fn started(network: &str, directories: &str) -> (Master, Minion) {
    let master = Master::start("");
    let module = std::fs::read(testing("hostile")).expect("run `make modules` first");
    master.serve("_modules/hostile.wasm", &module);
    let conf = format!(
        "sandbox:\n  modules:\n    hostile: {{{NOTHING}, network: [{network}], filesystem: {{{directories}}}}}\n"
    );
    let minion = master.minion_kind(Kind::Brine, "web1", &conf);
    master.json("web1", &["saltutil.sync_modules"]);
    (master, minion)
}

fn own(minion: &Minion, args: &[&str]) -> Value {
    minion.salt_call(&[&["--local", "--out=json"], args].concat()).exits(0).json()["local"].clone()
}

/// Asks, grants what is suggested, and asks again. The line has to contain this and nothing wider.
fn granted(minion: &Minion, ask: &[&str], wanted: &str, line_has: &str, answer: &str) {
    let call = || minion.salt_call(&[&["--local", "--out=json"], ask].concat());
    let refused = call();
    assert!(refused.code != 0, "{ask:?}: {refused:?}");
    let all = own(minion, &["sandbox.refusals"]);
    let one = all.as_array().into_iter().flatten().find(|one| one["what"] == wanted);
    let one = one.unwrap_or_else(|| panic!("{wanted} is not in the list: {all}"));
    assert_eq!(one["function"].as_str(), Some(ask[0]), "{one}");
    assert!(one["jid"].as_str().is_some_and(|jid| jid.len() == 20), "{one}");
    let line = one["line"].as_str().unwrap_or_else(|| panic!("no line: {one}"));
    assert!(line.contains(line_has), "{line}");
    let suggested = own(minion, &["sandbox.suggest", "module=hostile"]).to_string();
    assert!(suggested.contains(wanted), "{suggested}");
    own(minion, &["sandbox.grant", line]);
    let done = call();
    assert!(done.code == 0 && done.stdout.contains(answer), "{ask:?} with {line}: {done:?}");
}

#[test]
fn a_file_that_a_module_opens_by_wasi() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().canonicalize().expect("our own folder");
    brine_kit::files::set_mode(&root, 0o755);
    std::fs::create_dir(root.join("in")).expect("our own folder");
    brine_kit::files::set_mode(root.join("in"), 0o755);
    let (file, beside, dir) = (root.join("alone"), root.join("beside"), root.join("in").display().to_string());
    for path in [&file, &beside] {
        std::fs::write(path, "content").expect("our own folder");
        brine_kit::files::set_mode(path, 0o666);
    }
    let (_master, minion) = started("", &format!("{dir}: ro"));
    let wanted = format!("read {}", file.display());
    let line = format!("filesystem: {{{}: ro}}", file.display());
    granted(&minion, &["hostile.file", "read", &dir, "../alone"], &wanted, &line, "content");
    // Beside it, nothing is open.
    let other = minion.salt_call(&["--local", "hostile.file", "read", &dir, "../beside"]);
    assert!(other.code != 0, "{other:?}");
    // To write it is another grant.
    let wanted = format!("write {}", file.display());
    let line = format!("filesystem: {{{}: rw}}", file.display());
    granted(&minion, &["hostile.file", "truncate", &dir, "../alone", "new"], &wanted, &line, "3 bytes");
    assert_eq!(std::fs::read_to_string(&file).expect("our own file"), "new");
}

/// Answers each connection with this.
fn serve(answer: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(200)));
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn an_address_that_a_module_connects_to_and_a_host_of_a_redirect() {
    let fine = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine";
    let (open, closed) = (serve(fine.to_owned()), serve(fine.to_owned()));
    let to = format!("http://127.0.0.1:{closed}/");
    let redirects =
        serve(format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
    let (_master, minion) = started(&format!("'127.0.0.1:{redirects}'"), "");
    let connect = ["hostile.socket", "connect", "127.0.0.1", &open.to_string()];
    granted(
        &minion,
        &connect,
        &format!("connect to 127.0.0.1:{open}"),
        &format!("network: [\"127.0.0.1:{open}\"]"),
        "connected",
    );
    let url = format!("http://127.0.0.1:{redirects}/");
    let wanted = format!("reach 127.0.0.1:{closed}");
    granted(&minion, &["hostile.http", &url, "redirects=3"], &wanted, &format!("127.0.0.1:{closed}"), "fine");
}

/// Before a module may connect anywhere, its process makes no socket. Its owner is told of the address all the same.
#[test]
fn an_address_before_any_is_granted() {
    let (_master, minion) = started("", "");
    let open = serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned());
    let connect = ["hostile.socket", "connect", "127.0.0.1", &open.to_string()];
    let line = format!("network: [\"127.0.0.1:{open}\"]");
    granted(&minion, &connect, &format!("connect to 127.0.0.1:{open}"), &line, "connected");
}

/// A name that a module without any rule looks up.
#[test]
fn a_name_before_any_is_granted() {
    let (_master, minion) = started("", "");
    let refused = minion.salt_call(&["--local", "hostile.resolve", "repo.example"]);
    assert!(refused.code != 0, "{refused:?}");
    let all = own(&minion, &["sandbox.refusals"]);
    let one = all.as_array().into_iter().flatten().find(|one| one["what"] == "look up repo.example");
    let line = one.and_then(|one| one["line"].as_str()).unwrap_or_else(|| panic!("{all}"));
    assert!(line.contains("network: [\"repo.example:443\"]"), "{line}");
}

/// A module that resolves links looks at each directory on the way. What it wants is the file, and so is what its owner is told.
#[test]
fn a_path_is_asked_for_by_its_whole_name() {
    let minion = Minion::prepare(Kind::Brine, "web1", 1, "sandbox: {modules: {cp: {filesystem: {}}}}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().canonicalize().expect("our own folder");
    std::fs::create_dir_all(root.join("a/b")).expect("our own folder");
    let file = root.join("a/b/file");
    std::fs::write(&file, "x").expect("our own folder");
    let path = file.display().to_string();
    for fun in ["cp.push", "cp.hash_file"] {
        let refused = minion.salt_call(&["--local", "--out=json", fun, &path]);
        assert!(refused.code != 0, "{fun}: {refused:?}");
    }
    let all = own(&minion, &["sandbox.refusals"]);
    let wanted: Vec<&str> = all.as_array().into_iter().flatten().filter_map(|one| one["what"].as_str()).collect();
    assert!(!wanted.is_empty() && wanted.iter().all(|what| what.ends_with(&path)), "{wanted:?}");
    let suggested = own(&minion, &["sandbox.suggest", "module=cp"]);
    let lines: Vec<String> = suggested.as_array().into_iter().flatten().map(ToString::to_string).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(&path)), "{lines:?}");
}
