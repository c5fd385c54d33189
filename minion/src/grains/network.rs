//! Grains of the network: the host's names, its interfaces and their addresses.

use super::map::Grains;
use crate::host_names::host_names;
use crate::interfaces;
use brine_protocol::value::Value;
use std::net::IpAddr;

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
    let Ok(interfaces) = interfaces::all() else { return };
    let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
    let (mut hw, mut by4, mut by6, mut by) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for interface in interfaces {
        // As in Salt: in the kernel's order, for templates take the first one; secondary ones come last.
        let of_kind = |secondary: bool| {
            let inet = interface.inet.iter().filter(move |inet| inet.secondary == secondary);
            inet.map(|inet| IpAddr::from(inet.address)).collect::<Vec<_>>()
        };
        let (first, secondary) = (of_kind(false), of_kind(true));
        let six: Vec<IpAddr> = interface.inet6.iter().map(|inet6| inet6.address.into()).collect();
        let list = |parts: &[&[IpAddr]]| {
            let addresses = parts.iter().copied().flatten();
            Value::Array(addresses.map(|address| Value::from(address.to_string())).collect())
        };
        let key = Value::from(interface.name.as_str());
        if let Some(address) = &interface.hwaddr {
            hw.push((key.clone(), Value::from(address.as_str())));
        }
        by.push((key.clone(), list(&[&first, &six, &secondary])));
        by4.push((key.clone(), list(&[&first, &secondary])));
        by6.push((key, list(&[&six])));
        ipv4.extend([first, secondary].concat());
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

    #[test]
    fn interfaces_are_in_the_kernels_order() {
        let mut grains = Grains::default();
        collect(&mut grains);
        let grains = grains.into_value();
        let Some(Value::Map(found)) = grains.get("ip4_interfaces") else { panic!("{grains:?}") };
        let found: Vec<&str> = found.iter().filter_map(|(name, _)| name.as_str()).collect();
        let told = interfaces::all().unwrap();
        assert_eq!(found, told.iter().map(|interface| &interface.name[..]).collect::<Vec<_>>());
    }
}
