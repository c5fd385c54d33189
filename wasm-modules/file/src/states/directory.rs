//! `file.directory`

use std::collections::BTreeSet;

use brine_guest::changes::{self, Entry, Kind};
use brine_guest::states::is_dry_run;
use brine_guest::{Value, path};

use super::clean::{self, Kept};
use super::{Arguments, Ret};
use crate::change::directories::{self, Level};
use crate::change::mode;
use crate::change::owner::Wanted;
use crate::change::permissions::Permissions;

/// What `recurse` can name.
const RECURSE: [&str; 6] = ["user", "group", "mode", "ignore_files", "ignore_dirs", "silent"];

/// What is asked for.
pub(crate) struct Asked {
    pub(crate) owner: Wanted,
    pub(crate) dir_mode: Option<String>,
    pub(crate) file_mode: Option<String>,
    pub(crate) makedirs: bool,
    pub(crate) follow: bool,
    recurse: Option<Value>,
    max_depth: Option<usize>,
    clean: bool,
    kept: Kept,
    exclude: Option<Value>,
    children_only: bool,
}

impl Asked {
    /// A directory and nothing else.
    pub(crate) fn plain(owner: Wanted, dir_mode: Option<String>, makedirs: bool) -> Self {
        Self {
            owner,
            file_mode: dir_mode.clone(),
            dir_mode,
            makedirs,
            follow: false,
            recurse: None,
            max_depth: None,
            clean: false,
            kept: Kept::default(),
            exclude: None,
            children_only: false,
        }
    }

    fn of(args: &Arguments) -> Result<Self, String> {
        let dir_mode = args.get("dir_mode").filter(|mode| mode.truthy()).or_else(|| args.get("mode"));
        let dir_mode = dir_mode.and_then(mode::normal);
        let file_mode = args.get("file_mode").filter(|mode| mode.truthy()).and_then(mode::normal);
        let mut kept = Kept::default();
        if args.flag("clean", false) {
            kept.add_required(args)?;
        }
        let depth = args.get("max_depth").and_then(|depth| depth.to_text().parse().ok());
        Ok(Self {
            owner: args.owner(),
            file_mode: file_mode.or_else(|| dir_mode.clone()),
            dir_mode,
            makedirs: args.flag("makedirs", false),
            follow: args.flag("follow_symlinks", false),
            recurse: args.get("recurse").filter(|recurse| recurse.truthy()).cloned(),
            max_depth: depth,
            clean: args.flag("clean", false),
            kept,
            exclude: args.get("exclude_pat").cloned(),
            children_only: args.flag("children_only", false),
        })
    }

    fn of_directory(&self) -> Permissions {
        Permissions { owner: self.owner.clone(), mode: self.dir_mode.clone() }
    }

    /// What `recurse` names of owner and mode.
    fn below(&self, recursion: &Recursion) -> Below {
        let user = if recursion.has("user") { self.owner.user.clone() } else { Value::None };
        let group = if recursion.has("group") { self.owner.group.clone() } else { Value::None };
        let owner = Wanted { user, group };
        let modes = recursion.has("mode");
        let mode = |mode: &Option<String>| mode.clone().filter(|_| modes);
        Below {
            files: (!recursion.has("ignore_files"))
                .then(|| Permissions { owner: owner.clone(), mode: mode(&self.file_mode) }),
            dirs: (!recursion.has("ignore_dirs")).then(|| Permissions { owner, mode: mode(&self.dir_mode) }),
        }
    }
}

/// What what is below gets; none if it is left alone.
struct Below {
    files: Option<Permissions>,
    dirs: Option<Permissions>,
}

/// Salt's `recurse`.
struct Recursion(BTreeSet<String>);

impl Recursion {
    fn of(recurse: &Value) -> Result<Self, String> {
        let Value::List(items) = recurse else {
            return Err("\"recurse\" must be formed as a list of strings".into());
        };
        let named: BTreeSet<String> = items.iter().map(Value::to_text).collect();
        if named.iter().any(|name| !RECURSE.contains(&name.as_str())) {
            let names: Vec<String> = RECURSE.iter().map(|name| format!("\"{name}\"")).collect();
            return Err(format!("Types for \"recurse\" limited to {}.", names.join(", ")));
        }
        if named.contains("ignore_files") && named.contains("ignore_dirs") {
            return Err(
                "Must not specify \"recurse\" options \"ignore_files\" and \"ignore_dirs\" at the same time.".into()
            );
        }
        Ok(Self(named))
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

pub(crate) fn directory(name: &str, args: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.directory"));
    }
    let name = if name.len() > 1 { name.strip_suffix('/').unwrap_or(name) } else { name };
    if args.get("max_depth").is_some() && args.flag("clean", false) {
        return Ok(Ret::bad("Cannot specify both max_depth and clean"));
    }
    let asked = Asked::of(args)?;
    let dry = is_dry_run();
    if !name.starts_with('/') {
        let missing = asked.owner.missing(None).filter(|_| !dry);
        return Ok(Ret::bad(missing.unwrap_or_else(|| format!("Specified file {name} is not an absolute path"))));
    }
    let lentry = changes::look(name, false)?;
    let is_link = lentry.as_ref().is_some_and(|entry| entry.kind == Kind::Symlink);
    let entry = if is_link { changes::look(name, true)? } else { lentry.clone() };
    if let Some(missing) = asked.owner.missing(entry.as_ref()).filter(|_| !dry) {
        return Ok(Ret::bad(missing));
    }
    let is_file = entry.as_ref().is_some_and(|entry| entry.kind == Kind::Regular);
    let force = args.flag("force", false);
    let mut ret = Ret::new();
    let mut looked = Some((lentry, entry));
    if is_file || (is_link && (force || !args.flag("allow_symlink", true))) {
        if let Some(done) = make_room(name, args.named("backupname"), force, is_file, dry, &mut ret)? {
            return Ok(done);
        }
        if !dry {
            looked = None;
        }
    }
    ensure(name, &asked, looked, dry, ret)
}

/// Moves what is in a directory's place, or removes it. Returns a result that ends the state.
fn make_room(
    name: &str,
    backup: Option<String>,
    force: bool,
    is_file: bool,
    dry: bool,
    ret: &mut Ret,
) -> Result<Option<Ret>, String> {
    if let Some(backup) = backup {
        if changes::look(&backup, false)?.is_some() {
            if !force {
                return Ok(Some(Ret::bad(format!("File exists where the backup target {backup} should go"))));
            }
            if dry {
                ret.change("forced", format!("Existing file at backup path {backup} would be removed"));
            } else {
                changes::remove(&backup, true)?;
            }
        }
        if dry {
            ret.change("backup", format!("{name} would be renamed to {backup}"));
            ret.change(name, Value::dict([("directory", "new".into())]));
            ret.comment = format!("{name} would be backed up and replaced with a new directory");
            ret.result = None;
            return Ok(Some(ret.clone()));
        }
        changes::rename(name, &backup)?;
        return Ok(None);
    }
    let word = if is_file { "File" } else { "Symlink" };
    if !force {
        let what = if is_file { "a file" } else { "a symlink" };
        return Ok(Some(Ret::bad(format!("Specified location {name} exists and is {what}"))));
    }
    if dry {
        ret.change("forced", format!("{word} would be forcibly replaced"));
    } else {
        changes::remove(name, false)?;
        ret.change("forced", format!("{word} was forcibly replaced"));
    }
    Ok(None)
}

/// Makes a directory, and sets what is below it. `looked` has what is at the path, without and with following links;
/// none to look.
pub(crate) fn ensure(
    name: &str,
    asked: &Asked,
    looked: Option<(Option<Entry>, Option<Entry>)>,
    dry: bool,
    mut ret: Ret,
) -> Result<Ret, String> {
    let (lentry, entry) = match looked {
        Some(looked) => looked,
        None => (changes::look(name, false)?, changes::look(name, true)?),
    };
    let is_there = entry.as_ref().is_some_and(|entry| entry.kind == Kind::Directory);
    // Salt looks at the link itself unless links are followed.
    let seen = if asked.follow { entry.as_ref() } else { lentry.as_ref() };
    let levels = match (asked.recurse.is_some() || asked.clean) && is_there {
        true => directories::walk(name, asked.max_depth)?,
        false => Vec::new(),
    };
    let (result, comment, found) = check(name, asked, seen, is_there, &levels)?;
    for (path, change) in found {
        ret.change(&path, change);
    }
    if dry || ret.changes.is_empty() {
        ret.result = result;
        ret.comment = comment;
        return Ok(ret);
    }
    if !is_there {
        return make(name, asked, ret);
    }
    if let Some(seen) = seen.filter(|_| !asked.children_only) {
        asked.of_directory().apply(name, seen, asked.follow, false, &mut ret);
    }
    let errors = recurse(asked, &levels, &mut ret)?;
    if asked.clean {
        let removed = clean::remove(name, &levels, &asked.kept, asked.exclude.as_ref(), false)?;
        if !removed.is_empty() {
            ret.change("removed", removed);
            ret.comment = format!("Files cleaned from directory {name}");
        }
    }
    if ret.comment.is_empty() {
        ret.comment = match asked.children_only {
            true => format!("Directory {name}/* updated"),
            false => format!("Directory {name} updated"),
        };
    }
    if !errors.is_empty() {
        ret.result = Some(false);
        ret.comment += "\n\nThe following errors were encountered:\n";
        for error in errors {
            ret.comment += &format!("\n- {error}");
        }
    }
    Ok(ret)
}

fn make(name: &str, asked: &Asked, mut ret: Ret) -> Result<Ret, String> {
    if !asked.makedirs && !changes::is(path::dirname(name), Kind::Directory)? {
        return Ok(ret.failed(format!("No directory to create {name} in")));
    }
    if let Err(why) = directories::make(name, &asked.owner, asked.dir_mode.as_deref()) {
        return Ok(ret.failed(format!("Failed to create directory {name}: {why}")));
    }
    ret.change(name, Value::dict([("directory", "new".into())]));
    Ok(ret)
}

/// Salt's `_check_directory`: result, comment and changes of a dry run.
#[allow(clippy::type_complexity)]
fn check(
    name: &str,
    asked: &Asked,
    entry: Option<&Entry>,
    is_there: bool,
    levels: &[Level],
) -> Result<(Option<bool>, String, Vec<(String, Value)>), String> {
    let mut changes: Vec<(String, Value)> = Vec::new();
    if let Some(recurse) = &asked.recurse {
        let recursion = match Recursion::of(recurse) {
            Ok(recursion) => recursion,
            Err(why) => return Ok((Some(false), why, Vec::new())),
        };
        let below = asked.below(&recursion);
        for (path, permissions) in each(&below, levels) {
            if let Some(change) = changes::look(&path, asked.follow)?.and_then(|entry| lacking(permissions, &entry)) {
                changes.push((path, change));
            }
        }
    }
    if !asked.children_only {
        let change = match entry {
            None => Some(Value::dict([("directory", "new".into())])),
            Some(entry) => lacking(&asked.of_directory(), entry),
        };
        changes.extend(change.map(|change| (name.to_owned(), change)));
    }
    if asked.clean {
        for path in clean::remove(name, levels, &asked.kept, asked.exclude.as_ref(), true)? {
            let removed = Value::dict([("removed", "Removed due to clean".into())]);
            changes.retain(|(known, _)| *known != path);
            changes.push((path, removed));
        }
    }
    if !is_there {
        changes.retain(|(known, _)| known != name);
        changes.push((name.to_owned(), Value::dict([("directory", "new".into())])));
    }
    if changes.is_empty() {
        return Ok((Some(true), format!("The directory {name} is in the correct state"), changes));
    }
    let mut comment = String::from("The following files will be changed:\n");
    for (path, change) in &changes {
        if let Value::Dict(entries) = change {
            for (key, value) in entries {
                comment += &format!("{path}: {} - {}\n", key.to_text(), value.to_text());
            }
        }
    }
    Ok((None, comment, changes))
}

fn lacking(permissions: &Permissions, entry: &Entry) -> Option<Value> {
    let lacks = permissions.lacks(entry);
    let mut change = Vec::new();
    if lacks.user {
        change.push(("user", permissions.owner.user.clone()));
    }
    if lacks.group {
        change.push(("group", permissions.owner.group.clone()));
    }
    if let Some(mode) = permissions.mode.as_ref().filter(|_| lacks.mode) {
        change.push(("mode", mode.as_str().into()));
    }
    (!change.is_empty()).then(|| Value::dict(change))
}

/// What is below, with what it is to have: of each level first the files, then the directories.
fn each<'a>(below: &'a Below, levels: &'a [Level]) -> impl Iterator<Item = (String, &'a Permissions)> {
    levels.iter().flat_map(|level| {
        let of = |names: &'a [String], permissions: &'a Option<Permissions>| {
            let at = move |name: &String| path::join(&level.path, name);
            permissions.iter().flat_map(move |permissions| names.iter().map(move |name| (at(name), permissions)))
        };
        of(&level.files, &below.files).chain(of(&level.dirs, &below.dirs))
    })
}

/// Sets what is below. Returns what went wrong.
fn recurse(asked: &Asked, levels: &[Level], ret: &mut Ret) -> Result<Vec<String>, String> {
    let Some(recurse) = &asked.recurse else { return Ok(Vec::new()) };
    let recursion = match Recursion::of(recurse) {
        Ok(recursion) => recursion,
        Err(why) => {
            (ret.result, ret.comment) = (Some(false), why);
            return Ok(Vec::new());
        }
    };
    for (what, wanted) in [("user", &asked.owner.user), ("group", &asked.owner.group)] {
        if recursion.has(what) && !wanted.truthy() && !matches!(wanted, Value::Int(_)) {
            ret.result = Some(false);
            ret.comment =
                format!("{what} not specified, but configured as a target for recursive ownership management");
        }
    }
    if recursion.has("silent") {
        ret.changes.clear();
        ret.change("recursion", "Changes silenced");
    }
    let below = asked.below(&recursion);
    let mut errors = Vec::new();
    for (path, permissions) in each(&below, levels) {
        match changes::look(&path, asked.follow) {
            // It went meanwhile.
            Ok(None) => {}
            Ok(Some(entry)) => {
                let mut of_this = Ret::new();
                permissions.apply(&path, &entry, asked.follow, false, &mut of_this);
                if of_this.result == Some(false) {
                    ret.result = Some(false);
                    ret.join(vec![of_this.comment]);
                }
                // As in Salt, what is below has its changes among those of the directory.
                for (key, value) in of_this.changes {
                    ret.change(&key.to_text(), value);
                }
            }
            Err(why) => errors.push(why),
        }
    }
    Ok(errors)
}
