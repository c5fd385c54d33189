//! The states: a file each, or a family. What they need of the host is `brine:host/changes` alone, for looking too.
//!
//! - `arguments.rs` the arguments of a state
//! - `managed.rs`, `directory.rs`, `recurse.rs`; `clean.rs` what they remove
//! - `presence.rs` absent, exists, missing; `links.rs` symlink, hardlink; `names.rs` touch, rename, copy

mod arguments;
mod clean;
mod directory;
mod links;
mod managed;
mod names;
mod presence;
mod recurse;

pub(crate) use arguments::Arguments;
use brine_guest::states::StateResult;

use crate::exports::states::Guest;
pub(crate) use crate::ret::Ret;
use crate::{Data, Module};

/// The result of a state, or an exception in it.
type Done = Result<StateResult, String>;

/// Runs a state with its arguments.
fn with(kwargs: &Data, state: impl FnOnce(&Arguments) -> Result<Ret, String>) -> Done {
    Ok(state(&Arguments::new(kwargs)?)?.into())
}

impl Guest for Module {
    fn absent(name: String, _: Data) -> Done {
        presence::absent(&name).map(Into::into)
    }

    fn copy(name: String, source: String, kwargs: Data) -> Done {
        with(&kwargs, |args| names::copy(&name, &source, args))
    }

    fn directory(name: String, require: Option<Data>, kwargs: Data) -> Done {
        let mut arguments = Arguments::new(&kwargs)?;
        if let Some(require) = require {
            arguments.set("require", require.value()?);
        }
        directory::directory(&name, &arguments).map(Into::into)
    }

    fn exists(name: String, _: Data) -> Done {
        presence::exists(&name).map(Into::into)
    }

    fn hardlink(name: String, target: String, kwargs: Data) -> Done {
        with(&kwargs, |args| links::hardlink(&name, &target, args))
    }

    fn managed(name: String, check_cmd: Option<Data>, kwargs: Data) -> Done {
        let mut arguments = Arguments::new(&kwargs)?;
        if let Some(check_cmd) = check_cmd {
            arguments.set("check_cmd", check_cmd.value()?);
        }
        managed::managed(&name, &arguments).map(Into::into)
    }

    fn missing(name: String, _: Data) -> Done {
        presence::missing(&name).map(Into::into)
    }

    fn recurse(name: String, source: Data, require: Option<Data>, kwargs: Data) -> Done {
        let mut arguments = Arguments::new(&kwargs)?;
        arguments.set("source", source.value()?);
        if let Some(require) = require {
            arguments.set("require", require.value()?);
        }
        recurse::recurse(&name, &arguments).map(Into::into)
    }

    fn rename(name: String, source: String, kwargs: Data) -> Done {
        with(&kwargs, |args| names::rename(&name, &source, args))
    }

    fn symlink(name: String, target: String, kwargs: Data) -> Done {
        with(&kwargs, |args| links::symlink(&name, &target, args))
    }

    fn touch(name: String, atime: Option<Data>, mtime: Option<Data>, makedirs: Option<bool>) -> Done {
        let value = |data: Option<Data>| data.map_or(Ok(Default::default()), |data| data.value());
        names::touch(&name, &value(atime)?, &value(mtime)?, makedirs.unwrap_or(false)).map(Into::into)
    }
}
