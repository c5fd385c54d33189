//! Grains of the network: the host's names, its interfaces and their addresses.

use super::map::Grains;
use crate::host_names::host_names;
use brine_protocol::value::Value;
use std::net::IpAddr;

/// A host with more interfaces than this (container hosts have hundreds) reports the first ones by name.
const MAX_INTERFACES: usize = 1024;

pub(super) fn collect(grains: &mut Grains) {
    let names = host_names();
    grains.text("localhost", &names.host_name);
    grains.text("fqdn", &names.fqdn);
    let (host, domain) = names.fqdn.split_once('.').unwrap_or((&names.fqdn, ""));
    grains.text("host", host);
    grains.text("domain", domain);
    collect_interfaces(grains);
}

fn collect_interfaces(grains: &mut Grains) {
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
    use brine_protocol::value::ValueExt;

    #[test]
    fn loopback_is_found() {
        let mut grains = Grains::default();
        collect(&mut grains);
        assert!(grains.into_value().get_list("ipv4").unwrap().contains(&Value::from("127.0.0.1")));
    }
}
