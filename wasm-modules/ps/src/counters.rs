//! The kernel's counters, with psutil's names and units.

use brine_guest::Value;
use brine_guest::beacons::part;

/// The kernel counts in hundredths of a second.
const TICKS: f64 = 100.0;
/// The kernel's sectors, whatever the disk has.
const SECTOR: i64 = 512;
/// psutil takes the pages of swap as this large everywhere.
const SWAP_PAGE: i64 = 4_096;

/// Ticks of a processor, or of all of them.
pub(crate) struct Cpu([f64; 10]);

const STATES: [&str; 10] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];

/// All together, then each.
pub(crate) fn cpus(stat: &str) -> Vec<Cpu> {
    let lines = stat.lines().filter(|line| line.starts_with("cpu"));
    let parsed = lines.map(|line| {
        let mut ticks = [0.0; 10];
        for (slot, word) in ticks.iter_mut().zip(line.split_whitespace().skip(1)) {
            *slot = word.parse().unwrap_or(0.0);
        }
        Cpu(ticks)
    });
    parsed.collect()
}

impl Cpu {
    pub(crate) fn value(&self) -> Value {
        Value::dict(STATES.iter().zip(self.0).map(|(state, ticks)| (*state, Value::Float(ticks / TICKS))))
    }

    /// How busy it was between two looks, in percent.
    pub(crate) fn busy(before: &Self, after: &Self) -> f64 {
        let spent: Vec<f64> = before.0.iter().zip(after.0).map(|(before, after)| (after - before).max(0.0)).collect();
        // What guests use is in `user` and `nice` too.
        let all: f64 = spent[..8].iter().sum();
        part(all - spent[3] - spent[4], all)
    }
}

fn kilobytes(meminfo: &str, name: &str) -> Option<i64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

pub(crate) fn memory(meminfo: &str) -> Result<Value, String> {
    let bytes = |name: &str| kilobytes(meminfo, name).map(|number| number.saturating_mul(1_024));
    let some = |name: &str| bytes(name).unwrap_or(0);
    let total = bytes("MemTotal").ok_or("the kernel does not say how much memory there is")?;
    let free = some("MemFree");
    let available = bytes("MemAvailable").unwrap_or(free);
    let available = if available > total { free } else { available };
    Ok(Value::dict([
        ("total", total.into()),
        ("available", available.into()),
        ("percent", Value::Float(part((total - available) as f64, total as f64))),
        ("used", (total - available).into()),
        ("free", free.into()),
        ("active", some("Active").into()),
        ("inactive", some("Inactive").into()),
        ("buffers", some("Buffers").into()),
        ("cached", (some("Cached") + some("SReclaimable")).into()),
        ("shared", some("Shmem").into()),
        ("slab", some("Slab").into()),
    ]))
}

pub(crate) fn swap(meminfo: &str, vmstat: &str) -> Result<Value, String> {
    let bytes = |name: &str| kilobytes(meminfo, name).map(|number| number.saturating_mul(1_024));
    let (total, free) = bytes("SwapTotal").zip(bytes("SwapFree")).ok_or("the kernel says nothing of swap")?;
    let pages = |name: &str| {
        let line = vmstat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.trim().parse::<i64>().ok()).unwrap_or(0).saturating_mul(SWAP_PAGE)
    };
    Ok(Value::dict([
        ("total", total.into()),
        ("used", (total - free).into()),
        ("free", free.into()),
        ("percent", Value::Float(part((total - free) as f64, total as f64))),
        ("sin", pages("pswpin").into()),
        ("sout", pages("pswpout").into()),
    ]))
}

/// When the host started, in seconds since 1970.
pub(crate) fn boot_time(stat: &str) -> Result<f64, String> {
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "));
    line.and_then(|text| text.trim().parse().ok()).ok_or_else(|| "the kernel does not say when it started".to_owned())
}

/// Whether a kind of file system is on a device, by the table `filesystems`.
pub(crate) fn is_on_device(table: &str, fstype: &str) -> bool {
    fstype == "zfs" && table.lines().any(|line| line.trim() == "nodev\tzfs")
        || table.lines().any(|line| !line.starts_with("nodev") && line.trim() == fstype)
}

pub(crate) fn space(total: u64, used: u64, free: u64) -> [(&'static str, Value); 4] {
    let number = |bytes: u64| i64::try_from(bytes).map_or(Value::Big(bytes), Value::Int);
    // Of what users may have: the rest is root's.
    let percent = part(used as f64, used.saturating_add(free) as f64);
    [("total", number(total)), ("used", number(used)), ("free", number(free)), ("percent", Value::Float(percent))]
}

/// The sums of some columns, or those of one row; False if there is no such row.
fn sums(rows: Vec<(String, Vec<i64>)>, wanted: Option<&str>, names: &[(&'static str, usize, i64)]) -> Value {
    let meant: Vec<_> = rows.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name)).collect();
    if wanted.is_some() && meant.is_empty() {
        return false.into();
    }
    let sum =
        |at: usize| meant.iter().filter_map(|(_, row)| row.get(at)).fold(0_i64, |all, one| all.saturating_add(*one));
    Value::dict(names.iter().map(|(name, at, factor)| (*name, sum(*at).saturating_mul(*factor).into())))
}

pub(crate) fn network(table: &str, interface: Option<&str>) -> Value {
    let rows = table.lines().skip(2).filter_map(|line| {
        let (name, numbers) = line.rsplit_once(':')?;
        let numbers = numbers.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        Some((name.trim().to_owned(), numbers))
    });
    const NAMES: [(&str, usize, i64); 8] = [
        ("bytes_sent", 8, 1),
        ("bytes_recv", 0, 1),
        ("packets_sent", 9, 1),
        ("packets_recv", 1, 1),
        ("errin", 2, 1),
        ("errout", 10, 1),
        ("dropin", 3, 1),
        ("dropout", 11, 1),
    ];
    sums(rows.collect(), interface, &NAMES)
}

pub(crate) fn disks(table: &str, device: Option<&str>) -> Value {
    let rows: Vec<(String, Vec<i64>)> = table
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let numbers = words.get(3..)?.iter().map(|word| word.parse().unwrap_or(0)).collect();
            Some((words[2].to_owned(), numbers))
        })
        .collect();
    let names: Vec<String> = rows.iter().map(|(name, _)| name.clone()).collect();
    let whole = rows.into_iter().filter(|(name, _)| device.is_some() || !is_partition(name, &names));
    const NAMES: [(&str, usize, i64); 9] = [
        ("read_count", 0, 1),
        ("write_count", 4, 1),
        ("read_bytes", 2, SECTOR),
        ("write_bytes", 6, SECTOR),
        ("read_time", 3, 1),
        ("write_time", 7, 1),
        ("read_merged_count", 1, 1),
        ("write_merged_count", 5, 1),
        ("busy_time", 9, 1),
    ];
    sums(whole.collect(), device, &NAMES)
}

/// Whether a device is a part of another: `sda1` of `sda`, `nvme0n1p1` of `nvme0n1`. The disk counts it too.
fn is_partition(name: &str, all: &[String]) -> bool {
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if disk == name {
        return false;
    }
    match disk.strip_suffix('p').filter(|disk| disk.ends_with(|c: char| c.is_ascii_digit())) {
        Some(disk) => all.iter().any(|other| other == disk),
        None => all.iter().any(|other| other == disk),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_busy_or_idle() {
        let before = cpus("cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 10 0 10 80 0 0 0 0 0 0\nintr 1\n");
        let after = cpus("cpu  20 0 20 160 20 0 0 0 5 0\n");
        assert_eq!(before.len(), 2);
        assert_eq!(Cpu::busy(&before[0], &after[0]), 16.7);
        assert_eq!(Cpu::busy(&before[0], &before[0]), 0.0);
    }

    #[test]
    fn partitions_are_counted_with_their_disk() {
        let table = "8 0 sda 1 0 2 0 3 0 4 0 0 5 0\n8 1 sda1 9 9 9 9 9 9 9 9 9 9 9\n259 0 nvme0n1 1 0 2 0 3 0 4 0 0 5 0\n\
                     259 1 nvme0n1p1 9 9 9 9 9 9 9 9 9 9 9\n7 0 loop0 1 0 0 0 0 0 0 0 0 0 0\n";
        let all = disks(table, None);
        assert_eq!(all.get("read_count"), Some(&Value::Int(3)));
        assert_eq!(all.get("write_bytes"), Some(&Value::Int(8 * 512)));
        assert_eq!(disks(table, Some("sda1")).get("busy_time"), Some(&Value::Int(9)));
        assert_eq!(disks(table, Some("sdz")), Value::Bool(false));
    }

    #[test]
    fn kinds_on_devices_are_those_without_nodev() {
        let table = "nodev\tsysfs\nnodev\tzfs\n\text4\n";
        assert!(is_on_device(table, "ext4") && is_on_device(table, "zfs"));
        assert!(!is_on_device(table, "sysfs") && !is_on_device(table, "overlay"));
    }
}
