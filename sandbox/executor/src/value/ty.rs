//! The types of a function, read once from the loaded component. Shapes with a meaning in Salt are recognised: bytes,
//! dicts, `data`.

use std::fmt;

use wasmtime::component::Type;

/// Upper bound on nested types. The parser of components has a similar bound.
const MAX_DEPTH: usize = 64;

/// Upper bound on the types of one module, counted at each use; adjacent functions of the same type count once. A few
/// hundred bytes of a component can name the same type a million times.
pub const MAX_TYPES: usize = 100_000;

/// Upper bound on the characters of a type in an error message; the rest becomes "…".
const MAX_SHOWN: usize = 300;

/// A name as the component and as Salt spell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// `min-id`
    pub kebab: String,
    /// `min_id`
    pub snake: String,
}

impl Name {
    /// From the component's spelling.
    #[must_use]
    pub fn new(kebab: &str) -> Self {
        Self { kebab: kebab.to_owned(), snake: snake(kebab) }
    }

    /// Whether `text` is the name, in either spelling.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        text == self.snake || text == self.kebab
    }
}

/// `min-id` → `min_id`
#[must_use]
pub fn snake(kebab: &str) -> String {
    kebab.replace('-', "_")
}

/// An integer type by its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "WIT's names")]
pub enum Int {
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
}

impl Int {
    /// WIT's name of the type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::S8 => "s8",
            Self::U8 => "u8",
            Self::S16 => "s16",
            Self::U16 => "u16",
            Self::S32 => "s32",
            Self::U32 => "u32",
            Self::S64 => "s64",
            Self::U64 => "u64",
        }
    }

    /// The least and the greatest value.
    #[must_use]
    pub fn range(self) -> (i128, i128) {
        match self {
            Self::S8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U8 => (0, u8::MAX.into()),
            Self::S16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::S32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::S64 => (i64::MIN.into(), i64::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
        }
    }
}

/// A type as the conversion distinguishes it.
#[derive(Debug, Clone, PartialEq)]
pub enum Ty {
    /// `bool`
    Bool,
    /// An integer type.
    Int(Int),
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `char`
    Char,
    /// `string`
    Text,
    /// `list<u8>`
    Bytes,
    /// `list<T>`
    List(Box<Ty>),
    /// `list<T, N>`
    Fixed(Box<Ty>, usize),
    /// `list<tuple<string, T>>`
    Dict(Box<Ty>),
    /// `tuple<T, …>`
    Tuple(Vec<Ty>),
    /// `record data { msgpack: list<u8> }`: any value. The type is recognised by its shape, wherever it is declared.
    Data,
    /// Any other record.
    Record(Vec<(Name, Ty)>),
    /// `variant`
    Variant(Vec<(Name, Option<Ty>)>),
    /// `enum`
    Enum(Vec<Name>),
    /// `flags`
    Flags(Vec<Name>),
    /// `option<T>`
    Option(Box<Ty>),
    /// `result<T, E>`
    Result(Option<Box<Ty>>, Option<Box<Ty>>),
    /// A type without a Salt value: resources, streams, futures.
    Foreign(&'static str),
}

impl Ty {
    /// Reads a type. `left` counts down from [`MAX_TYPES`]. Returns none when it is used up or the types nest too deep.
    #[must_use]
    pub fn read(ty: &Type, left: &mut usize) -> Option<Self> {
        Self::read_at(ty, left, 0)
    }

    fn read_at(ty: &Type, left: &mut usize, depth: usize) -> Option<Self> {
        *left = left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let mut boxed = |ty: Type| Some(Box::new(Self::read_at(&ty, left, depth + 1)?));
        Some(match ty {
            Type::Bool => Self::Bool,
            Type::S8 => Self::Int(Int::S8),
            Type::U8 => Self::Int(Int::U8),
            Type::S16 => Self::Int(Int::S16),
            Type::U16 => Self::Int(Int::U16),
            Type::S32 => Self::Int(Int::S32),
            Type::U32 => Self::Int(Int::U32),
            Type::S64 => Self::Int(Int::S64),
            Type::U64 => Self::Int(Int::U64),
            Type::Float32 => Self::F32,
            Type::Float64 => Self::F64,
            Type::Char => Self::Char,
            Type::String => Self::Text,
            Type::List(list) => match *boxed(list.ty())? {
                Self::Int(Int::U8) => Self::Bytes,
                Self::Tuple(mut types) if matches!(types.as_slice(), [Self::Text, _]) => {
                    Self::Dict(Box::new(types.pop().expect("the tuple has two types")))
                }
                item => Self::List(Box::new(item)),
            },
            Type::FixedLengthList(list) => {
                Self::Fixed(boxed(list.ty())?, usize::try_from(list.len()).unwrap_or(usize::MAX))
            }
            Type::Tuple(tuple) => Self::Tuple(tuple.types().map(|ty| boxed(ty).map(|ty| *ty)).collect::<Option<_>>()?),
            Type::Record(record) => {
                let fields = record
                    .fields()
                    .map(|field| Some((Name::new(field.name), *boxed(field.ty)?)))
                    .collect::<Option<Vec<_>>>()?;
                match fields.as_slice() {
                    [(name, Self::Bytes)] if name.kebab == "msgpack" => Self::Data,
                    _ => Self::Record(fields),
                }
            }
            Type::Variant(variant) => Self::Variant(
                variant
                    .cases()
                    .map(|case| {
                        let payload = match case.ty {
                            Some(ty) => Some(*boxed(ty)?),
                            None => None,
                        };
                        Some((Name::new(case.name), payload))
                    })
                    .collect::<Option<_>>()?,
            ),
            Type::Enum(names) => Self::Enum(names.names().map(Name::new).collect()),
            Type::Flags(names) => Self::Flags(names.names().map(Name::new).collect()),
            Type::Option(option) => Self::Option(boxed(option.ty())?),
            Type::Result(result) => {
                let mut side = |ty: Option<Type>| match ty {
                    Some(ty) => boxed(ty).map(Some),
                    None => Some(None),
                };
                Self::Result(side(result.ok())?, side(result.err())?)
            }
            Type::Own(_) | Type::Borrow(_) => Self::Foreign("resource"),
            Type::Future(_) => Self::Foreign("future"),
            Type::Stream(_) => Self::Foreign("stream"),
            Type::ErrorContext => Self::Foreign("error-context"),
            Type::Map(_) => Self::Foreign("map"),
        })
    }

    /// Whether `None` is a value of the type.
    #[must_use]
    pub fn is_option(&self) -> bool {
        matches!(self, Self::Option(_))
    }

    /// Whether the type is `list<data>`.
    #[must_use]
    pub fn is_data_list(&self) -> bool {
        matches!(self, Self::List(item) if **item == Self::Data)
    }
}

/// Displays the type in WIT's notation. A component's types have no names for records and similar types, so those are
/// spelled out. The text has at most some hundred characters.
impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        let whole = write(self, &mut out).is_some();
        f.write_str(&out)?;
        f.write_str(if whole { "" } else { "…" })
    }
}

fn write(ty: &Ty, out: &mut String) -> Option<()> {
    if out.len() > MAX_SHOWN {
        return None;
    }
    let generic = |name: &str, types: &[Option<&Ty>], out: &mut String| {
        out.push_str(name);
        for (index, ty) in types.iter().enumerate() {
            out.push_str(if index == 0 { "<" } else { ", " });
            match ty {
                Some(ty) => write(ty, out)?,
                None => out.push('_'),
            }
        }
        out.push('>');
        Some(())
    };
    let fields = |name: &str, fields: &[(&Name, Option<&Ty>)], between: &str, out: &mut String| {
        out.push_str(name);
        for (index, (name, ty)) in fields.iter().enumerate() {
            if out.len() > MAX_SHOWN {
                return None;
            }
            out.push_str(if index == 0 { "{" } else { ", " });
            out.push_str(&name.snake);
            if let Some(ty) = ty {
                out.push_str(between);
                write(ty, out)?;
            }
        }
        out.push('}');
        Some(())
    };
    match ty {
        Ty::Bool => out.push_str("bool"),
        Ty::Int(int) => out.push_str(int.name()),
        Ty::F32 => out.push_str("f32"),
        Ty::F64 => out.push_str("f64"),
        Ty::Char => out.push_str("char"),
        Ty::Text => out.push_str("string"),
        Ty::Bytes => out.push_str("list<u8>"),
        Ty::List(item) => generic("list", &[Some(item)], out)?,
        Ty::Fixed(item, length) => {
            out.push_str("list<");
            write(item, out)?;
            out.push_str(&format!(", {length}>"));
        }
        Ty::Dict(value) => {
            out.push_str("list<tuple<string, ");
            write(value, out)?;
            out.push_str(">>");
        }
        Ty::Tuple(types) => generic("tuple", &types.iter().map(Some).collect::<Vec<_>>(), out)?,
        Ty::Data => out.push_str("data"),
        Ty::Record(record) => {
            fields("record", &record.iter().map(|(name, ty)| (name, Some(ty))).collect::<Vec<_>>(), ": ", out)?;
        }
        Ty::Variant(cases) => {
            fields("variant", &cases.iter().map(|(name, ty)| (name, ty.as_ref())).collect::<Vec<_>>(), ": ", out)?;
        }
        Ty::Enum(names) => fields("enum", &names.iter().map(|name| (name, None)).collect::<Vec<_>>(), "", out)?,
        Ty::Flags(names) => fields("flags", &names.iter().map(|name| (name, None)).collect::<Vec<_>>(), "", out)?,
        Ty::Option(inner) => generic("option", &[Some(inner)], out)?,
        Ty::Result(None, None) => out.push_str("result"),
        Ty::Result(Some(ok), None) => generic("result", &[Some(ok)], out)?,
        Ty::Result(ok, err) => generic("result", &[ok.as_deref(), err.as_deref()], out)?,
        Ty::Foreign(what) => out.push_str(what),
    }
    Some(())
}
