//! The grain `dns`: what `resolv.conf` says.

use std::net::{IpAddr, Ipv4Addr};

use brine_protocol::value::{Value, list, map};

use super::map::Grains;
use crate::text_file::read_text;

/// The resolver itself reads a few KiB.
const MAX_BYTES: u64 = 64 * 1024;

pub(super) fn collect(grains: &mut Grains) {
    // With systemd-resolved, the other file names only its stub.
    let text =
        ["/run/systemd/resolve/resolv.conf", "/etc/resolv.conf"].iter().find_map(|path| read_text(path, MAX_BYTES));
    if let Some(text) = text {
        grains.set("dns", parse(&text));
    }
}

fn parse(text: &str) -> Value {
    let (mut servers, mut search, mut sortlist) = (Vec::<IpAddr>::new(), Vec::new(), Vec::<String>::new());
    let (mut options, mut domain) = (Vec::<&str>::new(), "");
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(directive) = words.next() else { continue };
        let args: Vec<&str> = words.take_while(|word| !word.starts_with(['#', ';'])).collect();
        let Some(first) = args.first() else { continue };
        match directive.to_ascii_lowercase().as_str() {
            "nameserver" => {
                if let Ok(address) = first.parse()
                    && !servers.contains(&address)
                {
                    servers.push(address);
                }
            }
            "domain" => domain = first,
            "search" => search = args,
            "sortlist" => {
                for network in args.iter().filter_map(|word| with_netmask(word)) {
                    if !sortlist.contains(&network) {
                        sortlist.push(network);
                    }
                }
            }
            "options" if !options.contains(first) => options.push(first),
            _ => {}
        }
    }
    let of = |wanted: fn(&IpAddr) -> bool| list(servers.iter().filter(|server| wanted(server)).map(IpAddr::to_string));
    map([
        ("nameservers", of(|_| true)),
        ("ip4_nameservers", of(IpAddr::is_ipv4)),
        ("ip6_nameservers", of(IpAddr::is_ipv6)),
        ("sortlist", list(sortlist)),
        ("domain", Value::from(domain)),
        ("search", list(search)),
        ("options", list(options)),
    ])
}

/// `130.155.160.0/255.255.240.0`; without a mask, the one of the address's class.
fn with_netmask(text: &str) -> Option<String> {
    let (address, mask) = text.split_once('/').map_or((text, None), |(address, mask)| (address, Some(mask)));
    let address: Ipv4Addr = address.parse().ok()?;
    let mask = match mask {
        Some(mask) => mask.parse().ok().or_else(|| {
            let bits = mask.parse::<u32>().ok().filter(|bits| *bits <= 32)?;
            Some(Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - bits).unwrap_or(0)))
        })?,
        None => match address.octets()[0] {
            0..128 => Ipv4Addr::new(255, 0, 0, 0),
            128..192 => Ipv4Addr::new(255, 255, 0, 0),
            _ => Ipv4Addr::new(255, 255, 255, 0),
        },
    };
    Some(format!("{}/{mask}", Ipv4Addr::from_bits(address.to_bits() & mask.to_bits())))
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::ValueExt;

    use super::*;

    #[test]
    fn the_file_is_read_as_the_resolver_reads_it() {
        let dns = parse(
            "# a comment\nnameserver 192.0.2.53 # first\nnameserver 2001:DB8::53\nnameserver 192.0.2.53\nnameserver nope\n\
             search a.example b.example ; not this\ndomain c.example\noptions ndots:2 rotate\nsortlist 130.155.160.0/255.255.240.0 10.1.2.3\n\
             nameserver\n",
        );
        assert_eq!(dns.get("nameservers"), Some(&list(["192.0.2.53", "2001:db8::53"])));
        assert_eq!(dns.get("ip4_nameservers"), Some(&list(["192.0.2.53"])));
        assert_eq!(dns.get("ip6_nameservers"), Some(&list(["2001:db8::53"])));
        assert_eq!(dns.get("search"), Some(&list(["a.example", "b.example"])));
        assert_eq!(dns.get_text("domain"), Some("c.example"));
        assert_eq!(dns.get("options"), Some(&list(["ndots:2"])));
        assert_eq!(dns.get("sortlist"), Some(&list(["130.155.160.0/255.255.240.0", "10.0.0.0/255.0.0.0"])));
    }
}
