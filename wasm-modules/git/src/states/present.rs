//! `git.present` and `git.cloned`.

use brine_guest::changes;
use brine_guest::path::join;
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Data, Value};

use super::report::{Report, stripped};
use crate::arguments::full;
use crate::given::Given;
use crate::repository::Login;
use crate::run::{Command, Git, is_directory, is_file};
use crate::{arguments, functions};

/// A repository that is to be there.
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) force: bool,
    pub(super) bare: bool,
    pub(super) template: Option<Data>,
    pub(super) separate_git_dir: Option<Data>,
    pub(super) shared: Option<Data>,
    pub(super) user: Option<Data>,
}

pub(super) fn present(wanted: &Wanted) -> Result<StateResult, String> {
    let Wanted { name, force, bare, .. } = wanted;
    let mut report = Report::default();
    let kind = if *bare { "bare " } else { "" };
    if is_directory(name) {
        let git = Git::new(arguments::text(wanted.user.as_ref())?);
        let is_there = match bare {
            true => is_file(&join(name, "HEAD")),
            false => is_directory(&join(name, ".git")) || git.is_worktree(name),
        };
        if is_there {
            return Ok(StateResult::good(""));
        }
        if *force {
            if is_dry_run() {
                report.change("new", name.as_str());
                report.change("forced init", true);
                return Ok(report.would(format!(
                    "Target directory {name} exists. Since force=True, the contents of {name} would be deleted, and a \
                     {kind}repository would be initialized in its place."
                )));
            }
            if let Err(why) = changes::remove(name, true) {
                return Ok(report.fail(format!("Unable to remove {name}: {why}")));
            }
            report.change("forced init", true);
        } else if !changes::list(name)?.is_empty() {
            return Ok(report.fail(format!(
                "Target '{name}' exists, is non-empty, and is not a git repository. Set the 'force' option to True to remove \
                 this directory's contents and proceed with initializing a repository"
            )));
        }
    }
    if is_dry_run() {
        report.change("new", name.as_str());
        return Ok(report.would(format!("New {kind}repository would be created")));
    }
    functions::init(&Given {
        cwd: Some(name.as_str().into()),
        bare: Some((*bare).into()),
        template: wanted.template.clone(),
        separate_git_dir: wanted.separate_git_dir.clone(),
        shared: wanted.shared.clone(),
        user: wanted.user.clone(),
        ..Given::default()
    })?;
    report.say(format!("Initialized {kind}repository in {name}"));
    if let Some(template) = full(wanted.template.as_ref())? {
        report.say(format!("Template directory set to {template}"));
    }
    if let Some(folder) = full(wanted.separate_git_dir.as_ref())? {
        report.say(format!("Gitdir set to {folder}"));
    }
    report.change("new", name.as_str());
    Ok(report.done())
}

pub(super) fn cloned(
    name: &str,
    target: &str,
    branch: Option<&str>,
    git: &Git,
    login: &Login,
) -> Result<StateResult, String> {
    if !target.starts_with('/') {
        return Ok(StateResult::bad("'target' path must be absolute"));
    }
    if branch == Some("") {
        return Ok(StateResult::bad("Invalid 'branch' argument"));
    }
    let mut report = Report::default();
    if changes::look(target, true)?.is_none() {
        let what = branch.map(|branch| format!(" with branch '{branch}'")).unwrap_or_default();
        let new = format!("{name} => {target}");
        if is_dry_run() {
            report.change("new", new);
            return Ok(report.would(format!("{name} would be cloned to {target}{what}")));
        }
        let options = branch.map(|branch| vec!["--branch".to_owned(), branch.to_owned()]).unwrap_or_default();
        if let Err(why) = git.clone_to(target, name, login, options) {
            return Ok(report.fail(format!("Clone failed: {}", stripped(&why))));
        }
        report.say(format!("{name} cloned to {target}{what}"));
        report.change("new", new);
        return Ok(report.done());
    }
    let own = Git::new(git.user.clone());
    if let Err(why) = own.status(target) {
        return Ok(StateResult::bad(why));
    }
    let there = |branch: &str| StateResult::good(format!("Repository already exists at {target}{branch}"));
    let Some(branch) = branch else { return Ok(there("")) };
    let current = own.current_branch(target)?;
    if current == branch {
        return Ok(there(&format!(" and is checked out to branch '{branch}'")));
    }
    report.change("branch", Value::dict([("old", current.as_str().into()), ("new", branch.into())]));
    if is_dry_run() {
        return Ok(report.would(format!("Branch would be changed to '{branch}'")));
    }
    let command = Command::new(["checkout"]).at(target).merged();
    let command = match own.rev_parse(target, &[], branch) {
        Ok(_) => command.arg(branch),
        Err(_) => command.args(["-b", branch]).arg(format!("origin/{branch}")),
    };
    match own.run(&command) {
        Err(why) => Ok(StateResult::bad(format!("Failed to change branch to '{branch}': {why}"))),
        Ok(_) => {
            report.say(format!("Branch changed to '{branch}'"));
            Ok(report.done())
        }
    }
}

impl Git {
    /// Clones a repository.
    pub(super) fn clone_to(&self, target: &str, url: &str, login: &Login, options: Vec<String>) -> Result<(), String> {
        let command = Command::new(["clone"]).args(options).arg("--").arg(login.at(url)?).arg(target).at("/tmp");
        self.run(&command).map(drop)
    }
}
