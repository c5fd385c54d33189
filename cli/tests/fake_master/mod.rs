//! A master that the test controls step by step: a ROUTER for requests and a listener for the event bus.

#![allow(unreachable_pub, clippy::unwrap_used, reason = "a module of tests")]

use std::path::PathBuf;
use std::time::Duration;

use brine_kit::wait::Deadline;
use brine_protocol::envelope::Envelope;
use brine_protocol::event::{Event, Framing, frame};
use brine_protocol::msgpack::{Limits, encode_network};
use brine_protocol::value::{Value, ValueExt, list, map};
use brine_zmtp::{Incoming, Reply, Router, RouterConfig};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};

/// The deadline of every step.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// The key that the fake master accepts, for tests that check it.
pub const KEY: &str = "the local key";

pub struct FakeMaster {
    pub folder: tempfile::TempDir,
    router: Router,
    bus: UnixListener,
}

pub struct Request {
    pub load: Value,
    reply: Reply,
}

pub struct Subscriber {
    stream: UnixStream,
}

impl FakeMaster {
    pub async fn start(extra: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("fm").tempdir().unwrap();
        let router = Router::bind(&"tcp://127.0.0.1:0".parse().unwrap(), RouterConfig::default()).await.unwrap();
        let port = router.endpoint().to_string().rsplit(':').next().unwrap().to_owned();
        let root = folder.path().display();
        for sub in ["conf", "cache", "sock", "pki/minions"] {
            std::fs::create_dir_all(folder.path().join(sub)).unwrap();
        }
        let conf = format!(
            "root_dir: {root}\npki_dir: {root}/pki\ncachedir: {root}/cache\nsock_dir: {root}/sock\nuser: root\n\
             interface: 127.0.0.1\nret_port: {port}\ntimeout: 1\ngather_job_timeout: 1\n{extra}"
        );
        std::fs::write(folder.path().join("conf/master"), conf).unwrap();
        std::fs::write(folder.path().join("cache/.root_key"), KEY).unwrap();
        let bus = UnixListener::bind(folder.path().join("sock/master_event_pub.ipc")).unwrap();
        Self { folder, router, bus }
    }

    pub fn path(&self, sub: &str) -> PathBuf {
        self.folder.path().join(sub)
    }

    /// Starts one of the commands with this master's configuration.
    pub fn command(&self, program: &str, args: &[&str]) -> tokio::task::JoinHandle<Done> {
        self.command_with(program, args, "")
    }

    /// As above, with input on stdin. The command's home is the master's folder.
    pub fn command_with(&self, program: &str, args: &[&str], stdin: &str) -> tokio::task::JoinHandle<Done> {
        let mut command = assert_cmd::Command::new(program);
        command.arg("-c").arg(self.path("conf")).args(args).env_remove("SUDO_USER").timeout(DEADLINE);
        command.env("HOME", self.path("")).env_remove("XDG_CONFIG_HOME").write_stdin(stdin);
        tokio::task::spawn_blocking(move || {
            let output = command.output().unwrap();
            Done {
                code: output.status.code().unwrap_or(-1),
                stdout: String::from_utf8(output.stdout).unwrap(),
                stderr: String::from_utf8(output.stderr).unwrap(),
            }
        })
    }

    /// Waits for the next subscriber of the bus.
    pub async fn subscriber(&mut self) -> Subscriber {
        let (stream, _) = DEADLINE.within(self.bus.accept()).await.unwrap();
        Subscriber { stream }
    }

    /// Waits for the next request, which must be a clear one.
    pub async fn request(&mut self) -> Request {
        let Incoming { payload, reply } = DEADLINE.within(self.router.recv()).await.expect("the router runs");
        match Envelope::decode(&payload, &Limits::REQUEST).expect("an envelope") {
            Envelope::Clear { load, .. } => Request { load, reply },
            other => panic!("not a clear request: {other:?}"),
        }
    }

    /// Accepts a subscriber and answers its publish request.
    pub async fn job(&mut self, jid: &str, minions: &[&str]) -> (Subscriber, Value) {
        let subscriber = self.subscriber().await;
        let request = self.request().await;
        let load = request.load.clone();
        request.published(jid, minions).await;
        (subscriber, load)
    }

    /// Closes the connections of requests without a reply.
    pub async fn stop(self) -> tempfile::TempDir {
        self.router.close(Duration::ZERO).await;
        self.folder
    }
}

impl Request {
    pub async fn answer(self, reply: &Value) {
        self.answer_bytes(encode_network(reply)).await;
    }

    pub async fn answer_bytes(self, bytes: Vec<u8>) {
        self.reply.send(bytes.into()).await.expect("the client still waits");
    }

    /// The reply to a publish request.
    pub async fn published(self, jid: &str, minions: &[&str]) {
        self.answer(&published(jid, minions, &[])).await;
    }
}

pub fn published(jid: &str, minions: &[&str], missing: &[&str]) -> Value {
    let load =
        map([("jid", Value::from(jid)), ("minions", list(minions.to_vec())), ("missing", list(missing.to_vec()))]);
    map([("enc", Value::from("clear")), ("load", load)])
}

/// The event of a minion's return.
pub fn returned(jid: &str, id: &str, value: impl Into<Value>, retcode: i64) -> Event {
    let data = map([
        ("cmd", Value::from("_return")),
        ("id", Value::from(id)),
        ("jid", Value::from(jid)),
        ("return", value.into()),
        ("retcode", Value::from(retcode)),
        ("success", Value::from(retcode == 0)),
    ]);
    Event::new(format!("salt/job/{jid}/ret/{id}"), data)
}

impl Subscriber {
    pub async fn fire(&mut self, event: &Event) {
        self.send(&frame(event, Framing::Bare)).await;
    }

    /// Sends bytes to the subscriber, which may have left after it has read enough.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }
}

/// The result of a command.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The text of an argument list in a request.
pub fn field(load: &Value, name: &str) -> serde_json::Value {
    load.get(name).map_or(serde_json::Value::Null, brine_protocol::value::to_json)
}
