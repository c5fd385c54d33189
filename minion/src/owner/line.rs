//! A line of configuration, its place below `sandbox:`, and what the entry there says with it.

use brine_protocol::config::yaml;
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::yaml_text;

use super::value::{CONTENT, add, flow, of_content, same_content};

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

    /// What it is about: a module, one of its functions, or `*`.
    pub(super) fn key(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// The name of the module.
    pub(super) fn module(&self) -> &str {
        self.key().split('.').next().unwrap_or_default()
    }

    /// The line as it is read.
    pub(super) fn text(&self) -> String {
        let entry = format!("{}: {}", yaml_text(self.key()), flow(&self.entry));
        match self.path.as_slice() {
            [_, _, master, ..] if self.is_of_master() => {
                format!("masters: {{{}: {{modules: {{{entry}}}}}}}", yaml_text(master))
            }
            _ => entry,
        }
    }

    fn is_of_master(&self) -> bool {
        self.path.get(1).is_some_and(|part| part == "masters")
    }

    /// The command by which the owner has this done with the line.
    pub(super) fn command(&self, function: &str) -> String {
        format!("salt-call --local {function} '{}'", self.text().replace('\'', "'\\''"))
    }

    /// What the entry in this place says with the line added.
    ///
    /// # Errors
    /// One sentence: the owner said something else, or the entry is for another content.
    pub(super) fn added_to(&self, present: Option<&Value>) -> Result<Value, String> {
        if let Some(why) = self.not_its_content(present) {
            return Err(why);
        }
        let mut entry = present.cloned().unwrap_or(Value::Nil);
        if let (Value::Map(entries), Some(new)) = (&mut entry, self.entry.get(CONTENT)) {
            match entries.iter_mut().find(|(key, _)| key.text() == Some(CONTENT)) {
                // Nothing was granted to it.
                Some((_, other)) if !same_content(other, new) => *other = new.clone(),
                Some(_) => {}
                None => entries.insert(0, (Value::from(CONTENT), new.clone())),
            }
        }
        add(&mut entry, &self.entry)?;
        Ok(entry)
    }

    /// Why the line cannot be added to this entry, and what the owner can do: it is bound to one content, and the entry grants something to
    /// another one or to all. What was granted to one content never becomes another's by a line that does not say it.
    pub(super) fn not_its_content(&self, present: Option<&Value>) -> Option<String> {
        let (new, present) = (self.entry.get(CONTENT)?, present?);
        let own = present.get(CONTENT);
        let mut granted = of_content(present);
        let is_same = own.is_some_and(|own| same_content(own, new));
        if is_same || granted.entries().is_none_or(<[_]>::is_empty) {
            return None;
        }
        let key = yaml_text(self.key());
        let Some(own) = own else {
            return Some(format!(
                "the entry {key} is for every content of the module, and this line for one alone: leave its {CONTENT} out, or write that \
                 into the entry by hand"
            ));
        };
        if let Value::Map(entries) = &mut granted {
            entries.insert(0, (Value::from(CONTENT), own.clone()));
        }
        let old = Self { path: self.path.clone(), entry: granted };
        Some(format!(
            "the entry {key} is for another content ({CONTENT} {}), and what was granted to that one is not granted to this one with it; \
             revoke it first, and add to the line what the new content is to have of it:  {}",
            flow(own),
            old.command("sandbox.revoke")
        ))
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
        assert_eq!((line.key(), line.module()), ("cmd.run", "cmd"));
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
    #[test]
    fn a_line_is_written_as_it_is_read() {
        for text in [
            "cmd: {process: [/bin/x]}",
            "\"*\": {grains: true}",
            "masters: {\"aa:bb\": {modules: {cmd.run: {pillar: [\"it's\"]}}}}",
        ] {
            assert_eq!(OwnersLine::parse(text).unwrap().text(), text);
        }
        let line = OwnersLine::parse("cmd: {pillar: [\"it's\"]}").unwrap();
        assert_eq!(line.command("f.g"), "salt-call --local f.g 'cmd: {pillar: [\"it'\\''s\"]}'");
    }

    fn added(present: &str, line: &str) -> Result<String, String> {
        let present = yaml::load(present).unwrap();
        OwnersLine::parse(line).unwrap().added_to(Some(&present)).map(|entry| flow(&entry))
    }

    #[test]
    fn grants_stay_with_their_content() {
        let new = "st: {sha256: bb, states: [st.slow]}";
        for (present, expect) in [
            ("null", "{sha256: bb, states: [st.slow]}"),
            ("{sha256: bb, filesystem: {/srv: rw}}", "{sha256: bb, filesystem: {/srv: rw}, states: [st.slow]}"),
            ("{sha256: BB, pillar: [a]}", "{sha256: BB, pillar: [a], states: [st.slow]}"),
            // These hold for every content already.
            (
                "{sha256: aa, grains: false, limits: {memory: 9}, signed_by: [ops.pub], record: asked}",
                "{sha256: bb, grains: false, limits: {memory: 9}, signed_by: [ops.pub], record: asked, states: [st.slow]}",
            ),
            ("{grains: false}", "{sha256: bb, grains: false, states: [st.slow]}"),
        ] {
            assert_eq!(added(present, new).as_deref(), Ok(expect), "{present}");
        }
        for present in [
            "{sha256: aa, filesystem: {/srv: rw}, pillar: [secrets], states: []}",
            "{sha256: aa, grains: true}",
            "{sha256: aa, signed_by: false}",
            "{sha256: aa, user: www}",
            "{sha256: aa, downgrade: true}",
        ] {
            let why = added(present, new).unwrap_err();
            let revoke = format!("salt-call --local sandbox.revoke 'st: {present}'");
            assert!(why.contains("for another content (sha256 aa)") && why.ends_with(&revoke), "{why}");
        }
        // What is for every content would be for one.
        let why = added("{filesystem: {/srv: rw}}", new).unwrap_err();
        assert!(why.contains("for every content"), "{why}");
        // The owner adds to the content that the entry names.
        assert_eq!(
            added("{sha256: aa, jobs: true}", "st: {grains: true}").as_deref(),
            Ok("{sha256: aa, jobs: true, grains: true}")
        );
    }
}
