//! Grains of the default routes: `ip4_gw`, `ip6_gw` and `ip_gw`, from the kernel's tables in `/proc/net`.

use std::net::{Ipv4Addr, Ipv6Addr};

use brine_protocol::value::Value;

use super::map::Grains;
use crate::text_file::read_text;

/// A router with the whole internet's routes has some 100 MiB of them. Default routes come first in the table for IPv4;
/// a table that is longer than this is left out.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// The flags `RTF_UP`, `RTF_GATEWAY` and `RTF_REJECT` of route(8).
const UP: u32 = 1;
const GATEWAY: u32 = 2;
const REJECT: u32 = 0x200;

/// A default route: its metric and its gateway, if it has one.
type DefaultRoute = (u32, Option<String>);

pub(super) fn collect(grains: &mut Grains) {
    let four = read_text("/proc/net/route", MAX_BYTES).and_then(|table| best(table.lines().filter_map(route4)));
    let six = read_text("/proc/net/ipv6_route", MAX_BYTES).and_then(|table| best(table.lines().filter_map(route6)));
    grains.set("ip_gw", Value::from(four.is_some() || six.is_some()));
    for (name, route) in [("ip4_gw", four), ("ip6_gw", six)] {
        grains.set(
            name,
            match route {
                Some((_, Some(gateway))) => Value::from(gateway),
                route => Value::from(route.is_some()),
            },
        );
    }
}

/// The route that the kernel would take: the first with the lowest metric.
fn best(routes: impl Iterator<Item = DefaultRoute>) -> Option<DefaultRoute> {
    routes.min_by_key(|(metric, _)| *metric)
}

/// `Iface Destination Gateway Flags RefCnt Use Metric Mask …`, addresses in the byte order of the host.
fn route4(line: &str) -> Option<DefaultRoute> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let hex = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
    let (destination, gateway, flags, mask) = (hex(1)?, hex(2)?, hex(3)?, hex(7)?);
    if destination != 0 || mask != 0 || flags & UP == 0 || flags & REJECT != 0 {
        return None;
    }
    let gateway = (flags & GATEWAY != 0).then(|| Ipv4Addr::from(gateway.to_ne_bytes()).to_string());
    Some((fields.get(6)?.parse().ok()?, gateway))
}

/// `destination prefix source prefix gateway metric refcnt use flags device`, all hexadecimal.
fn route6(line: &str) -> Option<DefaultRoute> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let address = |at: usize| u128::from_str_radix(fields.get(at)?, 16).ok();
    let hex = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
    let flags = hex(8)?;
    if address(0)? != 0 || hex(1)? != 0 || flags & UP == 0 || flags & REJECT != 0 || *fields.get(9)? == "lo" {
        return None;
    }
    let gateway = address(4)?;
    Some((hex(5)?, (gateway != 0).then(|| Ipv6Addr::from_bits(gateway).to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_with_the_lowest_metric_counts() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     wlan0\t00000000\t0102000A\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
                     eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                     eth0\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\nx\ty\n";
        assert_eq!(best(table.lines().filter_map(route4)), Some((100, Some("192.0.2.1".to_owned()))));
        let device = "tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0";
        assert_eq!(best(device.lines().filter_map(route4)), Some((0, None)));
    }

    #[test]
    fn routes_that_refuse_are_no_gateways() {
        let zero = "0".repeat(32);
        let line = |gateway: &str, flags: &str, device: &str| {
            format!("{zero} 00 {zero} 00 {gateway} 00000400 00000001 00000000 {flags} {device}")
        };
        let gateway = "fd000000000000000000000000000001";
        assert_eq!(route6(&line(gateway, "00000003", "eth0")), Some((1024, Some("fd00::1".to_owned()))));
        assert_eq!(route6(&line(&zero, "00200200", "lo")), None);
        assert_eq!(route6(&line(gateway, "00000203", "eth0")), None);
    }
}
