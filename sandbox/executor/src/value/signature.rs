//! The parameters of a function, and the assignment of a job's arguments to them.

use std::fmt;
use std::sync::Arc;

use super::msgpack::{self, Malformed};
use super::ty::{Name, Ty};

/// Prefix of the keywords that Salt adds to every job. A function gets them only if it takes every keyword.
const SALT_KEYWORDS: &str = "__pub_";

/// Upper bound on the characters of the whole message: a function may have many parameters of long types.
const MAX_REFUSAL: usize = 2_000;

/// Upper bound on the characters of a keyword in a message.
const MAX_KEYWORD: usize = 60;

/// The arguments that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// One argument.
    One,
    /// `args: list<data>`: the remaining positional arguments.
    Args,
    /// `kwargs: data`: the remaining keyword arguments.
    Kwargs,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedParam {
    /// The name.
    pub name: Name,
    /// The type.
    pub ty: Ty,
    /// The arguments that it takes.
    pub takes: Takes,
}

impl TypedParam {
    /// Makes a parameter; its name and type determine which arguments it takes.
    #[must_use]
    pub fn new(name: &str, ty: Ty) -> Self {
        let takes = match name {
            "args" if ty.is_data_list() => Takes::Args,
            "kwargs" if ty == Ty::Data => Takes::Kwargs,
            _ => Takes::One,
        };
        Self { name: Name::new(name), ty, takes }
    }
}

/// The signature of a function. Functions of the same type share the types.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// `test.get_or_default`
    pub name: String,
    /// The parameters in order.
    pub params: Arc<[TypedParam]>,
    /// The type of the result; none if the function returns nothing.
    pub result: Option<Arc<Ty>>,
}

/// `test.fib(num: u32) -> list<u64>`
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        for (index, param) in self.params.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            match param.takes {
                Takes::One => write!(f, "{}: {}", param.name.snake, param.ty)?,
                Takes::Args => write!(f, "*{}", param.name.snake)?,
                Takes::Kwargs => write!(f, "**{}", param.name.snake)?,
            }
        }
        f.write_str(")")?;
        match &self.result {
            Some(ty) => write!(f, " -> {ty}"),
            None => Ok(()),
        }
    }
}

/// The arguments of one parameter: whole, checked MessagePack values.
#[derive(Debug, Clone, PartialEq)]
pub enum Given<'a> {
    /// One value.
    Value(&'a [u8]),
    /// No value, for an option.
    Nothing,
    /// For [`Takes::Args`].
    Args(Vec<&'a [u8]>),
    /// For [`Takes::Kwargs`].
    Kwargs(Vec<(&'a str, &'a [u8])>),
}

/// Why the arguments do not fit, without context. [`Signature::refusal`] makes the operator's line of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misfit(pub String);

impl From<Malformed> for Misfit {
    fn from(error: Malformed) -> Self {
        Self(format!("they are not what a minion sends: {error}"))
    }
}

impl Signature {
    /// The operator's line about arguments that do not fit.
    #[must_use]
    pub fn refusal(&self, misfit: &Misfit) -> String {
        brine_text::short(&format!("Passed invalid arguments to {}: {misfit}. Usage: {self}", self.name), MAX_REFUSAL)
    }

    /// Assigns the arguments to the parameters. `args` is a MessagePack array and `kwargs` a map.
    ///
    /// # Errors
    /// When an argument is missing, superfluous or malformed.
    pub fn bind<'a>(&self, args: &'a [u8], kwargs: &'a [u8]) -> Result<Vec<Given<'a>>, Misfit> {
        if self.params.is_empty() && matches!((args, kwargs), ([0x90], [0x80])) {
            return Ok(Vec::new());
        }
        let mut positional = msgpack::array(args)?.into_iter();
        let mut keywords: Vec<Option<(&str, &[u8])>> = msgpack::map(kwargs)?.into_iter().map(Some).collect();
        let taken = positional.len();
        let mut given: Vec<Option<Given<'a>>> = Vec::with_capacity(self.params.len());
        for param in self.params.iter() {
            given.push(match param.takes {
                Takes::One => positional.next().map(Given::Value),
                Takes::Args => Some(Given::Args(positional.by_ref().collect())),
                Takes::Kwargs => None,
            });
        }
        if positional.len() > 0 {
            return Err(Misfit(match self.params.iter().filter(|param| param.takes == Takes::One).count() {
                0 => format!("it takes no positional arguments, got {taken}"),
                1 => format!("it takes 1 positional argument, got {taken}"),
                most => format!("it takes up to {most} positional arguments, got {taken}"),
            }));
        }
        for (param, given) in self.params.iter().zip(&mut given).filter(|(param, _)| param.takes == Takes::One) {
            for slot in &mut keywords {
                if let Some((key, value)) = *slot
                    && param.name.is(key)
                {
                    if given.is_some() {
                        return Err(Misfit(format!("'{}' is given twice", param.name.snake)));
                    }
                    *given = Some(Given::Value(value));
                    *slot = None;
                }
            }
        }
        let mut rest: Vec<(&str, &[u8])> = keywords.into_iter().flatten().collect();
        if let Some(index) = self.params.iter().position(|param| param.takes == Takes::Kwargs) {
            given[index] = Some(Given::Kwargs(rest));
        } else {
            rest.retain(|(key, _)| !key.starts_with(SALT_KEYWORDS));
            if let Some((key, _)) = rest.first() {
                return Err(Misfit(format!("it takes no '{}'", brine_text::short(key, MAX_KEYWORD))));
            }
        }
        let missing: Vec<String> = self
            .params
            .iter()
            .zip(&given)
            .filter(|(param, given)| given.is_none() && !param.ty.is_option())
            .map(|(param, _)| format!("'{}'", param.name.snake))
            .collect();
        match missing.as_slice() {
            [] => Ok(given.into_iter().map(|given| given.unwrap_or(Given::Nothing)).collect()),
            [one] => Err(Misfit(format!("{one} is missing"))),
            more => Err(Misfit(format!("{} are missing", more.join(", ")))),
        }
    }
}
