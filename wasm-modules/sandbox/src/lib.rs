//! The module `sandbox`: the grants of the host's owner. The functions and their documentation are in `wit/world.wit`.

wit_bindgen::generate!({
    world: "sandbox",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/policy@1.0.0": brine_guest::host::policy,
    },
});

use brine_guest::Value;
use brine_guest::host::policy;
use brine_guest::json;

struct Module;

impl Guest for Module {
    fn list() -> Data {
        policy::list()
    }

    fn show(name: Data) -> Result<Data, String> {
        let name = name.name("name")?;
        policy::show(&name).ok_or_else(|| {
            format!("there is no module or profile {name:?} on this minion: sandbox.list lists the modules")
        })
    }

    fn check() -> Data {
        policy::check()
    }

    fn diff(name: Data) -> Result<Data, String> {
        policy::diff(&name.name("name")?)
    }

    fn approve(name: Data, sha256: Data) -> Result<Data, String> {
        policy::approve(&name.name("name")?, &sha256.name("sha256")?)
    }

    fn running() -> Data {
        policy::running()
    }

    fn refusals() -> Data {
        policy::refusals()
    }

    fn suggest(since: Option<Data>, module: Option<Data>) -> Result<Data, String> {
        let since = since.map(|since| seconds(&since)).transpose()?.flatten();
        let module = module.map(|module| module.name("module")).transpose()?;
        policy::suggest(since, module.as_deref())
    }

    fn grant(line: Data) -> Result<Data, String> {
        policy::grant(&text(&line)?)
    }

    fn revoke(line: Data) -> Result<Data, String> {
        policy::revoke(&text(&line)?)
    }

    fn rollback(name: Data) -> Result<Data, String> {
        policy::rollback(&name.name("name")?)
    }
}

/// A line of configuration: a text, or the dict that the command line made of it.
fn text(line: &Data) -> Result<String, String> {
    Ok(match line.value()? {
        Value::Text(text) => text,
        other => json::to_text(&other),
    })
}

/// An age: a number of seconds, or a number with a unit. None for None.
fn seconds(since: &Data) -> Result<Option<u64>, String> {
    let wrong = || "since is a number of seconds, or one with a unit as in 90m, 12h, 7d".to_owned();
    let text = match since.value()? {
        Value::None => return Ok(None),
        Value::Text(text) => text,
        Value::Int(seconds) => seconds.to_string(),
        _ => return Err(wrong()),
    };
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[split..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..split].parse().map_err(|_| wrong())?;
    number.checked_mul(unit).map(Some).ok_or_else(wrong)
}

export!(Module);
