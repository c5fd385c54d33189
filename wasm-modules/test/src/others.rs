//! Calls of other modules, and results in Salt's forms. Each call has the grants of the called module.

use brine_guest::host::functions;
use brine_guest::{Data, Result, Value};

/// Calls a function without keyword arguments.
pub(crate) fn call(function: &str, args: Vec<Value>) -> Result<Data> {
    let args: Vec<Data> = args.into_iter().map(Data::from).collect();
    functions::call(function, &args, &Value::Dict(Vec::new()).into())
}

/// The settings of the minion that are visible to modules.
pub(crate) fn settings() -> Result<Value> {
    call("config.items", Vec::new())?.value()
}

/// One visible setting.
pub(crate) fn setting(name: &str) -> Result<Option<Value>> {
    Ok(settings()?.get(name).cloned().filter(|value| *value != Value::None))
}

/// The names that a function of `sys` lists.
pub(crate) fn names(function: &str) -> Result<Vec<String>> {
    match call(function, Vec::new())?.value()? {
        Value::List(items) => Ok(items.iter().filter_map(Value::text).map(str::to_owned).collect()),
        other => Err(format!("{function} returned {} and no list", other.kind())),
    }
}

/// The module of `module.function`.
pub(crate) fn module_of(function: &str) -> &str {
    function.split_once('.').map_or(function, |(module, _)| module)
}

/// The modules of these functions, each once, in order.
pub(crate) fn modules_of(functions: &[String]) -> Vec<String> {
    let mut modules: Vec<String> = functions.iter().map(|function| module_of(function).to_owned()).collect();
    modules.dedup();
    modules
}

/// `test.module_report`: which of Salt's ways of access finds each module. Here is one way, which finds all.
pub(crate) fn report(functions: Vec<String>) -> Value {
    let modules = Value::from(modules_of(&functions));
    let functions = Value::from(functions);
    Value::dict([
        ("functions", functions.clone()),
        ("function_attrs", functions.clone()),
        ("function_subs", functions),
        ("modules", modules.clone()),
        ("module_attrs", modules),
        ("missing_attrs", Value::List(Vec::new())),
        ("missing_subs", Value::List(Vec::new())),
    ])
}

/// `test.versions_information`, from the grains of the host.
pub(crate) fn versions(version: &str, grains: &Value) -> Value {
    let text = |key: &str| grains.get(key).and_then(Value::text).unwrap_or("unknown").to_owned();
    let dist = [text("os").to_lowercase(), text("osrelease"), text("oscodename")];
    let version_of_os = [text("os"), text("osrelease"), text("oscodename")];
    let salt = Value::dict([
        ("Salt", format!("{version} (Brine)").into()),
        ("follows", format!("Python Salt {}", text("saltversion")).into()),
    ]);
    let system = Value::dict([
        ("dist", dist.join(" ").into()),
        ("machine", text("cpuarch").into()),
        ("release", text("kernelrelease").into()),
        ("system", text("kernel").into()),
        ("version", version_of_os.join(" ").into()),
    ]);
    Value::dict([("Salt Version", salt), ("System Versions", system)])
}

/// `test.versions_report`: the same information as lines.
pub(crate) fn versions_report(versions: &Value) -> String {
    let Value::Dict(sections) = versions else { return String::new() };
    let section = |(heading, lines): &(Value, Value)| {
        let Value::Dict(lines) = lines else { return String::new() };
        let lines = lines.iter().map(|(name, value)| format!("{:>14}: {}\n", name.to_text(), value.to_text()));
        format!("{}:\n{}", heading.to_text(), lines.collect::<String>())
    };
    sections.iter().map(section).collect::<Vec<_>>().join(" \n").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Value {
        Value::List(texts.iter().map(|&text| text.into()).collect())
    }

    #[test]
    fn everything_that_is_there_is_found() {
        let report = report(vec!["sys.doc".into(), "test.echo".into(), "test.ping".into()]);
        assert_eq!(report.get("modules"), Some(&texts(&["sys", "test"])));
        for key in ["functions", "function_attrs", "function_subs"] {
            assert_eq!(report.get(key), Some(&texts(&["sys.doc", "test.echo", "test.ping"])), "{key}");
        }
        assert_eq!(report.get("missing_attrs"), Some(&texts(&[])));
    }

    #[test]
    fn versions_as_a_dict_and_as_lines() {
        let grains = Value::dict([("kernel", "Linux".into()), ("os", "Debian".into()), ("saltversion", "3008".into())]);
        let versions = versions("1.2.3", &grains);
        let report = versions_report(&versions);
        assert!(report.starts_with("Salt Version:\n          Salt: 1.2.3 (Brine)\n"), "{report}");
        assert!(report.contains(" \nSystem Versions:\n          dist: debian unknown"), "{report}");
        assert!(report.contains("\n        system: Linux\n"), "{report}");
    }
}
