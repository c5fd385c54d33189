//! `--summary`: the numbers of minions that were asked, returned and failed.

use brine_client::MinionReturn;

const RULE: &str = "-------------------------------------------";

/// The lines of the summary.
pub(super) fn lines(all: &[MinionReturn], verbose: bool) -> Vec<String> {
    let silent = |ret: &&MinionReturn| ret.out.as_deref() == Some("no_return");
    let ids = |matches: &dyn Fn(&&MinionReturn) -> bool| {
        all.iter().filter(|ret| matches(ret)).map(|ret| ret.id.clone()).collect::<Vec<_>>()
    };
    let says = |ret: &&MinionReturn, text: &str| silent(ret) && ret.ret.as_str().is_some_and(|ret| ret.contains(text));
    let missing = ids(&silent);
    let failed = ids(&|ret| !silent(ret) && ret.retcode != 0);
    let mut out = vec![
        "\n".to_owned(),
        RULE.to_owned(),
        "Summary".to_owned(),
        RULE.to_owned(),
        format!("# of minions targeted: {}", all.len()),
        format!("# of minions returned: {}", all.len() - missing.len()),
        format!("# of minions that did not return: {}", missing.len()),
        format!("# of minions with errors: {}", failed.len()),
    ];
    if verbose {
        let disconnected = ids(&|ret| says(ret, "Not connected"));
        let silent = ids(&|ret| says(ret, "No response"));
        for (what, ids) in [("not connected", disconnected), ("not responding", silent), ("with failures", failed)] {
            if !ids.is_empty() {
                out.push(format!("Minions {what}: {}", ids.join(" ")));
            }
        }
    }
    out.push(RULE.to_owned());
    out
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::Value;

    use super::*;

    #[test]
    fn counts() {
        let ret = |id: &str, retcode, out: Option<&str>, text: &str| MinionReturn {
            id: id.to_owned(),
            ret: text.into(),
            retcode,
            out: out.map(str::to_owned),
            load: Value::Nil,
        };
        let all = [
            ret("a", 0, None, "x"),
            ret("b", 2, None, "x"),
            ret("c", 1, Some("no_return"), "Minion did not return. [No response]"),
            ret("d", 1, Some("no_return"), "Minion did not return. [Not connected]"),
        ];
        let text = lines(&all, true).join("\n");
        for line in [
            "# of minions targeted: 4",
            "# of minions returned: 2",
            "# of minions that did not return: 2",
            "# of minions with errors: 1",
            "Minions not connected: d",
            "Minions not responding: c",
            "Minions with failures: b",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(!lines(&all, false).join("\n").contains("not responding"));
    }
}
