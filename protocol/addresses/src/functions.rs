//! Salt's functions `network.*` that only compute: their answers, and Python's words for what is no address.

use std::fmt::Write as _;
use std::net::IpAddr;

use crate::{Address, show};

/// Upper bound on the bytes of an argument that a message repeats.
const MAX_SHOWN: usize = 256;

/// What [`convert_cidr`] says of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// Its first address.
    pub network: String,
    /// Its mask.
    pub netmask: String,
    /// Its last address.
    pub broadcast: String,
}

/// Reads an address.
///
/// # Errors
/// Python's words for what is none.
pub fn ip_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("{} does not appear to be an IPv4 or IPv6 address", quoted(text)))
}

/// Reads a network by any of its addresses.
///
/// # Errors
/// Python's words for what is none.
pub fn ip_network(text: &str) -> Result<Address, String> {
    Address::parse(text).ok_or_else(|| format!("{} does not appear to be an IPv4 or IPv6 network", quoted(text)))
}

/// `network.calc_net`: the network of an address.
///
/// # Errors
/// As for [`ip_network`].
pub fn calc_net(ip_addr: &str, netmask: Option<&str>) -> Result<String, String> {
    let whole = netmask.map(|netmask| format!("{ip_addr}/{netmask}"));
    Ok(ip_network(whole.as_deref().unwrap_or(ip_addr))?.show_network())
}

/// `network.convert_cidr`: the network, mask and broadcast address of an address.
///
/// # Errors
/// As for [`ip_network`].
pub fn convert_cidr(cidr: &str) -> Result<Converted, String> {
    let network = ip_network(cidr)?;
    Ok(Converted { network: show(network.first()), netmask: show(network.mask()), broadcast: show(network.last()) })
}

/// `network.ip_in_subnet`: whether one of the addresses is in a network. None is in what is no network, and in one that is
/// written with bits behind its prefix.
///
/// # Errors
/// As for [`ip_address`].
pub fn in_subnet<'a>(cidr: &str, addresses: impl IntoIterator<Item = &'a str>) -> Result<bool, String> {
    let Some(network) = Address::parse(cidr).filter(|network| !network.has_host_bits()) else { return Ok(false) };
    for ip in addresses {
        if network.contains(ip_address(ip)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `network.is_private`.
///
/// # Errors
/// As for [`ip_address`].
pub fn is_private(ip_addr: &str) -> Result<bool, String> {
    ip_address(ip_addr).map(crate::is_private)
}

/// `network.is_loopback`.
///
/// # Errors
/// As for [`ip_address`].
pub fn is_loopback(ip_addr: &str) -> Result<bool, String> {
    Ok(ip_address(ip_addr)?.is_loopback())
}

/// `network.reverse_ip`: the name of an address for questions to name servers.
///
/// # Errors
/// As for [`ip_address`].
pub fn reverse_ip(ip_addr: &str) -> Result<String, String> {
    Ok(match ip_address(ip_addr)? {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(ip) => {
            let digits = format!("{:032x}", u128::from(ip));
            let mut name = String::with_capacity(72);
            digits.chars().rev().for_each(|digit| name.extend([digit, '.']));
            name + "ip6.arpa"
        }
    })
}

/// `network.iphexval`: an IPv4 address in hexadecimal digits.
///
/// # Errors
/// Python's words for a part that is no number.
pub fn iphexval(ip: &str) -> Result<String, String> {
    ip.split('.').try_fold(String::new(), |mut text, part| {
        let number: u32 =
            part.parse().map_err(|_| format!("invalid literal for int() with base 10: {}", quoted(part)))?;
        let _ = write!(text, "{number:02X}");
        Ok(text)
    })
}

/// A text in Python's quotes, cut where it is long. Texts that differ from Python's, with quotes in them, are no addresses.
fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("'{shown}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of Salt 3008.3 under Python 3.11.
    #[test]
    fn networks_are_computed_as_salt_does() {
        for (ip, mask, expect) in [
            ("172.17.0.5", Some("255.255.255.240"), "172.17.0.0/28"),
            ("172.17.0.5", Some("0.0.0.15"), "172.17.0.0/28"),
            ("172.17.0.5", Some("12"), "172.16.0.0/12"),
            ("172.17.0.5", None, "172.17.0.5/32"),
            ("2a02:f6e:a000:80:84d8:8332:7866:4e07/64", None, "2a02:f6e:a000:80::/64"),
            ("10.0.0.1/0", None, "0.0.0.0/0"),
        ] {
            assert_eq!(calc_net(ip, mask).as_deref(), Ok(expect), "{ip}");
        }
        for wrong in
            ["", "x", "10.0.0.1/33", "10.0.0.1/255.0.255.0", "010.0.0.1", "10.0.0/8", "::1/129", "10.0.0.1/8/8"]
        {
            let why = format!("'{wrong}' does not appear to be an IPv4 or IPv6 network");
            assert_eq!(calc_net(wrong, None), Err(why));
        }
        let converted = |cidr| convert_cidr(cidr).map(|made| [made.network, made.netmask, made.broadcast].join(" "));
        assert_eq!(converted("10.0.0.5/24").as_deref(), Ok("10.0.0.0 255.255.255.0 10.0.0.255"));
        assert_eq!(converted("0.0.0.0/0").as_deref(), Ok("0.0.0.0 0.0.0.0 255.255.255.255"));
        assert_eq!(converted("fd00::5/64").as_deref(), Ok("fd00:: ffff:ffff:ffff:ffff:: fd00::ffff:ffff:ffff:ffff"));
        assert_eq!(converted("::/0").as_deref(), Ok(":: :: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
    }

    #[test]
    fn addresses_are_in_networks_of_their_version() {
        assert_eq!(in_subnet("172.16.0.0/12", ["172.17.0.4"]), Ok(true));
        assert_eq!(in_subnet("172.16.0.0/12", ["10.0.0.1", "172.17.0.4"]), Ok(true));
        assert_eq!(in_subnet("172.16.0.0/12", ["10.0.0.1"]), Ok(false));
        assert_eq!(in_subnet("::/0", ["10.0.0.1"]), Ok(false));
        // Bits behind the prefix, and what is no network.
        assert_eq!(in_subnet("172.17.0.0/12", ["172.17.0.4"]), Ok(false));
        assert_eq!(in_subnet("x", ["172.17.0.4"]), Ok(false));
        let why = "'x' does not appear to be an IPv4 or IPv6 address".to_owned();
        assert_eq!(in_subnet("172.16.0.0/12", ["x"]), Err(why));
    }

    #[test]
    fn addresses_have_properties_and_other_forms() {
        for (ip, private, loopback) in [
            ("10.0.0.3", true, false),
            ("127.0.0.1", true, true),
            ("8.8.8.8", false, false),
            ("::1", true, true),
            ("2001:db8::1", true, false),
            ("2a00::1", false, false),
            ("::ffff:8.8.8.8", false, false),
        ] {
            assert_eq!((is_private(ip), is_loopback(ip)), (Ok(private), Ok(loopback)), "{ip}");
        }
        assert_eq!(reverse_ip("172.17.0.4").as_deref(), Ok("4.0.17.172.in-addr.arpa"));
        let zeros = "0.".repeat(31);
        assert_eq!(reverse_ip("::1"), Ok(format!("1.{zeros}ip6.arpa")));
        assert_eq!(iphexval("10.0.0.1").as_deref(), Ok("0A000001"));
        assert_eq!(iphexval("a").unwrap_err(), "invalid literal for int() with base 10: 'a'");
        assert!(is_private(&"x".repeat(1 << 20)).unwrap_err().len() < 400);
    }
}
