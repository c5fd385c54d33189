//! Values between the host and the renderer: MessagePack on one side, Python's shared values on the other.

use brine_render::convert::ConvertLimits;
use brine_render::{Dict, Value};

use crate::{Data, Result};

/// Upper bound on nesting: as deep as the renderer goes.
const MAX_DEPTH: usize = 200;

/// A value of the host.
///
/// # Errors
/// When it is no MessagePack, or too deep.
pub fn value(data: &Data) -> Result<Value> {
    let mut bytes = data.msgpack.as_slice();
    let wire = rmpv::decode::read_value_with_max_depth(&mut bytes, MAX_DEPTH).map_err(|error| error.to_string())?;
    Value::from_wire(&wire).map_err(|error| error.to_string())
}

/// A dict of the host; what is none is empty.
///
/// # Errors
/// As [`value`].
pub fn dict(data: &Data) -> Result<Dict> {
    Ok(if let Value::Dict(dict) = value(data)? { dict } else { Dict::default() })
}

/// A value for the host.
///
/// # Errors
/// When it is too deep, or no value of Salt's.
pub fn data(value: &Value) -> Result<Data> {
    let wire = value.to_wire(ConvertLimits::default()).map_err(|error| error.to_string())?;
    let mut msgpack = Vec::new();
    rmpv::encode::write_value(&mut msgpack, &wire).map_err(|error| error.to_string())?;
    Ok(Data { msgpack })
}
