//! The state `managed`.

use brine_apt::arguments::{Keywords, is_true};
use brine_apt::sources::{Entry, Line, MAIN_FILE, Stanza, to_bool};
use brine_guest::host::changes;
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Result, Value};

use crate::pkg;

pub(crate) fn run(name: &str, aptkey: bool, mut keywords: Keywords) -> Result<StateResult> {
    if keywords.get("repo").is_some() {
        return Ok(StateResult::bad(
            "'repo' is not a supported argument for this state. The 'name' argument is probably what was intended.",
        ));
    }
    let given = |value: Option<Value>| value.filter(|value| *value != Value::None);
    let (enabled, disabled) = (given(keywords.take("enabled")), given(keywords.take("disabled")));
    if enabled.is_some() && disabled.is_some() {
        return Ok(StateResult::bad("Only one of enabled/disabled is allowed"));
    }
    let allow_insecure = keywords.take("allow_insecure_key").is_none_or(|value| value.truthy());
    let insecure = keywords.text("key_url").is_some_and(|url| url.trim().starts_with("http:"));
    if insecure && !allow_insecure {
        return Ok(StateResult::bad("Cannot have 'key_url' using http with 'allow_insecure_key' set to True"));
    }
    let disabled = match enabled {
        Some(enabled) => !is_true(&enabled),
        None => disabled.is_some_and(|disabled| is_true(&disabled)),
    };
    keywords.set("disabled", disabled);

    let before = match pkg::get_repo(name) {
        Ok(before) => before,
        Err(why) => return Ok(StateResult::bad(format!("Failed to examine repo '{name}': {why}"))),
    };
    let mut wanted = wanted(name, &keywords)?;
    let mut before = Keywords(before);
    let file = keywords.text("file").filter(|file| !file.is_empty());
    let clean = keywords.truthy("clean_file");
    let has_others = match (&file, clean && before.0.truthy()) {
        (Some(file), true) => has_other_lines(file, name)?,
        _ => false,
    };
    if before.0.truthy() && !has_others {
        before.take("file");
        wanted.take("file");
        if is_as_wanted(&wanted, &before, &keywords) {
            return Ok(StateResult::good(format!("Package repo '{name}' already configured")));
        }
    }
    if let (None, Some(uri), Some(old)) = (keywords.get("uri"), wanted.get("uri"), before.get("uri"))
        && uri != old
    {
        keywords.set("uri", uri.clone());
    }
    if let (None, Some(Value::List(uris)), Some(Value::List(old))) =
        (keywords.get("uris"), wanted.get("uris"), before.get("uris"))
        && uris.first().is_some_and(|uri| !old.contains(uri))
    {
        keywords.set("uris", Value::List(uris.clone()));
    }
    if is_dry_run() {
        let comment = format!(
            "Package repo '{name}' would be configured. This may cause pkg states to behave differently than stated if this action is \
             repeated without test=True, due to the differences in the configured repositories."
        );
        let changes = match before.0.truthy() {
            true => differences(&wanted, &before, &wanted),
            false => Value::dict([("repo", name.into())]),
        };
        return Ok(StateResult::would(comment, changes));
    }
    if let Some(file) = file.filter(|_| clean) {
        let owner = changes::Owner { user: None, group: None };
        let options = changes::PutOptions { owner, mode: None, backup: false, follow: true, expect: None };
        changes::put(&file, &changes::Content::Bytes(Vec::new()), &options)?;
    }
    let saltenv = brine_guest::host::job::state().map(|state| state.saltenv).filter(|env| !env.is_empty());
    if let Err(why) = pkg::mod_repo(name, saltenv.as_deref().unwrap_or("base"), aptkey, &keywords) {
        return Ok(StateResult::bad(format!("Failed to configure repo '{name}': {why}")));
    }
    Ok(match pkg::get_repo(name) {
        Ok(after) => {
            let changes = match before.0.truthy() {
                true => differences(&Keywords(after), &before, &wanted),
                false => Value::dict([("repo", name.into())]),
            };
            StateResult::changed(format!("Configured package repo '{name}'"), changes)
        }
        Err(why) => StateResult::bad(format!("Failed to confirm config of repo '{name}': {why}")),
    })
}

/// What is different in the parts that are wanted: `old` and `new` by part.
fn differences(new: &Keywords, old: &Keywords, wanted: &Keywords) -> Value {
    let Value::Dict(entries) = &wanted.0 else { return Value::Dict(Vec::new()) };
    let of = |side: &Keywords, key: &str| side.get(key).cloned().unwrap_or_default();
    let parts = entries.iter().map(|(key, _)| key.to_text());
    let changed = parts.filter(|key| of(new, key) != of(old, key));
    Value::Dict(
        changed
            .map(|key| {
                let change = Value::dict([("new", of(new, &key)), ("old", of(old, &key))]);
                (key.into(), change)
            })
            .collect(),
    )
}

/// Whether the file has lines beside comments and this one.
fn has_other_lines(file: &str, name: &str) -> Result<bool> {
    let mut content = Vec::new();
    while let Some(part) = changes::read(file, content.len() as u64, 1 << 20)? {
        if part.is_empty() {
            break;
        }
        content.extend(part);
    }
    let text = String::from_utf8_lossy(&content);
    let mut lines = text.lines().map(str::trim);
    Ok(lines.any(|line| !line.is_empty() && !line.starts_with('#') && line != name.trim()))
}

fn listed(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().map(Value::to_text).collect(),
        text => text.to_text().split(',').map(|item| item.trim().to_owned()).collect(),
    }
}

/// The parts of the source as it is to be.
fn wanted(name: &str, keywords: &Keywords) -> Result<Keywords> {
    let mut line = Line::of_main(name)?;
    if let Some(comps) = keywords.get("comps") {
        line.comps = listed(comps);
    }
    if let Some(architectures) = keywords.get("architectures") {
        line.architectures = listed(architectures);
    }
    for (key, slot) in [("uri", &mut line.uri), ("dist", &mut line.dist), ("signedby", &mut line.signed_by)] {
        if let Some(value) = keywords.text(key) {
            *slot = value;
        }
    }
    line.disabled = keywords.is_true("disabled", line.disabled);
    let trusted = keywords.get("trusted").cloned().unwrap_or_default();
    let trusted = if trusted == Value::None { None } else { to_bool(&trusted.to_text()) };
    let file = keywords.text("file").filter(|file| !file.is_empty());
    let mut entry = match &file {
        Some(file) if file.ends_with(".sources") => Entry::Stanza(stanza(&line, file, keywords, trusted)),
        file => Entry::Line(Line {
            // Salt makes the line anew, with these options only.
            line: String::new(),
            comment: String::new(),
            invalid: false,
            trusted: trusted.filter(|trusted| *trusted),
            file: file.clone().unwrap_or_else(|| MAIN_FILE.into()),
            ..line.clone()
        }),
    };
    entry.set_disabled(line.disabled);
    let first = |list: Vec<String>| list.into_iter().next().unwrap_or_default();
    // One-word forms of a stanza's fields are the fields as they are.
    let whole = |list: Vec<String>, is_stanza: bool| if is_stanza { list.join(" ") } else { first(list) };
    let is_stanza = matches!(entry, Entry::Stanza(_));
    Ok(Keywords(Value::dict([
        ("file", entry.file().into()),
        ("comps", entry.comps().into()),
        ("disabled", entry.is_disabled().into()),
        ("dist", whole(entry.suites(), is_stanza).into()),
        ("suites", entry.suites().into()),
        ("type", whole(entry.types(), is_stanza).into()),
        ("types", entry.types().into()),
        ("uri", whole(entry.uris(), is_stanza).into()),
        ("uris", entry.uris().into()),
        ("line", entry.text().into()),
        ("architectures", entry.architectures().into()),
        ("signedby", line.signed_by.into()),
    ])))
}

fn stanza(line: &Line, file: &str, keywords: &Keywords, trusted: Option<bool>) -> Stanza {
    let mut stanza = Stanza::read("", file);
    let list = |key: &str, one: &str| match keywords.get(key) {
        Some(Value::List(items)) if !items.is_empty() => items.iter().map(Value::to_text).collect::<Vec<_>>().join(" "),
        _ => one.to_owned(),
    };
    stanza.set("Types", &list("types", &line.kind));
    stanza.set("URIs", &list("uris", &line.uri));
    stanza.set("Suites", &list("suites", &line.dist));
    stanza.set("Components", &line.comps.join(" "));
    if !line.architectures.is_empty() {
        stanza.set("Architectures", &line.architectures.join(" "));
    }
    // An empty comment, as Salt's stanzas have.
    if !line.signed_by.is_empty() {
        stanza.set("Signed-By", &line.signed_by);
    }
    if let Some(trusted) = trusted {
        stanza.set("Trusted", if trusted { "yes" } else { "no" });
    }
    stanza
}

/// Whether all parts that the source has are as wanted.
fn is_as_wanted(wanted: &Keywords, before: &Keywords, keywords: &Keywords) -> bool {
    let Value::Dict(parts) = &wanted.0 else { return false };
    let disabled = wanted.truthy("disabled");
    parts.iter().all(|(key, wanted)| {
        let key = key.to_text();
        let Some(before) = before.get(&key) else { return key != "comps" };
        match &key[..] {
            "comps" => sorted(wanted) == sorted(before),
            "line" if disabled => true,
            "line" => is_same_line(&wanted.to_text(), &before.to_text(), keywords),
            "architectures" if wanted.truthy() => sorted(wanted) == sorted(before),
            _ => wanted.to_text() == before.to_text(),
        }
    })
}

/// Compares lines word by word, all after the third in any order, and comments if they are asked for.
fn is_same_line(wanted: &str, before: &str, keywords: &Keywords) -> bool {
    let words = |line: &str| {
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if let Some(rest) = words.get_mut(3..) {
            rest.sort();
        }
        words
    };
    let (line, comment) = before.split_once('#').unwrap_or((before, ""));
    let comments = keywords.get("comments").map(|comments| match comments {
        Value::List(lines) => lines.iter().map(Value::to_text).collect::<Vec<_>>().join(" ").trim().to_owned(),
        text => text.to_text().trim().to_owned(),
    });
    words(wanted) == words(line) && comments.is_none_or(|comments| comments == comment.trim())
}

fn sorted(list: &Value) -> Vec<String> {
    let Value::List(items) = list else { return vec![list.to_text()] };
    let mut items: Vec<String> = items.iter().map(Value::to_text).collect();
    items.sort();
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "deb [arch=amd64 signed-by=/k.gpg] http://x stable main extra";

    fn described(line: &str, file: &str) -> Keywords {
        Keywords(Entry::Line(Line::read(line, file).unwrap()).described().remove(0).1)
    }

    fn keywords(entries: &[(&str, Value)]) -> Keywords {
        Keywords(Value::dict(entries.iter().map(|(key, value)| (*key, value.clone()))))
    }

    #[test]
    fn a_source_that_is_as_wanted_is_recognised() {
        let given = keywords(&[("disabled", false.into()), ("file", "/f.list".into())]);
        let is_same =
            |before: &str| is_as_wanted(&wanted(NAME, &given).unwrap(), &described(before, "/f.list"), &given);
        assert!(is_same(NAME));
        assert!(is_same("deb [arch=amd64 signed-by=/k.gpg]  http://x  stable extra main # why"));
        for other in [
            "deb [signed-by=/k.gpg] http://x stable main extra",
            "deb [arch=amd64] http://x stable main extra",
            "deb [arch=amd64 signed-by=/k.gpg] http://x stable main",
            "# deb [arch=amd64 signed-by=/k.gpg] http://x stable main extra",
        ] {
            assert!(!is_same(other), "{other}");
        }
        let commented = keywords(&[("disabled", false.into()), ("comments", vec!["why"].into())]);
        let before = |line: &str| described(line, MAIN_FILE);
        assert!(is_as_wanted(&wanted(NAME, &commented).unwrap(), &before(&format!("{NAME} # why")), &commented));
        assert!(!is_as_wanted(&wanted(NAME, &commented).unwrap(), &before(NAME), &commented));
    }

    #[test]
    fn keywords_are_parts_of_the_source() {
        let given = keywords(&[
            ("comps", "a, b".into()),
            ("architectures", "i386".into()),
            ("disabled", true.into()),
            ("dist", "sid".into()),
        ]);
        let wanted = wanted("deb http://x stable main", &given).unwrap();
        assert_eq!(wanted.text("line").unwrap(), "# deb [arch=i386] http://x sid a b");
        assert_eq!(wanted.get("comps"), Some(&vec!["a", "b"].into()));
    }

    #[test]
    fn a_file_of_stanzas_has_a_stanza() {
        let given = keywords(&[("file", "/f.sources".into()), ("disabled", true.into())]);
        let line = wanted(NAME, &given).unwrap().text("line").unwrap();
        let expected = "Types: deb\nURIs: http://x\nSuites: stable\nComponents: main extra\nArchitectures: amd64\nSigned-By: /k.gpg\nEnabled: no";
        assert_eq!(line, expected);
    }

    #[test]
    fn differences_are_those_of_the_parts() {
        let (old, new) =
            (described("deb http://x stable main", "/f"), described("deb http://x stable main extra", "/f"));
        let only = keywords(&[("comps", Value::None), ("uri", Value::None)]);
        let comps = Value::dict([("new", vec!["main", "extra"].into()), ("old", vec!["main"].into())]);
        assert_eq!(differences(&new, &old, &only), Value::dict([("comps", comps)]));
    }
}
