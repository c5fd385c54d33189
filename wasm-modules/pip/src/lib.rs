//! The module `pip`: packages of Python, by pip. The functions, the states and their documentation are in `wit/world.wit`.
//!
//! - [`pip`]: runs pip · [`install`]: command lines · [`files`]: files of requirements
//! - [`requirement`]: what is asked for · [`arguments`]: how arguments are read
//! - [`states`]: the states

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "pip",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod arguments;
mod files;
mod install;
mod pip;
mod requirement;
mod states;

use brine_guest::Value;

use arguments::{flag, full, texts, variables};
use files::Files;
use install::Given;
use pip::Pip;

struct Module;

impl Guest for Module {
    fn version(bin_env: Option<Data>, cwd: Option<Data>, user: Option<Data>) -> Result<String, String> {
        pip(bin_env, user, cwd, None)?.version()
    }

    fn list(
        prefix: Option<Data>,
        bin_env: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
        env_vars: Option<Data>,
    ) -> Result<Data, String> {
        let packages = pip(bin_env, user, cwd, env_vars)?.list(full(prefix.as_ref())?.as_deref())?;
        Ok(pip::value(&packages).into())
    }

    fn list_freeze_parse(
        prefix: Option<Data>,
        bin_env: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
        env_vars: Option<Data>,
    ) -> Result<Data, String> {
        Self::list(prefix, bin_env, user, cwd, env_vars)
    }

    fn freeze(
        bin_env: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
        _use_vt: Option<Data>,
        env_vars: Option<Data>,
    ) -> Result<Vec<String>, String> {
        pip(bin_env, user, cwd, env_vars)?.freeze()
    }

    fn list_upgrades(bin_env: Option<Data>, user: Option<Data>, cwd: Option<Data>) -> Result<Data, String> {
        Ok(pip::value(&pip(bin_env, user, cwd, None)?.upgrades()?).into())
    }

    fn list_all_versions(
        pkg: String,
        bin_env: Option<Data>,
        include_alpha: Option<Data>,
        include_beta: Option<Data>,
        include_rc: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
        index_url: Option<Data>,
        extra_index_url: Option<Data>,
    ) -> Result<Data, String> {
        let mut without = Vec::new();
        for (letters, included) in [("a", include_alpha), ("b", include_beta), ("rc", include_rc)] {
            without.extend((!flag(included.as_ref(), false)?).then_some(letters));
        }
        let more = indexes(index_url.as_ref(), extra_index_url.as_ref())?;
        let versions = pip(bin_env, user, cwd, None)?.available(&pkg, &without, &more)?;
        Ok(if versions.is_empty() { Value::None } else { versions.into() }.into())
    }

    fn is_installed(
        pkgname: String,
        bin_env: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
    ) -> Result<bool, String> {
        let packages = pip(bin_env, user, cwd, None)?.list(Some(&pkgname))?;
        Ok(packages.iter().any(|(name, _)| *name == pkgname.to_lowercase()))
    }

    fn upgrade_available(
        pkg: String,
        bin_env: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
    ) -> Result<bool, String> {
        Ok(pip(bin_env, user, cwd, None)?.upgrades()?.iter().any(|(name, _)| *name == pkg))
    }

    fn normalize(name: String) -> Result<String, String> {
        Ok(requirement::normalized(&name))
    }

    fn install(
        pkgs: Option<Data>,
        requirements: Option<Data>,
        bin_env: Option<Data>,
        _use_wheel: Option<Data>,
        _no_use_wheel: Option<Data>,
        log: Option<Data>,
        proxy: Option<Data>,
        timeout: Option<Data>,
        editable: Option<Data>,
        find_links: Option<Data>,
        index_url: Option<Data>,
        extra_index_url: Option<Data>,
        no_index: Option<Data>,
        mirrors: Option<Data>,
        _build: Option<Data>,
        target: Option<Data>,
        download: Option<Data>,
        download_cache: Option<Data>,
        source: Option<Data>,
        upgrade: Option<Data>,
        force_reinstall: Option<Data>,
        ignore_installed: Option<Data>,
        exists_action: Option<Data>,
        no_deps: Option<Data>,
        _no_install: Option<Data>,
        _no_download: Option<Data>,
        global_options: Option<Data>,
        install_options: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
        pre_releases: Option<Data>,
        cert: Option<Data>,
        _allow_all_external: Option<Data>,
        _allow_external: Option<Data>,
        _allow_unverified: Option<Data>,
        _process_dependency_links: Option<Data>,
        saltenv: Option<Data>,
        env_vars: Option<Data>,
        _use_vt: Option<Data>,
        trusted_host: Option<Data>,
        no_cache_dir: Option<Data>,
        extra_args: Option<Data>,
        cache_dir: Option<Data>,
        no_binary: Option<Data>,
        disable_version_check: Option<Data>,
    ) -> Result<Data, String> {
        let cache_dir = cache_dir.or(download_cache);
        let given = Given {
            pkgs,
            requirements,
            bin_env,
            log,
            proxy,
            timeout,
            editable,
            find_links,
            index_url,
            extra_index_url,
            no_index,
            mirrors,
            target,
            download,
            source,
            upgrade,
            force_reinstall,
            ignore_installed,
            exists_action,
            no_deps,
            global_options,
            install_options,
            user,
            cwd,
            pre_releases,
            cert,
            saltenv,
            env_vars,
            trusted_host,
            no_cache_dir,
            extra_args,
            cache_dir,
            no_binary,
            disable_version_check,
        };
        let pip = pip(given.bin_env.clone(), given.user.clone(), given.cwd.clone(), given.env_vars.clone())?;
        Ok(run(&pip, &given, true)?.into())
    }

    fn uninstall(
        pkgs: Option<Data>,
        requirements: Option<Data>,
        bin_env: Option<Data>,
        log: Option<Data>,
        proxy: Option<Data>,
        timeout: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
        saltenv: Option<Data>,
        _use_vt: Option<Data>,
        extra_args: Option<Data>,
    ) -> Result<Data, String> {
        let given = Given { pkgs, requirements, log, proxy, timeout, saltenv, extra_args, ..Given::default() };
        Ok(run(&pip(bin_env, user, cwd, None)?, &given, false)?.into())
    }

    fn upgrade(
        bin_env: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
        _use_vt: Option<Data>,
    ) -> Result<Data, String> {
        let (changes, result, comment) = pip(bin_env, user, cwd, None)?.upgrade()?;
        Ok(Value::dict([("changes", changes), ("result", result.into()), ("comment", comment.into())]).into())
    }
}

fn pip(bin_env: Option<Data>, user: Option<Data>, cwd: Option<Data>, env_vars: Option<Data>) -> Result<Pip, String> {
    let [bin_env, user, cwd] = [full(bin_env.as_ref())?, full(user.as_ref())?, full(cwd.as_ref())?];
    Pip::new(bin_env, user, cwd, variables(env_vars.as_ref())?)
}

/// The options of the indexes to look in.
fn indexes(index: Option<&Data>, extra: Option<&Data>) -> Result<Vec<String>, String> {
    let given = Given {
        index_url: index.cloned(),
        extra_index_url: extra.cloned(),
        pkgs: Some(".".into()),
        ..Given::default()
    };
    let mut words = given.words()?.unwrap_or_default();
    words.pop();
    Ok(words)
}

/// Installs or removes, and returns what `pip.install` does.
fn run(pip: &Pip, given: &Given, installs: bool) -> Result<Value, String> {
    let names = texts(given.requirements.as_ref())?.unwrap_or_default();
    let saltenv = full(given.saltenv.as_ref())?.unwrap_or_else(|| "base".into());
    let words = match installs {
        true => match given.words()? {
            Some(words) => words,
            None => {
                let said = [("retcode", Value::Int(0)), ("stdout", "No packages to install.".into())];
                return Ok(Value::dict(said));
            }
        },
        false => given.removing()?,
    };
    let files = match Files::new(&names, &saltenv, pip.user(), pip.cwd())? {
        Ok(files) => files,
        Err(missing) => return Ok(files::missing(&missing)),
    };
    let command: &[&str] = if installs { &["install"] } else { &["uninstall", "-y"] };
    let all: Vec<String> =
        command.iter().map(|word| (*word).to_owned()).chain(files.words.iter().cloned()).chain(words).collect();
    let done = pip.run(&all);
    files.remove()?;
    Ok(Pip::all(&done?))
}

#[cfg(target_family = "wasm")]
export!(Module);
