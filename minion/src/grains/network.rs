//! Grains of the network: the host's names, its interfaces and their addresses.

use super::{Grains, read_text};
use brine_protocol::value::Value;
use std::net::IpAddr;

const MAX_BYTES: u64 = 1024 * 1024;
/// A host with more interfaces than this (container hosts have hundreds) reports the first ones by name.
const MAX_INTERFACES: usize = 1024;

pub(super) fn collect(grains: &mut Grains) {
    let names = host_names();
    grains.text("localhost", &names.host_name);
    grains.text("fqdn", &names.fqdn);
    let (host, domain) = names.fqdn.split_once('.').unwrap_or((&names.fqdn, ""));
    grains.text("host", host);
    grains.text("domain", domain);
    interfaces(grains);
}

/// What this host calls itself.
pub(crate) struct HostNames {
    /// As the kernel has it.
    pub(crate) host_name: String,
    /// With its domain, where the hosts file knows it; else the same.
    pub(crate) fqdn: String,
}

pub(crate) fn host_names() -> HostNames {
    let system = rustix::system::uname();
    let host_name = system.nodename().to_str().ok().filter(|name| !name.is_empty()).unwrap_or("localhost").to_owned();
    let hosts = read_text("/etc/hosts", MAX_BYTES).unwrap_or_default();
    let fqdn = fqdn_of(&host_name, &hosts);
    HostNames { host_name, fqdn }
}

/// The canonical name of `host`: the first name of the hosts file's line that has it, if that is a full name.
fn fqdn_of(host: &str, hosts: &str) -> String {
    if host.contains('.') {
        return host.to_owned();
    }
    for line in hosts.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace().skip(1);
        let Some(first) = words.next() else { continue };
        let named = first == host || first.split('.').next() == Some(host) || words.any(|w| w == host);
        if named && first.contains('.') && !first.starts_with("localhost") {
            return first.to_owned();
        }
    }
    host.to_owned()
}

fn interfaces(grains: &mut Grains) {
    let Ok(networks) = sysinfo::Networks::new_with_refreshed_list() else { return };
    let mut found: Vec<(String, &sysinfo::NetworkData)> =
        networks.iter().map(|(name, data)| (name.to_string_lossy().into_owned(), data)).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found.truncate(MAX_INTERFACES);

    let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
    let (mut hw, mut by4, mut by6, mut by) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, data) in found {
        let mut four: Vec<IpAddr> = Vec::new();
        let mut six: Vec<IpAddr> = Vec::new();
        for network in data.ip_networks() {
            if network.addr.is_ipv4() { four.push(network.addr) } else { six.push(network.addr) }
        }
        four.sort();
        six.sort();
        let list = |addresses: &[IpAddr]| addresses.iter().map(|a| Value::from(a.to_string())).collect::<Vec<_>>();
        let key = Value::from(name.as_str());
        hw.push((key.clone(), Value::from(data.mac_address().to_string())));
        by.push((key.clone(), Value::Array([list(&four), list(&six)].concat())));
        by4.push((key.clone(), Value::Array(list(&four))));
        by6.push((key, Value::Array(list(&six))));
        ipv4.extend(four);
        ipv6.extend(six);
    }
    let all = |mut addresses: Vec<IpAddr>| {
        addresses.sort();
        addresses.dedup();
        Value::Array(addresses.iter().map(|a| Value::from(a.to_string())).collect())
    };
    grains.set("hwaddr_interfaces", Value::Map(hw));
    grains.set("ip_interfaces", Value::Map(by));
    grains.set("ip4_interfaces", Value::Map(by4));
    grains.set("ip6_interfaces", Value::Map(by6));
    grains.set("ipv4", all(ipv4));
    grains.set("ipv6", all(ipv6));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_name_comes_from_the_hosts_file() {
        let hosts =
            "127.0.0.1 localhost\n127.0.1.1 web1.example.org web1 # us\n::1 localhost6.localdomain6 localhost6\n";
        for (host, expected) in
            [("web1", "web1.example.org"), ("web2", "web2"), ("a.b", "a.b"), ("localhost", "localhost")]
        {
            assert_eq!(fqdn_of(host, hosts), expected);
        }
        assert_eq!(fqdn_of("web1", "#\n127.0.0.1\n\u{0}"), "web1");
    }

    #[test]
    fn loopback_is_found() {
        let mut grains = Grains::default();
        collect(&mut grains);
        let Some((_, Value::Array(ipv4))) = grains.0.iter().find(|(k, _)| k.as_str() == Some("ipv4")) else {
            panic!("no ipv4")
        };
        assert!(ipv4.contains(&Value::from("127.0.0.1")));
    }
}
