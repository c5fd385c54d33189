//! A new clone.

use brine_guest::states::is_dry_run;

use super::super::asked::{self, Place};
use super::super::report::{Report, stripped};
use super::remote::Kind;
use super::upstream::{Change, Upstream};
use super::{End, Job};
use crate::run::Command;

impl Job<'_> {
    pub(super) fn clone(&self, report: &mut Report) -> Result<End, String> {
        let wanted = self.wanted;
        let (name, target) = (&wanted.name, &wanted.target);
        let new = format!("{name} => {target}");
        match asked::place(target, wanted.force_clone)? {
            Place::Free => {}
            Place::Kept => return Ok(End::Failed(asked::kept(target))),
            Place::Full(_) if is_dry_run() => {
                report.change("forced clone", true);
                report.change("new", new);
                return Ok(End::Would(asked::would_empty(target, name)));
            }
            Place::Full(names) => {
                if let Err(why) = asked::empty(target, &names) {
                    return Ok(End::Failed(why));
                }
                report.change("forced clone", true);
            }
        }
        if is_dry_run() {
            report.change("new", new);
            return Ok(End::Would(format!("Repository {name} would be cloned to {target}")));
        }
        let mut options = Vec::new();
        options.extend(if wanted.mirror { Some("--mirror") } else { wanted.bare.then_some("--bare") });
        if wanted.remote != "origin" {
            options.extend(["--origin", &wanted.remote]);
        }
        if let Some(depth) = &wanted.depth {
            options.extend(["--depth", depth, "--branch", &wanted.rev]);
        }
        let options = options.into_iter().map(str::to_owned).collect();
        if let Err(why) = wanted.git.clone_to(target, name, &wanted.login, options) {
            return Ok(End::Failed(format!("Clone failed: {}", stripped(&why))));
        }
        report.change("new", new);
        let how = if wanted.mirror { " as mirror" } else { ["", " as bare repository"][usize::from(wanted.bare)] };
        report.say(format!("{name} cloned to {target}{how}"));
        if !wanted.bare
            && let Some(rev) = &self.remote.rev
            && let Some(end) = self.check_out(rev, report)?
        {
            return Ok(end);
        }
        if wanted.submodules
            && self.remote.rev.is_some()
            && let Some(end) = self.submodules()
        {
            return Ok(end);
        }
        Ok(End::Done { old: None, new: self.checked_out() })
    }

    /// Checks out what a fresh clone is to have. Some is how the run ends.
    fn check_out(&self, rev: &str, report: &mut Report) -> Result<Option<End>, String> {
        let (wanted, remote, own) = (self.wanted, self.remote, self.own);
        let target = &wanted.target;
        if remote.kind == Some(Kind::Tag) && !own.tags(target)?.contains(&wanted.rev) {
            return Ok(Some(End::Failed(format!("Revision '{}' does not exist in clone", wanted.rev))));
        }
        if let Some(branch) = &wanted.branch
            && !own.branches(target)?.contains(branch)
        {
            own.run(&Command::new(["checkout", "-b", branch, self.start(rev)]).at(target).merged())?;
            report.say(format!("Branch '{branch}' checked out, with {} as a starting point", remote.location));
        }
        let local = self.checked_out();
        let local_branch = own.current_branch(target).ok();
        if local_branch.is_none() && !remote.has_head {
            return Ok(Some(End::Failed(
                "Remote HEAD refers to a ref that does not exist. This can happen when the default branch on the remote \
                 repository is renamed or deleted. If you are unable to fix the remote repository, you can work around this \
                 by setting the 'branch' argument (which will ensure that the named branch is created if it does not already \
                 exist)."
                    .into(),
            )));
        }
        if !remote.is(local.as_deref()) {
            own.run(&Command::new(["reset", "--hard", rev]).at(target))?;
            report.say(format!("Repository was reset to {}", remote.location));
        }
        let local_branch = local_branch.ok_or("HEAD is no branch and no commit")?;
        let upstream = self.upstream(&local_branch);
        let is_new = match &wanted.branch {
            Some(branch) => !own.branches(target)?.contains(branch),
            None => false,
        };
        if let Some(change) = Change::of(upstream.as_deref(), &remote.upstream, is_new)
            && let Some(options) = &change.options
        {
            own.run(&Command::new(["branch"]).args(options.iter().map(String::as_str)).at(target))?;
            report.say(change.said("was"));
        }
        Ok(None)
    }

    /// From where a new branch starts.
    pub(super) fn start<'a>(&'a self, rev: &'a str) -> &'a str {
        match &self.remote.upstream {
            _ if self.wanted.rev == "HEAD" => rev,
            Upstream::Is(upstream) => upstream,
            _ => &self.wanted.rev,
        }
    }

    /// What a branch follows; none if nothing.
    pub(super) fn upstream(&self, branch: &str) -> Option<String> {
        self.own.rev_parse(&self.wanted.target, &["--abbrev-ref"], &format!("{branch}@{{upstream}}")).ok()
    }
}
