//! A master that behaves as a test defines.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use brine_kit::wait::Deadline;
pub use brine_kit_peer::key;
use brine_protocol::auth::{Accepted, AuthRequest, RESUME, publish_key_signature, resumed};
use brine_protocol::crypticle::{AesKey, Crypticle};
use brine_protocol::envelope::{AesEnvelope, Envelope};
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::keys::{PrivateKey, PublicKey, SignAlg};
use brine_protocol::msgpack::Limits;
use brine_protocol::publication;
use brine_protocol::request::{
    Request, RequestPolicy, clear_reply, open_request, seal_content_reply, seal_pillar_reply, seal_reply,
};
use brine_protocol::sealed::{Body, Epoch, SealOffer, SigningKey};
use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_zmtp::{Endpoint, PubConfig, Publisher, Router, RouterConfig};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::running::ID;

/// A deadline far beyond the duration of every step, and shorter than the minion's own time limits.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// The requests that the master received.
#[derive(Debug, Clone)]
pub enum Seen {
    /// An authentication and the reply.
    Auth(Verdict),
    /// A request with a proved sender.
    Request { cmd: String, load: Value },
    /// A refused request.
    Refused(#[allow(dead_code, reason = "shown when a test fails")] String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accept,
    Pending,
    Reject,
    Full,
}

/// The reply to a return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnReturn {
    Acknowledge,
    /// As from a master whose handler failed.
    EmptyText,
    /// No reply.
    Silence,
}

/// A file on the file server.
pub struct File {
    pub content: Vec<u8>,
    /// The reply to `_file_hash`; none for the actual hash.
    pub said: Option<String>,
    pub hash_type: &'static str,
}

pub struct Script {
    /// The next verdicts; after the last one, accept.
    pub verdicts: VecDeque<Verdict>,
    pub publish_key: AesKey,
    pub session_key: AesKey,
    pub serial: u64,
    /// This many requests are answered with `bad load`.
    pub bad_loads: usize,
    pub on_return: OnReturn,
    /// The files of `base`, the only environment.
    pub files: HashMap<String, File>,
    /// Whether requests for lists of files get no reply.
    pub no_list: bool,
    /// Bytes of a chunk of a file.
    pub chunk: usize,
    /// The file whose content requests get no reply.
    pub no_content: Option<String>,
    /// The file whose hash comes only when its content has been asked for to the end.
    pub hash_last: Option<String>,
    /// Whether the reply that was just made is kept until then.
    holds: bool,
    /// The time after each reply: a slow link.
    pub pause: Duration,
    /// Whether it answers about several files and several returns at once, as a Brine master.
    pub together: bool,
    /// Whether it sends pieces as long as they are asked for, under an AEAD, as a Brine master.
    pub by_length: bool,
    /// The reply to requests for lists of files; none for the actual list.
    pub list: Option<Value>,
    pub pillar: Value,
    /// Whether events, mine data and files are refused.
    pub refuses: bool,
    pub minion_key: Option<PublicKey>,
    /// Replaces the reply to the next return.
    pub next_reply: Option<Vec<u8>>,
    /// Whether it makes sealed publications, and goes on with sessions, as a Brine master.
    pub seals: bool,
    /// Replaces the answer to the next minion that goes on with its session.
    pub next_resumed: Option<Value>,
}

pub struct Master {
    pub key: PrivateKey,
    pub script: Arc<Mutex<Script>>,
    pub seen: mpsc::UnboundedReceiver<Seen>,
    seen_by: mpsc::UnboundedSender<Seen>,
    pub request_port: u16,
    pub publish_port: u16,
    publisher: Option<Publisher>,
    serving: Option<JoinHandle<()>>,
}

impl Master {
    pub async fn start() -> Self {
        let script = Script {
            verdicts: VecDeque::new(),
            publish_key: AesKey::generate(),
            session_key: AesKey::generate(),
            serial: 0,
            bad_loads: 0,
            on_return: OnReturn::Acknowledge,
            files: HashMap::new(),
            no_list: false,
            chunk: 1000,
            no_content: None,
            hash_last: None,
            holds: false,
            pause: Duration::ZERO,
            together: false,
            by_length: false,
            list: None,
            pillar: map([("role", "test")]),
            refuses: false,
            minion_key: None,
            next_reply: None,
            seals: false,
            next_resumed: None,
        };
        let (seen_by, seen) = mpsc::unbounded_channel();
        let mut this = Self {
            key: key(0),
            script: Arc::new(Mutex::new(script)),
            seen,
            seen_by,
            request_port: 0,
            publish_port: 0,
            publisher: None,
            serving: None,
        };
        this.listen().await;
        this
    }

    /// Binds to any ports the first time, and to the same ports later.
    pub async fn listen(&mut self) {
        let endpoint = Endpoint::tcp("127.0.0.1", self.publish_port);
        let publisher = bind(|| Publisher::bind(&endpoint, PubConfig::default())).await;
        self.publish_port = publisher.endpoint().port().unwrap();
        self.publisher = Some(publisher);
        let endpoint = Endpoint::tcp("127.0.0.1", self.request_port);
        let router = bind(|| Router::bind(&endpoint, RouterConfig::default())).await;
        self.request_port = router.endpoint().port().unwrap();
        let desk = Desk {
            key: self.key.clone(),
            script: Arc::clone(&self.script),
            seen: self.seen_by.clone(),
            publish_port: self.publish_port,
        };
        self.serving = Some(tokio::spawn(desk.serve(router)));
    }

    /// Closes both ports, like a master that ends.
    pub async fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            let _ = serving.await;
        }
        if let Some(publisher) = self.publisher.take() {
            publisher.close(Duration::ZERO).await;
        }
    }

    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// Waits for something in the received requests.
    pub async fn expect<T>(&mut self, what: &str, mut pick: impl FnMut(&Seen) -> Option<T>) -> T {
        let mut others = Vec::new();
        let waited = tokio::time::timeout(DEADLINE, async {
            loop {
                let seen = self.seen.recv().await.unwrap();
                if let Some(picked) = pick(&seen) {
                    return picked;
                }
                others.push(seen);
            }
        });
        match waited.await {
            Ok(picked) => picked,
            Err(_) => panic!("waited in vain for {what}; saw {others:#?}"),
        }
    }

    pub async fn expect_auth(&mut self, verdict: Verdict) {
        let what = format!("an authentication answered {verdict:?}");
        self.expect(&what, |seen| matches!(seen, Seen::Auth(v) if *v == verdict).then_some(())).await;
    }

    pub async fn expect_request(&mut self, wanted: &str) -> Value {
        self.expect(wanted, |seen| match seen {
            Seen::Request { cmd, load } if cmd == wanted => Some(load.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for the return of a job.
    pub async fn expect_return(&mut self, jid: &Jid) -> Value {
        self.expect(&format!("the return of {jid}"), |seen| match seen {
            Seen::Request { cmd, load } if cmd == "_return" && load.get_text("jid") == Some(jid.as_str()) => {
                Some(load.clone())
            }
            _ => None,
        })
        .await
    }

    /// Waits for the return of a job, and returns it with everything received since the last wait.
    pub async fn expect_return_after(&mut self, jid: &Jid) -> (Value, Vec<Seen>) {
        let mut before = Vec::new();
        let load = self
            .expect(&format!("the return of {jid}"), |seen| match seen {
                Seen::Request { cmd, load } if cmd == "_return" && load.get_text("jid") == Some(jid.as_str()) => {
                    Some(load.clone())
                }
                other => {
                    before.push(other.clone());
                    None
                }
            })
            .await;
        (load, before)
    }

    /// Waits for the start event: the minion is connected and signed in.
    pub async fn expect_start(&mut self) -> Value {
        self.expect("the start event", |seen| match seen {
            Seen::Request { cmd, load }
                if cmd == "_minion_event" && load.get_text("tag").is_some_and(|t| t.starts_with("salt/minion/")) =>
            {
                Some(load.clone())
            }
            _ => None,
        })
        .await
    }

    /// Returns everything received since the last wait, without waiting.
    pub fn drain(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }

    /// Returns the bytes of a publication.
    pub fn seal(&self, load: &Value) -> Bytes {
        self.seal_by(load, &self.key)
    }

    pub fn seal_by(&self, load: &Value, signer: &PrivateKey) -> Bytes {
        let mut script = self.script();
        script.serial += 1;
        let crypticle = Crypticle::new(&script.publish_key);
        publication::seal(load.clone(), script.serial, &crypticle, signer, SignAlg::Pkcs1v15Sha1).unwrap()
    }

    pub fn send(&self, frames: Vec<Bytes>) {
        self.publisher.as_ref().unwrap().send(frames);
    }

    pub async fn subscribed(&self) {
        let publisher = self.publisher.as_ref().unwrap();
        DEADLINE.within(publisher.wait_for_subscribers(1)).await;
    }

    /// Publishes a sealed job for the minion.
    pub fn publish_sealed(&self, fun: &str, arg: Vec<Value>) -> Jid {
        let jid = Jid::now();
        let frames = self.seal_for(&ID.parse().unwrap(), &job(&jid, fun, arg));
        self.publisher.as_ref().unwrap().send(frames);
        jid
    }

    /// Returns the frames of a sealed publication for the minion with this id, with the minion's session.
    pub fn seal_for(&self, id: &MinionId, load: &Value) -> Vec<Bytes> {
        let mut script = self.script();
        script.serial += 1;
        let signer = SigningKey::of(&self.key).unwrap();
        let epoch = epoch(&script.publish_key, &self.key);
        let body = Body::seal(load, script.serial, &epoch, &signer);
        vec![id.topic().into(), body.header(id, &script.session_key, &epoch), body.bytes().clone()]
    }

    /// Publishes a job for all minions.
    pub fn publish(&self, fun: &str, arg: Vec<Value>) -> Jid {
        let jid = Jid::now();
        let payload = self.seal(&job(&jid, fun, arg));
        self.send(vec![payload]);
        jid
    }

    /// Makes a new publish key, as after `salt-key -d`.
    pub fn rotate(&self) {
        let mut script = self.script();
        script.publish_key = AesKey::generate();
        script.serial = 0;
    }

    pub fn put_file(&self, path: &str, content: &[u8]) {
        let file = File { content: content.to_vec(), said: None, hash_type: "sha256" };
        self.script().files.insert(path.to_owned(), file);
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

/// Retries binding, because a port that was just closed may be in use for a moment.
async fn bind<T, F: Future<Output = Result<T, brine_zmtp::BindError>>>(mut bind: impl FnMut() -> F) -> T {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        match bind().await {
            Ok(bound) => return bound,
            Err(e) if tokio::time::Instant::now() > deadline => panic!("{e}"),
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Returns the load of a job for all minions.
pub fn job(jid: &Jid, fun: &str, arg: Vec<Value>) -> Value {
    map([
        ("fun", Value::from(fun)),
        ("arg", Value::Array(arg)),
        ("tgt", Value::from("*")),
        ("tgt_type", Value::from("glob")),
        ("jid", Value::from(jid)),
        ("ret", Value::from("")),
        ("user", Value::from("root")),
    ])
}

struct Desk {
    key: PrivateKey,
    script: Arc<Mutex<Script>>,
    seen: mpsc::UnboundedSender<Seen>,
    publish_port: u16,
}

/// The epoch of a publish key of a master with this key.
pub fn epoch(publish: &AesKey, key: &PrivateKey) -> Epoch {
    Epoch::new(publish, &SigningKey::of(key).unwrap())
}

/// The offer of a master with this key.
pub fn offer(key: &PrivateKey) -> SealOffer {
    SealOffer::make(&SigningKey::of(key).unwrap(), key).unwrap()
}

impl Desk {
    async fn serve(self, mut router: Router) {
        let mut held = Vec::new();
        while let Some(incoming) = router.recv().await {
            incoming.reply.authenticated(0);
            let reply = self.answer(&incoming.payload);
            let (holds, goes_on) = {
                let mut script = self.script.lock().unwrap();
                (std::mem::take(&mut script.holds), script.hash_last.is_none())
            };
            match reply {
                Some(reply) if holds => held.push((incoming.reply, reply)),
                Some(reply) => drop(incoming.reply.send(reply.into()).await),
                None => {}
            }
            if goes_on {
                for (to, reply) in held.drain(..) {
                    let _ = to.send(reply.into()).await;
                }
            }
            let pause = self.script.lock().unwrap().pause;
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    fn answer(&self, payload: &[u8]) -> Option<Vec<u8>> {
        match Envelope::decode(payload, &Limits::REQUEST) {
            Ok(Envelope::Clear { load, version }) if load.get_text("cmd") == Some("_auth") => {
                Some(self.authenticate(&AuthRequest::parse(&load, version, 3).unwrap()))
            }
            Ok(Envelope::Aes(envelope)) => {
                let mut script = self.script.lock().unwrap();
                if script.bad_loads > 0 {
                    script.bad_loads -= 1;
                    self.saw(Seen::Refused("bad load as the script says".into()));
                    return Some(clear_reply(&Value::from("bad load")));
                }
                let session = Crypticle::new(&script.session_key);
                let minion = script.minion_key.clone();
                drop(script);
                match open_request(&envelope, &session, &RequestPolicy::now(), |_| minion.clone()) {
                    Ok(request) => self.handle(&request, (&envelope, &session), minion.as_ref().unwrap()),
                    Err(e) => {
                        self.saw(Seen::Refused(e.to_string()));
                        Some(clear_reply(&e.reply()))
                    }
                }
            }
            other => panic!("a minion sends nothing else: {other:?}"),
        }
    }

    fn authenticate(&self, request: &AuthRequest) -> Vec<u8> {
        let mut script = self.script.lock().unwrap();
        let verdict = script.verdicts.pop_front().unwrap_or(Verdict::Accept);
        script.minion_key = Some(request.key().unwrap());
        let reply = match verdict {
            Verdict::Pending => request.pending(&self.key),
            Verdict::Reject => request.rejected(&self.key),
            Verdict::Full => request.full(&self.key),
            Verdict::Accept => {
                let signature = publish_key_signature(&self.key, &script.publish_key).unwrap();
                let offer = script.seals.then(|| offer(&self.key));
                let accepted = Accepted {
                    publish_key: &script.publish_key,
                    publish_key_sig: &signature,
                    session_key: &script.session_key,
                    publish_port: self.publish_port,
                    sign_key: None,
                    offer: offer.as_ref(),
                    run: None,
                };
                request.accepted(&self.key, &accepted)
            }
        };
        self.saw(Seen::Auth(verdict));
        reply.unwrap()
    }

    fn handle(
        &self,
        request: &Request,
        (envelope, session): (&AesEnvelope, &Crypticle),
        minion: &PublicKey,
    ) -> Option<Vec<u8>> {
        let mut script = self.script.lock().unwrap();
        // The lock is held, so a test that reacts to this request by changing the script affects only the next request.
        self.saw(Seen::Request { cmd: request.cmd.clone(), load: request.load.clone() });
        if request.cmd == "_return"
            && let Some(reply) = script.next_reply.take()
        {
            return Some(reply);
        }
        let file_at = |path: Option<&Value>| script.files.get(path.and_then(ValueExt::text).unwrap_or_default());
        let file = || file_at(request.load.get("path"));
        let stated = |path: Option<&Value>| {
            file_at(path).map_or(Value::Array(vec![Value::from(""), Value::Nil]), |file| {
                let said = file.said.clone().unwrap_or_else(|| hex::encode(Sha256::digest(&file.content)));
                let stat = [0o100_644, 1, 2, 1, 0, 0, file.content.len(), 0, 0, 0].map(|n| Value::from(n as u64));
                let hash = map([("hash_type", file.hash_type), ("hsum", &said)]);
                Value::Array(vec![hash, Value::Array(stat.to_vec())])
            })
        };
        let also = request.load.get_list("also").filter(|_| script.together);
        let holds =
            request.cmd == "_file_hash_and_stat" && script.hash_last.as_deref() == request.load.get_text("path");
        let mut is_whole = false;
        let value = match request.cmd.as_str() {
            RESUME if !script.seals => empty_map(),
            RESUME => script.next_resumed.take().unwrap_or_else(|| {
                let epoch = epoch(&script.publish_key, &self.key);
                resumed(&script.publish_key, &epoch, self.publish_port, &offer(&self.key), None)
            }),
            "_pillar" => return Some(seal_pillar_reply(&script.pillar, request, minion, &self.key).unwrap()),
            "_return" => {
                let one = match script.on_return {
                    OnReturn::Acknowledge => Value::Nil,
                    OnReturn::EmptyText => Value::from(""),
                    OnReturn::Silence => return None,
                };
                also.map_or(one.clone(), |also| Value::Array(vec![one; also.len() + 1]))
            }
            "_minion_event" if script.refuses => Value::from(false),
            "_minion_event" => Value::Nil,
            "_mine_get" => map([("web1", 7)]),
            "_mine" | "_mine_delete" | "_mine_flush" | "_file_recv" => Value::from(!script.refuses),
            "_file_envs" => Value::Array(vec![Value::from("dev"), Value::from("base"), Value::from("../up")]),
            "_symlink_list" => map([("link", "a"), ("../link", "x")]),
            "_file_list_emptydirs" => Value::Array(vec![Value::from("empty"), Value::from("/etc")]),
            "_file_hash_and_stat" => {
                let mut answer = stated(request.load.get("path"));
                if let (Some(also), Value::Array(parts)) = (also, &mut answer) {
                    parts.push(Value::Array(also.iter().map(|path| stated(Some(path))).collect()));
                }
                answer
            }
            "_file_list" if script.no_list => return None,
            "_file_list" | "_dir_list" if request.load.get_text("saltenv") != Some("base") => Value::Array(vec![]),
            "_file_list" if script.list.is_some() => script.list.clone().unwrap(),
            "_file_list" => {
                let prefix = request.load.get_text("prefix").unwrap();
                let paths = script.files.keys().filter(|path| path.starts_with(prefix));
                Value::Array(paths.map(|path| Value::from(path.as_str())).collect())
            }
            "_dir_list" => {
                let dirs = script.files.keys().filter_map(|path| Some(path.split_once('/')?.0));
                Value::Array(dirs.map(Value::from).collect())
            }
            "_file_hash" => file().map_or(Value::from(""), |file| {
                let said = file.said.clone().unwrap_or_else(|| hex::encode(Sha256::digest(&file.content)));
                map([("hash_type", file.hash_type), ("hsum", &said)])
            }),
            "_serve_file" if script.no_content.as_deref() == request.load.get_text("path") => return None,
            "_serve_file" => {
                let loc = usize::try_from(request.load.get_u64("loc").unwrap()).unwrap();
                let length = request.load.get_u64("length").filter(|_| script.by_length);
                let length = length.and_then(|length| usize::try_from(length).ok());
                let serve = |path: &Value, loc: usize| {
                    file_at(Some(path)).map_or_else(
                        || map([("data", Value::from("")), ("dest", Value::from(""))]),
                        |file| {
                            let rest = &file.content[loc.min(file.content.len())..];
                            let chunk = &rest[..rest.len().min(length.unwrap_or(script.chunk))];
                            map([("data", Value::Binary(chunk.to_vec())), ("dest", path.clone())])
                        },
                    )
                };
                let end = loc + length.unwrap_or(script.chunk);
                is_whole = file().is_none_or(|file| end >= file.content.len());
                let mut answer = serve(request.load.get("path").unwrap(), loc);
                if let Some(length) = length {
                    answer.insert("length", length as u64);
                    answer.insert("size", file().map_or(0, |file| file.content.len() as u64));
                }
                if let Some(also) = also {
                    answer.insert("also", Value::Array(also.iter().map(|path| serve(path, 0)).collect()));
                }
                answer
            }
            _ => empty_map(),
        };
        script.holds = holds;
        if is_whole && script.hash_last.as_deref() == request.load.get_text("path") {
            script.hash_last = None;
        }
        if script.by_length && request.load.get_u64("aead") == Some(1) {
            return seal_content_reply(&script.session_key, value, envelope);
        }
        Some(seal_reply(session, &value, request.nonce.as_deref()))
    }

    fn saw(&self, seen: Seen) {
        let _ = self.seen.send(seen);
    }
}
