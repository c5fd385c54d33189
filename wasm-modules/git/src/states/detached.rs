//! `git.detached`: a commit is checked out, on no branch.

use brine_guest::path::join;
use brine_guest::states::{StateResult, is_dry_run};

use super::asked::{self, Place, is_hash};
use super::report::{Report, stripped};
use crate::repository::{Login, hash_of};
use crate::run::{Command, Git, is_directory};

/// What is asked for.
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) rev: String,
    pub(super) target: String,
    pub(super) remote: String,
    pub(super) git: Git,
    pub(super) login: Login,
    pub(super) force_clone: bool,
    pub(super) force_checkout: bool,
    pub(super) fetch_remote: bool,
    pub(super) hard_reset: bool,
    pub(super) submodules: bool,
}

pub(super) fn detached(mut wanted: Wanted) -> Result<StateResult, String> {
    if let Some(why) = asked::unusable(&wanted.target, &wanted.git, ["Target", "Identity"]) {
        return Ok(StateResult::bad(why));
    }
    if let Err(why) = wanted.login.at(&wanted.name) {
        return Ok(StateResult::bad(why));
    }
    let by_hash = is_hash(&wanted.rev);
    if by_hash {
        wanted.rev = wanted.rev.to_lowercase();
    }
    let Wanted { name, rev, target, remote, git, login, .. } = &wanted;
    let own = Git::new(git.user.clone());
    let mut report = Report::default();
    let (mut is_here, mut old) = (false, None);
    if is_directory(&join(target, ".git")) || own.is_worktree(target) {
        old = own.rev_parse(target, &[], "HEAD").ok();
        if by_hash {
            is_here = own.describe(target, rev).is_ok();
        } else {
            let remotes = own.remotes(target, false)?;
            let known = remotes.iter().find(|known| known.name == *remote);
            let fetch = known.and_then(|known| known.fetch.clone());
            if !fetch.as_ref().is_some_and(|fetch| fetch.contains(name.as_str())) {
                if is_dry_run() {
                    return Ok(report.would(format!("Remote {remote} would be set to {name}")));
                }
                own.remote_set(target, remote, &login.at(name)?, None)?;
                let was = fetch.unwrap_or_else(|| "None".into());
                report.say(format!("Remote {remote} updated from '{was}' to '{name}'"));
            }
        }
    } else {
        match asked::place(target, wanted.force_clone)? {
            Place::Free => {}
            Place::Kept => return Ok(report.fail(asked::kept(target))),
            Place::Full(_) if is_dry_run() => return Ok(report.would(asked::would_empty(target, name))),
            Place::Full(names) => {
                if let Err(why) = asked::empty(target, &names) {
                    return Ok(report.fail(why));
                }
                report.change("forced clone", true);
            }
        }
        if is_dry_run() {
            return Ok(report.would(format!("Repository {name} would be cloned to {target}")));
        }
        let mut options = vec!["--no-checkout".to_owned()];
        if remote != "origin" {
            options.extend(["--origin".to_owned(), remote.clone()]);
        }
        if let Err(why) = git.clone_to(target, name, login, options) {
            return Ok(report.fail(stripped(&why)));
        }
        report.say(format!("{name} cloned to {target}"));
    }
    if !is_here && wanted.fetch_remote {
        if is_dry_run() {
            return Ok(report.would(format!("Repository remote {remote} would be fetched")));
        }
        let refspecs = asked::refspecs(remote, "*", "*");
        match git.fetch(target, Some(remote), true, &refspecs, (Vec::new(), Vec::new())) {
            Err(why) => return Ok(report.fail(format!("Fetch failed:\n\n{why}"))),
            Ok(new) if !new.truthy() => {}
            Ok(_) => report.say(format!("Remote {remote} was fetched, resulting in updated refs")),
        }
    }
    let commit = if by_hash {
        own.describe(target, rev)?;
        rev.clone()
    } else {
        let refs = match git.remote_refs(target, login, &[], None) {
            Ok(refs) => refs,
            Err(why) => return Ok(report.fail_alone(format!("Failed to list refs for {remote}: {}", stripped(&why)))),
        };
        let names = [format!("refs/remotes/{remote}/{rev}"), format!("refs/tags/{rev}")];
        match names.iter().find_map(|name| hash_of(&refs, name)) {
            Some(hash) => hash.to_owned(),
            None => return Ok(report.fail_alone(format!("Revision '{rev}' does not exist"))),
        }
    };
    if wanted.hard_reset {
        if is_dry_run() {
            return Ok(report.would(format!("Hard reset to HEAD would be performed on {target}")));
        }
        own.run(&Command::new(["reset", "--hard", "HEAD"]).at(target))?;
        report.say("Repository was reset to HEAD before checking out revision");
    }
    let mut new = None;
    if old.as_deref() != Some(commit.as_str()) {
        if is_dry_run() {
            report.moved("HEAD", old.as_deref(), Some(&commit));
            return Ok(report.would(format!("Commit ID {commit} would be checked out at {target}")));
        }
        let force = wanted.force_checkout.then_some("--force");
        own.run(&Command::new(["checkout"]).args(force).arg(commit.as_str()).at(target).merged())?;
        report.say(format!("Commit ID {commit} was checked out at {target}"));
        new = own.rev_parse(target, &[], "HEAD").ok();
    }
    if wanted.submodules {
        git.submodules(target)?;
        report.say("Submodules were updated");
    }
    match new {
        Some(new) => report.moved("HEAD", old.as_deref(), Some(&new)),
        None => report.say("Already checked out at correct revision"),
    }
    Ok(report.done())
}
