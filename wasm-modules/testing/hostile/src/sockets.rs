//! Attacks on connections through plain `wasi:sockets`.

use core::net::IpAddr;

use crate::wasi::sockets::instance_network::instance_network;
use crate::wasi::sockets::ip_name_lookup::resolve_addresses;
use crate::wasi::sockets::network::{
    ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress,
};
use crate::wasi::sockets::tcp_create_socket::create_tcp_socket;
use crate::wasi::sockets::udp_create_socket::create_udp_socket;

type Done = Result<String, String>;

fn error(step: &str) -> impl Fn(ErrorCode) -> String + '_ {
    move |code| format!("{step}: {}", code.name())
}

fn socket_address(address: IpAddress, port: u16) -> (IpSocketAddress, IpAddressFamily) {
    match address {
        IpAddress::Ipv4(address) => (IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address }), IpAddressFamily::Ipv4),
        IpAddress::Ipv6(address) => (
            IpSocketAddress::Ipv6(Ipv6SocketAddress { port, flow_info: 0, address, scope_id: 0 }),
            IpAddressFamily::Ipv6,
        ),
    }
}

fn parse(address: &str) -> Result<IpAddress, String> {
    Ok(match address.parse::<IpAddr>().map_err(|error| error.to_string())? {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            IpAddress::Ipv4((a, b, c, d))
        }
        IpAddr::V6(v6) => {
            let [a, b, c, d, e, f, g, h] = v6.segments();
            IpAddress::Ipv6((a, b, c, d, e, f, g, h))
        }
    })
}

pub(crate) fn act(op: &str, address: &str, port: u16) -> Done {
    let address = parse(address)?;
    match op {
        "connect" => connect(address, port),
        "bind" | "listen" => {
            let (at, family) = socket_address(address, port);
            let socket = create_tcp_socket(family).map_err(error("create"))?;
            socket.start_bind(&instance_network(), at).map_err(error("bind"))?;
            socket.finish_bind().map_err(error("bind"))?;
            socket.start_listen().map_err(error("listen"))?;
            socket.finish_listen().map_err(error("listen"))?;
            Ok("listening".to_owned())
        }
        "udp" => {
            let (at, family) = socket_address(address, port);
            let socket = create_udp_socket(family).map_err(error("create"))?;
            let (any, _) = match family {
                IpAddressFamily::Ipv4 => socket_address(IpAddress::Ipv4((0, 0, 0, 0)), 0),
                IpAddressFamily::Ipv6 => socket_address(IpAddress::Ipv6((0, 0, 0, 0, 0, 0, 0, 0)), 0),
            };
            socket.start_bind(&instance_network(), any).map_err(error("bind"))?;
            socket.finish_bind().map_err(error("bind"))?;
            socket.stream(Some(at)).map_err(error("stream"))?;
            Ok("a stream".to_owned())
        }
        _ => Err(format!("no operation {op}")),
    }
}

fn connect(address: IpAddress, port: u16) -> Done {
    let (to, family) = socket_address(address, port);
    let socket = create_tcp_socket(family).map_err(error("create"))?;
    socket.start_connect(&instance_network(), to).map_err(error("connect"))?;
    loop {
        match socket.finish_connect() {
            Ok(_) => return Ok("connected".to_owned()),
            Err(ErrorCode::WouldBlock) => socket.subscribe().block(),
            Err(code) => return Err(format!("connect: {}", code.name())),
        }
    }
}

pub(crate) fn resolve(name: &str) -> Result<Vec<IpAddress>, String> {
    let stream = resolve_addresses(&instance_network(), name).map_err(error("resolve"))?;
    let mut found = Vec::new();
    loop {
        match stream.resolve_next_address() {
            Ok(Some(address)) => found.push(address),
            Ok(None) => return Ok(found),
            Err(ErrorCode::WouldBlock) => stream.subscribe().block(),
            Err(code) => return Err(format!("resolve: {}", code.name())),
        }
    }
}

pub(crate) fn reach(name: &str, port: u16) -> Done {
    let found = resolve(name)?;
    let mut last = "no address".to_owned();
    for address in found {
        match connect(address, port) {
            Ok(done) => return Ok(done),
            Err(error) => last = error,
        }
    }
    Err(last)
}
