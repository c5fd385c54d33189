//! The kernel's tables of routes, neighbours and connections, in Salt's form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use brine_addresses::{Address, show};
use brine_guest::Value;

// linux/route.h, linux/ipv6_route.h
const RTF_GATEWAY: u32 = 2;
const RTF_REJECT: u32 = 0x200;
/// What netstat(8) shows of a route's flags, behind `U` or `!`.
const FLAGS4: [(u32, char); 5] = [(RTF_GATEWAY, 'G'), (4, 'H'), (8, 'R'), (0x10, 'D'), (0x20, 'M')];
const FLAGS6: [(u32, char); 9] = [
    (RTF_GATEWAY, 'G'),
    (4, 'H'),
    (0x1_0000, 'D'),
    (0x4_0000, 'A'),
    (0x100_0000, 'C'),
    (0x2_0000, 'a'),
    (0x40_0000, 'e'),
    (0x20, 'm'),
    (0x20_0000, 'n'),
];
/// States of TCP (tcp_states.h), by their numbers less one.
const STATES: [&str; 11] = [
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSE",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
];

fn hex(word: &str) -> Option<u32> {
    u32::from_str_radix(word, 16).ok()
}

/// An IPv4 address as a number in the byte order of the host.
fn v4(word: &str) -> Option<Ipv4Addr> {
    Some(Ipv4Addr::from(hex(word)?.to_le_bytes()))
}

fn flags(bits: u32, letters: &[(u32, char)]) -> String {
    let state = if bits & RTF_REJECT != 0 { '!' } else { 'U' };
    std::iter::once(state).chain(letters.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, letter)| *letter)).collect()
}

fn route(family: &str, destination: String, gateway: String, netmask: String, flags: String, interface: &str) -> Value {
    Value::dict([
        ("addr_family", family.into()),
        ("destination", destination.into()),
        ("gateway", gateway.into()),
        ("netmask", netmask.into()),
        ("flags", flags.into()),
        ("interface", interface.into()),
    ])
}

/// `Iface Destination Gateway Flags RefCnt Use Metric Mask …`, below a line of headings.
pub(crate) fn routes4(table: &str) -> Vec<Value> {
    let each = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [interface, destination, gateway, bits, _, _, _, mask, ..] = fields[..] else { return None };
        let shown = |word: &str| v4(word).map(|ip| ip.to_string());
        Some(route("inet", shown(destination)?, shown(gateway)?, shown(mask)?, flags(hex(bits)?, &FLAGS4), interface))
    };
    table.lines().filter_map(each).collect()
}

/// `destination prefix source prefix gateway metric refcnt use flags device`, all hexadecimal.
pub(crate) fn routes6(table: &str) -> Vec<Value> {
    let each = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [destination, length, _, _, gateway, _, _, _, bits, interface] = fields[..] else { return None };
        let address = |word: &str| u128::from_str_radix(word, 16).ok().map(|bits| IpAddr::from(Ipv6Addr::from(bits)));
        let destination = Address::within(address(destination)?, u8::from_str_radix(length, 16).ok()?);
        let flags = flags(hex(bits)?, &FLAGS6);
        Some(route("inet6", destination.show(), show(address(gateway)?), String::new(), flags, interface))
    };
    table.lines().filter_map(each).collect()
}

/// Default routes are those to every address.
pub(crate) fn is_default(route: &Value) -> bool {
    matches!(route.get("destination").and_then(Value::text), Some("0.0.0.0" | "::/0" | "default"))
}

/// `IP address, HW type, Flags, HW address, Mask, Device`, below a line of headings. The flags of a neighbour that did not
/// answer are 0.
pub(crate) fn neighbours(table: &str, with_silent: bool) -> Value {
    let mut found: Vec<(Value, Value)> = Vec::new();
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [address, _, flags, hardware, ..] = fields[..] else { continue };
        let is_silent = flags == "0x0";
        if is_silent && !with_silent {
            continue;
        }
        let key = Value::from(if is_silent { "<incomplete>" } else { hardware });
        // As in a dict of Python's, the last one counts.
        match found.iter_mut().find(|(known, _)| *known == key) {
            Some((_, value)) => *value = address.into(),
            None => found.push((key, address.into())),
        }
    }
    Value::Dict(found)
}

/// A line of the tables of sockets: `sl local_address rem_address st tx_queue:rx_queue tr:tm retrnsmt uid timeout inode …`.
struct Socket<'a> {
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
    state: usize,
    send_queue: u32,
    receive_queue: u32,
    user: &'a str,
    inode: &'a str,
}

impl<'a> Socket<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, state, queues, _, _, user, _, inode, ..] = fields[..] else { return None };
        let (send, receive) = queues.split_once(':')?;
        Some(Self {
            local: end(local)?,
            remote: end(remote)?,
            state: usize::from_str_radix(state, 16).ok()?,
            send_queue: hex(send)?,
            receive_queue: hex(receive)?,
            user,
            inode,
        })
    }
}

/// An address and a port. An IPv6 address is four numbers, each in the byte order of the host; one that maps an IPv4 address
/// is shown as that.
fn end(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    if address.len() == 8 {
        return Some((v4(address)?.into(), port));
    }
    let mut bytes = [0; 16];
    for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
        part.copy_from_slice(&hex(address.get(at * 8..at * 8 + 8)?)?.to_le_bytes());
    }
    let address = Ipv6Addr::from(bytes);
    Some((address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4), port))
}

/// The connections of `net/tcp` and `net/tcp6`, numbered.
pub(crate) fn active_tcp(tables: &[String]) -> Value {
    let sockets = tables.iter().flat_map(|table| table.lines()).filter_map(Socket::read);
    let each = |socket: Socket<'_>| {
        Value::dict([
            ("local_addr", show(socket.local.0).into()),
            ("local_port", i64::from(socket.local.1).into()),
            ("remote_addr", show(socket.remote.0).into()),
            ("remote_port", i64::from(socket.remote.1).into()),
        ])
    };
    let connected = sockets.filter(|socket| socket.state == 1).map(each);
    Value::Dict(connected.enumerate().map(|(at, value)| (Value::Int(at as i64), value)).collect())
}

/// The sockets of a protocol's table.
pub(crate) fn sockets(protocol: &str, table: &str) -> Vec<Value> {
    let shown = |(address, port): (IpAddr, u16)| {
        let port = if port == 0 { "*".to_owned() } else { port.to_string() };
        Value::from(format!("{}:{port}", show(address)))
    };
    let each = |socket: Socket<'_>| {
        let mut entries = vec![
            ("proto", protocol.into()),
            ("recv-q", socket.receive_queue.to_string().into()),
            ("send-q", socket.send_queue.to_string().into()),
            ("local-address", shown(socket.local)),
            ("remote-address", shown(socket.remote)),
        ];
        if protocol.starts_with("tcp") {
            let state = socket.state.checked_sub(1).and_then(|at| STATES.get(at));
            entries.push(("state", (*state.unwrap_or(&"UNKNOWN")).into()));
        }
        // netstat(8) says so of what it may not look up.
        entries.extend([("user", socket.user.into()), ("inode", socket.inode.into()), ("program", "-".into())]);
        Value::dict(entries)
    };
    table.lines().filter_map(Socket::read).map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(value: &Value) -> String {
        let Value::Dict(entries) = value else { panic!("{value:?}") };
        entries.iter().map(|(_, value)| value.to_text()).collect::<Vec<_>>().join(" ")
    }

    /// Recorded, with what `netstat -rn` said of it.
    #[test]
    fn routes_are_read() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                     eth0\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
                     *\t0000000A\t00000000\t0201\t0\t0\t0\t000000FF\t0\t0\t0\nx\ty\n";
        let routes = routes4(table);
        let shown: Vec<String> = routes.iter().map(words).collect();
        assert_eq!(
            shown,
            [
                "inet 0.0.0.0 192.0.2.1 0.0.0.0 UG eth0",
                "inet 192.0.2.0 0.0.0.0 255.255.255.0 U eth0",
                "inet 10.0.0.0 0.0.0.0 255.0.0.0 ! *",
            ]
        );
        assert_eq!(routes.iter().map(is_default).collect::<Vec<_>>(), [true, false, false]);
        let zero = "0".repeat(32);
        let table = format!(
            "fd000000000000000000000000000000 40 {zero} 00 {zero} 00000100 00000001 00000000 00000001     eth0\n\
             {zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003     eth0\n\
             {zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200       lo\n\
             fd000000000000000000000000000002 80 {zero} 00 {zero} 00000000 00000003 00000000 80200001     eth0\n"
        );
        let routes = routes6(&table);
        let shown: Vec<String> = routes.iter().map(words).collect();
        assert_eq!(
            shown,
            [
                "inet6 fd00::/64 ::  U eth0",
                "inet6 ::/0 fe80::1  UGDAe eth0",
                "inet6 ::/0 ::  !n lo",
                "inet6 fd00::2/128 ::  Un eth0",
            ]
        );
    }

    #[test]
    fn neighbours_are_read() {
        let table = "IP address       HW type     Flags       HW address            Mask     Device\n\
                     192.0.2.1        0x1         0x2         02:fc:00:00:00:05     *        eth0\n\
                     192.0.2.9        0x1         0x0         00:00:00:00:00:00     *        eth0\n";
        let all = neighbours(table, true);
        assert_eq!(all.get("02:fc:00:00:00:05"), Some(&"192.0.2.1".into()));
        assert_eq!(all.get("<incomplete>"), Some(&"192.0.2.9".into()));
        assert_eq!(words(&neighbours(table, false)), "192.0.2.1");
    }

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:1150 00000000:0000 0A 00000000:00000000 00:00000000 00000000   102        0 19053 1 0000 100 0 0 10 0\n   \
        1: 020200C0:A84C 0100007F:ADDA 01 00000003:0000000A 02:00000B3D 00000000     0        0 20333 2 0000 20 4 30 10 -1\n";
    const TCP6: &str = "   0: 0000000000000000FFFF00000100007F:0016 00000000000000000000000001000000:0050 01 00000000:00000000 \
        00:00000000 00000000     0        0 7 1 0000 100 0 0 10 0\n   1: cut\n";

    #[test]
    fn connections_are_read() {
        let active = active_tcp(&[TCP.to_owned(), TCP6.to_owned()]);
        let Value::Dict(entries) = &active else { panic!() };
        let keys: Vec<&Value> = entries.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [&Value::Int(0), &Value::Int(1)]);
        assert_eq!(words(&entries[0].1), "192.0.2.2 43084 127.0.0.1 44506");
        assert_eq!(words(&entries[1].1), "127.0.0.1 22 ::1 80");
        let all = sockets("tcp", TCP);
        assert_eq!(words(&all[0]), "tcp 0 0 127.0.0.1:4432 0.0.0.0:* LISTEN 102 19053 -");
        assert_eq!(words(&all[1]), "tcp 10 3 192.0.2.2:43084 127.0.0.1:44506 ESTABLISHED 0 20333 -");
        assert_eq!(words(&sockets("udp", TCP)[0]), "udp 0 0 127.0.0.1:4432 0.0.0.0:* 102 19053 -");
    }
}
