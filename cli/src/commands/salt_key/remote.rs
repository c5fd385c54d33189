//! `salt-key --auth`: the same actions for users of `external_auth`. They may not access the key store, so the master's
//! wheel performs the actions.

use brine_protocol::exit;
use brine_protocol::keys::KeyState;
use brine_protocol::text::name;
use brine_protocol::value::{self, Value, ValueExt as _};

use super::args::{Action, Decision, SaltKeyArgs};
use super::{Failure, Outcome, block_on, confirm};
use crate::commandline::misuse;
use crate::print::{Printer, stderr};
use brine_client::{ClientError, WheelClient};

pub(super) struct Remote<'a> {
    pub(super) args: &'a SaltKeyArgs,
    pub(super) printer: Printer,
    pub(super) client: WheelClient,
}

impl Remote<'_> {
    /// Performs the action. A refusal of the master is printed in place of a result, with exit code 0, as in Salt.
    pub(super) fn run(&mut self, action: &Action) -> Outcome {
        let done = match action {
            Action::List(which) => self.list(which),
            Action::Print(globs) => self.show("key.print", vec![("match", globs.as_str().into())]),
            Action::Finger(globs) => {
                let mut kwargs = vec![("match", Value::from(globs.as_str()))];
                kwargs.extend(self.args.finger_hash.as_deref().map(|hash| ("hash_type", hash.into())));
                self.show("key.finger", kwargs)
            }
            Action::Decide(decision, globs) => self.decide(*decision, globs),
            Action::Generate(_) | Action::Sign => {
                return Err(misuse::<SaltKeyArgs>(
                    "--gen-keys and --gen-signature make files on this host, and go without --auth",
                ));
            }
        };
        match done {
            Ok(code) => Ok(code),
            Err(Trouble::Here(failure)) => Err(failure),
            Err(Trouble::Master(error)) if error.is_refusal() => {
                if !self.args.quiet {
                    self.printer.show(&error.to_string().into(), "nested", 0);
                }
                Ok(exit::OK)
            }
            Err(Trouble::Master(error)) => Err(Failure::new(exit::GENERIC, format!("salt-key: {error}"))),
        }
    }

    fn call(&self, fun: &str, kwargs: Vec<(&str, Value)>) -> Result<Value, Trouble> {
        block_on(self.client.cmd(fun, kwargs))?.map_err(Trouble::Master)
    }

    fn show(&mut self, fun: &str, kwargs: Vec<(&str, Value)>) -> Result<i32, Trouble> {
        let found = self.call(fun, kwargs)?;
        self.printer.show(&found, "key", 0);
        Ok(exit::OK)
    }

    fn list(&mut self, which: &[KeyState]) -> Result<i32, Trouble> {
        let word = match which {
            [KeyState::Accepted] => "accepted",
            [KeyState::Pending] => "pre",
            [KeyState::Rejected] => "rejected",
            [KeyState::Denied] => "denied",
            _ => "all",
        };
        let mut found = self.call("key.list", vec![("match", word.into())])?;
        // `local` holds the master's own keys, which belong to no minion.
        found.remove("local");
        self.printer.show(&found, "key", 0);
        Ok(exit::OK)
    }

    fn decide(&mut self, decision: Decision, globs: &str) -> Result<i32, Trouble> {
        let found = self.call("key.glob_match", vec![("match", globs.into())])?;
        let included = self.args.included(decision);
        let ids = |status: &KeyState| found.get_list(status.folder()).filter(|ids| !ids.is_empty());
        let matched: Vec<(KeyState, Vec<Value>)> =
            included.iter().filter_map(|status| Some((*status, ids(status)?.to_vec()))).collect();
        let shown = value::map(matched.iter().map(|(status, ids)| (status.folder(), Value::Array(ids.clone()))));
        if !confirm(self.args, &mut self.printer, decision, globs, &shown)? {
            return Ok(exit::OK);
        }
        let includes = |status| Value::from(included.contains(&status));
        let (fun, mut kwargs) = match decision {
            Decision::Accept => ("key.accept_dict", vec![("include_rejected", includes(KeyState::Rejected))]),
            Decision::Reject => ("key.reject_dict", vec![("include_accepted", includes(KeyState::Accepted))]),
            Decision::Delete => ("key.delete_dict", Vec::new()),
        };
        if decision != Decision::Delete {
            kwargs.push(("include_denied", includes(KeyState::Denied)));
        }
        // The keys that the operator confirmed are passed by name, because a glob might match more keys by now.
        kwargs.push(("match", shown.clone()));
        let now = self.call(fun, kwargs)?;
        let to = decision.to().map(KeyState::folder);
        for id in matched.iter().flat_map(|(_, ids)| ids) {
            let is_there = |folder: &str| now.get_list(folder).is_some_and(|ids| ids.contains(id));
            let done = match to {
                Some(folder) => is_there(folder),
                None => !KeyState::ALL.iter().any(|status| is_there(status.folder())),
            };
            let id = id.python_str();
            if done {
                self.printer.line(&format!("Key for minion {} {}.", name(&id), decision.past()));
            } else {
                stderr(&format!("The master did not {} the key of {}.", decision.verb(), name(&id)));
            }
        }
        Ok(exit::OK)
    }
}

/// The failure, and on which side it occurred.
enum Trouble {
    Here(Failure),
    Master(ClientError),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Here(failure)
    }
}
