//! A minion on the wire without a host, for tests of masters, and the keys of both.
#![allow(clippy::unwrap_used, reason = "only tests use it")]

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brine_kit::keys::PEM;
use brine_protocol::auth::{AuthOutcome, Credentials, MinionAuth};
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{EncAlg, PrivateKey, PublicKey, SignAlg};
use brine_protocol::request::Session;
use brine_protocol::value::{Value, map};
use brine_zmtp::{Endpoint, ReqConfig, Requester};

/// Longer than any reply of the master takes, shorter than a test's deadline.
pub const ANSWER: Duration = Duration::from_secs(30);

/// Returns one of the keys of [`brine_kit::keys`]. The choice matters only where two must differ.
pub fn key(n: usize) -> PrivateKey {
    static KEYS: [OnceLock<PrivateKey>; PEM.len()] = [const { OnceLock::new() }; PEM.len()];
    KEYS[n].get_or_init(|| PrivateKey::from_pem(PEM[n]).unwrap()).clone()
}

/// A minion without a host: it authenticates and sends requests.
pub struct Minion {
    /// Its id.
    pub id: MinionId,
    /// Its key.
    pub key: Arc<PrivateKey>,
    /// The master's key, if it has seen one.
    pub master: Option<PublicKey>,
    /// What the master gave it, if it was accepted.
    pub credentials: Option<Credentials>,
    /// The session with these credentials.
    pub session: Option<Session>,
    /// Whether it opens publications for it alone, as Brine's minions do and Python's do not.
    pub seals: bool,
}

impl Minion {
    /// Makes a minion that no master knows, with one of the keys.
    pub fn new(id: &str, key_no: usize) -> Self {
        let id = MinionId::try_from(id).unwrap();
        Self { id, key: Arc::new(key(key_no)), master: None, credentials: None, session: None, seals: false }
    }

    /// Writes its key where a master with this `pki_dir` has accepted it.
    pub fn accept(&self, pki_dir: &Path) {
        std::fs::create_dir_all(pki_dir.join("minions")).unwrap();
        std::fs::write(pki_dir.join("minions").join(self.id.as_str()), self.key.public().clean_pem()).unwrap();
    }

    /// Asks the master to be accepted. Returns its verified answer.
    pub async fn authenticate(&self, master: &Endpoint) -> AuthOutcome {
        let mut auth = MinionAuth::new(&self.id, &self.key);
        auth.master = self.master.as_ref();
        auth.seals = self.seals;
        let attempt = auth.attempt().unwrap();
        let mut requester = Requester::new(master.clone(), ReqConfig::default());
        let reply = requester.request(attempt.payload().to_vec().into(), ANSWER).await.unwrap();
        attempt.verify_reply(&reply).unwrap()
    }

    /// Takes the credentials of a master that accepted it.
    pub fn take(&mut self, credentials: Credentials) {
        let (enc, sig) = (EncAlg::OaepSha1, SignAlg::Pkcs1v15Sha1);
        self.session = Some(Session::new(&self.id, Arc::clone(&self.key), &credentials, enc, sig).unwrap());
        self.master = Some(credentials.master.clone());
        self.credentials = Some(credentials);
    }

    /// Authenticates with a master that accepts it.
    pub async fn connect(&mut self, master: &Endpoint) {
        let AuthOutcome::Accepted(credentials) = self.authenticate(master).await else {
            panic!("{} is not accepted", self.id);
        };
        self.take(*credentials);
    }

    /// Returns the session.
    pub fn session(&self) -> &Session {
        self.session.as_ref().unwrap()
    }

    /// Makes the load of a `_return`.
    pub fn return_load(&self, jid: &str, value: impl Into<Value>) -> Value {
        map([
            ("cmd", Value::from("_return")),
            ("id", Value::from(&self.id)),
            ("success", Value::from(true)),
            ("return", value.into()),
            ("retcode", Value::from(0)),
            ("jid", Value::from(jid)),
            ("fun", Value::from("test.ping")),
            ("fun_args", Value::Array(Vec::new())),
            ("user", Value::from("root")),
        ])
    }
}
