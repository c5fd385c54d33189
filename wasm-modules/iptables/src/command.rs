//! The programs `iptables` and `iptables-save`, and those of IPv6.

use brine_guest::host::process;
use brine_guest::program::{Output, Program};
use brine_guest::words;

/// Options that take a value, which may stand in the same word: what follows in it is no option.
const WITH_VALUE: &str = "ADIRLSFZNXEPCpsdjgiotmcUw";

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Family {
    is_v6: bool,
}

impl Family {
    pub(crate) fn new(family: Option<&str>) -> Self {
        Self { is_v6: family == Some("ipv6") }
    }

    pub(crate) fn is_v6(self) -> bool {
        self.is_v6
    }

    fn name(self) -> &'static str {
        if self.is_v6 { "ip6tables" } else { "iptables" }
    }

    /// Where the program is; as Python has it, `None` where it is not.
    pub(crate) fn path(self) -> Result<String, String> {
        Ok(process::which(self.name())?.unwrap_or_else(|| "None".into()))
    }

    /// Runs the program.
    pub(crate) fn run(self, words: &[&str]) -> Result<Output, String> {
        Program::new([self.name()]).args(words.iter().copied()).run()
    }

    /// Runs the program so that it waits for others that change rules, if it can. Returns what it said on standard error.
    pub(crate) fn change(self, words: &[&str]) -> Result<String, String> {
        let wait: &[&str] = if self.has("--wait")? { &["--wait"] } else { &[] };
        Ok(self.run(&[wait, words].concat())?.stderr)
    }

    /// Whether the program has an option.
    pub(crate) fn has(self, option: &str) -> Result<bool, String> {
        Ok(self.run(&["--help"])?.stdout.contains(option))
    }

    /// All rules of the kernel, or those of a table.
    pub(crate) fn saved(self, table: Option<&str>) -> Result<String, String> {
        let mut program = Program::new([format!("{}-save", self.name())]);
        if let Some(table) = table {
            program = program.args(["-t", name(table, "table")?]);
        }
        Ok(program.run()?.stdout)
    }
}

/// A name that is one word of a command line, and no option.
pub(crate) fn name<'a>(text: &'a str, what: &str) -> Result<&'a str, String> {
    let is_odd =
        text.is_empty() || text.starts_with('-') || text.contains(|c: char| c.is_whitespace() || c.is_control());
    if is_odd { Err(format!("{text:?} is no {what} of iptables")) } else { Ok(text) }
}

/// The words of a rule. With `--modprobe` the program would run another one: that is refused.
pub(crate) fn rule(text: &str) -> Result<Vec<String>, String> {
    let words = words::split(text)?;
    match words.iter().find(|word| runs_a_program(word)) {
        Some(word) => Err(format!("{word:?} in a rule is refused: it would name a program to load modules with")),
        None => Ok(words),
    }
}

/// Whether a word may be `--modprobe` or `-M`. Long options may be cut short, and short ones stand together.
fn runs_a_program(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => {
            let name = long.split('=').next().unwrap_or_default();
            !name.is_empty() && "modprobe".starts_with(name)
        }
        None => word
            .strip_prefix('-')
            .and_then(|short| short.split_once('M'))
            .is_some_and(|(before, _)| !before.chars().any(|option| WITH_VALUE.contains(option))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_no_program() {
        for good in
            ["-p tcp --dport 22 -j MARK", "--mode tunnel", "--monthdays 1", "-jMARK", "-m comment --comment 'M -x'"]
        {
            assert!(rule(good).is_ok(), "{good}");
        }
        for bad in [
            "--modprobe=/tmp/x",
            "--modprobe /tmp/x",
            "--modp=/x",
            "--mod /x",
            "--mo=/x",
            "-M /x",
            "-M/x",
            "-nvM/x",
            "'-M' /x",
        ] {
            assert!(rule(bad).is_err(), "{bad}");
        }
        assert_eq!(rule("-m 'x"), Err("No closing quotation".into()));
    }

    #[test]
    fn names_are_one_word() {
        assert!(name("nat", "table").is_ok());
        for bad in ["", "-f", "nat -f /etc/passwd", "a\tb"] {
            assert!(name(bad, "table").is_err(), "{bad:?}");
        }
    }
}
