//! The options that select the target, for `salt` and `salt-cp`.

use brine_protocol::config::{Config, settings};
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{self, Value, ValueExt as _};
use clap::{Args, CommandFactory};

use crate::Failure;
use crate::commandline::misuse;

/// The kinds of target, but for `--compound`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Target Options")]
pub struct TargetArgs {
    /// Salt's option for the rosters of salt-ssh, which there is not.
    #[arg(short = 'H', long, hide = true)]
    hosts: bool,
    /// The target is a regular expression for ids: 'web[0-9]+'.
    #[arg(short = 'E', long)]
    pub pcre: bool,
    /// The target is a list of ids, separated by commas or spaces: 'web1,web2'.
    #[arg(short = 'L', long)]
    pub list: bool,
    /// The target is a grain and a glob for its value: 'os:Arch*'.
    #[arg(short = 'G', long)]
    pub grain: bool,
    /// The target is a grain and a regular expression for its value: 'os:Arch.*'.
    #[arg(short = 'P', long = "grain-pcre")]
    pub grain_pcre: bool,
    /// The target is a node group of the master's configuration.
    #[arg(short = 'N', long)]
    pub nodegroup: bool,
    /// The target is a range expression: %cluster. It matches no minion, as there is no range server.
    #[arg(short = 'R', long)]
    pub range: bool,
    /// The target is a pillar key and a glob for its value: 'role:prod*'.
    #[arg(short = 'I', long)]
    pub pillar: bool,
    /// The target is a pillar key and a regular expression for its value: 'role:prod.*'.
    #[arg(short = 'J', long = "pillar-pcre")]
    pub pillar_pcre: bool,
    /// The target is an IP address or a subnet: '10.0.0.0/24'.
    #[arg(short = 'S', long)]
    pub ipcidr: bool,
    /// What separates the levels of a grain or pillar key in the target. Default: ':'.
    #[arg(long, value_name = "DELIMITER", default_value = ":")]
    pub delimiter: String,
}

impl TargetArgs {
    /// The `tgt_type` that the options select. `compound` is passed separately, because `-C` has two meanings.
    ///
    /// # Errors
    /// When several types are selected, or one that is not offered.
    pub fn tgt_type<T: CommandFactory>(&self, compound: bool) -> Result<&'static str, Failure> {
        if self.hosts {
            return Err(misuse::<T>("--hosts is not offered: it lists the rosters of salt-ssh"));
        }
        // in the order of Salt's message
        let all = [
            (self.pcre, "--pcre", "pcre"),
            (self.list, "--list", "list"),
            (self.grain, "--grain", "grain"),
            (self.grain_pcre, "--grain-pcre", "grain_pcre"),
            (self.nodegroup, "--nodegroup", "nodegroup"),
            (self.range, "--range", "range"),
            (compound, "--compound", "compound"),
            (self.pillar, "--pillar", "pillar"),
            (self.pillar_pcre, "--pillar-pcre", "pillar_pcre"),
            (self.ipcidr, "--ipcidr", "ipcidr"),
        ];
        let chosen: Vec<_> = all.into_iter().filter(|(set, ..)| *set).collect();
        match chosen.as_slice() {
            [] => Ok("glob"),
            [(_, _, tgt_type)] => Ok(tgt_type),
            several => {
                let names: Vec<_> = several.iter().map(|(_, option, _)| *option).collect();
                Err(misuse::<T>(&format!(
                    "The options {} are mutually exclusive. Please only choose one of them",
                    names.join("/")
                )))
            }
        }
    }

    /// The target that an argument names.
    pub fn target(&self, word: &str) -> Value {
        match (self.list, word.contains(',')) {
            (false, _) => Value::from(word),
            (true, true) => value::list(word.replace(' ', "").split(',')),
            (true, false) => value::list(word.split_whitespace()),
        }
    }
}

/// Replaces nodegroups, which minions do not know, by their terms, so that the target is a compound.
///
/// # Errors
/// The first unknown group, in Salt's words.
pub fn replace_groups(tgt: &Value, tgt_type: &str, config: &Config) -> Result<Value, String> {
    let groups = config.value(settings::NODEGROUPS.row.name).map(Nodegroups::new).unwrap_or_default();
    expand_groups(tgt, tgt_type, &groups)
        .map_err(|name| format!("Node group {name} unavailable in {}", config.path().display()))
}

/// As [`replace_groups`], with these groups.
///
/// # Errors
/// The name of the first unknown group.
pub fn expand_groups(tgt: &Value, tgt_type: &str, groups: &Nodegroups) -> Result<Value, String> {
    let words: Vec<String> = match tgt_type {
        "nodegroup" => vec![format!("N@{}", tgt.python_str())],
        _ => tgt.python_str().split_whitespace().map(str::to_owned).collect(),
    };
    let mut expanded = Vec::with_capacity(words.len());
    for word in words {
        match word.strip_prefix("N@").filter(|name| !name.is_empty()) {
            Some(name) if groups.has(name) => expanded.extend(groups.expand(name)),
            Some(name) => return Err(name.to_owned()),
            None => expanded.push(word),
        }
    }
    Ok(Value::from(expanded.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_groups_are_expanded_before_they_are_sent() {
        let groups = value::map([("web", Value::from("web* or N@db")), ("db", value::list(["db1", "db2"]))]);
        let groups = Nodegroups::new(&groups);
        let sent = |tgt: &str, tgt_type: &str| expand_groups(&Value::from(tgt), tgt_type, &groups);
        assert_eq!(sent("db", "nodegroup"), Ok(Value::from("L@db1,db2")));
        assert_eq!(sent("web", "nodegroup"), Ok(Value::from("( web* or L@db1,db2 )")));
        assert_eq!(sent("G@os:x and N@db", "compound"), Ok(Value::from("G@os:x and L@db1,db2")));
        assert_eq!(sent("N@", "compound"), Ok(Value::from("N@")));
        assert_eq!(sent("none", "nodegroup"), Err("none".to_owned()));
    }
}
