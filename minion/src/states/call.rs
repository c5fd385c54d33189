//! What of a chunk are a state's arguments: those that its function names, and the others if it takes any keyword.

use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{Function, Rest};

/// Keywords of the state system, which are no arguments unless a function names them. Salt's
/// `STATE_INTERNAL_KEYWORDS`, and `name`s that the run machine adds begin with two underscores.
const INTERNAL: [&str; 42] = [
    "check_cmd",
    "cmd_opts_exclude",
    "creates",
    "failhard",
    "fire_event",
    "fun",
    "listen",
    "listen_in",
    "no_log",
    "onchanges",
    "onchanges_any",
    "onchanges_in",
    "onfail",
    "onfail_all",
    "onfail_any",
    "onfail_in",
    "onfail_stop",
    "onlyif",
    "order",
    "parallel",
    "prereq",
    "prereq_in",
    "prerequired",
    "reload_grains",
    "reload_modules",
    "reload_pillar",
    "require",
    "require_any",
    "require_in",
    "retry",
    "runas",
    "runas_password",
    "saltenv",
    "state",
    "umask",
    "unless",
    "use",
    "use_in",
    "watch",
    "watch_any",
    "watch_in",
    "provider",
];

fn is_internal(keyword: &str) -> bool {
    INTERNAL.contains(&keyword) || (keyword.starts_with("__") && keyword.len() > 2)
}

/// The arguments of a call by name.
pub(crate) type Arguments = Vec<(String, Value)>;

/// Salt's line about the arguments that a state needs and a chunk lacks. None if it has all.
pub(crate) fn missing(state: &str, function: &Function, chunk: &[(Value, Value)]) -> Option<String> {
    let has = |name: &str| chunk.iter().any(|(key, _)| key.text() == Some(name));
    let needed = function.params.iter().filter(|param| param.rest == Rest::No && !param.optional);
    let lines: Vec<String> = needed
        .filter(|param| !has(&param.name))
        .map(|param| format!("Missing parameter {} for state {state}\n", param.name))
        .collect();
    (!lines.is_empty()).then(|| lines.concat())
}

/// The arguments for a state's function. Of what it does not name it gets nothing, unless it takes any keyword: then all
/// but the keywords of the state system.
///
/// # Errors
/// Salt's sentence about keywords that the state does not know.
pub(crate) fn arguments(state: &str, function: &Function, chunk: Vec<(Value, Value)>) -> Result<Arguments, String> {
    let takes_any = function.params.iter().any(|param| param.rest == Rest::Kwargs);
    let names = |name: &str| function.params.iter().any(|param| param.rest == Rest::No && *param.name == *name);
    let (mut given, mut unknown) = (Vec::new(), Vec::new());
    for (key, value) in chunk {
        let Some(name) = key.text().map(str::to_owned) else {
            unknown.push(key.python_str());
            continue;
        };
        if names(&name) || (takes_any && !is_internal(&name)) {
            // A later value of the same name replaces the earlier, as in Python's dict.
            given.retain(|(known, _): &(String, Value)| *known != name);
            given.push((name, value));
        } else if !is_internal(&name) && name != "name" {
            unknown.push(name);
        }
    }
    match &*unknown {
        [] => Ok(given),
        [one] => Err(format!("'{one}' is an invalid keyword argument for '{state}'")),
        [others @ .., last] => {
            let others: Vec<String> = others.iter().map(|name| format!("'{name}'")).collect();
            Err(format!("{} and '{last}' are invalid keyword arguments for '{state}'", others.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::text;
    use brine_sandbox::Param;

    fn function(params: &[(&str, bool, Rest)]) -> Function {
        let param = |(name, optional, rest): &(&str, bool, Rest)| Param {
            name: (*name).into(),
            ty: "string".into(),
            optional: *optional,
            rest: *rest,
        };
        Function {
            name: "states.made".into(),
            export: vec!["states".into(), "made".into()],
            params: params.iter().map(param).collect(),
            result: None,
            doc: None,
        }
    }

    fn chunk(keys: &[&str]) -> Vec<(Value, Value)> {
        keys.iter().map(|key| (text(*key), text("x"))).collect()
    }

    #[test]
    fn a_state_gets_what_it_names_and_no_keyword_of_the_state_system() {
        let plain = function(&[("name", false, Rest::No), ("umask", true, Rest::No)]);
        let open = function(&[("name", false, Rest::No), ("kwargs", false, Rest::Kwargs)]);
        let names = |function, keys: &[&str]| -> Result<Vec<String>, String> {
            Ok(arguments("a.made", function, chunk(keys))?.into_iter().map(|(name, _)| name).collect())
        };
        assert_eq!(names(&plain, &["name", "require", "umask", "__id__", "order"]).unwrap(), ["name", "umask"]);
        assert_eq!(names(&open, &["name", "require", "umask", "other"]).unwrap(), ["name", "other"]);
        assert_eq!(names(&plain, &["name", "y"]).unwrap_err(), "'y' is an invalid keyword argument for 'a.made'");
        assert_eq!(
            names(&plain, &["x", "y", "z"]).unwrap_err(),
            "'x', 'y' and 'z' are invalid keyword arguments for 'a.made'"
        );
        assert_eq!(missing("a.made", &plain, &chunk(&["name"])), None);
        assert_eq!(missing("a.made", &plain, &[]).unwrap(), "Missing parameter name for state a.made\n");
    }
}
