//! Salt's filters on addresses and networks, as Python's `ipaddress` understands them.

use std::net::{IpAddr, Ipv4Addr};

use brine_addresses::{Address, among, is_private, show};

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed, check};
use super::super::object::{Iter, cast};
use super::super::ops;
use crate::value::{Dict, Value};

pub(super) const NAMES: [&str; 11] = [
    "is_ip",
    "is_ipv4",
    "is_ipv6",
    "ipaddr",
    "ipv4",
    "ipv6",
    "ip_host",
    "network_hosts",
    "network_size",
    "filter_by_networks",
    "ipwrap",
];

const RESERVED: &[&str] = &[
    "240.0.0.0/4",
    "::/8",
    "100::/8",
    "200::/7",
    "400::/6",
    "800::/5",
    "1000::/4",
    "4000::/3",
    "6000::/3",
    "8000::/3",
    "a000::/3",
    "c000::/3",
    "e000::/4",
    "f000::/5",
    "f800::/6",
    "fe00::/9",
];

/// Whether an address has all the named properties; unknown names are left out.
fn has(ip: IpAddr, options: &str) -> bool {
    options.split(',').all(|option| match option.trim() {
        "global" | "public" => !is_private(ip),
        "private" => is_private(ip),
        "link-local" | "linklocal" | "ll" | "link_local" => among(ip, &["169.254.0.0/16", "fe80::/10"]),
        "loopback" | "lo" => ip.is_loopback(),
        "multicast" => ip.is_multicast(),
        "reserved" => among(ip, RESERVED),
        "site-local" | "sl" | "site_local" => among(ip, &["fec0::/10"]),
        "unspecified" => ip.is_unspecified(),
        _ => true,
    })
}

/// `ipv4` or `ipv6` of one text.
fn one(value: &Value, version: u8, options: Option<&str>) -> Option<String> {
    let address = match value {
        Value::Str(text) => Address::parse(text)?,
        Value::Int(n) => Address { ip: Ipv4Addr::from(u32::try_from(*n).ok()?).into(), length: None },
        _ => return None,
    };
    let is_version = address.ip.is_ipv4() == (version == 4);
    (is_version && options.is_none_or(|options| has(address.ip, options))).then(|| address.show())
}

fn is_many(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Tuple(_)) || cast::<Iter>(value).is_some_and(Iter::is_generator)
}

/// The addresses of a version in a text or a list; none if there are none.
fn versions(interp: &mut Interp, value: &Value, version: u8, options: Option<&str>) -> Res<Option<Vec<String>>> {
    if is_many(value) {
        let items = ops::iterate(interp, value)?;
        return Ok(Some(items.iter().filter_map(|item| one(item, version, options)).collect()));
    }
    Ok(match value {
        Value::Str(_) => one(value, version, options).map(|text| vec![text]),
        _ => None,
    })
}

fn texts(many: bool, found: Option<Vec<String>>) -> Value {
    match found {
        Some(found) if many => Value::list(found.into_iter().map(Value::from)),
        Some(found) => found.into_iter().next().map_or(Value::None, Value::from),
        None => Value::None,
    }
}

pub(super) fn apply(interp: &mut Interp, name: &str, value: &Value, passed: &Passed) -> Res<Value> {
    check(value)?;
    let options = passed.get(0, "options").filter(Value::truthy);
    let options = options.as_ref().and_then(Value::as_str);
    let many = is_many(value);
    match name {
        "is_ip" => Ok((one(value, 4, options).is_some() || one(value, 6, options).is_some()).into()),
        "is_ipv4" => Ok(one(value, 4, options).is_some().into()),
        "is_ipv6" => Ok(one(value, 6, options).is_some().into()),
        "ipv4" => versions(interp, value, 4, options).map(|found| texts(many, found)),
        "ipv6" => versions(interp, value, 6, options).map(|found| texts(many, found)),
        "ipaddr" => all(interp, value, options).map(|found| texts(many, found)),
        "filter_by_networks" => filter(interp, value, passed),
        "ipwrap" => {
            let wrap = |item: &Value| match (item.as_str(), one(item, 6, None)) {
                (Some(text), Some(_)) if !text.starts_with('[') => format!("[{text}]").into(),
                _ => item.clone(),
            };
            if !matches!(value, Value::List(_) | Value::Tuple(_)) {
                return Ok(wrap(value));
            }
            let items = ops::iterate(interp, value)?;
            Ok(Value::list(items.iter().map(wrap)))
        }
        _ => {
            let version = passed.get(1, "version").filter(Value::truthy);
            let found = match version.as_ref().and_then(ops::integer) {
                Some(4) => versions(interp, value, 4, options)?,
                Some(6) => versions(interp, value, 6, options)?,
                Some(_) => None,
                None => all(interp, value, options)?,
            };
            let Some(found) = found.filter(|found| !found.is_empty()) else { return Ok(Value::None) };
            let mut made = Vec::new();
            for text in if many { &found[..] } else { &found[..1] } {
                let Some(address) = Address::parse(text) else { continue };
                made.push(match name {
                    "ip_host" => format!("{}/{}", show(address.ip), address.prefix()).into(),
                    "network_size" => size(&address)?,
                    _ => hosts(interp, &address)?,
                });
            }
            Ok(if many { Value::list(made) } else { made.swap_remove(0) })
        }
    }
}

fn all(interp: &mut Interp, value: &Value, options: Option<&str>) -> Res<Option<Vec<String>>> {
    // a generator can be gone through once
    let kept = if is_many(value) { Value::list(ops::iterate(interp, value)?) } else { value.clone() };
    let (v4, v6) = (versions(interp, &kept, 4, options)?, versions(interp, &kept, 6, options)?);
    Ok(match (v4, v6) {
        (Some(v4), Some(v6)) => Some([v4, v6].concat()),
        (v4, v6) => v4.or(v6),
    })
}

fn size(address: &Address) -> Res<Value> {
    let (_, last) = address.network();
    let size = last.checked_add(1).and_then(|size| i128::try_from(size).ok());
    size.map(Value::Int).ok_or_else(|| JinjaError::limit("an integer of more than 127 bits"))
}

/// The addresses of hosts: without the network's own, and in IPv4 without the broadcast's.
fn hosts(interp: &mut Interp, address: &Address) -> Res<Value> {
    let (first, last) = address.network();
    let is_v4 = address.ip.is_ipv4();
    let range = match last {
        0 | 1 => (0, last),
        last if is_v4 => (1, last - 1),
        last => (1, last),
    };
    let count = usize::try_from(range.1 - range.0).unwrap_or(usize::MAX);
    interp.charge(count.saturating_mul(96))?;
    interp.take_steps(count)?;
    Ok(Value::list((range.0..=range.1).map(|at| show(brine_addresses::address(first + at, is_v4)).into())))
}

fn filter(interp: &mut Interp, value: &Value, passed: &Passed) -> Res<Value> {
    let networks = passed.need(0, "networks", "filter_by_networks")?;
    if matches!(networks, Value::None) {
        return Ok(value.clone());
    }
    let mut known = Vec::new();
    for network in ops::iterate(interp, &networks)? {
        let text = network.as_str().unwrap_or_default();
        let bad = || {
            let shown = network.short_repr();
            JinjaError::python(format!("{shown} does not appear to be an IPv4 or IPv6 network"))
        };
        let address = Address::parse(text).ok_or_else(bad)?;
        if address.has_host_bits() {
            return Err(JinjaError::python(format!("{text} has host bits set")));
        }
        known.push(address);
    }
    let chosen = |interp: &mut Interp, list: &Value| {
        let mut made = Vec::new();
        for item in ops::iterate(interp, list)? {
            let ip = item.as_str().and_then(|text| text.parse::<IpAddr>().ok()).ok_or_else(|| {
                let shown = item.short_repr();
                JinjaError::python(format!("{shown} does not appear to be an IPv4 or IPv6 address"))
            })?;
            interp.take_steps(known.len())?;
            made.extend(known.iter().filter(|network| network.contains(ip)).map(|_| item.clone()));
        }
        Ok(Value::list(made))
    };
    match value {
        Value::Dict(dict) => {
            let made = Dict::default();
            let entries = dict.borrow().clone();
            for (key, list) in entries {
                let list = chosen(interp, &list)?;
                made.borrow_mut().insert(key, list);
            }
            Ok(made.into())
        }
        Value::List(_) | Value::Tuple(_) | Value::Str(_) => chosen(interp, value),
        other => Err(JinjaError::python(format!("Do not know how to filter a <class '{}'>", other.type_name()))),
    }
}
