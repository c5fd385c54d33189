//! The module `publish`: jobs for other minions, through the master. The functions and their documentation are in `wit/world.wit`.

wit_bindgen::generate!({
    world: "publish",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/publish@1.0.0": brine_guest::host::publish,
    },
    generate_all,
});

use std::collections::HashSet;
use std::time::Duration;

use brine_guest::Value;
use brine_guest::host::publish;
use wasi::clocks::monotonic_clock::{now, subscribe_duration};

/// Nanoseconds between two questions to the master, as in Salt.
const INTERVAL: u64 = 300_000_000;
/// Seconds to wait for returns if nothing is said, and at most.
const TIMEOUT: (f64, f64) = (5.0, 3_600.0);

struct Module;

/// What a job is asked to be.
struct Asked {
    tgt: Data,
    fun: String,
    arg: Option<Data>,
    tgt_type: Option<String>,
    returner: Option<String>,
    timeout: Option<f64>,
}

impl Guest for Module {
    fn publish(
        tgt: Data,
        fun: String,
        arg: Option<Data>,
        tgt_type: Option<String>,
        returner: Option<String>,
        timeout: Option<f64>,
        via_master: Option<String>,
    ) -> Result<Data, String> {
        if via_master.is_some_and(|master| !master.is_empty()) {
            return Err("via_master has no effect here: a job is published by the master that it came from".to_owned());
        }
        let returns = returned(Asked { tgt, fun, arg, tgt_type, returner, timeout })?;
        let Value::Dict(returns) = returns else { return Ok(returns.into()) };
        let clean = returns.into_iter().map(|(minion, told)| {
            let ret = told.get("ret").cloned().unwrap_or_default();
            (minion, ret)
        });
        Ok(Value::Dict(clean.collect()).into())
    }

    fn full_data(
        tgt: Data,
        fun: String,
        arg: Option<Data>,
        tgt_type: Option<String>,
        returner: Option<String>,
        timeout: Option<f64>,
    ) -> Result<Data, String> {
        Ok(returned(Asked { tgt, fun, arg, tgt_type, returner, timeout })?.into())
    }

    fn runner(fun: String, arg: Option<Data>, timeout: Option<f64>) -> Result<Data, String> {
        publish::runner(&fun, &arguments(arg)?, whole(seconds(timeout)?))
    }
}

/// Publishes a job, and returns what each minion returned until all have or the time is over. As in Salt, this is an empty dict for a job that
/// the master does not permit, and none for one that no minion is meant by.
fn returned(asked: Asked) -> Result<Value, String> {
    let nothing = || Value::Dict(Vec::new());
    // The master refuses it too: minions that publish to each other would never end.
    if asked.fun.starts_with("publish.") {
        return Ok(nothing());
    }
    let timeout = seconds(asked.timeout)?;
    let published = publish::job(
        &asked.tgt,
        asked.tgt_type.as_deref().unwrap_or("glob"),
        &asked.fun,
        &arguments(asked.arg)?,
        asked.returner.as_deref().unwrap_or_default(),
        whole(timeout),
    )?;
    let Some(published) = published else { return Ok(nothing()) };
    if published.minions.is_empty() {
        return Ok(Value::None);
    }
    let meant: HashSet<&str> = published.minions.iter().map(String::as_str).collect();
    let wait = u64::try_from(Duration::from_secs_f64(timeout).as_nanos()).unwrap_or(u64::MAX);
    let end = now().saturating_add(wait);
    loop {
        let Value::Dict(returns) = publish::returns(&published.jid)?.value()? else { return Ok(nothing()) };
        let here: HashSet<&str> = returns.iter().filter_map(|(minion, _)| minion.text()).collect();
        if meant.is_subset(&here) || now() >= end {
            return Ok(Value::Dict(returns));
        }
        subscribe_duration(INTERVAL).block();
    }
}

/// The arguments of a job: one that is no list is the only one.
fn arguments(arg: Option<Data>) -> Result<Vec<Data>, String> {
    Ok(match arg.map(|arg| arg.value()).transpose()? {
        None | Some(Value::None) => Vec::new(),
        Some(Value::List(args)) => args.into_iter().map(Data::from).collect(),
        Some(arg) => vec![arg.into()],
    })
}

fn seconds(timeout: Option<f64>) -> Result<f64, String> {
    let (usual, most) = TIMEOUT;
    match timeout.unwrap_or(usual) {
        timeout if (0.0..=most).contains(&timeout) => Ok(timeout),
        timeout => Err(format!("timeout is a number of seconds from 0 to {most}, not {timeout}")),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to TIMEOUT")]
fn whole(seconds: f64) -> u32 {
    seconds.ceil() as u32
}

export!(Module);
