//! The functions behind `file.managed`.

use brine_guest::changes::{self, Kind};
use brine_guest::states::is_dry_run;
use brine_guest::url::redacted;
use brine_guest::{Data, Value, diff};

use super::body::{self, Body};
use super::get::{Asked, Got};
use super::source::{self, Place};
use super::sums::{self, Sum};
use super::template;
use super::{Trouble, check, file};
use crate::change::mode;
use crate::change::owner::Wanted;
use crate::change::permissions::Permissions;
use crate::ret::Ret;

type Done<T> = Result<T, String>;

pub(crate) fn value(data: Option<Data>) -> Done<Value> {
    data.map_or(Ok(Value::None), |data| data.value())
}

fn text(value: &Value) -> Option<String> {
    value.truthy().then(|| value.to_text())
}

/// Salt's `file.apply_template_on_contents`: the text, or a result that says why there is none.
pub(crate) fn apply_template(
    contents: &Value,
    engine: &str,
    context: &Value,
    defaults: &Value,
    saltenv: &str,
) -> Done<Value> {
    let mut names = Vec::new();
    template::add_context(&mut names, defaults, context);
    match template::render(engine, contents.to_text().as_bytes(), saltenv, &names) {
        Ok(text) => Ok(String::from_utf8_lossy(&text).into_owned().into()),
        Err(Trouble::Said(comment)) => Ok(Value::dict([("result", false.into()), ("comment", comment.into())])),
        Err(trouble) => Err(trouble.text()),
    }
}

/// Salt's `file.get_source_sum`.
pub(crate) fn source_sum(
    name: &str,
    source: &str,
    hash: &Value,
    hash_name: Option<&str>,
    saltenv: &str,
) -> Done<Value> {
    sums::of(name, source, hash, hash_name, saltenv).map(|sum| sum.value()).map_err(Trouble::text)
}

/// Salt's `file.extract_hash`, of a file's content; None if no hash is in it.
pub(crate) fn extract_hash(list: &[u8], kind: &str, name: &str, source: &str, hash_name: Option<&str>) -> Value {
    let found = sums::extract(&String::from_utf8_lossy(list), kind, name, source, hash_name);
    found.map_or(Value::None, |sum| sum.value())
}

/// What the functions of this family are asked for, by Salt's names.
pub(crate) struct Question(Value);

impl Question {
    /// `names` are those of the positional arguments.
    pub(crate) fn new(names: &[&str], args: Vec<Data>, kwargs: &Data) -> Done<Self> {
        if args.len() > names.len() {
            return Err(format!("at most {} arguments are taken, {} were given", names.len(), args.len()));
        }
        let Value::Dict(mut entries) = kwargs.value()? else { return Err("the keywords are no dict".into()) };
        for (name, arg) in names.iter().zip(args) {
            if entries.iter().any(|(key, _)| key.text() == Some(name)) {
                return Err(format!("got multiple values for argument '{name}'"));
            }
            entries.push(((*name).into(), arg.value()?));
        }
        Ok(Self(Value::Dict(entries)))
    }

    fn get(&self, name: &str) -> Value {
        self.0.get(name).cloned().unwrap_or_default()
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.0.get(name).map_or(default, Value::truthy)
    }

    fn name(&self) -> String {
        self.get("name").to_text()
    }

    fn saltenv(&self) -> String {
        text(&self.get("saltenv")).unwrap_or_else(|| "base".into())
    }

    fn permissions(&self) -> Permissions {
        let owner = Wanted { user: self.get("user"), group: self.get("group") };
        Permissions { owner, mode: mode::normal(&self.get("mode")) }
    }

    fn asked(&self, source: &Value, source_hash: &Value) -> Asked {
        let mut names = Vec::new();
        for name in ["name", "source", "user", "group", "mode", "attrs"] {
            names.push((name.to_owned(), self.get(name).into()));
        }
        template::add_context(&mut names, &self.get("defaults"), &self.get("context"));
        Asked {
            name: self.name(),
            source: text(source),
            source_hash: source_hash.clone(),
            source_hash_name: text(&self.get("source_hash_name")),
            skip_verify: self.flag("skip_verify", false),
            use_etag: self.flag("use_etag", false),
            template: text(&self.get("template")),
            saltenv: self.saltenv(),
            names,
        }
    }

    /// Salt's `file.get_managed`: a path, which is always empty because nothing is left on this host, the hash, and a
    /// comment if there is no content.
    pub(crate) fn get_managed(&self) -> Done<Value> {
        let answer = |sum: Value, comment: String| Value::List(vec!["".into(), sum, comment.into()]);
        let none = || Value::Dict(Vec::new());
        match self.asked(&self.get("source"), &self.get("source_hash")).get() {
            Ok(got) => {
                let sum = got.and_then(|got| got.sum).map_or_else(none, |sum| sum.value());
                Ok(answer(sum, String::new()))
            }
            Err(Trouble::Said(comment)) => Ok(answer(none(), comment)),
            Err(trouble) => Err(trouble.text()),
        }
    }

    /// What would change; the inner error is a comment.
    fn changes(&self) -> Done<Result<Vec<(Value, Value)>, String>> {
        let (source, source_hash) = source::choose(&self.get("source"), &self.get("source_hash"), &self.saltenv())?;
        let contents = self.get("contents");
        let contents = (contents != Value::None).then(|| match contents {
            Value::Bytes(bytes) => bytes,
            other => other.to_text().into_bytes(),
        });
        let got = match contents.is_none() {
            true => self.asked(&source, &source_hash).get(),
            false => Ok(None),
        };
        let got = match got {
            Ok(got) => got,
            Err(Trouble::Said(comment)) => return Ok(Err(comment)),
            Err(trouble) => return Err(trouble.text()),
        };
        let name = self.name();
        let entry = changes::look_with_hash(&name, self.flag("follow_symlinks", false))?;
        let wish = check::Wish {
            name: &name,
            got: got.as_ref(),
            contents: contents.as_deref(),
            permissions: &self.permissions(),
            new_file_diff: self.flag("new_file_diff", false),
            shown: true,
        };
        check::changes(&wish, entry.as_ref()).map(Ok)
    }

    /// Salt's `file.check_managed_changes`.
    pub(crate) fn check_managed_changes(&self) -> Done<Value> {
        Ok(match self.changes()? {
            Ok(changes) => Value::Dict(changes),
            Err(comment) => Value::List(vec![false.into(), comment.into()]),
        })
    }

    /// Salt's `file.check_managed`: a result and a comment.
    pub(crate) fn check_managed(&self) -> Done<Value> {
        let name = self.name();
        let (result, comment) = match self.changes()? {
            Err(comment) => (Some(false), comment),
            // As Salt has it, owner and mode do not matter there.
            Ok(mut changes) if name.starts_with("/tmp") => {
                changes.retain(|(key, _)| !matches!(key.text(), Some("user" | "group" | "mode")));
                Self::said(&name, &changes)
            }
            Ok(changes) => Self::said(&name, &changes),
        };
        Ok(Value::List(vec![result.into(), comment.into()]))
    }

    /// The result and the comment of these changes.
    fn said(name: &str, changes: &[(Value, Value)]) -> (Option<bool>, String) {
        if changes.is_empty() {
            return (Some(true), format!("The file {name} is in the correct state"));
        }
        let lines = changes.iter().map(|(key, value)| format!("{}: {}\n", key.to_text(), value.to_text()));
        (None, format!("The following values are set to be changed:\n{}", lines.collect::<String>()))
    }

    /// Salt's `file.manage_file`.
    pub(crate) fn manage_file(&self) -> Done<Value> {
        let name = self.name();
        let contents = self.get("contents");
        let contents = (contents != Value::None).then(|| contents.to_text().into_bytes());
        let source = text(&self.get("source"));
        let said = self.get("source_sum");
        let sum = match (said.get("hsum"), said.get("hash_type")) {
            (Some(hsum), Some(kind)) => Some(Sum { kind: kind.to_text(), hex: hsum.to_text().to_ascii_lowercase() }),
            _ => None,
        };
        let got = match text(&self.get("sfn")) {
            Some(sfn) => {
                let entry = changes::look_with_hash(&sfn, true)?.filter(|entry| entry.kind == Kind::Regular);
                let entry = entry.ok_or_else(|| format!("[Errno 2] No such file or directory: '{sfn}'"))?;
                let sum = sum.or_else(|| entry.sha256.clone().map(Sum::sha256));
                Some(Got { body: Body::Local { path: sfn, size: entry.size }, sum })
            }
            None if contents.is_none() => match self.asked(&self.get("source"), &Value::None).get() {
                Ok(got) => got,
                Err(trouble) => return Ok(Ret::bad(trouble.text()).value(&name)),
            },
            None => None,
        };
        let follow = self.flag("follow_symlinks", true);
        let entry = changes::look_with_hash(&name, follow)?;
        let backup = self.get("backup").to_text();
        let wish = file::Wish {
            checked: source.as_deref().is_some_and(|source| source::scheme(source) != "salt")
                && !self.flag("skip_verify", false),
            source,
            got,
            contents,
            permissions: self.permissions(),
            backup: matches!(backup.as_str(), "minion" | "both"),
            makedirs: self.flag("makedirs", false),
            dir_mode: mode::normal(&self.get("dir_mode")),
            shown: self.flag("show_changes", true),
            follow,
            new_file_diff: self.flag("new_file_diff", false),
            name: name.clone(),
        };
        if is_dry_run() {
            return self.check_managed_changes();
        }
        Ok(file::make(wish, entry.as_ref(), Ret::new())?.value(&name))
    }
}

/// Salt's `file.get_diff`. Files are of this host, of the master or on the web.
pub(crate) fn get_diff(files: [&str; 2], saltenv: &str, show_filenames: bool, show_changes: bool) -> Done<String> {
    let mut contents = Vec::new();
    let mut missing = Vec::new();
    for name in files {
        match body::load(&Place::of(name, saltenv)) {
            Ok(Some(content)) => contents.push(content),
            Ok(None) if source::scheme(name).is_empty() => {
                return Err(format!("Failed to read {name}: No such file or directory"));
            }
            Ok(None) => missing.push(format!("File {} not found", redacted(name))),
            Err(why) => missing.push(why),
        }
    }
    let [old, new] = &contents[..] else {
        return Err(format!("Failed to cache one or more files: {}", missing.join(", ")));
    };
    if old == new {
        return Ok(String::new());
    }
    if !show_changes {
        return Ok("<show_changes=False>".into());
    }
    if show_filenames && diff::is_text(old) && diff::is_text(new) {
        return Ok(diff::unified(&diff::lines(old), &diff::lines(new), files[0], files[1]));
    }
    Ok(diff::of_contents(old, new))
}
