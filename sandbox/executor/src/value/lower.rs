//! Converts MessagePack to component values by the type of the parameter.

use wasmtime::component::Val;

use super::msgpack::{Item, Reader, Writer};
use super::show::show;
use super::signature::{Given, Misfit, Signature, TypedParam};
use super::ty::{Int, Name, Ty};

/// Bytes of one dynamic value on the host, without its heap.
pub const VAL_SIZE: usize = size_of::<Val>();

/// Upper bound on the characters of a key in a message.
const MAX_KEY: usize = 40;

/// The bytes that dynamic values may still take.
#[derive(Debug)]
pub struct ValueBudget {
    left: usize,
    limit: usize,
}

impl ValueBudget {
    /// A full budget.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { left: limit, limit }
    }

    fn spend(&mut self, values: usize, bytes: usize) -> Result<(), Misfit> {
        let cost = values.saturating_mul(VAL_SIZE).saturating_add(bytes);
        self.left = self.left.checked_sub(cost).ok_or_else(|| {
            Misfit(format!("they take more than the {} bytes that the host may hold for one call", self.limit))
        })?;
        Ok(())
    }
}

/// The place of a value, for errors.
#[derive(Clone, Copy)]
enum Place<'a> {
    Param(&'a str),
    Field(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn write(&self, out: &mut String) {
        match self {
            Self::Param(name) => out.push_str(name),
            Self::Field(parent, name) => {
                parent.write(out);
                out.push('.');
                out.push_str(&brine_text::short(name, MAX_KEY));
            }
            Self::Index(parent, index) => {
                parent.write(out);
                out.push_str(&format!("[{index}]"));
            }
        }
    }

    fn quoted(&self) -> String {
        let mut out = String::from("'");
        self.write(&mut out);
        out.push('\'');
        out
    }
}

/// Converts all arguments of a call.
///
/// # Errors
/// When an argument does not fit its parameter, or the arguments take too much memory.
pub fn lower_all(signature: &Signature, given: &[Given<'_>], budget: &mut ValueBudget) -> Result<Vec<Val>, Misfit> {
    signature.params.iter().zip(given).map(|(param, given)| lower(param, given, budget)).collect()
}

/// Converts the arguments of one parameter.
///
/// # Errors
/// As [`lower_all`].
pub fn lower(param: &TypedParam, given: &Given<'_>, budget: &mut ValueBudget) -> Result<Val, Misfit> {
    match given {
        Given::Nothing => Ok(Val::Option(None)),
        Given::Value(value) => of_type(value, &param.ty, &Place::Param(&param.name.snake), budget),
        Given::Args(values) => {
            budget.spend(values.len(), 0)?;
            Ok(Val::List(values.iter().map(|value| data(value, budget)).collect::<Result<_, _>>()?))
        }
        Given::Kwargs(pairs) => data(&map_of(pairs)?, budget),
    }
}

/// Packs the remaining keyword arguments into one map.
///
/// # Errors
/// When there are too many.
pub fn map_of(pairs: &[(&str, &[u8])]) -> Result<Vec<u8>, Misfit> {
    // These are parts of a map that was within the bounds.
    let mut out = Writer::new(usize::MAX);
    let full = |error| Misfit(format!("the keyword arguments are too many: {error}"));
    out.map(pairs.len()).map_err(full)?;
    for (key, value) in pairs {
        out.str(key).map_err(full)?;
        out.raw(value, 1).map_err(full)?;
    }
    Ok(out.into_bytes())
}

fn bytes(value: &[u8], budget: &mut ValueBudget) -> Result<Val, Misfit> {
    budget.spend(value.len(), 0)?;
    Ok(Val::List(value.iter().copied().map(Val::U8).collect()))
}

fn data(value: &[u8], budget: &mut ValueBudget) -> Result<Val, Misfit> {
    budget.spend(1, 0)?;
    Ok(Val::Record(vec![("msgpack".to_owned(), bytes(value, budget)?)]))
}

fn of_type(value: &[u8], ty: &Ty, place: &Place<'_>, budget: &mut ValueBudget) -> Result<Val, Misfit> {
    budget.spend(1, 0)?;
    let mut reader = Reader::new(value);
    let item = match reader.item()? {
        Item::Str(text) => word(ty, text).unwrap_or(Item::Str(text)),
        item => item,
    };
    let must = |what: String| Misfit(format!("{} must be {what}, got {}", place.quoted(), show(value)));
    Ok(match (ty, item) {
        (Ty::Data, _) => return data(value, budget),
        (Ty::Option(_), Item::Nil) => Val::Option(None),
        (Ty::Option(inner), _) => Val::Option(Some(Box::new(of_type(value, inner, place, budget)?))),
        (Ty::Bool, Item::Bool(value)) => Val::Bool(value),
        (Ty::Int(int), Item::Int(number)) => of_int(*int, number).ok_or_else(|| {
            let (least, greatest) = int.range();
            must(format!("{} ({least} to {greatest})", words(ty)))
        })?,
        (Ty::F64, Item::Float(number)) => Val::Float64(number),
        (Ty::F64, Item::Int(number)) => Val::Float64(as_float(number)),
        (Ty::F32, Item::Float(number)) => Val::Float32(narrow(number).ok_or_else(|| must(words(ty)))?),
        (Ty::F32, Item::Int(number)) => Val::Float32(narrow(as_float(number)).ok_or_else(|| must(words(ty)))?),
        (Ty::Char, Item::Str(text)) => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(character), None) => Val::Char(character),
                _ => return Err(must(words(ty))),
            }
        }
        (Ty::Text, Item::Str(text)) => {
            budget.spend(0, text.len())?;
            Val::String(text.to_owned())
        }
        (Ty::Text, Item::Bin(bytes)) => {
            budget.spend(0, bytes.len())?;
            Val::String(std::str::from_utf8(bytes).map_err(|_| must("text".to_owned()))?.to_owned())
        }
        (Ty::Bytes, Item::Bin(value)) => bytes(value, budget)?,
        (Ty::Bytes, Item::Str(text)) => bytes(text.as_bytes(), budget)?,
        (Ty::Bytes, Item::Array(length)) => list(&mut reader, length, &Ty::Int(Int::U8), place, budget)?,
        (Ty::List(inner), Item::Array(length)) => list(&mut reader, length, inner, place, budget)?,
        (Ty::Fixed(inner, size), Item::Array(length)) if usize::try_from(length) == Ok(*size) => {
            match list(&mut reader, length, inner, place, budget)? {
                Val::List(values) => Val::FixedLengthList(values),
                other => other,
            }
        }
        (Ty::Tuple(types), Item::Array(length)) if usize::try_from(length) == Ok(types.len()) => {
            let mut values = Vec::with_capacity(types.len());
            for (index, ty) in types.iter().enumerate() {
                values.push(of_type(reader.value()?, ty, &Place::Index(place, index), budget)?);
            }
            Val::Tuple(values)
        }
        (Ty::Dict(inner), Item::Map(length)) => {
            let mut pairs = Vec::new();
            for _ in 0..length {
                let (key, value) = pair(&mut reader, place)?;
                let inside = of_type(value, inner, &Place::Field(place, key), budget)?;
                budget.spend(2, key.len())?;
                pairs.push(Val::Tuple(vec![Val::String(key.to_owned()), inside]));
            }
            Val::List(pairs)
        }
        (Ty::Dict(inner), Item::Array(length)) => {
            let pairs = Ty::Tuple(vec![Ty::Text, (**inner).clone()]);
            list(&mut reader, length, &pairs, place, budget)?
        }
        (Ty::Record(fields), Item::Map(length)) => record(&mut reader, length, fields, place, budget)?,
        (Ty::Enum(names), Item::Str(text)) => {
            Val::Enum(find(names, text).ok_or_else(|| must(words(ty)))?.kebab.clone())
        }
        (Ty::Flags(names), Item::Array(length)) => {
            let mut set = Vec::new();
            for _ in 0..length {
                let Item::Str(text) = reader.item()? else { return Err(must(words(ty))) };
                let name = find(names, text).ok_or_else(|| must(words(ty)))?;
                if !set.contains(&name.kebab) {
                    budget.spend(1, name.kebab.len())?;
                    set.push(name.kebab.clone());
                }
            }
            Val::Flags(set)
        }
        (Ty::Variant(cases), Item::Str(text)) => {
            let case = cases.iter().find(|(name, ty)| name.is(text) && ty.as_ref().is_none_or(Ty::is_option));
            match case.ok_or_else(|| must(words(ty)))? {
                (name, None) => Val::Variant(name.kebab.clone(), None),
                (name, Some(_)) => Val::Variant(name.kebab.clone(), Some(Box::new(Val::Option(None)))),
            }
        }
        (Ty::Variant(cases), Item::Map(1)) => {
            let (key, value) = pair(&mut reader, place)?;
            let (name, payload) = cases.iter().find(|(name, _)| name.is(key)).ok_or_else(|| must(words(ty)))?;
            let value = match payload {
                Some(payload) => Some(Box::new(of_type(value, payload, &Place::Field(place, key), budget)?)),
                None if matches!(Reader::new(value).item()?, Item::Nil) => None,
                None => return Err(must(words(ty))),
            };
            Val::Variant(name.kebab.clone(), value)
        }
        (Ty::Result(ok, err), Item::Map(1)) => {
            let (key, value) = pair(&mut reader, place)?;
            let mut side = |ty: &Option<Box<Ty>>| match ty {
                Some(ty) => of_type(value, ty, &Place::Field(place, key), budget).map(|value| Some(Box::new(value))),
                None => Ok(None),
            };
            match key {
                "ok" => Val::Result(Ok(side(ok)?)),
                "err" => Val::Result(Err(side(err)?)),
                _ => return Err(must(words(ty))),
            }
        }
        (ty, _) => return Err(must(words(ty))),
    })
}

fn list(
    reader: &mut Reader<'_>,
    length: u32,
    ty: &Ty,
    place: &Place<'_>,
    budget: &mut ValueBudget,
) -> Result<Val, Misfit> {
    let mut values = Vec::new();
    for index in 0..usize::try_from(length).unwrap_or(usize::MAX) {
        values.push(of_type(reader.value()?, ty, &Place::Index(place, index), budget)?);
    }
    Ok(Val::List(values))
}

fn record(
    reader: &mut Reader<'_>,
    length: u32,
    fields: &[(Name, Ty)],
    place: &Place<'_>,
    budget: &mut ValueBudget,
) -> Result<Val, Misfit> {
    let mut values: Vec<Option<Val>> = vec![None; fields.len()];
    for _ in 0..length {
        let (key, value) = pair(reader, place)?;
        let Some(index) = fields.iter().position(|(name, _)| name.is(key)) else {
            let known: Vec<&str> = fields.iter().map(|(name, _)| name.snake.as_str()).collect();
            let (place, key) = (place.quoted(), brine_text::short(key, MAX_KEY));
            return Err(Misfit(format!("{place} has no '{key}', only {}", brine_text::short(&known.join(", "), 200))));
        };
        let field = Place::Field(place, &fields[index].0.snake);
        if values[index].is_some() {
            return Err(Misfit(format!("{} is given twice", field.quoted())));
        }
        values[index] = Some(of_type(value, &fields[index].1, &field, budget)?);
    }
    let mut out = Vec::with_capacity(fields.len());
    for ((name, ty), value) in fields.iter().zip(values) {
        let value = match value {
            Some(value) => value,
            None if ty.is_option() => Val::Option(None),
            None => return Err(Misfit(format!("{} is missing", Place::Field(place, &name.snake).quoted()))),
        };
        budget.spend(1, name.kebab.len())?;
        out.push((name.kebab.clone(), value));
    }
    Ok(Val::Record(out))
}

fn pair<'a>(reader: &mut Reader<'a>, place: &Place<'_>) -> Result<(&'a str, &'a [u8]), Misfit> {
    let key = reader.value()?;
    match Reader::new(key).item()? {
        Item::Str(text) => Ok((text, reader.value()?)),
        _ => Err(Misfit(format!("{} must have text for keys, got {}", place.quoted(), show(key)))),
    }
}

fn find<'a>(names: &'a [Name], text: &str) -> Option<&'a Name> {
    names.iter().find(|name| name.is(text))
}

/// What a text says where a number or a truth value is due: callers over HTTP and templates often have texts only, and Salt's functions
/// take them by `int()` or as truth values. None where it says neither.
fn word(ty: &Ty, text: &str) -> Option<Item<'static>> {
    let decimal = |more: &[u8]| text.bytes().all(|byte| byte.is_ascii_digit() || more.contains(&byte));
    match ty {
        Ty::Bool => match text {
            "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(Item::Bool(true)),
            "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(Item::Bool(false)),
            _ => None,
        },
        Ty::Int(_) if decimal(b"+-") => text.parse().ok().map(Item::Int),
        // Without the words that Rust takes for numbers: inf, nan.
        Ty::F32 | Ty::F64 if decimal(b"+-.eE") => {
            text.parse().ok().filter(|number: &f64| number.is_finite()).map(Item::Float)
        }
        _ => None,
    }
}

fn of_int(int: Int, number: i128) -> Option<Val> {
    Some(match int {
        Int::S8 => Val::S8(number.try_into().ok()?),
        Int::U8 => Val::U8(number.try_into().ok()?),
        Int::S16 => Val::S16(number.try_into().ok()?),
        Int::U16 => Val::U16(number.try_into().ok()?),
        Int::S32 => Val::S32(number.try_into().ok()?),
        Int::U32 => Val::U32(number.try_into().ok()?),
        Int::S64 => Val::S64(number.try_into().ok()?),
        Int::U64 => Val::U64(number.try_into().ok()?),
    })
}

#[expect(clippy::cast_precision_loss, reason = "what Python's float() does")]
fn as_float(number: i128) -> f64 {
    number as f64
}

/// The nearest `f32`; none if a finite number is out of range.
#[expect(clippy::cast_possible_truncation, reason = "the nearest is meant")]
fn narrow(number: f64) -> Option<f32> {
    let nearest = number as f32;
    (nearest.is_finite() || !number.is_finite()).then_some(nearest)
}

/// The type as the object of "must be".
fn words(ty: &Ty) -> String {
    let names = |names: &mut dyn Iterator<Item = &Name>| {
        let names: Vec<String> = names.map(|name| format!("'{}'", name.snake)).collect();
        brine_text::short(&names.join(", "), 200)
    };
    match ty {
        Ty::Bool => "a bool (True or False)".to_owned(),
        Ty::Int(Int::S8 | Int::S16 | Int::S32 | Int::S64) | Ty::F32 | Ty::F64 => format!("an {ty}"),
        Ty::Char => "a single character".to_owned(),
        Ty::Bytes => "bytes or text".to_owned(),
        Ty::Dict(inner) => format!("a dict of text to {inner}"),
        Ty::List(inner) => format!("a list of {inner}"),
        Ty::Fixed(inner, length) => format!("a list of {length} {inner}"),
        Ty::Tuple(types) => format!("a list of {} values ({ty})", types.len()),
        Ty::Record(fields) => format!("a dict with {}", names(&mut fields.iter().map(|(name, _)| name))),
        Ty::Enum(all) => format!("one of {}", names(&mut all.iter())),
        Ty::Flags(all) => format!("a list of any of {}", names(&mut all.iter())),
        Ty::Variant(cases) => {
            format!("one of {}, with its value in a dict of one key", names(&mut cases.iter().map(|(name, _)| name)))
        }
        Ty::Result(..) => "a dict of one key, 'ok' or 'err'".to_owned(),
        Ty::Foreign(what) => format!("a {what}, which no argument can be"),
        Ty::Text | Ty::Data | Ty::Option(_) | Ty::Int(_) => format!("a {ty}"),
    }
}
