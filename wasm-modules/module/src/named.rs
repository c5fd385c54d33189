//! The older form: one function as `name`, and its arguments as keywords.

use brine_guest::states::{is_dry_run, no_changes};
use brine_guest::{Data, Value};

use crate::function::{self, Function};
use crate::{outcome, result};

/// Parameters that keywords of states hide, so that they are said with `m_` before them.
const HIDDEN: [&str; 5] = ["name", "fun", "names", "state", "saltenv"];

pub(crate) fn run(mut keywords: Vec<(String, Value)>) -> Result<Data, String> {
    let at =
        keywords.iter().position(|(name, _)| name == "name").ok_or("Missing parameter name for state module.run")?;
    let name = keywords.remove(at).1.to_text();
    let failed = |comment: String| Ok(result(name.as_str().into(), Some(false), comment, no_changes()));
    let Some(function) = Function::find(&name) else {
        return failed(format!("Module function {name} is not available"));
    };
    if is_dry_run() {
        let comment = format!("Module function {name} is set to execute");
        return Ok(result(name.as_str().into(), None, comment, no_changes()));
    }
    let (positional, keyword) = match arranged(&function, keywords) {
        Ok(arranged) => arranged,
        Err(comment) => return failed(comment),
    };
    match function::call(&name, positional, keyword) {
        Err(why) => failed(format!("Module function {name} threw an exception. Exception: {why}")),
        Ok(returned) => {
            let is_good = outcome::is_good(&returned);
            let comment = format!("Module function {name} executed");
            Ok(result(name.as_str().into(), Some(is_good), comment, Value::dict([("ret", returned)])))
        }
    }
}

type Arranged = (Vec<Value>, Vec<(String, Value)>);

/// Arguments by place and by name. Keywords that name no parameter are left out, as in Salt.
fn arranged(function: &Function, mut keywords: Vec<(String, Value)>) -> Result<Arranged, String> {
    let mut take = |name: &str| {
        let at = keywords.iter().position(|(known, _)| known == name)?;
        Some(keywords.remove(at).1)
    };
    let said = |name: &str| match HIDDEN.contains(&name) {
        true => format!("m_{name}"),
        false => name.to_owned(),
    };
    let mut given: Vec<(String, Option<Value>)> = Vec::new();
    let mut missing = Vec::new();
    for name in &function.required {
        match take(&said(name)) {
            Some(value) => given.push((name.clone(), Some(value))),
            None => missing.push(said(name)),
        }
    }
    for name in &function.optional {
        let hidden = HIDDEN.contains(&name.as_str()).then(|| take(&said(name))).flatten();
        given.push((name.clone(), take(name).or(hidden)));
    }
    if !missing.is_empty() {
        return Err(format!("The following arguments are missing: {}", missing.join(" ")));
    }
    let rest = match function.args.then(|| take("args")).flatten() {
        None => Vec::new(),
        Some(Value::List(rest)) => rest,
        Some(_) => return Err("'args' must be a list.".into()),
    };
    let mut keyword = match function.kwargs.then(|| take("kwargs")).flatten() {
        None => Vec::new(),
        Some(Value::Dict(more)) => more.into_iter().map(|(name, value)| (name.to_text(), value)).collect(),
        Some(_) => return Err("'kwargs' must be a dict.".into()),
    };
    // Arguments after the named ones have a place only if these have.
    if !rest.is_empty() {
        let named = given.into_iter().map(|(_, value)| value.unwrap_or_default());
        return Ok((named.chain(rest).collect(), keyword));
    }
    keyword.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
    Ok((Vec::new(), keyword))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> Function {
        Function {
            required: vec!["name".into(), "x".into()],
            optional: vec!["fun".into(), "o".into()],
            args: true,
            kwargs: true,
        }
    }

    fn keywords(keywords: &[(&str, i64)]) -> Vec<(String, Value)> {
        keywords.iter().map(|(name, value)| (name.to_string(), Value::Int(*value))).collect()
    }

    #[test]
    fn keywords_are_arguments() {
        let arranged = |list| arranged(&function(), list);
        let expect = keywords(&[("name", 1), ("x", 2), ("fun", 3), ("o", 4)]);
        assert_eq!(
            arranged(keywords(&[("o", 4), ("m_fun", 3), ("x", 2), ("m_name", 1), ("odd", 9)])),
            Ok((vec![], expect))
        );
        assert_eq!(arranged(keywords(&[("name", 1)])), Err("The following arguments are missing: m_name x".into()));
        let mut rest = keywords(&[("m_name", 1), ("x", 2)]);
        rest.push(("args".into(), vec![5_i64].into()));
        rest.push(("kwargs".into(), Value::dict([("k", Value::Int(6))])));
        let places = vec![Value::Int(1), Value::Int(2), Value::None, Value::None, Value::Int(5)];
        assert_eq!(arranged(rest), Ok((places, keywords(&[("k", 6)]))));
        assert_eq!(arranged(keywords(&[("m_name", 1), ("x", 2), ("args", 3)])), Err("'args' must be a list.".into()));
    }
}
