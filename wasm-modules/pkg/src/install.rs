//! Installing.

use brine_apt::arguments::Keywords;
use brine_apt::dpkg::{differences, to_value};
use brine_apt::failure::Failure;
use brine_apt::wanted;
use brine_guest::host::functions;
use brine_guest::{Result, Value};

use crate::available;
use crate::host::{self, How};
use crate::installed;
use crate::selections;
use crate::targets::{Asked, Targets, file_info};

/// What to install, and how.
#[derive(Default)]
pub(crate) struct Install {
    pub name: Option<String>,
    pub version: Option<String>,
    pub pkgs: Value,
    pub sources: Value,
    pub refresh: bool,
    pub fromrepo: Option<String>,
    pub skip_verify: bool,
    pub debconf: Option<String>,
    pub reinstall: bool,
    pub downloadonly: bool,
    pub ignore_epoch: bool,
    pub normalize: bool,
    pub keywords: Keywords,
}

/// The packages of one call, by what is to become of them.
#[derive(Default)]
struct Sorted {
    install: Vec<String>,
    downgrade: Vec<String>,
    /// Names, and how apt is told them.
    reinstall: Vec<(String, String)>,
    errors: Vec<String>,
}

impl Install {
    /// Installs. Returns what changed: a dict of `old` and `new` by package.
    pub(crate) fn run(&self) -> core::result::Result<Value, Failure> {
        let refresh = self.refresh && self.needs_refresh()?;
        if let Some(path) = &self.debconf {
            functions::call("debconf.set_file", &[path.as_str().into()], &Value::Dict(Vec::new()).into())?;
        }
        let saltenv = self.keywords.text("saltenv").unwrap_or_else(|| "base".into());
        let asked = Asked {
            name: self.name.as_deref(),
            version: self.version.as_deref(),
            pkgs: &self.pkgs,
            sources: &self.sources,
            normalize: self.normalize && self.keywords.get("split_arch").is_none_or(Value::truthy),
            saltenv: &saltenv,
        };
        let Some(targets) = asked.parse()? else { return Ok(Value::Dict(Vec::new())) };
        let old = installed::current()?;
        let mut sorted = match &targets {
            Targets::Repository(packages) => self.sort_names(packages)?,
            Targets::Files(paths) => self.sort_files(paths)?,
        };
        let commands = self.commands(&sorted, matches!(targets, Targets::Repository(_)));
        let mut changes = Value::Dict(Vec::new());
        if !commands.is_empty() {
            if refresh {
                available::refresh_db(self.keywords.get("cache_valid_time").unwrap_or(&Value::None), false, None)?;
            }
            let all = sorted.install.iter().chain(sorted.reinstall.iter().map(|(name, _)| name));
            let names: Vec<&str> = all.map(|word| word.split('=').next().unwrap_or(word)).collect();
            let mut held = selections::of(None, "hold")?;
            held.retain(|held| names.contains(&held.as_str()));
            if !held.is_empty() {
                selections::unhold(&held)?;
            }
            for command in commands {
                let done = host::run_apt(command, How::default())?;
                if done.code != 0 && !done.stderr.is_empty() {
                    sorted.errors.push(done.stderr);
                }
            }
            installed::forget();
            let new = installed::current()?;
            changes = differences(&old, &new);
            for (name, _) in &sorted.reinstall {
                let (old, new) = (to_value(&old, false), to_value(&new, false));
                let of = |list: &Value| list.get(name).cloned().unwrap_or_else(|| "".into());
                let one = Value::dict([(name.as_str(), Value::dict([("old", of(&old)), ("new", of(&new))]))]);
                changes.update(&one, false);
            }
            if !held.is_empty() {
                selections::hold(&held)?;
            }
        }
        match sorted.errors.is_empty() {
            true => Ok(changes),
            false => {
                let info = Value::dict([("errors", sorted.errors.into()), ("changes", changes)]);
                Err(Failure::with("Problem encountered installing package(s)", info))
            }
        }
    }

    /// Whether a version is asked for that is not the candidate of what is known; without a version it is needed anyway.
    fn needs_refresh(&self) -> Result<bool> {
        if let Value::List(items) = &self.pkgs
            && !items.is_empty()
        {
            for item in items {
                let Value::Dict(entries) = item else { return Ok(true) };
                let Some((name, version)) = entries.first() else { return Ok(true) };
                if available::candidate(&name.to_text())? != version.to_text() {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        match (&self.version, &self.name) {
            (Some(version), Some(name)) => Ok(available::candidate(name)? != *version),
            _ => Ok(true),
        }
    }

    fn sort_names(&self, packages: &[(String, Option<String>)]) -> Result<Sorted> {
        let compares = |version: &&str| version.starts_with(['<', '>']);
        let wanting = packages.iter().filter(|(_, version)| version.as_deref().as_ref().is_some_and(compares));
        let wanting: Vec<String> = wanting.map(|(name, _)| name.clone()).collect();
        let there = if wanting.is_empty() { Vec::new() } else { available::repo_versions(&wanting)? };
        let mut sorted = Sorted::default();
        for (name, version) in packages {
            let Some(version) = version else {
                if self.reinstall && installed::current()?.contains_key(name) {
                    sorted.reinstall.push((name.clone(), name.clone()));
                } else {
                    sorted.install.push(name.clone());
                }
                continue;
            };
            let mut version = version.trim_start_matches('=').to_owned();
            if wanting.contains(name) {
                let there =
                    there.iter().find(|(known, _)| known == name).map(|(_, there)| &there[..]).unwrap_or_default();
                match wanted::first_match(&version, there, self.ignore_epoch) {
                    Some(found) => version = found.clone(),
                    None => {
                        let there = if there.is_empty() { "None".to_owned() } else { there.join(", ") };
                        sorted
                            .errors
                            .push(format!("No version matching '{name}{version}' could be found (available: {there})"));
                        continue;
                    }
                }
            }
            self.sort(&mut sorted, name, &version, format!("{name}={version}"))?;
        }
        Ok(sorted)
    }

    fn sort_files(&self, paths: &[String]) -> Result<Sorted> {
        let mut sorted = Sorted::default();
        for path in paths {
            let info = file_info(path)?;
            self.sort(&mut sorted, &info.name, &info.version, path.clone())?;
        }
        Ok(sorted)
    }

    /// Sorts a package by the version that is installed.
    fn sort(&self, sorted: &mut Sorted, name: &str, version: &str, word: String) -> Result<()> {
        let have = installed::current()?.get(name).map(|versions| versions.join(",")).unwrap_or_default();
        if self.reinstall && !have.is_empty() && wanted::holds(version, "==", &have, false) {
            sorted.reinstall.push((name.into(), word));
        } else if have.is_empty() || wanted::holds(version, ">=", &have, false) {
            sorted.install.push(word);
        } else {
            sorted.downgrade.push(word);
        }
        Ok(())
    }

    /// The calls of apt-get: one for each kind.
    fn commands(&self, sorted: &Sorted, of_repository: bool) -> Vec<Vec<String>> {
        let keywords = &self.keywords;
        let forced = keywords.truthy("force_yes");
        let mut prefix: Vec<String> = ["apt-get", "-q", "-y"].map(str::to_owned).to_vec();
        let mut add = |words: &[&str]| prefix.extend(words.iter().map(|word| word.to_string()));
        if forced {
            add(&["--force-yes"]);
        }
        match keywords.truthy("force_conf_new") {
            true => add(&["-o", "DPkg::Options::=--force-confnew"]),
            false => add(&["-o", "DPkg::Options::=--force-confold", "-o", "DPkg::Options::=--force-confdef"]),
        }
        match keywords.get("install_recommends") {
            None => (),
            Some(wanted) if wanted.truthy() => add(&["--install-recommends"]),
            Some(_) => add(&["--no-install-recommends"]),
        }
        if keywords.truthy("only_upgrade") {
            add(&["--only-upgrade"]);
        }
        if self.skip_verify {
            add(&["--allow-unauthenticated"]);
        }
        if let Some(repo) = self.fromrepo.as_deref().filter(|_| of_repository) {
            add(&["-t", repo]);
        }
        let command = |before: &[&str], words: &mut dyn Iterator<Item = &String>| {
            let mut command = prefix.clone();
            command.extend(before.iter().map(|word| word.to_string()));
            command.extend(words.cloned());
            command
        };
        let mut commands = Vec::new();
        if !sorted.install.is_empty() {
            commands.push(command(&["install"], &mut sorted.install.iter()));
        }
        if !sorted.downgrade.is_empty() {
            let force: &[&str] = if of_repository && !forced { &["--force-yes", "install"] } else { &["install"] };
            commands.push(command(force, &mut sorted.downgrade.iter()));
        }
        if self.downloadonly
            && let Some(last) = commands.last_mut()
        {
            last.push("--download-only".into());
        }
        if !sorted.reinstall.is_empty() {
            let again: &[&str] = if self.sources.truthy() { &["install"] } else { &["install", "--reinstall"] };
            commands.push(command(again, &mut sorted.reinstall.iter().map(|(_, word)| word)));
        }
        commands
    }
}
