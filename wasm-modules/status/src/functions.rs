//! The functions by name.

use brine_guest::Value;
use brine_guest::beacons::table;

use crate::tables;
use crate::wasi::clocks::wall_clock;

/// Calls a function of the module.
///
/// # Errors
/// A table cannot be read, or there is no such function: Python's word for the missing key.
pub fn call(name: &str) -> Result<Value, String> {
    Ok(match name {
        "loadavg" => tables::loadavg(&table("loadavg")?),
        "cpustats" => tables::cpustats(&table("stat")?),
        "meminfo" => tables::meminfo(&table("meminfo")?),
        "vmstats" => tables::vmstats(&table("vmstat")?),
        "cpuinfo" => tables::cpuinfo(&table("cpuinfo")?),
        "diskstats" => tables::diskstats(&table("diskstats")?),
        "netstats" => tables::netstats(&table("net/netstat")?),
        "netdev" => tables::netdev(&table("net/dev")?),
        "version" => table("version")?.trim().into(),
        "uptime" => tables::uptime(&table("uptime")?, wall_clock::now().seconds),
        "time" => tables::time(&table("localtime")?).unwrap_or_default().into(),
        _ => return Err(format!("'status.{name}'")),
    })
}
