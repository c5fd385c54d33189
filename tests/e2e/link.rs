//! A link between a minion and its master that counts what comes over it, at any rate.
#![allow(clippy::disallowed_methods, reason = "a test's own sockets")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Forwards connections and counts the bytes that come from the master.
pub(crate) struct Link {
    pub(crate) port: u16,
    bytes: Arc<AtomicU64>,
}

impl Link {
    /// A link to this port; `rate` is in bytes per second.
    pub(crate) fn to(port: u16, rate: Option<u64>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let link = Self { port: listener.local_addr().expect("bound").port(), bytes: Arc::default() };
        let bytes = Arc::clone(&link.bytes);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let (near_too, far_too) = (near.try_clone().expect("a socket"), far.try_clone().expect("a socket"));
                let bytes = Arc::clone(&bytes);
                std::thread::spawn(move || pass(near, far, None, None));
                std::thread::spawn(move || pass(far_too, near_too, Some(&bytes), rate));
            }
        });
        link
    }

    /// The bytes that have come.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, bytes: Option<&AtomicU64>, rate: Option<u64>) {
    let mut buffer = [0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        if let Some(bytes) = bytes {
            bytes.fetch_add(n as u64, Ordering::Relaxed);
        }
        if let Some(rate) = rate {
            // Simulates the link's transmission time; this is no wait for a condition.
            std::thread::sleep(Duration::from_micros(n as u64 * 1_000_000 / rate));
        }
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
