//! This host's interfaces: the minion's table, in Salt's form, and which of them are meant.

use std::net::IpAddr;

use brine_addresses::{Address, functions, show};
use brine_guest::{Value, fnmatch};
use serde_json::Value as Json;

/// An interface of the table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    up: bool,
    parent: Option<String>,
    pub(crate) hwaddr: Option<String>,
    pub(crate) inet: Vec<Inet>,
    inet6: Vec<Inet6>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Inet {
    pub(crate) address: Address,
    broadcast: Option<String>,
    pub(crate) label: String,
    /// Salt lists these apart.
    pub(crate) is_secondary: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Inet6 {
    address: Address,
    scope: String,
}

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

/// Reads the table.
pub(crate) fn read(table: &[u8]) -> Result<Vec<Interface>, String> {
    let table: Json = serde_json::from_slice(table).map_err(|error| format!("the table of interfaces: {error}"))?;
    let interfaces = table.as_array().and_then(|all| all.iter().map(interface).collect());
    interfaces.ok_or_else(|| "the table of interfaces has another form".into())
}

fn text(json: &Json) -> Option<String> {
    json.as_str().map(str::to_owned)
}

fn address(json: &Json) -> Option<Address> {
    let length = u8::try_from(json["prefixlen"].as_u64()?).ok()?;
    Some(Address::within(json["address"].as_str()?.parse().ok()?, length))
}

fn interface(json: &Json) -> Option<Interface> {
    let inet = |json: &Json| {
        Some(Inet {
            address: address(json)?,
            broadcast: text(&json["broadcast"]),
            label: text(&json["label"])?,
            is_secondary: json["secondary"].as_bool()?,
        })
    };
    let inet6 = |json: &Json| Some(Inet6 { address: address(json)?, scope: text(&json["scope"])? });
    Some(Interface {
        name: text(&json["name"])?,
        up: json["up"].as_bool()?,
        parent: text(&json["parent"]),
        hwaddr: text(&json["hwaddr"]),
        inet: json["inet"].as_array()?.iter().map(inet).collect::<Option<_>>()?,
        inet6: json["inet6"].as_array()?.iter().map(inet6).collect::<Option<_>>()?,
    })
}

impl Inet {
    fn value(&self) -> Value {
        let mut entries = vec![
            ("address", show(self.address.ip).into()),
            ("netmask", show(self.address.mask()).into()),
            ("broadcast", self.broadcast.clone().map_or(Value::None, Value::from)),
            ("label", self.label.as_str().into()),
        ];
        if self.is_secondary {
            entries.insert(0, ("type", "inet".into()));
        }
        Value::dict(entries)
    }
}

impl Interface {
    /// Its IPv4 addresses as Salt has them; none for an interface without any.
    pub(crate) fn inet(&self, is_secondary: bool) -> Option<Value> {
        let of_kind = self.inet.iter().filter(|inet| inet.is_secondary == is_secondary);
        let found: Vec<Value> = of_kind.map(Inet::value).collect();
        (!found.is_empty()).then_some(Value::List(found))
    }

    fn value(&self) -> Value {
        let inet6 = |inet6: &Inet6| {
            Value::dict([
                ("address", show(inet6.address.ip).into()),
                ("prefixlen", inet6.address.prefix().to_string().into()),
                ("scope", inet6.scope.as_str().into()),
            ])
        };
        let inet6: Vec<Value> = self.inet6.iter().map(inet6).collect();
        let entries = [
            ("up", Some(Value::Bool(self.up))),
            ("parent", self.parent.clone().map(Value::from)),
            ("hwaddr", self.hwaddr.clone().map(Value::from)),
            ("inet", self.inet(false)),
            ("inet6", (!inet6.is_empty()).then_some(Value::List(inet6))),
            ("secondary", self.inet(true)),
        ];
        Value::dict(entries.into_iter().filter_map(|(name, value)| Some((name, value?))))
    }

    /// Its addresses, with the lengths of their prefixes.
    fn addresses(&self, version: Version) -> Vec<Address> {
        match version {
            Version::V4 => self.inet.iter().map(|inet| inet.address).collect(),
            Version::V6 => self.inet6.iter().map(|inet6| inet6.address).collect(),
        }
    }
}

/// All of them, as Salt has them.
pub(crate) fn value(all: &[Interface]) -> Value {
    Value::dict(all.iter().map(|interface| (interface.name.as_str(), interface.value())))
}

/// One of them, by its name.
///
/// # Errors
/// Salt's words if there is none; it returns them.
pub(crate) fn find<'a>(all: &'a [Interface], name: &str) -> Result<&'a Interface, String> {
    all.iter().find(|interface| interface.name == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|interface| interface.name.as_str()).collect();
        format!("Interface \"{name}\" not in available interfaces: \"{}\"", names.join("\", \""))
    })
}

/// Which interfaces are meant: globs, as a text with commas between or as a list. All if nothing is said.
pub(crate) fn chosen<'a>(all: &'a [Interface], wanted: &Value) -> Vec<&'a Interface> {
    let globs: Vec<String> = match wanted {
        Value::None => return all.iter().collect(),
        Value::List(globs) => globs.iter().map(Value::to_text).collect(),
        text => text.to_text().split(',').map(|glob| glob.trim().to_owned()).collect(),
    };
    all.iter().filter(|interface| globs.iter().any(|glob| fnmatch(glob, &interface.name))).collect()
}

/// Interfaces by their exact names: one or a list.
pub(crate) fn named<'a>(all: &'a [Interface], wanted: &Value) -> Vec<&'a Interface> {
    let names: Vec<String> = match wanted {
        Value::None => return all.iter().collect(),
        Value::List(names) => names.iter().map(Value::to_text).collect(),
        name => vec![name.to_text()],
    };
    all.iter().filter(|interface| names.contains(&interface.name)).collect()
}

/// Their addresses in order.
pub(crate) fn addresses(chosen: &[&Interface], version: Version, include_loopback: bool) -> Vec<IpAddr> {
    let all = chosen.iter().flat_map(|interface| interface.addresses(version)).map(|address| address.ip);
    let mut found: Vec<IpAddr> = all.filter(|ip| include_loopback || !ip.is_loopback()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Those in a network; all without one.
pub(crate) fn within(addresses: Vec<IpAddr>, cidr: Option<&str>) -> Result<Vec<String>, String> {
    let mut shown: Vec<String> = addresses.into_iter().map(show).collect();
    let Some(cidr) = cidr else { return Ok(shown) };
    let mut kept = Vec::new();
    for address in shown.drain(..) {
        if functions::in_subnet(cidr, [address.as_str()])? {
            kept.push(address);
        }
    }
    Ok(kept)
}

/// Their networks in order.
pub(crate) fn networks(chosen: &[&Interface], version: Version, include_loopback: bool) -> Vec<Address> {
    let all = chosen.iter().flat_map(|interface| interface.addresses(version));
    let kept = all.filter(|address| include_loopback || !address.ip.is_loopback());
    let mut found: Vec<Address> = kept.map(|address| Address::within(address.first(), address.prefix())).collect();
    found.sort_unstable_by_key(|network| (network.ip, network.prefix()));
    found.dedup();
    found
}

/// Networks as a list, or with what is in each.
pub(crate) fn networks_value(networks: &[Address], verbose: bool) -> Value {
    if !verbose {
        return Value::List(networks.iter().map(|network| network.show().into()).collect());
    }
    let each = |network: &Address| {
        // A number that MessagePack does not have is text, as Salt sends it.
        let count = match network.network().1.checked_add(1) {
            Some(count) => u64::try_from(count).map_or_else(|_| count.to_string().into(), Value::from),
            None => "340282366920938463463374607431768211456".into(),
        };
        Value::dict([
            ("address", show(network.ip).into()),
            ("netmask", show(network.mask()).into()),
            ("num_addresses", count),
            ("prefixlen", i64::from(network.prefix()).into()),
        ])
    };
    Value::Dict(networks.iter().map(|network| (network.show().into(), each(network))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the minion makes it.
    const TABLE: &str = r#"[
        {"name": "lo", "up": true, "hwaddr": "00:00:00:00:00:00",
         "inet": [{"address": "127.0.0.1", "prefixlen": 8, "broadcast": null, "label": "lo", "scope": "host", "secondary": false}],
         "inet6": [{"address": "::1", "prefixlen": 128, "scope": "host"}]},
        {"name": "eth0", "up": true, "hwaddr": "02:fc:00:00:00:01",
         "inet": [{"address": "192.0.2.20", "prefixlen": 24, "broadcast": "192.0.2.255", "label": "eth0",
                   "scope": "global", "secondary": false},
                  {"address": "192.0.2.3", "prefixlen": 24, "broadcast": null, "label": "eth0:1", "scope": "global", "secondary": true}],
         "inet6": [{"address": "2001:db8::20", "prefixlen": 64, "scope": "global"}]},
        {"name": "tun0", "up": false, "parent": "eth0",
         "inet": [{"address": "8.8.0.1", "prefixlen": 30, "broadcast": null, "label": "tun0", "scope": "global", "secondary": false}], 
         "inet6": []}
    ]"#;

    fn all() -> Vec<Interface> {
        read(TABLE.as_bytes()).unwrap()
    }

    #[test]
    fn interfaces_are_in_salts_form() {
        let value = value(&all());
        let eth0 = value.get("eth0").unwrap();
        let first = Value::dict([
            ("address", "192.0.2.20".into()),
            ("netmask", "255.255.255.0".into()),
            ("broadcast", "192.0.2.255".into()),
            ("label", "eth0".into()),
        ]);
        assert_eq!(eth0.get("inet"), Some(&Value::List(vec![first])));
        let Some(Value::List(second)) = eth0.get("secondary") else { panic!("{eth0:?}") };
        assert_eq!((second.len(), second[0].get("type")), (1, Some(&"inet".into())));
        assert_eq!(second[0].get("broadcast"), Some(&Value::None));
        let Some(Value::List(six)) = eth0.get("inet6") else { panic!("{eth0:?}") };
        assert_eq!(six[0].get("prefixlen"), Some(&"64".into()));
        let tun0 = value.get("tun0").unwrap();
        assert_eq!((tun0.get("up"), tun0.get("parent")), (Some(&Value::Bool(false)), Some(&"eth0".into())));
        assert_eq!((tun0.get("hwaddr"), tun0.get("inet6"), tun0.get("secondary")), (None, None, None));
        assert!(read(b"[{}]").is_err() && read(b"{}").is_err() && read(b"").is_err());
    }

    #[test]
    fn interfaces_are_chosen_by_globs() {
        let all = all();
        let names = |wanted: Value| {
            let chosen = chosen(&all, &wanted);
            chosen.iter().map(|interface| interface.name.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(Value::None), "lo eth0 tun0");
        assert_eq!(names("eth*, lo".into()), "lo eth0");
        assert_eq!(names(vec!["t?n0"].into()), "tun0");
        assert_eq!(names("".into()), "");
        let why = "Interface \"eth9\" not in available interfaces: \"lo\", \"eth0\", \"tun0\"";
        assert_eq!(find(&all, "eth9").unwrap_err(), why);
        assert_eq!(named(&all, &"eth*".into()), Vec::<&Interface>::new());
        assert_eq!(named(&all, &vec!["lo", "x"].into()).len(), 1);
    }

    #[test]
    fn addresses_and_networks_are_in_order() {
        let all = all();
        let all: Vec<&Interface> = all.iter().collect();
        let shown = |version, loopback| within(addresses(&all, version, loopback), None).unwrap().join(" ");
        assert_eq!(shown(Version::V4, false), "8.8.0.1 192.0.2.3 192.0.2.20");
        assert_eq!(shown(Version::V4, true), "8.8.0.1 127.0.0.1 192.0.2.3 192.0.2.20");
        assert_eq!(shown(Version::V6, false), "2001:db8::20");
        let some = within(addresses(&all, Version::V4, true), Some("192.0.2.0/28")).unwrap();
        assert_eq!(some, ["192.0.2.3"]);
        let networks = networks(&all, Version::V4, false);
        assert_eq!(networks_value(&networks, false), vec!["8.8.0.0/30", "192.0.2.0/24"].into());
        let verbose = networks_value(&super::networks(&all, Version::V6, false), true);
        let network = verbose.get("2001:db8::/64").unwrap();
        assert_eq!(network.get("num_addresses"), Some(&"18446744073709551616".into()));
        assert_eq!(network.get("netmask"), Some(&"ffff:ffff:ffff:ffff::".into()));
    }
}
