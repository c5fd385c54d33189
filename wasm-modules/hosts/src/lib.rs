//! The module `hosts`: `/etc/hosts`. The functions and their documentation are in `wit/world.wit`, the file in
//! [`brine_formats::hosts`]; the states are in the module `host`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "hosts",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

use brine_formats::hosts::Hosts;
use brine_guest::Value;

struct Module;

impl Guest for Module {
    fn list_hosts() -> Result<Data, String> {
        Ok(Hosts::open()?.value().into())
    }

    fn get_ip(host: String) -> Result<String, String> {
        let found = Hosts::open()?.addresses().into_iter().find(|(_, aliases, _)| aliases.contains(&host));
        Ok(found.map(|(ip, ..)| ip).unwrap_or_default())
    }

    fn get_alias(ip: String) -> Result<Vec<String>, String> {
        Ok(Hosts::open()?.aliases(&ip).unwrap_or_default())
    }

    fn has_pair(ip: String, alias: Data) -> Result<bool, String> {
        let names = match alias.value()? {
            Value::List(names) => names.iter().map(Value::to_text).collect(),
            name => vec![name.to_text()],
        };
        Ok(Hosts::open()?.has(&ip, &names))
    }

    fn set_host(ip: String, alias: String, comment: Option<String>) -> Result<bool, String> {
        edit(|hosts| hosts.set(&ip, &alias, comment.as_deref()).map(|()| true))
    }

    fn rm_host(ip: String, alias: String) -> Result<bool, String> {
        edit(|hosts| {
            hosts.remove(&ip, &alias);
            Ok(true)
        })
    }

    fn add_host(ip: String, alias: String) -> Result<bool, String> {
        edit(|hosts| hosts.add(&ip, &alias).map(|()| true))
    }

    fn set_comment(ip: String, comment: String) -> Result<bool, String> {
        edit(|hosts| hosts.set_comment(&ip, &comment))
    }
}

fn edit(edit: impl Fn(&mut Hosts) -> Result<bool, String>) -> Result<bool, String> {
    let mut hosts = Hosts::open()?;
    let done = edit(&mut hosts)?;
    hosts.save()?;
    Ok(done)
}

#[cfg(target_family = "wasm")]
export!(Module);
