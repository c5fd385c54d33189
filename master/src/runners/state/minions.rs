//! `salt.state` and `salt.function`: jobs for minions. The results are those of Salt's `saltmod`.

use std::sync::Arc;
use std::time::Duration;

use brine_client::BatchSize;
use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_render::functions::{self, Surroundings};
use brine_render::{Dict, Value as Rendered};

use super::publish::{self, Returns, TIMEOUT_MAX_SECONDS, Wanted};
use super::result::{StateResult, is_good};
use super::table::{Actor, Done, StateCall};

/// The arguments that both states share, and what `saltutil.cmd` is called with.
struct Common {
    wanted: Wanted,
    /// As Salt's event about it has them.
    shown: Value,
    fail_minions: Vec<String>,
    warnings: Vec<String>,
}

/// An argument that is not None.
fn given<'a>(arguments: &'a Value, name: &str) -> Option<&'a Value> {
    arguments.get(name).filter(|value| !value.is_nil())
}

fn is_set(arguments: &Value, name: &str) -> bool {
    given(arguments, name).is_some_and(ValueExt::truthy)
}

/// A number of seconds.
fn seconds(value: &Value) -> Result<Duration, String> {
    let seconds = value.as_f64().or_else(|| value.text()?.trim().parse().ok());
    let seconds = seconds.filter(|seconds| (0.0..=TIMEOUT_MAX_SECONDS).contains(seconds));
    let seconds = seconds.ok_or_else(|| format!("timeout must be a number of seconds up to {TIMEOUT_MAX_SECONDS}"))?;
    Ok(Duration::from_secs_f64(seconds))
}

/// The texts of a list, or one text.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().map(|item| item.python_str()).collect(),
        other => vec![other.python_str()],
    }
}

impl Common {
    fn new(
        actor: &Actor,
        arguments: &Value,
        fun: &str,
        args: Vec<Value>,
        kwarg: &Value,
        expect_minions: bool,
    ) -> Result<Self, String> {
        if is_set(arguments, "ssh") {
            return Err("ssh is not taken: this master has no salt-ssh".to_owned());
        }
        let tgt = arguments.get("tgt").cloned().unwrap_or(Value::Nil);
        let tgt_type = given(arguments, "tgt_type").map_or_else(|| "glob".to_owned(), |kind| kind.python_str());
        let ret = given(arguments, "ret").cloned().unwrap_or_else(|| "".into());
        let timeout = given(arguments, "timeout").map(seconds).transpose()?;
        let expect_minions = arguments.get("expect_minions").map_or(expect_minions, ValueExt::truthy);
        let batch = given(arguments, "batch").map(ValueExt::python_str);
        let size = batch.as_deref().map(str::parse::<BatchSize>).transpose().map_err(|error| error.to_string())?;
        let subset = given(arguments, "subset").cloned();
        let most = match &subset {
            None => None,
            Some(most) => Some(
                most.as_i64()
                    .or_else(|| most.text()?.parse().ok())
                    .and_then(|most| usize::try_from(most).ok())
                    .ok_or("subset must be a number of minions")?,
            ),
        };
        let failhard = arguments.get("failhard") == Some(&Value::from(true)) || actor.failhard;
        let mut more = Vec::new();
        for name in ["ret_config", "ret_kwargs"] {
            if let Some(value) = given(arguments, name).filter(|value| value.truthy()) {
                more.push((name, value.clone()));
            }
        }
        let mut shown = map([("arg", Value::Array(args.clone())), ("kwarg", kwarg.clone()), ("ret", ret.clone())]);
        shown.insert("timeout", arguments.get("timeout").cloned().unwrap_or(Value::Nil));
        for (name, value) in &more {
            shown.insert(name, value.clone());
        }
        shown.insert("tgt_type", tgt_type.as_str());
        shown.insert("ssh", false);
        shown.insert("expect_minions", expect_minions);
        if let Some(batch) = batch {
            shown.insert("batch", batch);
        }
        if let Some(subset) = subset {
            shown.insert("subset", subset);
        }
        if failhard {
            shown.insert("failhard", true);
        }
        let kwargs = kwarg.entries().unwrap_or_default().iter();
        let kwargs = kwargs.filter_map(|(name, value)| Some((name.text()?.to_owned(), value.clone()))).collect();
        let mut warnings = Vec::new();
        let fail_minions = match given(arguments, "fail_minions") {
            None => Vec::new(),
            Some(Value::Array(ids)) => ids.iter().map(|id| id.python_str()).collect(),
            Some(text) if text.text().is_some() => {
                text.python_str().split(',').map(|id| id.trim().to_owned()).collect()
            }
            Some(_) => {
                let said = "'fail_minions' needs to be a list or a comma separated string. Ignored.";
                warnings.push(said.to_owned());
                Vec::new()
            }
        };
        let wanted = Wanted {
            tgt,
            tgt_type,
            fun: fun.to_owned(),
            args,
            kwargs,
            ret: if ret.truthy() { texts(&ret).join(",") } else { String::new() },
            more,
            timeout,
            expect_minions,
            batch: size,
            subset: most,
            failhard,
        };
        Ok(Self { wanted, shown, fail_minions, warnings })
    }

    /// Tells of the job, and runs it.
    async fn run(&self, actor: &Actor, kind: &str, name: &Value) -> Result<Returns, String> {
        let data = [
            ("type", kind.into()),
            ("tgt", self.wanted.tgt.clone()),
            ("name", name.clone()),
            ("args", self.shown.clone()),
        ];
        actor.runners.parts.bus.fire(format!("salt/run/{}/args", actor.within.jid), map(data));
        publish::cmd(actor, &self.wanted).await
    }
}

fn jid(returns: &Returns) -> Option<Value> {
    returns.values().find_map(|data| data.get("jid")).cloned()
}

fn joined<'a>(ids: impl IntoIterator<Item = &'a String>) -> String {
    ids.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// `salt.state`
pub(super) async fn state(actor: Arc<Actor>, call: StateCall) -> Done {
    let arguments = &call.arguments;
    let name = arguments.get("name").cloned().unwrap_or(Value::Nil);
    let mut result = StateResult::new(name.clone(), Some(true), "");
    let failed = |mut result: StateResult, comment: &str| {
        (result.result, result.comment) = (Some(false), comment.to_owned());
        Ok(result.to_value())
    };
    let Some(allow_fail) = whole_number(arguments.get("allow_fail")) else {
        return failed(result, "Passed invalid value for 'allow_fail', must be an int");
    };
    let (fun, args) = if is_set(arguments, "highstate") {
        ("state.highstate", Vec::new())
    } else if let Some(top) = given(arguments, "top").filter(|top| top.truthy()) {
        ("state.top", vec![top.clone()])
    } else if let Some(sls) = given(arguments, "sls").filter(|sls| sls.truthy()) {
        ("state.sls", vec![Value::from(texts(sls).join(","))])
    } else {
        return failed(result, "No highstate or sls specified, no execution made");
    };
    let test = given(arguments, "test");
    let is_test = test.is_some_and(ValueExt::truthy) || call.test;
    let mut kwarg = empty_map();
    if test.is_some() || call.test {
        kwarg.insert("test", test.cloned().unwrap_or(Value::from(call.test)));
    }
    if is_set(arguments, "pillar") {
        kwarg.insert("pillar", arguments.get("pillar").cloned().unwrap_or(Value::Nil));
    }
    for option in ["pillarenv", "saltenv", "exclude"] {
        if let Some(value) = given(arguments, option) {
            kwarg.insert(option, value.clone());
        }
    }
    kwarg.insert("queue", arguments.get("queue").cloned().unwrap_or(Value::from(false)));
    match arguments.get("concurrent") {
        None => kwarg.insert("concurrent", false),
        Some(Value::Boolean(concurrent)) => kwarg.insert("concurrent", *concurrent),
        Some(_) => return failed(result, "Must pass in boolean for value of 'concurrent'"),
    }
    let common = match Common::new(&actor, arguments, fun, args, &kwarg, true) {
        Ok(common) => common,
        Err(why) => return failed(result, &why),
    };
    result.warnings.clone_from(&common.warnings);
    let returns = match common.run(&actor, "state", &name).await {
        Ok(returns) => returns,
        Err(why) => return failed(result, &why),
    };
    result.jid = jid(&returns);
    if returns.is_empty() && common.wanted.expect_minions {
        return failed(result, "No minions returned");
    }
    judge_states(&mut result, returns, &common.fail_minions, allow_fail);
    if is_test && result.changes.truthy() && result.result == Some(true) {
        result.result = None;
    }
    Ok(result.to_value())
}

/// What minions' returns of states come to.
fn judge_states(result: &mut StateResult, returns: Returns, fail_minions: &[String], allow_fail: i64) {
    let (mut changes, mut failed, mut unchanged) = (Vec::new(), Vec::new(), Vec::new());
    for (minion, mut data) in returns {
        let ret = data.remove("ret");
        let is_failed = data.get("failed").is_some_and(|failed| failed.truthy());
        let good = !is_failed && ret.as_ref().is_some_and(|ret| is_good(ret, true));
        if !good {
            let detail = detail(&minion, ret.as_ref());
            if !fail_minions.contains(&minion) {
                failed.push((minion.clone(), detail));
            }
            changes.push((minion, ret.filter(|_| !is_failed).unwrap_or(Value::from(false))));
            continue;
        }
        let ret = ret.unwrap_or(Value::Nil);
        let has_changes = |result: &Value| result.get("changes").is_some_and(|changes| changes.truthy());
        if ret.entries().unwrap_or_default().iter().any(|(_, state)| has_changes(state)) {
            changes.push((minion, ret));
        } else {
            unchanged.push(minion);
        }
    }
    let changed: Vec<String> = changes.iter().map(|(minion, _)| minion.clone()).collect();
    if !changes.is_empty() {
        let ret = map(changes.iter().map(|(minion, ret)| (minion.as_str(), ret.clone())));
        result.changes = map([("out", Value::from("highstate")), ("ret", ret)]);
    }
    if i64::try_from(failed.len()).unwrap_or(i64::MAX) > allow_fail {
        result.result = Some(false);
        result.comment = format!("Run failed on minions: {}", joined(failed.iter().map(|(minion, _)| minion)));
        for (_, detail) in failed.iter().filter(|(_, detail)| !detail.is_empty()) {
            result.comment.push('\n');
            result.comment.push_str(detail);
        }
        return;
    }
    result.comment = "States ran successfully.".to_owned();
    if !changed.is_empty() {
        result.comment.push_str(&format!(" Updating {}.", joined(&changed)));
    }
    if !unchanged.is_empty() {
        result.comment.push_str(&format!(" No changes made to {}.", joined(&unchanged)));
    }
}

/// Why a minion's return is no result of states, in Salt's words; empty if it is one.
fn detail(minion: &str, ret: Option<&Value>) -> String {
    match ret {
        None => format!("Minion {minion} did not return a state result."),
        Some(Value::Map(_)) => String::new(),
        Some(Value::Array(lines)) => {
            let lines: Vec<String> = lines.iter().filter(|line| line.truthy()).map(|line| line.python_str()).collect();
            match lines.is_empty() {
                true => format!("Minion {minion} returned an empty error list."),
                false => format!("Minion {minion} returned errors: {}", lines.join("; ")),
            }
        }
        Some(other) => format!("Minion {minion} returned {} instead of a state result.", other.python_repr()),
    }
}

/// Python's `int` of a value; 0 if there is none.
fn whole_number(value: Option<&Value>) -> Option<i64> {
    match value {
        None => Some(0),
        Some(Value::Boolean(yes)) => Some(i64::from(*yes)),
        Some(value) => match value.text() {
            Some(text) => text.trim().parse().ok(),
            #[allow(clippy::cast_possible_truncation, reason = "as Python's int")]
            None => value.as_i64().or_else(|| value.as_f64().map(|number| number as i64)),
        },
    }
}

/// `salt.function`
pub(super) async fn function(actor: Arc<Actor>, call: StateCall) -> Done {
    let arguments = &call.arguments;
    let name = arguments.get("name").cloned().unwrap_or(Value::Nil);
    let fun = name.python_str();
    let mut result = StateResult::new(name.clone(), Some(true), "");
    let args = match given(arguments, "arg") {
        Some(Value::Array(args)) => args.clone(),
        Some(arg) if arg.text().is_some() => {
            result.warnings.push("Please specify 'arg' as a list of arguments.".to_owned());
            arg.python_str().split_whitespace().map(Value::from).collect()
        }
        _ => Vec::new(),
    };
    if call.test {
        let tgt = arguments.get("tgt").map(ValueExt::python_str).unwrap_or_default();
        result.comment = format!("Function {fun} would be executed on target {tgt}");
        result.result = None;
        return Ok(result.to_value());
    }
    let kwarg = given(arguments, "kwarg").cloned().unwrap_or_else(empty_map);
    let ran = match Common::new(&actor, arguments, &fun, args, &kwarg, false) {
        Ok(mut common) => {
            common.shown.insert("_cmd_meta", true);
            result.warnings.append(&mut common.warnings);
            common.run(&actor, "function", &name).await.map(|returns| (common, returns))
        }
        Err(why) => Err(why),
    };
    let (common, returns) = match ran {
        Ok(ran) => ran,
        Err(why) => {
            (result.result, result.comment) = (Some(false), why);
            return Ok(result.to_value());
        }
    };
    result.jid = jid(&returns);
    if returns.is_empty() {
        (result.result, result.comment) = (Some(false), "No minions responded".to_owned());
        return Ok(result.to_value());
    }
    let judge = given(arguments, "fail_function").filter(|name| name.truthy()).map(ValueExt::python_str);
    let (mut changes, mut failed) = (Vec::new(), Vec::new());
    for (minion, data) in &returns {
        let mut is_failed = false;
        if data.get("retcode").is_some_and(|code| code.truthy()) {
            result.result = Some(false);
            is_failed = true;
        }
        let is_missing = data.get("failed").is_some_and(|failed| failed.truthy());
        let ret = data.get("ret").filter(|_| !is_missing).cloned().unwrap_or(Value::from(false));
        let good = !is_missing
            && ret != Value::from(false)
            && match &judge {
                None => true,
                Some(judge) => asked(judge, &ret)?,
            };
        if is_failed || !good && !common.fail_minions.contains(minion) {
            failed.push(minion.clone());
        }
        changes.push((minion.as_str(), ret));
    }
    let ran = joined(returns.keys());
    result.changes = map([("ret", map(changes))]);
    result.comment = if failed.is_empty() {
        "Function ran successfully.".to_owned()
    } else {
        result.result = Some(false);
        format!("Running function {fun} failed on minions: {}", joined(&failed))
    };
    result.comment.push_str(&format!(" Function {fun} ran on {ran}."));
    Ok(result.to_value())
}

/// Asks a function that computes (`fail_function`) whether a return is good.
fn asked(judge: &str, ret: &Value) -> Result<bool, String> {
    let nothing = Surroundings::new("", Dict::default(), Dict::default(), Dict::default());
    let ret = Rendered::from_wire(ret).map_err(|why| why.to_string())?;
    let answer = functions::call(&nothing, judge, vec![ret], Vec::new());
    let answer = answer.ok_or_else(|| format!("fail_function: {judge} does not compute, so it is not called here"))?;
    answer.map(|answer| answer.truthy()).map_err(|error| error.message)
}

/// `saltutil.cmd` for templates: what minions returned.
///
/// # Errors
/// The caller may not, or the arguments are not those of Salt's function.
pub(super) async fn cmd(actor: Arc<Actor>, args: Vec<Value>, named: Value) -> Result<Value, String> {
    let mut given = named;
    for (name, value) in ["tgt", "fun", "arg", "timeout", "tgt_type", "ret", "kwarg", "ssh"].into_iter().zip(args) {
        given.insert(name, value);
    }
    let (Some(_), Some(fun)) = (given.get("tgt"), given.get("fun").map(ValueExt::python_str)) else {
        return Err("a target and a function are needed".to_owned());
    };
    let args = match given.get("arg") {
        Some(Value::Array(args)) => args.clone(),
        None | Some(Value::Nil) => Vec::new(),
        Some(one) => vec![one.clone()],
    };
    let kwarg = given.get("kwarg").filter(|kwarg| !kwarg.is_nil()).cloned().unwrap_or_else(empty_map);
    let common = Common::new(&actor, &given, &fun, args, &kwarg, false)?;
    let returns = publish::cmd(&actor, &common.wanted).await?;
    Ok(map(returns.iter().map(|(id, data)| (id.as_str(), data.clone()))))
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;

    use super::*;

    fn judged(returns: &str, fail_minions: &[&str], allow_fail: i64) -> (Option<bool>, String, Value) {
        let returns = yaml::load(returns).unwrap();
        let returns = returns.entries().unwrap().iter().map(|(id, data)| (id.python_str(), data.clone())).collect();
        let mut result = StateResult::new("x".into(), Some(true), "");
        let fail_minions: Vec<String> = fail_minions.iter().map(|id| (*id).to_owned()).collect();
        judge_states(&mut result, returns, &fail_minions, allow_fail);
        (result.result, result.comment, result.changes)
    }

    #[test]
    fn returns_are_judged_in_salts_words() {
        let same = "a: {ret: {t: {result: true, changes: {}}}}";
        let changed = "b: {ret: {t: {result: true, changes: {x: 1}}}}";
        let bad = "c: {ret: {t: {result: false, changes: {}}}}";
        let (result, comment, changes) = judged(&format!("{{{same}, {changed}}}"), &[], 0);
        assert_eq!(result, Some(true));
        assert_eq!(comment, "States ran successfully. Updating b. No changes made to a.");
        assert_eq!(changes.get("ret").and_then(|ret| ret.entries()).map(<[_]>::len), Some(1));
        let (result, comment, _) = judged(&format!("{{{same}, {bad}}}"), &[], 0);
        assert_eq!((result, comment.as_str()), (Some(false), "Run failed on minions: c"));
        let (result, comment, changes) = judged(&format!("{{{bad}, d: {{failed: true}}}}"), &["c"], 1);
        assert_eq!((result, comment.as_str()), (Some(true), "States ran successfully. Updating c, d."));
        assert_eq!(changes.get("ret").and_then(|ret| ret.get("d")), Some(&Value::from(false)));
        let (_, comment, _) =
            judged("{d: {failed: true}, e: {ret: [first, second]}, f: {ret: text}, g: {ret: []}}", &[], 0);
        let expect = "Run failed on minions: d, e, f, g\nMinion d did not return a state result.\nMinion e returned \
                      errors: first; second\nMinion f returned 'text' instead of a state result.\nMinion g returned an empty \
                      error list.";
        assert_eq!(comment, expect);
    }

    #[test]
    fn python_makes_whole_numbers() {
        for (text, number) in [("'3'", Some(3)), ("2", Some(2)), ("true", Some(1)), ("x", None), ("1.9", Some(1))] {
            assert_eq!(whole_number(Some(&yaml::load(text).unwrap())), number, "{text}");
        }
        assert_eq!(whole_number(None), Some(0));
    }
}
