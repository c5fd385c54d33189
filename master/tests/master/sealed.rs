//! Publications for one minion alone (§5.5), and sessions that go on (§3.10).

use brine_kit::files::set_mode;
use brine_protocol::auth::{AuthOutcome, resume_request};
use brine_protocol::publication::PublicationError;
use brine_protocol::value::{Value, ValueExt, map};
use brine_zmtp::{SubConfig, SubEvent, Subscriber};
use bytes::Bytes;

use crate::harness::{Deadline as _, Publications, SOON, TestMaster, TestMinion, decode};

/// A minion as Brine's: it opens publications for it alone, and has said so in a request.
async fn brine(master: &TestMaster, name: &str, key_no: usize) -> TestMinion {
    let mut minion = TestMinion::new(name, key_no);
    minion.seals = true;
    minion.accept(&master.path("pki"));
    minion.connect(master.server().request_endpoint()).await;
    minion.ask(master, map([("cmd", "_file_envs")])).await;
    minion
}

/// Subscribes to everything and to its own topic, as Brine's minions do.
async fn listen(master: &TestMaster, minion: &TestMinion) -> Publications {
    minion.subscribe(master, &["", &minion.id.topic()]).await
}

async fn ping(master: &TestMaster, tgt: &str) {
    master.publish(tgt, "glob", "test.echo", vec![Value::from("a secret")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_for_brine_minions_reaches_only_those_that_are_meant() {
    let master = TestMaster::start("").await;
    let (web1, web2, db1) =
        (brine(&master, "web1", 1).await, brine(&master, "web2", 2).await, brine(&master, "db1", 1).await);
    let (mut one, mut two, mut other) =
        (listen(&master, &web1).await, listen(&master, &web2).await, listen(&master, &db1).await);
    // Somebody on the network with the topics of the others.
    let topics = [&web1, &web2].map(|minion| Bytes::from(minion.id.topic())).to_vec();
    let config = SubConfig { subscriptions: [vec![Bytes::new()], topics].concat(), ..SubConfig::default() };
    let mut tap = Subscriber::connect(master.server().publish_endpoint().clone(), config);
    SOON.within(async { while tap.recv().await != SubEvent::Connected {} }).await;
    master.server().wait_for_subscribers(4).await;

    ping(&master, "web*").await;
    ping(&master, "db*").await;
    for publications in [&mut one, &mut two] {
        let load = publications.load().await;
        assert_eq!(load.get("arg"), Some(&Value::Array(vec![Value::from("a secret")])));
    }
    // It came after the job for the others, which this minion never got.
    assert_eq!(other.load().await.get_text("tgt"), Some("db*"));
    for _ in 0..2 {
        let SubEvent::Message(frames) = SOON.within(tap.recv()).await else { panic!() };
        assert_eq!(frames.len(), 3);
        // With all that another minion knows.
        let own = Bytes::from(db1.id.topic());
        let opened = other.open(&[own, frames[1].clone(), frames[2].clone()]);
        assert_eq!(opened.unwrap_err(), PublicationError::BadMac);
        assert!(!frames.concat().windows(6).any(|six| six == b"secret"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_python_minion_is_meant_both_forms_go_out_and_a_brine_minion_runs_the_job_once() {
    let master = TestMaster::start("").await;
    let (brine, python) = (brine(&master, "web1", 1).await, master.minion("web2", 2).await);
    let (mut own, mut all) = (listen(&master, &brine).await, python.subscribe(&master, &[""]).await);
    master.server().wait_for_subscribers(2).await;
    ping(&master, "*").await;
    assert_eq!(all.load().await.get_text("fun"), Some("test.echo"));
    assert_eq!(own.load().await.get_text("fun"), Some("test.echo"));
    let again = own.frames().await;
    assert_eq!(again.len(), 1);
    assert_eq!(own.open(&again).unwrap_err(), PublicationError::Twin);
    // For the Python minion alone, and for the other alone.
    ping(&master, "web2").await;
    ping(&master, "web1").await;
    ping(&master, "web2").await;
    for publications in [&mut all, &mut own] {
        assert_eq!(publications.load().await.get_text("tgt"), Some("web2"));
    }
    assert_eq!(own.load().await.get_text("tgt"), Some("web1"));
    assert_eq!(all.load().await.get_text("tgt"), Some("web2"));
}

/// An `_auth` request proves nothing, so it cannot make the master publish for all what was for one; only the minion's own request can.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_on_the_network_makes_the_master_publish_in_the_open() {
    let master = TestMaster::start("").await;
    let mut minion = brine(&master, "web1", 1).await;
    let mut publications = listen(&master, &minion).await;
    let mut form = async || {
        ping(&master, "web1").await;
        publications.frames().await.len()
    };
    assert_eq!(form().await, 3);
    // A man in the middle takes the word out of the request, and plays an old request back.
    minion.seals = false;
    minion.authenticate(&master).await;
    assert_eq!(form().await, 3);
    let old = map([
        ("cmd", Value::from("_file_envs")),
        ("id", Value::from("web1")),
        ("ts", Value::from(1)),
        ("tok", Value::from("good")),
    ]);
    assert_eq!(decode(&master.raw(minion.envelope(old, "web1", 3)).await), Value::from("bad load"));
    assert_eq!(form().await, 3, "the session ended, and what is known of the minion did not");

    // The same host with Python's minion.
    let AuthOutcome::Accepted(credentials) = minion.authenticate(&master).await else { panic!() };
    minion.take(*credentials);
    minion.ask(&master, map([("cmd", "_file_envs")])).await;
    assert_eq!(form().await, 1);
    // What it says without proof does not change that either, in the other direction.
    minion.seals = true;
    let AuthOutcome::Accepted(credentials) = minion.authenticate(&master).await else { panic!() };
    assert_eq!(form().await, 1);
    minion.take(*credentials);
    minion.ask(&master, map([("cmd", "_file_envs")])).await;
    assert_eq!(form().await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_may_publish_as_salt_does() {
    let master = TestMaster::start("publications: shared").await;
    let minion = brine(&master, "web1", 1).await;
    assert!(minion.credentials.as_ref().unwrap().offer.is_none());
    let mut publications = listen(&master, &minion).await;
    ping(&master, "web1").await;
    let frames = publications.frames().await;
    assert_eq!(frames.len(), 1);
    assert_eq!(publications.open(&frames).unwrap().get_text("fun"), Some("test.echo"));
    assert_eq!(resume(&master, &minion).await, Value::from("bad load"));
}

/// Asks to go on with the session. Returns the answer, or the text of a refusal.
async fn resume(master: &TestMaster, minion: &TestMinion) -> Value {
    let sealed = minion.session().seal_request(resume_request()).unwrap();
    let reply = master.raw(sealed.payload).await;
    minion.session().open_reply(&reply, &sealed.nonce).unwrap_or_else(|_| decode(&reply))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_after_a_rotation_and_after_a_restart() {
    let master = TestMaster::start("").await;
    let minion = brine(&master, "web1", 1).await;
    let before = minion.credentials.clone().unwrap();
    let mut publications = listen(&master, &minion).await;
    let mut events = master.events().await;
    let path = master.path("cache/.dfn");
    std::fs::write(&path, "test_master").unwrap();
    set_mode(&path, 0o400);
    events.wait("key").await;
    ping(&master, "web1").await;
    let frames = publications.frames().await;
    assert!(publications.open(&frames).unwrap_err().wants_reauth());
    let after = before.resume(&resume(&master, &minion).await).unwrap();
    assert_eq!(events.wait("salt/auth").await.data.get_text("act"), Some("accept"));
    assert!(after.publish_key != before.publish_key && after.session_key == before.session_key);
    publications.receiver.rekey(&after);
    assert_eq!(publications.open(&frames).unwrap().get_text("fun"), Some("test.echo"));

    let mut master = master;
    master.stop().await;
    master.start_again().await;
    let again = after.resume(&resume(&master, &minion).await).unwrap();
    assert_ne!(again.publish_key, after.publish_key);
    let text = std::fs::read(master.path("cache/brine_sessions/web1")).unwrap();
    let key = before.session_key.text().expose().as_bytes();
    assert!(!text.windows(8).any(|eight| key.starts_with(eight)), "the file on the disk is encrypted");
}

/// What was recorded before a restart has no effect after it, although sessions outlive the restart and the nonces that were seen do not.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_an_earlier_run_are_not_taken() {
    let mut master = TestMaster::start("").await;
    let minion = brine(&master, "web1", 1).await;
    let python = master.minion("web2", 2).await;
    let refused = Value::from("bad load");
    let event = |minion: &TestMinion| {
        minion.session().seal_request(map([("cmd", "_minion_event"), ("tag", "my/tag")])).unwrap().payload
    };
    let question = minion.session().seal_request(resume_request()).unwrap();
    let mut recorded = vec![event(&minion), event(&minion), event(&python), question.payload.clone()];
    for payload in &recorded {
        assert_ne!(decode(&master.raw(payload.clone()).await), refused);
    }
    let mut credentials = minion.credentials.clone().unwrap();
    for run in 1..=2 {
        master.stop().await;
        master.start_again().await;
        let mut events = master.events().await;
        // Only the minion can read the answer to a recorded question, and it decides nothing about other requests.
        assert!(minion.session().open_reply(&master.raw(question.payload.clone()).await, &question.nonce).is_ok());
        events.wait("salt/auth").await;
        for payload in &recorded {
            assert_eq!(decode(&master.raw(payload.clone()).await), refused, "run {run}");
            let tag = events.next().await.tag;
            assert!(tag.starts_with("brine/refused/re"), "nothing comes of it, but {tag}");
        }
        // The session goes on in this run, and no RSA operation was needed.
        credentials = credentials.resume(&resume(&master, &minion).await).unwrap();
        assert_eq!(credentials.session_key, minion.credentials.as_ref().unwrap().session_key);
        let session = minion.session().resumed(&credentials);
        let sealed = session.seal_request(map([("cmd", "_file_envs")])).unwrap();
        let reply = master.raw(sealed.payload.clone()).await;
        assert!(session.open_reply(&reply, &sealed.nonce).is_ok(), "run {run}");
        recorded.push(sealed.payload);
        for payload in &recorded {
            assert_eq!(decode(&master.raw(payload.clone()).await), refused, "run {run}, after the minion");
        }
    }
    // A whole authentication tells the run too; who knows no runs gets another session.
    let AuthOutcome::Accepted(again) = minion.authenticate(&master).await else { panic!("it is accepted") };
    assert!(again.session_key == credentials.session_key && again.run == credentials.run && again.run.is_some());
    let AuthOutcome::Accepted(again) = python.authenticate(&master).await else { panic!("it is accepted") };
    assert!(again.session_key != python.credentials.as_ref().unwrap().session_key && again.run.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_whose_key_is_gone_rejected_or_another_does_not_go_on() {
    let master = TestMaster::start("").await;
    let refused = Value::from("bad load");
    for (name, change) in [
        ("gone", &(|path: &std::path::Path| std::fs::remove_file(path).unwrap()) as &dyn Fn(&std::path::Path)),
        ("rejected", &|path| {
            let rejected = path.parent().unwrap().with_file_name("minions_rejected");
            std::fs::create_dir_all(&rejected).unwrap();
            std::fs::rename(path, rejected.join(path.file_name().unwrap())).unwrap();
        }),
        ("other", &|path| {
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, crate::harness::key(2).public().clean_pem()).unwrap();
        }),
        // Deleted and accepted again: who had the key before may know the session.
        ("anew", &|path| {
            let text = std::fs::read(path).unwrap();
            std::fs::remove_file(path).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            std::fs::write(path, text).unwrap();
        }),
    ] {
        let minion = brine(&master, name, 1).await;
        assert_ne!(resume(&master, &minion).await, refused, "{name}");
        change(&master.path("pki/minions").join(name));
        assert_eq!(resume(&master, &minion).await, refused, "{name}");
    }
}
