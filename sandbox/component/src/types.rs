//! Writes types in WIT's syntax, within bounds: anonymous types nest, so that a few hundred bytes can expand to
//! megabytes.

use wit_parser::{Handle, Resolve, Type, TypeDefKind, TypeId};

use crate::MAX_TYPE;

/// Upper bound on the nesting of anonymous types.
const MAX_DEPTH: usize = 32;

/// The type cannot be written within the bounds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Writes a type in WIT's syntax. A named type is its name.
pub(crate) fn text(resolve: &Resolve, ty: &Type) -> Result<String, TooLong> {
    let mut out = String::new();
    write(resolve, ty, &mut out, 0)?;
    Ok(out)
}

/// Checks for an `option<…>`, perhaps under another name.
pub(crate) fn is_option(resolve: &Resolve, ty: &Type) -> bool {
    matches!(kind(resolve, ty), Some(TypeDefKind::Option(_)))
}

/// Checks for `record data { msgpack: list<u8> }`. It compares the shape and not the declaring interface: a component
/// names the interface only if it imports it, and the executor sees only the shape.
pub(crate) fn is_data(resolve: &Resolve, ty: &Type) -> bool {
    let Some(TypeDefKind::Record(record)) = kind(resolve, ty) else { return false };
    match record.fields.as_slice() {
        [field] => field.name == "msgpack" && matches!(kind(resolve, &field.ty), Some(TypeDefKind::List(Type::U8))),
        _ => false,
    }
}

/// Checks for `list<data>`.
pub(crate) fn is_data_list(resolve: &Resolve, ty: &Type) -> bool {
    matches!(kind(resolve, ty), Some(TypeDefKind::List(item)) if is_data(resolve, item))
}

/// Returns the kind of a type behind its aliases. None for a primitive.
fn kind<'a>(resolve: &'a Resolve, ty: &Type) -> Option<&'a TypeDefKind> {
    let mut ty = *ty;
    loop {
        let Type::Id(id) = ty else { return None };
        match &resolve.types[id].kind {
            TypeDefKind::Type(inner) => ty = *inner,
            kind => return Some(kind),
        }
    }
}

fn write(resolve: &Resolve, ty: &Type, out: &mut String, depth: usize) -> Result<(), TooLong> {
    if depth > MAX_DEPTH || out.len() > MAX_TYPE {
        return Err(TooLong);
    }
    let id = match ty {
        Type::Bool => return push(out, "bool"),
        Type::U8 => return push(out, "u8"),
        Type::U16 => return push(out, "u16"),
        Type::U32 => return push(out, "u32"),
        Type::U64 => return push(out, "u64"),
        Type::S8 => return push(out, "s8"),
        Type::S16 => return push(out, "s16"),
        Type::S32 => return push(out, "s32"),
        Type::S64 => return push(out, "s64"),
        Type::F32 => return push(out, "f32"),
        Type::F64 => return push(out, "f64"),
        Type::Char => return push(out, "char"),
        Type::String => return push(out, "string"),
        Type::ErrorContext => return push(out, "error-context"),
        Type::Id(id) => *id,
    };
    let definition = &resolve.types[id];
    if let Some(name) = &definition.name {
        return push(out, name);
    }
    let depth = depth + 1;
    match &definition.kind {
        TypeDefKind::Type(inner) => write(resolve, inner, out, depth),
        TypeDefKind::List(item) => generic(resolve, "list", &[Some(*item)], out, depth),
        TypeDefKind::FixedLengthList(item, length) => {
            push(out, "list<")?;
            write(resolve, item, out, depth)?;
            push(out, &format!(", {length}>"))
        }
        TypeDefKind::Map(key, value) => generic(resolve, "map", &[Some(*key), Some(*value)], out, depth),
        TypeDefKind::Option(inner) => generic(resolve, "option", &[Some(*inner)], out, depth),
        TypeDefKind::Tuple(tuple) => {
            let types: Vec<Option<Type>> = tuple.types.iter().copied().map(Some).collect();
            generic(resolve, "tuple", &types, out, depth)
        }
        TypeDefKind::Result(result) => match (result.ok, result.err) {
            (None, None) => push(out, "result"),
            (Some(ok), None) => generic(resolve, "result", &[Some(ok)], out, depth),
            (ok, err) => generic(resolve, "result", &[ok, err], out, depth),
        },
        TypeDefKind::Future(None) => push(out, "future"),
        TypeDefKind::Future(inner) => generic(resolve, "future", &[*inner], out, depth),
        TypeDefKind::Stream(None) => push(out, "stream"),
        TypeDefKind::Stream(inner) => generic(resolve, "stream", &[*inner], out, depth),
        TypeDefKind::Handle(Handle::Own(resource)) => push(out, name_of(resolve, *resource)),
        TypeDefKind::Handle(Handle::Borrow(resource)) => push(out, &format!("borrow<{}>", name_of(resolve, *resource))),
        // In WIT all of these have a name; in a component they may not.
        other => push(out, other.as_str()),
    }
}

fn generic(
    resolve: &Resolve,
    name: &str,
    types: &[Option<Type>],
    out: &mut String,
    depth: usize,
) -> Result<(), TooLong> {
    push(out, name)?;
    for (index, ty) in types.iter().enumerate() {
        push(out, if index == 0 { "<" } else { ", " })?;
        match ty {
            Some(ty) => write(resolve, ty, out, depth)?,
            None => push(out, "_")?,
        }
    }
    push(out, ">")
}

fn name_of(resolve: &Resolve, id: TypeId) -> &str {
    resolve.types[id].name.as_deref().unwrap_or("resource")
}

fn push(out: &mut String, text: &str) -> Result<(), TooLong> {
    out.push_str(text);
    if out.len() > MAX_TYPE { Err(TooLong) } else { Ok(()) }
}
