//! The text of a rule, from the parts that an SLS file names.

use brine_guest::Value;

/// Arguments that stand after the target, in this order.
const AFTER_TARGET: &str = "\
    j jump add-set and-mark and-tos checksum-fill clamp-mss-to-pmtu clustermac ctevents ctmask del-set ecn-tcp-remove exist \
    expevents gateway hash-init hashmode helper label local-node log-ip-options log-level log-prefix log-tcp-options \
    log-tcp-sequence log-uid map-set mask mss new nfmask nflog-group nflog-prefix nflog-range nflog-threshold nodst notrack \
    on-ip on-port or-mark or-tos persistent queue-balance queue-bypass queue-num random random-fully rateest-ewmalog \
    rateest-interval rateest-name reject-with restore restore-mark sack-perm save-mark selctx set-class set-dscp \
    set-dscp-class set-mark set-mss set-tos set-xmark strip-options timeout timestamp to to-destination to-ports to-source \
    total-nodes tproxy-mark ttl-dec ttl-inc ttl-set type ulog-cprange ulog-nlgroup ulog-prefix ulog-qthreshold wscale \
    xor-mark xor-tos zone zone-orig zone-reply dst-pfx hl-dec hl-inc hl-set hmark-dport-mask hmark-dst-prefix hmark-mod \
    hmark-offset hmark-proto-mask hmark-rnd hmark-spi-mask hmark-sport-mask hmark-src-prefix hmark-tuple led-always-blink \
    led-delay led-trigger-id queue-cpu-fanout src-pfx to-port addr and-mask delude honeypot or-mask prefix reset reuse \
    set-mac shift static tarpit tname ttl";

/// Arguments that are no part of a rule: those of states and jobs, and others of the function.
const NO_PARTS: &str = "\
    check_cmd cmd_opts_exclude creates failhard fire_event fun listen listen_in no_log onchanges onchanges_any onchanges_in \
    onfail onfail_all onfail_any onfail_in onfail_stop onlyif order parallel prereq prereq_in prerequired reload_grains \
    reload_modules reload_pillar require require_any require_in retry runas runas_password saltenv state umask unless use \
    use_in watch watch_any watch_in name chain save table";

/// The parts of a rule, in the order in which they were named.
#[derive(Debug, Clone, Default)]
struct Parts(Vec<(String, Value)>);

impl Parts {
    fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// Whether a value is negated, and what it is then.
fn negated(value: &Value) -> (&'static str, String) {
    let text = value.to_text();
    if text.starts_with('!') || text.starts_with("not") { ("! ", without_negation(&text)) } else { ("", text) }
}

/// A text without each `!` and `not`, and one white space after it.
fn without_negation(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match rest.strip_prefix('!').or_else(|| rest.strip_prefix("not")) {
            Some(after) => rest = after.strip_prefix(char::is_whitespace).unwrap_or(after),
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

fn is_empty(value: &Value) -> bool {
    *value == Value::None || value.text() == Some("")
}

fn push_once(rule: &mut Vec<String>, option: &str) -> bool {
    let is_new = !rule.iter().any(|known| known == option);
    if is_new {
        rule.push(option.to_owned());
    }
    is_new
}

/// Builds a rule of `keywords`, a dict's entries. The inner error is Salt's answer to a rule that cannot be.
pub(crate) fn build(keywords: &[(Value, Value)]) -> Result<Result<String, &'static str>, String> {
    let is_part = |name: &str| !name.starts_with("__") && !NO_PARTS.split_ascii_whitespace().any(|known| known == name);
    let named = keywords.iter().map(|(name, value)| (name.to_text(), value.clone()));
    let mut parts = Parts(named.filter(|(name, _)| is_part(name)).collect());
    if let Some(target) = parts.take("target") {
        parts.0.retain(|(name, _)| name != "jump");
        parts.0.push(("jump".into(), target));
    }
    let mut rule: Vec<String> = Vec::new();
    for (name, option) in [("if", "-i"), ("of", "-o")] {
        if let Some(value) = parts.take(name) {
            let (not, value) = negated(&value);
            rule.push(format!("{not}{option} {value}"));
        }
    }
    let is_policy = parts.get("match").and_then(Value::text) == Some("policy");
    let protocol = if is_policy { None } else { parts.take("proto") };
    let protocol = match (protocol, parts.take("protocol")) {
        (Some(proto), _) => Some(proto),
        (None, protocol) => protocol,
    };
    let has_protocol = protocol.is_some();
    if let Some(protocol) = protocol {
        let (not, value) = negated(&protocol);
        rule.push(format!("{not}-p {value}"));
    }
    matches(&mut parts, &mut rule)?;
    if let Some(state) = parts.take("connstate") {
        push_once(&mut rule, "-m state");
        let (not, value) = negated(&state);
        rule.push(format!("{not}--state {value}"));
    }
    for name in ["dport", "sport"] {
        if let Some(value) = parts.take(name) {
            let (not, value) = negated(&value);
            rule.push(format!("{not}--{name} {value}"));
        }
    }
    for name in ["dports", "sports"] {
        if let Some(value) = parts.take(name) {
            if push_once(&mut rule, "-m multiport") && !has_protocol {
                return Ok(Err("Error: protocol must be specified"));
            }
            rule.extend(ports(&value, name));
        }
    }
    if let Some(comment) = parts.take("comment") {
        push_once(&mut rule, "-m comment");
        rule.push(format!("--comment \"{}\"", comment.to_text()));
    }
    if parts.get("set").is_some_and(Value::truthy)
        && let Some(set) = parts.take("set")
    {
        let (not, value) = negated(&set);
        rule.push(format!("{not}--match-set {value}"));
    }
    let mut after = Vec::new();
    for name in AFTER_TARGET.split_ascii_whitespace() {
        if let Some(value) = parts.take(name) {
            let text = value.to_text();
            after.push(match (is_empty(&value), text.contains([' ', '\t', '\n', '\r', '\x0b', '\x0c'])) {
                (true, _) => format!("--{name}"),
                (false, true) => format!("--{name} \"{text}\""),
                (false, false) => format!("--{name} {text}"),
            });
        }
    }
    for (name, value) in &parts.0 {
        let flag = if name.chars().count() == 1 { "-" } else { "--" };
        let (not, text) = negated(value);
        let text = if is_empty(value) || text.is_empty() { String::new() } else { format!(" {text}") };
        rule.push(format!("{not}{flag}{name}{text}"));
    }
    rule.extend(after);
    Ok(Ok(rule.join(" ")))
}

/// The matches, each with what belongs to it.
fn matches(parts: &mut Parts, rule: &mut Vec<String>) -> Result<(), String> {
    if let Some(value) = parts.take("match") {
        let all = match &value {
            Value::List(all) => all.iter().map(Value::to_text).collect(),
            Value::Text(text) => text.split(',').map(str::to_owned).collect::<Vec<_>>(),
            other => return Err(format!("match is to be text or a list, not {}", other.kind())),
        };
        for one in all {
            rule.push(format!("-m {one}"));
            if matches!(one.trim(), "pknock" | "quota2" | "recent")
                && let Some(name) = parts.take("name_")
            {
                rule.push(format!("--name {}", name.to_text()));
            }
        }
        if value.text() == Some("policy")
            && let Some(proto) = parts.take("proto")
        {
            let (not, value) = negated(&proto);
            rule.push(format!("{not}--proto {value}"));
        }
    }
    if let Some(sets) = parts.take("match-set") {
        let sets = match sets {
            Value::List(sets) => sets,
            set => vec![set],
        };
        for set in sets {
            let (not, set) = negated(&set);
            rule.push(format!("-m set {not}--match-set {set}"));
        }
    }
    Ok(())
}

/// Several ports: a list, or a text.
fn ports(value: &Value, name: &str) -> Vec<String> {
    let is_negated = |text: &str| text.starts_with('!') || text.starts_with("not");
    let texts = match value {
        Value::List(items) => items.iter().map(Value::to_text).collect(),
        value => vec![value.to_text()],
    };
    let mut made = Vec::new();
    let texts = if texts.iter().any(|text| is_negated(text)) {
        made.push("!".to_owned());
        texts.iter().map(|text| without_negation(text)).collect()
    } else {
        texts
    };
    made.push(format!("--{name} {}", texts.join(",")));
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(parts: &[(&str, Value)]) -> String {
        let keywords: Vec<(Value, Value)> = parts.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        build(&keywords).unwrap().unwrap_or_else(str::to_owned)
    }

    #[test]
    fn parts_have_their_places() {
        let rule = built(&[
            ("chain", "INPUT".into()),
            ("jump", "LOG".into()),
            ("source", "not 10.0.0.0/8".into()),
            ("log-prefix", "in: ".into()),
            ("match", vec!["state", "recent"].into()),
            ("name_", "X".into()),
            ("connstate", "NEW".into()),
            ("proto", "tcp".into()),
            ("dports", vec![Value::from("!80"), 443_i64.into()].into()),
            ("comment", "a b".into()),
            ("syn", Value::None),
            ("if", "!lo".into()),
        ]);
        assert_eq!(
            rule,
            "! -i lo -p tcp -m state -m recent --name X --state NEW -m multiport ! --dports 80,443 -m comment --comment \
             \"a b\" ! --source 10.0.0.0/8 --syn --jump LOG --log-prefix \"in: \""
        );
        assert_eq!(built(&[("dports", 80_i64.into())]), "Error: protocol must be specified");
        assert_eq!(built(&[("match", "policy".into()), ("proto", "esp".into())]), "-m policy --proto esp");
        assert_eq!(built(&[("target", "DROP".into()), ("__id__", "x".into()), ("order", 1_i64.into())]), "--jump DROP");
        assert_eq!(
            built(&[("match-set", "!bad src".into()), ("s", "::1".into())]),
            "-m set ! --match-set bad src -s ::1"
        );
    }
}
