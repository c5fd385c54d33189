//! Arguments as Salt's functions take them.

use brine_guest::{Data, Result, Value};

/// The text of an argument; none if it is missing, None or empty.
pub(crate) fn full(argument: Option<&Data>) -> Result<Option<String>> {
    let value = argument.map(Data::value).transpose()?.filter(|value| *value != Value::None);
    Ok(value.map(|value| value.to_text()).filter(|text| !text.is_empty()))
}

/// Whether an argument is Python's truth.
pub(crate) fn flag(argument: Option<&Data>, default: bool) -> Result<bool> {
    argument.map_or(Ok(default), |argument| Ok(argument.value()?.truthy()))
}

/// Texts: a list, or one text with commas; none if the argument is missing, None or empty.
pub(crate) fn texts(argument: Option<&Data>) -> Result<Option<Vec<String>>> {
    Ok(match argument.map(Data::value).transpose()? {
        Some(Value::List(items)) => Some(items.iter().map(Value::to_text).collect()),
        Some(other) if other.truthy() => Some(other.to_text().split(',').map(|part| part.trim().to_owned()).collect()),
        _ => None,
    })
}

/// Variables for pip.
pub(crate) fn variables(argument: Option<&Data>) -> Result<Vec<(String, String)>> {
    match argument.map(Data::value).transpose()? {
        Some(Value::Dict(entries)) => {
            Ok(entries.iter().map(|(name, value)| (name.to_text(), value.to_text())).collect())
        }
        Some(other) if other.truthy() => Err(format!("env_vars {} is not a dictionary", other.to_text())),
        _ => Ok(Vec::new()),
    }
}
