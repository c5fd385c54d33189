//! The arguments of functions, and what all functions make of them.

use brine_guest::{Data, Result, Value};

use crate::arguments::{flag, options, text};
use crate::config::Scope;
use crate::repository::Login;
use crate::run::{Command, Git, expanded};

macro_rules! arguments {
    ($($name:ident)*) => {
        /// The arguments of a call. `password` and `output_encoding` change nothing, `ignore_retcode` only Salt's log.
        #[derive(Debug, Default)]
        #[allow(dead_code, reason = "these are taken all the same")]
        pub(crate) struct Given {
            $(pub(crate) $name: Option<Data>,)*
        }
    };
}

arguments! {
    cwd filename output message key url name command worktree_path ref1 ref2
    opts git_opts user password identity ignore_retcode saltenv output_encoding https_user https_pass
    rev prefix format force value multivar value_regex all global add item1 item2 no_index cached paths path
    remote refspecs bare template separate_git_dir shared stale ref_ refs octopus is_ancestor independent fork_point base
    redact_auth heads tags filter push_url push_https_user push_https_pass short action versioninfo reset_branch detach
    branch dry_run verbose expire
}

impl Given {
    /// Who runs git.
    pub(crate) fn git(&self) -> Result<Git> {
        let mut git = Git::new(text(self.user.as_ref())?);
        git.identity = identities(self.identity.as_ref())?;
        git.saltenv = text(self.saltenv.as_ref())?.unwrap_or_else(|| "base".into());
        Ok(git)
    }

    /// Where git runs.
    pub(crate) fn cwd(&self) -> Result<String> {
        let cwd = text(self.cwd.as_ref())?.unwrap_or_default();
        expanded(&cwd, text(self.user.as_ref())?.as_deref())
    }

    /// A command of git in this directory, with `git_opts` before it.
    pub(crate) fn command(&self, name: &str) -> Result<Command> {
        Ok(Command::new(self.git_options()?).arg(name).at(&self.cwd()?))
    }

    pub(crate) fn git_options(&self) -> Result<Vec<String>> {
        options(self.git_opts.as_ref())
    }

    pub(crate) fn options(&self) -> Result<Vec<String>> {
        options(self.opts.as_ref())
    }

    /// The options, without those that are there anyway.
    pub(crate) fn options_but(&self, known: &[&str]) -> Result<Vec<String>> {
        Ok(self.options()?.into_iter().filter(|option| !known.contains(&option.as_str())).collect())
    }

    pub(crate) fn run(&self, command: Command) -> Result<String> {
        self.git()?.run(&command)
    }

    pub(crate) fn rev(&self, default: &str) -> Result<String> {
        Ok(text(self.rev.as_ref())?.unwrap_or_else(|| default.into()))
    }

    pub(crate) fn key(&self) -> Result<String> {
        Ok(text(self.key.as_ref())?.unwrap_or_default())
    }

    pub(crate) fn login(&self) -> Result<Login> {
        Ok(Login { user: text(self.https_user.as_ref())?, password: text(self.https_pass.as_ref())? })
    }

    /// Whose settings are meant.
    pub(crate) fn scope(&self) -> Result<Scope> {
        let is_global = flag(self.global.as_ref(), false)?;
        let cwd = match text(self.cwd.as_ref())? {
            Some(_) => Some(self.cwd()?),
            None if is_global => None,
            None => return Err("'cwd' argument required unless global=True".into()),
        };
        Ok(Scope { is_global, cwd })
    }
}

/// Files of keys: one, or a list.
pub(crate) fn identities(argument: Option<&Data>) -> Result<Vec<String>> {
    Ok(match argument.map(Data::value).transpose()? {
        Some(Value::List(items)) => items.iter().map(Value::to_text).collect(),
        Some(one) if one.truthy() => vec![one.to_text()],
        _ => Vec::new(),
    })
}
