//! The master under test, and simulated minions and clients.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

pub(crate) use brine_kit::files::mode;
pub(crate) use brine_kit::wait::Deadline;
use brine_kit_peer::Minion;
pub(crate) use brine_kit_peer::key;
use brine_master::{MasterOpts, Server};
use brine_protocol::auth::AuthOutcome;
use brine_protocol::config::{Config, Role};
use brine_protocol::envelope::{AesEnvelope, Envelope};
use brine_protocol::event::{Event, EventSubscriber};
use brine_protocol::ids::MinionId;
use brine_protocol::keys::PrivateOps;
use brine_protocol::msgpack;
use brine_protocol::publication::PublicationError;
use brine_protocol::receiver::{Received, Receiver};
use brine_protocol::value::{Value, ValueExt, map};
use brine_zmtp::{Endpoint, ReqConfig, Requester, SubConfig, SubEvent, Subscriber};
use bytes::Bytes;
use tempfile::TempDir;

/// A wait that takes this long has failed. It is shorter than the master's own deadlines.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Returns a minion's time.
pub(crate) fn now() -> i64 {
    i64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap()
}

pub(crate) fn id(text: &str) -> MinionId {
    MinionId::try_from(text).unwrap()
}

pub(crate) struct TestMaster {
    pub(crate) dir: TempDir,
    pub(crate) server: Option<Server>,
    extra: String,
}

impl TestMaster {
    /// Starts a master with these further lines in its configuration.
    pub(crate) async fn start(extra: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("pki")).unwrap();
        // Shared between tests, like the minions' keys.
        key(0).write_private(&dir.path().join("pki/master.pem")).unwrap();
        std::fs::create_dir_all(dir.path().join("files")).unwrap();
        let mut master = Self { dir, server: None, extra: extra.to_owned() };
        master.start_again().await;
        master
    }

    pub(crate) fn config(&self) -> String {
        let top = self.path("").display().to_string();
        format!(
            "id: test_master\ninterface: 127.0.0.1\npublish_port: 0\nret_port: 0\nroot_dir: {top}\npki_dir: {top}pki\ncachedir: {top}cache\n\
             sock_dir: {top}sock\npidfile: {top}run/pid\nlog_file: {top}log\nfile_roots: {{base: [{top}files]}}\n{}\n",
            self.extra
        )
    }

    pub(crate) async fn start_again(&mut self) {
        let config = Config::from_yaml(&self.config(), &self.path("master"), Role::Master).unwrap();
        // In a box: it is large, and so would be what each test awaits.
        self.server = Some(Box::pin(Server::start(MasterOpts::from_config(&config).unwrap())).await.unwrap());
    }

    pub(crate) async fn stop(&mut self) {
        self.server.take().unwrap().stop().await;
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn key_in(&self, folder: &str, id: &str) -> bool {
        self.path("pki").join(folder).join(id).exists()
    }

    pub(crate) fn accept(&self, id: &str) {
        std::fs::rename(self.path("pki/minions_pre").join(id), self.path("pki/minions").join(id)).unwrap();
    }

    pub(crate) fn local_key(&self) -> String {
        std::fs::read_to_string(self.path("cache/.root_key")).unwrap()
    }

    pub(crate) async fn events(&self) -> Events {
        let bus = EventSubscriber::connect(&self.path("sock/master_event_pub.ipc")).await.unwrap();
        // Otherwise only jobs settle the bus.
        self.server().bus().settle();
        Events { bus }
    }

    pub(crate) fn requester(&self) -> Requester {
        Requester::new(self.server().request_endpoint().clone(), ReqConfig::default())
    }

    /// Sends a request over a new connection. Returns the raw reply.
    pub(crate) async fn raw(&self, payload: impl Into<Bytes>) -> Vec<u8> {
        self.requester().request(payload.into(), SOON).await.unwrap().to_vec()
    }

    /// Sends a clear request that may have to wait for its turn among many others.
    pub(crate) async fn clear_in_turn(&self, load: Value) -> Value {
        let payload = Envelope::clear(load).encode();
        decode(&self.requester().request(payload.into(), 4 * SOON).await.unwrap())
    }

    /// Sends a clear request.
    pub(crate) async fn clear(&self, load: Value) -> Value {
        decode(&self.raw(Envelope::clear(load).encode()).await)
    }

    /// Publishes a job like the `salt` command.
    pub(crate) async fn publish(&self, tgt: &str, tgt_type: &str, fun: &str, arg: Vec<Value>) -> Value {
        let load = self.publish_load(tgt, tgt_type, fun, arg);
        self.clear(load).await
    }

    pub(crate) fn publish_load(&self, tgt: &str, tgt_type: &str, fun: &str, arg: Vec<Value>) -> Value {
        map([
            ("cmd", Value::from("publish")),
            ("tgt", Value::from(tgt)),
            ("fun", Value::from(fun)),
            ("arg", Value::Array(arg)),
            ("key", Value::from(self.local_key())),
            ("tgt_type", Value::from(tgt_type)),
            ("ret", Value::from("")),
            ("jid", Value::from("")),
            ("kwargs", map([("delimiter", ":")])),
            ("user", Value::from("root")),
        ])
    }

    /// Makes a minion with an accepted key that has authenticated.
    pub(crate) async fn minion(&self, name: &str, key_no: usize) -> TestMinion {
        let mut minion = TestMinion::new(name, key_no);
        minion.accept(&self.path("pki"));
        minion.connect(self.server().request_endpoint()).await;
        minion
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Value {
    msgpack::decode(bytes, &msgpack::Limits::REQUEST).unwrap()
}

/// The event bus from a client's view.
pub(crate) struct Events {
    bus: EventSubscriber,
}

impl Events {
    pub(crate) async fn next(&mut self) -> Event {
        SOON.within(self.bus.recv()).await.unwrap().unwrap()
    }

    /// Waits for the next event whose tag has this prefix.
    pub(crate) async fn wait(&mut self, tag: &str) -> Event {
        loop {
            let event = self.next().await;
            if event.tag.starts_with(tag) {
                return event;
            }
        }
    }
}

/// A minion, and what only tests of the master's defences do with it.
pub(crate) struct TestMinion {
    minion: Minion,
    /// The nonce of the last envelope.
    nonce: Mutex<String>,
}

impl Deref for TestMinion {
    type Target = Minion;

    fn deref(&self) -> &Minion {
        &self.minion
    }
}

impl DerefMut for TestMinion {
    fn deref_mut(&mut self) -> &mut Minion {
        &mut self.minion
    }
}

impl TestMinion {
    pub(crate) fn new(name: &str, key_no: usize) -> Self {
        Self { minion: Minion::new(name, key_no), nonce: Mutex::default() }
    }

    pub(crate) async fn authenticate(&self, master: &TestMaster) -> AuthOutcome {
        self.minion.authenticate(master.server().request_endpoint()).await
    }

    /// Sends a request, and checks that the reply is encrypted and has the nonce.
    pub(crate) async fn ask(&self, master: &TestMaster, load: Value) -> Value {
        let sealed = self.session().seal_request(load).unwrap();
        let reply = master.raw(sealed.payload).await;
        self.session().open_reply(&reply, &sealed.nonce).unwrap()
    }

    /// Makes an envelope for `outer` from a load. Adds a nonce and a time if they are missing, and a valid `tok` if the
    /// load says so.
    pub(crate) fn envelope(&self, mut load: Value, outer: &str, version: u64) -> Vec<u8> {
        if !load.has("nonce") {
            load.insert("nonce", format!("{:032x}", rand::random::<u128>()));
        }
        if !load.has("ts") {
            load.insert("ts", now());
        }
        load.get_text("nonce").unwrap_or_default().clone_into(&mut self.nonce.lock().unwrap());
        self.envelope_as_is(load, outer, version)
    }

    /// Makes an envelope for `outer` from exactly this load (with a valid `tok`, if the load says so).
    pub(crate) fn envelope_as_is(&self, mut load: Value, outer: &str, version: u64) -> Vec<u8> {
        if load.get_text("tok") == Some("good") {
            load.insert("tok", Value::Binary(self.key.x931_sign(b"salt").unwrap()));
        }
        let crypticle = brine_protocol::crypticle::Crypticle::new(&self.credentials.as_ref().unwrap().session_key);
        let aes = AesEnvelope {
            load: crypticle.seal(&load, None),
            version,
            id: MinionId::try_from(outer).ok(),
            enc_algo: None,
            sig_algo: None,
        };
        Envelope::Aes(aes).encode()
    }

    /// Decrypts the reply to the last envelope of [`TestMinion::envelope`].
    pub(crate) fn opened(&self, reply: &[u8]) -> Value {
        let crypticle = brine_protocol::crypticle::Crypticle::new(&self.credentials.as_ref().unwrap().session_key);
        let sealed = decode(reply);
        let blob = sealed.bytes().unwrap_or_else(|| panic!("not encrypted: {sealed}"));
        crypticle.open(blob, Some(&self.nonce.lock().unwrap()), &msgpack::Limits::REQUEST).unwrap()
    }

    pub(crate) async fn pillar(&self, master: &TestMaster) -> Value {
        let load = map([
            ("cmd", Value::from("_pillar")),
            ("grains", map([("os", "Test")])),
            ("saltenv", Value::Nil),
            ("ver", Value::from("2")),
        ]);
        let sealed = self.session().seal_request(load).unwrap();
        let reply = master.raw(sealed.payload).await;
        self.session().open_pillar_reply(&reply, &sealed.nonce).unwrap()
    }

    /// Subscribes to publications, and waits until the master knows the subscription.
    pub(crate) async fn subscribe(&self, master: &TestMaster, topics: &[&str]) -> Publications {
        let config = SubConfig {
            subscriptions: topics.iter().map(|topic| Bytes::copy_from_slice(topic.as_bytes())).collect(),
            ..SubConfig::default()
        };
        let mut subscriber = Subscriber::connect(master.server().publish_endpoint().clone(), config);
        SOON.within(async { while subscriber.recv().await != SubEvent::Connected {} }).await;
        master.server().wait_for_subscribers(1).await;
        let credentials = self.credentials.as_ref().unwrap();
        let receiver = Box::new(Receiver::new(&self.id, credentials, false));
        Publications { subscriber, receiver, topic: self.id.topic() }
    }
}

pub(crate) struct Publications {
    subscriber: Subscriber,
    pub(crate) receiver: Box<Receiver>,
    topic: String,
}

impl Publications {
    /// Receives the frames of a publication: the topic, if there is one, and the payload.
    pub(crate) async fn frames(&mut self) -> Vec<Bytes> {
        loop {
            if let SubEvent::Message(frames) = SOON.within(self.subscriber.recv()).await {
                return frames;
            }
        }
    }

    /// Opens a publication of this minion.
    pub(crate) fn open(&mut self, frames: &[Bytes]) -> Result<Value, PublicationError> {
        let received = Received::parse(frames, self.topic.as_bytes())?.expect("of this minion");
        self.receiver.open(&received).map(|opened| opened.load)
    }

    pub(crate) async fn load(&mut self) -> Value {
        let frames = self.frames().await;
        self.open(&frames).unwrap()
    }
}

/// Connects without a ZMTP client, for bytes that no client would send.
pub(crate) async fn dial(endpoint: &Endpoint) -> tokio::net::TcpStream {
    let Endpoint::Tcp { host, port, .. } = endpoint else { panic!() };
    tokio::net::TcpStream::connect((host.as_str(), *port)).await.unwrap()
}
