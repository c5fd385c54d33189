//! The functions: chains, rules, policies, and the file that they are saved in.

use brine_guest::changes::{self, Put};
use brine_guest::host::grains;
use brine_guest::host::types::Data;
use brine_guest::{Value, path};

use crate::command::{self, Family};
use crate::saved::Saved;

/// Salt's answer to an argument that is missing.
pub(crate) type Answer<T> = Result<T, &'static str>;

const NO_CHAIN: &str = "Error: Chain needs to be specified";
const NO_RULE: &str = "Error: Rule needs to be specified";

/// A chain of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) table: &'a str,
    pub(crate) chain: &'a str,
    pub(crate) family: Family,
}

impl<'a> Place<'a> {
    pub(crate) fn new(table: Option<&'a str>, chain: Option<&'a str>, family: Family) -> Result<Answer<Self>, String> {
        let Some(chain) = chain.filter(|chain| !chain.is_empty()) else { return Ok(Err(NO_CHAIN)) };
        let table = command::name(table.unwrap_or("filter"), "table")?;
        Ok(Ok(Self { table, chain: command::name(chain, "chain")?, family }))
    }

    /// Changes the table. Returns what the program said.
    fn change(self, option: &str, more: &[&str]) -> Result<String, String> {
        self.family.change(&[&["-t", self.table, option, self.chain], more].concat())
    }

    pub(crate) fn policy(self, saved: &Saved) -> Option<String> {
        saved.chain(self.table, self.chain).map(|chain| chain.policy.clone())
    }

    pub(crate) fn set_policy(self, policy: Option<&str>) -> Result<String, String> {
        match policy.filter(|policy| !policy.is_empty()) {
            None => Ok("Error: Policy needs to be specified".into()),
            Some(policy) => self.change("-P", &[command::name(policy, "policy")?]),
        }
    }

    /// Whether the chain has a rule.
    pub(crate) fn check(self, rule: Option<&str>) -> Result<Answer<bool>, String> {
        let Some(rule) = rule.filter(|rule| !rule.is_empty()) else { return Ok(Err(NO_RULE)) };
        let rule = command::rule(rule)?;
        let rule: Vec<&str> = rule.iter().map(String::as_str).collect();
        Ok(Ok(self.family.run(&[&["-t", self.table, "-C", self.chain], &rule[..]].concat())?.code == 0))
    }

    pub(crate) fn exists(self) -> Result<bool, String> {
        Ok(self.family.saved(Some(self.table))?.contains(&format!(":{} ", self.chain)))
    }

    /// Makes the chain. The inner error is what the program said.
    pub(crate) fn make(self) -> Result<Result<(), String>, String> {
        self.change("-N", &[]).map(said_nothing)
    }

    /// Removes the chain. The inner error is what the program said.
    pub(crate) fn remove(self) -> Result<Result<(), String>, String> {
        self.change("-X", &[]).map(said_nothing)
    }

    /// Adds a rule at the end. Returns whether it was added.
    pub(crate) fn append(self, rule: Option<&str>) -> Result<Answer<bool>, String> {
        match self.check(rule)? {
            Ok(true) => Ok(Ok(false)),
            Err(why) => Ok(Err(why)),
            Ok(false) => {
                let rule = command::rule(rule.unwrap_or_default())?;
                let rule: Vec<&str> = rule.iter().map(String::as_str).collect();
                Ok(Ok(self.change("-A", &rule)?.is_empty()))
            }
        }
    }

    /// Adds a rule at a place. Returns what the program said; none if the chain had the rule.
    pub(crate) fn insert(self, position: Option<&Value>, rule: Option<&str>) -> Result<Option<String>, String> {
        let Some(position) = position.filter(|position| position.truthy()) else {
            return Ok(Some("Error: Position needs to be specified or use append (-A)".into()));
        };
        if rule.is_none_or(str::is_empty) {
            return Ok(Some(NO_RULE.into()));
        }
        let Value::Int(mut position) = *position else {
            return Err(format!("position is to be a number, not {}", position.kind()));
        };
        if position < 0 {
            let saved = Saved::read(&self.family.saved(None)?)?;
            let chain = saved.chain(self.table, self.chain);
            let chain = chain.ok_or_else(|| format!("there is no chain {} in the table {}", self.chain, self.table))?;
            let size = i64::try_from(chain.rules.len()).unwrap_or(i64::MAX);
            position = size.saturating_add(position).saturating_add(1);
            if position == 0 {
                position = 1;
            }
        }
        if self.check(rule)? == Ok(true) {
            return Ok(None);
        }
        let rule = command::rule(rule.unwrap_or_default())?;
        let position = position.to_string();
        let words: Vec<&str> = std::iter::once(position.as_str()).chain(rule.iter().map(String::as_str)).collect();
        self.change("-I", &words).map(Some)
    }

    /// Removes a rule, or the one at a place. Returns what the program said.
    pub(crate) fn delete(self, position: Option<&Value>, rule: Option<&str>) -> Result<String, String> {
        let position = position.filter(|position| position.truthy());
        let rule = rule.filter(|rule| !rule.is_empty());
        match (position, rule) {
            (Some(_), Some(_)) => Ok("Error: Only specify a position or a rule, not both".into()),
            (Some(position), None) => self.change("-D", &[command::name(&position.to_text(), "position")?]),
            (None, rule) => {
                let rule = command::rule(rule.unwrap_or("None"))?;
                self.change("-D", &rule.iter().map(String::as_str).collect::<Vec<_>>())
            }
        }
    }
}

/// Removes the rules of a chain, without one of all chains of a table. Returns what the program said.
pub(crate) fn flush(table: Option<&str>, chain: Option<&str>, family: Family) -> Result<String, String> {
    let table = command::name(table.unwrap_or("filter"), "table")?;
    let mut words = vec!["-t", table, "-F"];
    if let Some(chain) = chain.filter(|chain| !chain.is_empty()) {
        words.push(command::name(chain, "chain")?);
    }
    family.change(&words)
}

fn said_nothing(said: String) -> Result<(), String> {
    if said.is_empty() { Ok(()) } else { Err(said) }
}

/// The file that a system keeps its rules in.
fn file(family: Family) -> Result<&'static str, String> {
    let items = grains::items().value()?;
    let grain = |name: &str| items.get(name).and_then(Value::text).unwrap_or_default().to_owned();
    let (os_family, os) = (grain("os_family"), grain("os"));
    let (v4, v6) = match (os_family.as_str(), os.as_str()) {
        ("RedHat", _) => ("/etc/sysconfig/iptables", "/etc/sysconfig/ip6tables"),
        ("Arch" | "Void", _) => ("/etc/iptables/iptables.rules", "/etc/iptables/ip6tables.rules"),
        ("Debian", _) => ("/etc/iptables/rules.v4", "/etc/iptables/rules.v6"),
        (_, "Gentoo") => ("/var/lib/iptables/rules-save", "/var/lib/ip6tables/rules-save"),
        ("Suse", _) => ("/etc/sysconfig/scripts/SuSEfirewall2-custom", "/etc/sysconfig/scripts/SuSEfirewall2-custom"),
        (_, "Alpine") => ("/etc/iptables/rules-save", "/etc/iptables/rules6-save"),
        ("NILinuxRT", _) => ("/etc/natinst/share/iptables.conf", "/etc/natinst/share/ip6tables.conf"),
        _ => {
            return Err(format!(
                "Saving iptables to file is not supported on {os}. Please file an issue with SaltStack"
            ));
        }
    };
    Ok(if family.is_v6() { v6 } else { v4 })
}

/// The rules in a file, by default in the system's.
pub(crate) fn saved(named: Option<&str>, family: Family) -> Result<Saved, String> {
    let file = match named.filter(|file| !file.is_empty()) {
        Some(file) => file,
        None => file(family)?,
    };
    let text = changes::read_text(file)?;
    Saved::read(&text.ok_or_else(|| format!("[Errno 2] No such file or directory: '{file}'"))?)
}

/// The rules in the kernel.
pub(crate) fn current(family: Family) -> Result<Saved, String> {
    Saved::read(&family.saved(None)?)
}

/// Saves the kernel's rules. Returns Salt's sentence about it.
pub(crate) fn save(named: Option<&str>, family: Family) -> Result<String, String> {
    let file = match named.filter(|file| !file.is_empty()) {
        Some(file) => file,
        None => file(family)?,
    };
    let folder = path::dirname(file);
    if changes::look(folder, true)?.is_none() {
        let owner = changes::Owner { user: None, group: None };
        changes::make_directory(folder, true, &owner, None)?;
    }
    Put::new(file).text(&format!("{}\n", family.saved(None)?))?;
    Ok(format!("Wrote 1 lines to \"{file}\""))
}

/// An answer of Salt's, which is a text where an argument was missing.
pub(crate) fn answer<T: Into<Value>>(answer: Answer<T>) -> Data {
    answer.map_or_else(|why| Value::from(why).into(), |value| value.into().into())
}
