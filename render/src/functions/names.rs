//! `file`: what only looks at a name.

use super::Answer;
use super::call::{Call, Row};
use crate::data::{CallError, paths};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row::new("basename", "path", |call| path(&call.need("path")).map(|path| paths::name(path).into())),
    Row::new("dirname", "path", |call| path(&call.need("path")).map(|path| paths::folder(path).into())),
    Row::new("normpath", "path", |call| path(&call.need("path")).map(|path| paths::normalize(path).into())),
    Row::new("join", "*", join),
    Row::new("pardir", "", |_| Ok("..".into())),
];

fn path(value: &Value) -> Result<&str, CallError> {
    value.as_str().ok_or_else(|| {
        CallError::python(format!("expected str, bytes or os.PathLike object, not {}", value.type_name()))
    })
}

fn join(call: &Call<'_>) -> Answer {
    let Some((first, rest)) = call.star.split_first() else {
        return Err(CallError::python("join() missing 1 required positional argument: 'a'"));
    };
    let first = path(first)?;
    let rest = rest.iter().map(|part| {
        part.as_str().ok_or_else(|| {
            let name = part.type_name();
            CallError::python(format!("join() argument must be str, bytes, or os.PathLike object, not '{name}'"))
        })
    });
    Ok(paths::join(first, rest.collect::<Result<Vec<_>, _>>()?).into())
}
