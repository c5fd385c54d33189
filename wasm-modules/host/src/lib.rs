//! The module `host`: states of `/etc/hosts`. Their documentation is in `wit/world.wit`, the file in
//! [`brine_formats::hosts`]; the functions are in the module `hosts`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "host",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

use std::net::IpAddr;

use brine_formats::hosts::Hosts;
use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run, no_changes};

use exports::states::Guest;

struct Module;

/// Addresses, each with what was added to it or removed from it.
type ByAddress = Vec<(String, Vec<String>)>;

/// What a state came to.
struct Outcome {
    result: Option<bool>,
    comments: Vec<String>,
    /// By kind of change.
    changes: Vec<(&'static str, ByAddress)>,
}

impl Outcome {
    fn changed(&mut self, kind: &'static str, ip: &str, text: &str) {
        if !self.changes.iter().any(|(known, _)| *known == kind) {
            self.changes.push((kind, Vec::new()));
        }
        let Some((_, of_kind)) = self.changes.iter_mut().find(|(known, _)| *known == kind) else { return };
        match of_kind.iter_mut().find(|(known, _)| known == ip) {
            Some((_, texts)) => texts.push(text.to_owned()),
            None => of_kind.push((ip.to_owned(), vec![text.to_owned()])),
        }
    }

    fn finish(self, warnings: Vec<String>) -> StateResult {
        let of_kind = |entries: ByAddress| {
            Value::Dict(entries.into_iter().map(|(ip, texts)| (ip.into(), texts.into())).collect())
        };
        let changes = self.changes.into_iter().map(|(kind, entries)| (kind.into(), of_kind(entries))).collect();
        StateResult { warnings, ..StateResult::new(self.result, self.comments.join("\n"), Value::Dict(changes)) }
    }
}

impl Guest for Module {
    fn present(name: String, ip: Data, comment: Option<String>, clean: Option<bool>) -> Result<StateResult, String> {
        let wanted = texts(&ip)?;
        let comment = comment.filter(|comment| !comment.is_empty());
        let mut hosts = Hosts::open()?;
        let known = hosts.addresses();
        let mut outcome = Outcome { result: Some(true), comments: Vec::new(), changes: Vec::new() };
        let (mut warnings, mut add, mut comment_of, mut remove) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for ip in wanted.iter().filter(|ip| !known.iter().any(|(known, ..)| known == *ip)) {
            add.push(ip.clone());
            comment_of.extend(comment.is_some().then(|| ip.clone()));
        }
        for (ip, aliases, old_comment) in &known {
            let has = aliases.contains(&name);
            if !wanted.contains(ip) {
                if has && clean == Some(true) {
                    remove.push(ip.clone());
                } else if has {
                    warnings.push(format!(
                        "Host {name} present for IP address {ip}. To get rid of this warning, either run this state \
                         with 'clean' set to True to remove {name} from {ip}, or add {ip} to the 'ip' argument."
                    ));
                }
            } else if has {
                match &comment {
                    Some(comment) if old_comment.as_ref() != Some(comment) => comment_of.push(ip.clone()),
                    _ => outcome.comments.push(format!("Host {name} ({ip}) already present")),
                }
            } else if ip.parse::<IpAddr>().is_ok() {
                add.push(ip.clone());
                comment_of.extend(comment.is_some().then(|| ip.clone()));
            } else {
                outcome.result = Some(false);
                outcome.comments.push(format!("Invalid IP Address for {name} ({ip})"));
            }
        }
        let dry_run = is_dry_run();
        for ip in &add {
            if dry_run {
                outcome.result = None;
                outcome.comments.push(format!("Host {name} ({ip}) would be added"));
            } else {
                hosts.add(ip, &name)?;
                outcome.comments.push(format!("Added host {name} ({ip})"));
            }
            outcome.changed("added", ip, &name);
        }
        for ip in &comment_of {
            let comment = comment.as_deref().unwrap_or_default();
            if dry_run {
                outcome.comments.push(format!("Comment for {ip} ({comment}) would be added"));
            } else if hosts.set_comment(ip, comment)? {
                outcome.comments.push(format!("Set comment for host {ip} ({comment})"));
            } else {
                outcome.result = Some(false);
                outcome.comments.push(format!("Failed to add comment for host {ip} ({comment})"));
                continue;
            }
            outcome.changed("comment_added", ip, comment);
        }
        for ip in &remove {
            if dry_run {
                outcome.result = None;
                outcome.comments.push(format!("Host {name} ({ip}) would be removed"));
            } else {
                hosts.remove(ip, &name);
                outcome.comments.push(format!("Removed host {name} ({ip})"));
            }
            outcome.changed("removed", ip, &name);
        }
        save(hosts)?;
        Ok(outcome.finish(warnings))
    }

    fn absent(name: String, ip: Data) -> Result<StateResult, String> {
        let mut hosts = Hosts::open()?;
        let (mut result, mut comments, mut changes) = (None, Vec::new(), no_changes());
        for ip in texts(&ip)? {
            if !hosts.has(&ip, std::slice::from_ref(&name)) {
                result = Some(true);
                comments.push(format!("Host {name} ({ip}) already absent"));
            } else if is_dry_run() {
                comments.push(format!("Host {name} ({ip}) needs to be removed"));
            } else {
                hosts.remove(&ip, &name);
                result = Some(true);
                changes = Value::dict([("host", name.as_str().into())]);
                comments.push(format!("Removed host {name} ({ip})"));
            }
        }
        save(hosts)?;
        Ok(StateResult::new(result, comments.join("\n"), changes))
    }

    fn only(name: String, hostnames: Data) -> Result<StateResult, String> {
        let mut hosts = Hosts::open()?;
        let old = hosts.aliases(&name).unwrap_or_default().join(" ");
        let new = texts(&hostnames)?.iter().map(|name| name.trim()).collect::<Vec<_>>().join(" ");
        if old == new {
            return Ok(StateResult::good(format!("IP address {name} already set to \"{new}\"")));
        }
        if is_dry_run() {
            let comment = format!("Would change {name} from \"{old}\" to \"{new}\"");
            return Ok(StateResult::would(comment, no_changes()));
        }
        hosts.set(&name, &new, None)?;
        hosts.save()?;
        let comment = format!("successfully changed {name} from \"{old}\" to \"{new}\"");
        let change = Value::dict([("old", old.into()), ("new", new.into())]);
        Ok(StateResult::changed(comment, Value::Dict(vec![(name.into(), change)])))
    }
}

fn save(hosts: Hosts) -> Result<(), String> {
    if is_dry_run() { Ok(()) } else { hosts.save() }
}

/// A list of texts, or one.
fn texts(value: &Data) -> Result<Vec<String>, String> {
    Ok(match value.value()? {
        Value::List(items) => items.iter().map(Value::to_text).collect(),
        one => vec![one.to_text()],
    })
}

#[cfg(target_family = "wasm")]
export!(Module);
