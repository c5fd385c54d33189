//! What programs of the host do: `ping`, `traceroute`, `dig`, `ip`, `ethtool`, `wakeonlan`. Their arguments are a caller's: no name is an
//! option.

use std::net::{IpAddr, Ipv4Addr};

use brine_guest::Value;
use brine_guest::keywords::Keywords;
use brine_guest::program::{self, Program};

/// Upper bound on the bytes of a host's name, as in Salt.
const MAX_NAME: usize = 255;
/// How long `traceroute` may take, in milliseconds, as in Salt.
const TRACE_MS: u64 = 120_000;
/// The sizes that can be set.
const BUFFERS: [&str; 4] = ["rx", "tx", "rx-mini", "rx-jumbo"];

/// A host's name with those characters that such a name has, or an address.
pub(crate) fn host(name: &Value) -> Result<String, String> {
    let name = name.to_text();
    if name.parse::<IpAddr>().is_ok() {
        return Ok(name);
    }
    let kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let kept: String = name.chars().take(MAX_NAME).filter(kept).collect();
    if kept.is_empty() || kept.starts_with('-') {
        return Err(format!("{name:?} is no name of a host"));
    }
    Ok(kept)
}

/// An interface's name, as the kernel takes one.
fn interface(name: &Value) -> Result<String, String> {
    let name = name.to_text();
    let is_name = !name.is_empty() && !name.starts_with('-') && name.len() < 16;
    if !is_name || name.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '=' | ':')) {
        return Err(format!("{name:?} is no name of an interface"));
    }
    Ok(name)
}

fn need(name: &str) -> Result<(), String> {
    if program::exists(name)? { Ok(()) } else { Err(format!("The '{name}' binary was not found in $PATH.")) }
}

/// The words of `ping`.
fn ping_words(to: &Value, timeout: &Value) -> Result<Vec<String>, String> {
    let mut words = vec!["ping".to_owned()];
    if timeout.truthy() {
        let seconds = timeout.to_text();
        if seconds.parse::<f64>().ok().is_none_or(|seconds| !(0.0..=3600.0).contains(&seconds)) {
            return Err(format!("timeout is to be a number of seconds, not {seconds:?}"));
        }
        words.extend(["-W".to_owned(), seconds]);
    }
    words.extend(["-c".to_owned(), "4".to_owned(), host(to)?]);
    Ok(words)
}

pub(crate) fn ping(to: &Value, timeout: &Value, return_boolean: bool) -> Result<Value, String> {
    let done = Program::new(ping_words(to, timeout)?).merged().run()?;
    Ok(if return_boolean { done.succeeded().into() } else { done.stdout.into() })
}

/// A hardware address as `wakeonlan` takes one: of twelve digits, or of six pairs with any one character between.
fn hardware_address(mac: &str) -> Result<String, String> {
    let invalid = || "Invalid MAC address".to_owned();
    let digits: Vec<char> = mac.chars().collect();
    let digits: String = match digits.len() {
        12 => mac.to_owned(),
        17 => digits.iter().filter(|digit| **digit != digits[2]).collect(),
        _ => return Err(invalid()),
    };
    if digits.len() != 12 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(invalid());
    }
    Ok([0, 2, 4, 6, 8, 10].map(|at| &digits[at..at + 2]).join(":"))
}

/// The words of `wakeonlan`.
fn wake_words(mac: &Value, bcast: Option<&Value>, port: Option<&Value>) -> Result<[String; 6], String> {
    let bcast = bcast.map_or_else(|| "255.255.255.255".into(), Value::to_text);
    if bcast.parse::<Ipv4Addr>().is_err() {
        return Err(format!("{bcast:?} is no IPv4 address"));
    }
    let port = port.map_or_else(|| "9".into(), Value::to_text);
    if port.parse::<u16>().ok().is_none_or(|port| port == 0) {
        return Err(format!("{port:?} is no port"));
    }
    Ok(["wakeonlan".into(), "-i".into(), bcast, "-p".into(), port, hardware_address(&mac.to_text())?])
}

pub(crate) fn wake(mac: &Value, bcast: Option<&Value>, port: Option<&Value>) -> Result<bool, String> {
    let words = wake_words(mac, bcast, port)?;
    need("wakeonlan")?;
    let done = Program::new(words).run()?;
    // It warns of what it could not send, and ends with 0.
    if done.stderr.is_empty() { done.ok().map(|_| true) } else { Err(done.stderr) }
}

pub(crate) fn dig(name: &Value) -> Result<String, String> {
    let words = ["dig".to_owned(), host(name)?];
    need("dig")?;
    Ok(Program::new(words).merged().run()?.stdout)
}

pub(crate) fn traceroute(to: &Value) -> Result<Value, String> {
    let words = ["traceroute".to_owned(), host(to)?];
    need("traceroute")?;
    let done = Program::new(words).timeout(TRACE_MS).merged().run()?;
    Ok(if done.timed_out { Value::List(Vec::new()) } else { hops(&done.stdout) })
}

/// The hops that traceroute for Linux 2 prints: ` 1  name (address)  0.5 ms  0.4 ms  0.4 ms`. A line of another form is an
/// empty dict, as in Salt.
fn hops(output: &str) -> Value {
    let hop = |line: &str| {
        let parts: Vec<&str> = line.split("  ").collect();
        let count: i64 = parts.first()?.trim().parse().ok()?;
        if parts.get(1) == Some(&"* * *") {
            return Some(Value::dict([("count", count.into()), ("hostname", "*".into())]));
        }
        let [_, from, first, second, third, ..] = parts[..] else { return None };
        let (name, address) = from.split_once(' ')?;
        let time = |part: &str| part.split_whitespace().next()?.parse().ok().map(Value::Float);
        Some(Value::dict([
            ("count", count.into()),
            ("hostname", name.into()),
            ("ip", address.trim_matches(['(', ')']).into()),
            ("ms1", time(first)?),
            ("ms2", time(second)?),
            ("ms3", time(third)?),
        ]))
    };
    let lines = output.lines().filter(|line| line.contains(' ') && !line.starts_with("traceroute"));
    Value::List(lines.map(|line| hop(line).unwrap_or_else(|| Value::dict([]))).collect())
}

/// The way to an address.
pub(crate) fn get_route(to: &Value) -> Result<Value, String> {
    let to = brine_addresses::functions::ip_address(&to.to_text())?.to_string();
    need("ip")?;
    let said = Program::new(["ip", "route", "get", to.as_str()]).run()?.ok()?;
    way(&to, &said).ok_or_else(|| format!("there is no way to {to}: {said}"))
}

fn way(to: &str, said: &str) -> Option<Value> {
    let words: Vec<&str> = said.lines().next()?.split_whitespace().collect();
    let after = |name: &str| words.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1]);
    Some(Value::dict([
        ("destination", to.into()),
        ("gateway", after("via").map_or(Value::None, Value::from)),
        ("interface", after("dev")?.into()),
        ("source", after("src")?.into()),
    ]))
}

/// The IPv6 neighbours that answered.
pub(crate) fn neighbours6() -> Result<Value, String> {
    need("ip")?;
    Ok(neighbours(&Program::new(["ip", "neigh", "show"]).run()?.ok()?))
}

/// `ADDRESS dev NAME lladdr HARDWARE STATE`
fn neighbours(said: &str) -> Value {
    let mut found: Vec<(Value, Value)> = Vec::new();
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, _, _, "lladdr", hardware, ..] = words[..] else { continue };
        if address.contains(':') {
            found.retain(|(known, _)| known.text() != Some(hardware));
            found.push((hardware.into(), address.into()));
        }
    }
    Value::Dict(found)
}

pub(crate) fn get_bufsize(iface: &Value) -> Result<Value, String> {
    let iface = interface(iface)?;
    if !program::exists("ethtool")? {
        return Ok(Value::dict([]));
    }
    Ok(buffers(&Program::new(["ethtool", "-g", iface.as_str()]).merged().run()?.stdout))
}

/// The sizes that `ethtool -g` prints: first the greatest, then the current ones.
fn buffers(output: &str) -> Value {
    let (mut suffix, mut sizes) = ("max-", Vec::new());
    for line in output.lines() {
        if line.ends_with("maximums:") {
            suffix = "-max";
        } else if line.ends_with("settings:") {
            suffix = "";
        } else if let Some((name, size)) = line.rsplit_once(':')
            && let Ok(size) = size.trim().parse::<i64>()
        {
            sizes.push((format!("{}{suffix}", name.to_lowercase().replace(' ', "-")), size));
        }
    }
    let mut entries = vec![("result", Value::Bool(!sizes.is_empty()))];
    if sizes.is_empty() {
        entries.push(("comment", output.into()));
    }
    entries.extend(sizes.iter().map(|(name, size)| (name.as_str(), Value::Int(*size))));
    Value::dict(entries)
}

pub(crate) fn mod_bufsize(iface: &Value, args: &[Value], sizes: &Keywords) -> Result<Value, String> {
    let iface = interface(iface)?;
    if !program::exists("ethtool")? {
        return Ok(false.into());
    }
    let answer =
        |result: bool, comment: String| Ok(Value::dict([("result", result.into()), ("comment", Value::from(comment))]));
    if sizes.iter().next().is_some() && !args.is_empty() {
        let unknown: Vec<String> = args.iter().map(Value::to_text).collect();
        return answer(false, format!("Unknown arguments: {}", unknown.join(" ")));
    }
    let words = buffer_words(sizes)?;
    if words.is_empty() {
        return answer(false, "Requires rx=<val> tx==<val> rx-mini=<val> and/or rx-jumbo=<val>".into());
    }
    let said = Program::new(["ethtool", "-G", iface.as_str()]).args(words.iter().map(String::as_str)).merged().run()?;
    if said.stdout.is_empty() { answer(true, words.join(" ")) } else { answer(false, said.stdout) }
}

fn buffer_words(sizes: &Keywords) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for (name, size) in BUFFERS.iter().filter_map(|name| Some((name, sizes.text(name)?))) {
        if size.is_empty() || !size.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("{name} is to be a number, not {size:?}"));
        }
        words.extend([(*name).to_owned(), size]);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_options() {
        let words = |to: &str, timeout: Value| ping_words(&to.into(), &timeout).map(|words| words.join(" "));
        assert_eq!(words("a.example", Value::None).as_deref(), Ok("ping -c 4 a.example"));
        assert_eq!(words("2001:db8::1", Value::Int(3)).as_deref(), Ok("ping -W 3 -c 4 2001:db8::1"));
        assert_eq!(words("a;b $(c)", Value::Bool(false)).as_deref(), Ok("ping -c 4 abc"));
        for bad in ["", "-f", "--", ";-f"] {
            assert!(words(bad, Value::None).is_err(), "{bad}");
        }
        for bad in ["-f", "x", "1 -f", "inf", "nan", "-1"] {
            assert!(words("a", bad.into()).is_err(), "{bad}");
        }
        for bad in ["", "-K", "a b", "a/b", "a=b", "abcdefghijklmnop"] {
            assert!(interface(&bad.into()).is_err(), "{bad}");
        }
        let size = |value: &str| {
            let kwargs = brine_guest::Data::from(Value::dict([("rx", value.into())]));
            buffer_words(&Keywords::new(&kwargs, []).unwrap())
        };
        assert_eq!(size("512"), Ok(vec!["rx".into(), "512".into()]));
        assert!(size("5 tx 6").is_err() && size("").is_err() && size("-1").is_err());
    }

    #[test]
    fn hops_are_read() {
        let output = "traceroute to a.example (192.0.2.7), 30 hops max, 60 byte packets\n \
                      1  gw.example (192.0.2.1)  0.521 ms  0.4 ms  0.3 ms\n 2  * * *\n 3  odd\n";
        let Value::List(hops) = hops(output) else { panic!() };
        let first = Value::dict([
            ("count", Value::Int(1)),
            ("hostname", "gw.example".into()),
            ("ip", "192.0.2.1".into()),
            ("ms1", Value::Float(0.521)),
            ("ms2", Value::Float(0.4)),
            ("ms3", Value::Float(0.3)),
        ]);
        assert_eq!(hops[0], first);
        assert_eq!(hops[1], Value::dict([("count", Value::Int(2)), ("hostname", "*".into())]));
        assert_eq!((&hops[2], hops.len()), (&Value::dict([]), 3));
    }

    #[test]
    fn ways_and_neighbours_are_read() {
        let said = "8.8.8.8 via 192.0.2.1 dev eth0 src 192.0.2.2 uid 0 \n    cache \n";
        let way8 = way("8.8.8.8", said).unwrap();
        assert_eq!((way8.get("gateway"), way8.get("source")), (Some(&"192.0.2.1".into()), Some(&"192.0.2.2".into())));
        let local = way("127.0.0.1", "local 127.0.0.1 dev lo table local src 127.0.0.1 uid 0").unwrap();
        assert_eq!((local.get("gateway"), local.get("interface")), (Some(&Value::None), Some(&"lo".into())));
        assert_eq!(way("1.1.1.1", ""), None);
        let said = "192.0.2.1 dev eth0 lladdr 02:fc:00:00:00:05 REACHABLE\nfe80::1 dev eth0 lladdr 02:fc:00:00:00:06 router STALE\n\
                    fe80::2 dev eth0 FAILED\n";
        assert_eq!(neighbours(said), Value::dict([("02:fc:00:00:00:06", "fe80::1".into())]));
    }

    #[test]
    fn buffers_are_read() {
        let output = "Ring parameters for eth0:\nPre-set maximums:\nRX:             256\nRX Mini:        n/a\n\
                      Current hardware settings:\nRX:             128\nTX:   64\n";
        let sizes = buffers(output);
        let of = |name: &str| sizes.get(name).cloned();
        assert_eq!(
            (of("result"), of("rx-max"), of("rx"), of("tx")),
            (Some(true.into()), Some(Value::Int(256)), Some(Value::Int(128)), Some(Value::Int(64)))
        );
        assert_eq!(of("rx-mini-max"), None);
        let none = buffers("netlink error: Operation not supported");
        assert_eq!(none.get("comment"), Some(&"netlink error: Operation not supported".into()));
    }

    #[test]
    fn a_packet_wakes_one_hardware_address() {
        let words = |mac: &str, bcast: Option<&str>, port: Option<i64>| {
            wake_words(&mac.into(), bcast.map(Value::from).as_ref(), port.map(Value::from).as_ref())
        };
        let usual = ["wakeonlan", "-i", "255.255.255.255", "-p", "9", "08:00:27:13:69:77"].map(str::to_owned);
        for mac in ["08-00-27-13-69-77", "080027136977", "08:00:27:13:69:77"] {
            assert_eq!(words(mac, None, None), Ok(usual.clone()), "{mac}");
        }
        let named = words("aabbccddeeff", Some("10.0.0.255"), Some(7)).unwrap();
        assert_eq!(named[2..], ["10.0.0.255", "-p", "7", "aa:bb:cc:dd:ee:ff"]);
        for (mac, bcast, port) in [
            ("0800", None, None),
            ("08-00:27-13-69-77", None, None),
            ("g80027136977", None, None),
            ("é80027136977", None, None),
            ("080027136977", Some("-f/etc/shadow"), None),
            ("080027136977", Some("::1"), None),
            ("080027136977", None, Some(0)),
            ("080027136977", None, Some(70_000)),
        ] {
            assert!(words(mac, bcast, port).is_err(), "{mac} {bcast:?} {port:?}");
        }
    }
}
