//! Ports that the system chooses.

use std::net::TcpListener;

/// Returns ports of loopback that are free now.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let sockets = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    sockets.map(|socket| socket.local_addr().expect("a bound socket").port())
}
