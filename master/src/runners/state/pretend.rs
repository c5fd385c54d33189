//! The states of `test`, which only pretend to do something.

use brine_render::{Dict, Value, data};
use brine_states::run::Call;

/// Answers a state of `test`; none if `call` is another.
///
/// # Errors
/// What Salt raises.
pub(super) fn answer(call: &Call) -> Option<Result<Value, String>> {
    let name = call.function.strip_prefix("test.")?;
    let given = &call.arguments;
    Some(Ok(match name {
        "nop" => of(given, true.into(), "Success!".to_owned(), nothing()),
        "succeed_without_changes" => of(given, true.into(), comment(given, "Success!"), nothing()),
        "fail_without_changes" => {
            let said = match call.test {
                true => "If we weren't testing, this would be a failure!".to_owned(),
                false => comment(given, "Failure!"),
            };
            of(given, false.into(), said, nothing())
        }
        "succeed_with_changes" => {
            changed(call, true, "Success!", "If we weren't testing, this would be successful with changes")
        }
        "fail_with_changes" => {
            changed(call, false, "Failure!", "If we weren't testing, this would be failed with changes")
        }
        "configurable_test_state" => return Some(configurable(call)),
        "show_notification" => match given.get("text").filter(Value::truthy) {
            Some(said) => of(given, true.into(), text(&said), nothing()),
            None => return Some(Err("Missing required argument text.".to_owned())),
        },
        "mod_watch" => {
            let result = given.get("result").map_or(Value::Bool(true), |result| match result {
                Value::None => Value::None,
                other => other.truthy().into(),
            });
            let changes = given
                .get("changes")
                .unwrap_or_else(|| Value::dict([("Requisites with changes".into(), Value::list(watched(call)))]));
            of(given, result, comment(given, "Watch statement fired."), changes)
        }
        _ => return None,
    }))
}

fn of(given: &Dict, result: Value, comment: String, changes: Value) -> Value {
    let answer = Dict::default();
    answer.set("name", given.get("name").unwrap_or_default());
    answer.set("changes", changes);
    answer.set("result", result);
    answer.set("comment", comment.into());
    answer.into()
}

fn changed(call: &Call, result: bool, otherwise: &str, would: &str) -> Value {
    match call.test {
        true => of(&call.arguments, Value::None, would.to_owned(), pretended()),
        false => of(&call.arguments, result.into(), comment(&call.arguments, otherwise), pretended()),
    }
}

fn nothing() -> Value {
    Value::dict([])
}

fn pretended() -> Value {
    let testing = [("old", "Unchanged"), ("new", "Something pretended to change")];
    let testing = Value::dict(testing.map(|(key, value)| (key.into(), value.into())));
    Value::dict([("testing".into(), testing)])
}

fn text(value: &Value) -> String {
    data::text(value).unwrap_or_default()
}

fn comment(given: &Dict, otherwise: &str) -> String {
    given.get("comment").map_or_else(|| otherwise.to_owned(), |said| text(&said))
}

fn invalid(option: &str, expected: &str) -> String {
    format!("You have specified the state option '{option}' with invalid arguments. It must be {expected}")
}

/// True, false or `Random`.
fn either(value: &Value, option: &str) -> Result<bool, String> {
    match value {
        Value::Bool(value) => Ok(*value),
        other if text(other).eq_ignore_ascii_case("random") => Ok(rand::random()),
        _ => Err(invalid(option, "either True, False, or 'Random'")),
    }
}

fn configurable(call: &Call) -> Result<Value, String> {
    let given = &call.arguments;
    let or_true = |name: &str| given.get(name).unwrap_or(Value::Bool(true));
    let changes = or_true("changes");
    let makes_changes = either(&changes, "changes")?;
    let mut result = Value::Bool(either(&or_true("result"), "result")?);
    let warnings: Vec<Value> = match given.get("warnings") {
        None | Some(Value::None) => Vec::new(),
        Some(said @ Value::Str(_)) => vec![said],
        Some(Value::List(lines)) => lines.borrow().iter().map(|line| text(line).into()).collect(),
        Some(_) => return Err(invalid("warnings", "a string or a list of strings")),
    };
    let mut said = given.get("comment").filter(Value::truthy).map(|said| text(&said)).unwrap_or_default();
    if call.test {
        let may_fail = given.get("allow_test_mode_failure").is_some_and(|may| may.truthy());
        result = match changes {
            _ if may_fail && matches!(or_true("result"), Value::Bool(false)) => false.into(),
            Value::Bool(false) => true.into(),
            _ => Value::None,
        };
        if said.is_empty() {
            said = "This is a test".to_owned();
        }
    }
    let answer = of(given, result, said, if makes_changes { pretended() } else { nothing() });
    if let (Value::Dict(answer), false) = (&answer, warnings.is_empty()) {
        answer.set("warnings", Value::list(warnings));
    }
    Ok(answer)
}

/// The watched states that changed.
fn watched(call: &Call) -> Vec<Value> {
    let items = |value: Value| match value {
        Value::List(items) => items.borrow().clone(),
        _ => Vec::new(),
    };
    let Some(Value::Dict(requisites)) = call.low.get("__reqs__") else { return Vec::new() };
    let watched = requisites.get("watch").map(items).unwrap_or_default();
    let changed = watched.iter().filter_map(|required| {
        let Value::Dict(required) = required else { return None };
        let of = |name: &str| required.get(name).map(|value| text(&value)).unwrap_or_default();
        let tag = format!("{}_|-{}_|-{}_|-{}", of("state"), of("__id__"), of("name"), of("fun"));
        let Value::Dict(result) = call.running.get(&tag)? else { return None };
        result.get("changes")?.truthy().then(|| format!("{}: {}", of("state"), of("__id__")).into())
    });
    changed.collect()
}
