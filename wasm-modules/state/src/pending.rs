//! What states `grains.list_present` of a dry run would have added: a later state that is to add the same is told, since
//! the grain does not say so yet.

use brine_render::{Dict, Value};
use brine_states::run::Call;

use crate::arguments::{items, text};

/// Values by the names of their grains.
#[derive(Default)]
pub(crate) struct Pending(Vec<(String, Vec<Value>)>);

impl Pending {
    pub(crate) fn keep(&mut self, call: &Call, result: &Value) {
        let would = matches!(result, Value::Dict(result) if matches!(result.get("result"), Some(Value::None)));
        let (Some(grain), Some(value), true) = (grain(call), call.low.get("value"), would) else { return };
        let values = if matches!(value, Value::List(_)) { items(&value) } else { vec![value] };
        match self.0.iter_mut().find(|(known, _)| *known == grain) {
            Some((_, known)) => known.extend(values),
            None => self.0.push((grain, values)),
        }
    }

    /// The arguments of a state, with what is pending for its grain.
    pub(crate) fn arguments(&self, call: &Call, arguments: Dict) -> Dict {
        let Some((_, values)) = grain(call).and_then(|grain| self.0.iter().find(|(known, _)| *known == grain)) else {
            return arguments;
        };
        let arguments = Dict::from_entries(arguments.borrow().clone(), arguments.is_ordered());
        arguments.set("pending", Value::list(values.clone()));
        arguments
    }
}

/// The grain of a state `grains.list_present` in a dry run, with `:` between its parts.
fn grain(call: &Call) -> Option<String> {
    if !call.test || call.function != "grains.list_present" {
        return None;
    }
    let name = text(&call.low.get("name")?);
    Some(match call.low.get("delimiter") {
        None | Some(Value::None) => name,
        Some(delimiter) => name.replace(&text(&delimiter), ":"),
    })
}
