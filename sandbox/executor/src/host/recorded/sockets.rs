//! `wasi:sockets`. UDP is not available in any call, so only the refusal to make such a socket is recorded.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{self, ResolveAddressStream};
use wasmtime_wasi::p2::bindings::sockets::network::{
    self, ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Network,
};
use wasmtime_wasi::p2::bindings::sockets::tcp::{self, ShutdownType};
use wasmtime_wasi::p2::bindings::sockets::{instance_network, tcp_create_socket, udp, udp_create_socket};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, DynPollable, SocketError, SocketResult, TcpSocket, UdpSocket,
};
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView};

use super::{Link, Recorded, Spy, args, rows, spied, waiting_rows};
use crate::guest::Guest;

pub(super) const LINKS: &[(&str, Link)] = &[
    ("wasi:sockets/network", |linker| {
        let options = network::LinkOptions::default();
        network::add_to_linker::<_, Spy>(linker, &options, spied)
    }),
    ("wasi:sockets/instance-network", |linker| instance_network::add_to_linker::<_, Spy>(linker, spied)),
    ("wasi:sockets/tcp", |linker| tcp::add_to_linker::<_, Spy>(linker, spied)),
    ("wasi:sockets/tcp-create-socket", |linker| tcp_create_socket::add_to_linker::<_, Spy>(linker, spied)),
    ("wasi:sockets/udp", |linker| udp::add_to_linker::<_, WasiSockets>(linker, Guest::sockets)),
    ("wasi:sockets/udp-create-socket", |linker| udp_create_socket::add_to_linker::<_, Spy>(linker, spied)),
    ("wasi:sockets/ip-name-lookup", |linker| ip_name_lookup::add_to_linker::<_, Spy>(linker, spied)),
];

impl network::Host for Recorded<'_> {
    rows! {
        "wasi:sockets/network", network::Host, |guest| *guest;
        network_error_code(error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>>;
    }

    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }
}

impl network::HostNetwork for Recorded<'_> {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        if self.0.replays() { Ok(()) } else { network::HostNetwork::drop(self.0, network) }
    }
}

impl instance_network::Host for Recorded<'_> {
    rows! {
        "wasi:sockets/instance-network", instance_network::Host, |guest| guest.sockets();
        instance_network() -> wasmtime::Result<Resource<Network>>;
    }
}

impl tcp_create_socket::Host for Recorded<'_> {
    rows! {
        "wasi:sockets/tcp-create-socket", tcp_create_socket::Host, |guest| *guest;
        create_tcp_socket(family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>>;
    }
}

impl udp_create_socket::Host for Recorded<'_> {
    waiting_rows! {
        "wasi:sockets/udp-create-socket", udp_create_socket::Host, |guest| guest.sockets();
        create_udp_socket(family: IpAddressFamily) -> SocketResult<Resource<UdpSocket>>;
    }
}

impl tcp::Host for Recorded<'_> {}

impl tcp::HostTcpSocket for Recorded<'_> {
    waiting_rows! {
        "wasi:sockets/tcp.tcp-socket", tcp::HostTcpSocket, |guest| guest.sockets();
        start_bind(
            socket: Resource<TcpSocket>,
            network: Resource<Network>,
            address: IpSocketAddress
        ) -> SocketResult<()>;
        start_listen(socket: Resource<TcpSocket>) -> SocketResult<()>;
    }
    rows! {
        "wasi:sockets/tcp.tcp-socket", tcp::HostTcpSocket, |guest| guest.sockets();
        finish_bind(socket: Resource<TcpSocket>) -> SocketResult<()>;
        start_connect(
            socket: Resource<TcpSocket>,
            network: Resource<Network>,
            address: IpSocketAddress
        ) -> SocketResult<()>;
        finish_connect(
            socket: Resource<TcpSocket>
        ) -> SocketResult<(Resource<DynInputStream>, Resource<DynOutputStream>)>;
        finish_listen(socket: Resource<TcpSocket>) -> SocketResult<()>;
        accept(
            socket: Resource<TcpSocket>
        ) -> SocketResult<(Resource<TcpSocket>, Resource<DynInputStream>, Resource<DynOutputStream>)>;
        local_address(socket: Resource<TcpSocket>) -> SocketResult<IpSocketAddress>;
        remote_address(socket: Resource<TcpSocket>) -> SocketResult<IpSocketAddress>;
        is_listening(socket: Resource<TcpSocket>) -> wasmtime::Result<bool>;
        address_family(socket: Resource<TcpSocket>) -> wasmtime::Result<IpAddressFamily>;
        set_listen_backlog_size(socket: Resource<TcpSocket>, value: u64) -> SocketResult<()>;
        keep_alive_enabled(socket: Resource<TcpSocket>) -> SocketResult<bool>;
        set_keep_alive_enabled(socket: Resource<TcpSocket>, value: bool) -> SocketResult<()>;
        keep_alive_idle_time(socket: Resource<TcpSocket>) -> SocketResult<u64>;
        set_keep_alive_idle_time(socket: Resource<TcpSocket>, value: u64) -> SocketResult<()>;
        keep_alive_interval(socket: Resource<TcpSocket>) -> SocketResult<u64>;
        set_keep_alive_interval(socket: Resource<TcpSocket>, value: u64) -> SocketResult<()>;
        keep_alive_count(socket: Resource<TcpSocket>) -> SocketResult<u32>;
        set_keep_alive_count(socket: Resource<TcpSocket>, value: u32) -> SocketResult<()>;
        hop_limit(socket: Resource<TcpSocket>) -> SocketResult<u8>;
        set_hop_limit(socket: Resource<TcpSocket>, value: u8) -> SocketResult<()>;
        receive_buffer_size(socket: Resource<TcpSocket>) -> SocketResult<u64>;
        set_receive_buffer_size(socket: Resource<TcpSocket>, value: u64) -> SocketResult<()>;
        send_buffer_size(socket: Resource<TcpSocket>) -> SocketResult<u64>;
        set_send_buffer_size(socket: Resource<TcpSocket>, value: u64) -> SocketResult<()>;
        subscribe(socket: Resource<TcpSocket>) -> wasmtime::Result<Resource<DynPollable>>;
        shutdown(socket: Resource<TcpSocket>, how: ShutdownType) -> SocketResult<()>;
    }

    fn drop(&mut self, socket: Resource<TcpSocket>) -> wasmtime::Result<()> {
        if self.0.replays() { Ok(()) } else { tcp::HostTcpSocket::drop(&mut self.0.sockets(), socket) }
    }
}

impl ip_name_lookup::Host for Recorded<'_> {
    rows! {
        "wasi:sockets/ip-name-lookup", ip_name_lookup::Host, |guest| *guest;
        resolve_addresses(network: Resource<Network>, name: String) -> SocketResult<Resource<ResolveAddressStream>>;
    }
}

impl ip_name_lookup::HostResolveAddressStream for Recorded<'_> {
    rows! {
        "wasi:sockets/ip-name-lookup.resolve-address-stream", ip_name_lookup::HostResolveAddressStream, |guest| *guest;
        resolve_next_address(stream: Resource<ResolveAddressStream>) -> SocketResult<Option<IpAddress>>;
        subscribe(stream: Resource<ResolveAddressStream>) -> wasmtime::Result<Resource<DynPollable>>;
    }

    fn drop(&mut self, stream: Resource<ResolveAddressStream>) -> wasmtime::Result<()> {
        if self.0.replays() { Ok(()) } else { ip_name_lookup::HostResolveAddressStream::drop(self.0, stream) }
    }
}
