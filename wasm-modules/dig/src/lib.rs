//! The module `dig`: questions to name servers. The functions and their documentation are in `wit/world.wit`.
//!
//! - [`ask`]: one question · [`spf`]: records that lead to others

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "dig",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod ask;
mod spf;

use brine_guest::Value;

use ask::{Question, is_address};

struct Module;

fn text(name: &Data) -> Result<String, String> {
    Ok(name.value()?.to_text())
}

/// The lines of an answer; none if the question failed.
fn lines(kind: &str, name: &str, server: Option<&str>) -> Result<Vec<String>, String> {
    let said = Question { kind, name, server }.ask()?;
    Ok(said.map_or_else(Vec::new, |said| said.split('\n').map(str::to_owned).collect()))
}

fn addresses(kind: &str, name: &str, server: Option<&str>) -> Result<Vec<String>, String> {
    let mut found = lines(kind, name, server)?;
    found.retain(|line| is_address(line));
    Ok(found)
}

impl Guest for Module {
    fn check_ip(addr: Data) -> Result<bool, String> {
        Ok(addr.value()?.text().is_some_and(is_address))
    }

    fn a(host: Data, nameserver: Option<String>) -> Result<Vec<String>, String> {
        addresses("A", &text(&host)?, nameserver.as_deref())
    }

    fn aaaa(host: Data, nameserver: Option<String>) -> Result<Vec<String>, String> {
        addresses("AAAA", &text(&host)?, nameserver.as_deref())
    }

    fn ptr(host: Data, nameserver: Option<String>) -> Result<Vec<String>, String> {
        lines("PTR", &text(&host)?, nameserver.as_deref())
    }

    fn cname(host: Data, nameserver: Option<String>) -> Result<Data, String> {
        let said = Question { kind: "CNAME", name: &text(&host)?, server: nameserver.as_deref() }.ask()?;
        Ok(said.map_or(Value::List(Vec::new()), Value::from).into())
    }

    fn ns(domain: Data, resolve: Option<bool>, nameserver: Option<String>) -> Result<Vec<String>, String> {
        let server = nameserver.as_deref();
        let names = lines("NS", &text(&domain)?, server)?;
        if resolve == Some(false) {
            return Ok(names);
        }
        let mut found = Vec::new();
        for name in names.iter().filter(|name| !name.is_empty()) {
            found.extend(addresses("A", name, server)?);
        }
        Ok(found)
    }

    fn spf(domain: Data, record: Option<String>, nameserver: Option<String>) -> Result<Vec<String>, String> {
        let record = record.unwrap_or_else(|| "SPF".into());
        spf::ranges(&text(&domain)?, &record, &mut |kind, name| {
            Question { kind, name, server: nameserver.as_deref() }.ask()
        })
    }

    fn mx(domain: Data, resolve: Option<bool>, nameserver: Option<String>) -> Result<Vec<Vec<String>>, String> {
        let server = nameserver.as_deref();
        let found = lines("MX", &text(&domain)?, server)?;
        let mut found: Vec<Vec<String>> =
            found.iter().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
        if resolve == Some(true) {
            for entry in &mut found {
                let [_, name] = &mut entry[..] else { return Err("there is no mail server".into()) };
                let address = addresses("A", name, server)?.into_iter().next();
                *name = address.ok_or_else(|| format!("{name} has no address"))?;
            }
        }
        Ok(found)
    }

    fn txt(host: Data, nameserver: Option<String>) -> Result<Vec<String>, String> {
        lines("TXT", &text(&host)?, nameserver.as_deref())
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
