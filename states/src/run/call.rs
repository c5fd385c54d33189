//! One call of a state function: checked, asked whether it runs, called, and again if `retry` says so.

use brine_render::{Dict, Value, data};

use super::checks::Raised;
use super::core::Core;
use super::retry::Retry;
use super::step::{Answer, Call, Refresh, Step};
use super::{arguments, given, result};
use crate::fault::{Fault, Res};
use crate::python;

/// What a call came to.
pub(super) enum Called {
    /// A result, of the state or of a condition.
    Result(Value),
    /// An exception, with its text.
    Raised(String),
}

impl Core<'_> {
    /// Calls the function of a chunk, as often as `retry` asks. The result is in Salt's form.
    pub(super) async fn call(&self, low: &Dict, running: &Dict) -> Res<Dict> {
        let mut earlier = Vec::new();
        let mut took = 0.0;
        let mut start_time = None;
        loop {
            let result = self.call_once(low, running).await?;
            let retry = low.get("retry").filter(|_| !python::has(low, "parallel") && python::has(&result, "__id__"));
            let Some(retry) = retry.map(|retry| Retry::new(&retry, &self.budget.limits)) else { return Ok(result) };
            let own = result::comment(&result);
            if self.options.test {
                result.set("comment", format!("{own}  {}", retry.would_be()).into());
                return Ok(result);
            }
            took += milliseconds(&result);
            let number = earlier.len() as u64 + 1;
            let is_last = retry.is_met(&result) || retry.attempts <= number;
            let may_wait = is_last || self.budget.wait(retry.wait(milliseconds(&result)));
            if is_last || !may_wait {
                if !may_wait {
                    earlier.push(Retry::attempt(number, &result));
                    start_time = start_time.or_else(|| result.get("start_time"));
                }
                if let Some(start_time) = start_time {
                    earlier.push(if may_wait { own } else { Retry::given_up(self.budget.limits.patience) });
                    result.set("comment", earlier.join("\n").into());
                    result.set("duration", took.into());
                    result.set("start_time", start_time);
                }
                return Ok(result);
            }
            earlier.push(Retry::attempt(number, &result));
            start_time = start_time.or_else(|| result.get("start_time"));
            self.request(Step::Sleep { seconds: retry.interval(), splay: retry.splay }).await?;
            took += retry.interval_milliseconds();
        }
    }

    /// Calls the function of a chunk once.
    async fn call_once(&self, low: &Dict, running: &Dict) -> Res<Dict> {
        let start_time = self.now.borrow().clone();
        let mut took = 0.0;
        let errors = self.verify(low);
        if !errors.is_empty() {
            let lines: String = errors.iter().map(|error| format!("{error}\n")).collect();
            let failed = result::new(low.get("name").unwrap_or_default(), false.into(), &lines);
            failed.set("__run_num__", self.next_number());
            self.refresh(low, &failed).await?;
            return Ok(failed);
        }
        let is_trial = given(low, "__prereq__").is_some();
        let value = match self.conditions_and_call(low, running, is_trial, &mut took).await? {
            Called::Result(value) => value,
            Called::Raised(why) => {
                let name = low.get("name").filter(Value::truthy).or_else(|| low.get("__id__"));
                let comment = format!("An exception occurred in this state: {why}");
                Value::Dict(result::new(name.unwrap_or_default(), false.into(), &comment))
            }
        };
        let result = result::unified(value);
        if is_trial {
            low.set("__prereq__", false.into());
            return Ok(result);
        }
        result.set("__sls__", low.get("__sls__").unwrap_or_default());
        result.set("__run_num__", self.next_number());
        if given(low, "no_log").is_some() {
            mask(&result)?;
        }
        self.refresh(low, &result).await?;
        result.set("start_time", start_time.into());
        result.set("duration", took.into());
        result.set("__id__", low.get("__id__").unwrap_or_default());
        Ok(result)
    }

    /// What is wrong with a chunk.
    fn verify(&self, low: &Dict) -> Vec<String> {
        let mut errors = Vec::new();
        for part in ["state", "fun", "name"] {
            if !python::has(low, part) {
                errors.push(format!("Missing \"{part}\" data"));
            }
        }
        let name = low.get("name").unwrap_or_default();
        let sls = low.get("__sls__").map(|sls| python::name(&sls));
        if name.truthy() && name.as_str().is_none() {
            let of = sls.as_ref().map_or(String::new(), |sls| format!("in SLS '{sls}' "));
            let shown = python::name(&name);
            errors.push(format!("ID '{shown}' {of}is not formed as a string, but is a {}", python::class_name(&name)));
        }
        if let Some(umask) = python::pop(low, "umask") {
            let text = python::name(&umask);
            let digits = text.trim().strip_prefix("0o").unwrap_or(text.trim());
            match i64::from_str_radix(digits, 8) {
                Ok(umask) => low.set("__umask__", umask.into()),
                Err(_) => errors.push(format!("Invalid umask: {text}")),
            }
        }
        if !errors.is_empty() {
            return errors;
        }
        let function = function_of(low);
        match (self.host.parameters(&function), sls) {
            (Some(parameters), _) => errors.extend(arguments::missing(low, &function, &parameters)),
            (None, Some(sls)) => {
                errors.push(format!("State '{function}' was not found in SLS '{sls}'"));
                errors.extend(self.host.why_missing(&function).map(|why| format!("Reason: {why}")));
            }
            (None, None) => errors.push(format!("Specified state '{function}' was not found")),
        }
        errors
    }

    async fn conditions_and_call(&self, low: &Dict, running: &Dict, is_trial: bool, took: &mut f64) -> Res<Called> {
        let function = function_of(low);
        let parameters = self.host.parameters(&function).unwrap_or_default();
        let arguments = match arguments::of(low, &function, &parameters) {
            Ok(arguments) => arguments,
            Err(why) => return Ok(Called::Raised(format!("SaltInvocationError: {why}"))),
        };
        let module = python::name(&low.get("state").unwrap_or_default());
        let own = |name: &str| self.host.has_state(&format!("{module}.{name}"));
        let is_asked = ["unless", "onlyif", "creates"].iter().any(|name| python::has(low, name));
        let mut skipped = None;
        if is_asked && !own("mod_run_check") {
            match self.check(low, took).await? {
                Ok(verdict) if verdict.is_skipped => skipped = Some(verdict),
                Ok(_) => {}
                Err(Raised(why)) => return Ok(Called::Raised(why)),
            }
        }
        let value = match skipped {
            Some(verdict) => {
                let result = Dict::default();
                result.set("result", false.into());
                result.set("name", low.get("name").unwrap_or_default());
                result.set("changes", Value::dict([]));
                verdict.write(&result, low);
                Value::Dict(result)
            }
            None => {
                if let Err(why) = self.fill_slots(&arguments).await? {
                    return Ok(Called::Raised(why));
                }
                let call = Call {
                    tag: python::tag(low)?,
                    function: function.clone(),
                    arguments,
                    low: low.clone(),
                    running: running.clone(),
                    test: self.options.test || is_trial,
                };
                match self.execute(call, is_trial, took).await? {
                    Called::Result(value) => value,
                    raised => return Ok(raised),
                }
            }
        };
        let takes_it = own("mod_run_check_cmd")
            && parameters.required.iter().chain(&parameters.optional).any(|name| name == "check_cmd");
        if python::has(low, "check_cmd") && !takes_it {
            let Value::Dict(result) = &value else {
                let why = format!("AttributeError: '{}' object has no attribute 'update'", value.type_name());
                return Ok(Called::Raised(why));
            };
            if let Err(Raised(why)) = self.check_after(low, result, took).await? {
                return Ok(Called::Raised(why));
            }
        }
        Ok(Called::Result(value))
    }

    async fn execute(&self, call: Call, is_trial: bool, took: &mut f64) -> Res<Called> {
        let name = call.low.get("name").unwrap_or_default();
        if self.options.mocked {
            return Ok(Called::Result(result::new(name, true.into(), "Not called, mocked").into()));
        }
        if !self.meets_global_conditions(&call)? {
            let comment = "Failed to meet global state conditions. State not called.";
            return Ok(Called::Result(result::new(name, Value::None, comment).into()));
        }
        if !is_trial && given(&call.low, "parallel").is_some() {
            return Ok(Called::Result(self.start_parallel(call, name).await?.into()));
        }
        match self.ask(Step::Call(call)).await {
            Answer::Result(value, milliseconds) => {
                *took += milliseconds;
                Ok(Called::Result(value))
            }
            Answer::Raised(why, milliseconds) => {
                *took += milliseconds;
                Ok(Called::Raised(why))
            }
            other => Err(other.unexpected()),
        }
    }

    /// `global_state_conditions`: targets by state, module or `*`; one that matches is enough.
    fn meets_global_conditions(&self, call: &Call) -> Res<bool> {
        let Value::Dict(conditions) = &self.options.global_state_conditions else { return Ok(true) };
        let module = call.function.split('.').next().unwrap_or_default();
        let mut is_asked = false;
        for (of, targets) in python::entries(conditions) {
            if !matches!(of.as_str(), Some(of) if of == "*" || of == call.function || of == module) {
                continue;
            }
            let targets = match targets {
                Value::Str(_) => vec![targets],
                Value::List(list) => list.borrow().clone(),
                _ => continue,
            };
            for target in targets {
                is_asked = true;
                if self.host.is_target(&target, "compound", &self.options.nodegroups)? {
                    return Ok(true);
                }
            }
        }
        Ok(!is_asked)
    }

    /// Asks to read modules, grains or pillar anew, if the chunk says so or its result lets expect it.
    async fn refresh(&self, low: &Dict, result: &Dict) -> Res<()> {
        let asked = |name: &str| given(low, name).is_some();
        let (grains, pillar) = (asked("reload_grains"), asked("reload_pillar"));
        let modules = if !result::changed(result) {
            asked("force_reload_modules")
        } else {
            asked("reload_modules") || grains || pillar || may_bring_modules(low)
        };
        let refresh = Refresh { modules, grains, pillar };
        if refresh == Refresh::default() {
            return Ok(());
        }
        self.request(Step::Refresh(refresh)).await
    }
}

/// `pkg.installed`
pub(super) fn function_of(low: &Dict) -> String {
    let part = |name: &str| python::name(&low.get(name).unwrap_or_default());
    format!("{}.{}", part("state"), part("fun"))
}

/// Whether a change of this state can bring execution modules: packages do, and files of Python.
fn may_bring_modules(low: &Dict) -> bool {
    let part = |name: &str| python::name(&low.get(name).unwrap_or_default());
    let (module, function, name) = (part("state"), part("fun"), part("name"));
    match (module.as_str(), function.as_str()) {
        ("pkg" | "ports" | "pip", _) | ("file", "recurse") => true,
        ("file", "managed") => [".py", ".pyx", ".pyo", ".pyc", ".so"].iter().any(|end| name.ends_with(end)),
        ("file", "symlink") => name.contains("bin"),
        _ => false,
    }
}

/// Hides what a state with `no_log` says.
fn mask(result: &Dict) -> Res<()> {
    for part in ["name", "comment", "changes"] {
        let shown = result.get(part).unwrap_or_default();
        let hidden = data::mask(&shown, &data::Budget::default()).map_err(|why| Fault::Limit(why.to_string()))?;
        result.set(part, hidden);
    }
    Ok(())
}

fn milliseconds(result: &Dict) -> f64 {
    if let Some(Value::Float(n)) = result.get("duration") { n } else { 0.0 }
}
