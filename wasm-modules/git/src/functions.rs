//! What functions do that is more than one command.

use brine_guest::changes;
use brine_guest::path::{basename, join};
use brine_guest::{Data, Result, Value};

use crate::arguments::{flag, full, split, text, texts};
use crate::config;
use crate::given::Given;
use crate::repository::{Refs, refs};
use crate::run::{Command, Git, expanded, halves, is_directory};
use crate::url;

/// Names of `git status --porcelain`.
const STATUS: [(&str, &str); 4] = [("M", "modified"), ("A", "new"), ("D", "deleted"), ("??", "untracked")];

fn dict(refs: &Refs) -> Data {
    Value::dict(refs.iter().map(|(name, hash)| (name.as_str(), hash.as_str().into()))).into()
}

pub(crate) fn archive(given: &Given) -> Result<bool> {
    let cwd = given.cwd()?;
    let output = expanded(&text(given.output.as_ref())?.unwrap_or_default(), text(given.user.as_ref())?.as_deref())?;
    let mut command = given.command("archive")?;
    match text(given.prefix.as_ref())? {
        Some(prefix) if prefix.is_empty() => {}
        Some(prefix) => command = command.arg("--prefix").arg(prefix),
        None => command = command.arg("--prefix").arg(format!("{}/", basename(&cwd))),
    }
    if let Some(format) = full(given.format.as_ref())? {
        command = command.arg("--format").arg(format);
    }
    given.run(command.arg("--output").arg(output).arg(given.rev("HEAD")?)).map(|_| true)
}

pub(crate) fn checkout(given: &Given) -> Result<String> {
    let options = given.options()?;
    let rev = text(given.rev.as_ref())?;
    if rev.is_none() && !options.iter().any(|option| option == "-b" || option == "-B") {
        return Err("'rev' argument is required unless -b or -B in opts".into());
    }
    let force = flag(given.force.as_ref(), false)?.then_some("--force");
    given.run(given.command("checkout")?.args(force).args(options).args(rev).merged())
}

pub(crate) fn clone(given: &Given) -> Result<()> {
    let Some(address) = full(given.url.as_ref())? else { return Err("Missing 'url' argument".into()) };
    let cwd = given.cwd()?;
    let mut command = Command::new(given.git_options()?)
        .arg("clone")
        .args(given.options()?)
        .arg("--")
        .arg(given.login()?.at(&address)?);
    command = match text(given.name.as_ref())? {
        Some(name) => {
            if !is_directory(&cwd) {
                let owner = changes::Owner { user: None, group: None };
                changes::make_directory(&cwd, true, &owner, None)?;
            }
            command.arg(name).at(&cwd)
        }
        // A directory that every user can enter.
        None => command.arg(cwd).at("/tmp"),
    };
    given.run(command).map(drop)
}

pub(crate) fn config_get_regexp(given: &Given) -> Result<Data> {
    let value = text(given.value_regex.as_ref())?;
    let found = given.git()?.config_get_regexp(&given.scope()?, &given.key()?, value.as_deref())?;
    Ok(config::value(&found).into())
}

pub(crate) fn config_set(given: &Given) -> Result<Data> {
    let (scope, key, git) = (given.scope()?, given.key()?, given.git()?);
    match (text(given.value.as_ref())?, texts(given.multivar.as_ref())?) {
        (Some(_), Some(_)) => return Err("Only one of 'value' and 'multivar' is permitted".into()),
        (Some(value), None) => git.config_set(&scope, &key, &[value], flag(given.add.as_ref(), false)?)?,
        (None, values) => git.config_set(&scope, &key, &values.unwrap_or_default(), false)?,
    }
    Ok(git.config_get(&scope, &key)?.map_or(Value::None, Value::from).into())
}

impl Git {
    pub(crate) fn describe(&self, cwd: &str, rev: &str) -> Result<String> {
        self.run(&Command::new(["describe", "--always", rev]).at(cwd).probing())
    }

    /// The status of files: a dict of lists.
    pub(crate) fn status(&self, cwd: &str) -> Result<Value> {
        let listed = self.run(&Command::new(["status", "-z", "--porcelain"]).at(cwd).probing())?;
        let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
        for (state, file) in listed.split('\0').filter_map(halves) {
            let state = STATUS.iter().find(|(short, _)| *short == state).map_or(state, |(_, name)| name);
            match found.iter_mut().find(|(known, _)| *known == state) {
                Some((_, files)) => files.push(file),
                None => found.push((state, vec![file])),
            }
        }
        Ok(Value::dict(found.into_iter().map(|(state, files)| (state, files.into()))))
    }
}

pub(crate) fn status(given: &Given) -> Result<Data> {
    Ok(given.git()?.status(&given.cwd()?)?.into())
}

pub(crate) fn diff(given: &Given) -> Result<String> {
    let (no_index, cached) = (flag(given.no_index.as_ref(), false)?, flag(given.cached.as_ref(), false)?);
    if no_index && cached {
        return Err("The 'no_index' and 'cached' options cannot be used together".into());
    }
    let items = [full(given.item1.as_ref())?, full(given.item2.as_ref())?];
    let mut command = given.command("diff")?.args(given.options()?).merged().probing();
    command = match (no_index, cached) {
        (true, _) => command.arg("--no-index"),
        (_, true) => command.arg("--cached").args(items.into_iter().next().flatten()),
        _ => command.args(items.into_iter().flatten()),
    };
    if let Some(paths) = texts(given.paths.as_ref())?.filter(|paths| !paths.is_empty()) {
        command = command.arg("--").args(paths);
    }
    // Outside of a repository, the code says whether the files differ.
    if no_index { Ok(given.git()?.output(&command)?.stdout) } else { given.run(command) }
}

pub(crate) fn init(given: &Given) -> Result<String> {
    let mut command = Command::new(given.git_options()?).arg("init");
    command = command.args(flag(given.bare.as_ref(), false)?.then_some("--bare"));
    if let Some(template) = text(given.template.as_ref())? {
        command = command.arg(format!("--template={template}"));
    }
    if let Some(folder) = text(given.separate_git_dir.as_ref())? {
        command = command.arg(format!("--separate-git-dir={folder}"));
    }
    match given.shared.as_ref().map(Data::value).transpose()?.unwrap_or_default() {
        Value::None => {}
        Value::Int(bits) => command = command.arg(format!("--shared=0{bits}")),
        Value::Text(shared) => command = command.arg(format!("--shared={shared}")),
        other => command = command.arg(format!("--shared={}", other.to_text().to_lowercase())),
    }
    given.run(command.args(given.options()?).arg(given.cwd()?))
}

pub(crate) fn list_worktrees(given: &Given) -> Result<Value> {
    let (all, stale) = (flag(given.all.as_ref(), false)?, flag(given.stale.as_ref(), false)?);
    if all && stale {
        return Err("'all' and 'stale' cannot both be set to True".into());
    }
    let (git, cwd) = (given.git()?, given.cwd()?);
    let listed = git.run(&Command::new(["worktree", "list", "--porcelain"]).at(&cwd))?;
    let mut found = Vec::new();
    for block in listed.split("\n\n") {
        let of = |key: &str| block.lines().find_map(|line| line.strip_prefix(key)).filter(|text| !text.is_empty());
        let detached = block.lines().any(|line| line == "detached");
        let branch = of("branch ").map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(branch));
        let (Some(folder), Some(head)) = (of("worktree "), of("HEAD ")) else { continue };
        if branch.is_none() && !detached {
            continue;
        }
        let is_stale = !is_directory(folder);
        if !(all || is_stale == stale) {
            continue;
        }
        let mut entries = vec![("stale", Value::from(is_stale)), ("HEAD", head.into()), ("detached", detached.into())];
        entries.push(("branch", branch.map(str::to_owned).into()));
        if detached {
            let tags = git.run(&Command::new(["tag", "--points-at", head]).at(&cwd))?;
            if !tags.is_empty() {
                entries.push(("tags", tags.lines().collect::<Vec<_>>().into()));
            }
        }
        found.push((folder, Value::dict(entries)));
    }
    Ok(Value::dict(found))
}

pub(crate) fn ls_remote(given: &Given) -> Result<Data> {
    let remote = given.login()?.at(&text(given.remote.as_ref())?.unwrap_or_else(|| "origin".into()))?;
    let mut command = Command::new(given.git_options()?).arg("ls-remote").args(given.options()?).plain().arg(remote);
    if text(given.cwd.as_ref())?.is_some() {
        command = command.at(&given.cwd()?);
    }
    Ok(dict(&refs(&given.run(command.args(full(given.ref_.as_ref())?))?)))
}

pub(crate) fn merge_base(given: &Given) -> Result<Value> {
    let is = |argument: &Option<Data>| flag(argument.as_ref(), false);
    let (all, octopus, is_ancestor) = (is(&given.all)?, is(&given.octopus)?, is(&given.is_ancestor)?);
    let (independent, fork_point) = (is(&given.independent)?, full(given.fork_point.as_ref())?);
    if all && (independent || is_ancestor || fork_point.is_some()) {
        return Err("The 'all' argument is not compatible with 'independent', 'is_ancestor', or 'fork_point'".into());
    }
    if [octopus, independent, is_ancestor, fork_point.is_some()].into_iter().filter(|one| *one).count() > 1 {
        return Err("Only one of 'octopus', 'independent', 'is_ancestor', and 'fork_point' is permitted".into());
    }
    let mut commits: Vec<String> =
        texts(given.refs.as_ref())?.unwrap_or_default().iter().map(|commit| commit.trim().to_owned()).collect();
    if is_ancestor && commits.len() != 2 {
        return Err("Two refs/commits are required if 'is_ancestor' is True".into());
    }
    if fork_point.is_some() && commits.len() > 1 {
        return Err("At most one ref/commit can be passed if 'fork_point' is specified".into());
    }
    if fork_point.is_some() && commits.is_empty() {
        commits.push("HEAD".into());
    }
    let command = given
        .command("merge-base")?
        .args(given.options()?)
        .args(all.then_some("--all"))
        .args(octopus.then_some("--octopus"))
        .args(is_ancestor.then_some("--is-ancestor"))
        .args(independent.then_some("--independent"))
        .args(fork_point.into_iter().flat_map(|point| ["--fork-point".to_owned(), point]))
        .args(commits);
    if is_ancestor {
        return Ok(given.git()?.output(&command)?.succeeded().into());
    }
    let found = given.run(command)?;
    let mut bases = found.lines();
    if all {
        Ok(bases.collect::<Vec<_>>().into())
    } else {
        Ok(bases.next().ok_or("there is no common ancestor")?.into())
    }
}

pub(crate) fn merge_tree(given: &Given) -> Result<String> {
    let [one, other] = [text(given.ref1.as_ref())?.unwrap_or_default(), text(given.ref2.as_ref())?.unwrap_or_default()];
    let base = match text(given.base.as_ref())? {
        Some(base) => base,
        None => {
            let command = Command::new(["merge-base", one.as_str(), other.as_str()]).at(&given.cwd()?);
            let found = given.run(command).ok().and_then(|found| found.lines().next().map(str::to_owned));
            found.ok_or_else(|| format!("Unable to determine merge base for {one} and {other}"))?
        }
    };
    given.run(Command::new(["merge-tree".into(), base, one, other]).at(&given.cwd()?))
}

pub(crate) fn rebase(given: &Given) -> Result<String> {
    let options = given.options()?;
    if options.iter().any(|option| option == "-i" || option == "--interactive") {
        return Err("Interactive rebases are not supported".into());
    }
    given.run(given.command("rebase")?.args(options).args(split(&given.rev("master")?)?))
}

pub(crate) fn remote_get(given: &Given, redacted: bool) -> Result<Data> {
    let cwd = given.cwd()?;
    let name = text(given.remote.as_ref())?.unwrap_or_else(|| "origin".into());
    let remotes = given.git()?.remotes(&cwd, redacted)?;
    match remotes.iter().find(|remote| remote.name == name) {
        Some(remote) => Ok(remote.value().into()),
        None => Err(format!("Remote '{name}' not present in git checkout located at {cwd}")),
    }
}

pub(crate) fn remote_refs(given: &Given) -> Result<Data> {
    let kinds = [("--heads", &given.heads), ("--tags", &given.tags)];
    let mut options = Vec::new();
    for (option, argument) in kinds {
        options.extend(flag(argument.as_ref(), false)?.then_some(option));
    }
    let address = text(given.url.as_ref())?.unwrap_or_default();
    let filter = full(given.filter.as_ref())?;
    Ok(dict(&given.git()?.remote_refs(&address, &given.login()?, &options, filter)?))
}

pub(crate) fn remote_set(given: &Given) -> Result<Data> {
    let address = given.login()?.at(&text(given.url.as_ref())?.unwrap_or_default())?;
    let push = match full(given.push_url.as_ref())? {
        None => None,
        Some(push) => {
            let (user, password) = (text(given.push_https_user.as_ref())?, text(given.push_https_pass.as_ref())?);
            Some(url::with_auth(&push, user.as_deref(), password.as_deref())?)
        }
    };
    let name = text(given.remote.as_ref())?.unwrap_or_else(|| "origin".into());
    given.git()?.remote_set(&given.cwd()?, &name, &address, push.as_deref())?;
    remote_get(given, true)
}

pub(crate) fn symbolic_ref(given: &Given) -> Result<String> {
    let options = given.options()?;
    let value = full(given.value.as_ref())?;
    if value.is_some() && options.iter().any(|option| option == "-d" || option == "--delete") {
        return Err("Value cannot be set for symbolic ref if -d/--delete is included in opts".into());
    }
    given.run(given.command("symbolic-ref")?.args(options).args(text(given.ref_.as_ref())?).args(value))
}

pub(crate) fn tag(given: &Given) -> Result<String> {
    let options = given.options_but(&["-a", "--annotate"])?;
    if options.iter().any(|option| option == "-m" || option.contains("--message")) {
        return Err("Tag messages must be passed in the \"message\" argument".into());
    }
    let message = text(given.message.as_ref())?.into_iter().flat_map(|text| ["-a".into(), "-m".into(), text]);
    let removes = options.iter().any(|option| option == "-d" || option == "--delete");
    let commit = text(given.ref_.as_ref())?.unwrap_or_else(|| "HEAD".into());
    let command = given.command("tag")?.args(message.collect::<Vec<String>>()).args(options);
    given.run(command.args(text(given.name.as_ref())?).args((!removes).then_some(commit)).merged())
}

pub(crate) fn version(parts: bool) -> Result<Data> {
    let said = Git::default().run(&Command::new(["--version"]))?;
    let said = said.split('(').next().unwrap_or_default();
    let version = said.split_whitespace().last().unwrap_or("unknown");
    if !parts {
        return Ok(version.into());
    }
    let part = |part: &str| part.parse::<i64>().map_or_else(|_| Value::from(part), Value::Int);
    Ok(Value::List(version.split('.').map(part).collect()).into())
}

pub(crate) fn worktree_add(given: &Given) -> Result<String> {
    let folder = text(given.worktree_path.as_ref())?.unwrap_or_default();
    let (branch, detach) = (full(given.branch.as_ref())?, flag(given.detach.as_ref(), false)?);
    if branch.is_some() && detach {
        return Err("Only one of 'branch' and 'detach' is allowed".into());
    }
    let mut command = given.command("worktree")?.arg("add");
    command = if detach {
        command.arg("--detach")
    } else {
        let how = if flag(given.reset_branch.as_ref(), false)? { "-B" } else { "-b" };
        let branch = branch.unwrap_or_else(|| basename(&folder).into());
        command.arg(how).arg(branch).args(flag(given.force.as_ref(), false)?.then_some("--force"))
    };
    given.run(command.args(given.options()?).arg(folder).args(full(given.ref_.as_ref())?).merged())
}

pub(crate) fn worktree_prune(given: &Given) -> Result<String> {
    let dry = flag(given.dry_run.as_ref(), false)?.then_some("--dry-run");
    let verbose = flag(given.verbose.as_ref(), true)?.then_some("--verbose");
    let expire = full(given.expire.as_ref())?.into_iter().flat_map(|time| ["--expire".to_owned(), time]);
    let command = given.command("worktree")?.arg("prune").args(dry).args(verbose).args(expire).args(given.options()?);
    // Git says it on standard error.
    given.run(command.merged())
}

pub(crate) fn worktree_rm(given: &Given) -> Result<()> {
    let cwd = given.cwd()?;
    if changes::look(&cwd, true)?.is_none() {
        return Err(format!("{cwd} does not exist"));
    }
    if !Git::default().is_worktree(&cwd) {
        return Err(format!("{cwd} is not a git worktree"));
    }
    changes::remove(&join("/", &cwd), true).map_err(|why| format!("Unable to remove {cwd}: {why}"))?;
    Ok(())
}
