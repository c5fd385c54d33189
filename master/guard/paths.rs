//! The hot paths: what happens once for each job, or once for each minion of a job.

use std::hint::black_box;

use brine_master::jobs::{JobStore, NewReturn};
use brine_protocol::crypticle::{AesKey, Crypticle, SerialGuard};
use brine_protocol::event::{Event, FrameDecoder, Framing, frame};
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::keys::{PrivateKey, SignAlg};
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::publication;
use brine_protocol::sealed::{Body, Epoch, SealKeys, SealOffer, Sealed, SigningKey};
use brine_protocol::target::{Facts, Target, TargetType};
use brine_protocol::value::{Value, map};
use brine_zmtp::frame::{Decoder, DecoderLimits, encode_message};
use bytes::Bytes;

/// A path: its rounds are the same work each.
type PathFn = fn(u32);

pub(crate) const PATHS: &[(&str, PathFn)] = &[
    ("publication_sealed", publication_sealed),
    ("publication_opened", publication_opened),
    ("publication_sealed_for_each", publication_sealed_for_each),
    ("publication_of_ones_own_opened", publication_of_ones_own_opened),
    ("return_opened", return_opened),
    ("target_matched", target_matched),
    ("zmtp_messages_decoded", zmtp_messages_decoded),
    ("event_on_the_bus", event_on_the_bus),
    ("value_mapped", value_mapped),
    ("return_stored", return_stored),
];

/// Where the program finds a key: one for all runs, since making one takes random time.
pub(crate) const KEY: &str = "BRINE_GUARD_KEY";
const JID: &str = "20261120134740245008";

fn key() -> PrivateKey {
    let path = std::env::var_os(KEY).expect("the guard says where its key is");
    PrivateKey::load(path.as_ref()).expect("the guard made it")
}

fn aes() -> AesKey {
    let text = format!("{}QUI=", "QUJD".repeat(18));
    AesKey::from_text(&text).expect("56 bytes in base64")
}

fn job() -> Value {
    map([
        ("fun", Value::from("test.ping")),
        ("arg", Value::Array(Vec::new())),
        ("tgt", Value::from("*")),
        ("jid", Value::from(JID)),
        ("ret", Value::from("")),
        ("tgt_type", Value::from("glob")),
        ("user", Value::from("root")),
    ])
}

fn return_of_300_bytes() -> Value {
    map([
        ("cmd", Value::from("_return")),
        ("id", Value::from("web1.example")),
        ("jid", Value::from(JID)),
        ("fun", Value::from("status.uptime")),
        ("fun_args", Value::Array(Vec::new())),
        ("return", map([("seconds", Value::from(7_200)), ("since", Value::from("x".repeat(160)))])),
        ("retcode", Value::from(0)),
        ("success", Value::from(true)),
    ])
}

/// The master seals a publication, with its portable signature: OpenSSL's depends on the processor.
fn publication_sealed(rounds: u32) {
    let (key, crypticle) = (key(), Crypticle::new(&aes()));
    for serial in 1..=u64::from(rounds) {
        let sealed = publication::seal(job(), serial, &crypticle, &key, SignAlg::default());
        black_box(sealed.expect("the key signs"));
    }
}

/// A minion verifies, decrypts and decodes one.
fn publication_opened(rounds: u32) {
    let (key, crypticle) = (key(), Crypticle::new(&aes()));
    let sealed = publication::seal(job(), 1, &crypticle, &key, SignAlg::default()).expect("the key signs");
    for _ in 0..rounds {
        let opened = publication::open(&sealed, key.public(), &crypticle, &mut SerialGuard::new());
        black_box(opened.expect("it is the master's"));
    }
}

/// What seals publications for ten minions, and opens one. AWS-LC chooses its code by the processor: the counts are of one with AVX2.
struct Sealing {
    signer: SigningKey,
    epoch: Epoch,
    ids: Vec<MinionId>,
    keys: SealKeys,
}

impl Sealing {
    fn new() -> Self {
        let (key, publish) = (key(), aes());
        let ids: Vec<MinionId> = (0..10).map(|n| format!("web{n}.example").parse().expect("an id")).collect();
        let signer = SigningKey::of(&key).expect("it derives");
        let offer = SealOffer::make(&signer, &key).expect("the key signs");
        Self {
            epoch: Epoch::new(&publish, &signer),
            signer,
            keys: SealKeys::new(&ids[0], offer, &publish, &aes()),
            ids,
        }
    }
}

/// The master signs a publication and seals it for ten minions.
fn publication_sealed_for_each(rounds: u32) {
    let Sealing { signer, epoch, ids, .. } = Sealing::new();
    for serial in 1..=u64::from(rounds) {
        let body = Body::seal(&job(), serial, &epoch, &signer);
        for id in &ids {
            black_box(body.header(id, &aes(), &epoch));
        }
    }
}

/// A minion opens a publication for it alone, and verifies it.
fn publication_of_ones_own_opened(rounds: u32) {
    let Sealing { signer, epoch, ids, keys } = Sealing::new();
    let body = Body::seal(&job(), 1, &epoch, &signer);
    let sealed = Sealed::parse(&body.header(&ids[0], &aes(), &epoch), body.bytes()).expect("well formed");
    for _ in 0..rounds {
        black_box(sealed.load(&keys).expect("it is the master's"));
    }
}

/// A return's decryption and decoding in the master.
fn return_opened(rounds: u32) {
    let crypticle = Crypticle::new(&aes());
    let sealed = crypticle.seal(&return_of_300_bytes(), None);
    for _ in 0..rounds {
        black_box(crypticle.open(&sealed, None, &Limits::REQUEST).expect("it is the minion's"));
    }
}

/// A compound target, parsed once and matched against a thousand minions.
fn target_matched(rounds: u32) {
    let minions: Vec<(MinionId, Value)> = (0..1_000)
        .map(|n| {
            let id = format!("web{n}.example").parse().expect("an id");
            let role = if n % 3 == 0 { "web" } else { "db" };
            let grains =
                map([("os", Value::from("Debian")), ("role", Value::from(role)), ("num_cpus", Value::from(n))]);
            (id, grains)
        })
        .collect();
    for _ in 0..rounds {
        let expression = Value::from("web*.example and G@role:web and not E@web1[0-9]{2}\\.example");
        let target = Target::parse(TargetType::Compound, &expression, ":").expect("a target");
        let matched =
            minions.iter().filter(|(id, grains)| target.matches(&Facts { id, grains: Some(grains), pillar: None }));
        assert_eq!(black_box(matched.count()), 301);
    }
}

/// A hundred messages of two frames.
fn zmtp_messages_decoded(rounds: u32) {
    let message = encode_message(&[Bytes::new(), Bytes::from(vec![7; 600])]);
    let stream = message.repeat(100);
    for _ in 0..rounds {
        let mut decoder = Decoder::new(DecoderLimits { max_message: 1 << 20, max_frames: 8, max_command: 512 });
        let mut count = 0;
        for mut part in stream.chunks(16 << 10) {
            while let Some(message) = decoder.decode(&mut part).expect("well formed") {
                black_box(message);
                count += 1;
            }
        }
        assert_eq!(count, 100);
    }
}

/// An event's way over the bus: encoded and framed by the master, unframed and decoded by a client.
fn event_on_the_bus(rounds: u32) {
    let tag = format!("salt/job/{JID}/ret/web1.example");
    let mut decoder = FrameDecoder::default();
    for _ in 0..rounds {
        let sent = frame(&Event::new(tag.as_str(), return_of_300_bytes()), Framing::Bare);
        decoder.buffer().extend_from_slice(&sent);
        let body = decoder.next_body().expect("a frame").expect("a whole one");
        black_box(Event::decode(&body).expect("an event"));
    }
}

/// A value of 10 KB, written in Salt's way and read.
fn value_mapped(rounds: u32) {
    let entry = |n: u32| map([("n", Value::from(n)), ("text", Value::from("x".repeat(80)))]);
    let value = Value::Array((0..100).map(entry).collect());
    for _ in 0..rounds {
        let packed = msgpack::encode_network(black_box(&value));
        black_box(msgpack::decode(&packed, &Limits::REQUEST).expect("a value"));
    }
}

/// A return on its way into the job store, one a commit.
fn return_stored(rounds: u32) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = JobStore::open(&folder.path().join("jobs.db")).expect("a new store");
        let jid: Jid = JID.parse().expect("a jid");
        for round in 0..rounds {
            let new = NewReturn {
                jid: jid.clone(),
                minion: format!("web{round}.example").parse().expect("an id"),
                fun: "status.uptime".to_owned(),
                at_ms: 1_800_000_000_000,
                retcode: 0,
                success: true,
                load: msgpack::encode_disk(&return_of_300_bytes()),
                receipt: None,
            };
            store.add_return(new).await.expect("it is stored");
        }
    });
}
