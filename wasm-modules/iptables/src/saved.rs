//! What `iptables-save` prints: tables, their chains, and the options of their rules.

use brine_guest::{Result, Value, words};

/// Names of options that Salt has other names for.
const NAMES: [(&str, &str); 28] = [
    ("-A", "append"),
    ("-D", "delete"),
    ("-I", "insert"),
    ("-R", "replace"),
    ("-L", "list"),
    ("-F", "flush"),
    ("-Z", "zero"),
    ("-N", "new-chain"),
    ("-X", "delete-chain"),
    ("-P", "policy"),
    ("-E", "rename-chain"),
    ("-p", "protocol"),
    ("-s", "source"),
    ("-d", "destination"),
    ("-j", "jump"),
    ("-g", "goto"),
    ("-i", "in-interface"),
    ("-o", "out-interface"),
    ("-f", "fragment"),
    ("-c", "set-counters"),
    ("-m", "match"),
    ("--sport", "source_port"),
    ("--source-port", "source_port"),
    ("--dport", "destination_port"),
    ("--destination-port", "destination_port"),
    ("--sports", "source-ports"),
    ("--dports", "destination-ports"),
    ("--src-cc", "source-country"),
];

/// A chain: its policy, counters and rules.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chain {
    name: String,
    pub(crate) policy: String,
    packets: String,
    bytes: String,
    pub(crate) rules: Vec<Value>,
    comments: Vec<(Value, Value)>,
}

/// The tables with their chains, in their order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Saved(Vec<(String, Vec<Chain>)>);

impl Saved {
    /// Reads rules.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let mut saved = Self::default();
        for line in text.lines() {
            if let Some(table) = line.strip_prefix('*') {
                saved.0.push((table.replace('*', ""), Vec::new()));
            } else if let Some(chain) = line.strip_prefix(':') {
                let chain = Chain::read(chain).ok_or_else(|| format!("{line:?} is no chain"))?;
                saved.0.last_mut().ok_or_else(|| format!("{line:?} is in no table"))?.1.push(chain);
            } else if line.starts_with("-A") {
                saved.add_rule(line)?;
            }
        }
        Ok(saved)
    }

    fn add_rule(&mut self, line: &str) -> Result<()> {
        let mut options = options(words::split(line)?);
        let at = options.iter().position(|(name, _)| name == "append");
        let of = at.map(|at| options.remove(at).1.to_text()).unwrap_or_default();
        let chains = self.0.last_mut().map(|(_, chains)| chains.iter_mut());
        let chain = chains.into_iter().flatten().find(|chain| chain.name == of);
        let chain = chain.ok_or_else(|| format!("{line:?} is a rule of no chain"))?;
        let comment = options.iter().find(|(name, _)| name == "comment").map(|(_, comment)| comment.to_text());
        let mut rule: Vec<(Value, Value)> = Vec::new();
        for (name, value) in options {
            match rule.iter_mut().find(|(known, _)| known.text() == Some(&name)) {
                Some((_, Value::List(values))) => values.push(value),
                _ => rule.push((name.into(), Value::List(vec![value]))),
            }
        }
        if let Some(comment) = comment {
            let comment = Value::from(comment.trim_matches('"'));
            chain.comments.retain(|(known, _)| *known != comment);
            chain.comments.push((comment, Value::Dict(rule.clone())));
        }
        chain.rules.push(Value::Dict(rule));
        Ok(())
    }

    pub(crate) fn chain(&self, table: &str, chain: &str) -> Option<&Chain> {
        let (_, chains) = self.0.iter().rev().find(|(name, _)| name == table)?;
        chains.iter().rev().find(|known| known.name == chain)
    }

    /// The rules of all chains, to compare.
    pub(crate) fn rules(&self) -> Vec<&Vec<Value>> {
        self.0.iter().flat_map(|(_, chains)| chains.iter().map(|chain| &chain.rules)).collect()
    }

    pub(crate) fn value(self) -> Value {
        let table = |(name, chains): (String, Vec<Chain>)| {
            (name.into(), Value::Dict(chains.into_iter().map(Chain::value).collect()))
        };
        Value::Dict(self.0.into_iter().map(table).collect())
    }
}

impl Chain {
    /// `INPUT ACCEPT [0:0]`.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (name, policy) = (words.next()?.replace(':', ""), words.next()?.to_owned());
        let counters = words.next()?.replace(['[', ']'], "");
        let (packets, bytes) = counters.split_once(':')?;
        Some(Self {
            name,
            policy,
            packets: packets.into(),
            bytes: bytes.into(),
            rules: Vec::new(),
            comments: Vec::new(),
        })
    }

    fn value(self) -> (Value, Value) {
        let value = Value::dict([
            ("policy", self.policy.into()),
            ("packet count", self.packets.into()),
            ("byte count", self.bytes.into()),
            ("rules", Value::List(self.rules)),
            ("rules_comment", Value::Dict(self.comments)),
        ]);
        (self.name.into(), value)
    }
}

/// The options of a rule with their values: one that has none has an empty text, that of a negated one begins with `!`.
fn options(words: Vec<String>) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut words = words.into_iter().peekable();
    let mut is_negated = false;
    while let Some(word) = words.next() {
        if word == "!" && words.peek().is_some_and(|next| next.starts_with('-')) {
            is_negated = true;
            continue;
        }
        let not = std::mem::take(&mut is_negated);
        if !word.starts_with('-') {
            // It belongs to no option.
            continue;
        }
        let mut values: Vec<String> = if not { vec!["!".into()] } else { Vec::new() };
        while let Some(value) = words.next_if(|next| next != "!" && !next.starts_with('-')) {
            values.push(value);
        }
        let renamed = NAMES.iter().find(|(option, _)| *option == word).map(|(_, name)| *name);
        let name = renamed.unwrap_or_else(|| word.trim_start_matches('-'));
        found.push((name.to_owned(), values.join(" ").into()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Generated\n*filter\n:INPUT DROP [12:34]\n:OWN - [0:0]\n\
        -A INPUT ! -s 10.0.0.0/8 -i lo -p tcp -m tcp --dport 22 ! --syn -m comment --comment \"a b\" -j ACCEPT\n\
        -A OWN -m state --state NEW -m recent --set --name X\nCOMMIT\n";

    #[test]
    fn rules_have_their_options() {
        let saved = Saved::read(TEXT).unwrap();
        let chain = saved.chain("filter", "INPUT").unwrap();
        assert_eq!((chain.policy.as_str(), chain.packets.as_str(), chain.bytes.as_str()), ("DROP", "12", "34"));
        let rule = &chain.rules[0];
        let is = |name: &str, values: &[&str]| assert_eq!(rule.get(name), Some(&values.to_vec().into()), "{name}");
        is("source", &["! 10.0.0.0/8"]);
        is("in-interface", &["lo"]);
        is("match", &["tcp", "comment"]);
        is("destination_port", &["22"]);
        is("syn", &["!"]);
        is("comment", &["a b"]);
        assert_eq!(chain.comments[0].0, "a b".into());
        assert_eq!(rule.get("append"), None);
        let own = &saved.chain("filter", "OWN").unwrap().rules[0];
        assert_eq!(own.get("set"), Some(&vec![""].into()));
        assert!(saved.chain("nat", "INPUT").is_none() && saved.chain("filter", "NO").is_none());
    }

    #[test]
    fn what_is_no_list_of_rules_is_refused() {
        for bad in
            ["*filter\n-A NO -j DROP", ":INPUT ACCEPT [0:0]", "*filter\n:INPUT ACCEPT", "*f\n:I A [0:0]\n-A I 'x"]
        {
            assert!(Saved::read(bad).is_err(), "{bad}");
        }
        assert_eq!(Saved::read("").unwrap(), Saved::default());
    }
}
