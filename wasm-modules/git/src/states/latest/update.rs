//! A clone that is there gets what it is to have.

use brine_guest::Value;
use brine_guest::states::is_dry_run;

use super::super::asked::Reset;
use super::super::report::{Report, joined, short, stripped};
use super::local::Local;
use super::upstream::{Change, Upstream};
use super::{End, Job};
use crate::repository::refs;
use crate::run::Command;
use crate::url::redacted;

/// What an update is, as far as it is known.
struct Plan {
    /// Whether the commit to have is here.
    is_here: bool,
    /// Whether it continues what is checked out; none: not known before a fetch.
    forward: Option<bool>,
    upstream: Option<Change>,
}

impl Job<'_> {
    pub(super) fn update(&self, report: &mut Report) -> Result<End, String> {
        let (wanted, remote, own) = (self.wanted, self.remote, self.own);
        let local = match Local::new(self)? {
            Ok(local) => local,
            Err(end) => return Ok(end),
        };
        let remotes = own.remotes(&wanted.target, false)?;
        let known = remotes.iter().find(|known| known.name == wanted.remote);
        if local.is_changed && local.is_right {
            if wanted.force_reset != Reset::Yes {
                return Ok(End::UpToDate(true));
            }
            if is_dry_run() {
                report.change("forced update", true);
                return Ok(End::Would(format!(
                    "{} is up-to-date, but with uncommitted changes. Since 'force_reset' is set to True, these local changes \
                     would be reset. To only reset when there are changes in the remote repository, set 'force_reset' to \
                     'remote-changes'.",
                    wanted.target
                )));
            }
        }
        let is_here = match local.has_remote(self, known.is_some()) {
            Ok(is_here) => is_here,
            Err(end) => return Ok(end),
        };
        let loses = local.is_changed && wanted.force_reset != Reset::RemoteChanges;
        let mut forward = loses.then_some(false);
        if is_here {
            if let Some(end) = self.kept_head(&local) {
                return Ok(end);
            }
            if forward.is_none() {
                forward = Some(self.is_forward(&local)?);
            }
        }
        if forward == Some(false) && wanted.force_reset == Reset::No {
            return Ok(local.not_forward(self));
        }
        let follows = local.base_branch.as_ref().and_then(|branch| self.upstream(branch));
        let is_new = wanted.branch.as_ref().is_some_and(|branch| !local.branches.contains(branch));
        let upstream = Change::of(follows.as_deref(), &remote.upstream, is_new);
        let plan = Plan { is_here, forward, upstream };
        let Some(rev) = &remote.rev else {
            return if wanted.bare { self.update_bare(report) } else { self.ended(&local) };
        };
        let fetch = known.and_then(|known| known.fetch.clone());
        if fetch.as_deref() != Some(wanted.login.at(&wanted.name)?.as_str())
            && let Some(end) = self.set_remote(fetch.as_deref(), &local, &plan, report)?
        {
            return Ok(end);
        }
        if is_dry_run() {
            return Ok(self.would(&local, &plan, report));
        }
        if plan.upstream.as_ref().is_some_and(|change| change.options.is_some()) && local.branch.is_none() {
            return Ok(End::Failed(
                "Cannot set/unset upstream tracking branch, local HEAD refers to nonexistent branch. This may have been caused \
                 by cloning a remote repository for which the default branch was renamed or deleted. If you are unable to fix \
                 the remote repository, you can work around this by setting the 'branch' argument (which will ensure that the \
                 named branch is created if it does not already exist)."
                    .into(),
            ));
        }
        if let Some(end) = self.bring(rev, &local, plan, report)? {
            return Ok(end);
        }
        if wanted.submodules
            && let Some(end) = self.submodules()
        {
            return Ok(end);
        }
        self.ended(&local)
    }

    fn ended(&self, local: &Local) -> Result<End, String> {
        Ok(End::Done { old: local.rev.clone(), new: self.checked_out() })
    }

    /// How a run ends that changes nothing that is checked out.
    fn kept_head(&self, local: &Local) -> Option<End> {
        let is_other = local.is_right || self.wanted.update_head || local.other_branch(self).is_some();
        (!is_other).then(|| {
            End::Said(format!(
                "{} is already present and local HEAD ({}) does not match, but update_head=False. HEAD has not been updated \
                 locally.",
                self.remote.beginning(&self.wanted.rev),
                local.rev.as_deref().map(short).unwrap_or_default()
            ))
        })
    }

    /// Whether the commit to have continues the one from which the update goes.
    fn is_forward(&self, local: &Local) -> Result<bool, String> {
        match (&local.base_rev, &self.remote.rev) {
            (Some(base), Some(rev)) => self.own.is_ancestor(&self.wanted.target, base, rev),
            _ => Ok(true),
        }
    }

    fn update_bare(&self, report: &mut Report) -> Result<End, String> {
        let target = &self.wanted.target;
        if is_dry_run() {
            // Salt joins the letters of this sentence.
            report.comments =
                format!("Bare repository at {target} would be fetched").chars().map(String::from).collect();
            return Ok(End::UpToDate(false));
        }
        let old = self.checked_out();
        match self.fetch() {
            Err(why) => Ok(self.failed_fetch(&why)),
            Ok(new) => {
                let more = if is_empty(&new) { "" } else { ", resulting in updated refs" };
                report.say(format!("Bare repository at {target} was fetched{more}"));
                Ok(End::Done { old, new: self.checked_out() })
            }
        }
    }

    fn fetch(&self) -> Result<Value, String> {
        let wanted = self.wanted;
        let more = (Vec::new(), Vec::new());
        wanted.git.fetch(&wanted.target, Some(&wanted.remote), wanted.force_fetch, &wanted.refspecs, more)
    }

    fn failed_fetch(&self, why: &str) -> End {
        End::Failed(format!(
            "Fetch failed. Set 'force_fetch' to True to force the fetch if the failure was due to not being able to \
             fast-forward. Output of the fetch command follows:\n\n{}",
            stripped(why)
        ))
    }

    /// Gives the remote its address. Some is how the run ends.
    fn set_remote(
        &self,
        old: Option<&str>,
        local: &Local,
        plan: &Plan,
        report: &mut Report,
    ) -> Result<Option<End>, String> {
        let wanted = self.wanted;
        let url = wanted.login.at(&wanted.name)?;
        let change = |verb: &str| {
            let from = old.map(redacted).unwrap_or_default();
            format!("Remote '{}' {verb} from {from} to {}", wanted.remote, redacted(&url))
        };
        if !is_dry_run() {
            self.own.remote_set(&wanted.target, &wanted.remote, &url, None)?;
            if old.is_none() {
                report.say(format!("Remote '{}' set to {}", wanted.remote, redacted(&url)));
                report.change("new", format!("{} => {}", wanted.name, wanted.remote));
            } else {
                report.say(change("changed"));
            }
            return Ok(None);
        }
        let mut actions = vec![change("would be changed")];
        if !plan.is_here {
            actions.push("Remote would be fetched".into());
        }
        if !local.is_right && wanted.update_head {
            report.moved("revision", local.rev.as_deref(), self.remote.rev.as_deref());
            let how = match plan.forward {
                Some(false) => {
                    report.change("forced update", true);
                    "hard-reset"
                }
                Some(true) => "fast-forwarded",
                None => "updated",
            };
            let new = self.remote.rev.as_deref().map(short).unwrap_or_default();
            actions.push(format!("Repository would be {how} to {new}"));
        }
        Ok(Some(self.planned(actions, local, report)))
    }

    /// How a dry run ends.
    fn planned(&self, actions: Vec<String>, local: &Local, report: &mut Report) -> End {
        if report.has_changes() {
            return End::Would(joined(&actions));
        }
        if !local.is_right && !self.wanted.update_head && !actions.is_empty() {
            return End::Said(joined(&actions));
        }
        report.comments = actions;
        End::UpToDate(false)
    }

    /// What a dry run would do.
    fn would(&self, local: &Local, plan: &Plan, report: &mut Report) -> End {
        let (wanted, remote) = (self.wanted, self.remote);
        let of = |rev: &Option<String>| rev.as_deref().map_or_else(|| "None".to_owned(), |rev| short(rev).to_owned());
        let new = of(&remote.rev);
        let other = local.other_branch(self);
        let mut actions = Vec::new();
        if !plan.is_here {
            actions.push(format!("Remote '{}' would be fetched", wanted.remote));
        }
        if !local.is_right && (wanted.update_head || other.is_some()) {
            report.moved("revision", local.rev.as_deref(), remote.rev.as_deref());
        }
        match other {
            Some(branch) if !local.branches.contains(branch) => {
                actions.push(format!(
                    "New branch '{branch}' would be checked out, with {} as a starting point",
                    remote.location
                ));
                if let Upstream::Is(to) = &remote.upstream {
                    actions.push(format!("Tracking branch would be set to {to}"));
                }
            }
            Some(branch) => {
                let how = match plan.forward {
                    Some(false) => "hard-reset",
                    Some(true) => "fast-forwarded",
                    None => "updated",
                };
                actions.push(format!("Branch '{branch}' would be checked out and {how} to {new}"));
            }
            None if local.is_right => {}
            None if !wanted.update_head => actions.push(format!(
                "Local HEAD ({}) does not match {} but update_head=False, HEAD would not be updated locally",
                of(&local.rev),
                remote.location
            )),
            None => {
                let how = match plan.forward {
                    Some(true) => "fast-forwarded",
                    _ if wanted.force_reset != Reset::No && plan.is_here => "hard-reset",
                    _ => "updated",
                };
                actions.push(format!("Repository would be {how} from {} to {new}", of(&local.rev)));
            }
        }
        actions.extend(plan.upstream.as_ref().map(|change| change.said("would be")));
        self.planned(actions, local, report)
    }

    /// Tags of the remote repository that are not here, and the reverse. Returns whether there are any.
    fn sync_tags(&self, local: &Local, report: &mut Report) -> Result<bool, String> {
        let (wanted, target) = (self.wanted, &self.wanted.target);
        let command = Command::new(["ls-remote", "--tags"]).plain().arg(wanted.remote.as_str()).at(target);
        let listed = refs(&wanted.git.run(&command)?);
        let there: Vec<String> = listed
            .into_iter()
            .filter(|(name, _)| !name.contains("^{}"))
            .map(|(name, _)| name.replace("refs/tags/", ""))
            .collect();
        let new: Vec<String> = there.iter().filter(|tag| !local.tags.contains(tag)).cloned().collect();
        let gone: Vec<&String> = local.tags.iter().filter(|tag| !there.contains(tag)).collect();
        let differ = !new.is_empty() || !gone.is_empty();
        if !new.is_empty() {
            report.change("new_tags", new);
        }
        if wanted.sync_tags && !gone.is_empty() {
            let mut removed = Vec::new();
            for tag in gone {
                match self.own.run(&Command::new(["tag", "-d", tag]).at(target).merged()) {
                    Ok(_) => removed.push(tag.clone()),
                    Err(why) => report.warnings.push(format!("Failed to remove local tag '{tag}':\n\n{why}\n\n")),
                }
            }
            if !removed.is_empty() {
                report.change("deleted_tags", removed.clone());
                report.say(format!("The following tags were removed from the local checkout: {}", removed.join(", ")));
            }
        }
        Ok(differ)
    }

    /// Fetches and checks out. Some is how the run ends.
    fn bring(&self, rev: &str, local: &Local, mut plan: Plan, report: &mut Report) -> Result<Option<End>, String> {
        let (wanted, remote, own, target) = (self.wanted, self.remote, self.own, &self.wanted.target);
        if self.sync_tags(local, report)? || !plan.is_here {
            match self.fetch() {
                Err(why) => return Ok(Some(self.failed_fetch(&why))),
                Ok(new) if is_empty(&new) => {}
                Ok(_) => report.say(format!("{} was fetched, resulting in updated refs", wanted.name)),
            }
            if let Err(why) = own.rev_parse(target, &[], &format!("{rev}^{{commit}}")) {
                report.comments.clear();
                return Ok(Some(End::Failed(format!(
                    "Fetch did not successfully retrieve rev '{}' from {}: {why}",
                    wanted.rev, wanted.name
                ))));
            }
            if let Some(end) = self.kept_head(local) {
                return Ok(Some(end));
            }
            plan.forward = Some(self.is_forward(local)?);
            let is_kept = wanted.force_reset == Reset::No;
            if is_kept && (plan.forward == Some(false) || local.is_changed) {
                return Ok(Some(local.not_forward(self)));
            }
        }
        if let Some(branch) = local.other_branch(self) {
            if local.is_changed && !wanted.force_checkout {
                report.comments.clear();
                let current = local.branch.as_deref().unwrap_or("None");
                return Ok(Some(End::Failed(format!(
                    "Local branch '{current}' has uncommitted changes. Set 'force_checkout' to True to discard them and \
                     proceed."
                ))));
            }
            let command = Command::new(["checkout"]).args(wanted.force_checkout.then_some("--force"));
            if local.branches.contains(branch) {
                own.run(&command.arg(branch.as_str()).at(target).merged())?;
                report.say(format!("'{branch}' was checked out"));
            } else {
                own.run(&command.args(["-b", branch, self.start(rev)]).at(target).merged())?;
                report.say(format!(
                    "New branch '{branch}' was checked out, with {} as a starting point",
                    remote.location
                ));
            }
        }
        if plan.forward == Some(false) {
            self.files.run(&Command::new(["reset", "--hard", rev]).at(target))?;
            report.change("forced update", true);
            if local.is_changed {
                report.say("Uncommitted changes were discarded");
            }
            report.say(format!("Repository was hard-reset to {}", remote.location));
        } else if plan.forward == Some(true) && local.is_changed && wanted.force_reset != Reset::No {
            own.run(&Command::new(["checkout", "--", "."]).at(target).merged())?;
            report.say("Uncommitted changes were discarded");
        }
        if let Some(change) = &plan.upstream
            && let Some(options) = &change.options
        {
            own.run(&Command::new(["branch"]).args(options.iter().map(String::as_str)).at(target))?;
            report.say(change.said("was"));
        }
        if plan.forward == Some(true) && !remote.is(local.base_rev.as_deref()) {
            return self.forward(rev, report);
        }
        Ok(None)
    }

    /// Goes on to a commit that continues what is checked out. Some is how the run ends.
    fn forward(&self, rev: &str, report: &mut Report) -> Result<Option<End>, String> {
        let (wanted, remote, target) = (self.wanted, self.remote, &self.wanted.target);
        if !matches!(remote.upstream, Upstream::Is(_)) && wanted.rev != "HEAD" {
            self.files.run(&Command::new(["reset", "--hard", wanted.rev.as_str()]).at(target))?;
            report.say(format!("Repository was reset to {} (fast-forward)", wanted.rev));
            return Ok(None);
        }
        if self.own.run(&Command::new(["symbolic-ref", "--quiet", "HEAD"]).at(target))?.is_empty() {
            return Ok(Some(End::Failed("Unable to fast-forward, HEAD is detached".into())));
        }
        self.files.run(&Command::new(["merge", "--ff-only", rev]).at(target))?;
        report.say(format!("Repository was fast-forwarded to {}", remote.location));
        Ok(None)
    }
}

fn is_empty(value: &Value) -> bool {
    !value.truthy()
}
