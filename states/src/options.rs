//! The settings that decide how states are compiled and run: the minion's, some of them the master's word.

use brine_render::jinja::Settings;
use brine_render::{Dict, Value};

use crate::python;

/// Settings, grains and pillar of one compile.
#[derive(Clone, Debug)]
pub struct Options {
    /// All settings, as templates see them: `opts`.
    pub opts: Value,
    /// `grains` of templates.
    pub grains: Value,
    /// `pillar` of templates.
    pub pillar: Value,
    /// `renderer`: the pipe of files that name none.
    pub renderer: String,
    /// `renderer_blacklist`
    pub renderer_blacklist: Vec<String>,
    /// `renderer_whitelist`
    pub renderer_whitelist: Vec<String>,
    /// `state_top`: the path of top files below the roots.
    pub state_top: String,
    /// `state_top_saltenv`: the only environment whose top file counts.
    pub state_top_saltenv: Option<String>,
    /// `saltenv`: the only environment of this run.
    pub saltenv: Option<String>,
    /// The environments that `file_roots` names.
    pub file_roots: Vec<String>,
    /// `env_order`
    pub env_order: Vec<String>,
    /// `default_top`
    pub default_top: Option<String>,
    /// `top_file_merging_strategy`
    pub top_file_merging_strategy: String,
    /// `master_tops_first`
    pub master_tops_first: bool,
    /// `state_auto_order`: states run in the order of their files.
    pub state_auto_order: bool,
    /// `state_aggregate`: true, or a list of state modules.
    pub state_aggregate: Value,
    /// `state_max_parallel`: parallel states at a time; 0 is no bound.
    pub state_max_parallel: usize,
    /// `failhard`: the first failure ends the run.
    pub failhard: bool,
    /// `test`
    pub test: bool,
    /// `state_events`: an event for each result.
    pub state_events: bool,
    /// States are not run: each has succeeded (`mock=True`).
    pub mocked: bool,
    /// `disabled_requisites`
    pub disabled_requisites: Vec<String>,
    /// `nodegroups`
    pub nodegroups: Value,
    /// `global_state_conditions`
    pub global_state_conditions: Value,
    /// `jinja_env`: for files that are no SLS.
    pub jinja_env: Settings,
    /// `jinja_sls_env`
    pub jinja_sls_env: Settings,
}

impl Options {
    /// Reads a minion's settings, with what its master says of them (`renderer`, `state_top`, `nodegroups`, …).
    pub fn new(opts: &Dict, grains: Value, pillar: Value) -> Self {
        let text = |name: &str| opts.get(name).filter(Value::truthy).map(|value| python::name(&value));
        let flag = |name: &str, default: bool| opts.get(name).map_or(default, |value| value.truthy());
        let names = |name: &str| match opts.get(name) {
            Some(value @ (Value::List(_) | Value::Tuple(_) | Value::Dict(_))) => {
                python::iterate(&value).unwrap_or_default().iter().map(python::name).collect()
            }
            Some(value) if value.truthy() => vec![python::name(&value)],
            _ => Vec::new(),
        };
        let dict = |name: &str| opts.get(name).unwrap_or_else(|| Value::dict([]));
        let jinja = |name: &str| {
            let mut settings = Settings::default();
            if let Value::Dict(dict) = dict(name) {
                for (key, value) in dict.borrow().iter() {
                    settings.set(key.as_str().unwrap_or_default(), value);
                }
            }
            settings.trim_blocks |= flag("jinja_trim_blocks", false);
            settings.lstrip_blocks |= flag("jinja_lstrip_blocks", false);
            settings
        };
        let top = text("state_top").unwrap_or_else(|| "top.sls".to_owned());
        Self {
            renderer: text("renderer").unwrap_or_else(|| "jinja|yaml".to_owned()),
            renderer_blacklist: names("renderer_blacklist"),
            renderer_whitelist: names("renderer_whitelist"),
            state_top: top.strip_prefix("salt://").or(top.strip_prefix('/')).unwrap_or(&top).to_owned(),
            state_top_saltenv: text("state_top_saltenv"),
            saltenv: text("saltenv"),
            file_roots: names("file_roots"),
            env_order: names("env_order"),
            default_top: if python::has(opts, "default_top") { text("default_top") } else { Some("base".to_owned()) },
            top_file_merging_strategy: text("top_file_merging_strategy").unwrap_or_else(|| "merge".to_owned()),
            master_tops_first: flag("master_tops_first", false),
            state_auto_order: flag("state_auto_order", true),
            state_aggregate: opts.get("state_aggregate").unwrap_or(Value::Bool(false)),
            state_max_parallel: match opts.get("state_max_parallel") {
                Some(Value::Int(n)) => usize::try_from(n).unwrap_or(0),
                _ => 0,
            },
            failhard: flag("failhard", false),
            test: flag("test", false),
            state_events: flag("state_events", false),
            mocked: false,
            disabled_requisites: names("disabled_requisites"),
            nodegroups: dict("nodegroups"),
            global_state_conditions: dict("global_state_conditions"),
            jinja_env: jinja("jinja_env"),
            jinja_sls_env: jinja("jinja_sls_env"),
            opts: Value::Dict(opts.clone()),
            grains,
            pillar,
        }
    }
}
