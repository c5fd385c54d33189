//! What a function takes, and its call.

use brine_guest::host::{functions, modules};
use brine_guest::{Data, Value};

/// The parameters of a function.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Function {
    pub required: Vec<String>,
    pub optional: Vec<String>,
    /// Whether it takes further positional arguments, and further ones by name.
    pub args: bool,
    pub kwargs: bool,
}

impl Function {
    /// A function of this minion; none if there is none.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let (module, function) = name.split_once('.')?;
        let found = modules::describe(module)?.functions.into_iter().find(|known| known.name == function)?;
        let mut own = Self::default();
        for parameter in found.parameters {
            match (parameter.rest, parameter.optional) {
                (true, _) if parameter.name == "args" => own.args = true,
                (true, _) => own.kwargs = true,
                (false, true) => own.optional.push(parameter.name),
                (false, false) => own.required.push(parameter.name),
            }
        }
        Some(own)
    }
}

/// Calls a function with its own module's grants.
pub(crate) fn call(name: &str, positional: Vec<Value>, keyword: Vec<(String, Value)>) -> Result<Value, String> {
    let positional: Vec<Data> = positional.into_iter().map(Data::from).collect();
    let keyword = keyword.into_iter().map(|(name, value)| (name.into(), value)).collect();
    functions::call(name, &positional, &Value::Dict(keyword).into())?.value()
}
