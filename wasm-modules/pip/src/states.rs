//! The states `pip.installed`, `pip.removed` and `pip.uptodate`.

use brine_guest::host::job;
use brine_guest::states::{StateResult, is_dry_run, no_changes};
use brine_guest::{Data, Value};

use crate::arguments::{flag, full};
use crate::exports::states::Guest;
use crate::install::Given;
use crate::pip::{Packages, Pip};
use crate::requirement::{Requirement, normalized, same};
use crate::{Module, indexes, pip, run};

/// The beginnings of lines by which pip says that it changed nothing.
const UNCHANGED: [&str; 7] = [
    "Requirement already satisfied",
    "Requirement already up-to-date",
    "Requirement not upgraded",
    "Collecting",
    "Cloning",
    "Cleaning up...",
    "Looking in indexes",
];

impl Guest for Module {
    fn installed(
        name: String,
        pkgs: Option<Data>,
        pip_bin: Option<Data>,
        requirements: Option<Data>,
        bin_env: Option<Data>,
        use_wheel: Option<Data>,
        no_use_wheel: Option<Data>,
        log: Option<Data>,
        proxy: Option<Data>,
        timeout: Option<Data>,
        _repo: Option<Data>,
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
        install_options: Option<Data>,
        global_options: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
        pre_releases: Option<Data>,
        cert: Option<Data>,
        _allow_all_external: Option<Data>,
        _allow_external: Option<Data>,
        _allow_unverified: Option<Data>,
        _process_dependency_links: Option<Data>,
        env_vars: Option<Data>,
        _use_vt: Option<Data>,
        trusted_host: Option<Data>,
        no_cache_dir: Option<Data>,
        cache_dir: Option<Data>,
        no_binary: Option<Data>,
        extra_args: Option<Data>,
    ) -> Result<Data, String> {
        let bin_env = full(bin_env.as_ref())?.or(full(pip_bin.as_ref())?).map(Data::from);
        let packages = match pkgs.map(|pkgs| pkgs.value()).transpose()?.filter(Value::truthy) {
            None => vec![name.clone()],
            Some(Value::List(items)) => items.iter().map(Value::to_text).collect(),
            Some(_) => return Ok(named(&name, StateResult::bad("pkgs argument must be formatted as a list"))),
        };
        let given = Given {
            pkgs: None,
            cache_dir: cache_dir.or(download_cache),
            saltenv: job::state().map(|state| state.saltenv.into()),
            disable_version_check: Some(true.into()),
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
            install_options,
            global_options,
            user,
            cwd,
            pre_releases,
            cert,
            env_vars,
            trusted_host,
            no_cache_dir,
            no_binary,
            extra_args,
        };
        // As in Salt, the result has the names of all packages.
        let all = packages.join(";");
        let failed = |why: String| Ok(named(&all, StateResult::bad(format!("Error installing '{name}': {why}"))));
        let pip = match pip(given.bin_env.clone(), given.user.clone(), given.cwd.clone(), given.env_vars.clone()) {
            Ok(pip) => pip,
            Err(why) => return failed(why),
        };
        let version = match pip.version() {
            Ok(version) => version,
            Err(why) => return failed(why),
        };
        for (option, argument) in [("use_wheel", use_wheel), ("no_use_wheel", no_use_wheel)] {
            if flag(argument.as_ref(), false)? {
                let why = format!(
                    "The '{option}' option is only supported in pip between 1.4 and 9.0.3. The version of pip detected was \
                     {version}."
                );
                return Ok(named(&all, StateResult::bad(why)));
            }
        }
        Ok(named(&all, installed(&packages, given, &pip)?))
    }

    fn removed(
        name: String,
        requirements: Option<Data>,
        bin_env: Option<Data>,
        log: Option<Data>,
        proxy: Option<Data>,
        timeout: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
        _use_vt: Option<Data>,
    ) -> Result<StateResult, String> {
        let listed = pip(bin_env, user, cwd, None).and_then(|pip| Ok((pip.list(None)?, pip)));
        let (packages, pip) = match listed {
            Ok(listed) => listed,
            Err(why) => return Ok(StateResult::bad(format!("Error uninstalling '{name}': {why}"))),
        };
        if !packages.iter().any(|(known, _)| *known == name) {
            return Ok(StateResult::good("Package is not installed."));
        }
        if is_dry_run() {
            return Ok(StateResult::would(format!("Package {name} is set to be removed"), no_changes()));
        }
        let pkgs = Some(name.as_str().into());
        run(&pip, &Given { pkgs, requirements, log, proxy, timeout, ..Given::default() }, false)?;
        let changes = Value::dict([(name.as_str(), "Removed".into())]);
        Ok(StateResult::changed("Package was successfully removed.", changes))
    }

    fn uptodate(
        _name: String,
        bin_env: Option<Data>,
        user: Option<Data>,
        cwd: Option<Data>,
        _use_vt: Option<Data>,
    ) -> Result<StateResult, String> {
        let pip = match pip(bin_env, user, cwd, None) {
            Ok(pip) => pip,
            Err(why) => return Ok(StateResult::bad(why)),
        };
        let packages = match pip.upgrades() {
            Ok(packages) => packages,
            Err(why) => return Ok(StateResult::bad(why)),
        };
        if packages.is_empty() {
            return Ok(StateResult::good("System is already up-to-date."));
        }
        if is_dry_run() {
            return Ok(StateResult::would("System update will be performed", no_changes()));
        }
        // As in Salt, what an upgrade returns is the changes.
        let (changes, good, comment) = pip.upgrade()?;
        Ok(match good {
            false => StateResult::new(Some(false), comment, changes),
            true => {
                let all = [("changes", changes), ("result", true.into()), ("comment", comment.into())];
                StateResult::changed("Upgrade successful.", Value::dict(all))
            }
        })
    }
}

/// A result with a name of its own.
fn named(name: &str, done: StateResult) -> Data {
    Data::dict([
        ("name", name.into()),
        ("result", done.result.into()),
        ("comment", done.comment.into()),
        ("changes", done.changes),
    ])
}

/// What has to be done for a package.
enum Found {
    /// Nothing, as the sentence says.
    Good(String),
    Missing,
}

fn installed(packages: &[String], mut given: Given, pip: &Pip) -> Result<StateResult, String> {
    let (files, editable) = (full(given.requirements.as_ref())?, full(given.editable.as_ref())?);
    let by_name = files.is_none() && editable.is_none();
    let mut wanted = Vec::new();
    if by_name {
        let mut errors = Vec::new();
        for package in packages {
            match Requirement::read(package) {
                Ok(requirement) => wanted.push(requirement),
                Err(why) => errors.push(why),
            }
        }
        if !errors.is_empty() {
            return Ok(StateResult::bad(errors.join("\n")));
        }
    } else if is_dry_run() {
        let mut comments = Vec::new();
        comments.extend(files.map(|files| format!("Requirements file '{files}' will be processed.")));
        comments.extend(editable.map(|place| {
            format!("Package will be installed in editable mode (i.e. setuptools \"develop mode\") from {place}.")
        }));
        return Ok(StateResult::would(comments.join(" "), no_changes()));
    }
    let (mut targets, mut good) = (Vec::new(), Vec::new());
    let listed = if by_name { pip.list(None).unwrap_or_default() } else { Packages::new() };
    for requirement in &wanted {
        match look(requirement, &listed, &given, pip)? {
            Found::Good(comment) => good.push(comment),
            Found::Missing if is_dry_run() => {
                let comment = match wanted.as_slice() {
                    [one] => format!("Python package {} is set to be installed", one.text),
                    all => {
                        let names: Vec<&str> = all.iter().map(|one| one.text.as_str()).collect();
                        format!("Python package(s) set to be installed:\n{}", names.join("\n"))
                    }
                };
                return Ok(StateResult::would(comment, no_changes()));
            }
            Found::Missing => targets.push(requirement),
        }
    }
    let before: String = good.iter().map(|comment| format!("{comment}\n")).collect();
    if by_name && targets.is_empty() {
        let more = if flag(given.upgrade.as_ref(), false)? { " and up-to-date" } else { "" };
        return Ok(StateResult::good(format!("{before}All specified packages are already installed{more}")));
    }
    let names: Vec<String> = targets.iter().map(|target| target.text.replace(',', ";")).collect();
    given.pkgs = (!names.is_empty()).then(|| names.join(",").into());
    let done = run(pip, &given, true)?;
    let said = |name: &str| done.get(name).and_then(Value::text).unwrap_or_default().to_owned();
    if done.get("retcode") != Some(&Value::Int(0)) {
        let why = match done.get("stdout") {
            Some(_) => format!("Error: {} {}", said("stdout"), said("stderr")),
            None => format!("Error: {}", said("comment")),
        };
        if by_name {
            return Ok(StateResult::bad(format!("{before}Failed to install packages: {}. {why}", names.join(", "))));
        }
        let mut comments = Vec::new();
        comments.extend(files.map(|files| format!("Unable to process requirements file \"{files}\"")));
        comments.extend(editable.map(|place| format!("Unable to install from VCS checkout {place}.")));
        comments.push(why);
        return Ok(StateResult::bad(comments.join(" ")));
    }
    if by_name {
        return report(&targets, &before, &said("stdout"), pip);
    }
    let (mut changes, mut comments) = (Vec::new(), Vec::new());
    if let Some(files) = files {
        let is_change = |line: &str| !UNCHANGED.iter().any(|start| line.trim().starts_with(start));
        if said("stdout").split('\n').any(is_change) {
            changes.push(("requirements", true.into()));
            comments.push(format!("Successfully processed requirements file {files}."));
        } else {
            comments.push("Requirements were already installed.".to_owned());
        }
    }
    if let Some(place) = editable {
        comments.push(format!("Package successfully installed from VCS checkout {place}."));
        changes.push(("editable", true.into()));
    }
    Ok(StateResult::changed(comments.join(" "), Value::dict(changes)))
}

/// Looks whether a package is there as it is asked for.
fn look(requirement: &Requirement, listed: &Packages, given: &Given, pip: &Pip) -> Result<Found, String> {
    let is = |argument: &Option<Data>| flag(argument.as_ref(), false);
    let (forced, upgrade) = (is(&given.force_reinstall)?, is(&given.upgrade)?);
    let there = listed.iter().find(|(name, _)| *name == requirement.name && !name.is_empty());
    let Some((_, version)) = there.filter(|_| !forced) else { return Ok(Found::Missing) };
    if is(&given.ignore_installed)? {
        return Ok(Found::Missing);
    }
    let good = || Found::Good(format!("Python package {} was already installed", requirement.text));
    if !upgrade {
        return Ok(if requirement.is_met_by(version) { good() } else { Found::Missing });
    }
    let more = indexes(given.index_url.as_ref(), given.extra_index_url.as_ref())?;
    let versions = pip.available(&requirement.name, &requirement.left_out(), &more)?;
    Ok(match versions.iter().rev().find(|version| requirement.is_met_by(version)) {
        None => Found::Good(format!(
            "Python package {} was already installed and\nthe available upgrade doesn't fulfills the version requirements",
            requirement.name
        )),
        Some(newest) if same(version, newest) => good(),
        Some(_) => Found::Missing,
    })
}

/// What an installation of packages changed.
fn report(targets: &[&Requirement], before: &str, said: &str, pip: &Pip) -> Result<StateResult, String> {
    let satisfied = ["Requirement already satisfied: ", "Requirement already up-to-date: "];
    let kept: Vec<String> = said
        .lines()
        .filter_map(|line| satisfied.iter().find_map(|start| line.strip_prefix(start)))
        .filter_map(|rest| rest.split_whitespace().next()?.split(['=', '!', '<', '>', '~', '@']).next())
        .map(normalized)
        .collect();
    let (mut changes, mut missing) = (Vec::new(), Vec::new());
    for target in targets {
        if target.name.is_empty() {
            changes.push((format!("{}==???", target.text.replace(',', ";")), Value::from("Installed")));
            continue;
        }
        let found = pip.list(Some(&target.name))?;
        match found.iter().find(|(name, _)| *name == target.name) {
            Some((name, version)) if !kept.contains(name) => {
                changes.push((format!("{name}=={version}"), "Installed".into()))
            }
            _ if found.is_empty() => missing.push(format!(
                "There was no error installing package '{}' although it does not show when calling 'pip.freeze'.",
                target.text
            )),
            _ => {}
        }
    }
    let comment = match missing.is_empty() {
        true => "All packages were successfully installed".to_owned(),
        false => missing.join("\n"),
    };
    let changes = Value::Dict(changes.into_iter().map(|(name, value)| (name.into(), value)).collect());
    Ok(StateResult::changed(format!("{before}{comment}"), changes))
}
