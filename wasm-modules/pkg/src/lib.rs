//! The module `pkg`: packages of Debian and its derivatives, by the programs of dpkg and apt. The functions and their documentation
//! are in `wit/world.wit`; what they read and compare is in the crate `brine-apt`.
//!
//! - [`host`]: programs, files, grains
//! - [`installed`], [`available`], [`selections`], [`info`], [`downloads`]: what there is
//! - [`targets`], [`install`], [`removal`]: installing and removing
//! - [`repos`], [`mod_repo`], [`keys`]: where packages come from
//! - [`states`]: the states · [`beacon`]: the beacon

wit_bindgen::generate!({
    world: "pkg",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/process@1.0.0": brine_guest::host::process,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/http@1.0.0": brine_guest::host::http,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
    },
    generate_all,
});

mod available;
mod beacon;
mod downloads;
mod host;
mod info;
mod install;
mod installed;
mod keys;
mod mod_repo;
mod removal;
mod repos;
mod selections;
mod states;
mod targets;

use std::cmp::Ordering;

use brine_apt::arguments::{Keywords, is_true, text, texts, value};
use brine_apt::version;
use brine_guest::{Result, Value};

use install::Install;
use installed::Listing;
use removal::Action;

struct Module;

/// An argument as a truth value.
fn flag(data: Option<Data>, default: bool) -> Result<bool> {
    Ok(data.map(|data| data.value()).transpose()?.map_or(default, |value| is_true(&value)))
}

/// An argument as text, none if it is empty.
fn some_text(data: Option<Data>) -> Result<Option<String>> {
    Ok(text(data)?.filter(|text| !text.is_empty()))
}

fn saltenv(saltenv: Option<String>) -> String {
    saltenv.filter(|env| !env.is_empty()).unwrap_or_else(|| "base".into())
}

impl Guest for Module {
    fn version(args: Vec<Data>, kwargs: Data) -> Result<Data> {
        installed::version(&texts(&args)?, &Keywords::read(&kwargs)?).map(Into::into)
    }

    fn list_pkgs(
        versions_as_list: Option<Data>,
        removed: Option<Data>,
        purge_desired: Option<Data>,
        _: Data,
    ) -> Result<Data> {
        let listing = Listing {
            versions_as_list: flag(versions_as_list, false)?,
            removed: flag(removed, false)?,
            purge_desired: flag(purge_desired, false)?,
        };
        installed::list_pkgs(&listing).map(Into::into)
    }

    fn latest_version(args: Vec<Data>, kwargs: Data) -> Result<Data> {
        available::latest_version(&texts(&args)?, &Keywords::read(&kwargs)?).map(Into::into)
    }

    fn available_version(args: Vec<Data>, kwargs: Data) -> Result<Data> {
        Self::latest_version(args, kwargs)
    }

    fn upgrade_available(name: String, _: Data) -> Result<bool> {
        Ok(available::latest_version(&[name], &Keywords::default())? != Value::from(""))
    }

    fn list_upgrades(refresh: Option<Data>, dist_upgrade: Option<Data>, kwargs: Data) -> Result<Data> {
        let (refresh, dist_upgrade) = (flag(refresh, true)?, flag(dist_upgrade, true)?);
        let upgrades = available::list_upgrades(refresh, dist_upgrade, &Keywords::read(&kwargs)?)?;
        Ok(Value::Dict(upgrades.into_iter().map(|(name, version)| (name.into(), version.into())).collect()).into())
    }

    fn refresh_db(
        cache_valid_time: Option<Data>,
        failhard: Option<Data>,
        timeout: Option<Data>,
        _: Data,
    ) -> Result<Data> {
        let timeout = match value(timeout)? {
            Value::Int(seconds) if seconds > 0 => Some(seconds.unsigned_abs().saturating_mul(1000)),
            _ => None,
        };
        available::refresh_db(&value(cache_valid_time)?, flag(failhard, false)?, timeout).map(Into::into)
    }

    fn install(
        name: Option<String>,
        refresh: Option<Data>,
        fromrepo: Option<Data>,
        skip_verify: Option<Data>,
        debconf: Option<Data>,
        pkgs: Option<Data>,
        sources: Option<Data>,
        reinstall: Option<Data>,
        downloadonly: Option<Data>,
        ignore_epoch: Option<Data>,
        normalize: Option<Data>,
        kwargs: Data,
    ) -> Result<Data> {
        let keywords = Keywords::read(&kwargs)?;
        let repo = keywords.text("repo").filter(|repo| !repo.is_empty());
        let install = Install {
            name,
            version: keywords.text("version").filter(|version| !version.is_empty()),
            pkgs: value(pkgs)?,
            sources: value(sources)?,
            refresh: flag(refresh, false)?,
            fromrepo: some_text(fromrepo)?.or(repo),
            skip_verify: value(skip_verify)?.truthy(),
            debconf: some_text(debconf)?,
            reinstall: value(reinstall)?.truthy(),
            downloadonly: value(downloadonly)?.truthy(),
            ignore_epoch: value(ignore_epoch)?.truthy(),
            normalize: normalize.map(|data| data.value()).transpose()?.is_none_or(|value| value.truthy()),
            keywords,
        };
        Ok(install.run().map_err(String::from)?.into())
    }

    fn remove(name: Option<String>, pkgs: Option<Data>, _: Data) -> Result<Data> {
        Ok(removal::uninstall(Action::Remove, name.as_deref(), &value(pkgs)?).map_err(String::from)?.into())
    }

    fn purge(name: Option<String>, pkgs: Option<Data>, _: Data) -> Result<Data> {
        Ok(removal::uninstall(Action::Purge, name.as_deref(), &value(pkgs)?).map_err(String::from)?.into())
    }

    fn autoremove(list_only: Option<Data>, purge: Option<Data>) -> Result<Data> {
        removal::autoremove(value(list_only)?.truthy(), value(purge)?.truthy()).map(Into::into)
    }

    fn upgrade(refresh: Option<Data>, dist_upgrade: Option<Data>, kwargs: Data) -> Result<Data> {
        let (refresh, dist_upgrade) = (flag(refresh, true)?, value(dist_upgrade)?.truthy());
        Ok(available::upgrade(refresh, dist_upgrade, &Keywords::read(&kwargs)?).map_err(String::from)?.into())
    }

    fn hold(name: Option<String>, pkgs: Option<Data>, sources: Option<Data>, _: Data) -> Result<Data> {
        let names = selections::named(name.as_deref(), &value(pkgs)?, &value(sources)?)?;
        Ok(selections::to_value(&selections::hold(&names)?).into())
    }

    fn unhold(name: Option<String>, pkgs: Option<Data>, sources: Option<Data>, _: Data) -> Result<Data> {
        let names = selections::named(name.as_deref(), &value(pkgs)?, &value(sources)?)?;
        Ok(selections::to_value(&selections::unhold(&names)?).into())
    }

    fn get_selections(pattern: Option<String>, state: Option<String>) -> Result<Data> {
        selections::get(pattern.as_deref(), state.as_deref()).map(Into::into)
    }

    fn set_selections(
        path: Option<String>,
        selection: Option<Data>,
        clear: Option<Data>,
        env: Option<String>,
    ) -> Result<Data> {
        let (path, selection) = (path.filter(|path| !path.is_empty()), value(selection)?);
        match (&path, selection.truthy()) {
            (None, false) => return Ok(Value::Dict(Vec::new()).into()),
            (Some(_), true) => {
                return Err(
                    "The 'selection' and 'path' arguments to pkg.set_selections are mutually exclusive, and cannot be \
                            specified together"
                        .into(),
                );
            }
            _ => (),
        }
        let asked = selections::asked(path.as_deref(), &selection, &saltenv(env))?;
        selections::set(&asked, value(clear)?.truthy()).map(Into::into)
    }

    fn list_repos(_: Data) -> Result<Data> {
        repos::list().map(Into::into)
    }

    fn get_repo(repo: String, _: Data) -> Result<Data> {
        repos::get(&repo).map(Into::into)
    }

    fn mod_repo(repo: String, env: Option<String>, aptkey: Option<Data>, kwargs: Data) -> Result<Data> {
        let aptkey = aptkey.map(|data| data.value()).transpose()?.is_none_or(|value| value.truthy());
        mod_repo::mod_repo(&repo, &saltenv(env), aptkey, Keywords::read(&kwargs)?).map(Into::into)
    }

    fn del_repo(repo: String, _: Data) -> Result<String> {
        repos::delete(&repo)
    }

    fn get_repo_keys(aptkey: Option<Data>, keydir: Option<String>) -> Result<Data> {
        keys::get(flag(aptkey, true)?, keydir.as_deref().filter(|dir| !dir.is_empty())).map(Into::into)
    }

    fn add_repo_key(
        path: Option<String>,
        text: Option<String>,
        keyserver: Option<String>,
        keyid: Option<Data>,
        env: Option<String>,
        aptkey: Option<Data>,
        keydir: Option<String>,
        keyfile: Option<String>,
    ) -> Result<bool> {
        let (keyid, env) = (some_text(keyid)?, saltenv(env));
        let some = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (path, text, keyserver, folder, file) =
            (some(&path), some(&text), some(&keyserver), some(&keydir), some(&keyfile));
        keys::add(&keys::Added {
            path: path.as_deref(),
            text: text.as_deref(),
            keyserver: keyserver.as_deref(),
            keyid: keyid.as_deref(),
            saltenv: &env,
            aptkey: flag(aptkey, true)?,
            folder: folder.as_deref(),
            file: file.as_deref(),
        })
    }

    fn del_repo_key(_: Option<String>, aptkey: Option<Data>, keydir: Option<String>, kwargs: Data) -> Result<Data> {
        let keydir = keydir.filter(|dir| !dir.is_empty());
        keys::delete(flag(aptkey, true)?, keydir.as_deref(), &Keywords::read(&kwargs)?).map(Into::into)
    }

    fn file_list(args: Vec<Data>, _: Data) -> Result<Data> {
        info::file_list(&texts(&args)?).map(Into::into)
    }

    fn file_dict(args: Vec<Data>, _: Data) -> Result<Data> {
        info::file_dict(&texts(&args)?).map(Into::into)
    }

    fn which(path: String) -> Result<Data> {
        info::which(&path).map(Into::into)
    }

    fn owner(args: Vec<Data>, _: Data) -> Result<Data> {
        info::owner(&texts(&args)?).map(Into::into)
    }

    fn show(args: Vec<Data>, kwargs: Data) -> Result<Data> {
        info::show(&texts(&args)?, &Keywords::read(&kwargs)?).map(Into::into)
    }

    fn info_installed(args: Vec<Data>, kwargs: Data) -> Result<Data> {
        info::info_installed(&texts(&args)?, &Keywords::read(&kwargs)?).map(Into::into)
    }

    fn list_repo_pkgs(args: Vec<Data>, _: Data) -> Result<Data> {
        let versions = available::repo_versions(&texts(&args)?)?;
        Ok(Value::Dict(versions.into_iter().map(|(name, versions)| (name.into(), versions.into())).collect()).into())
    }

    fn list_downloaded(_: Option<String>, _: Data) -> Result<Data> {
        downloads::list().map(Into::into)
    }

    fn version_cmp(pkg1: Data, pkg2: Data, ignore_epoch: Option<Data>, _: Data) -> Result<Option<i32>> {
        let (a, b) = (pkg1.value()?.to_text(), pkg2.value()?.to_text());
        let order = match value(ignore_epoch)?.truthy() {
            true => version::compare(version::without_epoch(&a), version::without_epoch(&b)),
            false => version::compare(&a, &b),
        };
        Ok(order.map(|order| match order {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }))
    }

    fn normalize_name(name: String) -> String {
        host::architecture().normalized(&name)
    }

    fn parse_arch(name: String) -> Data {
        let (short, architecture) = match name.rsplit_once(':') {
            Some((short, architecture)) => (short.to_owned(), Some(architecture.to_owned())),
            None => (name, None),
        };
        Value::dict([("name", short.into()), ("arch", architecture.into())]).into()
    }
}

export!(Module);
