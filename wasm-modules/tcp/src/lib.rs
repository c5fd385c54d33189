//! TCP connections of modules to hosts that the owner granted. A module's world imports `wasi:sockets`, and its bindings are
//! those of this crate.

#![warn(missing_docs)]

#[allow(missing_docs, clippy::all, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({ world: "imports", path: "wit", generate_all, generate_unused_types: true });
}

pub use bindings::wasi;

use wasi::io::streams::{InputStream, OutputStream, StreamError};
use wasi::sockets::instance_network::instance_network;
use wasi::sockets::ip_name_lookup::resolve_addresses;
use wasi::sockets::network::{
    ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress,
};
use wasi::sockets::tcp::{ShutdownType, TcpSocket};
use wasi::sockets::tcp_create_socket::create_tcp_socket;

/// What `blocking-write-and-flush` takes at once.
const MAX_WRITE: usize = 4_096;
/// Bytes read at once.
const READ: u64 = 64 << 10;

/// A connection. It ends when it is dropped.
pub struct Connection {
    // Streams go before their socket.
    input: InputStream,
    output: Option<OutputStream>,
    socket: TcpSocket,
}

impl Connection {
    /// Connects to the first address of a host that takes a connection.
    ///
    /// # Errors
    /// One line.
    pub fn open(host: &str, port: u16) -> Result<Self, String> {
        let stream = resolve_addresses(&instance_network(), host).map_err(error("it is not found"))?;
        let mut last = "it has no address".to_owned();
        loop {
            match stream.resolve_next_address() {
                Ok(Some(address)) => match connect(address, port) {
                    Ok(connection) => return Ok(connection),
                    Err(why) => last = why,
                },
                Ok(None) => return Err(last),
                Err(ErrorCode::WouldBlock) => stream.subscribe().block(),
                Err(code) => return Err(error("it is not found")(code)),
            }
        }
    }

    /// Sends bytes, all of them.
    ///
    /// # Errors
    /// One line.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let output = self.output.as_ref().ok_or_else(broken)?;
        for part in bytes.chunks(MAX_WRITE) {
            output.blocking_write_and_flush(part).map_err(|_| broken())?;
        }
        Ok(())
    }

    /// Waits for bytes. Returns none at the end.
    ///
    /// # Errors
    /// One line.
    pub fn receive(&mut self) -> Result<Vec<u8>, String> {
        match self.input.blocking_read(READ) {
            Ok(bytes) => Ok(bytes),
            Err(StreamError::Closed) => Ok(Vec::new()),
            Err(StreamError::LastOperationFailed(_)) => Err(broken()),
        }
    }

    /// Says that nothing more is sent.
    ///
    /// # Errors
    /// One line.
    pub fn end(&mut self) -> Result<(), String> {
        drop(self.output.take());
        self.socket.shutdown(ShutdownType::Send).map_err(error("the connection broke"))
    }
}

fn connect(address: IpAddress, port: u16) -> Result<Connection, String> {
    let (to, family) = match address {
        IpAddress::Ipv4(address) => (IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address }), IpAddressFamily::Ipv4),
        IpAddress::Ipv6(address) => (
            IpSocketAddress::Ipv6(Ipv6SocketAddress { port, flow_info: 0, address, scope_id: 0 }),
            IpAddressFamily::Ipv6,
        ),
    };
    let socket = create_tcp_socket(family).map_err(error("no socket"))?;
    socket.start_connect(&instance_network(), to).map_err(error("no connection"))?;
    loop {
        match socket.finish_connect() {
            Ok((input, output)) => return Ok(Connection { input, output: Some(output), socket }),
            Err(ErrorCode::WouldBlock) => socket.subscribe().block(),
            Err(code) => return Err(error("no connection")(code)),
        }
    }
}

fn broken() -> String {
    "the connection broke".to_owned()
}

fn error(what: &'static str) -> impl Fn(ErrorCode) -> String {
    move |code| format!("{what}: {}", code.name())
}
