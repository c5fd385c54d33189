//! The module `ps`: processes and the kernel's counters, and a beacon. The functions and their documentation are in
//! `wit/world.wit`.
//!
//! - [`processes`] what runs · [`signals`] to what runs · [`users`] who is logged in · [`counters`] memory, processors,
//!   networks and disks · [`beacon`]

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "ps",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/disks@1.0.0": brine_guest::host::disks,
        "brine:host/kernel@1.0.0": brine_guest::host::kernel,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod beacon;
mod counters;
mod processes;
mod signals;
mod users;

use brine_guest::beacons::table;
use brine_guest::host::disks;
use brine_guest::program::Program;
use brine_guest::{Value, changes};
use wasi::clocks::monotonic_clock::subscribe_duration;

use counters::{Cpu, cpus};

struct Module;

type Answer = Result<Data, String>;

fn wait(seconds: f64) -> Result<(), String> {
    if seconds.is_nan() || seconds < 0.0 {
        return Err(format!("interval is not positive (got {seconds})"));
    }
    // The cast saturates at the type's greatest number, which exceeds the job's time limit anyway.
    subscribe_duration((seconds * 1e9) as u64).block();
    Ok(())
}

/// Of a file system: the fields, as psutil has them.
type Partition = Vec<(Value, Value)>;

/// File systems by where they are mounted.
fn partitions(all: bool) -> Result<Vec<(String, Partition)>, String> {
    let known = table("filesystems")?;
    let on_device = |fstype: &str| counters::is_on_device(&known, fstype);
    let mounts = disks::mounts()?.into_iter().filter(|mount| all || on_device(&mount.fstype) && mount.device != "none");
    let shown = mounts.map(|mount| {
        let device = if mount.device == "none" { String::new() } else { mount.device };
        let entries = [
            ("device", Value::from(device)),
            ("mountpoint", mount.mount_point.as_str().into()),
            ("fstype", mount.fstype.into()),
            ("opts", mount.options.join(",").into()),
        ];
        (mount.mount_point, entries.map(|(key, value)| (key.into(), value)).into())
    });
    Ok(shown.collect())
}

fn space(mount_point: &str) -> Result<[(&'static str, Value); 4], String> {
    let space = disks::usage(mount_point)?;
    let bytes = |blocks: u64| blocks.saturating_mul(space.block_size);
    let (total, free) = (bytes(space.blocks), bytes(space.blocks_available));
    let used = total.saturating_sub(bytes(space.blocks_free));
    Ok(counters::space(total, used, free))
}

/// The processes whose name, or with `full` whose command line, matches, of a user if one is named.
fn found(pattern: Data, user: Option<Data>, full: bool, is_regex: bool) -> Result<Vec<i64>, String> {
    let text = pattern.value()?.to_text();
    let user = user.map(|user| user.value()).transpose()?.filter(|user| *user != Value::None);
    let user = user.map(|user| user.to_text());
    let is_meant = processes::pattern(&text, is_regex)?;
    let arguments = if full { Some(processes::arguments()?) } else { None };
    let mut found = Vec::new();
    for process in processes::all()? {
        let line = match &arguments {
            Some(arguments) => arguments.get(&process.pid).map(|words| words.join(" ")).unwrap_or_default(),
            None => process.name.clone(),
        };
        if is_meant(&line) && user.as_ref().is_none_or(|user| *user == process.user) {
            found.push(process.pid);
        }
    }
    Ok(found)
}

/// Numbers of processes, None for none of them.
fn numbers(pids: &[i64]) -> Value {
    if pids.is_empty() { Value::None } else { Value::List(pids.iter().map(|pid| Value::from(*pid)).collect()) }
}

impl Guest for Module {
    fn top(num_processes: Option<u32>, interval: Option<f64>) -> Answer {
        let before = processes::all()?;
        wait(interval.unwrap_or(3.0))?;
        let boot = counters::boot_time(&table("stat")?)?;
        Ok(processes::top(&before, &processes::all()?, num_processes.unwrap_or(5) as usize, boot).into())
    }

    fn get_pid_list() -> Answer {
        Ok(Value::List(processes::all()?.iter().map(|process| process.pid.into()).collect()).into())
    }

    fn proc_info(pid: u32, attrs: Option<Data>) -> Answer {
        let attrs = match attrs.map(|attrs| attrs.value()).transpose()? {
            None | Some(Value::None) => None,
            Some(Value::List(attrs)) => Some(attrs.iter().map(Value::to_text).collect::<Vec<_>>()),
            Some(other) => return Err(format!("invalid attrs type {}", other.kind())),
        };
        let all = processes::all()?;
        let process = all.iter().find(|process| process.pid == i64::from(pid));
        let process = process.ok_or_else(|| format!("process PID not found (pid={pid})"))?;
        process.info(attrs.as_deref(), counters::boot_time(&table("stat")?)?).map(Data::from)
    }

    fn pgrep(pattern: Data, user: Option<Data>, full: Option<bool>, pattern_is_regex: Option<bool>) -> Answer {
        Ok(numbers(&found(pattern, user, full == Some(true), pattern_is_regex == Some(true))?).into())
    }

    fn kill_pid(pid: i64, signal: Option<i64>) -> Result<bool, String> {
        signals::send(pid, signals::number(signal)?)
    }

    fn pkill(pattern: Data, user: Option<Data>, signal: Option<i64>, full: Option<bool>) -> Answer {
        let (signal, full, mut reached) = (signals::number(signal)?, full == Some(true), Vec::new());
        let places: Vec<_> = processes::all()?.iter().map(processes::Process::place).collect();
        let own = signals::own(&places, full);
        let mut meant = found(pattern, user, full, false)?;
        meant.retain(|pid| !own.contains(pid));
        for pid in signals::bounded(meant)? {
            if signals::send(pid, signal)? {
                reached.push(pid);
            }
        }
        Ok(match numbers(&reached) {
            Value::None => Value::None,
            reached => Value::dict([("killed", reached)]),
        }
        .into())
    }

    fn get_users() -> Answer {
        Ok(Value::List(users::parse(&changes::read(users::FILE)?.unwrap_or_default())).into())
    }

    fn status(status: String) -> Answer {
        if status.is_empty() {
            return Err("Filter is required for ps.status".into());
        }
        let shown = processes::all()?.into_iter().filter(|process| process.status() == status);
        let shown = shown.map(|process| Value::dict([("pid", process.pid.into()), ("name", process.name.into())]));
        Ok(Value::List(shown.collect()).into())
    }

    fn cpu_percent(interval: Option<f64>, per_cpu: Option<bool>) -> Answer {
        let before = cpus(&table("stat")?);
        wait(interval.unwrap_or(0.1))?;
        let after = cpus(&table("stat")?);
        let pairs = before.iter().zip(&after).map(|(before, after)| Value::Float(Cpu::busy(before, after)));
        // The first line is of all of them.
        let mut shown: Vec<Value> = pairs.collect();
        if shown.is_empty() {
            return Err("the kernel says nothing of processors".into());
        }
        let all = shown.remove(0);
        Ok(if per_cpu == Some(true) { Value::List(shown) } else { all }.into())
    }

    fn cpu_times(per_cpu: Option<bool>) -> Answer {
        let mut shown: Vec<Value> = cpus(&table("stat")?).iter().map(Cpu::value).collect();
        if shown.is_empty() {
            return Err("the kernel says nothing of processors".into());
        }
        let all = shown.remove(0);
        Ok(if per_cpu == Some(true) { Value::List(shown) } else { all }.into())
    }

    fn virtual_memory() -> Answer {
        counters::memory(&table("meminfo")?).map(Data::from)
    }

    fn swap_memory() -> Answer {
        counters::swap(&table("meminfo")?, &table("vmstat")?).map(Data::from)
    }

    fn disk_partitions(all: Option<bool>) -> Answer {
        let shown = partitions(all == Some(true))?.into_iter().map(|(_, entries)| Value::Dict(entries));
        Ok(Value::List(shown.collect()).into())
    }

    fn disk_usage(path: String) -> Answer {
        let mounts = disks::mounts()?;
        let holds = |point: &str| {
            let rest = path.strip_prefix(point.trim_end_matches('/'));
            path.starts_with('/') && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // The deepest, and of those in one place the one that hides the others.
        let points = mounts.iter().map(|mount| mount.mount_point.as_str()).filter(|point| holds(point));
        let point = points.max_by_key(|point| point.len());
        let point = point.ok_or_else(|| format!("[Errno 2] No such file or directory: '{path}'"))?;
        Ok(Value::dict(space(point)?).into())
    }

    fn disk_partition_usage(all: Option<bool>) -> Answer {
        let mut shown = Vec::new();
        for (point, mut entries) in partitions(all == Some(true))? {
            entries.extend(space(&point)?.map(|(key, value)| (key.into(), value)));
            shown.push(Value::Dict(entries));
        }
        Ok(Value::List(shown).into())
    }

    fn total_physical_memory() -> Answer {
        let memory = counters::memory(&table("meminfo")?)?;
        Ok(memory.get("total").cloned().unwrap_or_default().into())
    }

    fn num_cpus() -> Answer {
        // One line is of all of them.
        let count = cpus(&table("stat")?).len().saturating_sub(1);
        Ok(i64::try_from(count).unwrap_or_default().into())
    }

    fn boot_time(time_format: Option<String>) -> Answer {
        let time = counters::boot_time(&table("stat")?)? as i64;
        match time_format.filter(|format| !format.is_empty()) {
            None => Ok(time.into()),
            Some(format) => {
                let program =
                    Program::new(["/usr/bin/date".to_owned(), format!("--date=@{time}"), format!("+{format}")]);
                Ok(program.run()?.ok()?.into())
            }
        }
    }

    fn network_io_counters(interface: Option<String>) -> Answer {
        Ok(counters::network(&table("net/dev")?, interface.as_deref().filter(|name| !name.is_empty())).into())
    }

    fn disk_io_counters(device: Option<String>) -> Answer {
        Ok(counters::disks(&table("diskstats")?, device.as_deref().filter(|name| !name.is_empty())).into())
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
