//! A minion without a host: it authenticates and returns over the wire as fast as requested.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::auth::{AuthOutcome, MinionAuth};
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::keys::{EncAlg, PrivateKey, SignAlg};
use brine_protocol::request::Session;
use brine_protocol::value::{Value, map};
use brine_zmtp::{Endpoint, ReqConfig, Requester};

/// Longer than any reply of the master takes, shorter than a test's deadline.
const ANSWER: Duration = Duration::from_secs(30);

/// A minion's id and key.
pub(super) struct Peer {
    pub(super) id: MinionId,
    key: Arc<PrivateKey>,
}

/// A minion that has authenticated. Clones share the session.
#[derive(Clone)]
pub(super) struct Connected {
    pub(super) id: MinionId,
    session: Arc<Session>,
    endpoint: Endpoint,
}

impl Peer {
    /// Makes a minion whose key the master has accepted.
    pub(super) fn accepted(id: &str, pki_dir: &Path) -> Self {
        let key = Arc::new(PrivateKey::generate(2_048).expect("a key"));
        std::fs::create_dir_all(pki_dir.join("minions")).expect("the master's own folder");
        std::fs::write(pki_dir.join("minions").join(id), brine_protocol::keys::PrivateOps::public(&*key).clean_pem())
            .expect("the master's own folder");
        Self { id: MinionId::try_from(id).expect("an id"), key }
    }

    pub(super) async fn connect(&self, port: u16) -> Connected {
        let endpoint = Endpoint::tcp("127.0.0.1", port);
        let auth = MinionAuth::new(&self.id, &self.key);
        let attempt = auth.attempt().expect("an attempt");
        let mut requester = Requester::new(endpoint.clone(), ReqConfig::default());
        let reply = requester.request(attempt.payload().to_vec().into(), ANSWER).await.expect("a reply");
        let AuthOutcome::Accepted(credentials) = attempt.verify_reply(&reply).expect("a sound reply") else {
            panic!("{} is not accepted", self.id);
        };
        let (enc, sig) = (EncAlg::OaepSha1, SignAlg::Pkcs1v15Sha1);
        let session = Session::new(&self.id, Arc::clone(&self.key), &credentials, enc, sig).expect("a session");
        Connected { id: self.id.clone(), session: Arc::new(session), endpoint }
    }
}

impl Connected {
    /// Makes a separate connection.
    pub(super) fn requester(&self) -> Requester {
        Requester::new(self.endpoint.clone(), ReqConfig::default())
    }

    /// Sends a return for a job. Returns whether the master acknowledged it.
    pub(super) async fn give(&self, requester: &mut Requester, jid: &Jid, value: &str) -> bool {
        let load = map([
            ("cmd", Value::from("_return")),
            ("id", Value::from(&self.id)),
            ("jid", Value::from(jid)),
            ("fun", Value::from("test.echo")),
            ("fun_args", Value::Array(vec![Value::from(value)])),
            ("return", Value::from(value)),
            ("retcode", Value::from(0)),
            ("success", Value::from(true)),
        ]);
        let sealed = self.session.seal_request(load).expect("a request");
        let Ok(reply) = requester.request(sealed.payload.into(), ANSWER).await else { return false };
        // A refusal is not encrypted, so it cannot be opened.
        self.session.open_reply(&reply, &sealed.nonce).is_ok_and(|reply| reply.is_nil())
    }
}
