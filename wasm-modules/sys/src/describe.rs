//! Descriptions of modules and functions in the forms of Salt's `sys`.

use brine_guest::host::modules::{Function, Module};
use brine_guest::{Value, docstring};

/// A function's documentation in the layout of a Python docstring; its signature if there is none.
pub(crate) fn doc(name: &str, function: &Function) -> String {
    match function.doc.as_deref().map(str::trim_end) {
        Some(doc) if !doc.is_empty() => docstring(doc),
        _ => docstring(&signature(name, function)),
    }
}

/// `test.fib(num: u32) -> tuple<u64, f64>`
pub(crate) fn signature(name: &str, function: &Function) -> String {
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|p| match p.name.as_str() {
            "args" if p.rest => "*args".into(),
            "kwargs" if p.rest => "**kwargs".into(),
            name => format!("{name}: {}", p.type_),
        })
        .collect();
    let result = function.result.as_ref().map(|result| format!(" -> {result}")).unwrap_or_default();
    format!("{name}({}){result}", parameters.join(", "))
}

/// `{args, defaults, varargs, kwargs}` in the form of Python's inspect; None stands for "none of these". The only
/// default value is None.
pub(crate) fn argspec(function: &Function) -> Value {
    let takes = |name: &str| function.parameters.iter().any(|p| p.rest && p.name == name);
    // Parameters after `args` can be passed only by keyword.
    let positional = function.parameters.iter().take_while(|p| !(p.rest && p.name == "args")).count();
    let (before, behind) = function.parameters.split_at(positional);
    let named: Vec<_> = before.iter().filter(|p| !p.rest).collect();
    let keywords = takes("kwargs") || behind.iter().any(|p| !p.rest);
    let args: Vec<Value> = named.iter().map(|p| p.name.as_str().into()).collect();
    // Defaults belong to the last parameters.
    let defaults: Vec<Value> = named.iter().rev().take_while(|p| p.optional).map(|_| Value::None).collect();
    let some = |list: Vec<Value>| if list.is_empty() { Value::None } else { Value::List(list) };
    let flag = |set: bool| if set { Value::Bool(true) } else { Value::None };
    Value::dict([
        ("args", some(args)),
        ("defaults", some(defaults)),
        ("varargs", flag(takes("args"))),
        ("kwargs", flag(keywords)),
    ])
}

/// The description of a module and its permissions.
pub(crate) fn module(module: &Module) -> Value {
    let signatures = module.functions.iter().map(|f| signature(&format!("{}.{}", module.name, f.name), f));
    Value::dict([
        ("doc", module.doc.clone().into()),
        ("origin", module.origin.as_str().into()),
        ("sha256", module.sha256.as_str().into()),
        ("imports", module.imports.clone().into()),
        ("functions", Value::List(signatures.map(Value::from).collect())),
    ])
}

#[cfg(test)]
mod tests {
    use brine_guest::host::modules::Parameter;

    use super::*;

    fn function(parameters: &[(&str, &str, bool, bool)]) -> Function {
        let parameter = |&(name, type_, optional, rest): &(&str, &str, bool, bool)| Parameter {
            name: name.into(),
            type_: type_.into(),
            optional,
            rest,
        };
        Function {
            name: "f".into(),
            parameters: parameters.iter().map(parameter).collect(),
            result: Some("bool".into()),
            doc: None,
        }
    }

    #[test]
    fn argspecs_have_the_shape_of_salts() {
        let texts = |texts: &[&str]| Value::List(texts.iter().map(|&text| text.into()).collect());
        let table = [
            (function(&[]), [Value::None, Value::None, Value::None, Value::None]),
            (function(&[("num", "u32", false, false)]), [texts(&["num"]), Value::None, Value::None, Value::None]),
            (
                function(&[("a", "u32", false, false), ("b", "option<u32>", true, false)]),
                [texts(&["a", "b"]), Value::List(vec![Value::None]), Value::None, Value::None],
            ),
            (
                function(&[("args", "list<data>", false, true), ("kwargs", "data", false, true)]),
                [Value::None, Value::None, true.into(), true.into()],
            ),
            (
                function(&[("args", "list<data>", false, true), ("b", "option<u32>", true, false)]),
                [Value::None, Value::None, true.into(), true.into()],
            ),
        ];
        for (function, expected) in table {
            let expected = ["args", "defaults", "varargs", "kwargs"].into_iter().zip(expected);
            assert_eq!(argspec(&function), Value::dict(expected));
        }
    }

    #[test]
    fn docs_are_laid_out_as_docstrings() {
        let mut f = function(&[("num", "u32", false, false), ("kwargs", "data", false, true)]);
        assert_eq!(doc("m.f", &f), "\n    m.f(num: u32, **kwargs) -> bool\n    ");
        f.doc = Some("Does it.\n\nCLI Example:\n\n    salt '*' m.f\n".into());
        assert_eq!(doc("m.f", &f), "\n    Does it.\n\n    CLI Example:\n\n        salt '*' m.f\n    ");
    }
}
