//! The answers of the module `sandbox`.

use brine_protocol::value::{Value, ValueExt};

use crate::output::page::{Page, Row};

/// Characters of a content's hash that tell it from others.
const HASH: usize = 12;

/// `sandbox.list`: a line for each module.
pub(super) fn list(page: &mut Page, modules: &Value) -> Option<()> {
    let modules = modules.entries()?;
    let mut rows = Vec::with_capacity(modules.len());
    for (name, what) in modules {
        what.entries()?;
        let (state, look) = state(what);
        let of = |key: &str| what.get(key).map(short).unwrap_or_default();
        rows.push(Row {
            cells: vec![short(name), of("version"), of("origin"), of("signed_by"), state.to_owned()],
            look,
        });
    }
    page.table(&["module", "version", "from", "signed by", "state"], &rows);
    page.gap();
    let odd = rows.iter().filter(|row| row.look).count();
    let of_odd = if odd == 0 { String::new() } else { format!(", {odd} to look at") };
    page.text(&format!(
        "{} modules{of_odd}. sandbox.show NAME says what one may do, sandbox.diff NAME what a held update changes.",
        rows.len()
    ));
    Some(())
}

/// What there is to say of a module in one line, and whether somebody should look.
fn state(what: &Value) -> (&'static str, bool) {
    let is = |key: &str| what.get_bool(key) == Some(true);
    match (is("usable"), is("held"), is("missing")) {
        (false, true, _) => ("held", true),
        (false, ..) => ("not usable", true),
        (_, true, _) => ("update is held", true),
        (_, _, true) => ("lacks grants", false),
        _ => ("has all", false),
    }
}

/// `sandbox.show`: paragraphs about one module, or about a profile.
pub(super) fn show(page: &mut Page, shown: &Value) -> Option<()> {
    if shown.has("opens") {
        return profile(page, shown);
    }
    let name = shown.get_text("name")?;
    let mut head = name.to_owned();
    if let Some(version) = shown.get_text("version") {
        head.push_str(&format!(" {version}"));
    }
    if shown.get_bool("usable") != Some(true) {
        page.look(&format!("{head} is not usable here."));
        refused(page, shown.get("left_out")?);
        return Some(());
    }
    let origin = match shown.get_text("origin")? {
        "standard" => "of Brine's package".to_owned(),
        origin => format!("from {origin}"),
    };
    let signers = shown.get("signed_by").map(short).filter(|signers| !signers.is_empty());
    let signed = signers.map_or_else(String::new, |signers| format!(", signed by {signers}"));
    page.text(&format!("{head}, {origin}{signed}."));
    page.text(&format!("sha256 {}", shown.get_text("sha256")?));
    page.gap();
    let words = shown.get_list("words")?;
    match words {
        [] => page.text(&format!("{name} wants nothing that an owner grants.")),
        words => words.iter().for_each(|words| page.item(&short(words), false)),
    }
    profiles(page, shown);
    let others = shown.get("has").and_then(Value::entries).unwrap_or_default();
    let others: Vec<String> = others.iter().map(|(place, _)| short(place)).filter(|place| place != "all").collect();
    if !others.is_empty() {
        page.gap();
        page.text(&format!("Other grants hold for {}; --out=yaml shows them.", some(&others)));
    }
    lines(page, "Lines under sandbox: modules: that would grant what it lacks:", shown.get("missing"));
    for note in shown.get_list("notes").unwrap_or_default() {
        page.gap();
        page.look(&short(note));
    }
    for key in ["held", "refused"] {
        if let Some(what) = shown.get(key) {
            page.gap();
            page.look(if key == "held" { "An update is held." } else { "An update was refused." });
            refused(page, what);
        }
    }
    Some(())
}

/// The profiles by which a module has what it has.
fn profiles(page: &mut Page, shown: &Value) {
    let Some(profiles) = shown.get("profiles").and_then(Value::entries).filter(|profiles| !profiles.is_empty()) else {
        return;
    };
    page.gap();
    for (name, words) in profiles {
        page.text(&format!("By the profile {}: {}", short(name), short(words)));
    }
}

/// A profile.
fn profile(page: &mut Page, shown: &Value) -> Option<()> {
    let in_force = shown.get_bool("in_force")?;
    let head = format!("The profile {}, from {}.", shown.get_text("name")?, shown.get_text("from")?);
    page.text(&head);
    page.gap();
    page.text(&format!("{} {}", shown.get_text("opens")?, shown.get_text("cannot")?));
    page.gap();
    if in_force {
        page.text("It is in force on this host.");
    } else {
        page.text("It is not in force on this host. This line under sandbox: takes it over:");
        page.verbatim(shown.get_text("line")?);
    }
    Some(())
}

/// Why a module or an update is not there, and what lets it in.
fn refused(page: &mut Page, what: &Value) {
    if let Some(why) = what.get_text("why") {
        page.text(why);
    }
    lines(page, "Lines of the minion's configuration that would let it in:", what.get("lines"));
    if let Some(command) = what.get_text("approve") {
        page.text("The owner of this host approves it by");
        page.verbatim(command);
    }
}

/// Lines to copy: a list, or a text of several lines.
fn lines(page: &mut Page, heading: &str, lines: Option<&Value>) {
    let lines: Vec<String> = match lines {
        Some(Value::Array(lines)) => lines.iter().map(short).collect(),
        Some(Value::String(lines)) => lines.as_str().unwrap_or_default().lines().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    if !lines.is_empty() {
        page.gap();
        page.text(heading);
        lines.iter().for_each(|line| page.verbatim(line));
    }
}

/// `sandbox.check`: the walls, what was found, and the last syncs.
pub(super) fn check(page: &mut Page, check: &Value) -> Option<()> {
    let executors = check.get_list("executors")?;
    let findings = check.get_list("findings")?;
    let rows = executors.iter().map(executor).collect::<Option<Vec<_>>>()?;
    match rows.as_slice() {
        [] => page.text("No executor runs now."),
        rows => page.table(&["executor", "reaches", "walls", "lacking"], rows),
    }
    page.gap();
    let profiles: Vec<String> = check.get_list("profiles")?.iter().map(short).collect();
    if !profiles.is_empty() {
        page.text(&format!("Profiles in force: {}. sandbox.show NAME says what one opens.", profiles.join(", ")));
    }
    for (environment, sync) in check.get("last_syncs").and_then(Value::entries).unwrap_or_default() {
        let (at, age) = (sync.get_text("at")?, sync.get_u64("age_s")?);
        page.text(&format!("Modules of {} were last synced at {at}, {age} s ago.", short(environment)));
    }
    if let Some(refused) = check.get("refusals").and_then(refusals) {
        page.text(&refused);
    }
    page.gap();
    match findings {
        [] => page.text("Nothing in the configuration needs a look."),
        findings => {
            page.text("To look at:");
            findings.iter().for_each(|finding| page.item(&short(finding), true));
        }
    }
    Some(())
}

/// What was refused, in numbers.
fn refusals(counts: &Value) -> Option<String> {
    let number = |key: &str| counts.get_u64(key);
    let (different, times) = (number("different")?, number("times")?);
    if times == 0 {
        return Some("Nothing was refused.".to_owned());
    }
    let times = if times == 1 {
        "Once something was refused".to_owned()
    } else {
        format!("{times} times something was refused")
    };
    let left_out = match number("left_out")? {
        0 => String::new(),
        left_out => format!(", without {left_out} times that it had no room for"),
    };
    Some(format!("{times}. sandbox.refusals lists {different}{left_out}."))
}

fn executor(executor: &Value) -> Option<Row> {
    let reaches = executor.get("reaches")?;
    let directories =
        reaches.get("filesystem")?.entries()?.iter().map(|(path, mode)| format!("{} ({})", short(path), short(mode)));
    let hosts = reaches.get_list("network")?.iter().map(short);
    let reaches: Vec<String> = directories.chain(hosts).collect();
    let walls = executor.get("walls")?.entries()?;
    let holds = walls.iter().filter(|(_, holds)| holds.as_bool() == Some(true)).map(|(name, _)| short(name));
    let lacking: Vec<String> = executor.get_list("lacking")?.iter().map(short).collect();
    let look = !lacking.is_empty();
    let nothing = |list: Vec<String>, word: &str| if list.is_empty() { word.to_owned() } else { list.join(", ") };
    let cells = vec![
        executor.get("pid").map(short).unwrap_or_default(),
        nothing(reaches, "nothing"),
        nothing(holds.collect(), "none"),
        nothing(lacking, "nothing"),
    ];
    Some(Row { cells, look })
}

/// `sandbox.diff`: what a held update changes.
pub(super) fn diff(page: &mut Page, diff: &Value) -> Option<()> {
    let (name, held) = (diff.get_text("name")?, diff.get("held")?);
    page.look(&format!("An update of {name} is held: {}", diff.get_text("why")?));
    page.gap();
    let mut rows = vec![version("held", held)?];
    if let Some(now) = diff.get("in_use").filter(|now| now.entries().is_some()) {
        rows.insert(0, version("in use", now)?);
    }
    page.table(&["", "version", "sha256", "signed by", "signed"], &rows);
    let (permissions, functions) = (diff.get("permissions")?, diff.get("functions")?);
    for (key, heading, look) in
        [("added", "It would also ask to", true), ("removed", "It would no longer ask to", false)]
    {
        let words = permissions.get(key)?.entries()?;
        if !words.is_empty() {
            page.gap();
            page.text(&format!("{heading}:"));
            words.iter().for_each(|(interface, words)| {
                page.item(&format!("{} ({})", short(words), short(interface)), look);
            });
        }
    }
    for (key, heading) in
        [("added", "New functions"), ("removed", "Functions that go"), ("changed", "Functions that change")]
    {
        let list = functions.get_list(key)?;
        if !list.is_empty() {
            page.gap();
            page.text(&format!("{heading}:"));
            list.iter().for_each(|function| page.item(&short(function), false));
        }
    }
    lines(page, "Lines of the minion's configuration that would let it in:", diff.get("lines"));
    page.gap();
    page.text("The owner of this host approves it by");
    page.verbatim(diff.get_text("approve")?);
    Some(())
}

fn version(which: &str, version: &Value) -> Option<Row> {
    let of = |key: &str| version.get(key).map(short).unwrap_or_default();
    let hash = version.get_text("sha256")?.chars().take(HASH).collect();
    Some(Row { cells: vec![which.to_owned(), of("version"), hash, of("signed_by"), of("signed")], look: false })
}

/// A value as a cell: a list by its items, nothing for none.
fn short(value: &Value) -> String {
    match value {
        Value::Nil => String::new(),
        Value::Array(items) => items.iter().map(ValueExt::python_str).collect::<Vec<_>>().join(", "),
        value => value.python_str(),
    }
}

/// The first names of a list, and how many more there are.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
