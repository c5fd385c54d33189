//! Links the interfaces of the capability `network`: [`super::http`], and [`super::sockets`] with the parts that
//! wasmtime implements.

use wasmtime::component::HasSelf;
use wasmtime_wasi::p2::bindings::sockets;
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView};

use super::Links;
use super::bindings::brine::host::http;
use crate::guest::Guest;

pub(super) const LINKS: Links = &[
    ("brine:host/http", |linker| http::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)),
    ("wasi:sockets/network", |linker| {
        let options = sockets::network::LinkOptions::default();
        sockets::network::add_to_linker::<_, WasiSockets>(linker, &options, Guest::sockets)
    }),
    ("wasi:sockets/instance-network", |linker| {
        sockets::instance_network::add_to_linker::<_, WasiSockets>(linker, Guest::sockets)
    }),
    ("wasi:sockets/tcp", |linker| sockets::tcp::add_to_linker::<_, WasiSockets>(linker, Guest::sockets)),
    ("wasi:sockets/tcp-create-socket", |linker| {
        sockets::tcp_create_socket::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)
    }),
    ("wasi:sockets/udp", |linker| sockets::udp::add_to_linker::<_, WasiSockets>(linker, Guest::sockets)),
    ("wasi:sockets/udp-create-socket", |linker| {
        sockets::udp_create_socket::add_to_linker::<_, WasiSockets>(linker, Guest::sockets)
    }),
    ("wasi:sockets/ip-name-lookup", |linker| {
        sockets::ip_name_lookup::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)
    }),
];
