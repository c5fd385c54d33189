//! What the kernel tells of this host's network, over rtnetlink(7).

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with};

/// Upper bound on the messages that are read of one answer, and on the time that the kernel may take for each.
const MAX_MESSAGES: usize = 65_536;
const PATIENCE: Duration = Duration::from_secs(5);
/// The kernel sends at most 32 KiB at once.
const BUFFER: usize = 64 << 10;

// linux/netlink.h, linux/rtnetlink.h, linux/if_addr.h
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// The address of an interface.
pub const RTM_NEWADDR: u16 = 20;
/// Asks for the addresses of all interfaces.
pub const RTM_GETADDR: u16 = 22;
/// `NLM_F_REQUEST | NLM_F_DUMP`
const DUMP: u16 = 0x301;
/// The address of the other end; this host's own if there is no other.
pub const IFA_ADDRESS: u16 = 1;
/// This host's own address.
pub const IFA_LOCAL: u16 = 2;
/// The family of IPv4.
pub const AF_INET: u8 = 2;
/// The family of IPv6.
pub const AF_INET6: u8 = 10;
/// The index of `lo` in each network namespace.
const LOOPBACK: u32 = 1;

/// Asks the kernel for all that it has of a kind, and hands each message on. None is returned of what is not understood.
///
/// # Errors
/// The kernel does not answer, or says no.
pub fn ask(kind: u16, mut each: impl FnMut(u16, &[u8]) -> Option<()>) -> Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    // Connected to the kernel: no process sends to this socket.
    connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    // A header, and `struct rtgenmsg` for any family.
    let mut request = Vec::with_capacity(20);
    request.extend(20_u32.to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.extend([0; 12]);
    send(&socket, &request, SendFlags::empty())?;
    let mut buffer = vec![0; BUFFER];
    for _ in 0..MAX_MESSAGES {
        let (_, length) = recv(&socket, &mut buffer[..], RecvFlags::TRUNC)?;
        let Some(mut rest) = buffer.get(..length) else {
            return Err(Error::new(ErrorKind::InvalidData, "a message of the kernel is too long"));
        };
        while let Some((kind, body, next)) = message(rest) {
            match kind {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR => {
                    let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                    return Err(Error::from_raw_os_error(code.saturating_neg()));
                }
                kind => _ = each(kind, body),
            }
            rest = next;
        }
    }
    Err(Error::new(ErrorKind::InvalidData, "the kernel's answer has no end"))
}

/// The first message: its type and content, and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    Some((kind, bytes.get(16..length)?, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// Attributes by their types.
#[must_use]
pub fn attributes(mut bytes: &[u8]) -> BTreeMap<u16, &[u8]> {
    let mut all = BTreeMap::new();
    while let Some((length, kind)) = bytes
        .first_chunk::<4>()
        .map(|[a, b, c, d]| (usize::from(u16::from_ne_bytes([*a, *b])), u16::from_ne_bytes([*c, *d])))
    {
        let Some(value) = bytes.get(4..length) else { break };
        all.insert(kind, value);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    all
}

/// The addresses at which this host reaches itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnAddresses {
    addresses: Vec<IpAddr>,
    /// Networks of `lo`. All addresses of one are this host's.
    networks: Vec<(Ipv4Addr, u8)>,
}

impl FromIterator<IpAddr> for OwnAddresses {
    fn from_iter<T: IntoIterator<Item = IpAddr>>(addresses: T) -> Self {
        Self { addresses: addresses.into_iter().collect(), networks: Vec::new() }
    }
}

impl OwnAddresses {
    /// Reads those of all interfaces.
    ///
    /// # Errors
    /// The kernel does not tell them.
    pub fn read() -> Result<Self> {
        let mut own = Self::default();
        ask(RTM_GETADDR, |kind, body| own.add(kind, body))?;
        Ok(own)
    }

    /// `struct ifaddrmsg` and its attributes.
    fn add(&mut self, kind: u16, body: &[u8]) -> Option<()> {
        let &[family, length, ..] = body.first_chunk::<4>().filter(|_| kind == RTM_NEWADDR)?;
        let interface = u32::from_ne_bytes(*body.get(4..)?.first_chunk()?);
        let mut all = attributes(body.get(8..)?);
        let own = all.remove(&IFA_LOCAL).or_else(|| all.remove(&IFA_ADDRESS))?;
        match family {
            AF_INET => {
                let v4 = Ipv4Addr::from(*own.first_chunk::<4>()?);
                self.addresses.push(v4.into());
                if interface == LOOPBACK && length < 32 {
                    self.networks.push((v4, length));
                }
            }
            AF_INET6 => self.addresses.push(Ipv6Addr::from(*own.first_chunk::<16>()?).into()),
            _ => {}
        }
        Some(())
    }

    /// Checks whether a connection to this address stays on this host.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let within = |(network, length): &(Ipv4Addr, u8)| match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(*length)).unwrap_or_default();
                u32::from(v4) & mask == u32::from(*network) & mask
            }
            IpAddr::V6(_) => false,
        };
        self.addresses.contains(&address) || self.networks.iter().any(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_not_believed() {
        let head = |length: u32| [&length.to_ne_bytes()[..], &RTM_NEWADDR.to_ne_bytes(), &[0; 10]].concat();
        assert_eq!(message(&head(16)), Some((RTM_NEWADDR, &[][..], &[][..])));
        for wrong in [0, 15, 17, u32::MAX] {
            assert_eq!(message(&head(wrong)), None, "{wrong}");
        }
        assert!(attributes(&[0, 0, 1, 0, 1]).is_empty() && attributes(&[255, 255, 1, 0, 1]).is_empty());
    }

    #[test]
    fn addresses_are_this_hosts_and_not_the_other_ends() {
        let mut own = OwnAddresses::default();
        let body = |family: u8, length: u8, interface: u32, all: &[(u16, &[u8])]| {
            let mut made = vec![family, length, 0, 0];
            made.extend(interface.to_ne_bytes());
            for (kind, value) in all {
                made.extend((value.len() as u16 + 4).to_ne_bytes());
                made.extend(kind.to_ne_bytes());
                made.extend(*value);
            }
            made
        };
        let (mine, peer, six) = ([192, 0, 2, 2], [10, 0, 0, 1], Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
        for body in [
            body(AF_INET, 24, 2, &[(IFA_ADDRESS, &peer), (IFA_LOCAL, &mine)]),
            body(AF_INET6, 64, 2, &[(IFA_ADDRESS, &six.octets())]),
            body(AF_INET, 16, LOOPBACK, &[(IFA_ADDRESS, &[10, 9, 0, 1])]),
            body(AF_INET, 0, LOOPBACK + 1, &[(IFA_ADDRESS, &[10, 8, 0, 1])]),
            // Of no family, and cut short.
            body(7, 24, 2, &[(IFA_ADDRESS, &peer)]),
            body(AF_INET, 24, 2, &[(IFA_ADDRESS, &[1])]),
            vec![AF_INET; 5],
        ] {
            own.add(RTM_NEWADDR, &body);
        }
        let is_own = |address: &str| own.contains(address.parse().unwrap());
        assert!(["192.0.2.2", "2001:db8::1", "10.9.0.1", "10.9.255.7", "10.8.0.1"].into_iter().all(is_own), "{own:?}");
        assert!(!["192.0.2.3", "10.0.0.1", "2001:db8::2", "10.10.0.1", "10.8.0.2", "::"].into_iter().any(is_own));
    }

    #[test]
    fn this_host_has_itself() {
        let own = OwnAddresses::read().unwrap();
        assert!(own.contains("127.0.0.1".parse().unwrap()) && own.contains("127.7.7.7".parse().unwrap()), "{own:?}");
        assert!(!own.contains("203.0.113.99".parse().unwrap()));
    }
}
