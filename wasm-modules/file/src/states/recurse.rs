//! `file.recurse`: a directory of the master's, with all that is in it.

use std::collections::{BTreeMap, BTreeSet};

use brine_guest::changes::{self, Kind};
use brine_guest::host::files;
use brine_guest::host::job;
use brine_guest::states::is_dry_run;
use brine_guest::{Value, path, salt_files};

use super::clean::{self, Kept};
use super::directory::{self, Asked};
use super::managed::managed;
use super::{Arguments, Ret};
use crate::change::directories;
use crate::manage::source::{is_plain, master_path};

/// Arguments of this state that the files' state does not get.
const OWN: [&str; 22] = [
    "backup",
    "clean",
    "context",
    "defaults",
    "dir_mode",
    "env",
    "exclude_pat",
    "file_mode",
    "force_symlinks",
    "group",
    "include_empty",
    "include_pat",
    "keep_symlinks",
    "makedirs",
    "maxdepth",
    "merge",
    "mode",
    "replace",
    "require",
    "source",
    "sym_mode",
    "user",
];

/// Files that are prepared together: few enough that what the minion was told of them still holds when their states ask, and that it keeps
/// the fetched ones open meanwhile.
const TOGETHER: usize = 48;

/// A folder on the master.
struct Root {
    path: String,
    saltenv: String,
}

/// A file on the master.
struct Source {
    path: String,
    saltenv: String,
}

/// What is to be in the directory.
#[derive(Default)]
struct Plan {
    /// The source of each file.
    files: BTreeMap<String, Source>,
    dirs: BTreeSet<String>,
    kept: Kept,
}

pub(crate) fn recurse(name: &str, args: &Arguments) -> Result<Ret, String> {
    if args.get("mode").is_some() {
        return Ok(Ret::bad("'mode' is not allowed in 'file.recurse'. Please use 'file_mode' and 'dir_mode'."));
    }
    let dry = is_dry_run();
    let owner = args.owner();
    if let Some(missing) = owner.missing(None).filter(|_| !dry) {
        return Ok(Ret::bad(missing));
    }
    if !name.starts_with('/') {
        return Ok(Ret::bad(format!("Specified file {name} is not an absolute path")));
    }
    let roots = match roots(&args.list("source"), args.flag("merge", false))? {
        Ok(roots) => roots,
        Err(why) => return Ok(Ret::bad(format!("Recurse failed: {why}"))),
    };
    if args.flag("keep_symlinks", false) {
        for root in &roots {
            // The master does not say where a link leads.
            if let Some(link) = files::list(&root.saltenv, Some(&root.path), files::Kind::Symlinks)?.first() {
                return Ok(Ret::bad(format!("The argument 'keep_symlinks' is not supported here: {link} is a link")));
            }
        }
    }
    let dir_mode = args.mode("dir_mode");
    match changes::look(name, true)?.map(|entry| entry.kind) {
        Some(Kind::Directory) => {}
        Some(_) => return Ok(Ret::bad(format!("The path {name} exists and is not a directory"))),
        None if dry => {}
        None => directories::make(name, &owner, dir_mode.as_deref())?,
    }
    let mut plan = plan(name, &roots, args)?;
    let mut all = All { name, ret: Ret::new(), comments: Vec::new(), clean: args.flag("clean", false), dry };
    for dir in &plan.dirs {
        if all.makes_room(dir, false, "Replaced file with a directory", true)? {
            let asked = Asked::plain(owner.clone(), dir_mode.clone(), true);
            let ret = directory::ensure(dir, &asked, None, dry, Ret::new())?;
            all.add(dir, ret);
        }
    }
    let replace = args.flag("replace", true);
    let files: Vec<(&String, &Source)> = plan.files.iter().collect();
    for group in files.chunks(TOGETHER) {
        prepare(group, args.get("template").is_some(), dry || !replace)?;
        for (file, source) in group {
            if all.makes_room(file, true, "Replaced directory with a new file", replace)? {
                let ret = managed(file, &of_file(args, source))?;
                all.add(file, ret);
            }
        }
    }
    if all.clean {
        plan.kept.add_required(args)?;
        let levels = directories::walk(name, None)?;
        let removed = clean::remove(name, &levels, &plan.kept, args.get("exclude_pat"), dry)?;
        if !removed.is_empty() {
            if dry {
                all.ret.result = all.ret.result.filter(|result| !result);
                all.comments.push(("removed".into(), removed));
            } else {
                all.ret.change("removed", removed);
            }
        }
    }
    Ok(all.done())
}

/// Asks for the hashes of all files of a group together, and fetches together what has to come anyway: into a new place, in another size, or
/// for a template. The states of the files then ask as ever, and the minion knows the answers.
fn prepare(files: &[(&String, &Source)], is_template: bool, stays: bool) -> Result<(), String> {
    let environments: BTreeSet<&str> = files.iter().map(|(_, source)| source.saltenv.as_str()).collect();
    for saltenv in environments {
        let here: Vec<_> = files.iter().filter(|(_, source)| source.saltenv == saltenv).collect();
        let paths: Vec<String> = here.iter().map(|(_, source)| source.path.clone()).collect();
        let mut missing = Vec::new();
        for ((file, source), digest) in here.into_iter().zip(salt_files::hash_all(&paths, saltenv)?) {
            let Some(digest) = digest else { continue };
            let comes =
                is_template || !stays && changes::look(file, true)?.is_none_or(|is| Some(is.size) != digest.size);
            if comes {
                missing.push(source.path.clone());
            }
        }
        salt_files::cache_all(&missing, saltenv)?;
    }
    Ok(())
}

/// The folders that are there, or the first of them. The inner error is Salt's.
fn roots(sources: &[Value], merge: bool) -> Result<Result<Vec<Root>, String>, String> {
    let saltenv = job::state().map_or_else(|| "base".into(), |state| state.saltenv);
    let mut roots = Vec::new();
    for source in sources {
        let source = source.to_text();
        let source = source.trim_end_matches('/');
        if !source.starts_with("salt://") {
            return Ok(Err(format!("Invalid source '{source}' (must be a salt:// URI)")));
        }
        let (path, given) = master_path(source);
        let saltenv = given.unwrap_or_else(|| saltenv.clone());
        if is_plain(&path) && files::list(&saltenv, Some(&path), files::Kind::Dirs)?.contains(&path) {
            roots.push(Root { path, saltenv });
        }
    }
    if roots.is_empty() {
        return Ok(Err("none of the specified sources were found".into()));
    }
    if !merge {
        roots.truncate(1);
    }
    Ok(Ok(roots))
}

fn plan(name: &str, roots: &[Root], args: &Arguments) -> Result<Plan, String> {
    let mut plan = Plan::default();
    let most = args.get("maxdepth").and_then(|depth| depth.to_text().parse::<usize>().ok());
    let place = |root: &Root, found: &str| -> Result<Option<String>, String> {
        let Some(below) = found.strip_prefix(&format!("{}/", root.path)) else { return Ok(None) };
        let is_deep = most.is_some_and(|most| below.matches('/').count() > most);
        let chosen =
            !is_deep && is_plain(below) && clean::is_chosen(below, args.get("include_pat"), args.get("exclude_pat"))?;
        Ok(chosen.then(|| path::join(name, below)))
    };
    // A file hides what a later source has in its place.
    let is_occupied = |plan: &Plan, place: &str| {
        plan.dirs.contains(place) || plan.files.keys().any(|file| path::below(place, file).is_some())
    };
    for root in roots {
        for found in files::list(&root.saltenv, Some(&root.path), files::Kind::Files)? {
            let Some(place) = place(root, &found)? else { continue };
            if is_occupied(&plan, &place) {
                continue;
            }
            plan.kept.add(&place);
            plan.dirs.insert(path::dirname(&place).to_owned());
            plan.files.insert(place, Source { path: found, saltenv: root.saltenv.clone() });
        }
        if args.flag("include_empty", false) {
            for found in files::list(&root.saltenv, Some(&root.path), files::Kind::Dirs)? {
                // The directory itself is one of them, as Salt writes it.
                let place = match found == root.path {
                    true => clean::is_chosen(".", args.get("include_pat"), args.get("exclude_pat"))?
                        .then(|| format!("{}/.", name.trim_end_matches('/'))),
                    false => place(root, &found)?.filter(|place| !is_occupied(&plan, place)),
                };
                if let Some(place) = place {
                    plan.kept.add(&place);
                    plan.dirs.insert(place);
                }
            }
        }
    }
    Ok(plan)
}

/// The arguments of a file's state.
fn of_file(args: &Arguments, source: &Source) -> Arguments {
    let mut of_file = Arguments::from(args.others(&OWN).cloned().collect());
    for name in ["user", "group", "template", "context", "defaults", "backup"] {
        of_file.set(name, args.value(name));
    }
    if args.get("user").is_none() {
        of_file.set("user", args.owner().user);
    }
    of_file.set("source", format!("salt://{}?saltenv={}", source.path, source.saltenv).into());
    of_file.set("mode", args.value("file_mode"));
    of_file.set("makedirs", true.into());
    of_file.set("replace", args.flag("replace", true).into());
    of_file
}

/// The results of all files and directories as one.
struct All<'a> {
    name: &'a str,
    ret: Ret,
    /// Of each path, in the order in which they came.
    comments: Vec<(String, Vec<String>)>,
    clean: bool,
    dry: bool,
}

impl All<'_> {
    fn add(&mut self, place: &str, ret: Ret) {
        if ret.result == Some(false) || self.ret.result == Some(true) {
            self.ret.result = ret.result;
        }
        if ret.result != Some(true) && !ret.comment.is_empty() {
            match self.comments.iter_mut().find(|(known, _)| known == place) {
                Some((_, lines)) => lines.push(ret.comment),
                None => self.comments.push((place.to_owned(), vec![ret.comment])),
            }
        }
        if !ret.changes.is_empty() {
            self.ret.change(place, Value::Dict(ret.changes));
        }
    }

    /// With `clean`, removes what is of another kind at a place. Returns whether the state of the place runs.
    fn makes_room(&mut self, place: &str, is_file: bool, replaced: &str, replaces: bool) -> Result<bool, String> {
        if !self.clean || !replaces {
            return Ok(true);
        }
        let is_directory = match changes::look(place, true)? {
            None => return Ok(true),
            Some(entry) => entry.kind == Kind::Directory,
        };
        if is_directory != is_file {
            return Ok(true);
        }
        let mut ret = Ret::new();
        if self.dry {
            ret.result = None;
            ret.comment = match is_file {
                true => format!("Replacing directory {place} with a file"),
                false => format!("Replacing {place} with a directory"),
            };
            self.add(place, ret);
            return Ok(false);
        }
        changes::remove(place, true)?;
        ret.change("diff", replaced);
        self.add(place, ret);
        Ok(true)
    }

    fn done(mut self) -> Ret {
        let parts = self.comments.iter().map(|(place, lines)| format!("\n#### {place} ####\n{}", lines.join("\n")));
        self.ret.comment = parts.collect::<Vec<_>>().join("\n").trim().to_owned();
        if self.ret.comment.is_empty() {
            self.ret.comment = format!("Recursively updated {}", self.name);
        }
        if self.ret.changes.is_empty() && self.ret.result == Some(true) {
            self.ret.comment = format!("The directory {} is in the correct state", self.name);
        }
        self.ret
    }
}
