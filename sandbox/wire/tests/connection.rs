//! The connection over real socket pairs: messages arrive unchanged, and malformed input is a typed error.
#![allow(clippy::unwrap_used, reason = "it is test code")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use brine_kit::files::file;
use brine_kit::wait::within;
use brine_sandbox_wire::{
    ByteBuf, Connection, DirectGrants, FromExecutor, HostError, HostOp, JobContext, Limits, MAX_FRAME, Message,
    ModulesOp, Outcome, Receiver, Run, Sha256Hex, ToExecutor, Usage, WireError, frame,
};

fn run(args: Vec<u8>) -> ToExecutor {
    ToExecutor::Run(Box::new(Run {
        call: 7,
        module: Sha256Hex::from([3; 32]),
        function: "ping".into(),
        args,
        kwargs: vec![0x80],
        context: JobContext {
            jid: "20261120120000000000".into(),
            function: "test.ping".into(),
            ..JobContext::default()
        },
        limits: Limits::default(),
        imports_granted: vec!["brine:host/grains".into()],
        direct: DirectGrants::default(),
        would_write: Vec::new(),
        record: None,
        foreseen: Vec::new(),
    }))
}

fn debug<M: Message>(message: &M) -> String {
    format!("{message:?}")
}

#[tokio::test]
async fn every_message_arrives_as_it_was_sent() {
    let (minion, executor) = Connection::pair().unwrap();
    let (mut to_executor, mut from_executor) = minion.minion();
    let (mut to_minion, mut from_minion) = Connection::from_fd(executor).unwrap().executor();
    let module = Sha256Hex::from([0xab; 32]);
    let down = [
        ToExecutor::Unload { module },
        run(vec![0x90]),
        ToExecutor::Kill { call: 7, reason: "killed".into() },
        ToExecutor::HostReply { call: 7, request: 1, result: Ok(ByteBuf::from(vec![0xc0])) },
        ToExecutor::HostReply { call: 7, request: 2, result: Err(HostError::Denied("no".into())) },
        ToExecutor::Ping { n: u64::MAX },
    ];
    let up = [
        FromExecutor::Ready { version: 1, pid: 2, walls: brine_sandbox_walls::Walls::default() },
        FromExecutor::LoadFailed { module, error: "no".into() },
        FromExecutor::HostCall { call: 7, request: 1, op: HostOp::Modules(ModulesOp::Sync { saltenv: None }) },
        FromExecutor::Done {
            call: 7,
            outcome: Outcome::Returned { value: vec![0xc3], retcode: -1 },
            usage: Usage::default(),
        },
    ];
    for message in &down {
        to_executor.send(message).await.unwrap();
        assert_eq!(debug(&within(from_minion.recv()).await.unwrap().message), debug(message));
    }
    for message in &up {
        to_minion.send(message).await.unwrap();
    }
    for message in &up {
        assert_eq!(debug(&within(from_executor.recv()).await.unwrap().message), debug(message));
    }
    drop((to_executor, from_executor));
    assert!(matches!(within(from_minion.recv()).await, Err(WireError::Closed)));
}

#[tokio::test]
async fn files_come_with_their_messages() {
    let (minion, executor) = Connection::pair().unwrap();
    let (mut to_executor, _from_executor) = minion.minion();
    let (_to_minion, mut from_minion) = Connection::from_fd(executor).unwrap().executor();
    let load =
        |n: u8| ToExecutor::Load { module: Sha256Hex::from([n; 32]), name: n.to_string(), imports_granted: None };
    for n in 0..8 {
        to_executor.send(&ToExecutor::Ping { n: 0 }).await.unwrap();
        to_executor.send_with_file(&load(n), file(&[n]).into()).await.unwrap();
    }
    for n in 0..8 {
        assert!(within(from_minion.recv()).await.unwrap().file.is_none());
        let received = within(from_minion.recv()).await.unwrap();
        assert_eq!(debug(&received.message), debug(&load(n)));
        let mut content = Vec::new();
        File::from(received.file.unwrap()).read_to_end(&mut content).unwrap();
        assert_eq!(content, [n]);
    }
    assert!(matches!(to_executor.send(&load(0)).await, Err(WireError::FileMissing)));
}

#[tokio::test]
async fn large_frames_pass_through_a_full_socket() {
    let (minion, executor) = Connection::pair().unwrap();
    let (mut to_executor, _from_executor) = minion.minion();
    let (_to_minion, mut from_minion) = Connection::from_fd(executor).unwrap().executor();
    let message = run(vec![5; 20 << 20]);
    let expected = debug(&message).len();
    let sending = tokio::spawn(async move {
        to_executor.send(&message).await.unwrap();
        to_executor.send(&ToExecutor::Ping { n: 1 }).await.unwrap();
        to_executor
    });
    assert_eq!(debug(&within(from_minion.recv()).await.unwrap().message).len(), expected);
    assert!(matches!(within(from_minion.recv()).await.unwrap().message, ToExecutor::Ping { n: 1 }));
    within(sending).await.unwrap();
}

#[tokio::test]
async fn a_cancelled_send_leaves_no_torn_frame() {
    let (minion, executor) = Connection::pair().unwrap();
    let (mut to_executor, _from_executor) = minion.minion();
    let (_to_minion, mut from_minion) = Connection::from_fd(executor).unwrap().executor();
    let message = run(vec![5; 8 << 20]);
    // Polled once, so that the socket accepts only a part.
    assert!(tokio::time::timeout(Duration::ZERO, to_executor.send(&message)).await.is_err());
    let sending = tokio::spawn(async move {
        to_executor.send(&ToExecutor::Ping { n: 1 }).await.unwrap();
        to_executor
    });
    assert!(matches!(within(from_minion.recv()).await.unwrap().message, ToExecutor::Run(_)));
    assert!(matches!(within(from_minion.recv()).await.unwrap().message, ToExecutor::Ping { n: 1 }));
    within(sending).await.unwrap();
}

#[tokio::test]
async fn a_message_over_the_limit_is_not_sent_and_hurts_nothing() {
    let (minion, executor) = Connection::pair().unwrap();
    let (mut to_executor, _from_executor) = minion.minion();
    let (_to_minion, mut from_minion) = Connection::from_fd(executor).unwrap().executor();
    assert!(matches!(to_executor.send(&run(vec![0; MAX_FRAME])).await, Err(WireError::TooLarge { .. })));
    to_executor.send(&ToExecutor::Ping { n: 1 }).await.unwrap();
    assert!(matches!(within(from_minion.recv()).await.unwrap().message, ToExecutor::Ping { n: 1 }));
}

/// Returns a receiver and the raw other end.
fn raw() -> (UnixStream, Receiver<ToExecutor>) {
    let (connection, other) = Connection::pair().unwrap();
    (UnixStream::from(other), connection.executor().1)
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(body);
    frame
}

#[tokio::test]
async fn malformed_bytes_are_typed_errors() {
    let mut ping = Vec::new();
    frame::encode(&ToExecutor::Ping { n: 1 }, &mut ping).unwrap();
    let mut trailing = ping[4..].to_vec();
    trailing.push(0xc0);
    let mut from_executor = Vec::new();
    frame::encode(&FromExecutor::Pong { n: 1 }, &mut from_executor).unwrap();
    let mut load = Vec::new();
    frame::encode(
        &ToExecutor::Load { module: Sha256Hex::from([0; 32]), name: "test".into(), imports_granted: None },
        &mut load,
    )
    .unwrap();
    let cases: [(&str, Vec<u8>, &str); 11] = [
        ("too large", vec![0xff; 4], "TooLarge"),
        ("just too large", (MAX_FRAME as u32 + 1).to_be_bytes().to_vec(), "TooLarge"),
        ("large claim, nothing behind", (MAX_FRAME as u32).to_be_bytes().to_vec(), "Truncated"),
        ("half a header", vec![0, 0], "Truncated"),
        ("half a body", ping[..ping.len() - 1].to_vec(), "Truncated"),
        ("empty body", framed(&[]), "Malformed"),
        ("garbage", framed(b"hello"), "Malformed"),
        ("trailing bytes", framed(&trailing), "Malformed"),
        ("deep nesting", framed(&[0x91; 1 << 20]), "Malformed"),
        ("the other direction", from_executor, "Malformed"),
        ("load without its file", load, "FileMissing"),
    ];
    for (what, bytes, expected) in cases {
        let (mut peer, mut receiver) = raw();
        let writing = std::thread::spawn(move || peer.write_all(&bytes).map(drop));
        let error = within(receiver.recv()).await.expect_err(what);
        assert!(format!("{error:?}").starts_with(expected), "{what}: {error:?}");
        drop(receiver);
        let _ = writing.join().unwrap();
    }
}

#[tokio::test]
async fn array_lengths_that_lie_allocate_nothing() {
    // { "Unload": bin32 of 4 GiB }, { "Kill": array32 of 4 G items }
    for body in [&b"\x81\xa6Unload\xc6\xff\xff\xff\xff"[..], b"\x81\xa4Kill\xdd\xff\xff\xff\xff"] {
        let (mut peer, mut receiver) = raw();
        peer.write_all(&framed(body)).unwrap();
        assert!(matches!(within(receiver.recv()).await, Err(WireError::Malformed(_))));
    }
}

#[tokio::test]
async fn files_without_messages_are_bounded() {
    let (connection, other) = Connection::pair().unwrap();
    let (mut sender, _keep) = Connection::from_fd(other).unwrap().minion();
    let (_keep, mut receiver) = connection.executor();
    // Each load arrives with its own file. `Sender` refuses a file with any other message.
    for _ in 0..3 {
        let file = tempfile::tempfile().unwrap();
        let load = ToExecutor::Load { module: Sha256Hex::from([0; 32]), name: "x".into(), imports_granted: None };
        sender.send_with_file(&load, file.into()).await.unwrap();
    }
    for _ in 0..3 {
        assert!(within(receiver.recv()).await.unwrap().file.is_some());
    }
    let ping = ToExecutor::Ping { n: 0 };
    let file: OwnedFd = tempfile::tempfile().unwrap().into();
    assert!(matches!(sender.send_with_file(&ping, file).await, Err(WireError::TooManyFiles)));
}

#[tokio::test]
async fn a_flood_of_files_ends_the_connection() {
    let (connection, other) = Connection::pair().unwrap();
    let (_keep, mut receiver) = connection.executor();
    let file = tempfile::tempfile().unwrap();
    let flood = std::thread::spawn(move || {
        let mut frame = Vec::new();
        frame::encode(&ToExecutor::Ping { n: 1 }, &mut frame).unwrap();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let files = [file.as_fd()];
        for _ in 0..100 {
            let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
            assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&files)));
            let parts = [std::io::IoSlice::new(&frame)];
            if rustix::net::sendmsg(&other, &parts, &mut control, rustix::net::SendFlags::NOSIGNAL).is_err() {
                break;
            }
        }
    });
    let error = loop {
        match within(receiver.recv()).await {
            Ok(received) => assert!(received.file.is_none()),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, WireError::TooManyFiles), "{error:?}");
    drop(receiver);
    flood.join().unwrap();
}

#[tokio::test]
async fn only_a_unix_stream_socket_is_taken() {
    let cases: [OwnedFd; 3] = [
        File::open("/dev/null").unwrap().into(),
        std::os::unix::net::UnixDatagram::pair().unwrap().0.into(),
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into(),
    ];
    for fd in cases {
        assert!(Connection::from_fd(fd).is_err());
    }
}

/// Whoever has read a message may act on it, and die. Then its bytes have to be counted: else a call that had begun is run again.
#[tokio::test]
async fn what_the_other_end_has_read_is_counted() {
    const MESSAGES: u64 = 50_000;
    let (minion, executor) = Connection::pair().unwrap();
    let (mut sender, _receiver) = minion.minion();
    let written = sender.written();
    let mut executor = UnixStream::from(executor);
    let reader = std::thread::spawn(move || {
        let (mut buffer, mut read, mut behind) = (vec![0; 1 << 16], 0, 0);
        while let Ok(n @ 1..) = executor.read(&mut buffer) {
            read += n as u64;
            behind += u64::from(written.load(std::sync::atomic::Ordering::Acquire) < read);
        }
        (read, behind)
    });
    let mut last = 0;
    for n in 0..MESSAGES {
        sender.send_noting(&ToExecutor::Ping { n }, |at| last = at).await.unwrap();
    }
    assert_eq!(sender.written().load(std::sync::atomic::Ordering::Acquire), last);
    drop((sender, _receiver));
    assert_eq!(within(async { reader.join().unwrap() }).await, (last, 0));
}
