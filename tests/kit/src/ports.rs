//! Ports for programs that a test starts.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::TcpListener;
use std::os::fd::IntoRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// The lowest port that is taken from.
const LOWEST: u16 = 10_000;

/// Returns ports of loopback that are free now and stay so until a program of this test listens on them.
///
/// Whoever connects gets a port of its own from the kernel's range (`ip_local_port_range`). The ports are below that range: one
/// inside it may be given away between this call and the program's start. Another test gets none of them while this process lives.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let end = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .filter(|first| *first > LOWEST + 1_000)
        .unwrap_or(32_768);
    let many = u64::from(end - LOWEST);
    let start = RandomState::new().hash_one(std::process::id()) % many;
    let mut free = (0..many).map(|step| LOWEST + ((start + step) % many) as u16).filter(|port| take(*port));
    [(); N].map(|()| free.next().expect("a free port"))
}

/// Returns whether nobody listens on the port and no other test has taken it. It is this process's from then on.
fn take(port: u16) -> bool {
    // An abstract socket's name is free again when its process ends, however that ends.
    let name = SocketAddr::from_abstract_name(format!("brine-test-port-{port}")).expect("a short name");
    let Ok(taken) = UnixListener::bind_addr(&name) else { return false };
    let free = TcpListener::bind(("127.0.0.1", port)).is_ok();
    if free {
        // Open until this process ends.
        let _ = taken.into_raw_fd();
    }
    free
}
