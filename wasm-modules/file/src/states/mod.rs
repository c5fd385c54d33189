//! The states: a file each, or a family. What they need of the host is `brine:host/changes` alone, for looking too.
//!
//! - `ret.rs`, `arguments.rs` the result and the arguments of a state
//! - `managed.rs`
//! - `presence.rs` absent, exists, missing

mod arguments;
mod managed;
mod presence;
mod ret;

pub(crate) use arguments::Arguments;
use brine_guest::states::StateResult;
pub(crate) use ret::Ret;

use crate::exports::states::Guest;
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

    fn exists(name: String, _: Data) -> Done {
        presence::exists(&name).map(Into::into)
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
}
