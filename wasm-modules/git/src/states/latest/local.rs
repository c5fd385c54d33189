//! What a clone has, and what that means for what it is to have.

use super::super::asked::Reset;
use super::super::report::short;
use super::remote::Kind;
use super::{End, Job};
use crate::run::Command;

/// A clone that is there.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) branches: Vec<String>,
    pub(super) tags: Vec<String>,
    pub(super) rev: Option<String>,
    pub(super) branch: Option<String>,
    /// From where an update goes: of the branch that is to be checked out.
    pub(super) base_rev: Option<String>,
    pub(super) base_branch: Option<String>,
    /// Whether files were changed and not committed.
    pub(super) is_changed: bool,
    /// Whether the commit that is checked out is the one to have.
    pub(super) is_right: bool,
}

impl Local {
    /// Looks at the clone. An `Err` within is how the run ends.
    pub(super) fn new(job: &Job<'_>) -> Result<Result<Self, End>, String> {
        let (wanted, own, target) = (job.wanted, job.own, &job.wanted.target);
        let (branches, tags) = (own.branches(target)?, own.tags(target)?);
        let rev = job.checked_out();
        let branch = own.current_branch(target).ok();
        if !wanted.bare && job.remote.rev.is_none() && rev.is_some() {
            return Ok(Err(End::Failed(
                "Remote repository is empty, cannot update from a non-empty to an empty repository".into(),
            )));
        }
        let (mut base_rev, mut base_branch) = (rev.clone(), branch.clone());
        if let Some(other) = wanted.branch.as_ref().filter(|other| Some(*other) != branch.as_ref()) {
            if branches.contains(other) {
                base_rev = match own.rev_parse(target, &[], &format!("{other}^{{commit}}")) {
                    Ok(commit) => Some(commit),
                    Err(why) => {
                        let why = super::super::report::stripped(&why);
                        return Ok(Err(End::Failed(format!(
                            "Unable to get position of local branch '{other}': {why}"
                        ))));
                    }
                };
                base_branch = Some(other.clone());
            } else {
                base_rev = job.remote.rev.clone();
            }
        }
        let is_right = job.remote.is(rev.as_deref());
        let diff = Command::new(["diff", "HEAD"]).at(target).merged().probing();
        let is_changed = !wanted.bare && own.run(&diff).is_ok_and(|diff| !diff.is_empty());
        Ok(Ok(Self { branches, tags, rev, branch, base_rev, base_branch, is_changed, is_right }))
    }

    /// The branch that has to be checked out; none if it is.
    pub(super) fn other_branch<'a>(&self, job: &Job<'a>) -> Option<&'a String> {
        job.wanted.branch.as_ref().filter(|branch| Some(*branch) != self.branch.as_ref())
    }

    /// Whether the commit to have is here, so that nothing has to be fetched. An `Err` within is how the run ends.
    pub(super) fn has_remote(&self, job: &Job<'_>, is_known: bool) -> Result<bool, End> {
        let (wanted, remote, own) = (job.wanted, job.remote, job.own);
        let Some(rev) = remote.rev.as_deref() else { return Ok(false) };
        if remote.kind == Some(Kind::Hash) && self.base_rev.as_ref().is_some_and(|base| base.starts_with(rev)) {
            return Ok(true);
        }
        let commit = |name: &str| own.rev_parse(&wanted.target, &[], name).ok();
        if commit(&format!("{rev}^{{commit}}")).is_none() {
            return Ok(false);
        }
        match remote.kind {
            // The branch may have been moved since.
            Some(Kind::Branch) => {
                let here = format!("{}/{}", wanted.remote, wanted.rev);
                Ok(is_known && commit(&here).as_deref() == Some(rev))
            }
            Some(Kind::Tag) if self.tags.contains(&wanted.rev) => {
                let here = commit(&format!("{}^{{commit}}", wanted.rev));
                if here.as_deref() == Some(rev) {
                    return Ok(true);
                }
                if wanted.force_reset != Reset::No {
                    return Ok(false);
                }
                let here = here.as_deref().map_or("None", short);
                Err(End::Failed(format!(
                    "'{}' is a tag, but the remote SHA1 for this tag ({}) doesn't match the local SHA1 ({here}). Set \
                     'force_reset' to True to force this update.",
                    wanted.rev,
                    short(rev),
                )))
            }
            Some(Kind::Tag) | None => Ok(false),
            Some(Kind::Hash) => Ok(true),
        }
    }

    /// Why an update that is no continuation is not done.
    pub(super) fn not_forward(&self, job: &Job<'_>) -> End {
        let (wanted, remote) = (job.wanted, job.remote);
        let or_none = |text: Option<&str>| text.map_or_else(|| "None".to_owned(), str::to_owned);
        let local = or_none(self.branch.as_deref());
        let mut hint = String::new();
        if wanted.branch.is_none() {
            if wanted.rev != "HEAD" {
                if local != wanted.rev {
                    hint = format!(
                        " The desired rev ({0}) differs from the name of the local branch ({local}), if the desired rev is a \
                         branch name then a forced update could possibly be avoided by setting the 'branch' argument to \
                         '{0}' instead.",
                        wanted.rev
                    );
                }
            } else if let Some(default) = remote.default_branch.as_ref().filter(|default| **default != local) {
                hint = format!(
                    " The default remote branch ({default}) differs from the local branch ({local}). This could be caused by \
                     changing the default remote branch, or if the local branch was manually changed. Rather than forcing an \
                     update, it may be advisable to set the 'branch' argument to '{default}' instead. To ensure that this \
                     state follows the '{default}' branch instead of the remote HEAD, set the 'rev' argument to \
                     '{default}'."
                );
            }
        }
        let old = or_none(self.base_rev.as_deref().map(short));
        let new = or_none(remote.rev.as_deref().map(short));
        let from = if self.is_changed && old != new { format!("from {old} to {new}") } else { format!("to {new}") };
        let after = self
            .other_branch(job)
            .map(|branch| format!(" (after checking out local branch '{branch}')"))
            .unwrap_or_default();
        let (why, or, and) = match self.is_changed {
            false => ("this is not a fast-forward merge", "", ""),
            true => ("there are uncommitted changes", " (or 'remote-changes')", " and discard these changes"),
        };
        End::Failed(format!(
            "Repository would be updated {from}{after}, but {why}. Set 'force_reset' to True{or} to force this \
             update{and}.{hint}"
        ))
    }
}
