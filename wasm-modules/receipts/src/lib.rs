//! The module `receipts`: what this host signed about its jobs. The functions and their documentation are in `wit/world.wit`.

wit_bindgen::generate!({
    world: "receipts",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/receipts@1.0.0": brine_guest::host::receipts,
    },
});

use brine_guest::Value;
use brine_guest::host::receipts;

/// How many a list has if nothing is said, and how many at most.
const LISTED: (u32, u32) = (100, 10_000);
/// The same of an export.
const EXPORTED: (u32, u32) = (1_000, 10_000);
/// More than one job has: only a jid that was given twice has a second one.
const SHOWN: usize = 1_000;

struct Module;

impl Guest for Module {
    fn list(limit: Option<u32>) -> Result<Data, String> {
        let newest = newest("", false, bounded(limit, LISTED)?)?;
        Ok(newest.iter().map(row).collect::<Vec<_>>().into())
    }

    fn show(jid: Data) -> Result<Data, String> {
        let jid = jid.name("jid")?;
        let shown = newest(&jid, false, SHOWN)?;
        if shown.is_empty() {
            return Err(format!("there is no receipt of the job {jid:?} on this host"));
        }
        Ok(shown.into())
    }

    fn verify() -> Result<Data, String> {
        receipts::verify()
    }

    fn export(jid: Option<Data>, limit: Option<u32>) -> Result<Data, String> {
        let jid = jid.map(|jid| jid.name("jid")).transpose()?.unwrap_or_default();
        Ok(newest(&jid, true, bounded(limit, EXPORTED)?)?.into())
    }
}

fn bounded(limit: Option<u32>, (usual, most): (u32, u32)) -> Result<usize, String> {
    match limit.unwrap_or(usual) {
        limit if limit > most => Err(format!("limit is at most {most}; salt-receipt on this host has no bound")),
        limit => Ok(limit as usize),
    }
}

/// The newest receipts, the oldest of them first.
fn newest(jid: &str, evidence: bool, limit: usize) -> Result<Vec<Value>, String> {
    let (mut found, mut place) = (Vec::new(), String::new());
    while found.len() < limit {
        let Value::Dict(page) = receipts::page(&place, jid, evidence)?.value()? else { break };
        let mut next = None;
        for (key, value) in page {
            match (key.text(), value) {
                (Some("receipts"), Value::List(items)) => found.extend(items),
                (Some("next"), Value::Text(text)) => next = Some(text),
                _ => {}
            }
        }
        match next {
            Some(next) => place = next,
            None => break,
        }
    }
    found.truncate(limit);
    found.reverse();
    Ok(found)
}

/// A receipt in a list.
fn row(receipt: &Value) -> Value {
    let field = |name: &str| receipt.get(name).cloned().unwrap_or_default();
    let calls = match receipt.get("calls") {
        Some(Value::List(calls)) => calls.iter().filter_map(|call| call.get("function").cloned()).collect(),
        _ => Vec::new(),
    };
    Value::dict([
        ("end", field("end")),
        ("jid", field("jid")),
        ("functions", Value::List(calls)),
        ("outcome", field("outcome")),
        ("retcode", field("retcode")),
        ("master", field("master")),
    ])
}

export!(Module);
