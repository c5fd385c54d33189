//! Parameters of a function as values of static types, for any number and combination of them, so that the result can
//! have a static type too.
//!
//! wasmtime calls a function either with dynamic values for parameters and result, at 40 bytes for each byte, or with
//! static types for both. There are few types of results (see [`crate::modules::Returns`]), but each combination of
//! parameters would be a Rust type of its own. [`Params`] is one type for all combinations: it lowers its values one
//! after the other, each with wasmtime's own implementation.
//!
//! This needs wasmtime's hidden traits, which are unsafe to implement. The version of wasmtime is pinned exactly, and
//! each implementation states the trait's requirements.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use wasmtime::ValRaw;
use wasmtime::component::__internal::{CanonicalAbiInfo, InstanceType, InterfaceType, LowerContext};
use wasmtime::component::{ComponentNamedList, ComponentType, Lower, Val};

use crate::value::lower::{self, ValueBudget};
use crate::value::msgpack::{self, Item, Reader};
use crate::value::signature::{Given, Misfit, Signature, TypedParam};
use crate::value::ty::{Int, Ty};

/// Upper bound on the core values of a call's parameters, from the canonical ABI. More parameters are passed through
/// memory.
const MAX_FLAT: usize = 16;

/// `record data { msgpack: list<u8> }`
#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Data {
    msgpack: Vec<u8>,
}

/// The source of a parameter's value.
enum Source<'a> {
    Val(Val),
    Bytes(&'a [u8]),
    Owned(Vec<u8>),
    Many(Vec<&'a [u8]>),
}

/// A static type of a parameter.
trait Plain: Sized {
    /// Converts a value. None if the value has another type.
    fn of(source: Source<'_>) -> Option<Self>;
}

macro_rules! scalars {
    ($($ty:ty: $case:ident),*) => {
        $(impl Plain for $ty {
            fn of(source: Source<'_>) -> Option<Self> {
                if let Source::Val(Val::$case(value)) = source { Some(value) } else { None }
            }
        })*
    };
}

scalars!(bool: Bool, i8: S8, u8: U8, i16: S16, u16: U16, i32: S32, u32: U32, i64: S64, u64: U64);
scalars!(f32: Float32, f64: Float64, char: Char, String: String);

impl Plain for Vec<u8> {
    fn of(source: Source<'_>) -> Option<Self> {
        match source {
            Source::Bytes(bytes) => Some(bytes.to_vec()),
            Source::Owned(bytes) => Some(bytes),
            Source::Val(Val::List(values)) => {
                values.into_iter().map(|value| if let Val::U8(byte) = value { Some(byte) } else { None }).collect()
            }
            _ => None,
        }
    }
}

impl Plain for Data {
    fn of(source: Source<'_>) -> Option<Self> {
        Vec::of(source).map(|msgpack| Self { msgpack })
    }
}

impl Plain for Vec<Data> {
    fn of(source: Source<'_>) -> Option<Self> {
        let Source::Many(values) = source else { return None };
        Some(values.into_iter().map(|value| Data { msgpack: value.to_vec() }).collect())
    }
}

impl Plain for Vec<String> {
    fn of(source: Source<'_>) -> Option<Self> {
        let Source::Val(Val::List(values)) = source else { return None };
        values.into_iter().map(|value| if let Val::String(text) = value { Some(text) } else { None }).collect()
    }
}

macro_rules! values {
    ($($plain:ident $optional:ident $ty:ty;)*) => {
        /// The static types, without `option`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Base { $($plain,)* }

        /// A value of one of the types, or of an `option` of one.
        enum Value { $($plain($ty), $optional(Option<$ty>),)* }

        impl Value {
            fn new(kind: Kind, source: Option<Source<'_>>) -> Option<Self> {
                Some(match (kind.base, kind.optional, source) {
                    $((Base::$plain, true, None) => Self::$optional(None),
                    (Base::$plain, true, Some(source)) => Self::$optional(Some(Plain::of(source)?)),
                    (Base::$plain, false, Some(source)) => Self::$plain(Plain::of(source)?),)*
                    (_, false, None) => return None,
                })
            }

            fn flat_count(&self) -> usize {
                match self {
                    $(Self::$plain(_) => <$ty>::flatten_count(),
                    Self::$optional(_) => <Option<$ty>>::flatten_count(),)*
                }
            }

            fn abi(&self) -> CanonicalAbiInfo {
                match self {
                    $(Self::$plain(_) => <$ty as ComponentType>::ABI,
                    Self::$optional(_) => <Option<$ty> as ComponentType>::ABI,)*
                }
            }

            fn typecheck(&self, ty: &InterfaceType, types: &InstanceType<'_>) -> wasmtime::Result<()> {
                match self {
                    $(Self::$plain(_) => <$ty>::typecheck(ty, types),
                    Self::$optional(_) => <Option<$ty>>::typecheck(ty, types),)*
                }
            }

            fn lower_flat<T>(
                &self,
                cx: &mut LowerContext<'_, T>,
                ty: InterfaceType,
                to: &mut [MaybeUninit<ValRaw>],
            ) -> wasmtime::Result<()> {
                match self {
                    $(Self::$plain(value) => value.linear_lower_to_flat(cx, ty, storage::<$ty>(to)),
                    Self::$optional(value) => value.linear_lower_to_flat(cx, ty, storage::<Option<$ty>>(to)),)*
                }
            }

            fn lower_memory<T>(
                &self,
                cx: &mut LowerContext<'_, T>,
                ty: InterfaceType,
                offset: usize,
            ) -> wasmtime::Result<()> {
                match self {
                    $(Self::$plain(value) => value.linear_lower_to_memory(cx, ty, offset),
                    Self::$optional(value) => value.linear_lower_to_memory(cx, ty, offset),)*
                }
            }
        }
    };
}

values! {
    Bool MaybeBool bool;
    S8 MaybeS8 i8;
    U8 MaybeU8 u8;
    S16 MaybeS16 i16;
    U16 MaybeU16 u16;
    S32 MaybeS32 i32;
    U32 MaybeU32 u32;
    S64 MaybeS64 i64;
    U64 MaybeU64 u64;
    F32 MaybeF32 f32;
    F64 MaybeF64 f64;
    Char MaybeChar char;
    Text MaybeText String;
    Bytes MaybeBytes Vec<u8>;
    Data MaybeData Data;
    Many MaybeMany Vec<Data>;
    Texts MaybeTexts Vec<String>;
}

/// Returns the storage of one value, at the front of the rest of the call's storage.
fn storage<V: ComponentType>(to: &mut [MaybeUninit<ValRaw>]) -> &mut MaybeUninit<V::Lower> {
    assert!(to.len() >= V::flatten_count());
    // SAFETY: `Lower` is a sequence of `ValRaw`s, as many as asserted above; `flatten_count` checks its size and
    // alignment. All of its bytes may be uninitialized, as they may be in `to`.
    unsafe { &mut *to.as_mut_ptr().cast() }
}

/// The kind of value that a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    base: Base,
    optional: bool,
}

impl Kind {
    fn of(ty: &Ty) -> Option<Self> {
        if let Ty::Option(inner) = ty {
            let inner = Self::of(inner)?;
            // `none` of an option of an option has two meanings.
            return (!inner.optional).then_some(Self { optional: true, ..inner });
        }
        let base = match ty {
            Ty::Bool => Base::Bool,
            Ty::Int(Int::S8) => Base::S8,
            Ty::Int(Int::U8) => Base::U8,
            Ty::Int(Int::S16) => Base::S16,
            Ty::Int(Int::U16) => Base::U16,
            Ty::Int(Int::S32) => Base::S32,
            Ty::Int(Int::U32) => Base::U32,
            Ty::Int(Int::S64) => Base::S64,
            Ty::Int(Int::U64) => Base::U64,
            Ty::F32 => Base::F32,
            Ty::F64 => Base::F64,
            Ty::Char => Base::Char,
            Ty::Text => Base::Text,
            Ty::Bytes => Base::Bytes,
            Ty::Data => Base::Data,
            Ty::List(inner) if **inner == Ty::Data => Base::Many,
            Ty::List(inner) if **inner == Ty::Text => Base::Texts,
            _ => return None,
        };
        Some(Self { base, optional: false })
    }

    /// Returns the source of a parameter of this kind. None if the parameter gets no value.
    fn source<'a>(
        self,
        param: &TypedParam,
        given: &'a Given<'_>,
        budget: &mut ValueBudget,
    ) -> Result<Option<Source<'a>>, Misfit> {
        match (self.base, given) {
            (_, Given::Nothing) => return Ok(None),
            (Base::Data, Given::Kwargs(pairs)) => return Ok(Some(Source::Owned(lower::map_of(pairs)?))),
            (Base::Many, Given::Args(values)) => return Ok(Some(Source::Many(values.clone()))),
            (base, Given::Value(value)) => match (base, Reader::new(value).item()?) {
                (_, Item::Nil) if self.optional => return Ok(None),
                (Base::Data, _) => return Ok(Some(Source::Bytes(value))),
                (Base::Many, Item::Array(_)) => return Ok(Some(Source::Many(msgpack::array(value)?))),
                (Base::Bytes, Item::Bin(bytes)) => return Ok(Some(Source::Bytes(bytes))),
                (Base::Bytes, Item::Str(text)) => return Ok(Some(Source::Bytes(text.as_bytes()))),
                _ => {}
            },
            _ => {}
        }
        Ok(match lower::lower(param, given, budget)? {
            Val::Option(inner) => inner.map(|value| Source::Val(*value)),
            value => Some(Source::Val(value)),
        })
    }
}

/// The kinds of a function's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kinds(Vec<Kind>);

impl Kinds {
    /// Returns the kinds. None if a parameter has another type.
    #[must_use]
    pub fn of(signature: &Signature) -> Option<Self> {
        signature.params.iter().map(|param| Kind::of(&param.ty)).collect::<Option<_>>().map(Self)
    }

    /// Makes the parameters of a call.
    ///
    /// # Errors
    /// When an argument does not fit its parameter.
    pub fn params(
        &self,
        signature: &Signature,
        given: &[Given<'_>],
        budget: &mut ValueBudget,
    ) -> Result<Params, Misfit> {
        let mut values = Vec::with_capacity(self.0.len());
        for ((kind, param), given) in self.0.iter().zip(signature.params.iter()).zip(given) {
            let source = kind.source(param, given, budget)?;
            let value = Value::new(*kind, source);
            values.push(value.ok_or_else(|| Misfit(format!("'{}' cannot be passed", param.name.snake)))?);
        }
        Ok(Params(values))
    }
}

/// All parameters of a call.
pub struct Params(Vec<Value>);

// SAFETY: `Lower` is a sequence of `ValRaw`s, as long as that of any call, so wasmtime never places it into memory by
// itself, for which it would use `ABI`. The types are checked during lowering, because there is no value to check here.
unsafe impl ComponentType for Params {
    type Lower = [ValRaw; MAX_FLAT];

    const ABI: CanonicalAbiInfo = CanonicalAbiInfo::ZERO;

    fn typecheck(_: &InterfaceType, _: &InstanceType<'_>) -> wasmtime::Result<()> {
        Ok(())
    }
}

// SAFETY: `Params` stands for the tuple of the function's parameters, which is checked during lowering.
unsafe impl ComponentNamedList for Params {}

// SAFETY: all of `dst` is written: first zeros, then each value by its own type's `Lower`, in the order of the
// canonical ABI; or the one pointer to the values in memory, in the ABI's layout. Each value was checked against the
// function's own type.
unsafe impl Lower for Params {
    fn linear_lower_to_flat<T>(
        &self,
        cx: &mut LowerContext<'_, T>,
        ty: InterfaceType,
        dst: &mut MaybeUninit<Self::Lower>,
    ) -> wasmtime::Result<()> {
        let InterfaceType::Tuple(index) = ty else { wasmtime::bail!("parameters are a tuple") };
        let all = cx.types;
        let tuple = &all[index];
        if tuple.types.len() != self.0.len() {
            wasmtime::bail!("{} parameters are expected, there are {}", tuple.types.len(), self.0.len());
        }
        for (value, ty) in self.0.iter().zip(&tuple.types) {
            value.typecheck(ty, &cx.instance_type())?;
        }
        let flat: &mut [MaybeUninit<ValRaw>; MAX_FLAT] = {
            let flat = dst.write([ValRaw::u64(0); MAX_FLAT]);
            // SAFETY: initialized memory may be treated as uninitialized as long as nothing uninitialized is written to
            // it. Each value initializes all of its own `ValRaw`s.
            unsafe { &mut *std::ptr::from_mut(flat).cast() }
        };
        if self.0.iter().map(Value::flat_count).sum::<usize>() <= MAX_FLAT {
            let mut rest = flat.as_mut_slice();
            for (value, ty) in self.0.iter().zip(&tuple.types) {
                value.lower_flat(cx, *ty, rest)?;
                rest = &mut rest[value.flat_count()..];
            }
            return Ok(());
        }
        let size = usize::try_from(tuple.abi.size32)?;
        let at = cx.realloc(0, 0, tuple.abi.align32, size)?;
        let mut offset = 0;
        for (value, ty) in self.0.iter().zip(&tuple.types) {
            let field = usize::try_from(value.abi().next_field32(&mut offset))?;
            value.lower_memory(cx, *ty, at + field)?;
        }
        flat[0].write(ValRaw::i64(i64::try_from(at)?));
        Ok(())
    }

    fn linear_lower_to_memory<T>(
        &self,
        _: &mut LowerContext<'_, T>,
        _: InterfaceType,
        _: usize,
    ) -> wasmtime::Result<()> {
        wasmtime::bail!("parameters are no value within another")
    }
}
