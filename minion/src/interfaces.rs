//! This host's network interfaces and their addresses, as the kernel tells them over rtnetlink(7): for the grains, and for modules as the
//! table `interfaces`.
//!
//! The kernel's files in `/proc` do not have them, and getifaddrs(3) has neither parents nor scopes.

use std::collections::BTreeMap;
use std::io::Result;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use brine_egress::netlink::{AF_INET, AF_INET6, IFA_ADDRESS, IFA_LOCAL, RTM_GETADDR, RTM_NEWADDR, ask, attributes};
use serde::Serialize;

/// Upper bound on the interfaces in the table, as in the grains. Container hosts have hundreds.
const MAX_INTERFACES: usize = 1024;
/// Upper bound on the addresses of an interface. Load balancers have some hundreds.
const MAX_ADDRESSES: usize = 1024;

// linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINK: u16 = 5;
const IFLA_LINK_NETNSID: u16 = 37;
const IFA_LABEL: u16 = 3;
const IFA_BROADCAST: u16 = 4;
const IFF_UP: u32 = 1;
/// Of IPv4: another address of the same network came first. In IPv6 this bit says something else.
const IFA_F_SECONDARY: u8 = 1;

/// An interface, as the table has it in JSON.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Interface {
    pub(crate) name: String,
    up: bool,
    /// The interface that this one is on; `if5` for the fifth of another network namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hwaddr: Option<String>,
    pub(crate) inet: Vec<Inet>,
    pub(crate) inet6: Vec<Inet6>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Inet {
    pub(crate) address: Ipv4Addr,
    prefixlen: u8,
    broadcast: Option<Ipv4Addr>,
    label: String,
    scope: String,
    pub(crate) secondary: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Inet6 {
    pub(crate) address: Ipv6Addr,
    prefixlen: u8,
    scope: String,
}

/// The table: a list in JSON.
pub(crate) fn table() -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(&all()?)?)
}

/// The interfaces, and the addresses of each, in the kernel's order.
pub(crate) fn all() -> Result<Vec<Interface>> {
    let mut found = Found::default();
    ask(RTM_GETLINK, |kind, body| found.link(kind, body))?;
    ask(RTM_GETADDR, |kind, body| found.address(kind, body))?;
    Ok(found.interfaces())
}

/// A text that a NUL byte ends.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// What the kernel told so far.
#[derive(Default)]
struct Found {
    /// Interfaces by their indices, in the kernel's order.
    links: BTreeMap<u32, Interface>,
    /// What each interface is on: an index, and whether that is one of another network namespace.
    parents: BTreeMap<u32, (u32, bool)>,
}

impl Found {
    /// `struct ifinfomsg` and its attributes.
    fn link(&mut self, kind: u16, body: &[u8]) -> Option<()> {
        if kind != RTM_NEWLINK || self.links.len() >= MAX_INTERFACES {
            return None;
        }
        let device = u16::from_ne_bytes(*body.get(2..)?.first_chunk()?);
        let (index, flags) = (number(body.get(4..)?)?, number(body.get(8..)?)?);
        let mut all = attributes(body.get(16..)?);
        if let Some(parent) = all.remove(&IFLA_LINK).and_then(number) {
            self.parents.insert(index, (parent, all.contains_key(&IFLA_LINK_NETNSID)));
        }
        let interface = Interface {
            name: text(all.remove(&IFLA_IFNAME)?),
            up: flags & IFF_UP != 0,
            hwaddr: all.remove(&IFLA_ADDRESS).and_then(|address| hardware_address(device, address)),
            ..Interface::default()
        };
        self.links.insert(index, interface);
        Some(())
    }

    /// `struct ifaddrmsg` and its attributes.
    fn address(&mut self, kind: u16, body: &[u8]) -> Option<()> {
        let &[family, length, flags, scope] = body.first_chunk()?;
        let interface = self.links.get_mut(&number(body.get(4..)?)?).filter(|_| kind == RTM_NEWADDR)?;
        let mut all = attributes(body.get(8..)?);
        let other = all.remove(&IFA_ADDRESS);
        let own = all.remove(&IFA_LOCAL).or(other)?;
        // The prefix is that of the other end, where there is one.
        let is_alone = other.is_none_or(|other| other == own);
        let scope = scope_name(scope);
        match family {
            AF_INET if interface.inet.len() < MAX_ADDRESSES => {
                let v4 = |bytes: &[u8]| bytes.first_chunk::<4>().map(|bytes| Ipv4Addr::from(*bytes));
                interface.inet.push(Inet {
                    address: v4(own)?,
                    prefixlen: if is_alone { length } else { 32 },
                    broadcast: all.remove(&IFA_BROADCAST).and_then(v4),
                    label: all.remove(&IFA_LABEL).map_or_else(|| interface.name.clone(), text),
                    scope,
                    secondary: flags & IFA_F_SECONDARY != 0,
                });
            }
            AF_INET6 if interface.inet6.len() < MAX_ADDRESSES => interface.inet6.push(Inet6 {
                address: Ipv6Addr::from(*own.first_chunk::<16>()?),
                prefixlen: if is_alone { length } else { 128 },
                scope,
            }),
            _ => {}
        }
        Some(())
    }

    fn interfaces(mut self) -> Vec<Interface> {
        for (index, (parent, is_elsewhere)) in &self.parents {
            let name = match self.links.get(parent).filter(|_| !is_elsewhere) {
                Some(parent) => parent.name.clone(),
                // ip(8) says so of what is on no interface.
                None if *parent == 0 => "NONE".to_owned(),
                None => format!("if{parent}"),
            };
            if let Some(interface) = self.links.get_mut(index) {
                interface.parent = Some(name);
            }
        }
        self.links.into_values().collect()
    }
}

/// The address of a device as ip(8) shows it: those of tunnels are IP addresses (linux/if_arp.h).
fn hardware_address(device: u16, address: &[u8]) -> Option<String> {
    match (device, address.len()) {
        (_, 0) => None,
        (768 | 776 | 778, 4) => Some(IpAddr::from(*address.first_chunk::<4>()?).to_string()),
        (769 | 823, 16) => Some(IpAddr::from(*address.first_chunk::<16>()?).to_string()),
        _ => Some(address.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")),
    }
}

/// The names of scopes that every host has.
fn scope_name(scope: u8) -> String {
    match scope {
        0 => "global".to_owned(),
        200 => "site".to_owned(),
        253 => "link".to_owned(),
        254 => "host".to_owned(),
        255 => "nowhere".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut made = Vec::new();
        made.extend((value.len() as u16 + 4).to_ne_bytes());
        made.extend(kind.to_ne_bytes());
        made.extend(value);
        made.resize(made.len().next_multiple_of(4), 0);
        made
    }

    fn link(device: u16, index: u32, flags: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut made = vec![0, 0];
        made.extend(device.to_ne_bytes());
        made.extend(index.to_ne_bytes());
        made.extend(flags.to_ne_bytes());
        made.extend([0; 4]);
        made.extend(attributes.concat());
        made
    }

    fn address(head: [u8; 4], index: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        [&head[..], &index.to_ne_bytes(), &attributes.concat()].concat()
    }

    #[test]
    fn interfaces_have_parents_and_addresses() {
        let mut found = Found::default();
        let name = |name: &str| attribute(IFLA_IFNAME, format!("{name}\0").as_bytes());
        let on = |index: u32| attribute(IFLA_LINK, &index.to_ne_bytes());
        let mac = attribute(IFLA_ADDRESS, &[2, 0xfc, 0, 0, 0, 1]);
        for body in [
            link(1, 2, 1, &[name("eth0"), mac]),
            link(1, 3, 0, &[name("vlan1"), on(2)]),
            link(1, 4, 1, &[name("veth0"), on(2), attribute(IFLA_LINK_NETNSID, &[0; 4])]),
            link(768, 5, 0, &[name("tunl0"), on(0), attribute(IFLA_ADDRESS, &[192, 0, 2, 9])]),
            // Without a name, and cut short.
            link(1, 6, 0, &[]),
            vec![0; 9],
        ] {
            found.link(RTM_NEWLINK, &body);
        }
        let (one, two, peer) = ([192, 0, 2, 2], [192, 0, 2, 3], [10, 0, 0, 1]);
        let (label, six) = (attribute(IFA_LABEL, b"eth0:1\0"), Ipv6Addr::LOCALHOST.octets());
        for body in [
            address(
                [AF_INET, 24, 0, 0],
                2,
                &[
                    attribute(IFA_ADDRESS, &one),
                    attribute(IFA_LOCAL, &one),
                    attribute(IFA_BROADCAST, &[192, 0, 2, 255]),
                ],
            ),
            address(
                [AF_INET, 24, IFA_F_SECONDARY, 0],
                2,
                &[attribute(IFA_ADDRESS, &two), attribute(IFA_LOCAL, &two), label],
            ),
            address([AF_INET, 30, 0, 253], 3, &[attribute(IFA_ADDRESS, &peer), attribute(IFA_LOCAL, &one)]),
            address([AF_INET6, 64, IFA_F_SECONDARY, 254], 2, &[attribute(IFA_ADDRESS, &six)]),
            // Of no interface, of no family, and cut short.
            address([AF_INET, 24, 0, 0], 9, &[attribute(IFA_ADDRESS, &one)]),
            address([7, 24, 0, 0], 2, &[attribute(IFA_ADDRESS, &one)]),
            address([AF_INET, 24, 0, 0], 2, &[attribute(IFA_ADDRESS, &[1])]),
            vec![AF_INET; 5],
        ] {
            found.address(RTM_NEWADDR, &body);
        }
        let [eth0, vlan1, veth0, tunl0] = &found.interfaces()[..] else { panic!() };
        let inet = |interface: &Interface, at: usize| {
            let inet = &interface.inet[at];
            let broadcast = inet.broadcast.map_or_else(|| "-".to_owned(), |broadcast| broadcast.to_string());
            format!("{}/{} {broadcast} {} {} {}", inet.address, inet.prefixlen, inet.label, inet.scope, inet.secondary)
        };
        assert_eq!((eth0.up, eth0.hwaddr.as_deref(), eth0.parent.as_deref()), (true, Some("02:fc:00:00:00:01"), None));
        assert_eq!(inet(eth0, 0), "192.0.2.2/24 192.0.2.255 eth0 global false");
        assert_eq!(inet(eth0, 1), "192.0.2.3/24 - eth0:1 global true");
        assert_eq!((eth0.inet.len(), &eth0.inet6[0].scope[..], eth0.inet6[0].prefixlen), (2, "host", 64));
        assert_eq!((vlan1.up, vlan1.parent.as_deref()), (false, Some("eth0")));
        assert_eq!(inet(vlan1, 0), "192.0.2.2/32 - vlan1 link false");
        assert_eq!(veth0.parent.as_deref(), Some("if2"));
        assert_eq!((tunl0.parent.as_deref(), tunl0.hwaddr.as_deref()), (Some("NONE"), Some("192.0.2.9")));
    }

    #[test]
    fn there_are_bounds() {
        let mut found = Found::default();
        for index in 1..=2_000 {
            found.link(RTM_NEWLINK, &link(1, index, 1, &[attribute(IFLA_IFNAME, b"a\0")]));
        }
        for last in 0..=255 {
            for next in 0..8 {
                found.address(
                    RTM_NEWADDR,
                    &address([AF_INET, 8, 0, 0], 1, &[attribute(IFA_ADDRESS, &[10, 0, next, last])]),
                );
            }
        }
        let all = found.interfaces();
        assert_eq!((all.len(), all[0].inet.len()), (MAX_INTERFACES, MAX_ADDRESSES));
    }

    #[test]
    fn this_host_has_a_loopback_interface() {
        let all: serde_json::Value = serde_json::from_slice(&table().unwrap()).unwrap();
        let lo = all.as_array().unwrap().iter().find(|interface| interface["name"] == "lo").unwrap();
        assert!(lo["up"].is_boolean() && lo["hwaddr"] == "00:00:00:00:00:00", "{lo}");
    }
}
