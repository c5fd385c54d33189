//! Processes, from the host's table of them, with the names that psutil gives to what the kernel says.

use std::collections::HashMap;

use brine_guest::Value;
use brine_guest::beacons::table;
use brine_guest::host::kernel;

/// The kernel counts time of processes in hundredths of a second, on every architecture that there is.
const TICKS: f64 = 100.0;

/// A process as it was when the table was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Process {
    pub(crate) pid: i64,
    pub(crate) user: String,
    pub(crate) name: String,
    /// `/proc/PID/statm` in bytes.
    memory: Vec<i64>,
    /// `/proc/PID/stat`, from the state on.
    stat: Vec<String>,
}

/// What `ps.proc_info` shows without being asked for less or more.
const ATTRIBUTES: [&str; 10] =
    ["cpu_times", "create_time", "memory_info", "name", "nice", "num_threads", "pid", "ppid", "status", "username"];

/// All processes, by their numbers.
pub(crate) fn all() -> Result<Vec<Process>, String> {
    let table = table("process-list")?;
    let mut all: Vec<Process> = table.split('\0').filter_map(Process::parse).collect();
    all.sort_by_key(|process| process.pid);
    Ok(all)
}

/// What each process was started with.
pub(crate) fn arguments() -> Result<HashMap<i64, Vec<String>>, String> {
    Ok(parse_arguments(&kernel::read("process-arguments")?))
}

fn parse_arguments(table: &[u8]) -> HashMap<i64, Vec<String>> {
    let mut words = table.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut all = HashMap::new();
    while let (Some(pid), Some(count)) = (words.next(), words.next()) {
        let (Ok(pid), Ok(count)) = (pid.parse(), count.parse::<usize>()) else { break };
        all.insert(pid, words.by_ref().take(count).collect());
    }
    all
}

/// Whether a text matches.
pub(crate) type Pattern = Box<dyn Fn(&str) -> bool>;

/// Whether a line has a text in it, or an expression matches somewhere in it.
pub(crate) fn pattern(text: &str, is_regex: bool) -> Result<Pattern, String> {
    if is_regex {
        let regex = regex_lite::Regex::new(text).map_err(|error| error.to_string())?;
        return Ok(Box::new(move |line| regex.is_match(line)));
    }
    let text = text.to_owned();
    Ok(Box::new(move |line| line.contains(&text)))
}

impl Process {
    fn parse(record: &str) -> Option<Self> {
        let mut parts = record.splitn(5, '\t');
        let (pid, user) = (parts.next()?.parse().ok()?, parts.next()?.to_owned());
        let memory = parts.next()?.split(' ').map(|word| word.parse().unwrap_or(0)).collect();
        let stat = parts.next()?.split(' ').map(str::to_owned).collect();
        Some(Self { pid, user, memory, stat, name: parts.next()?.to_owned() })
    }

    fn number(&self, at: usize) -> i64 {
        self.stat.get(at).and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    /// Number, its parent's number, name.
    pub(crate) fn place(&self) -> (i64, i64, String) {
        (self.pid, self.number(1), self.name.clone())
    }

    /// Its state in psutil's words.
    pub(crate) fn status(&self) -> &'static str {
        match self.stat.first().map(String::as_str) {
            Some("R") => "running",
            Some("S") => "sleeping",
            Some("D") => "disk-sleep",
            Some("T") => "stopped",
            Some("t") => "tracing-stop",
            Some("Z") => "zombie",
            Some("X" | "x") => "dead",
            Some("K") => "wake-kill",
            Some("W") => "waking",
            Some("I") => "idle",
            Some("P") => "parked",
            _ => "?",
        }
    }

    /// Seconds on a processor.
    fn time(&self) -> f64 {
        (self.number(11) + self.number(12)) as f64 / TICKS
    }

    fn started(&self, boot: f64) -> f64 {
        boot + self.number(19) as f64 / TICKS
    }

    fn cpu(&self) -> [(&'static str, Value); 5] {
        let times = [("user", 11), ("system", 12), ("children_user", 13), ("children_system", 14), ("iowait", 39)];
        times.map(|(name, at)| (name, Value::Float(self.number(at) as f64 / TICKS)))
    }

    fn memory(&self) -> [(&'static str, Value); 7] {
        let parts = [("rss", 1), ("vms", 0), ("shared", 2), ("text", 3), ("lib", 4), ("data", 5), ("dirty", 6)];
        parts.map(|(name, at)| (name, self.memory.get(at).copied().unwrap_or(0).into()))
    }

    /// The attributes that are wanted. `boot` is when the host started.
    pub(crate) fn info(&self, wanted: Option<&[String]>, boot: f64) -> Result<Value, String> {
        let usual: Vec<String> = ATTRIBUTES.map(str::to_owned).into();
        let mut shown = Vec::new();
        for name in wanted.unwrap_or(&usual) {
            let list = |values: &[(&str, Value)]| Value::List(values.iter().map(|(_, value)| value.clone()).collect());
            let value = match name.as_str() {
                "cpu_times" => list(&self.cpu()),
                "create_time" => Value::Float(self.started(boot)),
                "memory_info" => list(&self.memory()),
                "name" => self.name.as_str().into(),
                "nice" => self.number(16).into(),
                "num_threads" => self.number(17).into(),
                "pid" => self.pid.into(),
                "ppid" => self.number(1).into(),
                "status" => self.status().into(),
                "username" => self.user.as_str().into(),
                "cmdline" => {
                    let words = arguments()?.remove(&self.pid).unwrap_or_default();
                    Value::List(words.into_iter().map(Value::from).collect())
                }
                other => {
                    return Err(format!("{other} is no attribute here; there are {}, cmdline", ATTRIBUTES.join(", ")));
                }
            };
            shown.push((Value::from(name.as_str()), value));
        }
        Ok(Value::Dict(shown))
    }
}

/// Those that used the processors most between two looks.
pub(crate) fn top(before: &[Process], after: &[Process], count: usize, boot: f64) -> Value {
    let mut used: Vec<(f64, &Process)> = after
        .iter()
        .filter_map(|process| {
            // A number may be another process's by now.
            let same = |old: &&Process| old.pid == process.pid && old.number(19) == process.number(19);
            Some((process.time() - before.iter().find(same)?.time(), process))
        })
        .collect();
    used.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let shown = used.into_iter().take(count).map(|(_, process)| {
        Value::dict([
            ("cmd", process.name.as_str().into()),
            ("user", process.user.as_str().into()),
            ("status", process.status().into()),
            ("pid", process.pid.into()),
            ("create_time", Value::Float(process.started(boot))),
            ("cpu", Value::dict(process.cpu())),
            ("mem", Value::dict(process.memory())),
        ])
    });
    Value::List(shown.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i64, ticks: u32, start: u32) -> Process {
        let stat = format!("S 1 0 0 0 -1 0 0 0 0 0 {ticks} 0 5 0 20 0 3 0 {start}");
        Process::parse(&format!("{pid}\troot\t8192 4096 0 0 0 0 0\t{stat}\ta (b) \tc")).unwrap()
    }

    #[test]
    fn a_record_has_five_parts() {
        let one = process(7, 150, 200);
        assert_eq!((one.name.as_str(), one.status()), ("a (b) \tc", "sleeping"));
        let wanted = ["ppid", "create_time", "num_threads"].map(str::to_owned);
        let info = one.info(Some(&wanted), 1000.0).unwrap();
        let expected = [("ppid", Value::Int(1)), ("create_time", Value::Float(1002.0)), ("num_threads", Value::Int(3))];
        assert_eq!(info, Value::dict(expected));
        assert!(one.info(Some(&["environ".to_owned()]), 0.0).unwrap_err().contains("environ"));
        assert_eq!(Process::parse("x\ty"), None);
    }

    #[test]
    fn the_busiest_is_first_and_a_new_one_is_none() {
        let before = [process(1, 100, 5), process(2, 100, 5), process(3, 0, 5)];
        let after = [process(1, 101, 5), process(2, 150, 5), process(3, 900, 6)];
        let Value::List(shown) = top(&before, &after, 5, 0.0) else { panic!() };
        let pids: Vec<_> = shown.iter().map(|one| one.get("pid").cloned().unwrap()).collect();
        assert_eq!(pids, [Value::Int(2), Value::Int(1)]);
    }

    #[test]
    fn arguments_belong_to_their_process() {
        let all = parse_arguments(b"12\x002\0a\0\x0013\x000\x0014\x001\0b c\0");
        assert_eq!(all[&12], ["a", ""]);
        assert!(all[&13].is_empty());
        assert_eq!(all[&14], ["b c"]);
    }
}
