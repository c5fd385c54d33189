//! States of repositories and settings.
//!
//! - [`asked`]: what `git.latest` and `git.detached` are asked for · [`report`]: what states say
//! - [`latest`], [`detached`], [`present`], [`settings`]

mod asked;
mod detached;
mod latest;
mod present;
mod report;
mod settings;

use brine_guest::Data;
use brine_guest::states::StateResult;

use crate::Module;
use crate::arguments::{flag, full, text};
use crate::exports::states::Guest;
use crate::given::identities;
use crate::repository::Login;
use crate::run::{Git, program};

impl Guest for Module {
    fn mod_available() -> Result<(), String> {
        program()?.map(drop).ok_or_else(|| "git module could not be loaded".into())
    }

    fn present(
        name: String,
        force: Option<Data>,
        bare: Option<Data>,
        template: Option<Data>,
        separate_git_dir: Option<Data>,
        shared: Option<Data>,
        user: Option<Data>,
        _password: Option<Data>,
        _output_encoding: Option<Data>,
    ) -> Result<StateResult, String> {
        present::present(&present::Wanted {
            name,
            force: flag(force.as_ref(), false)?,
            bare: flag(bare.as_ref(), true)?,
            template,
            separate_git_dir,
            shared,
            user,
        })
    }

    fn cloned(
        name: String,
        target: Data,
        branch: Option<Data>,
        user: Option<Data>,
        _password: Option<Data>,
        identity: Option<Data>,
        https_user: Option<Data>,
        https_pass: Option<Data>,
        _output_encoding: Option<Data>,
    ) -> Result<StateResult, String> {
        let Some(target) = text(Some(&target))? else { return Ok(StateResult::bad("'target' argument is required")) };
        let branch = text(branch.as_ref())?;
        present::cloned(&name, &target, branch.as_deref(), &git(user, identity)?, &login(https_user, https_pass)?)
    }

    fn latest(
        name: String,
        target: Data,
        rev: Option<Data>,
        branch: Option<Data>,
        user: Option<Data>,
        _password: Option<Data>,
        update_head: Option<Data>,
        force_checkout: Option<Data>,
        force_clone: Option<Data>,
        force_fetch: Option<Data>,
        force_reset: Option<Data>,
        submodules: Option<Data>,
        bare: Option<Data>,
        mirror: Option<Data>,
        remote: Option<Data>,
        fetch_tags: Option<Data>,
        sync_tags: Option<Data>,
        depth: Option<Data>,
        identity: Option<Data>,
        https_user: Option<Data>,
        https_pass: Option<Data>,
        refspec_branch: Option<Data>,
        refspec_tag: Option<Data>,
        _output_encoding: Option<Data>,
    ) -> Result<StateResult, String> {
        let remote = match remote {
            Some(remote) => match full(Some(&remote))? {
                Some(remote) => remote,
                None => return Ok(StateResult::bad("'remote' argument is required")),
            },
            None => "origin".into(),
        };
        let Some(target) = full(Some(&target))? else { return Ok(StateResult::bad("'target' argument is required")) };
        let rev = match asked::rev(rev.as_ref())? {
            Ok(rev) => rev,
            Err(why) => return Ok(StateResult::bad(why)),
        };
        let force_reset = match asked::reset(force_reset.as_ref())? {
            Ok(reset) => reset,
            Err(why) => return Ok(StateResult::bad(why)),
        };
        let glob = |argument: Option<Data>| Ok::<_, String>(text(argument.as_ref())?.unwrap_or_else(|| "*".into()));
        let mirror = flag(mirror.as_ref(), false)?;
        let refspecs = match flag(fetch_tags.as_ref(), true)? {
            true => asked::refspecs(&remote, &glob(refspec_branch)?, &glob(refspec_tag)?),
            false => Vec::new(),
        };
        latest::latest(latest::Wanted {
            name,
            target,
            rev,
            branch: text(branch.as_ref())?,
            git: git(user, identity)?,
            login: login(https_user, https_pass)?,
            update_head: flag(update_head.as_ref(), true)?,
            force_checkout: flag(force_checkout.as_ref(), false)?,
            force_clone: flag(force_clone.as_ref(), false)?,
            force_fetch: flag(force_fetch.as_ref(), false)?,
            force_reset,
            submodules: flag(submodules.as_ref(), false)?,
            bare: mirror || flag(bare.as_ref(), false)?,
            mirror,
            remote,
            refspecs,
            sync_tags: flag(sync_tags.as_ref(), true)?,
            depth: text(depth.as_ref())?,
        })
    }

    fn detached(
        name: String,
        rev: Data,
        target: Data,
        remote: Option<Data>,
        user: Option<Data>,
        _password: Option<Data>,
        force_clone: Option<Data>,
        force_checkout: Option<Data>,
        fetch_remote: Option<Data>,
        hard_reset: Option<Data>,
        submodules: Option<Data>,
        identity: Option<Data>,
        https_user: Option<Data>,
        https_pass: Option<Data>,
        _output_encoding: Option<Data>,
    ) -> Result<StateResult, String> {
        let rev = match asked::rev(Some(&rev))? {
            Ok(rev) => rev,
            Err(why) => return Ok(StateResult::bad(why)),
        };
        let Some(target) = full(Some(&target))? else {
            return Ok(StateResult::bad(format!("'{rev}' is not a valid value for the 'target' argument")));
        };
        detached::detached(detached::Wanted {
            name,
            rev,
            target,
            remote: text(remote.as_ref())?.unwrap_or_else(|| "origin".into()),
            git: git(user, identity)?,
            login: login(https_user, https_pass)?,
            force_clone: flag(force_clone.as_ref(), false)?,
            force_checkout: flag(force_checkout.as_ref(), false)?,
            fetch_remote: flag(fetch_remote.as_ref(), true)?,
            hard_reset: flag(hard_reset.as_ref(), false)?,
            submodules: flag(submodules.as_ref(), false)?,
        })
    }

    fn config_set(
        name: String,
        value: Option<Data>,
        multivar: Option<Data>,
        repo: Option<Data>,
        user: Option<Data>,
        _password: Option<Data>,
        _output_encoding: Option<Data>,
        global: Option<Data>,
    ) -> Result<StateResult, String> {
        settings::set(&name, value.as_ref(), multivar.as_ref(), settings::place(global, repo, user)?)
    }

    fn config_unset(
        name: String,
        value_regex: Option<Data>,
        repo: Option<Data>,
        user: Option<Data>,
        _password: Option<Data>,
        _output_encoding: Option<Data>,
        global: Option<Data>,
        all: Option<Data>,
    ) -> Result<StateResult, String> {
        let value = text(value_regex.as_ref())?;
        settings::unset(&name, value.as_deref(), flag(all.as_ref(), false)?, settings::place(global, repo, user)?)
    }
}

fn git(user: Option<Data>, identity: Option<Data>) -> Result<Git, String> {
    let mut git = Git::new(text(user.as_ref())?);
    git.identity = identities(identity.as_ref())?;
    git.saltenv = brine_guest::host::job::state().map_or_else(|| "base".into(), |state| state.saltenv);
    Ok(git)
}

fn login(user: Option<Data>, password: Option<Data>) -> Result<Login, String> {
    Ok(Login { user: text(user.as_ref())?, password: text(password.as_ref())? })
}
