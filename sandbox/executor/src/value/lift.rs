//! Converts component values to MessagePack by the type of the result.

use wasmtime::component::Val;

use super::msgpack::{self, Full, Malformed, Writer};
use super::ty::{Name, Ty};

/// Why a result is not a Salt value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The value is too large.
    #[error(transparent)]
    Full(#[from] Full),
    /// A `data` record that is not one MessagePack value.
    #[error("a `data` record is not one MessagePack value: {0}")]
    Data(#[from] Malformed),
    /// A type that Salt values do not have.
    #[error("it returns a {0}, which no Salt value can be")]
    Foreign(&'static str),
}

/// Writes a value of this type.
///
/// # Errors
/// When the value is too large, has a type without a Salt value, or has `data` that is not one MessagePack value.
pub fn lift(value: &Val, ty: &Ty, out: &mut Writer) -> Result<(), Unfit> {
    match (ty, value) {
        (Ty::Foreign(what), _) => return Err(Unfit::Foreign(what)),
        (Ty::Data, Val::Record(fields)) => {
            let value = fields.first().and_then(|(_, value)| bytes(value)).unwrap_or_default();
            data(&value, out)?;
        }
        (Ty::Bytes, value) => out.bin(&bytes(value).unwrap_or_default())?,
        (_, Val::Bool(value)) => out.bool(*value)?,
        (_, Val::S8(value)) => out.int((*value).into())?,
        (_, Val::U8(value)) => out.int((*value).into())?,
        (_, Val::S16(value)) => out.int((*value).into())?,
        (_, Val::U16(value)) => out.int((*value).into())?,
        (_, Val::S32(value)) => out.int((*value).into())?,
        (_, Val::U32(value)) => out.int((*value).into())?,
        (_, Val::S64(value)) => out.int((*value).into())?,
        (_, Val::U64(value)) => out.int((*value).into())?,
        (_, Val::Float32(value)) => out.float((*value).into())?,
        (_, Val::Float64(value)) => out.float(*value)?,
        (_, Val::Char(value)) => out.str(value.encode_utf8(&mut [0; 4]))?,
        (_, Val::String(value)) => out.str(value)?,
        (Ty::Dict(inner), Val::List(pairs)) => {
            out.map(pairs.len())?;
            for pair in pairs {
                match pair {
                    Val::Tuple(pair) if let [Val::String(key), value] = pair.as_slice() => {
                        out.str(key)?;
                        lift(value, inner, out)?;
                    }
                    _ => return Err(Unfit::Foreign("list with other pairs than its type says")),
                }
            }
        }
        (Ty::List(inner) | Ty::Fixed(inner, _), Val::List(values) | Val::FixedLengthList(values)) => {
            out.array(values.len())?;
            values.iter().try_for_each(|value| lift(value, inner, out))?;
        }
        (Ty::Tuple(types), Val::Tuple(values)) => {
            out.array(values.len())?;
            types.iter().zip(values).try_for_each(|(ty, value)| lift(value, ty, out))?;
        }
        (Ty::Record(types), Val::Record(fields)) => {
            out.map(fields.len())?;
            for ((name, ty), (_, value)) in types.iter().zip(fields) {
                out.str(&name.snake)?;
                lift(value, ty, out)?;
            }
        }
        (Ty::Variant(cases), Val::Variant(case, payload)) => {
            let known = cases.iter().find(|(name, _)| name.kebab == *case);
            match (known, payload) {
                (Some((name, Some(ty))), Some(payload)) => {
                    out.map(1)?;
                    out.str(&name.snake)?;
                    lift(payload, ty, out)?;
                }
                (Some((name, _)), _) => out.str(&name.snake)?,
                (None, _) => out.str(case)?,
            }
        }
        (Ty::Enum(names), Val::Enum(name)) => out.str(spelled(names, name))?,
        (Ty::Flags(names), Val::Flags(set)) => {
            out.array(set.len())?;
            set.iter().try_for_each(|name| out.str(spelled(names, name)))?;
        }
        (Ty::Option(_), Val::Option(None)) => out.nil()?,
        (Ty::Option(inner), Val::Option(Some(value))) => lift(value, inner, out)?,
        (Ty::Result(ok, err), Val::Result(result)) => {
            out.map(1)?;
            let (key, ty, value) = match result {
                Ok(value) => ("ok", ok, value),
                Err(value) => ("err", err, value),
            };
            out.str(key)?;
            optional(value.as_deref(), ty.as_deref(), out)?;
        }
        // The engine produces only values of the function's type.
        _ => return Err(Unfit::Foreign("value that is not of its type")),
    }
    Ok(())
}

/// Writes a value that may be missing; a missing value is nil.
///
/// # Errors
/// As [`lift`].
pub fn optional(value: Option<&Val>, ty: Option<&Ty>, out: &mut Writer) -> Result<(), Unfit> {
    match (value, ty) {
        (Some(value), Some(ty)) => lift(value, ty, out),
        _ => Ok(out.nil()?),
    }
}

/// Writes the content of a `data` record.
///
/// # Errors
/// When the content is not one MessagePack value, or is too large.
pub fn data(value: &[u8], out: &mut Writer) -> Result<(), Unfit> {
    let items = msgpack::check(value)?;
    Ok(out.raw(value, items)?)
}

fn bytes(value: &Val) -> Option<Vec<u8>> {
    let Val::List(values) = value else { return None };
    values.iter().map(|value| if let Val::U8(byte) = value { Some(*byte) } else { None }).collect()
}

fn spelled<'a>(names: &'a [Name], kebab: &'a str) -> &'a str {
    names.iter().find(|name| name.kebab == kebab).map_or(kebab, |name| &name.snake)
}
