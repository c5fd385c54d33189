//! The module `ssh_auth`: states of users' public keys. Their documentation is in `wit/world.wit`, the file in
//! [`brine_formats::authorized_keys`]; the functions are in the module `ssh`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "ssh-auth",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

use brine_formats::authorized_keys::{self, File, Key, Status, Wanted};
use brine_formats::key_file;
use brine_guest::Value;
use brine_guest::host::job;
use brine_guest::states::{StateResult, is_dry_run, no_changes};

use exports::states::Guest;

struct Module;

/// The arguments that all states have.
struct Arguments {
    user: String,
    enc: String,
    comment: String,
    source: String,
    options: Vec<String>,
    config: Option<String>,
    kind: Option<String>,
}

impl Guest for Module {
    fn present(
        name: String,
        user: String,
        enc: Option<String>,
        comment: Option<String>,
        source: Option<String>,
        options: Option<Data>,
        config: Option<String>,
        kind: Option<String>,
        _: Data,
    ) -> Result<StateResult, String> {
        Arguments::new(user, enc, comment, source, options.as_ref(), config, kind)?.present(&name)
    }

    fn absent(
        name: String,
        user: String,
        enc: Option<String>,
        comment: Option<String>,
        source: Option<String>,
        options: Option<Data>,
        config: Option<String>,
        kind: Option<String>,
    ) -> Result<StateResult, String> {
        Arguments::new(user, enc, comment, source, options.as_ref(), config, kind)?.absent(&name)
    }

    fn manage(
        _: String,
        ssh_keys: Vec<String>,
        user: String,
        enc: Option<String>,
        comment: Option<String>,
        source: Option<String>,
        options: Option<Data>,
        config: Option<String>,
        kind: Option<String>,
        _: Data,
    ) -> Result<StateResult, String> {
        Arguments::new(user, enc, comment, source, options.as_ref(), config, kind)?.manage(&ssh_keys)
    }
}

impl Arguments {
    fn new(
        user: String,
        enc: Option<String>,
        comment: Option<String>,
        source: Option<String>,
        options: Option<&Data>,
        config: Option<String>,
        kind: Option<String>,
    ) -> Result<Self, String> {
        let options = match options.map(Data::value).transpose()?.unwrap_or_default() {
            Value::List(options) => options.iter().map(Value::to_text).collect(),
            options if !options.truthy() => Vec::new(),
            one => vec![one.to_text()],
        };
        let (enc, comment) = (enc.unwrap_or_else(|| "ssh-rsa".into()), comment.unwrap_or_default());
        Ok(Self { user, enc, comment, source: source.unwrap_or_default(), options, config, kind })
    }

    fn open(&self) -> Result<File, String> {
        File::open(&self.user, self.config.as_deref(), self.kind.as_deref())
    }

    /// The text of the file with keys; none if there is no such file.
    fn source(&self) -> Result<Option<String>, String> {
        key_file::load(&self.source, &job::state().map_or_else(|| "base".into(), |state| state.saltenv))
    }

    /// The key that a name is: a key with or without a comment, or a whole line. `rest`: a comment is all that is left.
    fn key(&self, name: &str, rest: bool) -> Result<Line, String> {
        let mut line = Line {
            key: String::new(),
            enc: self.enc.clone(),
            comment: self.comment.clone(),
            options: self.options.clone(),
        };
        let comment = |fields: &[&str]| match fields {
            [] => None,
            [one] => Some((*one).to_owned()),
            more if rest => Some(more.join(" ")),
            _ => None,
        };
        if let Some((options, key)) = authorized_keys::split(name) {
            if !options.is_empty() {
                line.options = options.split(',').map(str::to_owned).collect();
            }
            let fields: Vec<&str> = key.split_whitespace().collect();
            let [enc, key, more @ ..] = &fields[..] else { return Err("list index out of range".into()) };
            (line.enc, line.key) = ((*enc).to_owned(), (*key).to_owned());
            line.comment = comment(more).unwrap_or(line.comment);
        } else {
            let fields: Vec<&str> = name.split_whitespace().collect();
            let [key, more @ ..] = &fields[..] else { return Err("list index out of range".into()) };
            line.key = (*key).to_owned();
            line.comment = comment(more).unwrap_or(line.comment);
        }
        Ok(line)
    }

    fn present(&self, name: &str) -> Result<StateResult, String> {
        let user = &self.user;
        if !self.source.is_empty() {
            return self.source_present(name);
        }
        let line = self.key(name, true)?;
        let mut file = self.open()?;
        if is_dry_run() {
            let key = &line.key;
            return Ok(match file.check(&line.wanted())? {
                Status::Exists => {
                    StateResult::good(format!("The authorized host key {key} is already present for user {user}"))
                }
                Status::Add => would(format!("Key {key} for user {user} is set to be added")),
                Status::Update => would(format!("Key {key} for user {user} is set to be updated")),
            });
        }
        let done = file.set(&line.wanted())?;
        file.save()?;
        Ok(self.told(&line.key, done.text()))
    }

    /// The result of setting a key, by Salt's word for it.
    fn told(&self, key: &str, done: &str) -> StateResult {
        let user = &self.user;
        let changed = |what: &str| Value::Dict(vec![(key.into(), what.into())]);
        let said = |what: &str| format!("The authorized host key {key} for user {user} was {what}");
        match done {
            "replace" => StateResult::changed(said("updated"), changed("Updated")),
            "new" => StateResult::changed(said("added"), changed("New")),
            "no change" => {
                StateResult::good(format!("The authorized host key {key} is already present for user {user}"))
            }
            "fail" => StateResult::bad(
                "Failed to add the ssh key. Is the home directory available, and/or does the key file exist?",
            ),
            _ => StateResult::bad("Invalid public ssh key, most likely has spaces or invalid syntax"),
        }
    }

    fn source_present(&self, name: &str) -> Result<StateResult, String> {
        let source = &self.source;
        let text = self.source()?;
        if is_dry_run() {
            let already = format!("All host keys in file {source} are already present");
            return self.source_would(text, &already, |key, status| match status {
                Status::Exists => None,
                other => Some(format!("Set to {}: {key}\n", other.text())),
            });
        }
        let Some(text) = text else {
            return Ok(StateResult::bad(format!("Failed to add the ssh key. Source file {source} is missing")));
        };
        if authorized_keys::keys(&text, self.kind.as_deref())?.is_empty() {
            return Ok(StateResult::bad(no_keys(source)));
        }
        let mut file = self.open()?;
        let done = file.set_all(&text, &self.options)?;
        file.save()?;
        Ok(self.told(name, done))
    }

    /// What a dry run says of a file with keys; `line` is what it says of one.
    fn source_would(
        &self,
        text: Option<String>,
        already: &str,
        line: impl Fn(&str, Status) -> Option<String>,
    ) -> Result<StateResult, String> {
        let Some(text) = text else { return Ok(StateResult::good(already)) };
        let keys = authorized_keys::keys(&text, self.kind.as_deref())?;
        if keys.is_empty() {
            return Ok(StateResult::bad(no_keys(&self.source)));
        }
        let file = self.open()?;
        let mut comment = String::new();
        for Key { key, enc, comment: own, options, .. } in &keys {
            let status = file.check(&Wanted { key, enc, comment: own, options })?;
            comment.extend(line(key, status));
        }
        Ok(if comment.is_empty() { StateResult::good(already) } else { would(comment) })
    }

    fn absent(&self, name: &str) -> Result<StateResult, String> {
        let user = &self.user;
        if !self.source.is_empty() {
            let source = &self.source;
            let text = self.source()?;
            if is_dry_run() {
                let already = format!("All host keys in file {source} are already absent");
                return self.source_would(text, &already, |key, status| match status {
                    Status::Add => None,
                    _ => Some(format!("Set to remove: {key}\n")),
                });
            }
            let text = text.ok_or("Failed to pull key file from salt file server")?;
            let mut file = self.open()?;
            let done = file.remove_all(&text)?;
            file.save()?;
            return Ok(gone(name, done));
        }
        let line = self.key(name, !is_dry_run())?;
        let mut file = self.open()?;
        if is_dry_run() {
            return Ok(match file.check(&line.wanted())? {
                Status::Add => StateResult::good("Key is already absent"),
                _ => would(format!("Key {} for user {user} is set for removal", line.key)),
            });
        }
        let was_there = file.remove(&line.key)?;
        file.save()?;
        Ok(gone(&line.key, authorized_keys::removed(was_there)))
    }

    fn manage(&self, keys: &[String]) -> Result<StateResult, String> {
        let mut result = Some(true);
        let mut comment = String::new();
        let mut changes: Vec<(Value, Value)> = Vec::new();
        let wanted: Vec<&str> = keys.iter().flat_map(|key| key.split(' ')).collect();
        for key in self.open()?.keys()?.into_iter().map(|key| key.key) {
            if wanted.contains(&key.as_str()) {
                continue;
            }
            if is_dry_run() {
                comment = format!("{key} Key set for removal");
                result = None;
            } else {
                let said = self.absent(&key)?.comment;
                changes.push((key.into(), said.into()));
            }
        }
        for key in keys {
            let one = self.present(key)?;
            match one.changes.value()? {
                Value::Dict(entries) if !entries.is_empty() => changes.extend(entries),
                _ => comment = format!("{comment}\n{}", one.comment).trim().to_owned(),
            }
            match one.result {
                None => result = None,
                Some(false) => result = Some(false),
                Some(true) => {}
            }
        }
        Ok(StateResult::new(result, comment, Value::Dict(changes)))
    }
}

/// A key as a state has it.
struct Line {
    key: String,
    enc: String,
    comment: String,
    options: Vec<String>,
}

impl Line {
    fn wanted(&self) -> Wanted<'_> {
        Wanted { key: &self.key, enc: &self.enc, comment: &self.comment, options: &self.options }
    }
}

fn would(comment: String) -> StateResult {
    StateResult::would(comment, no_changes())
}

fn no_keys(source: &str) -> String {
    format!("No keys detected in {source}. Is file properly formatted?")
}

/// The result of removing, by Salt's word for it.
fn gone(key: &str, said: &str) -> StateResult {
    match said {
        "Key removed" => StateResult::changed(said, Value::Dict(vec![(key.into(), "Removed".into())])),
        said => StateResult::good(said),
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
