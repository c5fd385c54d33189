//! One state of a return.

use brine_protocol::value::Value;

use super::{View, wrap};
use brine_protocol::pyrepr;

/// The changes of a state: whether there are any, and the text.
#[derive(Default)]
pub(super) struct Changed {
    pub(super) any: bool,
    pub(super) text: String,
}

/// The fields of one state that its output needs. A missing field is empty, because a minion can return anything.
pub(super) struct State<'a> {
    /// `module_|-id_|-name_|-function`.
    pub(super) tag: String,
    fields: &'a [(Value, Value)],
    pub(super) result: &'a Value,
    pub(super) changes: &'a Value,
    pub(super) run_num: f64,
    pub(super) parallel: bool,
}

impl<'a> State<'a> {
    pub(super) fn new(tag: String, fields: &'a [(Value, Value)]) -> Self {
        let mut state = Self { tag, fields, result: &Value::Nil, changes: &Value::Nil, run_num: 0.0, parallel: false };
        state.result = state.get("result").unwrap_or(&Value::Nil);
        state.changes = state.get("changes").unwrap_or(&Value::Nil);
        state.run_num = state.get("__run_num__").and_then(Value::as_f64).unwrap_or(0.0);
        state.parallel = state.has("__parallel__");
        state
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Python's truth value.
    pub(super) fn is_true(value: &Value) -> bool {
        brine_protocol::value::ValueExt::truthy(value)
    }

    pub(super) fn succeeded(&self) -> bool {
        Self::is_true(self.result)
    }

    /// Whether the changes are returns of states that this state ran elsewhere.
    pub(super) fn runs_states(&self) -> bool {
        let name = self.get("name").and_then(Value::as_str);
        matches!(name, Some("state.orch" | "state.orchestrate" | "state.sls"))
    }

    /// The duration; older minions return it as `12.3 ms`.
    pub(super) fn milliseconds(&self) -> f64 {
        match self.get("duration") {
            Some(Value::String(text)) => {
                let text = text.as_str().unwrap_or_default();
                text.split(" ms").next().and_then(|number| number.trim().parse().ok()).unwrap_or(0.0)
            }
            Some(value) => value.as_f64().unwrap_or(0.0),
            None => 0.0,
        }
    }

    /// Module, id, name and function.
    fn parts(&self, by_id: bool) -> [&str; 4] {
        let mut parts = self.tag.split("_|-");
        let mut next = || parts.next().unwrap_or_default();
        let (module, id, name, function) = (next(), next(), next(), next());
        [module, id, if by_id { id } else { name }, function]
    }

    fn text(&self, name: &str) -> String {
        self.get(name).map(pyrepr::str).unwrap_or_default()
    }

    /// The output in several lines.
    pub(super) fn full(&self, view: &View<'_>, color: &str, changes: &str, lines: &mut Vec<String>) {
        let style = view.style;
        let [module, id, name, function] = self.parts(style.state.by_id);
        lines.push(view.colored(color, "----------"));
        let mut push = |label: &str, text: &str| {
            lines.push(format!("    {}", view.colored(color, &format!("{label}: {}", style.pass(text)))));
        };
        push("      ID", id);
        push("Function", &format!("{module}.{function}"));
        if id != name {
            push("    Name", name);
        }
        push("  Result", &pyrepr::str(self.result));
        push(" Comment", &self.comment());
        if style.state.profile && self.has("start_time") {
            let duration = self.get("duration").filter(|ms| ms.as_str() != Some(""));
            push(" Started", &self.text("start_time"));
            push("Duration", &duration.map(|ms| format!("{} ms", pyrepr::str(ms))).unwrap_or_default());
        }
        lines.push(view.colored(color, &format!("     Changes:   {changes}")));
        if let Some(warnings) = self.warnings() {
            let text = wrap::fill(&warnings, 80, 14);
            let text = format!(" Warnings: {}", style.pass(text.trim_start()));
            lines.push(format!("   {}", view.colored(view.palette.light_red, &text)));
        }
    }

    fn comment(&self) -> String {
        let comment = self.text("comment");
        let mut comment = comment.trim_matches(pyrepr::is_space).replace('\n', &format!("\n{}", " ".repeat(14)));
        match self.get("data") {
            Some(Value::Array(items)) => {
                for item in items {
                    comment += &format!(" {}", pyrepr::str(item));
                }
            }
            Some(Value::Map(entries)) => {
                for (key, value) in entries {
                    comment += &format!("\n\t\t{}: {}", pyrepr::str(key), pyrepr::str(value));
                }
            }
            Some(other) => comment += &format!(" {}", pyrepr::str(other)),
            None => {}
        }
        comment
    }

    fn warnings(&self) -> Option<String> {
        let warnings = self.get("warnings")?;
        Some(match warnings {
            Value::Array(items) => items.iter().map(pyrepr::str).collect::<Vec<_>>().join("\n"),
            other => pyrepr::str(other),
        })
    }

    /// The output in one line.
    pub(super) fn terse(&self, view: &View<'_>, color: &str) -> String {
        let style = view.style;
        let [module, _, name, function] = self.parts(style.state.by_id);
        let result = match self.result {
            Value::Boolean(false) => "Failed",
            Value::Nil => "Differs",
            _ if Self::is_true(self.changes) => "Changed",
            _ => "Clean",
        };
        let mut out = String::new();
        if let Some(warnings) = self.warnings() {
            let end = if style.state.tabular { "\n" } else { "" };
            out = view.colored(view.palette.light_red, &format!("Warnings:\n{}", style.pass(&warnings))) + end;
        }
        let profile = style.state.profile && self.has("start_time");
        let (started, duration) = (self.text("start_time"), self.text("duration"));
        let text = if style.state.tabular {
            let profile = if profile { format!("{started} [{duration:>7} ms] ") } else { String::new() };
            format!("{profile}{module:>10}.{function:<10} {result:7}   Name: {name}")
        } else {
            let profile =
                if profile { format!(" - Started: {started} - Duration: {duration} ms") } else { String::new() };
            format!(" Name: {name} - Function: {module}.{function} - Result: {result}{profile}")
        };
        // Salt prints a space before the colour of this line.
        let before = if style.state.tabular { "" } else { " " };
        out + before + &view.colored(color, &style.pass(&text))
    }
}
