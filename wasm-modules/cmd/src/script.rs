//! Scripts: a file of the master or of this host is put beside others for a moment, runs, and goes.

use brine_guest::Value;
use brine_guest::host::changes::{self, Content, MasterFile, Owner, PutOptions};
use brine_guest::host::{files, process};

use crate::options::Call;
use crate::wasi::random::random::get_random_u64;
use crate::{run, template, words};

/// Where a script is while it runs.
const FOLDER: &str = "/tmp";
/// Bytes that are read at once.
const PART: u32 = 1 << 20;
/// Upper bound on the bytes of a template: what people write.
const MAX_TEMPLATE: usize = 4 << 20;

/// A script to run.
pub(crate) struct Wanted<'a> {
    /// `salt://…`, which may end with `?saltenv=…`, or a path of this host.
    pub source: &'a str,
    pub saltenv: String,
    /// A line that is split into words, or a list.
    pub args: Option<Value>,
    pub template: Option<String>,
    /// What the template sees beside the usual; a dict.
    pub context: Value,
}

/// What became of a script.
pub(crate) enum Done {
    Ran(run::Done),
    /// The master has no such file.
    Missing,
}

/// Salt's result of a script that could not be had.
pub(crate) fn missing() -> Value {
    Value::dict([
        ("pid", Value::Int(0)),
        ("retcode", Value::Int(1)),
        ("stdout", "".into()),
        ("stderr", "".into()),
        ("cache_error", true.into()),
    ])
}

/// Runs a script with the options of `call`, whose command counts for nothing.
///
/// # Errors
/// When it cannot be written or run.
pub(crate) fn run(wanted: &Wanted<'_>, call: Call) -> Result<Done, String> {
    let Some((path, content)) = content(wanted)? else { return Ok(Done::Missing) };
    let args = match &wanted.args {
        None => Vec::new(),
        Some(Value::List(args)) => args.iter().map(Value::to_text).collect(),
        Some(line) => words::split(&line.to_text()).map_err(run::unsplit)?,
    };
    let own = format!("{FOLDER}/__salt.tmp.{:016x}{}", get_random_u64(), extension(&path));
    let shell = match args.is_empty() {
        true => process::shell(call.shell.as_deref())?,
        false => None,
    };
    let cmd = match shell {
        // As in Salt, a shell runs it, so that it needs no `#!`.
        Some(shell) => vec![shell, "-c".into(), own.clone()],
        None => std::iter::once(own.clone()).chain(args).collect(),
    };
    // Refused here, before anything is written.
    process::which(&cmd[0])?;
    let owner = Owner { user: call.runas.clone(), group: None };
    let options = PutOptions { owner, mode: Some(0o500), backup: false, follow: false, expect: Some(String::new()) };
    changes::put(&own, &content, &options)?;
    let done = run::run(&Call { cmd: cmd.into(), ..call }, false);
    changes::remove(&own, false)?;
    Ok(Done::Ran(done?))
}

/// The script's path without the environment, and its content; none if there is no such file.
fn content(wanted: &Wanted<'_>) -> Result<Option<(String, Content)>, String> {
    let source = wanted.source;
    let master = source.strip_prefix("salt://");
    let (path, saltenv) = match master.and_then(|path| path.split_once("?saltenv=")) {
        Some((path, saltenv)) => (path, saltenv),
        None => (master.unwrap_or(source), wanted.saltenv.as_str()),
    };
    if master.is_some() {
        if let Some(template) = &wanted.template {
            let text = rendered(wanted, path, saltenv, template)?;
            return Ok(text.map(|text| (path.to_owned(), Content::Bytes(text.into_bytes()))));
        }
        let found = files::hash(path, saltenv)?.is_some();
        let file = MasterFile { path: path.into(), saltenv: saltenv.into(), sha256: None };
        return Ok(found.then(|| (path.to_owned(), Content::Master(file))));
    }
    if wanted.template.is_some() {
        return Err(format!("{source}: a template comes from salt://"));
    }
    let path = source.strip_prefix("file://").unwrap_or(source);
    if !path.starts_with('/') {
        return Err(format!("{source}: a script comes from salt:// or is a path of this host"));
    }
    let found = changes::look(path, true, false)?.is_some();
    Ok(found.then(|| (path.to_owned(), Content::File(path.into()))))
}

/// The master's file, rendered by the module `file`: as it renders what it manages.
fn rendered(wanted: &Wanted<'_>, path: &str, saltenv: &str, engine: &str) -> Result<Option<String>, String> {
    let Some(text) = text(path, saltenv)? else { return Ok(None) };
    template::render(text, engine, saltenv, wanted.context.clone()).map(Some)
}

/// A text file of the master.
fn text(path: &str, saltenv: &str) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    loop {
        let Some(part) = files::read(path, saltenv, bytes.len() as u64, PART)? else { return Ok(None) };
        if part.is_empty() {
            return String::from_utf8(bytes).map(Some).map_err(|_| format!("salt://{path} is no text"));
        }
        bytes.extend(part);
        if bytes.len() > MAX_TEMPLATE {
            return Err(format!("salt://{path} has more than {MAX_TEMPLATE} bytes, which is the most of a template"));
        }
    }
}

/// The end of a file's name from its last dot, which says to some shells what it is.
fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let start = name.len() - name.trim_start_matches('.').len();
    name[start..].rfind('.').map_or("", |at| &name[start + at..])
}

#[cfg(test)]
mod tests {
    use super::extension;

    #[test]
    fn the_extension_stays() {
        for (path, expect) in [
            ("a/b.sh", ".sh"),
            ("a.d/b", ""),
            ("x", ""),
            (".bashrc", ""),
            ("..a.py", ".py"),
            ("a.tar.gz", ".gz"),
            ("a.", "."),
        ] {
            assert_eq!(extension(path), expect, "{path}");
        }
    }
}
