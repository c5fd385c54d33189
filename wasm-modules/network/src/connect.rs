//! A test of a port on another host, which the owner granted.

use brine_guest::Value;
use brine_guest::keywords::Keywords;
use brine_tcp::wasi::io::poll::{Pollable, poll};
use brine_tcp::wasi::sockets::instance_network::instance_network;
use brine_tcp::wasi::sockets::ip_name_lookup::resolve_addresses;
use brine_tcp::wasi::sockets::network::{
    ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress,
};
use brine_tcp::wasi::sockets::tcp::ShutdownType;
use brine_tcp::wasi::sockets::tcp_create_socket::create_tcp_socket;

use crate::wasi::clocks::monotonic_clock;

/// How long a connection may take if nothing is said, in seconds, as in Salt, and at most.
const TIMEOUT_S: f64 = 5.0;
const MAX_TIMEOUT_S: f64 = 3600.0;

/// What is tested.
#[derive(Debug, PartialEq)]
struct Test {
    host: String,
    port: u16,
    /// None: either version.
    v4: Option<bool>,
    timeout_ns: u64,
}

fn answer(result: bool, comment: String) -> Value {
    Value::dict([("result", result.into()), ("comment", comment.into())])
}

/// The arguments; Salt's answer where they name nothing.
fn read(host: &Value, port: &Value, more: &Keywords) -> Result<Result<Test, Value>, String> {
    for (name, value) in [("host", host), ("port", port)] {
        if !value.truthy() {
            return Ok(Err(answer(false, format!("Required argument, {name}, is missing."))));
        }
    }
    if more.text("proto").as_deref() == Some("udp") {
        return Err("a port is tested by TCP only".into());
    }
    let timeout = match more.text("timeout") {
        None => TIMEOUT_S,
        Some(text) => text
            .parse()
            .ok()
            .filter(|timeout| (0.0..=MAX_TIMEOUT_S).contains(timeout))
            .ok_or_else(|| format!("timeout is to be a number of seconds, not {text:?}"))?,
    };
    let v4 = match more.text("family").as_deref() {
        Some("ipv4") => Some(true),
        Some("ipv6") => Some(false),
        _ => None,
    };
    let host = crate::programs::host(host)?;
    Ok(match port.to_text().parse() {
        Ok(port) if port > 0 => Ok(Test { host, port, v4, timeout_ns: (timeout * 1e9) as u64 }),
        _ => Err(unresolved(&host, &port.to_text())),
    })
}

fn unresolved(host: &str, port: &str) -> Value {
    answer(false, format!("Unable to resolve host {host} on tcp port {port}"))
}

pub(crate) fn connect(host: &Value, port: &Value, more: &Keywords) -> Result<Value, String> {
    let test = match read(host, port, more)? {
        Ok(test) => test,
        Err(answer) => return Ok(answer),
    };
    let until = monotonic_clock::subscribe_duration(test.timeout_ns);
    let Some(address) = resolve(&test, &until) else {
        return Ok(unresolved(&test.host, &test.port.to_string()));
    };
    let done = open(address, test.port, &until)?;
    let said = if done { "Successfully connected to" } else { "Unable to connect to" };
    let comment = format!("{said} {} ({}) on tcp port {}", test.host, shown(address), test.port);
    Ok(answer(done, comment))
}

/// Waits; false if the time is over before.
fn wait(ready: &Pollable, until: &Pollable) -> bool {
    poll(&[ready, until]).contains(&0)
}

/// The first address of the host, of the version that is meant.
fn resolve(test: &Test, until: &Pollable) -> Option<IpAddress> {
    let found = resolve_addresses(&instance_network(), &test.host).ok()?;
    loop {
        match found.resolve_next_address() {
            Ok(Some(address)) => {
                if test.v4.is_none_or(|v4| v4 == matches!(address, IpAddress::Ipv4(_))) {
                    return Some(address);
                }
            }
            Err(ErrorCode::WouldBlock) if wait(&found.subscribe(), until) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

/// What the owner did not grant, in the words of other refusals.
fn refused(address: IpAddress, port: u16) -> String {
    let to = match address {
        IpAddress::Ipv4(_) => format!("{}:{port}", shown(address)),
        IpAddress::Ipv6(_) => format!("[{}]:{port}", shown(address)),
    };
    format!(
        "the connection was refused: module network may not reach {to}; the owner of this host grants it by this line under \
         sandbox: modules: in the minion's configuration: network: {{network: [\"{to}\"]}}"
    )
}

/// Whether a connection is taken, which ends at once.
fn open(address: IpAddress, port: u16, until: &Pollable) -> Result<bool, String> {
    let (to, family) = match address {
        IpAddress::Ipv4(address) => (IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address }), IpAddressFamily::Ipv4),
        IpAddress::Ipv6(address) => (
            IpSocketAddress::Ipv6(Ipv6SocketAddress { port, flow_info: 0, address, scope_id: 0 }),
            IpAddressFamily::Ipv6,
        ),
    };
    let socket = match create_tcp_socket(family) {
        Ok(socket) => socket,
        // Nothing at all is granted.
        Err(ErrorCode::AccessDenied) => return Err(refused(address, port)),
        Err(_) => return Ok(false),
    };
    match socket.start_connect(&instance_network(), to) {
        Ok(()) => {}
        Err(ErrorCode::AccessDenied) => return Err(refused(address, port)),
        Err(_) => return Ok(false),
    }
    loop {
        match socket.finish_connect() {
            Ok(streams) => {
                drop(streams);
                let _ = socket.shutdown(ShutdownType::Both);
                return Ok(true);
            }
            Err(ErrorCode::WouldBlock) if wait(&socket.subscribe(), until) => {}
            Err(ErrorCode::AccessDenied) => return Err(refused(address, port)),
            Err(_) => return Ok(false),
        }
    }
}

fn shown(address: IpAddress) -> String {
    match address {
        IpAddress::Ipv4((a, b, c, d)) => std::net::Ipv4Addr::new(a, b, c, d).to_string(),
        IpAddress::Ipv6((a, b, c, d, e, f, g, h)) => std::net::Ipv6Addr::new(a, b, c, d, e, f, g, h).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        let keywords = |entries: &[(&'static str, &str)]| {
            let all = Value::dict(entries.iter().map(|(name, text)| (*name, (*text).into())));
            Keywords::new(&brine_guest::Data::from(all), []).unwrap()
        };
        let comment = |host: &str, port: Value| {
            let answer = read(&host.into(), &port, &keywords(&[])).unwrap().unwrap_err();
            assert_eq!(answer.get("result"), Some(&false.into()));
            answer.get("comment").unwrap().to_text()
        };
        assert_eq!(comment("", Value::Int(80)), "Required argument, host, is missing.");
        assert_eq!(comment("a", Value::None), "Required argument, port, is missing.");
        assert_eq!(comment("a", Value::Int(65_536)), "Unable to resolve host a on tcp port 65536");
        let read = |more: &[(&'static str, &str)]| read(&"a".into(), &"80".into(), &keywords(more));
        let test = Test { host: "a".into(), port: 80, v4: None, timeout_ns: 5_000_000_000 };
        assert_eq!(read(&[]), Ok(Ok(test)));
        let test = Test { host: "a".into(), port: 80, v4: Some(false), timeout_ns: 500_000_000 };
        assert_eq!(read(&[("timeout", "0.5"), ("family", "ipv6")]), Ok(Ok(test)));
        for wrong in [("timeout", "-1"), ("timeout", "nan"), ("timeout", "1e9"), ("proto", "udp")] {
            assert!(read(&[wrong]).is_err(), "{wrong:?}");
        }
    }
}
