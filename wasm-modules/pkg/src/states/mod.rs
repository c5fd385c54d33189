//! The states of the module. Results, comments and changes are Salt's.
//!
//! - [`installed`]: `installed`, with its arguments, [`asked`], and [`find`], which compares what is asked for with what there is
//! - [`aggregate`]: states that run as one
//! - [`latest`], [`removed`], [`uptodate`], [`held`], [`downloaded`]: the others

mod aggregate;
mod asked;
mod downloaded;
mod find;
mod held;
mod installed;
mod latest;
mod removed;
mod uptodate;

use brine_apt::arguments::Keywords;
use brine_guest::host::{changes, job};
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Result, Value};

use crate::available;
use crate::exports::states::Guest;
use crate::removal::Action;
use crate::{Data, Module};

/// The keywords of a state: those with parameters of their own, which count if they were given, and all others.
fn keywords<const N: usize>(given: [(&str, Option<Data>); N], others: &Data) -> Result<Keywords> {
    let mut keywords = Keywords::read(others)?;
    for (name, data) in given {
        if let Some(data) = data {
            keywords.set(name, data.value()?);
        }
    }
    Ok(keywords)
}

fn run(state: &str, name: &str, keywords: &Keywords) -> Result<StateResult> {
    match state {
        "installed" => installed::run(name, keywords),
        "latest" => latest::run(name, keywords),
        "removed" => removed::run(Action::Remove, name, keywords),
        "purged" => removed::run(Action::Purge, name, keywords),
        other => Ok(StateResult::bad(format!("pkg.{other} does not work with the watch requisite"))),
    }
}

/// The environment of the SLS file.
fn saltenv() -> String {
    job::state().map(|state| state.saltenv).filter(|env| !env.is_empty()).unwrap_or_else(|| "base".into())
}

/// Names and what they are joined with, in a sentence.
fn joined(names: &[impl AsRef<str>]) -> String {
    names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}

impl Guest for Module {
    fn installed(
        name: String,
        version: Option<Data>,
        refresh: Option<Data>,
        fromrepo: Option<Data>,
        skip_verify: Option<Data>,
        skip_suggestions: Option<Data>,
        pkgs: Option<Data>,
        sources: Option<Data>,
        allow_updates: Option<Data>,
        pkg_verify: Option<Data>,
        normalize: Option<Data>,
        ignore_epoch: Option<Data>,
        reinstall: Option<Data>,
        update_holds: Option<Data>,
        kwargs: Data,
    ) -> Result<StateResult> {
        let given = [
            ("version", version),
            ("refresh", refresh),
            ("fromrepo", fromrepo),
            ("skip_verify", skip_verify),
            ("skip_suggestions", skip_suggestions),
            ("pkgs", pkgs),
            ("sources", sources),
            ("allow_updates", allow_updates),
            ("pkg_verify", pkg_verify),
            ("normalize", normalize),
            ("ignore_epoch", ignore_epoch),
            ("reinstall", reinstall),
            ("update_holds", update_holds),
        ];
        run("installed", &name, &keywords(given, &kwargs)?)
    }

    fn latest(
        name: String,
        refresh: Option<Data>,
        fromrepo: Option<Data>,
        skip_verify: Option<Data>,
        pkgs: Option<Data>,
        watch_flags: Option<Data>,
        kwargs: Data,
    ) -> Result<StateResult> {
        _ = watch_flags;
        let given = [("refresh", refresh), ("fromrepo", fromrepo), ("skip_verify", skip_verify), ("pkgs", pkgs)];
        run("latest", &name, &keywords(given, &kwargs)?)
    }

    fn removed(
        name: String,
        version: Option<Data>,
        pkgs: Option<Data>,
        normalize: Option<Data>,
        ignore_epoch: Option<Data>,
        kwargs: Data,
    ) -> Result<StateResult> {
        let given = [("version", version), ("pkgs", pkgs), ("normalize", normalize), ("ignore_epoch", ignore_epoch)];
        run("removed", &name, &keywords(given, &kwargs)?)
    }

    fn purged(
        name: String,
        version: Option<Data>,
        pkgs: Option<Data>,
        normalize: Option<Data>,
        ignore_epoch: Option<Data>,
        kwargs: Data,
    ) -> Result<StateResult> {
        let given = [("version", version), ("pkgs", pkgs), ("normalize", normalize), ("ignore_epoch", ignore_epoch)];
        run("purged", &name, &keywords(given, &kwargs)?)
    }

    fn uptodate(_: String, refresh: Option<Data>, pkgs: Option<Data>, kwargs: Data) -> Result<StateResult> {
        uptodate::run(&keywords([("refresh", refresh), ("pkgs", pkgs)], &kwargs)?)
    }

    fn held(
        name: String,
        version: Option<Data>,
        pkgs: Option<Data>,
        replace: Option<Data>,
        kwargs: Data,
    ) -> Result<StateResult> {
        held::held(&name, &keywords([("version", version), ("pkgs", pkgs), ("replace", replace)], &kwargs)?)
    }

    fn unheld(
        name: String,
        version: Option<Data>,
        pkgs: Option<Data>,
        all: Option<Data>,
        kwargs: Data,
    ) -> Result<StateResult> {
        held::unheld(&name, &keywords([("version", version), ("pkgs", pkgs), ("all", all)], &kwargs)?)
    }

    fn downloaded(
        name: String,
        version: Option<Data>,
        pkgs: Option<Data>,
        fromrepo: Option<Data>,
        ignore_epoch: Option<Data>,
        kwargs: Data,
    ) -> Result<StateResult> {
        let given = [("version", version), ("pkgs", pkgs), ("fromrepo", fromrepo), ("ignore_epoch", ignore_epoch)];
        downloaded::run(&name, &keywords(given, &kwargs)?)
    }

    fn mod_watch(name: String, sfun: Option<String>, kwargs: Data) -> Result<StateResult> {
        run(&sfun.unwrap_or_default(), &name, &Keywords::read(&kwargs)?)
    }

    fn mod_init(low: Data) -> Result<bool> {
        let low = low.value()?;
        if !matches!(low.get("fun").and_then(Value::text), Some("installed" | "latest")) {
            return Ok(false);
        }
        if !is_dry_run() && changes::look(available::DUE, false, false)?.is_none() {
            crate::host::write(available::DUE, Vec::new(), Some(0o600))?;
        }
        Ok(true)
    }

    fn mod_aggregate(low: Data, chunks: Data) -> Result<Data> {
        let Value::List(chunks) = chunks.value()? else { return Err("chunks are a list".into()) };
        Ok(Value::List(aggregate::merge(low.value()?, chunks)).into())
    }
}
