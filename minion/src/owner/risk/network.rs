//! Hosts that a module reaches.

use std::net::IpAddr;

use brine_sandbox::{Grant, NetworkRule};

use super::words::{Risk, list};

/// Where clouds serve a machine its credentials.
const METADATA: [&str; 6] =
    ["169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"];
/// Networks with fewer bits than these are whole parts of the internet, and a few of them are all of it.
const FEW_BITS: (u32, u32) = (8, 16);

/// What the rules of a grant can be used for.
pub(super) fn risks(rules: &[NetworkRule], grant: &Grant) -> Vec<Risk> {
    if rules.is_empty() {
        return vec![Risk::low("ask to reach hosts, and get nothing yet")];
    }
    let nets: Vec<Net> = rules.iter().filter_map(|rule| Net::read(&rule.host)).collect();
    let mut all = Vec::new();
    if nets.iter().any(Net::is_everything) {
        all.push(Risk::high(
            "send what it knows to any host, and use what this host and its neighbours offer to each other",
        ));
    }
    if METADATA.iter().filter_map(|address| address.parse().ok()).any(|address| nets.iter().any(|net| net.has(address)))
    {
        all.push(Risk::high("ask a cloud for this machine's credentials"));
    }
    if nets.iter().any(Net::is_loopback) {
        all.push(Risk::medium("use what this host offers to itself alone, which often asks for no password"));
    }
    if !nets.iter().any(Net::is_everything) {
        all.push(Risk::medium(format!("send what it knows to {}", list(&grant.to_string()))));
    }
    all
}

/// An address, or a network.
struct Net {
    address: IpAddr,
    bits: u32,
}

impl Net {
    /// None for a name.
    fn read(host: &str) -> Option<Self> {
        let (address, bits) = host.split_once('/').map_or((host, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let bits = bits.map_or(Some(width(address)), |bits| bits.parse().ok())?;
        Some(Self { address, bits: bits.min(width(address)) })
    }

    fn is_everything(&self) -> bool {
        self.bits < if self.address.is_ipv4() { FEW_BITS.0 } else { FEW_BITS.1 }
    }

    fn is_loopback(&self) -> bool {
        self.address.to_canonical().is_loopback()
    }

    fn has(&self, address: IpAddr) -> bool {
        let first = |address: IpAddr| match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let differ = first(self.address) ^ first(address);
        self.address.is_ipv4() == address.is_ipv4() && (self.bits == 0 || differ >> (128 - self.bits) == 0)
    }
}

const fn width(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}
