//! Messages that an executor never sends: too many, too large, malformed, about unknown calls.

use std::fs::File;
use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use brine_sandbox_wire::{FromExecutor, GrainsOp, HostOp, LogLevel, Outcome, Run, Sender, ToExecutor, Usage, frame};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

/// The floods by the names of their functions, and whether the minion must treat the executor as broken.
pub(crate) const ALL: &[(&str, bool)] = &[
    ("logs", false),
    ("oversized", true),
    ("garbage", true),
    ("half", true),
    ("unknown_op", true),
    ("wrong_direction", true),
    ("other_calls", false),
    ("many_requests", true),
    ("files", true),
    ("ready_again", true),
    ("bad_value", false),
    ("deep_value", false),
    ("deaf", true),
];

/// Sends a flood. Returns the job's return value, if the job is to return.
pub(crate) async fn run(what: &str, run: &Run, raw: &File, sender: &mut Sender<FromExecutor>) -> Option<Vec<u8>> {
    let call = run.call;
    let host_call = |call, request| FromExecutor::HostCall { call, request, op: HostOp::Grains(GrainsOp::Items) };
    match what {
        "logs" => {
            let message = "\x1b[31m".repeat(4_000);
            for _ in 0..20_000 {
                sender
                    .send(&FromExecutor::Log { call, level: LogLevel::Error, message: message.clone() })
                    .await
                    .ok()?;
            }
        }
        "oversized" => say(raw, &[0xff; 64]),
        "garbage" => (0..1_000).for_each(|_| say(raw, &framed(&[0x93; 1_000]))),
        "half" => {
            // A frame of 32 MiB that is never completed; its last part comes byte by byte.
            say(raw, &(32u32 << 20).to_be_bytes());
            (0..31 << 10).for_each(|_| say(raw, &[0x91; 1_024]));
            std::process::abort();
        }
        "unknown_op" => {
            let mut bytes = Vec::new();
            frame::encode(&host_call(call, 1), &mut bytes).unwrap();
            let at = bytes.windows(6).position(|text| text == b"Grains").unwrap();
            bytes[at..at + 6].copy_from_slice(b"Shells");
            say(raw, &bytes);
        }
        "wrong_direction" => {
            let mut bytes = Vec::new();
            frame::encode(&ToExecutor::Ping { n: 1 }, &mut bytes).unwrap();
            say(raw, &bytes);
        }
        "other_calls" => {
            // Fewer replies than the socket can hold, so that all of them are processed.
            for other in 0..100 {
                sender.send(&host_call(1_000_000 + other, 1)).await.ok()?;
                let (outcome, usage) = (Outcome::Returned { value: vec![0xc3], retcode: 0 }, Usage::default());
                sender.send(&FromExecutor::Done { call: 1_000_000 + other, outcome, usage }).await.ok()?;
                let line = FromExecutor::Log { call: 1_000_000 + other, level: LogLevel::Error, message: "x".into() };
                sender.send(&line).await.ok()?;
            }
        }
        "many_requests" => {
            for request in 0..100_000 {
                sender.send(&host_call(call, request)).await.ok()?;
            }
        }
        "files" => {
            for _ in 0..10_000 {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                let files = [raw.as_fd(); 16];
                control.push(SendAncillaryMessage::ScmRights(&files));
                // The minion may have closed the connection, or may be slower.
                let _ = rustix::net::sendmsg(raw, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL);
            }
        }
        "ready_again" => {
            let walls = brine_sandbox_walls::Walls { missing: vec!["x".repeat(1 << 20); 8], ..Default::default() };
            let ready = FromExecutor::Ready { version: brine_sandbox_wire::VERSION, pid: 1, walls };
            sender.send(&ready).await.ok()?;
        }
        // Not a valid value: it announces 2^32 elements.
        "bad_value" => return Some(vec![0xdd, 0xff, 0xff, 0xff, 0xff]),
        "deep_value" => return Some(vec![0x91; 3_000_000]),
        "deaf" => {
            // The executor stays alive but reads nothing more.
            let last = FromExecutor::Log { call, level: LogLevel::Error, message: "goodbye".into() };
            sender.send(&last).await.ok()?;
            loop {
                std::thread::park();
            }
        }
        other => panic!("{other}"),
    }
    Some(vec![0xc3])
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_be_bytes(), body].concat()
}

/// Sends raw bytes. The socket does not block, and a closed connection is no error.
fn say(mut raw: &File, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match raw.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(_) => return,
        }
    }
}
