//! Figures that the minion takes out of a table: they stay the same for longer than the whole table does, and so do the answers of those who
//! ask for them.

/// The three averages at the start of `loadavg`. What follows changes with each process that starts.
pub(super) fn load_averages(loadavg: &[u8]) -> Vec<u8> {
    let words: Vec<&[u8]> = loadavg.split(u8::is_ascii_whitespace).take(3).collect();
    words.join(&b' ')
}

/// The part of the memory that is used, in hundredths with one digit after the point, as psutil has it. None where the kernel does not say.
pub(super) fn memory_used(meminfo: &[u8]) -> Option<Vec<u8>> {
    let meminfo = String::from_utf8_lossy(meminfo);
    let kilobytes = |entry: &str| -> Option<f64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(entry)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    let total = kilobytes("MemTotal").filter(|total| *total > 0.0)?;
    // Older kernels do not estimate what could be had.
    let available = kilobytes("MemAvailable").or_else(|| kilobytes("MemFree"))?;
    Some(format!("{:.1}", (total - available) / total * 100.0).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_come_without_what_changes_with_each_process() {
        assert_eq!(load_averages(b"0.52 0.58 0.59 1/389 2\n"), b"0.52 0.58 0.59");
        assert_eq!(load_averages(b""), b"");
    }

    #[test]
    fn used_memory_is_a_part_of_a_hundred() {
        let used = |table: &str| memory_used(table.as_bytes()).map(|used| String::from_utf8(used).unwrap());
        assert_eq!(used("MemTotal: 400 kB\nMemFree: 1 kB\nMemAvailable: 300 kB\n").unwrap(), "25.0");
        assert_eq!(used("MemTotal:   24608632 kB\nMemFree:  1 kB\n").unwrap(), "100.0");
        for without in ["", "MemTotal: 0 kB\nMemFree: 0 kB\n", "MemTotals: 4 kB\nMemFree: 1 kB\n", "MemTotal: 4 kB\n"] {
            assert_eq!(used(without), None, "{without}");
        }
    }
}
