//! The connections that a guest can make. There is no executor process; the tests call the guest as the engine does.
#![allow(clippy::disallowed_methods, reason = "the test listens")]

use std::net::{IpAddr, SocketAddr, TcpListener};

use brine_executor::guest::Guest;
use brine_kit::wait::within;
use brine_sandbox_wire::{
    ByteBuf, FromExecutor, HostError, HostOp, Limits, MAX_OPEN_REQUESTS, NetworkOp, NetworkRule, Wanted,
};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::io::poll::HostPollable;
use wasmtime_wasi::p2::bindings::sockets::instance_network::Host as _;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{Host as _, HostResolveAddressStream, ResolveAddressStream};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress};
use wasmtime_wasi::p2::bindings::sockets::tcp::HostTcpSocket;
use wasmtime_wasi::p2::bindings::sockets::tcp_create_socket::Host as _;
use wasmtime_wasi::p2::bindings::sockets::udp_create_socket::Host as _;
use wasmtime_wasi::p2::{SocketError, SocketResult, TcpSocket};
use wasmtime_wasi::sockets::WasiSocketsView;

use crate::alone;

fn guest(rules: &[(&str, u16)]) -> Guest {
    let network =
        rules.iter().map(|(host, port)| NetworkRule { host: (*host).to_owned(), ports: (*port, *port) }).collect();
    alone::connecting("deploy", Limits::default(), network)
}

fn same<T: 'static>(resource: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(resource.rep())
}

fn code(error: SocketError) -> ErrorCode {
    error.downcast().unwrap()
}

fn socket(guest: &mut Guest, to: SocketAddr) -> SocketResult<Resource<TcpSocket>> {
    guest.create_tcp_socket(if to.is_ipv4() { IpAddressFamily::Ipv4 } else { IpAddressFamily::Ipv6 })
}

/// Waits until the connection is made or refused.
async fn connect(guest: &mut Guest, to: SocketAddr) -> Result<Resource<TcpSocket>, ErrorCode> {
    let socket = socket(guest, to).map_err(code)?;
    let network = guest.sockets().instance_network().unwrap();
    guest.sockets().start_connect(same(&socket), network, IpSocketAddress::from(to)).map_err(code)?;
    within(async {
        loop {
            match guest.sockets().finish_connect(same(&socket)).map_err(code) {
                Err(ErrorCode::WouldBlock) => tokio::task::yield_now().await,
                Err(code) => return Err(code),
                Ok(_) => return Ok(socket),
            }
        }
    })
    .await
}

/// The lines of the log, and what the owner is told of.
fn said(guest: &Guest) -> (Vec<String>, Vec<Wanted>) {
    let (mut lines, mut told) = (Vec::new(), Vec::new());
    for message in guest.line.outgoing() {
        match message {
            FromExecutor::Log { message, .. } => lines.push(message),
            FromExecutor::Refused { wanted, .. } => told.push(wanted),
            _ => {}
        }
    }
    (lines, told)
}

fn lines(guest: &Guest) -> Vec<String> {
    said(guest).0
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[tokio::test]
async fn an_address_that_was_granted() {
    let (_listener, to) = listener();
    let (_other, beside) = listener();
    let mut guest = guest(&[("127.0.0.1", to.port())]);
    connect(&mut guest, to).await.unwrap();
    assert_eq!(connect(&mut guest, beside).await.err(), Some(ErrorCode::AccessDenied));
    let expected = format!(
        "a connection to {beside} was not granted to module deploy; the owner of this host grants it by this line under sandbox: \
         modules: in the minion's configuration: deploy: {{network: [\"{beside}\"]}}"
    );
    assert_eq!(said(&guest), (vec![expected], vec![Wanted::Connection { to: beside }]));
    // Each is told once.
    assert!(connect(&mut guest, beside).await.is_err());
    assert_eq!(said(&guest).1, []);
    for refused in ["127.0.0.2", "169.254.169.254", "0.0.0.0", "::1", "192.0.2.1"] {
        let to = SocketAddr::new(refused.parse().unwrap(), to.port());
        let error = connect(&mut guest, to).await.err().unwrap();
        assert!(matches!(error, ErrorCode::AccessDenied | ErrorCode::InvalidArgument), "{refused}: {error:?}");
    }
}

#[tokio::test]
async fn nothing_without_a_grant() {
    let mut guest = guest(&[]);
    assert_eq!(guest.create_tcp_socket(IpAddressFamily::Ipv4).map_err(code).err(), Some(ErrorCode::AccessDenied));
    assert_eq!(guest.create_tcp_socket(IpAddressFamily::Ipv6).map_err(code).err(), Some(ErrorCode::AccessDenied));
    assert_eq!(said(&guest).1, [Wanted::Socket]);
}

/// Without any rule there is no socket, but the owner is told of each address with the line that would grant it.
#[tokio::test]
async fn without_a_rule_an_address_is_refused_and_told() {
    let (listener, to) = listener();
    listener.set_nonblocking(true).unwrap();
    let mut guest = guest(&[]);
    guest.unconnected = true;
    let network = |guest: &mut Guest| guest.sockets().instance_network().unwrap();
    for _ in 0..2 {
        let socket = socket(&mut guest, to).unwrap();
        let handle = network(&mut guest);
        guest.set_keep_alive_enabled(same(&socket), true).unwrap();
        assert_eq!(guest.finish_connect(same(&socket)).map(drop).map_err(code), Err(ErrorCode::NotInProgress));
        guest.start_connect(same(&socket), handle, to.into()).unwrap();
        let pollable = HostTcpSocket::subscribe(&mut guest, same(&socket)).unwrap();
        within(guest.table.block(same(&pollable))).await.unwrap();
        HostPollable::drop(&mut guest.table, pollable).unwrap();
        assert_eq!(guest.finish_connect(same(&socket)).map(drop).map_err(code), Err(ErrorCode::AccessDenied));
        // It is not tried again with the same socket, and is nothing that is read or listened on.
        let handle = network(&mut guest);
        assert_eq!(guest.start_connect(same(&socket), handle, to.into()).map_err(code), Err(ErrorCode::InvalidState));
        assert!(guest.remote_address(same(&socket)).is_err() && guest.accept(same(&socket)).is_err());
        assert_eq!(within(guest.start_listen(same(&socket))).await.map_err(code), Err(ErrorCode::AccessDenied));
        HostTcpSocket::drop(&mut guest, socket).unwrap();
    }
    let (lines, told) = said(&guest);
    assert!(lines[0].ends_with(&format!("deploy: {{network: [\"{to}\"]}}")), "{lines:?}");
    assert_eq!(told, [Wanted::Connection { to }]);
    assert!(listener.accept().is_err(), "nobody connected");
    // A socket is of one family, and binds to nothing that others could reach.
    for (family, to, expect) in [
        (IpAddressFamily::Ipv6, "192.0.2.1:80", ErrorCode::InvalidArgument),
        (IpAddressFamily::Ipv4, "0.0.0.0:80", ErrorCode::InvalidArgument),
        (IpAddressFamily::Ipv4, "192.0.2.1:0", ErrorCode::InvalidArgument),
        (IpAddressFamily::Ipv6, "[::ffff:192.0.2.1]:80", ErrorCode::InvalidArgument),
    ] {
        let (socket, handle) = (guest.create_tcp_socket(family).unwrap(), network(&mut guest));
        let to: SocketAddr = to.parse().unwrap();
        assert_eq!(guest.start_connect(socket, handle, to.into()).map_err(code), Err(expect), "{to}");
    }
    for (address, expect) in [("0.0.0.0:0", Ok(())), ("0.0.0.0:80", Err(ErrorCode::AccessDenied))] {
        let (socket, handle) = (guest.create_tcp_socket(IpAddressFamily::Ipv4).unwrap(), network(&mut guest));
        let address: SocketAddr = address.parse().unwrap();
        let bound = within(guest.start_bind(same(&socket), handle, address.into())).await;
        assert_eq!(bound.map_err(code), expect, "{address}");
    }
    assert_eq!(said(&guest).1, []);
}

#[tokio::test]
async fn nobody_listens_and_there_is_no_udp() {
    let mut guest = guest(&[("127.0.0.1", 80), ("0.0.0.0", 80)]);
    for family in [IpAddressFamily::Ipv4, IpAddressFamily::Ipv6] {
        let made = within(guest.sockets().create_udp_socket(family)).await;
        assert_eq!(made.map(drop).map_err(code), Err(ErrorCode::AccessDenied));
    }
    let network = guest.sockets().instance_network().unwrap();
    for address in ["127.0.0.1:0", "0.0.0.0:80", "127.0.0.1:80"] {
        let socket = guest.create_tcp_socket(IpAddressFamily::Ipv4).unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let mut view = guest.sockets();
        let bound = within(view.start_bind(same(&socket), same(&network), address.into())).await;
        assert_eq!(bound.map_err(code), Err(ErrorCode::AccessDenied), "{address}");
    }
    // The operations that precede connecting are allowed and do not permit listening.
    let socket = guest.create_tcp_socket(IpAddressFamily::Ipv4).unwrap();
    let address: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let mut view = guest.sockets();
    within(view.start_bind(same(&socket), network, address.into())).await.unwrap();
    view.finish_bind(same(&socket)).unwrap();
    assert_eq!(within(view.start_listen(socket)).await.map_err(code), Err(ErrorCode::AccessDenied));
}

/// Looks a name up with this reply of the minion.
async fn resolve(guest: &mut Guest, name: &str, answer: Result<&[&str], HostError>) -> SocketResult<Vec<IpAddr>> {
    let network = guest.sockets().instance_network().unwrap();
    let stream = guest.resolve_addresses(network, name.into())?;
    for message in guest.line.outgoing() {
        if let FromExecutor::HostCall { request, op, .. } = message {
            assert_eq!(op, HostOp::Network(NetworkOp::Resolve { name: name.into() }));
            assert!(matches!(guest.resolve_next_address(same(&stream)).map_err(code), Err(ErrorCode::WouldBlock)));
            let answer = answer.clone().map(|answer| ByteBuf::from(rmp_serde::to_vec(answer).unwrap()));
            guest.line.reply(request, answer);
        }
    }
    let outcome = all(guest, &stream);
    HostResolveAddressStream::drop(guest, stream).unwrap();
    outcome
}

fn all(guest: &mut Guest, stream: &Resource<ResolveAddressStream>) -> SocketResult<Vec<IpAddr>> {
    let mut addresses = Vec::new();
    while let Some(address) = guest.resolve_next_address(same(stream))? {
        addresses.push(match address {
            IpAddress::Ipv4((a, b, c, d)) => IpAddr::from([a, b, c, d]),
            IpAddress::Ipv6((a, b, c, d, e, f, g, h)) => IpAddr::from([a, b, c, d, e, f, g, h]),
        });
    }
    Ok(addresses)
}

#[tokio::test]
async fn names_are_the_minions_to_resolve() {
    let mut guest = guest(&[("repo.example", 443)]);
    let found = resolve(&mut guest, "Repo.Example", Ok(&["192.0.2.1", "2001:db8::1", "127.0.0.1", "no address"])).await;
    assert_eq!(found.unwrap(), ["192.0.2.1", "2001:db8::1"].map(|address| address.parse::<IpAddr>().unwrap()));
    assert!(guest.network().allows("192.0.2.1:443".parse().unwrap()));
    assert!(!guest.network().allows("192.0.2.1:80".parse().unwrap()));
    assert!(!guest.network().allows("192.0.2.2:443".parse().unwrap()));
    assert!(!guest.network().allows("127.0.0.1:443".parse().unwrap()));
    assert_eq!(lines(&guest), [""; 0]);
    // A name that leads to an internal address, whoever answers for it.
    let found = resolve(&mut guest, "repo.example", Ok(&["169.254.169.254"])).await;
    assert_eq!(found.map_err(code), Err(ErrorCode::AccessDenied));
    let line = "repo.example leads to 169.254.169.254, which is reached only where that address itself is granted";
    assert_eq!(lines(&guest), [line]);
    assert!(!guest.network().allows("169.254.169.254:443".parse().unwrap()));
    // A name that does not exist.
    let found = resolve(&mut guest, "repo.example", Err(HostError::Failed("no such name".into()))).await;
    assert_eq!(found.map_err(code), Err(ErrorCode::NameUnresolvable));
    assert_eq!(lines(&guest), ["repo.example is not found: no such name"]);
    // A name that was not granted: the minion refuses.
    let refusal = "the owner of this host grants it by …";
    let found = resolve(&mut guest, "evil.example", Err(HostError::Denied(refusal.into()))).await;
    let ended = found.unwrap_err().downcast().unwrap_err();
    assert_eq!(ended.to_string(), format!("ip-name-lookup was refused: {refusal}"));
    // An invalid name is not looked up, and an address is returned unchanged.
    for bad in ["", "127.1", "a b", "2130706433", "localhost/x"] {
        let found = resolve(&mut guest, bad, Ok(&[])).await;
        assert_eq!(found.map_err(code), Err(ErrorCode::InvalidArgument), "{bad}");
    }
    for (text, address) in [("192.0.2.7", "192.0.2.7"), ("[::1]", "::1"), ("::ffff:192.0.2.7", "192.0.2.7")] {
        let found = resolve(&mut guest, text, Ok(&[])).await.unwrap();
        assert_eq!(found, [address.parse::<IpAddr>().unwrap()]);
    }
    assert!(!guest.network().allows("192.0.2.7:443".parse().unwrap()));
}

#[tokio::test]
async fn sockets_are_bounded() {
    let mut guest = guest(&[("127.0.0.1", 80)]);
    let mut sockets = Vec::new();
    for _ in 0..100 {
        sockets.push(guest.create_tcp_socket(IpAddressFamily::Ipv4).unwrap());
    }
    let refused = guest.create_tcp_socket(IpAddressFamily::Ipv4).err().unwrap();
    assert_eq!(refused.downcast().unwrap_err().to_string(), "its limit of 100 open files is used up");
    for socket in sockets {
        HostTcpSocket::drop(&mut guest.sockets(), socket).unwrap();
    }
    guest.create_tcp_socket(IpAddressFamily::Ipv4).unwrap();
}

/// A guest that looks many names up at once is honest: its executor asks the minion for no more than one call may have open.
#[tokio::test]
async fn lookups_without_an_answer_are_bounded() {
    let mut guest = guest(&[("slow.example", 443)]);
    let begin = |guest: &mut Guest| {
        let network = guest.sockets().instance_network().unwrap();
        guest.resolve_addresses(network, "slow.example".into()).map_err(code)
    };
    let asked = |guest: &Guest| {
        let mut requests = Vec::new();
        for message in guest.line.outgoing() {
            if let FromExecutor::HostCall { request, .. } = message {
                requests.push(request);
            }
        }
        requests
    };
    let mut streams = Vec::new();
    for nth in 0..20 {
        match begin(&mut guest) {
            Ok(stream) => streams.push(stream),
            Err(code) => assert_eq!(code, ErrorCode::TemporaryResolverFailure, "{nth}"),
        }
    }
    let requests = asked(&guest);
    // One more request of another kind has its place.
    assert_eq!((streams.len(), requests.len()), (3, MAX_OPEN_REQUESTS as usize - 1));
    assert_eq!(guest.host_calls, 3, "what is not asked costs no call");
    // A look-up that nobody waits for any more is still one that the minion counts.
    for stream in streams.drain(1..) {
        HostResolveAddressStream::drop(&mut guest, stream).unwrap();
    }
    assert_eq!(begin(&mut guest).map(drop), Err(ErrorCode::TemporaryResolverFailure));
    // An address is no look-up.
    let network = guest.sockets().instance_network().unwrap();
    let literal = guest.resolve_addresses(network, "192.0.2.7".into()).map_err(code).unwrap();
    assert_eq!(all(&mut guest, &literal).map_err(code).unwrap(), ["192.0.2.7".parse::<IpAddr>().unwrap()]);
    // An answer makes room, whether or not the guest has looked at it.
    let answer = || Ok(ByteBuf::from(rmp_serde::to_vec(&["192.0.2.1"]).unwrap()));
    for request in &requests[..2] {
        guest.line.reply(*request, answer());
        streams.push(begin(&mut guest).unwrap());
        assert_eq!(begin(&mut guest).map(drop), Err(ErrorCode::TemporaryResolverFailure));
    }
    assert_eq!(all(&mut guest, &streams[0]).map_err(code).unwrap(), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
}

/// Streams whose look-ups have ended are host resources, as all others are.
#[tokio::test]
async fn lookups_are_bounded() {
    let mut guest = guest(&[("repo.example", 443)]);
    let mut made = 0;
    let refused = loop {
        let network = guest.sockets().instance_network();
        let made_one = network
            .map_err(SocketError::trap)
            .and_then(|network| guest.resolve_addresses(network, "repo.example".into()));
        match made_one {
            Ok(_) => made += 1,
            Err(error) => break error.downcast().unwrap_err().to_string(),
        }
        for message in guest.line.outgoing() {
            if let FromExecutor::HostCall { request, .. } = message {
                guest.line.reply(request, Err(HostError::Failed("no such name".into())));
            }
        }
        assert!(made < 1_000);
    };
    assert_eq!((made, refused.as_str()), (128, "resource table has no free keys"));
}
