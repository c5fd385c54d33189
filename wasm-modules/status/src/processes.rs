//! The processes of this host, from the kernel's tables, with the parts of a line of `ps -efHww` that Salt looks at.

use std::collections::HashMap;

use brine_guest::Value;
use brine_guest::beacons::table;
use brine_guest::host::kernel;
use regex_lite::Regex;

/// A process.
#[derive(Debug, Clone, PartialEq)]
struct Process {
    pid: i64,
    parent: i64,
    user: String,
    /// Its arguments; the name in brackets where it has none, as `ps` has it.
    command: String,
}

impl Process {
    /// What an expression is looked for in.
    fn line(&self) -> String {
        format!("{} {} {} {}", self.user, self.pid, self.parent, self.command)
    }
}

fn all() -> Result<Vec<Process>, String> {
    Ok(parse(&table("process-list")?, &kernel::read("process-arguments")?))
}

/// `list` has number, user, memory, `/proc/PID/stat` from the state on, and name; `arguments` number, count, and words.
fn parse(list: &str, arguments: &[u8]) -> Vec<Process> {
    let mut words = arguments.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut commands: HashMap<i64, String> = HashMap::new();
    while let (Some(pid), Some(count)) = (words.next(), words.next()) {
        let (Ok(pid), Ok(count)) = (pid.parse(), count.parse::<usize>()) else { break };
        commands.insert(pid, words.by_ref().take(count).collect::<Vec<_>>().join(" "));
    }
    let mut all: Vec<Process> = list
        .split('\0')
        .filter_map(|record| {
            let parts: Vec<&str> = record.splitn(5, '\t').collect();
            let [pid, user, _, stat, name] = parts[..] else { return None };
            let pid = pid.parse().ok()?;
            let parent = stat.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
            let command = commands.remove(&pid).filter(|command| !command.trim().is_empty());
            let command = command.unwrap_or_else(|| format!("[{name}]"));
            Some(Process { pid, parent, user: user.to_owned(), command })
        })
        .collect();
    all.sort_by_key(|process| process.pid);
    all
}

/// The numbers of the processes that an expression matches, a line each. The call that asks has the expression in its
/// own arguments, and is left out, as Salt leaves itself out.
pub(crate) fn pid(expression: &str) -> Result<String, String> {
    let regex = Regex::new(expression).map_err(|why| why.to_string())?;
    Ok(matching(&all()?, &regex))
}

fn matching(all: &[Process], regex: &Regex) -> String {
    let is_own = |process: &Process| process.command.contains("salt-call") && process.command.contains("status.p");
    let found = all.iter().filter(|process| !is_own(process) && regex.is_match(&process.line()));
    found.map(|process| process.pid.to_string()).collect::<Vec<_>>().join("\n")
}

pub(crate) fn procs() -> Result<Value, String> {
    let entry = |process: Process| {
        // Salt joins the words of a line.
        let command = process.command.split_whitespace().collect::<Vec<_>>().join(" ");
        let about = Value::dict([("user", process.user.into()), ("cmd", command.into())]);
        (process.pid.to_string().into(), about)
    };
    Ok(Value::Dict(all()?.into_iter().map(entry).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_found_by_their_lines() {
        let list = "7\troot\t1 2\tS 1 7\tsshd\x009\troot\t0\tS 2 0\tkworker/0:1\x008\tada\t1\tR 7 8\tsalt-call\0";
        let arguments = b"7\x002\x00/usr/sbin/sshd\x00-D\x009\x000\x008\x003\x00salt-call\x00status.pid\x00sshd\0";
        let all = parse(list, arguments);
        let lines: Vec<String> = all.iter().map(Process::line).collect();
        assert_eq!(
            lines,
            ["root 7 1 /usr/sbin/sshd -D", "ada 8 7 salt-call status.pid sshd", "root 9 2 [kworker/0:1]"]
        );
        let pid = |expression: &str| matching(&all, &Regex::new(expression).unwrap());
        assert_eq!(pid("sshd"), "7");
        assert_eq!(pid("^root .*"), "7\n9");
        assert_eq!(pid("nothing"), "");
    }
}
