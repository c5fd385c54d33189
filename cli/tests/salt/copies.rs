//! The requests of `salt-cp`.

use brine_protocol::value::{Value, map};
use serde_json::json;

use super::fake_master::{FakeMaster, field, returned};
use super::{JID, SALT_CP};

#[tokio::test]
async fn a_file_goes_whole_in_one_job() {
    let mut master = FakeMaster::start("").await;
    let motd = master.path("motd");
    std::fs::write(&motd, "žluť\n").unwrap();
    let salt_cp = master.command(SALT_CP, &["-L", "web1,web2", motd.to_str().unwrap(), "/etc/motd"]);
    let (mut bus, load) = master.job(JID, &["web1"]).await;
    assert_eq!((field(&load, "tgt"), field(&load, "tgt_type")), (json!(["web1", "web2"]), json!("list")));
    assert_eq!(field(&load, "fun"), json!("cp.recv"));
    assert_eq!(field(&load, "arg"), json!([{motd.to_str().unwrap(): "žluť\n"}, "/etc/motd"]));
    bus.fire(&returned(JID, "web1", map([("/etc/motd", true)]), 0)).await;
    salt_cp.await.unwrap().is(0, "web1:\n    ----------\n    /etc/motd:\n        True\n", "");
}

#[tokio::test]
async fn who_missed_a_chunk_gets_no_more_of_the_file() {
    let mut master = FakeMaster::start("salt_cp_chunk_size: 4\n").await;
    let data = master.path("data");
    std::fs::write(&data, "0123456789").unwrap();
    let salt_cp = master.command(SALT_CP, &["-C", "-n", "*", data.to_str().unwrap(), "/tmp/x/"]);
    let mut buses = Vec::new();
    for (tgt, chunk, append, answers) in [
        (json!("*"), "MDEyMw==", false, &[("web1", Value::from(true)), ("web2", Value::from("No space left"))][..]),
        (json!(["web1"]), "NDU2Nw==", true, &[("web1", Value::from(true))]),
        (json!(["web1"]), "ODk=", true, &[("web1", Value::from(true))]),
    ] {
        let ids: Vec<&str> = answers.iter().map(|(id, _)| *id).collect();
        let (mut bus, load) = master.job(JID, &ids).await;
        assert_eq!((field(&load, "tgt"), field(&load, "fun")), (tgt, json!("cp.recv_chunked")));
        let arg = field(&load, "arg");
        assert_eq!(
            (&arg[0], &arg[1], &arg[2], &arg[3]),
            (&json!("/tmp/x/data"), &json!(chunk), &json!(append), &json!(false))
        );
        for (id, answer) in answers {
            bus.fire(&returned(JID, id, answer.clone(), 0)).await;
        }
        buses.push(bus);
    }
    let out = "web1:\n    ----------\n    /tmp/x/data:\n        True\nweb2:\n    ----------\n    /tmp/x/data:\n        No space \
               left\n";
    salt_cp.await.unwrap().is(1, out, "ERROR: Minions did not take every file\n");
}

#[tokio::test]
async fn what_cannot_be_sent_is_said_before_anything_is() {
    let master = FakeMaster::start("").await;
    let folder = master.path("");
    for (args, code, words) in [
        (&["*", "/no/such/file", "/tmp/x"][..], 42, "/no/such/file does not exist"),
        (&["*", folder.to_str().unwrap(), "/tmp/x"], 1, "is a directory, only files are supported in non-chunked mode"),
        (&["*", "/etc/passwd"], 64, "Insufficient arguments"),
        (&["-H", "*", "/etc/passwd", "/tmp/x"], 64, "--hosts is not offered"),
    ] {
        let done = master.command(SALT_CP, args).await.unwrap();
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(done.code == code && said.contains(words), "{args:?}: {done:?}");
    }
}
