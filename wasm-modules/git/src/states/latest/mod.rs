//! `git.latest`: a clone has what the remote repository has.
//!
//! - [`remote`]: what the remote repository has · [`clone`]: a new clone · [`update`]: one that is there
//! - [`local`]: what the clone has, and what that means · [`upstream`]: the branch that a branch follows

mod clone;
mod local;
mod remote;
mod update;
mod upstream;

use brine_guest::path::join;
use brine_guest::states::StateResult;

use super::asked::{self, Reset};
use super::report::{Report, stripped};
use crate::config::Scope;
use crate::repository::Login;
use crate::run::{Git, is_directory};
use remote::Remote;

/// What is asked for.
pub(super) struct Wanted {
    /// The address of the remote repository.
    pub(super) name: String,
    pub(super) target: String,
    pub(super) rev: String,
    pub(super) branch: Option<String>,
    pub(super) git: Git,
    pub(super) login: Login,
    pub(super) update_head: bool,
    pub(super) force_checkout: bool,
    pub(super) force_clone: bool,
    pub(super) force_fetch: bool,
    pub(super) force_reset: Reset,
    pub(super) submodules: bool,
    pub(super) bare: bool,
    pub(super) mirror: bool,
    /// The name of the remote in the clone.
    pub(super) remote: String,
    pub(super) refspecs: Vec<String>,
    pub(super) sync_tags: bool,
    pub(super) depth: Option<String>,
}

/// How a run ends, beside the changes and comments in its report.
enum End {
    /// It failed with this sentence.
    Failed(String),
    /// A dry run, with this sentence.
    Would(String),
    /// It is as it should be; whether changes of files stay.
    UpToDate(bool),
    /// It is as it should be, in this sentence.
    Said(String),
    /// It was done: what was checked out before, and what is now.
    Done { old: Option<String>, new: Option<String> },
}

/// What both ways need.
struct Job<'a> {
    wanted: &'a Wanted,
    remote: &'a Remote,
    /// Git without keys, for what needs no server.
    own: &'a Git,
    /// Git for what changes files: with keys, if large files come from a server.
    files: &'a Git,
}

pub(super) fn latest(mut wanted: Wanted) -> Result<StateResult, String> {
    let bad = |why: String| Ok(StateResult::bad(why));
    if let Some(why) = asked::unusable(&wanted.target, &wanted.git, ["target", "identity"]) {
        return bad(why);
    }
    let has_lfs =
        !Git::default().config_get_regexp(&Scope { is_global: true, cwd: None }, r"filter\.lfs\.", None)?.is_empty();
    if let Err(why) = wanted.login.at(&wanted.name) {
        return bad(why);
    }
    if wanted.rev != "HEAD" && wanted.bare {
        return bad("'rev' is not compatible with the 'mirror' and 'bare' arguments".into());
    }
    let refs = match wanted.git.remote_refs(&wanted.name, &wanted.login, &[], None) {
        Ok(refs) => refs,
        Err(why) => return bad(format!("Failed to check remote refs: {}", stripped(&why))),
    };
    let remote = Remote::new(refs, &mut wanted);
    if wanted.depth.is_some() && !remote.is_named() {
        return bad(
            "When 'depth' is used, 'rev' must be set to the name of a branch or tag on the remote repository".into()
        );
    }
    if remote.rev.is_none() && !wanted.bare && wanted.rev != "HEAD" {
        return bad(format!("No revision matching '{}' exists in the remote repository", wanted.rev));
    }
    let own = Git::new(wanted.git.user.clone());
    let files = if has_lfs { &wanted.git } else { &own };
    let job = Job { wanted: &wanted, remote: &remote, own: &own, files };
    let inside = join(&wanted.target, if wanted.bare { "refs" } else { ".git" });
    let mut report = Report::default();
    let is_there = is_directory(&inside) || own.is_worktree(&wanted.target);
    let end = if is_there { job.update(&mut report) } else { job.clone(&mut report) };
    Ok(match end.unwrap_or_else(|why| End::Failed(stripped(&why).into())) {
        End::Failed(why) => report.fail(why),
        End::Would(comment) => report.would(comment),
        End::UpToDate(is_changed) => report.up_to_date(&wanted.target, is_changed),
        End::Said(comment) => report.end(Some(true), comment),
        End::Done { new, .. } if is_there && !wanted.bare && !remote.is(new.as_deref()) => {
            report.fail("Failed to update repository")
        }
        End::Done { old, new } if is_there && old == new => report.up_to_date(&wanted.target, false),
        End::Done { old, new } => {
            if is_there || new.is_some() {
                report.moved("revision", old.as_deref(), new.as_deref());
            }
            report.done()
        }
    })
}

impl Job<'_> {
    /// The commit that is checked out; none if there is none.
    fn checked_out(&self) -> Option<String> {
        self.own.rev_parse(&self.wanted.target, &[], "HEAD").ok()
    }

    /// Updates the submodules. Some is how the run ends.
    fn submodules(&self) -> Option<End> {
        let failed = self.wanted.git.submodules(&self.wanted.target).err()?;
        Some(End::Failed(format!("Failed to update submodules: {}", stripped(&failed))))
    }
}
