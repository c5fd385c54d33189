//! Units of systemd, by `systemctl`, as Salt's systemd_service has them.

use std::cell::RefCell;
use std::collections::BTreeSet;

use brine_guest::host::changes::Kind;
use brine_guest::program::{Output, Program};
use brine_guest::states::is_dry_run;

use crate::host::{self, SYSTEMCTL};

const TYPES: [&str; 9] = ["service", "socket", "device", "mount", "automount", "swap", "target", "path", "timer"];
/// Where units of packages and of the owner are. Salt looks in `/lib` too, which is a link to `/usr/lib`.
const PACKAGED: &str = "/usr/lib/systemd/system";
const LOCAL: &str = "/etc/systemd/system";
const SCRIPTS: &str = "/etc/init.d";
/// The minion's own unit: a restart that it waited for would end it.
const MINION: &str = "salt-minion.service";
/// Upper bound on the depth of directories below [`LOCAL`] in which links of templates are.
const MAX_DEPTH: usize = 4;

thread_local! {
    /// Units whose files were compared with what systemd knows: an instance lives for one call.
    static COMPARED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// How a change of a unit is to be made.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct How {
    pub no_block: Option<bool>,
    pub unmask: bool,
    pub unmask_runtime: bool,
    pub root: Option<String>,
}

/// `cron` is `cron.service`; other types are said.
pub(crate) fn canonical(name: &str) -> String {
    match TYPES.iter().any(|kind| name.ends_with(kind)) {
        true => name.to_owned(),
        false => format!("{name}.service"),
    }
}

/// The name of a unit in lists: without its type if that is service; none if it has no type that counts.
fn listed(unit: &str) -> Option<String> {
    let (name, kind) = unit.rsplit_once('.')?;
    TYPES.contains(&kind).then(|| if kind == "service" { name.to_owned() } else { unit.to_owned() })
}

fn systemctl(words: &[&str]) -> Program {
    Program::new([SYSTEMCTL]).args(words.iter().copied())
}

fn rooted(program: Program, root: Option<&str>) -> Program {
    match root.filter(|root| !root.is_empty()) {
        Some(root) => program.args(["--root", root]),
        None => program,
    }
}

fn status_of(name: &str) -> Result<Output, String> {
    systemctl(&["status", &canonical(name), "-n", "0"]).merged().run()
}

/// Whether systemd knows a unit. Its status is 4 where it does not.
pub(crate) fn is_available(name: &str) -> Result<bool, String> {
    if host::is_offline()? {
        return Err(format!("Cannot run in offline mode. Failed to get information on unit '{name}'"));
    }
    compare(name)?;
    Ok((0..4).contains(&status_of(name)?.code))
}

/// Has systemd read its units again where a unit's file is newer than what it knows, or is not known to it.
fn compare(name: &str) -> Result<(), String> {
    if !host::is_booted()? || COMPARED.with_borrow(|known| known.contains(name)) {
        return Ok(());
    }
    let status = status_of(name)?;
    let is_unknown = !(0..4).contains(&status.code);
    let is_new = is_unknown && host::look(&format!("{LOCAL}/{}", canonical(name)))?.is_some();
    let is_old = status.stdout.to_lowercase().contains("'systemctl daemon-reload'");
    // A dry run tells systemd nothing.
    if (is_new || is_old) && !is_dry_run() {
        reload_units()?;
    }
    COMPARED.with_borrow_mut(|known| known.insert(name.to_owned()));
    Ok(())
}

pub(crate) fn reload_units() -> Result<bool, String> {
    let done = systemctl(&["--system", "daemon-reload"]).merged().run()?;
    match done.succeeded() {
        true => Ok(true),
        false => Err(format!("Problem performing systemctl daemon-reload: {}", done.stdout)),
    }
}

/// `systemctl ACTION UNIT`, after what `how` says.
///
/// # Errors
/// What systemctl said, if it failed.
pub(crate) fn act(action: &str, name: &str, how: &How) -> Result<bool, String> {
    prepare(name, how)?;
    let done = changing(action, name, how).run()?;
    match done.succeeded() {
        true => Ok(true),
        false => Err(done.stderr),
    }
}

/// [`act`], which tells of a failure by its value.
pub(crate) fn attempt(action: &str, name: &str, how: &How) -> Result<bool, String> {
    prepare(name, how)?;
    Ok(changing(action, name, how).run()?.succeeded())
}

fn changing(action: &str, name: &str, how: &How) -> Program {
    let unit = canonical(name);
    let by_default = matches!(action, "stop" | "restart") && unit == MINION || action == "force-reload";
    let program = match how.no_block.unwrap_or(by_default) {
        true => systemctl(&["--no-block"]),
        false => systemctl(&[]),
    };
    rooted(program, how.root.as_deref()).args(action.split(' ')).arg(unit)
}

fn prepare(name: &str, how: &How) -> Result<(), String> {
    compare(name)?;
    if how.unmask {
        unmask(name, false, how.root.as_deref())?;
    }
    if how.unmask_runtime {
        unmask(name, true, how.root.as_deref())?;
    }
    Ok(())
}

pub(crate) fn is_active(name: &str) -> Result<bool, String> {
    compare(name)?;
    Ok(systemctl(&["is-active", &canonical(name)]).run()?.succeeded())
}

pub(crate) fn is_masked(name: &str, runtime: bool, root: Option<&str>) -> Result<bool, String> {
    compare(name)?;
    let dir = if runtime { "/run" } else { "/etc" };
    let link = format!("{}{dir}/systemd/system/{}", root.unwrap_or_default().trim_end_matches('/'), canonical(name));
    let entry = host::look(&link)?;
    Ok(entry.is_some_and(|entry| entry.target.as_deref() == Some("/dev/null")))
}

pub(crate) fn mask(name: &str, runtime: bool, root: Option<&str>) -> Result<bool, String> {
    compare(name)?;
    let done = masking("mask", name, runtime, root).run()?;
    match (done.succeeded(), done.stdout.is_empty()) {
        (true, _) => Ok(true),
        (false, true) => Err(format!("Failed to mask service '{name}'")),
        (false, false) => Err(format!("Failed to mask service '{name}'. Additional info follows:\n\n{}", done.stdout)),
    }
}

pub(crate) fn unmask(name: &str, runtime: bool, root: Option<&str>) -> Result<bool, String> {
    if !is_masked(name, runtime, root)? {
        return Ok(true);
    }
    match masking("unmask", name, runtime, root).run()?.succeeded() {
        true => Ok(true),
        false => Err(format!("Failed to unmask service '{name}'")),
    }
}

fn masking(action: &str, name: &str, runtime: bool, root: Option<&str>) -> Program {
    let program = rooted(systemctl(&[]), root).arg(action);
    let program = if runtime { program.arg("--runtime") } else { program };
    program.arg(canonical(name)).merged()
}

/// Enables or disables a unit, or a script by the program that manages the links of scripts.
pub(crate) fn set_enabled(name: &str, enabled: bool, how: &How) -> Result<bool, String> {
    let root = how.root.as_deref();
    let how = How { unmask: how.unmask && enabled, unmask_runtime: how.unmask_runtime && enabled, ..how.clone() };
    prepare(name, &how)?;
    if scripts(root)?.contains(name) {
        let done = match brine_guest::program::exists("update-rc.d")? {
            true if enabled => Program::new(["update-rc.d", "-f", name, "defaults", "99"]).run()?,
            true => Program::new(["update-rc.d", "-f", name, "remove"]).run()?,
            false if brine_guest::program::exists("chkconfig")? => {
                Program::new(["chkconfig", name, if enabled { "on" } else { "off" }]).run()?
            }
            false => return Err("Unable to find sysv service manager (tried update-rc.d, chkconfig)".into()),
        };
        return Ok(done.succeeded());
    }
    match enabled {
        true => act("enable", name, &how),
        false => attempt("disable", name, &how),
    }
}

pub(crate) fn is_enabled(name: &str, root: Option<&str>) -> Result<bool, String> {
    let asked = |name: &str| rooted(systemctl(&[]), root).args(["is-enabled", &canonical(name)]).run();
    let said = asked(name)?;
    if said.stdout == "alias" {
        let id = rooted(systemctl(&[]), root).args(["show", &canonical(name), "-P", "Id"]).run()?.stdout;
        return Ok(asked(&id)?.succeeded());
    }
    if said.succeeded() {
        return Ok(true);
    }
    if name.contains('@') {
        return has_link(LOCAL, name, 0);
    }
    Ok(scripts(root)?.contains(name) && script_starts(name)?)
}

/// Whether a link with this name is somewhere below a directory: an instance of a template that was enabled.
fn has_link(dir: &str, name: &str, depth: usize) -> Result<bool, String> {
    for entry in host::entries(dir)? {
        match entry.kind {
            Kind::Symlink if entry.name == name => return Ok(true),
            Kind::Directory if depth < MAX_DEPTH && has_link(&format!("{dir}/{}", entry.name), name, depth + 1)? => {
                return Ok(true);
            }
            _ => {}
        }
    }
    Ok(false)
}

/// Whether the runlevel has a link `S` of at most two digits and the script's name.
fn script_starts(name: &str) -> Result<bool, String> {
    let said = match brine_guest::program::exists("runlevel")? {
        true => Program::new(["runlevel"]).merged().run()?.stdout,
        false => String::new(),
    };
    let level = said.split_whitespace().nth(1).filter(|level| level.len() == 1).unwrap_or("2").to_owned();
    let links = host::names(&format!("/etc/rc{level}.d"))?;
    Ok(links.iter().any(|link| {
        let number = link.strip_prefix('S').and_then(|link| link.strip_suffix(name));
        number.is_some_and(|number| number.len() <= 2 && number.bytes().all(|c| c.is_ascii_digit()))
    }))
}

/// Units that have a file, by their names in lists.
fn with_files(root: Option<&str>) -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::new();
    for dir in [PACKAGED, LOCAL] {
        found.extend(host::names(&below(dir, root))?.iter().filter_map(|unit| listed(unit)));
    }
    Ok(found)
}

/// Init scripts that no unit replaces.
fn scripts(root: Option<&str>) -> Result<BTreeSet<String>, String> {
    let dir = below(SCRIPTS, root);
    let units = with_files(root)?;
    let mut found = BTreeSet::new();
    for name in host::names(&dir)? {
        let is_program =
            || Ok::<_, String>(host::look(&format!("{dir}/{name}"))?.is_some_and(|entry| entry.mode & 0o111 != 0));
        if !units.contains(&name) && is_program()? {
            found.insert(name);
        }
    }
    Ok(found)
}

fn below(dir: &str, root: Option<&str>) -> String {
    format!("{}{dir}", root.unwrap_or_default().trim_end_matches('/'))
}

pub(crate) fn all(root: Option<&str>) -> Result<BTreeSet<String>, String> {
    let mut all = with_files(root)?;
    all.extend(scripts(root)?);
    Ok(all)
}

/// Units whose files systemd lists with this state.
pub(crate) fn with_state(state: &str, root: Option<&str>) -> Result<BTreeSet<String>, String> {
    let list = rooted(systemctl(&["--full", "--no-legend", "--no-pager"]), root).arg("list-unit-files").run()?;
    let mut found = BTreeSet::new();
    for line in list.stdout.lines() {
        let mut words = line.split_whitespace();
        if let (Some(unit), Some(said)) = (words.next(), words.next())
            && said == state
        {
            found.extend(listed(unit));
        }
    }
    if state != "static" {
        for script in scripts(root)? {
            if script_starts(&script)? == (state == "enabled") {
                found.insert(script);
            }
        }
    }
    Ok(found)
}

pub(crate) fn running() -> Result<BTreeSet<String>, String> {
    let list = systemctl(&["--full", "--no-legend", "--no-pager"]).run()?;
    let words = list.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    Ok(words.filter(|words| words.get(3) == Some(&"running")).filter_map(|words| listed(words[0])).collect())
}

/// `systemctl show` of a unit.
pub(crate) fn show(name: &str, root: Option<&str>) -> Result<String, String> {
    Ok(rooted(systemctl(&[]), root).args(["show", &canonical(name)]).run()?.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_names() {
        for (name, unit) in
            [("cron", "cron.service"), ("a.socket", "a.socket"), ("my.app", "my.app.service"), ("x@1", "x@1.service")]
        {
            assert_eq!(canonical(name), unit);
        }
        for (unit, name) in [
            ("cron.service", Some("cron")),
            ("a.timer", Some("a.timer")),
            ("a.conf", None),
            ("nothing", None),
            ("a.b.service", Some("a.b")),
        ] {
            assert_eq!(listed(unit).as_deref(), name, "{unit}");
        }
    }
}
