//! From a table of the kernel to a value, in the form that Salt gives it.

use brine_guest::Value;

/// A whole number, another number, or the text.
fn number(text: &str) -> Value {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match (text.parse::<i64>(), text.parse::<u64>()) {
            (Ok(number), _) => Value::Int(number),
            (_, Ok(number)) => Value::Big(number),
            _ => text.into(),
        };
    }
    text.parse().map_or_else(|_| text.into(), Value::Float)
}

/// The words of each line that has some.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).filter(|words| !words.is_empty())
}

fn word<'a>(words: &[&'a str], place: usize) -> &'a str {
    words.get(place).copied().unwrap_or_default()
}

/// Puts an entry into a dict; a later one takes the place of an earlier one.
fn put(dict: &mut Vec<(Value, Value)>, key: &str, value: Value) {
    match dict.iter_mut().find(|(known, _)| known.text() == Some(key)) {
        Some((_, known)) => *known = value,
        None => dict.push((key.into(), value)),
    }
}

/// A dict of names and the numbers at their places.
fn named(words: &[&str], names: &[(&'static str, usize)]) -> Value {
    Value::dict(names.iter().map(|(name, place)| (*name, number(word(words, *place)))))
}

/// How many processors the table of them has; one at least.
pub fn nproc(table: &str) -> u64 {
    table.lines().filter(|line| line.starts_with("processor")).count().max(1) as u64
}

pub fn loadavg(table: &str) -> Value {
    let words: Vec<&str> = table.split_whitespace().collect();
    named(&words, &[("1-min", 0), ("5-min", 1), ("15-min", 2)])
}

pub fn cpustats(table: &str) -> Value {
    const TIMES: [(&str, usize); 8] =
        [("idle", 4), ("iowait", 5), ("irq", 6), ("nice", 2), ("softirq", 7), ("steal", 8), ("system", 3), ("user", 1)];
    let mut all = Vec::new();
    for words in rows(table) {
        let list = |key: &'static str| {
            let each: Vec<Value> = words.iter().skip(2).map(|word| number(word)).collect();
            Value::dict([("total", number(word(&words, 1))), (key, each.into())])
        };
        let value = match words[0] {
            "cpu" => named(&words, &TIMES),
            "intr" => list("irqs"),
            "softirq" => list("softirqs"),
            _ => number(word(&words, 1)),
        };
        put(&mut all, words[0], value);
    }
    Value::Dict(all)
}

pub fn meminfo(table: &str) -> Value {
    let mut all = Vec::new();
    for words in rows(table) {
        let mut entry = vec![(Value::from("value"), Value::from(word(&words, 1)))];
        if words.len() > 2 {
            entry.push(("unit".into(), words[2].into()));
        }
        put(&mut all, &words[0].replace(':', ""), Value::Dict(entry));
    }
    Value::Dict(all)
}

pub fn vmstats(table: &str) -> Value {
    let mut all = Vec::new();
    for words in rows(table) {
        put(&mut all, words[0], number(word(&words, 1)));
    }
    Value::Dict(all)
}

pub fn cpuinfo(table: &str) -> Value {
    let mut all = Vec::new();
    for line in table.lines().filter(|line| !line.is_empty()) {
        let mut parts = line.split(':');
        let (key, value) = (parts.next().unwrap_or_default().trim(), parts.next().unwrap_or_default());
        let value = match key {
            "flags" => value.split_whitespace().map(Value::from).collect::<Vec<_>>().into(),
            _ => Value::from(value.trim()),
        };
        put(&mut all, key, value);
    }
    Value::Dict(all)
}

pub fn diskstats(table: &str) -> Value {
    const NAMES: [(&str, usize); 14] = [
        ("major", 0),
        ("minor", 1),
        ("device", 2),
        ("reads_issued", 3),
        ("reads_merged", 4),
        ("sectors_read", 5),
        ("ms_spent_reading", 6),
        ("writes_completed", 7),
        ("writes_merged", 8),
        ("sectors_written", 9),
        ("ms_spent_writing", 10),
        ("io_in_progress", 11),
        ("ms_spent_in_io", 12),
        ("weighted_ms_spent_in_io", 13),
    ];
    let mut all = Vec::new();
    for words in rows(table) {
        put(&mut all, word(&words, 2), named(&words, &NAMES));
    }
    Value::Dict(all)
}

pub fn netstats(table: &str) -> Value {
    let mut all = Vec::new();
    let mut names: Vec<&str> = vec![""];
    for words in rows(table) {
        if words[0] != names[0] {
            names = words;
            continue;
        }
        let row = names.iter().zip(&words).skip(1).map(|(name, value)| (Value::from(*name), number(value)));
        put(&mut all, &names[0].replace(':', ""), Value::Dict(row.collect()));
    }
    Value::Dict(all)
}

pub fn netdev(table: &str) -> Value {
    const NAMES: [(&str, usize); 16] = [
        ("rx_bytes", 0),
        ("rx_compressed", 6),
        ("rx_drop", 3),
        ("rx_errs", 2),
        ("rx_fifo", 4),
        ("rx_frame", 5),
        ("rx_multicast", 7),
        ("rx_packets", 1),
        ("tx_bytes", 8),
        ("tx_carrier", 14),
        ("tx_colls", 13),
        ("tx_compressed", 15),
        ("tx_drop", 11),
        ("tx_errs", 10),
        ("tx_fifo", 12),
        ("tx_packets", 9),
    ];
    let mut all = Vec::new();
    for (interface, counters) in table.lines().filter_map(|line| line.rsplit_once(':')) {
        let words: Vec<&str> = counters.split_whitespace().collect();
        let Value::Dict(counted) = named(&words, &NAMES) else { continue };
        let mut row = vec![(Value::from("iface"), Value::from(interface.trim()))];
        row.extend(counted);
        put(&mut all, interface.trim(), Value::Dict(row));
    }
    Value::Dict(all)
}

/// `now` is seconds since 1970.
pub fn uptime(table: &str, now: u64) -> Value {
    let seconds = table.split_whitespace().next().and_then(|word| word.parse::<f64>().ok()).unwrap_or_default() as u64;
    let since = now.saturating_sub(seconds);
    let rest = seconds % 86_400;
    Value::dict([
        ("seconds", seconds.into()),
        ("since_iso", iso(since, None).into()),
        ("since_t", since.into()),
        ("days", (seconds / 86_400).into()),
        ("time", format!("{}:{}", rest / 3600, rest % 3600 / 60).into()),
    ])
}

/// `Monday, 27. July 2015 07:55AM` of `2015-07-27T07:55:01+02:00`.
pub fn time(local: &str) -> Option<String> {
    const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let number = |from: usize, to: usize| local.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute) = (number(11, 13)?, number(14, 16)?);
    let weekday = DAYS[usize::try_from(days(year, month, day).rem_euclid(7)).ok()?];
    let name = MONTHS.get(usize::try_from(month - 1).ok()?)?;
    let (half, hour) = (if hour < 12 { "AM" } else { "PM" }, if hour % 12 == 0 { 12 } else { hour % 12 });
    Some(format!("{weekday}, {day:02}. {name} {year} {hour:02}:{minute:02}{half}"))
}

/// Days since 1970 of a day of the calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that a leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// A time of the world as Python's `isoformat` writes it, of seconds since 1970; a second without a rest has none.
pub fn iso(seconds: u64, microseconds: Option<u32>) -> String {
    let (days, rest) = (i64::try_from(seconds / 86_400).unwrap_or_default(), seconds % 86_400);
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest % 3600 / 60, rest % 60);
    let fraction = match microseconds {
        Some(rest) if rest > 0 => format!(".{rest:06}"),
        _ => String::new(),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_as_salt_reads_them() {
        let of = |value: &Value, path: &[&str]| path.iter().fold(value.clone(), |v, key| v.get(key).cloned().unwrap());
        let stats = cpustats("cpu  1 2 3 4 5 6 7 8 9 10\nintr 9 1 2\nctxt 77\nsoftirq 5 1\n");
        assert_eq!(of(&stats, &["cpu", "idle"]), Value::Int(4));
        assert_eq!(of(&stats, &["intr", "irqs"]), vec![Value::Int(1), Value::Int(2)].into());
        assert_eq!(of(&stats, &["ctxt"]), Value::Int(77));
        let memory = meminfo("MemTotal:  5 kB\nHugePages_Total: 0\n");
        assert_eq!(of(&memory, &["MemTotal", "unit"]), "kB".into());
        assert_eq!(of(&memory, &["HugePages_Total"]), Value::dict([("value", "0".into())]));
        assert_eq!(of(&loadavg("0.5 0.25 1.00 1/2 3"), &["15-min"]), Value::Float(1.0));
        let tcp = netstats("TcpExt: A B\nTcpExt: 1 2\nIpExt: C\nIpExt: 3\n");
        assert_eq!(of(&tcp, &["TcpExt", "B"]), Value::Int(2));
        assert_eq!(of(&tcp, &["IpExt", "C"]), Value::Int(3));
        let devices = netdev("head|x\n  lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
        assert_eq!(of(&devices, &["lo", "tx_compressed"]), Value::Int(16));
        assert_eq!(
            of(&cpuinfo("model name\t: X: 5\nflags\t: a b\n"), &["flags"]),
            Value::List(vec!["a".into(), "b".into()])
        );
    }

    #[test]
    fn times_are_pythons() {
        assert_eq!(time("2015-07-27T07:55:01+02:00").unwrap(), "Monday, 27. July 2015 07:55AM");
        assert_eq!(time("2024-02-29T00:05:00+00:00").unwrap(), "Thursday, 29. February 2024 12:05AM");
        assert_eq!(time("soon"), None);
        assert_eq!(iso(0, None), "1970-01-01T00:00:00");
        assert_eq!(iso(1_709_164_800, Some(5)), "2024-02-29T00:00:00.000005");
        let up = uptime("90061.55 1.0", 1_709_164_800);
        assert_eq!(up.get("days"), Some(&1_u64.into()));
        assert_eq!(up.get("time"), Some(&"1:1".into()));
    }
}
