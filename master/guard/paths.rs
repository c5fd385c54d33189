//! The hot paths: what happens once for each job, or once for each minion of a job.

use std::hint::black_box;
use std::sync::Arc;

use brine_master::jobs::{JobStore, NewReturn};
use brine_protocol::auth::{Credentials, resume_request, resumed};
use brine_protocol::crypticle::{AesKey, Crypticle, SerialGuard};
use brine_protocol::envelope::{AesEnvelope, Envelope};
use brine_protocol::event::{Event, FrameDecoder, Framing, frame};
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::keys::{EncAlg, PrivateKey, SignAlg};
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::publication;
use brine_protocol::request::{SealedRequest, Session, seal_content_reply, seal_reply};
use brine_protocol::sealed::{Body, Epoch, SealKeys, SealOffer, Sealed, SigningKey};
use brine_protocol::target::{Facts, Target, TargetType};
use brine_protocol::value::{Value, map};
use brine_receipts::{Call, Digest, Fingerprint, Module, Outcome, Receipt, Series, Time, Vouched};
use brine_zmtp::frame::{Decoder, DecoderLimits, encode_message};
use bytes::Bytes;

/// A path: its rounds are the same work each.
type PathFn = fn(u32);

pub(crate) const PATHS: &[(&str, PathFn)] = &[
    ("publication_sealed", publication_sealed),
    ("publication_opened", publication_opened),
    ("publication_sealed_for_each", publication_sealed_for_each),
    ("publication_of_ones_own_opened", publication_of_ones_own_opened),
    ("session_resumed", session_resumed),
    ("content_sealed_and_opened", content_sealed_and_opened),
    ("receipt_made", receipt_made),
    ("receipt_verified", receipt_verified),
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

/// What a minion has after its sign-in, and its request.
fn session_of(sealing: &Sealing, load: &Value) -> (Credentials, Session, SealedRequest, AesEnvelope) {
    let key = Arc::new(key());
    let credentials = Credentials {
        publish_key: aes(),
        session_key: aes(),
        publish_port: 4505,
        master: key.public().clone(),
        master_is_new: false,
        offer: Some(SealOffer::make(&sealing.signer, &*key).expect("the key signs")),
        run: None,
    };
    let session = Session::new(&sealing.ids[0], key, &credentials, EncAlg::default(), SignAlg::default());
    let session = session.expect("the key signs");
    let request = session.seal_request(load.clone()).expect("it is sealed");
    let Ok(Envelope::Aes(envelope)) = Envelope::decode(&request.payload, &Limits::ENVELOPE) else {
        unreachable!("it was just made")
    };
    (credentials, session, request, envelope)
}

/// A minion gets the present keys under its session: the master's answer, and what the minion does with it.
fn session_resumed(rounds: u32) {
    let sealing = Sealing::new();
    let (credentials, session, request, _) = session_of(&sealing, &resume_request());
    let crypticle = Crypticle::new(&credentials.session_key);
    let offer = credentials.offer.as_ref().expect("it was made with one");
    for _ in 0..rounds {
        let answer = resumed(&credentials.publish_key, &sealing.epoch, 4505, offer, None);
        let reply = seal_reply(&crypticle, &answer, Some(&request.nonce));
        let opened = session.open_reply(&reply, &request.nonce).expect("it is the master's");
        black_box(credentials.resume(&opened).expect("the keys are the master's"));
    }
}

/// A piece of 64 KiB of a file, from the master to the minion.
fn content_sealed_and_opened(rounds: u32) {
    let load = map([("cmd", Value::from("_serve_file")), ("path", Value::from("a")), ("loc", Value::from(0))]);
    let (credentials, session, request, envelope) = session_of(&Sealing::new(), &load);
    for _ in 0..rounds {
        let answer = map([("data", Value::Binary(vec![7; 64 << 10])), ("dest", Value::from("a"))]);
        let reply = seal_content_reply(&credentials.session_key, answer, &envelope).expect("the envelope has a MAC");
        let opened = session.open_content(reply.into(), &request.nonce, &request.mac);
        black_box(opened.expect("it is the master's"));
    }
}

const MINION_KEY: Fingerprint = Fingerprint([7; 32]);

/// Of a job with one function of a standard module.
fn receipt() -> Receipt {
    let of = |text: &str| Digest::of(text.as_bytes());
    let module = Module {
        name: "test".to_owned(),
        sha256: of("module"),
        version: Some("0.1.0".to_owned()),
        signers: Vec::new(),
        grants: of("grants"),
    };
    let call = Call { function: "test.ping".to_owned(), retcode: 0, module: Some(module), usage: None };
    Receipt {
        version: Receipt::VERSION,
        number: 1_000,
        previous: Some(of("previous")),
        minion: "web1.example".to_owned(),
        minion_key: MINION_KEY,
        master: Some(Fingerprint([2; 32])),
        series: Series::Spooled,
        publication: Some(of("publication")),
        jid: JID.to_owned(),
        arguments: of("arguments"),
        calls: vec![call],
        policy: Some(of("policy")),
        walls: ["user", "no_new_privs", "hidden", "seccomp", "landlock 6", "cgroup"].map(str::to_owned).to_vec(),
        start: Time(1_763_646_460_245_008_000),
        end: Time(1_763_646_460_249_000_001),
        retcode: 0,
        outcome: Outcome::Ran,
        returned: of("returned"),
    }
}

/// A minion signs one and encodes it for its file and for the return.
fn receipt_made(rounds: u32) {
    let key = receipts_key();
    for _ in 0..rounds {
        let receipt = key.sign(receipt());
        black_box(receipt.to_compact());
        black_box(Vouched { receipt, vouch: vec![7; 256] }.to_text());
    }
}

/// The master reads one from a return and verifies it.
fn receipt_verified(rounds: u32) {
    let text = Vouched { receipt: receipts_key().sign(receipt()), vouch: vec![7; 256] }.to_text();
    for _ in 0..rounds {
        black_box(Vouched::from_text(&text, MINION_KEY).expect("it holds"));
    }
}

/// Any seed is a key, and this one is of all runs.
fn receipts_key() -> brine_receipts::SigningKey {
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n-----END PRIVATE KEY-----\n";
    brine_receipts::SigningKey::from_pem(pem).expect("PKCS #8")
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
