//! `network.*`: wakes hosts by Wake-on-LAN, a datagram that the network card of a sleeping host recognises.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use brine_protocol::value::{Value, ValueExt as _};

use super::cache;
use super::function::{Failure, Function, Outcome, Run, functions};
use crate::files;

/// Largest size in bytes of a list of addresses, one in each line; enough for some fifty thousand.
const LIST_MAX: u64 = 1 << 20;
/// Bound on the addresses in one call, because each is a datagram to a whole network.
const HOSTS_MAX: usize = 10_000;

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Wakes the host with this MAC address (08-00-27-13-69-77, 08:00:27:13:69:77 or 080027136977).
    "network.wol(mac, bcast='255.255.255.255', destport=9)" => wol,
    /// Wakes the hosts whose MAC addresses are in a file on the master, a line each.
    "network.wollist(maclist, bcast='255.255.255.255', destport=9)" => wollist,
    /// Wakes the hosts of minions, by the MAC addresses that the master remembers of them.
    "network.wolmatch(tgt, tgt_type='glob', bcast='255.255.255.255', destport=9)" => wolmatch,
};

/// A MAC address.
type Mac = [u8; 6];

/// Parses a MAC address; `None` if it is invalid.
fn mac(text: &str) -> Option<Mac> {
    let plain = |text: &str| text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = match plain(text) {
        true => text.to_owned(),
        // The same separator between all pairs.
        false => {
            let divider = text.chars().nth(2).filter(|divider| matches!(divider, ':' | '-' | '.'))?;
            let pairs: Vec<&str> = text.split(divider).collect();
            let digits = pairs.concat();
            (pairs.iter().all(|pair| pair.len() == 2) && plain(&digits)).then_some(digits)?
        }
    };
    let mut mac = Mac::default();
    hex::decode_to_slice(digits, &mut mac).ok()?;
    Some(mac)
}

/// Returns the destination of the datagrams.
fn target(run: &Run) -> Result<(Ipv4Addr, u16), Failure> {
    let bcast = run.text("bcast");
    let bcast = bcast.parse().map_err(|_| run.wrong("bcast must be an IPv4 address"))?;
    let port = run.text("destport");
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(|| run.wrong("destport must be a port"))?;
    Ok((bcast, port))
}

/// Makes a magic packet: six bytes 0xff, and the card's address sixteen times.
fn packet(mac: Mac) -> Vec<u8> {
    [[0xff; 6].as_slice(), &mac.repeat(16)].concat()
}

async fn send(macs: &[Mac], target: (Ipv4Addr, u16)) -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("no datagram can be sent to {}:{}: {error}", target.0, target.1);
    let socket = tokio::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.map_err(failed)?;
    socket.set_broadcast(true).map_err(failed)?;
    for mac in macs {
        socket.send_to(&packet(*mac), target).await.map_err(failed)?;
    }
    Ok(())
}

async fn wol(run: Run) -> Outcome {
    let target = target(&run)?;
    let mac = mac(run.text("mac").trim()).ok_or_else(|| run.wrong("mac must be a MAC address"))?;
    send(&[mac], target).await?;
    Ok(Value::from(true))
}

async fn wollist(run: Run) -> Outcome {
    let target = target(&run)?;
    let path = PathBuf::from(run.text("maclist"));
    let shown = path.display().to_string();
    let read = tokio::task::spawn_blocking(move || files::read_regular(&path, LIST_MAX)).await;
    // The error does not contain the file's content, because callers of this runner may have no right to read the
    // master's files.
    let unread = || Failure::from(format!("{shown} is no readable file with a MAC address in each line"));
    let (content, _) = read.map_err(|_| unread())?.map_err(|_| unread())?.ok_or_else(unread)?;
    let text = String::from_utf8(content).map_err(|_| unread())?;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let macs: Vec<Mac> = lines.iter().map(|line| mac(line)).collect::<Option<_>>().ok_or_else(unread)?;
    wake(&run, &macs, &lines, target).await
}

async fn wolmatch(run: Run) -> Outcome {
    let target = target(&run)?;
    let known = cache::show(&run, "grains").await?;
    let mut found = Vec::new();
    for (_, grains) in known.entries().unwrap_or_default() {
        for (interface, address) in grains.get("hwaddr_interfaces").and_then(Value::entries).unwrap_or_default() {
            let address = address.python_str().trim().to_owned();
            // The data is from the minion, so it may be invalid.
            if interface.text() != Some("lo")
                && let Some(mac) = mac(&address)
            {
                found.push((mac, address));
            }
        }
    }
    let (macs, shown): (Vec<Mac>, Vec<&str>) = found.iter().map(|(mac, shown)| (*mac, shown.as_str())).unzip();
    wake(&run, &macs, &shown, target).await
}

/// Wakes hosts. Returns their addresses as they were written.
async fn wake(run: &Run, macs: &[Mac], shown: &[&str], target: (Ipv4Addr, u16)) -> Outcome {
    if macs.len() > HOSTS_MAX {
        return Err(run.wrong(&format!("{} hosts are more than the {HOSTS_MAX} of one call", macs.len())));
    }
    send(macs, target).await?;
    run.print(shown.iter().map(|mac| format!("Waking up {mac}")).collect::<Vec<_>>().join("\n"));
    Ok(brine_protocol::value::list(shown.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_cards_and_what_wakes_them() {
        let expect = [8, 0, 0x27, 0x13, 0x69, 0x77];
        for text in ["08-00-27-13-69-77", "08:00:27:13:69:77", "080027136977", "08.00.27.13.69.77"] {
            assert_eq!(mac(text), Some(expect), "{text}");
        }
        for text in
            ["", "08:00:27:13:69", "08:00-27:13:69:77", "0800:27:13:69:77", "08:00:27:13:69:7g", "root:x:0:0", "ééé"]
        {
            assert_eq!(mac(text), None, "{text}");
        }
        let packet = packet(expect);
        assert_eq!(packet.len(), 102);
        assert!(packet.starts_with(&[0xff; 6]) && packet.ends_with(&expect));
    }
}
