//! Everything that Salt can sign is signed, with the newer algorithms; publications are sent by topic; messages without
//! a required signature are refused.

use std::path::Path;

use brine_kit::files::set_mode;
use brine_kit::wait::wait_for;
use brine_protocol::keys::PrivateKey;
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::json;

const MASTER: &str = "worker_threads: 3\ntimeout: 15\nloop_interval: 1\nzmq_filtering: True\nmaster_sign_pubkey: True\n\
    require_minion_sign_messages: True\ndrop_messages_signature_fail: True\npublish_signing_algorithm: PKCS1v15-SHA224\n\
    signing_algorithm: PKCS1v15-SHA224";
const VERIFY: &str = "zmq_filtering: True\nverify_master_pubkey_sign: True";
const SHA224: &str = "encryption_algorithm: OAEP-SHA224\nsigning_algorithm: PKCS1v15-SHA224";
const SIGN: &str = "minion_sign_messages: True";

#[test]
fn all_is_signed_and_what_is_not_is_refused() {
    let mut master = Master::start_kind(Kind::Python, MASTER);
    let signing_key = std::fs::read_to_string(master.path("pki/master_sign.pub")).expect("the master made one");
    let events = master.events();
    let new = |id: &str, key: &str, config: &str| {
        let minion = Minion::prepare(Kind::Brine, id, master.ret_port, config);
        trust(&minion, key);
        minion
    };
    let accept = |minion: &mut Minion| {
        minion.up();
        let id = minion.id.clone();
        events.wait(&format!("{id} to wait for acceptance"), |tag, data| {
            tag == "salt/auth" && data["id"] == id && data["act"] == "pend"
        });
        master.command("salt-key", &["-y", "-a", &id]).exits(0);
    };

    // A master with another signing key is refused at the first contact.
    let other = PrivateKey::generate(2048).expect("a key").public().to_pem();
    let mut wrong = new("wrong", &other, &format!("{VERIFY}\n{SIGN}"));
    accept(&mut wrong);
    let status = wrong.daemon.as_mut().expect("it runs").wait_exit();
    assert_eq!(status.code(), Some(42), "{}", wrong.running().log_text());
    assert!(!wrong.path("pki/minion_master.pub").exists());

    let config = format!("{VERIFY}\n{SIGN}\n{SHA224}");
    let [mut one, mut two] = ["one", "two"].map(|id| new(id, &signing_key, &config));
    for minion in [&mut one, &mut two] {
        accept(minion);
        events.wait_tag(&format!("salt/minion/{}/start", minion.id));
    }
    let both = json!({"one": true, "two": true});
    let everyone = |master: &Master, args: &[&str]| master.salt(&[&["--out=json", "--static"], args].concat()).json();
    assert_eq!(everyone(&master, &["-L", "one,two", "test.ping"]), both);
    assert_eq!(everyone(&master, &["-E", "one|two", "test.ping"]), both);
    assert_eq!(everyone(&master, &["-G", "kernel:Linux", "test.ping"]), both);
    assert_eq!(everyone(&master, &["one", "test.ping"]), json!({"one": true}));
    // Signed content is packed unchanged: text, bytes, numbers, in order.
    let nested = "{ü: [1, -2, 2.5, null, {b: true}], long: '0123456789012345678901234567890123456789'}";
    let expected = json!({"ü": [1, -2, 2.5, null, {"b": true}], "long": "0123456789012345678901234567890123456789"});
    assert_eq!(everyone(&master, &["one", "test.echo", nested])["one"], expected);
    assert_eq!(everyone(&master, &["two", "grains.items"])["two"]["id"], "two");

    // The master refuses a return without a signature, or with another algorithm than its own. The return stays on the
    // minion's disk.
    for (id, config) in [("unsigned", SHA224), ("older", SIGN)] {
        let mut minion = new(id, &signing_key, &format!("{VERIFY}\n{config}"));
        accept(&mut minion);
        events.wait_tag(&format!("salt/minion/{id}/start"));
        let jid = master.start_job(&[id, "test.ping"]);
        minion.running().wait_log("the master did not take the return; it will be sent again");
        wait_for("the return in the spool", || {
            let mut spool = std::fs::read_dir(minion.path("cache/spool")).expect("the spool").flatten();
            spool.any(|entry| entry.file_name().to_string_lossy().ends_with(&jid)).then_some(())
        });
        assert_eq!(events.count(&format!("salt/job/{jid}/ret/{id}")), 0);
        minion.stop();
        master.command("salt-key", &["-y", "-d", id]).exits(0);
    }

    // Without the signing key, a master whose key changed is refused. With it, the new key replaces the old one.
    let mut plain = new("plain", "", SIGN);
    std::fs::copy(one.path("pki/minion_master.pub"), plain.path("pki/minion_master.pub")).expect("our own folder");
    let old = std::fs::read_to_string(one.path("pki/minion_master.pub")).expect("it is trusted");
    master.stop();
    new_key(&master.path("pki"));
    master.up();
    wait_for("both to trust the new key and answer", || {
        let output = master.salt(&["-t", "2", "--out=json", "--static", "-L", "one,two", "test.ping"]);
        (serde_json::from_str::<serde_json::Value>(&output.stdout).ok()? == both).then_some(())
    });
    for minion in [&one, &two] {
        let trusted = std::fs::read_to_string(minion.path("pki/minion_master.pub")).expect("it is trusted");
        assert_ne!(trusted, old);
    }
    plain.up();
    plain.running().wait_log("cannot sign in: the reply is not signed by the master's key");
    let kept = std::fs::read_to_string(plain.path("pki/minion_master.pub")).expect("it is trusted");
    assert_eq!(kept, old);
}

/// Gives a minion the signing key of its master.
fn trust(minion: &Minion, key: &str) {
    let pki = minion.path("pki");
    std::fs::create_dir_all(&pki).expect("our own folder");
    set_mode(&pki, 0o700);
    if !key.is_empty() {
        std::fs::write(pki.join("master_sign.pub"), key).expect("our own folder");
    }
}

/// Deletes the master's own key, so that the master makes another one. The signing key stays.
fn new_key(pki: &Path) {
    for entry in std::fs::read_dir(pki).expect("the master's keys").flatten() {
        let name = entry.file_name().into_string().expect("a name");
        if !name.starts_with("master_sign") && (name.ends_with(".pem") || name.ends_with(".pub")) {
            std::fs::remove_file(entry.path()).expect("our own folder");
        }
    }
}
