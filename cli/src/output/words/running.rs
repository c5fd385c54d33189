//! What runs on a host, and what it uses.

use brine_protocol::value::{Value, ValueExt};

use crate::output::page::{Page, Row};

/// `sandbox.running`: a line for each call, and for each job of which no call is known.
pub(super) fn running(page: &mut Page, all: &Value) -> Option<()> {
    let mut rows = Vec::new();
    for job in all.list()? {
        let jid = job.get_text("jid")?;
        let calls = job.get_list("calls")?;
        if calls.is_empty() {
            let cells = [jid, job.get_text("function")?, "", "", ""].map(str::to_owned);
            rows.push(Row { cells: cells.into(), look: false });
        }
        for call in calls {
            let function = call.get_text("function")?;
            let nested = call.get_text("called_by").is_some();
            let time = |ms: u64| format!("{}.{}", ms / 1_000, ms % 1_000 / 100);
            let cells = vec![
                jid.to_owned(),
                if nested { format!("+ {function}") } else { function.to_owned() },
                share(call, ("ms", "ms_max"), |ms| format!("{}", ms / 1_000), "s"),
                share(call, ("memory", "memory_max"), |bytes| format!("{}", bytes.div_ceil(1 << 20)), "MiB"),
                share(call, ("cpu_ms", "cpu_ms_max"), |ms| time(ms).trim_end_matches(".0").to_owned(), "s"),
            ];
            rows.push(Row { cells, look: false });
        }
    }
    if rows.is_empty() {
        page.text("Nothing runs.");
        return Some(());
    }
    page.table(&["job", "function", "time", "memory", "CPU"], &rows);
    page.gap();
    page.text("Each with its limit. Memory and CPU time are what the executors tell. --out=yaml has who asked.");
    Some(())
}

/// What is used of a limit. Empty if it is not known.
fn share(call: &Value, (used, most): (&str, &str), shown: impl Fn(u64) -> String, unit: &str) -> String {
    match (call.get_u64(used), call.get_u64(most)) {
        (Some(used), Some(most)) => format!("{}/{} {unit}", shown(used), shown(most)),
        (Some(used), None) => format!("{} {unit}", shown(used)),
        (None, _) => String::new(),
    }
}
