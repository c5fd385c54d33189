//! Common parts of the tests: deadlines, a peer that sends arbitrary bytes, and peers with pyzmq.
#![allow(dead_code, unreachable_pub, reason = "every test binary uses its own part")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests fail by panicking, and start pyzmq")]

use std::{future::Future, net::SocketAddr, process::Stdio, time::Duration};

use brine_kit::wait::Deadline;
use brine_zmtp::{
    Endpoint, Frames, Heartbeat, Incoming, PubConfig, Publisher, Router, RouterConfig, SocketLimits, SubEvent,
    Subscriber,
    frame::{Command, Decoded, Decoder, DecoderLimits, ReadyProperties, encode_command},
};
use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout},
};

/// The deadline for everything that must happen: shorter than the time limits of sockets, which would hide an error.
pub const DEADLINE: Duration = Duration::from_secs(30);
/// The time for which a test watches that something does not happen.
pub const A_WHILE: Duration = Duration::from_millis(200);

/// Waits with the deadline.
#[track_caller]
pub fn within<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    DEADLINE.within(future)
}

/// Polls until the condition is true.
pub async fn until(condition: impl FnMut() -> bool) {
    DEADLINE.until("a condition", condition).await;
}

pub fn any_port() -> Endpoint {
    Endpoint::tcp("127.0.0.1", 0)
}

pub fn frames(frames: &[&str]) -> Frames {
    frames.iter().map(|frame| Bytes::copy_from_slice(frame.as_bytes())).collect()
}

pub async fn router(limits: SocketLimits) -> Router {
    let config = RouterConfig { limits, heartbeat: Heartbeat::OFF, ..RouterConfig::default() };
    Router::bind(&any_port(), config).await.unwrap()
}

pub async fn publisher(limits: SocketLimits) -> Publisher {
    let config = PubConfig { limits, heartbeat: Heartbeat::OFF, ..PubConfig::default() };
    Publisher::bind(&any_port(), config).await.unwrap()
}

pub async fn request(router: &mut Router) -> Incoming {
    within(router.recv()).await.unwrap()
}

/// Answers every request with its own payload.
pub fn echo(mut router: Router) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        while let Some(incoming) = router.recv().await {
            // A peer that left needs no reply.
            let _ = incoming.reply.send(incoming.payload).await;
        }
    })
}

pub async fn connected(subscriber: &mut Subscriber) {
    within(async { while subscriber.recv().await != SubEvent::Connected {} }).await;
}

pub async fn message(subscriber: &mut Subscriber) -> Frames {
    within(async {
        loop {
            if let SubEvent::Message(frames) = subscriber.recv().await {
                return frames;
            }
        }
    })
    .await
}

/// A greeting with this minor version.
pub fn greeting(minor: u8) -> [u8; 64] {
    let mut greeting = [0; 64];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting[11] = minor;
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

pub fn ready(socket_type: &str) -> Bytes {
    let socket_type = Bytes::copy_from_slice(socket_type.as_bytes());
    encode_command(&Command::Ready(ReadyProperties { socket_type, identity: Bytes::new() }))
}

/// A peer that sends the test's bytes.
pub struct Raw {
    pub stream: TcpStream,
    decoder: Decoder,
    input: BytesMut,
}

impl Raw {
    pub fn new(stream: TcpStream) -> Raw {
        let limits = DecoderLimits { max_message: 1 << 30, max_frames: 1000, max_command: 1 << 20 };
        Raw { stream, decoder: Decoder::new(limits), input: BytesMut::new() }
    }

    /// Connects and sends nothing.
    pub async fn connect(endpoint: &Endpoint) -> Raw {
        let address: SocketAddr = ([127, 0, 0, 1], endpoint.port().unwrap()).into();
        Raw::new(within(TcpStream::connect(address)).await.unwrap())
    }

    /// Connects and completes the handshake.
    pub async fn peer(endpoint: &Endpoint, socket_type: &str, minor: u8) -> Raw {
        let mut raw = Raw::connect(endpoint).await;
        raw.handshake(socket_type, minor).await;
        raw
    }

    pub async fn handshake(&mut self, socket_type: &str, minor: u8) {
        self.send(&greeting(minor)).await;
        self.send(&ready(socket_type)).await;
        let mut theirs = [0; 64];
        within(self.stream.read_exact(&mut theirs)).await.unwrap();
        assert_eq!(theirs, greeting(1));
        assert!(matches!(self.next().await, Some(Decoded::Command(Command::Ready(_)))));
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        within(self.stream.write_all(bytes)).await.unwrap();
    }

    pub async fn command(&mut self, command: Command) {
        self.send(&encode_command(&command)).await;
    }

    /// The next message or command; `None` if the connection is closed.
    pub async fn next(&mut self) -> Option<Decoded> {
        within(async {
            loop {
                let mut bytes = &self.input[..];
                let item = self.decoder.decode(&mut bytes).unwrap();
                let used = self.input.len() - bytes.len();
                let _ = self.input.split_to(used);
                if item.is_some() {
                    return item;
                }
                match self.stream.read_buf(&mut self.input).await {
                    Ok(0) | Err(_) => return None,
                    Ok(_) => {}
                }
            }
        })
        .await
    }

    pub async fn message(&mut self) -> Frames {
        loop {
            match self.next().await {
                Some(Decoded::Message(frames)) => return frames,
                Some(Decoded::Command(_)) => {}
                None => panic!("the connection is closed"),
            }
        }
    }

    /// Waits until the other side has closed the connection; ignores received data.
    pub async fn closed(&mut self) {
        within(async {
            let mut rest = [0; 256];
            while matches!(self.stream.read(&mut rest).await, Ok(count) if count > 0) {}
        })
        .await;
    }

    /// Sends a PING and waits for its PONG. Then everything before it has been read, and the connection is open.
    pub async fn ping(&mut self) {
        let context = Bytes::from("are you there?");
        self.command(Command::Ping { ttl: 0, context: context.clone() }).await;
        assert_eq!(self.next().await, Some(Decoded::Command(Command::Pong { context })));
    }
}

/// A Python program that exchanges lines with the test.
pub struct Python {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Whether to skip the tests against libzmq. Fails if they are not to be skipped and cannot run.
pub fn skip_pyzmq() -> bool {
    if std::env::var("BRINE_SKIP_PYZMQ").is_ok_and(|value| value == "1") {
        return true;
    }
    let python = python();
    let found = std::process::Command::new(&python)
        .args(["-c", "import zmq; assert zmq.zmq_version_info() >= (4, 3)"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    assert!(
        found,
        "{python} cannot import pyzmq with libzmq 4.3 or newer, the independent peer of this test. Install it \
         ({python} -m pip install pyzmq), or name a Python that has it in BRINE_PYTHON, or set BRINE_SKIP_PYZMQ=1"
    );
    false
}

fn python() -> String {
    std::env::var("BRINE_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// The beginning of every program: `say` sends a line to the test, `hear` receives one.
const PRELUDE: &str = r"
import sys, zmq
def say(*words): print(*words, flush=True)
def hear(): return sys.stdin.readline().rstrip('\n')
ctx = zmq.Context()
def sock(kind, **options):
    s = ctx.socket(kind)
    s.setsockopt(zmq.LINGER, 0)
    s.setsockopt(zmq.RCVTIMEO, 30000)
    for name, value in options.items(): s.setsockopt(getattr(zmq, name), value)
    return s
endpoint = sys.argv[1]
";

impl Python {
    pub fn start(program: &str, endpoint: &str) -> Python {
        let mut child = tokio::process::Command::new(python())
            .args(["-c", &format!("{PRELUDE}{program}"), endpoint])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Python { child, stdin, lines }
    }

    pub async fn line(&mut self) -> String {
        within(self.lines.next_line()).await.unwrap().expect("the Python peer must say something more")
    }

    pub async fn say(&mut self, line: &str) {
        within(self.stdin.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }

    pub async fn done(mut self) {
        drop(self.stdin);
        assert!(within(self.child.wait()).await.unwrap().success());
    }
}
