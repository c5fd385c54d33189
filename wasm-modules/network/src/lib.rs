//! The module `network`: interfaces, addresses, routes and connections of this host. The functions and their documentation
//! are in `wit/world.wit`; what only computes is `brine_addresses`, as in templates.
//!
//! - [`interfaces`] the interfaces and which are meant · [`tables`] routes, neighbours, connections · [`programs`] programs
//! - [`connect`] a test of a port · [`hostname`] another name for this host

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "network",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/kernel@1.0.0": brine_guest::host::kernel,
        "brine:host/process@1.0.0": brine_guest::host::process,
        "wasi:io/error@0.2.6": brine_tcp::wasi::io::error,
        "wasi:io/poll@0.2.6": brine_tcp::wasi::io::poll,
        "wasi:io/streams@0.2.6": brine_tcp::wasi::io::streams,
        "wasi:sockets/network@0.2.6": brine_tcp::wasi::sockets::network,
        "wasi:sockets/instance-network@0.2.6": brine_tcp::wasi::sockets::instance_network,
        "wasi:sockets/ip-name-lookup@0.2.6": brine_tcp::wasi::sockets::ip_name_lookup,
        "wasi:sockets/tcp@0.2.6": brine_tcp::wasi::sockets::tcp,
        "wasi:sockets/tcp-create-socket@0.2.6": brine_tcp::wasi::sockets::tcp_create_socket,
    },
    generate_all,
});

mod connect;
mod hostname;
mod interfaces;
mod programs;
mod tables;

use brine_addresses::functions;
use brine_guest::Value;
use brine_guest::beacons::table;
use brine_guest::host::{grains, kernel};
use brine_guest::keywords::Keywords;

use interfaces::{Interface, Version};

struct Module;

fn text(data: &Data) -> Result<String, String> {
    Ok(data.value()?.to_text())
}

fn value(data: Option<Data>) -> Result<Value, String> {
    data.map_or(Ok(Value::None), |data| data.value())
}

fn flag(data: Option<Data>) -> Result<bool, String> {
    Ok(value(data)?.truthy())
}

/// An address as text. Python reads one from a number too.
fn address(value: &Value) -> String {
    match value {
        Value::Int(number) => u32::try_from(*number)
            .map_or_else(|_| value.to_text(), |number| std::net::Ipv4Addr::from(number).to_string()),
        other => other.to_text(),
    }
}

fn ip(data: &Data) -> Result<String, String> {
    Ok(address(&data.value()?))
}

fn all() -> Result<Vec<Interface>, String> {
    interfaces::read(&kernel::read("interfaces")?)
}

/// What is asked of one interface; Salt's words if there is no such one.
fn of(iface: &Data, ask: impl Fn(&Interface) -> Value) -> Result<Value, String> {
    let all = all()?;
    Ok(interfaces::find(&all, &text(iface)?).map_or_else(Value::from, ask))
}

fn addresses(
    version: Version,
    wanted: Option<Data>,
    include_loopback: Option<Data>,
    cidr: Option<Data>,
    kind: Option<&str>,
) -> Result<Vec<String>, String> {
    let (wanted, cidr) = (value(wanted)?, value(cidr)?);
    let all = all()?;
    let mut found = interfaces::addresses(&interfaces::chosen(&all, &wanted), version, flag(include_loopback)?);
    if cidr.truthy() {
        return interfaces::within(found, Some(&cidr.to_text()));
    }
    match kind {
        Some("public") => found.retain(|ip| !brine_addresses::is_private(*ip)),
        Some("private") => found.retain(|ip| brine_addresses::is_private(*ip)),
        _ => {}
    }
    interfaces::within(found, None)
}

fn networks(
    version: Version,
    wanted: Option<Data>,
    include_loopback: Option<Data>,
    verbose: Option<Data>,
) -> Result<Data, String> {
    let wanted = value(wanted)?;
    let all = all()?;
    let found = interfaces::networks(&interfaces::chosen(&all, &wanted), version, flag(include_loopback)?);
    Ok(interfaces::networks_value(&found, flag(verbose)?).into())
}

fn subnets(version: Version, wanted: &Value) -> Result<Vec<String>, String> {
    let all = all()?;
    let found = interfaces::networks(&interfaces::named(&all, wanted), version, false);
    Ok(found.iter().map(brine_addresses::Address::show).collect())
}

fn grain(name: &str) -> Result<Data, String> {
    grains::get(name, None).ok_or_else(|| format!("there is no grain {name}"))
}

fn routes(family: Option<&str>) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    if let Some(other) = family.filter(|family| !matches!(*family, "inet" | "inet6")) {
        return Err(format!("Invalid address family {other}"));
    }
    if family != Some("inet6") {
        found.extend(tables::routes4(&table("net/route")?));
    }
    if family != Some("inet") {
        // A host without IPv6 does not have this table.
        match table("net/ipv6_route") {
            Ok(table) => found.extend(tables::routes6(&table)),
            Err(why) if family.is_some() => return Err(why),
            Err(_) => {}
        }
    }
    Ok(found)
}

impl Guest for Module {
    fn interfaces() -> Result<Data, String> {
        Ok(interfaces::value(&all()?).into())
    }

    fn interface(iface: Data) -> Result<Data, String> {
        Ok(of(&iface, |interface| interface.inet(false).unwrap_or_else(|| "".into()))?.into())
    }

    fn interface_ip(iface: Data) -> Result<String, String> {
        let first = |interface: &Interface| {
            let first = interface.inet.iter().find(|inet| !inet.is_secondary);
            first.map_or_else(String::new, |inet| brine_addresses::show(inet.address.ip)).into()
        };
        Ok(of(&iface, first)?.to_text())
    }

    fn hw_addr(iface: Data) -> Result<String, String> {
        Ok(of(&iface, |interface| interface.hwaddr.clone().unwrap_or_default().into())?.to_text())
    }

    fn hwaddr(iface: Data) -> Result<String, String> {
        Self::hw_addr(iface)
    }

    fn ip_addrs(
        interface: Option<Data>,
        include_loopback: Option<Data>,
        cidr: Option<Data>,
        type_: Option<String>,
    ) -> Result<Vec<String>, String> {
        addresses(Version::V4, interface, include_loopback, cidr, type_.as_deref())
    }

    fn ipaddrs(
        interface: Option<Data>,
        include_loopback: Option<Data>,
        cidr: Option<Data>,
        type_: Option<String>,
    ) -> Result<Vec<String>, String> {
        addresses(Version::V4, interface, include_loopback, cidr, type_.as_deref())
    }

    fn ip_addrs6(
        interface: Option<Data>,
        include_loopback: Option<Data>,
        cidr: Option<Data>,
    ) -> Result<Vec<String>, String> {
        addresses(Version::V6, interface, include_loopback, cidr, None)
    }

    fn ipaddrs6(
        interface: Option<Data>,
        include_loopback: Option<Data>,
        cidr: Option<Data>,
    ) -> Result<Vec<String>, String> {
        addresses(Version::V6, interface, include_loopback, cidr, None)
    }

    fn ip_networks(
        interface: Option<Data>,
        include_loopback: Option<Data>,
        verbose: Option<Data>,
    ) -> Result<Data, String> {
        networks(Version::V4, interface, include_loopback, verbose)
    }

    fn ip_networks6(
        interface: Option<Data>,
        include_loopback: Option<Data>,
        verbose: Option<Data>,
    ) -> Result<Data, String> {
        networks(Version::V6, interface, include_loopback, verbose)
    }

    fn subnets(interfaces: Option<Data>) -> Result<Vec<String>, String> {
        subnets(Version::V4, &value(interfaces)?)
    }

    fn subnets6() -> Result<Vec<String>, String> {
        subnets(Version::V6, &Value::None)
    }

    fn in_subnet(cidr: Data) -> Result<bool, String> {
        let (cidr, all) = (text(&cidr)?, all()?);
        let all: Vec<&Interface> = all.iter().collect();
        let found = [Version::V4, Version::V6].map(|version| interfaces::addresses(&all, version, false)).concat();
        Ok(!interfaces::within(found, Some(&cidr))?.is_empty())
    }

    fn ifacestartswith(cidr: Data) -> Result<Vec<String>, String> {
        let beginning = text(&cidr)?;
        let all = all()?;
        let inet = all.iter().flat_map(|interface| &interface.inet).filter(|inet| !inet.is_secondary);
        let found = inet.filter(|inet| brine_addresses::show(inet.address.ip).starts_with(&beginning));
        Ok(found.map(|inet| inet.label.clone()).collect())
    }

    fn ip_in_subnet(ip_addr: Data, cidr: Data) -> Result<bool, String> {
        let addresses: Vec<String> = match ip_addr.value()? {
            Value::List(items) => items.iter().map(address).collect(),
            one => vec![address(&one)],
        };
        functions::in_subnet(&text(&cidr)?, addresses.iter().map(String::as_str))
    }

    fn convert_cidr(cidr: Data) -> Result<Data, String> {
        let made = functions::convert_cidr(&ip(&cidr)?)?;
        let entries = [("network", made.network), ("netmask", made.netmask), ("broadcast", made.broadcast)];
        Ok(Value::dict(entries.map(|(name, text)| (name, text.into()))).into())
    }

    fn calc_net(ip_addr: Data, netmask: Option<Data>) -> Result<String, String> {
        let netmask = match value(netmask)? {
            Value::None => None,
            mask => Some(mask.to_text()),
        };
        functions::calc_net(&ip(&ip_addr)?, netmask.as_deref())
    }

    fn is_private(ip_addr: Data) -> Result<bool, String> {
        functions::is_private(&ip(&ip_addr)?)
    }

    fn is_loopback(ip_addr: Data) -> Result<bool, String> {
        functions::is_loopback(&ip(&ip_addr)?)
    }

    fn reverse_ip(ip_addr: Data) -> Result<String, String> {
        functions::reverse_ip(&ip(&ip_addr)?)
    }

    fn iphexval(ip: Data) -> Result<String, String> {
        functions::iphexval(&text(&ip)?)
    }

    fn get_hostname() -> Result<Data, String> {
        grain("localhost")
    }

    fn get_fqdn() -> Result<Data, String> {
        grain("fqdn")
    }

    fn fqdns() -> Result<Data, String> {
        let names = match grains::get("fqdns", None) {
            Some(names) => names,
            // Left out with `enable_fqdns_grains: False`.
            None => Value::List(Vec::new()).into(),
        };
        Ok(Data::dict([("fqdns", names)]))
    }

    fn routes(family: Option<String>) -> Result<Data, String> {
        Ok(Value::List(routes(family.as_deref())?).into())
    }

    fn default_route(family: Option<String>) -> Result<Data, String> {
        let mut found = routes(family.as_deref())?;
        found.retain(tables::is_default);
        Ok(Value::List(found).into())
    }

    fn get_route(ip: Data) -> Result<Data, String> {
        Ok(programs::get_route(&ip.value()?)?.into())
    }

    fn arp() -> Result<Data, String> {
        Ok(tables::neighbours(&table("net/arp")?, true).into())
    }

    fn ip_neighs() -> Result<Data, String> {
        Ok(tables::neighbours(&table("net/arp")?, false).into())
    }

    fn ipneighs() -> Result<Data, String> {
        Self::ip_neighs()
    }

    fn ip_neighs6() -> Result<Data, String> {
        Ok(programs::neighbours6()?.into())
    }

    fn ipneighs6() -> Result<Data, String> {
        Self::ip_neighs6()
    }

    fn active_tcp() -> Result<Data, String> {
        // A host without IPv6 does not have the second table.
        let both = [table("net/tcp")?, table("net/tcp6").unwrap_or_default()];
        Ok(tables::active_tcp(&both).into())
    }

    fn netstat() -> Result<Data, String> {
        let mut found = tables::sockets("tcp", &table("net/tcp")?);
        found.extend(tables::sockets("tcp6", &table("net/tcp6").unwrap_or_default()));
        found.extend(tables::sockets("udp", &table("net/udp")?));
        found.extend(tables::sockets("udp6", &table("net/udp6").unwrap_or_default()));
        Ok(Value::List(found).into())
    }

    fn ping(host: Data, timeout: Option<Data>, return_boolean: Option<Data>) -> Result<Data, String> {
        Ok(programs::ping(&host.value()?, &value(timeout)?, flag(return_boolean)?)?.into())
    }

    fn wol(mac: Data, bcast: Option<Data>, destport: Option<Data>) -> Result<bool, String> {
        let value = |given: Option<Data>| given.map(|given| given.value()).transpose();
        programs::wake(&mac.value()?, value(bcast)?.as_ref(), value(destport)?.as_ref())
    }

    fn traceroute(host: Data) -> Result<Data, String> {
        Ok(programs::traceroute(&host.value()?)?.into())
    }

    fn dig(host: Data) -> Result<String, String> {
        programs::dig(&host.value()?)
    }

    fn connect(host: Data, port: Option<Data>, kwargs: Data) -> Result<Data, String> {
        Ok(connect::connect(&host.value()?, &value(port)?, &Keywords::new(&kwargs, [])?)?.into())
    }

    fn mod_hostname(hostname: Data) -> Result<bool, String> {
        hostname::set(&hostname.value()?)
    }

    fn get_bufsize(iface: Data) -> Result<Data, String> {
        Ok(programs::get_bufsize(&iface.value()?)?.into())
    }

    fn mod_bufsize(iface: Data, args: Vec<Data>, kwargs: Data) -> Result<Data, String> {
        let args = args.iter().map(Data::value).collect::<Result<Vec<Value>, String>>()?;
        Ok(programs::mod_bufsize(&iface.value()?, &args, &Keywords::new(&kwargs, [])?)?.into())
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
