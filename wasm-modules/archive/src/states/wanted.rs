//! The arguments of `archive.extracted`.

use brine_accounts::values::integer;
use brine_accounts::{groups, users};
use brine_guest::changes::{self, Kind};
use brine_guest::host::job;
use brine_guest::url::redacted;
use brine_guest::{Result, Value, path};

use super::call;
use crate::cache::{Place, is_file};
use crate::format::Format;
use crate::tar_options::{self, TarOptions};

/// What ends the state before it begins.
pub(super) struct Stop {
    pub result: bool,
    pub comment: String,
}

/// How it is to be.
pub(super) struct Wanted {
    /// The folder, with a slash at the end.
    pub name: String,
    pub source: String,
    /// The source without a password.
    pub shown: String,
    pub saltenv: String,
    pub format: Format,
    pub options: TarOptions,
    /// Whether options were said, by which Salt runs tar.
    pub by_tar: bool,
    pub source_hash: Value,
    pub source_hash_name: Value,
    pub source_hash_update: bool,
    pub skip_files_list_verify: bool,
    pub skip_verify: bool,
    pub use_etag: bool,
    pub password: Option<String>,
    pub force: bool,
    pub overwrite: bool,
    pub clean: bool,
    pub clean_parent: bool,
    pub user: Option<String>,
    /// User and group, -1 for any; none if neither was said.
    pub ids: Option<(i64, i64)>,
    pub if_missing: Option<String>,
    pub trim: Option<usize>,
    pub extract_perms: bool,
    pub enforce_toplevel: bool,
    pub enforce_ownership_on: Option<String>,
    pub keep_source: bool,
    pub warnings: Vec<String>,
}

type Outcome<T> = core::result::Result<T, Stop>;

fn bad<T>(comment: impl Into<String>) -> Result<Outcome<T>> {
    Ok(Err(Stop { result: false, comment: comment.into() }))
}

/// Returns from a function where what it needs ended the state.
macro_rules! ok {
    ($outcome:expr) => {
        match $outcome? {
            Ok(value) => value,
            Err(stop) => return Ok(Err(stop)),
        }
    };
}

impl Wanted {
    pub(super) fn read(name: String, source: Value, kwargs: &Value) -> Result<Outcome<Self>> {
        let get = |key: &str| kwargs.get(key).cloned().unwrap_or_default();
        let flag = |key: &str, default: bool| match kwargs.get(key) {
            None | Some(Value::None) => default,
            Some(value) => value.truthy(),
        };
        let text = |key: &str| Some(get(key)).filter(Value::truthy).map(|value| value.to_text());
        let mut warnings = Vec::new();
        if flag("skip_files_list_verify", false) && flag("skip_verify", false) {
            return bad("Only one of \"skip_files_list_verify\" and \"skip_verify\" can be set to True");
        }
        if kwargs.get("keep_source").is_some() && kwargs.get("keep").is_some() {
            warnings.push(
                "Both 'keep_source' and 'keep' were used. Since these both do the same thing, 'keep' was ignored."
                    .into(),
            );
        }
        let keep_source = flag("keep_source", flag("keep", true));
        if !name.starts_with('/') {
            return bad(format!("{name} is not an absolute path"));
        }
        let name = name.trim_end_matches('/').to_owned();
        if is_file(&name)? {
            return bad(format!("{name} exists and is not a directory"));
        }
        let name = format!("{name}/");
        let (if_missing, enforce_ownership_on) = ok!(paths(&name, text("if_missing"), text("enforce_ownership_on")));
        let ids = ok!(ids(&get("user"), &get("group")));
        if flag("source_hash_update", false) && !get("source_hash").truthy() {
            warnings
                .push("The 'source_hash_update' argument is ignored when 'source_hash' is not also specified.".into());
        }
        if text("signature").is_some() || text("source_hash_sig").is_some() {
            return bad("Cannot verify signatures because the gpg module was not loaded");
        }
        let saltenv = job::state().map(|state| state.saltenv).filter(|env| !env.is_empty());
        let saltenv = saltenv.unwrap_or_else(|| "base".into());
        let (source, source_hash) = ok!(chosen(source, get("source_hash"), &saltenv));
        let source = ok!(local(source, &saltenv));
        let format = ok!(format_of(&source, text("archive_format")));
        let options = text("options");
        let tar_options = ok!(options_of(format, options.as_deref(), kwargs));
        let trim = match get("trim_output") {
            Value::None | Value::Bool(false) => None,
            Value::Bool(true) => Some(100),
            other => match integer(&other).and_then(|trim| usize::try_from(trim).ok()) {
                Some(0) => None,
                Some(trim) => Some(trim),
                None => return bad("Invalid value for trim_output, must be True/False or an integer"),
            },
        };
        Ok(Ok(Self {
            shown: redacted(&source),
            by_tar: options.is_some(),
            options: tar_options,
            source_hash_name: get("source_hash_name"),
            source_hash_update: flag("source_hash_update", false),
            skip_files_list_verify: flag("skip_files_list_verify", false),
            skip_verify: flag("skip_verify", false),
            use_etag: flag("use_etag", false),
            password: text("password"),
            force: flag("force", false),
            overwrite: flag("overwrite", false),
            clean: flag("clean", false),
            clean_parent: flag("clean_parent", false),
            user: text("user"),
            extract_perms: flag("extract_perms", true),
            enforce_toplevel: flag("enforce_toplevel", true),
            name,
            source,
            saltenv,
            format,
            source_hash,
            ids,
            if_missing,
            trim,
            enforce_ownership_on,
            keep_source,
            warnings,
        }))
    }
}

/// `if_missing` and `enforce_ownership_on`.
fn paths(
    name: &str,
    if_missing: Option<String>,
    enforce: Option<String>,
) -> Result<Outcome<(Option<String>, Option<String>)>> {
    if if_missing.as_ref().is_some_and(|path| !path.starts_with('/')) {
        return bad("Value for 'if_missing' is not an absolute path");
    }
    if let Some(path) = &enforce {
        if !path.starts_with('/') {
            return bad("Value for 'enforce_ownership_on' is not an absolute path");
        }
        if path::below(&path::normpath(path), name).is_none() {
            return bad(format!("Value for 'enforce_ownership_on' must be within {name}"));
        }
    }
    if let Some(path) = &if_missing
        && changes::look(path, true)?.is_some()
    {
        return Ok(Err(Stop { result: true, comment: format!("Path {path} exists") }));
    }
    Ok(Ok((if_missing, enforce)))
}

/// The numbers of a user and a group.
fn ids(user: &Value, group: &Value) -> Result<Outcome<Option<(i64, i64)>>> {
    if !user.truthy() && !group.truthy() {
        return Ok(Ok(None));
    }
    let uid = match user {
        user if !user.truthy() => -1,
        Value::Int(uid) => *uid,
        user => match users::find(&user.to_text(), None)? {
            Some(user) => user.uid,
            None => return bad(format!("User {} does not exist", user.to_text())),
        },
    };
    let gid = match group.truthy().then(|| groups::gid(group)).transpose()? {
        None => -1,
        Some(Some(gid)) => gid,
        Some(None) => return bad(format!("Group {} does not exist", group.to_text())),
    };
    Ok(Ok(Some((uid, gid))))
}

/// The source, of several the first that is there, and its hash.
fn chosen(source: Value, source_hash: Value, saltenv: &str) -> Result<Outcome<(String, Value)>> {
    let (source, source_hash) = match source {
        Value::List(_) => {
            let asked = [("source", source), ("source_hash", source_hash), ("saltenv", saltenv.into())];
            match call("file.source_list", &asked) {
                Ok(Value::List(mut both)) if both.len() == 2 => {
                    let hash = both.pop().unwrap_or_default();
                    (both.pop().unwrap_or_default(), hash)
                }
                Ok(other) => return bad(format!("Invalid source \"{}\"", other.to_text())),
                Err(why) => return bad(why),
            }
        }
        source => (source, source_hash),
    };
    match source.truthy() {
        true => Ok(Ok((source.to_text(), source_hash))),
        false => bad(format!("Invalid source \"{}\"", source.to_text())),
    }
}

/// The path of a source of this host, with its links resolved.
fn local(source: String, saltenv: &str) -> Result<Outcome<String>> {
    let Place::Local(path) = Place::of(&source, saltenv) else { return Ok(Ok(source)) };
    if !path.starts_with('/') {
        return bad(format!("Source file '{path}' does not exist"));
    }
    let path = changes::realpath(&path)?;
    match changes::look(&path, true)?.map(|entry| entry.kind) {
        Some(Kind::Regular) => Ok(Ok(path)),
        _ => bad(format!("Source file '{path}' does not exist")),
    }
}

fn format_of(source: &str, said: Option<String>) -> Result<Outcome<Format>> {
    let Some(said) = said else {
        let name = source.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        return match Format::guess(name) {
            Some(format) => Ok(Ok(format)),
            None => bad(format!(
                "Could not guess archive_format from the value of the 'source' argument. Please set this archive_format to \
                 one of the following: {}",
                Format::NAMES
            )),
        };
    };
    match Format::named(&said.to_lowercase()) {
        Some(format) => Ok(Ok(format)),
        None => bad(format!(
            "Invalid archive_format '{}'. Either set it to a supported value ({}) or remove this argument and the archive \
             format will be guessed based on file extension.",
            said.to_lowercase(),
            Format::NAMES
        )),
    }
}

fn options_of(format: Format, options: Option<&str>, kwargs: &Value) -> Result<Outcome<TarOptions>> {
    let said = kwargs.get("use_cmd_unzip").filter(|value| **value != Value::None).map(Value::truthy);
    let has_password = kwargs.get("password").is_some_and(Value::truthy);
    match format {
        Format::Zip if options.is_some() && said == Some(false) => bad(
            "'use_cmd_unzip' cannot be set to False if CLI options are being specified (via the 'options' argument). Either \
             remove 'use_cmd_unzip', or set it to True.",
        ),
        Format::Zip if options.is_some() || said == Some(true) => {
            bad("archive.cmd_unzip function not available, unzip might not be installed on minion")
        }
        Format::Zip => Ok(Ok(TarOptions::default())),
        _ if has_password => bad("The 'password' argument is only supported for zip archives"),
        Format::Rar => bad("archive.unrar function not available, rar/unrar might not be installed on minion"),
        Format::Tar => match tar_options::read(options.unwrap_or_default()) {
            Ok(options) => Ok(Ok(options)),
            Err(why) => bad(why),
        },
    }
}
