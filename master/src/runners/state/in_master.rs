//! `salt.runner` and `salt.wheel`: what runs in the master.

use std::sync::Arc;

use brine_protocol::value::{Value, ValueExt as _, empty_map, map};

use super::super::Call;
use super::super::service::Runners;
use super::super::wheel as wheels;
use super::result::StateResult;
use super::table::{Actor, Done, StateCall};

/// Fires Salt's event about what an orchestration starts.
fn tell(actor: &Actor, data: Value) {
    actor.runners.parts.bus.fire(format!("salt/run/{}/args", actor.within.jid), data);
}

fn named(kwargs: &Value) -> Vec<(String, Value)> {
    let entries = kwargs.entries().unwrap_or_default().iter();
    entries.filter_map(|(name, value)| Some((name.text()?.to_owned(), value.clone()))).collect()
}

/// Runs a runner as its caller would. Returns the data of its last event.
///
/// # Errors
/// The caller may not run it.
pub(super) async fn run(actor: &Actor, saltenv: &str, name: &str, arg: Vec<Value>, mut kwarg: Value) -> Done {
    if Runners::has_parameter("runner", name, "saltenv") {
        kwarg.insert("saltenv", saltenv);
    }
    if matches!(name, "state.orchestrate" | "state.orch" | "state.sls") {
        kwarg.insert("orchestration_jid", actor.within.jid.as_str());
    }
    tell(
        actor,
        map([
            ("type", Value::from("runner")),
            ("name", name.into()),
            ("args", Value::Array(arg.clone())),
            ("kwargs", kwarg.clone()),
        ]),
    );
    let call = Call::new(arg, named(&kwarg));
    actor.runners.run_within(name, call, &actor.by, actor.within.clone()).await.map_err(|denied| denied.message)
}

/// Runs a function of the wheel as its caller would. Returns the data of its last event.
async fn turn(actor: &Actor, saltenv: &str, name: &str, args: Vec<Value>, mut kwarg: Value) -> Done {
    if Runners::has_parameter("wheel", name, "saltenv") {
        kwarg.insert("saltenv", saltenv);
    }
    let shown = if wheels::hides_arguments(name) { crate::bus::TRIMMED.into() } else { kwarg.clone() };
    tell(actor, map([("type", Value::from("wheel")), ("name", name.into()), ("args", shown)]));
    let call = Call::new(args, named(&kwarg));
    actor.runners.wheel_within(name, call, &actor.by, actor.within.clone()).await.map_err(|denied| denied.message)
}

/// The arguments of `saltutil.runner`, from those of a state or of a call: the keywords that are no parameters of its own
/// are the runner's.
fn for_runner(mut given: Value) -> (Vec<Value>, Value) {
    let arg = match given.remove("arg") {
        Some(Value::Array(arg)) => arg,
        _ => Vec::new(),
    };
    let mut kwarg = given.remove("kwarg").filter(|kwarg| kwarg.entries().is_some()).unwrap_or_else(empty_map);
    for name in ["name", "full_return"] {
        given.remove(name);
    }
    for (name, value) in named(&given).into_iter().filter(|(name, _)| !name.starts_with("__")) {
        kwarg.insert(&name, value);
    }
    (arg, kwarg)
}

/// `salt.runner`
pub(super) async fn runner(actor: Arc<Actor>, call: StateCall) -> Done {
    let name = call.arguments.get("name").cloned().unwrap_or(Value::Nil);
    let fun = name.python_str();
    if call.test {
        return Ok(StateResult::new(name, None, format!("Runner function '{fun}' would be executed.")).to_value());
    }
    if !Runners::has("runner", &fun) {
        return Err(format!("salt.exceptions.CommandExecutionError: '{fun}' is not available."));
    }
    let (arg, kwarg) = for_runner(call.arguments);
    let out = run(&actor, &call.saltenv, &fun, arg, kwarg).await;
    Ok(result("Runner", name, out, |data| data.get("return").cloned().unwrap_or(Value::Nil)))
}

/// `salt.wheel`
pub(super) async fn wheel(actor: Arc<Actor>, call: StateCall) -> Done {
    let name = call.arguments.get("name").cloned().unwrap_or(Value::Nil);
    let fun = name.python_str();
    if call.test {
        return Ok(StateResult::new(name, None, format!("Wheel function '{fun}' would be executed.")).to_value());
    }
    if !Runners::has("wheel", &fun) {
        return Err(format!("salt.exceptions.CommandExecutionError: '{fun}' is not available."));
    }
    let mut kwarg = call.arguments;
    kwarg.remove("name");
    let out = turn(&actor, &call.saltenv, &fun, Vec::new(), kwarg).await;
    // Readers of the bus see the result of an orchestration.
    Ok(result("Wheel", name, out, |data| wheels::told(&fun, data.get("return").unwrap_or(&Value::Nil))))
}

fn result(kind: &str, name: Value, out: Done, told: impl FnOnce(&Value) -> Value) -> Value {
    let fun = name.python_str();
    let data = match out {
        Ok(data) => data,
        Err(why) => {
            let comment = format!("{kind} function '{fun}' failed. {why}");
            return StateResult::new(name, Some(false), comment).to_value();
        }
    };
    let returned = told(&data);
    let is_good = data.get_bool("success").unwrap_or(true) && !returned.has("Error");
    let comment = format!("{kind} function '{fun}' {}.", if is_good { "executed" } else { "failed" });
    let mut result = StateResult::new(name, Some(is_good), comment);
    result.changes = map([("return", returned)]);
    result.jid = data.get("jid").cloned();
    result.to_value()
}

/// `saltutil.runner` for templates: what the runner returned.
///
/// # Errors
/// The caller may not run it, or none is named.
pub(super) async fn call_runner(actor: Arc<Actor>, saltenv: String, args: Vec<Value>, named: Value) -> Done {
    let mut given = named;
    for (name, value) in ["name", "arg", "kwarg", "full_return"].into_iter().zip(args) {
        given.insert(name, value);
    }
    let name = given.get("name").map(|name| name.python_str()).ok_or("a runner has to be named")?;
    let whole = given.get("full_return").is_some_and(|whole| whole.truthy());
    let (arg, kwarg) = for_runner(given);
    let mut out = run(&actor, &saltenv, &name, arg, kwarg).await?;
    Ok(if whole { out } else { out.remove("return").unwrap_or(Value::Nil) })
}

/// `saltutil.wheel` for templates: all that the function's last event has.
///
/// # Errors
/// The caller may not call it, or none is named.
pub(super) async fn call_wheel(actor: Arc<Actor>, saltenv: String, args: Vec<Value>, named: Value) -> Done {
    let mut args = args.into_iter();
    let mut given = named;
    let name = args.next().or_else(|| given.remove("name")).ok_or("a function of the wheel has to be named")?;
    turn(&actor, &saltenv, &name.python_str(), args.collect(), given).await
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;

    use super::*;

    #[test]
    fn other_keywords_are_the_runners() {
        let given = yaml::load("{name: x.y, arg: [1], kwarg: {a: 2}, b: 3, __pub_user: z, full_return: true}").unwrap();
        let (arg, kwarg) = for_runner(given);
        assert_eq!((arg, kwarg), (vec![Value::from(1)], map([("a", 2), ("b", 3)])));
    }
}
