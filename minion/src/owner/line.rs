//! A line of configuration, and its place below `sandbox:`.

use brine_protocol::config::yaml;
use brine_protocol::value::{Value, ValueExt};

/// Upper bound on the bytes of a line.
const MAX_LINE: usize = 16 << 10;

/// An entry for a module, or for one of its functions, for all masters or for one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OwnersLine {
    /// From the top of the configuration: `sandbox`, `modules`, `cmd`.
    pub(super) path: Vec<String>,
    /// What it says.
    pub(super) entry: Value,
}

impl OwnersLine {
    /// Reads `cmd: {process: [/usr/bin/uptime]}`, or for one master `masters: {"aa:bb": {modules: {cmd: {…}}}}`.
    ///
    /// # Errors
    /// One line: it is no such line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "a line is one entry, as in cmd: {process: [/usr/bin/uptime]}".to_owned();
        if text.len() > MAX_LINE || text.contains('\n') {
            return Err(wrong());
        }
        let value = yaml::load(text).map_err(|_| wrong())?;
        let (key, mut value) = only(&value).ok_or_else(wrong)?;
        let mut path = vec!["sandbox".to_owned()];
        let mut key = key;
        if key == "masters" {
            let (master, of_master) = only(value).ok_or_else(wrong)?;
            let (modules, of_modules) = only(of_master).filter(|(key, _)| *key == "modules").ok_or_else(wrong)?;
            path.extend(["masters".to_owned(), master.to_owned()]);
            debug_assert_eq!(modules, "modules");
            (key, value) = only(of_modules).ok_or_else(wrong)?;
        }
        if value.entries().is_none_or(<[_]>::is_empty) {
            return Err(wrong());
        }
        path.extend(["modules".to_owned(), key.to_owned()]);
        Ok(Self { path, entry: value.clone() })
    }

    /// The name of the module.
    pub(super) fn module(&self) -> &str {
        let key = self.path.last().map_or("", String::as_str);
        key.split('.').next().unwrap_or(key)
    }
}

/// The key and value of a map with one entry.
fn only(value: &Value) -> Option<(&str, &Value)> {
    match value.entries()? {
        [(key, value)] => Some((key.text()?, value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_place() {
        let line = OwnersLine::parse("cmd.run: {process: [/bin/x]}").unwrap();
        assert_eq!(line.path, ["sandbox", "modules", "cmd.run"]);
        assert_eq!(line.module(), "cmd");
        let line = OwnersLine::parse("masters: {\"aa:bb\": {modules: {cmd: {grains: true}}}}").unwrap();
        assert_eq!(line.path, ["sandbox", "masters", "aa:bb", "modules", "cmd"]);
        for wrong in [
            "",
            "cmd",
            "cmd: true",
            "cmd: {}",
            "a: {b: true}\nc: {d: true}",
            "{a: {b: 1}, c: {d: 1}}",
            "masters: {x: {y: 1}}",
            "[a]",
            "a: {",
            &"x".repeat(20_000),
        ] {
            assert!(OwnersLine::parse(wrong).is_err(), "{wrong:.40}");
        }
    }
}
