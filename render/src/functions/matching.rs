//! `match`, by the same code as the master's targets.

use std::rc::Rc;

use brine_targets::{Dialect, Facts, Nodegroups, Target, TargetError, TargetType};
use rmpv::Value as Wire;

use super::call::{Call, Row};
use super::{Answer, Surroundings};
use crate::convert::ConvertLimits;
use crate::data::merge::{How, update};
use crate::data::{CallError, argument, deep_copy, text};
use crate::value::{Key, Value};

/// What targets look at, in the matcher's values.
pub(super) struct Known {
    grains: Wire,
    pillar: Wire,
    nodegroups: Nodegroups,
}

pub(super) const ROWS: &[Row] = &[
    Row::new("compound", "tgt minion_id?", |call| by_id(call, TargetType::Compound)),
    Row::new("glob", "tgt minion_id?", |call| by_id(call, TargetType::Glob)),
    Row::new("pcre", "tgt minion_id?", |call| by_id(call, TargetType::Pcre)),
    Row::new("list", "tgt minion_id?", |call| by_id(call, TargetType::List)).python("list_"),
    Row::new("grain", "tgt delimiter?", |call| by_data(call, TargetType::Grain)),
    Row::new("grain_pcre", "tgt delimiter?", |call| by_data(call, TargetType::GrainPcre)),
    Row::new("pillar", "tgt delimiter?", |call| by_data(call, TargetType::Pillar)),
    Row::new("pillar_pcre", "tgt delimiter?", |call| by_data(call, TargetType::PillarPcre)),
    Row::new("ipcidr", "tgt", by_address),
    // a minion has no data store
    Row::new("data", "tgt", |_| Ok(false.into())),
    Row::new("filter_by", "lookup tgt_type? minion_id? merge? merge_lists? default?", filter_by),
    Row::new("search_by", "lookup tgt_type? minion_id?", search_by),
    Row::new("ifelse", "* tgt_type? minion_id? merge? merge_lists?", ifelse),
];

fn wire(value: &Value) -> Wire {
    value.to_wire(ConvertLimits::default()).unwrap_or(Wire::Map(Vec::new()))
}

fn known(surroundings: &Surroundings) -> Rc<Known> {
    let make = || {
        let nodegroups = surroundings.opts.get("nodegroups").unwrap_or_default();
        Rc::new(Known {
            grains: wire(&Value::Dict(surroundings.grains.clone())),
            pillar: wire(&Value::Dict(surroundings.pillar.clone())),
            nodegroups: Nodegroups::new(&wire(&nodegroups)),
        })
    };
    surroundings.known.get_or_init(make).clone()
}

/// Whether an expression of a top file means the minion. `tgt_type` is what `match` says there: `glob`, `compound`,
/// `grain`, `nodegroup` and so on.
///
/// # Errors
/// The type is unknown, or the expression does not parse; Salt says it in the log, and takes it for no match.
pub fn matches(surroundings: &Surroundings, expression: &Value, tgt_type: &str) -> Result<bool, TargetError> {
    is_meant(surroundings, expression, tgt_type.parse()?, ":", &surroundings.id)
}

fn is_meant(
    surroundings: &Surroundings,
    expression: &Value,
    tgt_type: TargetType,
    delimiter: &str,
    id: &str,
) -> Result<bool, TargetError> {
    let known = known(surroundings);
    let dialect = Dialect { nodegroups: &known.nodegroups, argument: |word| wire(&argument(word)) };
    let expression = match expression {
        Value::Tuple(items) => wire(&Value::list(items.iter().cloned())),
        other => wire(other),
    };
    let target = match Target::parse(tgt_type, &expression, delimiter, dialect) {
        Err(TargetError::Unsupported(_)) => return Ok(false),
        target => target?,
    };
    Ok(target.matches(&Facts { id, grains: Some(&known.grains), pillar: Some(&known.pillar) }))
}

/// What does not parse matches nothing, as in Salt, which says it in the log.
fn answer(call: &Call<'_>, tgt_type: TargetType, delimiter: &str, id: &str) -> Answer {
    let meant = is_meant(call.surroundings, &call.need("tgt"), tgt_type, delimiter, id);
    if let Err(why) = &meant {
        call.surroundings.say(super::Level::Error, &why.to_string());
    }
    Ok(meant.unwrap_or(false).into())
}

fn by_id(call: &Call<'_>, tgt_type: TargetType) -> Answer {
    match call.given("minion_id") {
        Some(id) if id.truthy() => answer(call, tgt_type, ":", &text(id)?),
        _ => answer(call, tgt_type, ":", &call.surroundings.id),
    }
}

/// What is no address gives an empty list in Salt.
fn by_address(call: &Call<'_>) -> Answer {
    let target = match call.need("tgt") {
        // Python's `ip_address` takes numbers
        Value::Int(n) => u32::try_from(n).map_or(Value::None, |n| std::net::Ipv4Addr::from(n).to_string().into()),
        other => other,
    };
    let meant = is_meant(call.surroundings, &target, TargetType::IpCidr, ":", &call.surroundings.id);
    Ok(meant.map_or_else(|_| Value::list([]), Value::Bool))
}

fn by_data(call: &Call<'_>, tgt_type: TargetType) -> Answer {
    answer(call, tgt_type, &call.text("delimiter", ":"), &call.surroundings.id)
}

/// Whether the function of a type of target matches; its second parameter is what it is there.
fn is_match(call: &Call<'_>, tgt_type: &str, target: &Value) -> Result<bool, CallError> {
    let name = match tgt_type {
        "list_" => "list",
        name @ ("compound" | "glob" | "pcre" | "grain" | "grain_pcre" | "pillar" | "pillar_pcre" | "ipcidr"
        | "data") => name,
        other => return Err(CallError::python(Value::from(other).short_repr())),
    };
    let mut args = vec![target.clone()];
    args.extend(call.given("minion_id").filter(|id| id.truthy()).cloned());
    let answer = super::Module::MATCH.call(call.surroundings, name, args, Vec::new());
    answer.map_or(Ok(false), |answer| answer.map(|value| value.truthy()))
}

fn filter_by(call: &Call<'_>) -> Answer {
    let lookup = call.need("lookup");
    let default = call.get("default").cloned().unwrap_or_else(|| "default".into());
    chosen(call, &lookup, &default)
}

fn chosen(call: &Call<'_>, lookup: &Value, default: &Value) -> Answer {
    let Value::Dict(choices) = lookup else {
        return Err(CallError::python(format!("'{}' object has no attribute 'get'", lookup.type_name())));
    };
    let tgt_type = call.text("tgt_type", "compound");
    let entries: Vec<(Key, Value)> = choices.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, value) in entries {
        if !is_match(call, &tgt_type, key.value())? {
            continue;
        }
        if let Some(merge) = call.get("merge").filter(|merge| merge.truthy()) {
            if !matches!(merge, Value::Dict(_)) {
                return Err(CallError::python("filter_by merge argument must be a dictionary."));
            }
            if matches!(value, Value::None) {
                return Ok(merge.clone());
            }
            let budget = &call.surroundings.budget;
            let how = How { recursive: true, merge_lists: call.flag("merge_lists", false), strict: false };
            update(&value, &deep_copy(merge, budget)?, how, budget)?;
        }
        return Ok(value);
    }
    let default = Key::new(default.clone()).map_err(|why| CallError::python(why.to_string()))?;
    Ok(choices.borrow().get(&default).cloned().unwrap_or_default())
}

fn search_by(call: &Call<'_>) -> Answer {
    let lookup = call.need("lookup");
    let Value::Dict(choices) = &lookup else {
        return Err(CallError::python(format!("'{}' object has no attribute 'items'", lookup.type_name())));
    };
    let tgt_type = call.text("tgt_type", "compound");
    let mut found = Vec::new();
    for (key, targets) in choices.borrow().iter() {
        let targets = match targets {
            Value::List(list) => list.borrow().clone(),
            Value::Tuple(items) => items.to_vec(),
            Value::Str(text) => text.chars().map(|c| Value::from(c.to_string())).collect(),
            other => return Err(CallError::python(format!("'{}' object is not iterable", other.type_name()))),
        };
        for target in &targets {
            if is_match(call, &tgt_type, target)? {
                found.push(key.value().clone());
            }
        }
    }
    Ok(if found.is_empty() { Value::None } else { Value::list(found) })
}

fn ifelse(call: &Call<'_>) -> Answer {
    let args = &call.star;
    if args.len().is_multiple_of(2) {
        return Err(CallError::python("The ifelse function must have an odd number of arguments!"));
    }
    let (otherwise, pairs) = (args[args.len() - 1].clone(), &args[..args.len() - 1]);
    if pairs.is_empty() {
        return Ok(otherwise);
    }
    let default = Value::from("SALT_IFELSE_FUNCTION_DEFAULT");
    let mut entries = Vec::new();
    for pair in pairs.chunks_exact(2) {
        let key = match &pair[0] {
            Value::Bool(true) => "*".into(),
            Value::Bool(false) => "SALT_IFELSE_MATCH_NOTHING".into(),
            other => other.clone(),
        };
        entries.push((Key::new(key).map_err(|why| CallError::python(why.to_string()))?, pair[1].clone()));
    }
    entries.push((Key::from("SALT_IFELSE_FUNCTION_DEFAULT"), otherwise));
    chosen(call, &Value::dict(entries), &default)
}
