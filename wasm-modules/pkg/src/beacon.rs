//! The beacon `pkg`: packages that came, went, or can be upgraded since the last look.

use brine_apt::arguments::Keywords;
use brine_guest::beacons::{self, Reading, Verdict};
use brine_guest::{Data, Value};

use crate::exports::beacons::Guest;
use crate::{Module, available, installed};

impl Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        match beacons::items("pkg", &config) {
            Ok(items) => judge(&items),
            Err(why) => beacons::invalid(why),
        }
    }

    fn beacon(config: Data, state: Option<Vec<u8>>) -> Result<Reading, String> {
        let (packages, refresh) = wanted(&beacons::items("pkg", &config)?);
        let last = beacons::kept(state)?.unwrap_or_default();
        let (mut events, mut now) = (Vec::new(), Vec::new());
        for (at, package) in packages.into_iter().enumerate() {
            let (status, version) = look(&package, refresh && at == 0)?;
            if let Some(before) = last.get(&package)
                && before.text() != Some(status)
            {
                events.push(Value::dict([
                    ("pkg", package.as_str().into()),
                    ("version", version),
                    ("status", status.into()),
                ]));
            }
            now.push((Value::from(package), Value::from(status)));
        }
        Ok(Reading::keeping(events, Value::Dict(now)))
    }
}

/// Salt's words for what is wrong.
fn judge(items: &[Value]) -> Verdict {
    match items.iter().any(|item| matches!(item.get("pkgs"), Some(Value::List(_)))) {
        true => beacons::valid(),
        false => beacons::invalid("Configuration for pkg beacon requires list of pkgs."),
    }
}

/// The packages, and whether their lists are refreshed first. In Salt's code, `refresh` never is true.
fn wanted(items: &[Value]) -> (Vec<String>, bool) {
    let lists =
        items.iter().filter_map(|item| if let Some(Value::List(list)) = item.get("pkgs") { Some(list) } else { None });
    let refresh = items.iter().any(|item| item.get("refresh").is_some_and(Value::truthy));
    (lists.flatten().map(Value::to_text).collect(), refresh)
}

/// What is with a package, and the version that tells.
fn look(package: &str, refresh: bool) -> Result<(&'static str, Value), String> {
    let names = [package.to_owned()];
    let version = installed::version(&names, &Keywords::default())?;
    if !version.truthy() {
        return Ok(("not-installed", Value::None));
    }
    let keywords = Keywords::read(&Data::from(Value::dict([("refresh", Value::Bool(refresh))])))?;
    let latest = available::latest_version(&names, &keywords)?;
    Ok(if latest.truthy() { ("upgrade", latest) } else { ("installed", version) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_in_lists() {
        let list = |names: &[&str]| Value::List(names.iter().map(|name| (*name).into()).collect());
        let items = [Value::dict([("pkgs", list(&["zsh", "apache2"]))]), Value::dict([("refresh", true.into())])];
        assert_eq!(wanted(&items), (vec!["zsh".into(), "apache2".into()], true));
        assert_eq!(judge(&items), beacons::valid());
        let why = "Configuration for pkg beacon requires list of pkgs.";
        assert_eq!(judge(&[Value::dict([("pkgs", "zsh".into())])]), beacons::invalid(why));
    }
}
