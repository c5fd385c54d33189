//! Runs pip: which one, as whom, and what it lists.

use std::cell::OnceCell;

use brine_guest::changes::{self, Kind};
use brine_guest::path::{basename, join, normpath};
use brine_guest::program::{Output, Program};
use brine_guest::states::is_dry_run;
use brine_guest::{Result, Value};

use crate::requirement::normalized;

/// The Python whose pip it is where no other one is said.
const PYTHON: &str = "/usr/bin/python3";
const QUIET: &str = "--disable-pip-version-check";

/// Names with versions, in pip's order.
pub(crate) type Packages = Vec<(String, String)>;

/// A pip of this host.
#[derive(Debug)]
pub(crate) struct Pip {
    user: Option<String>,
    cwd: Option<String>,
    env: Vec<(String, String)>,
    command: Vec<String>,
    version: OnceCell<String>,
}

impl Pip {
    /// Finds pip in a virtual environment, or by the path of a Python or of pip.
    pub(crate) fn new(
        bin_env: Option<String>,
        user: Option<String>,
        cwd: Option<String>,
        mut env: Vec<(String, String)>,
    ) -> Result<Self> {
        let bin_env = bin_env.filter(|bin_env| !bin_env.is_empty());
        let command = match &bin_env {
            None => of_python(PYTHON),
            Some(bin_env) => found(bin_env)?,
        };
        if let Some(folder) = bin_env.as_ref().filter(|folder| is_directory(folder)) {
            env.push(("VIRTUAL_ENV".into(), folder.clone()));
        }
        Ok(Self { user, cwd, env, command, version: OnceCell::new() })
    }

    /// Runs it with these arguments; what only looks runs as a probe in a dry run, because Python runs what is installed.
    fn output(&self, arguments: &[String], looks: bool) -> Result<Output> {
        let mut program = Program::new(self.command.iter().chain(arguments).cloned());
        for (name, value) in &self.env {
            program = program.env(name, value.as_str());
        }
        if let Some(user) = &self.user {
            program = program.run_as(user.as_str());
        }
        if let Some(cwd) = &self.cwd {
            program = program.cwd(cwd.as_str());
        }
        if looks && is_dry_run() { program.probe() } else { program.run() }
    }

    /// Changes packages.
    pub(crate) fn run(&self, arguments: &[String]) -> Result<Output> {
        self.output(arguments, false)
    }

    fn look(&self, arguments: &[&str]) -> Result<Output> {
        self.output(&arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), true)
    }

    pub(crate) fn version(&self) -> Result<String> {
        if let Some(version) = self.version.get() {
            return Ok(version.clone());
        }
        let done = self.look(&["--version"])?;
        if !done.succeeded() {
            return Err("Could not find a `pip` binary".into());
        }
        let version =
            done.stdout.strip_prefix("pip ").and_then(|rest| rest.split_whitespace().next()).unwrap_or("None");
        Ok(self.version.get_or_init(|| version.to_owned()).clone())
    }

    pub(crate) fn freeze(&self) -> Result<Vec<String>> {
        let done = self.look(&["freeze", "--all", QUIET])?;
        if done.succeeded() { Ok(done.stdout.lines().map(str::to_owned).collect()) } else { Err(done.stderr) }
    }

    /// What is installed, by names that are normal; with `prefix` those that begin with it.
    pub(crate) fn list(&self, prefix: Option<&str>) -> Result<Packages> {
        let done = self.look(&["list", "--format=json", QUIET])?;
        let prefix = prefix.filter(|prefix| !prefix.is_empty()).map(normalized);
        let named = rows(&done, ["name", "version"])?.into_iter().map(|[name, version]| (normalized(&name), version));
        Ok(named.filter(|(name, _)| prefix.as_ref().is_none_or(|prefix| name.starts_with(prefix.as_str()))).collect())
    }

    /// What has a newer version, and which one.
    pub(crate) fn upgrades(&self) -> Result<Packages> {
        let done = self.look(&["list", "--outdated", QUIET, "--format=json"])?;
        let rows = rows(&done, ["name", "latest_version", "latest_filetype"])?;
        Ok(rows.into_iter().map(|[name, version, kind]| (name, format!("{version} [{kind}]"))).collect())
    }

    /// The versions that there are of a package, without those of the kinds that are left out; none if there are none.
    pub(crate) fn available(&self, package: &str, without: &[&str], more: &[String]) -> Result<Vec<String>> {
        let mut arguments = vec![QUIET.to_owned(), "index".into(), "versions".into(), package.into()];
        arguments.extend(more.iter().cloned());
        let done = self.output(&arguments, true)?;
        let listed = done.stdout.lines().find_map(|line| line.trim_start().strip_prefix("Available versions: "));
        let mut versions: Vec<String> = listed
            .into_iter()
            .flat_map(|listed| listed.split(", "))
            .filter(|version| !version.is_empty() && !without.iter().any(|kind| version.contains(kind)))
            .map(str::to_owned)
            .collect();
        versions.sort_by_cached_key(|version| version.parse::<pep440_rs::Version>().ok());
        Ok(versions)
    }

    /// Installs all newer versions. Returns `changes`, `result` and `comment`.
    pub(crate) fn upgrade(&self) -> Result<(Value, bool, String)> {
        let old = self.list(None)?;
        let (mut good, mut comment) = (true, String::new());
        for (package, _) in self.upgrades()? {
            let words = ["install", "-U", QUIET, &package].map(str::to_owned);
            let done = self.run(&words)?;
            good &= done.succeeded();
            comment.push_str(&done.stderr);
        }
        Ok((changed(&old, &self.list(None)?), good, comment))
    }

    /// What functions return of a run, as `cmd.run_all` does.
    pub(crate) fn all(done: &Output) -> Value {
        Value::dict([
            ("pid", i64::from(done.pid).into()),
            ("retcode", done.code.into()),
            ("stdout", done.stdout.as_str().into()),
            ("stderr", done.stderr.as_str().into()),
        ])
    }

    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(crate) fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }
}

fn is_directory(path: &str) -> bool {
    changes::is(path, Kind::Directory).unwrap_or(false)
}

fn is_program(path: &str) -> bool {
    let entry = changes::look(path, true).ok().flatten();
    entry.is_some_and(|entry| entry.kind == Kind::Regular && entry.mode & 0o111 != 0)
}

fn of_python(path: &str) -> Vec<String> {
    vec![normpath(path), "-m".into(), "pip".into()]
}

/// The command of pip for a virtual environment or a program.
fn found(bin_env: &str) -> Result<Vec<String>> {
    if is_directory(bin_env) {
        let usual = ["python", "bin/python", "Scripts/python"].map(|tail| join(bin_env, tail));
        if let Some(path) = usual.iter().find(|path| is_program(path)) {
            return Ok(of_python(path));
        }
        let bin = join(bin_env, "bin");
        let mut names: Vec<String> = match is_directory(&bin) {
            true => changes::list(&bin)?.into_iter().map(|(name, _)| name).filter(|name| is_python(name)).collect(),
            false => Vec::new(),
        };
        names.sort_by_key(|name| (name != "python3", name.clone()));
        let path = names.iter().map(|name| join(&bin, name)).find(|path| is_program(path));
        return path
            .map(|path| of_python(&path))
            .ok_or_else(|| format!("Could not find a pip binary in virtualenv {bin_env}"));
    }
    match is_program(bin_env) {
        true if basename(bin_env).contains("python") => Ok(of_python(bin_env)),
        true => Ok(vec![normpath(bin_env)]),
        false => Err(format!("Access denied to {bin_env}, could not find a pip binary")),
    }
}

/// `python`, `python3`, `python3.11`
fn is_python(name: &str) -> bool {
    let Some(version) = name.strip_prefix("python") else { return false };
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    match version.split_once('.') {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => version.is_empty() || is_number(version),
    }
}

/// Fields of what pip lists as JSON.
fn rows<const N: usize>(done: &Output, fields: [&str; N]) -> Result<Vec<[String; N]>> {
    if !done.succeeded() {
        return Err(done.stderr.clone());
    }
    let listed: Vec<serde_json::Value> = serde_json::from_str(&done.stdout).map_err(|_| "Invalid JSON")?;
    let row = |row: serde_json::Value| fields.map(|field| row[field].as_str().unwrap_or_default().to_owned());
    Ok(listed.into_iter().map(row).collect())
}

/// What is different: a dict of `old` and `new`.
fn changed(old: &Packages, new: &Packages) -> Value {
    let of = |packages: &Packages, name: &str| {
        packages.iter().find(|(known, _)| known == name).map(|(_, version)| version.clone()).unwrap_or_default()
    };
    let mut found = Vec::new();
    for (name, _) in new.iter().chain(old.iter().filter(|(name, _)| !new.iter().any(|(known, _)| known == name))) {
        let (before, after) = (of(old, name), of(new, name));
        if before != after {
            found.push((name.as_str(), Value::dict([("old", before.into()), ("new", after.into())])));
        }
    }
    Value::dict(found)
}

/// Packages as a dict.
pub(crate) fn value(packages: &Packages) -> Value {
    Value::dict(packages.iter().map(|(name, version)| (name.as_str(), version.as_str().into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons_are_known_by_name() {
        for name in ["python", "python3", "python3.11"] {
            assert!(is_python(name), "{name}");
        }
        for name in ["python3-config", "python.", "python3.", "pythonw", "pip"] {
            assert!(!is_python(name), "{name}");
        }
    }

    #[test]
    fn changes_name_both_versions() {
        let packages = |list: &[(&str, &str)]| -> Packages {
            list.iter().map(|(name, version)| ((*name).into(), (*version).into())).collect()
        };
        let (old, new) =
            (packages(&[("a", "1"), ("b", "1"), ("c", "1")]), packages(&[("a", "1"), ("b", "2"), ("d", "1")]));
        let of = |old: &str, new: &str| Value::dict([("old", old.into()), ("new", new.into())]);
        assert_eq!(changed(&old, &new), Value::dict([("b", of("1", "2")), ("d", of("", "1")), ("c", of("1", ""))]));
    }
}
