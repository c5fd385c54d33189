//! The packages that are to be had, and the refreshing of their lists.

use brine_apt::arguments::{Keywords, is_true};
use brine_apt::failure::Failure;
use brine_apt::{cache, wanted};
use brine_guest::host::changes;
use brine_guest::states::is_dry_run;
use brine_guest::{Result, Value};

use crate::host::{self, How};
use crate::installed;

/// Where apt keeps what is to be had.
const LISTS: &str = "/var/lib/apt/lists";
/// While this file is there, the next state that installs refreshes first: the state system asked for it at the start of
/// a run. Salt has such a file among its own caches.
pub(crate) const DUE: &str = "/run/brine-pkg-refresh";
/// Time for a refresh.
const REFRESH_MS: u64 = 30_000;
/// In a dry run, apt keeps what it knows in memory: a look must write nothing, caches included.
const NO_CACHES: [&str; 4] = ["-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="];

/// The candidates of packages.
pub(crate) struct Question {
    pub refresh: bool,
    pub cache_valid_time: Value,
    pub show_installed: bool,
    pub fromrepo: Option<String>,
}

impl Question {
    /// Without a refresh.
    pub(crate) fn look(fromrepo: Option<String>) -> Self {
        Self { refresh: false, cache_valid_time: Value::None, show_installed: false, fromrepo }
    }

    pub(crate) fn read(keywords: &Keywords) -> Result<Self> {
        if keywords.get("repo").is_some() {
            return Err("The 'repo' argument is invalid, use 'fromrepo' instead".into());
        }
        Ok(Self {
            refresh: keywords.is_true("refresh", true),
            cache_valid_time: keywords.get("cache_valid_time").cloned().unwrap_or_default(),
            show_installed: keywords.is_true("show_installed", false),
            fromrepo: keywords.text("fromrepo").filter(|repo| !repo.is_empty()),
        })
    }
}

fn no_caches() -> &'static [&'static str] {
    if is_dry_run() { &NO_CACHES } else { &[] }
}

/// Runs `apt-cache` for the named packages, which are never taken for options.
fn apt_cache(before: &[String], command: &str, names: &[String]) -> Result<String> {
    host::check_family()?;
    let mut argv: Vec<String> = ["apt-cache", "-q"].iter().chain(no_caches()).map(|word| word.to_string()).collect();
    argv.extend(before.iter().cloned());
    argv.push(command.into());
    if !names.is_empty() {
        argv.push("--".into());
        argv.extend(names.iter().cloned());
    }
    Ok(host::run_words(argv, How::default())?.stdout)
}

/// What is to be had of some packages.
pub(crate) struct Latest {
    /// For each name the version that would be installed, empty if there is none or the installed one is as good.
    versions: Vec<(String, String)>,
    /// The names that apt knows; names of foreign architectures stand for one that only they have.
    known: Vec<String>,
}

impl Latest {
    /// The version of a name, empty if there is none.
    pub(crate) fn of(&self, name: &str) -> String {
        let found = self.versions.iter().find(|(known, _)| known == name);
        found.map(|(_, version)| version.clone()).unwrap_or_default()
    }

    /// Salt's form: a text if one name is known, else a dict.
    pub(crate) fn into_value(self) -> Value {
        match &self.known[..] {
            _ if self.versions.is_empty() => "".into(),
            [name] => self.of(name).into(),
            _ => Value::Dict(self.versions.into_iter().map(|(name, version)| (name.into(), version.into())).collect()),
        }
    }
}

pub(crate) fn latest(names: &[String], question: &Question) -> Result<Latest> {
    let mut latest = Latest { versions: Vec::new(), known: Vec::new() };
    if names.is_empty() {
        return Ok(latest);
    }
    if question.refresh {
        refresh_db(&question.cache_valid_time, false, None)?;
    }
    let release = question.fromrepo.as_ref().map(|repo| vec!["-o".to_owned(), format!("APT::Default-Release={repo}")]);
    let candidates = cache::candidates(&apt_cache(&release.unwrap_or_default(), "policy", names)?, names);
    let have = installed::current()?;
    let is_known = |name: &String| candidates.iter().any(|(known, _)| known == name);
    let (mut foreign, mut all) = (Vec::new(), Vec::new());
    for name in names.iter().filter(|name| !is_known(name)) {
        all.push(name);
        let prefix = format!("{name}:");
        foreign.extend(candidates.iter().map(|(known, _)| known).filter(|known| known.starts_with(&prefix)));
    }
    let known: Vec<&String> = names.iter().filter(|name| is_known(name)).chain(foreign).collect();
    for name in all.into_iter().chain(known.iter().copied()) {
        let candidate = candidates.iter().find(|(known, _)| known == name);
        let candidate = candidate.map(|(_, version)| version.clone()).unwrap_or_default();
        let as_good = |have: &String| wanted::holds(have, ">=", &candidate, false);
        let kept = !question.show_installed && have.get(name).is_some_and(|have| have.iter().any(as_good));
        latest.versions.retain(|(known, _)| known != name);
        latest.versions.push((name.clone(), if kept { String::new() } else { candidate }));
    }
    latest.known = known.into_iter().cloned().collect();
    Ok(latest)
}

pub(crate) fn latest_version(names: &[String], keywords: &Keywords) -> Result<Value> {
    Ok(latest(names, &Question::read(keywords)?)?.into_value())
}

/// The version of one package that would be installed.
pub(crate) fn candidate(name: &str) -> Result<String> {
    let question = Question { show_installed: true, ..Question::look(None) };
    Ok(latest(&[name.to_owned()], &question)?.of(name))
}

/// The versions of packages that are to be had, the newest first. `names` may have versions, `a=1.0`; without names, of
/// all packages.
pub(crate) fn repo_versions(names: &[String]) -> Result<Vec<(String, Vec<String>)>> {
    let output = apt_cache(&[], if names.is_empty() { "dump" } else { "show" }, names)?;
    Ok(cache::versions(&output))
}

pub(crate) fn show(names: &[String], wanted: &[String]) -> Result<Value> {
    Ok(cache::show(&apt_cache(&[], "show", names)?, wanted))
}

/// Refreshes the lists of packages. In a dry run nothing is refreshed: it looks at what is known.
pub(crate) fn refresh_db(cache_valid_time: &Value, failhard: bool, timeout_ms: Option<u64>) -> Result<Value> {
    host::check_family()?;
    if is_dry_run() {
        return Ok(Value::Dict(Vec::new()));
    }
    if changes::look(DUE, false, false)?.is_some() {
        changes::remove(DUE, false)?;
    }
    if let Some(seconds) = seconds(cache_valid_time)
        && let Some(lists) = changes::look(LISTS, true, false)?
        && lists.mtime + seconds > now()
    {
        return Ok(Value::Dict(Vec::new()));
    }
    let update = || ["apt-get", "-q", "update"].map(str::to_owned).to_vec();
    let timeout_ms = Some(timeout_ms.unwrap_or(REFRESH_MS));
    let mut done = host::run_apt(update(), How { timeout_ms, ..How::default() })?;
    if done.timed_out {
        host::run(&["apt-get", "-q", "clean"], How::default())?;
        done = host::run_apt(update(), How::default())?;
    }
    if done.code != 0 {
        return Err(done.stderr);
    }
    let (found, failed) = cache::refreshed(&done.stdout);
    if failhard && !failed.is_empty() {
        return Err(format!("Error getting repos: {}", failed.join(", ")));
    }
    Ok(found)
}

fn seconds(value: &Value) -> Option<f64> {
    match value {
        Value::Int(seconds) if *seconds > 0 => Some(*seconds as f64),
        Value::Float(seconds) if *seconds > 0.0 => Some(*seconds),
        Value::Text(text) => text.trim().parse().ok().filter(|seconds| *seconds > 0.0),
        _ => None,
    }
}

fn now() -> f64 {
    let now = crate::wasi::clocks::wall_clock::now();
    now.seconds as f64 + f64::from(now.nanoseconds) / 1e9
}

/// Whether a state is to refresh: if it says so, or if the run asked for it and the state does not refuse.
pub(crate) fn is_due(refresh: &Value) -> Result<bool> {
    if is_true(refresh) {
        return Ok(true);
    }
    Ok(*refresh != Value::Bool(false) && changes::look(DUE, false, false)?.is_some())
}

/// The upgrades that there are.
pub(crate) fn upgradable(dist_upgrade: bool, fromrepo: Option<&str>) -> Result<Vec<(String, String)>> {
    host::check_family()?;
    let mut argv: Vec<String> =
        ["apt-get", "--just-print"].iter().chain(no_caches()).map(|word| word.to_string()).collect();
    if is_dry_run() {
        // It would log what it planned.
        argv.extend(["-o", "Debug::NoLocking=true", "-o", "Dir::Log::Planner=/dev/null"].map(str::to_owned));
    }
    if let Some(repo) = fromrepo {
        argv.extend(["-o".to_owned(), format!("APT::Default-Release={repo}")]);
    }
    argv.push(if dist_upgrade { "dist-upgrade" } else { "upgrade" }.into());
    let done = host::run_apt(argv, How::default())?;
    if done.code != 0 {
        let why = [done.stderr, done.stdout].into_iter().find(|output| !output.is_empty());
        return Err(why.map_or("Failed to get upgrades".into(), |why| format!("Failed to get upgrades: {why}")));
    }
    Ok(cache::upgrades(&done.stdout))
}

pub(crate) fn list_upgrades(refresh: bool, dist_upgrade: bool, keywords: &Keywords) -> Result<Vec<(String, String)>> {
    if refresh {
        refresh_db(keywords.get("cache_valid_time").unwrap_or(&Value::None), false, None)?;
    }
    upgradable(dist_upgrade, keywords.text("fromrepo").as_deref())
}

/// Upgrades all packages. Returns what changed.
pub(crate) fn upgrade(refresh: bool, dist_upgrade: bool, keywords: &Keywords) -> core::result::Result<Value, Failure> {
    if refresh {
        refresh_db(keywords.get("cache_valid_time").unwrap_or(&Value::None), false, None)?;
    }
    let old = installed::current()?;
    let mut argv: Vec<String> = ["apt-get", "-q", "-y"].map(str::to_owned).to_vec();
    let confs: &[&str] = if keywords.truthy("force_conf_new") { &["new"] } else { &["old", "def"] };
    argv.extend(confs.iter().flat_map(|conf| ["-o".to_owned(), format!("DPkg::Options::=--force-conf{conf}")]));
    for (asked, option) in [
        (keywords.truthy("force_yes"), "--force-yes"),
        (keywords.truthy("skip_verify"), "--allow-unauthenticated"),
        (keywords.truthy("download_only") || keywords.truthy("downloadonly"), "--download-only"),
        (keywords.truthy("allow_downgrades"), "--allow-downgrades"),
    ] {
        if asked {
            argv.push(option.into());
        }
    }
    argv.push(if dist_upgrade { "dist-upgrade" } else { "upgrade" }.into());
    let done = host::run_apt(argv, How::default())?;
    installed::forget();
    let changes = brine_apt::dpkg::differences(&old, &installed::current()?);
    if done.code == 0 {
        return Ok(changes);
    }
    let result = Value::dict([
        ("retcode", Value::Int(done.code)),
        ("stdout", done.stdout.into()),
        ("stderr", done.stderr.into()),
    ]);
    let info = Value::dict([("changes", changes), ("result", result)]);
    Err(Failure::with("Problem encountered upgrading packages", info))
}
