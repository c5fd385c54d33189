//! Sealed publications: who can open one, and what is refused.

use std::sync::LazyLock;

use super::*;
use crate::auth::Credentials;
use crate::keys::{PrivateKey, SignAlg};
use crate::publication::PublicationError;
use crate::receiver::{Received, Receiver};
use crate::value::{ValueExt as _, map};

static MASTER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::from_pem(brine_kit::keys::PEM[0]).unwrap());
static OTHER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::from_pem(brine_kit::keys::PEM[1]).unwrap());

fn id(name: &str) -> MinionId {
    MinionId::new(name).unwrap()
}

/// A master with one epoch, and the sessions of two minions.
struct World {
    signer: SigningKey,
    offer: SealOffer,
    publish: AesKey,
    epoch: Epoch,
    web1: AesKey,
    web2: AesKey,
}

impl World {
    fn new() -> Self {
        let (signer, publish) = (SigningKey::of(&MASTER).unwrap(), AesKey::generate());
        let (offer, epoch) = (SealOffer::make(&signer, &*MASTER).unwrap(), Epoch::new(&publish, &signer));
        Self { signer, offer, publish, epoch, web1: AesKey::generate(), web2: AesKey::generate() }
    }

    fn session(&self, name: &str) -> &AesKey {
        if name == "web1" { &self.web1 } else { &self.web2 }
    }

    fn credentials(&self, name: &str) -> Credentials {
        Credentials {
            publish_key: self.publish.clone(),
            session_key: self.session(name).clone(),
            publish_port: 4505,
            master: MASTER.public().clone(),
            master_is_new: false,
            offer: Some(self.offer.clone()),
            run: None,
        }
    }

    fn receiver(&self, name: &str) -> Receiver {
        Receiver::new(&id(name), &self.credentials(name), false)
    }

    fn body(&self, serial: u64, fun: &str) -> Body {
        Body::seal(&map([("fun", fun), ("jid", "20261120134740245008")]), serial, &self.epoch, &self.signer)
    }

    fn frames(&self, name: &str, body: &Body) -> [Bytes; 3] {
        let header = body.header(&id(name), self.session(name), &self.epoch);
        [id(name).topic().into(), header, body.bytes().clone()]
    }
}

fn open(receiver: &mut Receiver, name: &str, frames: &[Bytes]) -> Result<Option<Value>, PublicationError> {
    let Some(received) = Received::parse(frames, id(name).topic().as_bytes())? else { return Ok(None) };
    receiver.open(&received).map(|opened| Some(opened.load))
}

#[test]
fn each_minion_that_is_meant_opens_its_own_and_nobody_elses() {
    let world = World::new();
    let body = world.body(1, "test.ping");
    let (one, two) = (world.frames("web1", &body), world.frames("web2", &body));
    assert_eq!(one[2], two[2], "the body is encrypted once");
    for (name, frames) in [("web1", &one), ("web2", &two)] {
        let load = open(&mut world.receiver(name), name, frames).unwrap().unwrap();
        assert_eq!(load.get_text("fun"), Some("test.ping"));
        assert!(!load.has("serial"));
    }
    // The publish key, which all minions know, and the key of another minion open nothing.
    assert_eq!(open(&mut world.receiver("web2"), "web2", &one), Ok(None), "it has another topic");
    let [_, header, body] = one;
    let taken = [Bytes::from(id("web2").topic()), header, body];
    assert_eq!(open(&mut world.receiver("web2"), "web2", &taken), Err(PublicationError::BadMac));
}

#[test]
fn what_the_wire_shows_holds_nothing_of_the_load() {
    let world = World::new();
    let body = world.body(1, "cmd.run");
    let other = world.body(1, "test.pin");
    for frames in [world.frames("web1", &body), world.frames("web1", &other)] {
        let wire = frames.concat();
        assert!(!wire.windows(4).any(|four| [b"cmd.", b"2026", b"test"].contains(&four.try_into().unwrap())));
    }
    assert_ne!(body.bytes(), world.body(1, "cmd.run").bytes(), "equal loads do not look equal");
}

#[test]
fn a_serial_opens_once_and_in_order() {
    let world = World::new();
    let mut receiver = world.receiver("web1");
    let sent: Vec<_> = (1..4).map(|serial| world.frames("web1", &world.body(serial, "test.ping"))).collect();
    assert!(open(&mut receiver, "web1", &sent[1]).is_ok());
    assert_eq!(open(&mut receiver, "web1", &sent[1]), Err(PublicationError::Replayed(2)));
    assert_eq!(open(&mut receiver, "web1", &sent[0]), Err(PublicationError::Replayed(1)));
    assert!(open(&mut receiver, "web1", &sent[2]).is_ok());
}

/// Who is meant by two publications knows both keys: it may put what the master signed in the first, or its own words, into the second.
#[test]
fn another_minion_that_is_meant_cannot_change_the_body() {
    let world = World::new();
    let (first, second) = (world.body(1, "test.ping"), world.body(2, "test.version"));
    let under = |key: &[u8; 32], content: &[u8]| {
        let mut bytes = content.to_vec();
        aead::seal(key, 0, BODY, &mut bytes);
        Bytes::from(bytes)
    };
    let mut signed = first.bytes().to_vec();
    let signed = aead::open(&first.key, 0, BODY, &mut signed).unwrap().to_vec();
    let own = msgpack::encode_network(&map([("fun", "cmd.run")]));
    let unsigned = [vec![0; SIGNATURE_LEN], own.clone()].concat();
    let resigned = SigningKey::of(&OTHER).unwrap().sign(&signed_message(&world.epoch.id, 2, &own));
    for content in [signed, unsigned, [resigned.to_vec(), own].concat(), vec![1; 8], Vec::new()] {
        let [topic, header, _] = world.frames("web1", &second);
        let forged = [topic, header, under(&second.key, &content)];
        assert_eq!(open(&mut world.receiver("web1"), "web1", &forged), Err(PublicationError::BadSignature));
    }
}

#[test]
fn a_changed_byte_is_refused_wherever_it_is() {
    let world = World::new();
    let body = world.body(7, "test.ping");
    let [topic, header, body] = world.frames("web1", &body);
    for (frame, len) in [(1, header.len()), (2, body.len())] {
        for at in 0..len {
            let mut frames = [topic.clone(), header.clone(), body.clone()];
            let mut bytes = frames[frame].to_vec();
            bytes[at] ^= 1;
            frames[frame] = bytes.into();
            let opened = open(&mut world.receiver("web1"), "web1", &frames);
            // The master's word for the epoch is looked at where the epoch is another one.
            let is_word = frame == 1 && (1 + EPOCH_LEN..1 + EPOCH_LEN + SIGNATURE_LEN).contains(&at);
            assert_eq!(opened.is_ok(), is_word, "byte {at} of frame {frame}: {opened:?}");
        }
    }
    for len in [0, 1, HEADER_LEN - 1, HEADER_LEN + 1] {
        let frames = [topic.clone(), Bytes::from(vec![VERSION; len]), body.clone()];
        let opened = open(&mut world.receiver("web1"), "web1", &frames);
        assert!(matches!(opened, Err(PublicationError::Malformed(_))), "{len}: {opened:?}");
    }
}

#[test]
fn only_an_epoch_of_the_master_asks_for_authentication() {
    let (world, mut next) = (World::new(), World::new());
    next.web1 = world.web1.clone();
    let frames = next.frames("web1", &next.body(1, "test.ping"));
    let mut receiver = world.receiver("web1");
    assert_eq!(open(&mut receiver, "web1", &frames), Err(PublicationError::BadMac));
    // After a sign-in it opens, and what came before is known to be old.
    let earlier = receiver.rekey(&next.credentials("web1")).unwrap();
    assert!(open(&mut receiver, "web1", &frames).is_ok());
    let old = world.frames("web1", &world.body(9, "test.ping"));
    let parsed = Received::parse(&old, id("web1").topic().as_bytes()).unwrap().unwrap();
    assert!(earlier.made(&parsed));
    // Anybody can make an epoch up.
    let mut header = frames[1].to_vec();
    header[1] ^= 1;
    let made_up = [frames[0].clone(), header.into(), frames[2].clone()];
    assert_eq!(open(&mut receiver, "web1", &made_up), Err(PublicationError::BadSignature));
}

#[test]
fn a_minion_without_an_offer_opens_none() {
    let world = World::new();
    let frames = world.frames("web1", &world.body(1, "test.ping"));
    let credentials = Credentials { offer: None, ..world.credentials("web1") };
    let mut receiver = Receiver::new(&id("web1"), &credentials, false);
    assert_eq!(open(&mut receiver, "web1", &frames), Err(PublicationError::BadSignature));
}

#[test]
fn of_the_two_forms_of_a_job_one_opens_and_a_minion_may_insist() {
    let world = World::new();
    let shared = |serial| {
        let load = map([("fun", "test.ping")]);
        let crypticle = crate::crypticle::Crypticle::new(&world.publish);
        vec![crate::publication::seal(load, serial, &crypticle, &*MASTER, SignAlg::Pkcs1v15Sha224).unwrap()]
    };
    let mut receiver = world.receiver("web1");
    assert!(open(&mut receiver, "web1", &world.frames("web1", &world.body(1, "test.ping"))).is_ok());
    assert_eq!(open(&mut receiver, "web1", &shared(1)), Err(PublicationError::Twin));
    assert!(open(&mut receiver, "web1", &shared(2)).is_ok(), "a job that the master published for all");
    assert_eq!(open(&mut receiver, "web1", &shared(1)), Err(PublicationError::Replayed(1)));
    let mut insists = Receiver::new(&id("web1"), &world.credentials("web1"), true);
    assert_eq!(open(&mut insists, "web1", &shared(3)), Err(PublicationError::NotSealed));
    assert!(open(&mut insists, "web1", &world.frames("web1", &world.body(3, "test.ping"))).is_ok());
}

#[test]
fn the_master_vouches_for_its_key_and_for_no_other() {
    let signer = SigningKey::of(&MASTER).unwrap();
    let offer = SealOffer::make(&signer, &*MASTER).unwrap();
    let value = offer.to_value();
    assert_eq!(SealOffer::from_value(&value, MASTER.public()), Some(offer));
    assert_eq!(SealOffer::from_value(&value, OTHER.public()), None);
    for (field, bad) in [("key", vec![0; 32]), ("key", vec![0; 31]), ("sig", vec![0; 256]), ("sig", Vec::new())] {
        let mut changed = value.clone();
        changed.insert(field, Value::Binary(bad));
        assert_eq!(SealOffer::from_value(&changed, MASTER.public()), None, "{field}");
    }
    assert_eq!(signer.public(), SigningKey::of(&MASTER).unwrap().public(), "the same at each start");
    assert_ne!(signer.public(), SigningKey::of(&OTHER).unwrap().public());
}

proptest::proptest! {
    #[test]
    fn hostile_frames_do_not_open(
        header in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
    ) {
        let frames = [Bytes::from(id("web1").topic()), header.into(), body.into()];
        proptest::prop_assert!(open(&mut World::new().receiver("web1"), "web1", &frames).is_err());
    }
}
