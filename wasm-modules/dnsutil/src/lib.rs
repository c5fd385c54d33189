//! The module `dnsutil`: serial numbers of zones, zone files and hosts files. The functions and their documentation are in
//! `wit/world.wit`. Name servers are asked by the module `dig`, as in Salt.
//!
//! - [`hosts`], [`zone`] the two kinds of files

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "dnsutil",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/kernel@1.0.0": brine_guest::host::kernel,
    },
    generate_all,
});

mod hosts;
mod zone;

use brine_guest::Value;
use brine_guest::changes::{self, Put};
use brine_guest::host::{functions, grains, kernel};

struct Module;

/// The file where no other is named.
const HOSTS: &str = "/etc/hosts";

/// Asks the module `dig`, with its own grants.
fn dig(function: &str, name: Data, options: &[(&str, Option<Value>)]) -> Result<Data, String> {
    let given = options.iter().filter_map(|(name, value)| Some((*name, value.clone()?)));
    functions::call(&format!("dig.{function}"), &[name], &Value::dict(given).into())
}

fn server(nameserver: Option<String>) -> (&'static str, Option<Value>) {
    ("nameserver", nameserver.map(Value::from))
}

/// Today's first serial number, by the host's clock and time zone.
fn first_of_today() -> Result<String, String> {
    let now = kernel::read("localtime")?;
    let digits: String = now.iter().map(|byte| char::from(*byte)).filter(char::is_ascii_digit).take(8).collect();
    Ok(digits + "01")
}

/// The next serial number.
fn next(stored: &str, first: String) -> Result<String, String> {
    if stored.is_empty() || stored < first.as_str() {
        return Ok(first);
    }
    let number = stored.trim().parse::<u128>();
    let number = number.map_err(|_| format!("invalid literal for int() with base 10: '{stored}'"))?;
    Ok((number + 1).to_string())
}

fn names(entries: Option<String>) -> Result<Vec<String>, String> {
    let entries = entries.ok_or("there are no entries")?;
    Ok(entries.split(',').map(str::to_owned).collect())
}

impl Guest for Module {
    fn serial(zone: Option<String>, update: Option<bool>) -> Result<Data, String> {
        let key = match zone.filter(|zone| !zone.is_empty()) {
            Some(zone) => format!("dnsserial_{zone}"),
            None => "dnsserial".to_owned(),
        };
        let stored = grains::get(&key, None);
        let value = stored.as_ref().map_or(Ok(Value::None), Data::value)?;
        let first = first_of_today()?;
        if update != Some(true) {
            return Ok(if value.truthy() { value.into() } else { first.into() });
        }
        let stored = if value.truthy() { value.to_text() } else { String::new() };
        let current = next(&stored, first)?;
        let arguments = Value::dict([("key", key.into()), ("val", current.as_str().into())]);
        functions::call("grains.setval", &[], &arguments.into())?;
        Ok(current.into())
    }

    fn parse_hosts(hostsfile: Option<String>, text: Option<String>) -> Result<Data, String> {
        let text = match text.filter(|text| !text.is_empty()) {
            Some(text) => Some(text),
            None => changes::read_text(hostsfile.as_deref().unwrap_or(HOSTS))?,
        };
        match text {
            Some(text) => Ok(hosts::parse(&text)?.into()),
            None => Ok("Error: hosts data was not found".into()),
        }
    }

    fn hosts_append(
        hostsfile: Option<String>,
        ip_addr: Option<String>,
        entries: Option<String>,
    ) -> Result<String, String> {
        let path = hostsfile.as_deref().unwrap_or(HOSTS);
        let old = changes::read_text(path)?;
        let text = old.clone().unwrap_or_default();
        let ip = ip_addr.unwrap_or_else(|| "None".to_owned());
        let known = hosts::names_of(&text, &ip)?;
        let mut wanted = names(entries)?;
        wanted.retain(|name| !known.contains(name));
        if wanted.is_empty() {
            return Ok(format!("No additional hosts were added to {path}"));
        }
        let line = format!("\n{ip} {}", wanted.join(" "));
        let content = format!("{text}{line}");
        Put::new(path).follow(true).instead_of(old.as_deref().map(str::as_bytes)).text(&content)?;
        Ok(format!("The following line was added to {path}:{line}"))
    }

    fn hosts_remove(hostsfile: Option<String>, entries: Option<String>) -> Result<(), String> {
        let path = hostsfile.as_deref().unwrap_or(HOSTS);
        let old = changes::read_text(path)?;
        let old = old.ok_or_else(|| format!("[Errno 2] No such file or directory: '{path}'"))?;
        let new = hosts::without(&old, &names(entries)?);
        if new != old {
            Put::new(path).follow(true).instead_of(Some(old.as_bytes())).text(&new)?;
        }
        Ok(())
    }

    fn parse_zone(zonefile: Option<String>, text: Option<String>) -> Result<Data, String> {
        let read = match zonefile.filter(|file| !file.is_empty()) {
            Some(file) => changes::read_text(&file)?,
            None => None,
        };
        match read.or(text).filter(|text| !text.is_empty()) {
            Some(text) => Ok(zone::parse(&text)?.into()),
            None => Ok("Error: Zone data was not found".into()),
        }
    }

    fn check_ip(ip_addr: Data) -> Result<bool, String> {
        Ok(ip_addr.value()?.text().is_some_and(|text| text.parse::<std::net::IpAddr>().is_ok()))
    }

    fn a(host: Data, nameserver: Option<String>) -> Result<Data, String> {
        dig("A", host, &[server(nameserver)])
    }

    fn aaaa(host: Data, nameserver: Option<String>) -> Result<Data, String> {
        dig("AAAA", host, &[server(nameserver)])
    }

    fn ns(domain: Data, resolve: Option<bool>, nameserver: Option<String>) -> Result<Data, String> {
        dig("NS", domain, &[("resolve", resolve.map(Value::Bool)), server(nameserver)])
    }

    fn spf(domain: Data, record: Option<String>, nameserver: Option<String>) -> Result<Data, String> {
        dig("SPF", domain, &[("record", record.map(Value::from)), server(nameserver)])
    }

    fn mx(domain: Data, resolve: Option<bool>, nameserver: Option<String>) -> Result<Data, String> {
        dig("MX", domain, &[("resolve", resolve.map(Value::Bool)), server(nameserver)])
    }
}

#[cfg(target_family = "wasm")]
export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serials_grow() {
        let next = |stored: &str| next(stored, "2026112801".into());
        assert_eq!(next(""), Ok("2026112801".into()));
        assert_eq!(next("2026112709"), Ok("2026112801".into()));
        assert_eq!(next("2026112801"), Ok("2026112802".into()));
        assert_eq!(next("2027010199"), Ok("2027010200".into()));
        assert!(next("never").is_err());
    }
}
