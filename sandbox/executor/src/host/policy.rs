//! `brine:host/policy`: the grants of this host's owner, from the broker.

use brine_sandbox_wire::{HostOp, PolicyOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::policy::{Data, Host, add_to_linker};
use crate::guest::Guest;

pub(super) const LINKS: Links =
    &[("brine:host/policy", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn list(&mut self) -> wasmtime::Result<Data> {
        let what = "policy.list";
        let value = self.ask_or_end(what, HostOp::Policy(PolicyOp::List)).await?;
        Ok(super::data(what, value)?)
    }

    async fn show(&mut self, name: String) -> wasmtime::Result<Option<Data>> {
        let what = "policy.show";
        let value = self.ask_or_end(what, HostOp::Policy(PolicyOp::Show { name })).await?;
        Ok(super::optional(what, value)?)
    }

    async fn check(&mut self) -> wasmtime::Result<Data> {
        let what = "policy.check";
        let value = self.ask_or_end(what, HostOp::Policy(PolicyOp::Check)).await?;
        Ok(super::data(what, value)?)
    }

    async fn diff(&mut self, name: String) -> wasmtime::Result<Result<Data, String>> {
        self.policy("policy.diff", PolicyOp::Diff { name }).await
    }

    async fn approve(&mut self, name: String, sha256: String) -> wasmtime::Result<Result<Data, String>> {
        self.policy("policy.approve", PolicyOp::Approve { name, sha256 }).await
    }

    async fn running(&mut self) -> wasmtime::Result<Data> {
        let what = "policy.running";
        let value = self.ask_or_end(what, HostOp::Policy(PolicyOp::Running)).await?;
        Ok(super::data(what, value)?)
    }

    async fn refusals(&mut self) -> wasmtime::Result<Data> {
        let what = "policy.refusals";
        let value = self.ask_or_end(what, HostOp::Policy(PolicyOp::Refusals)).await?;
        Ok(super::data(what, value)?)
    }

    async fn suggest(
        &mut self,
        since_s: Option<u64>,
        module: Option<String>,
    ) -> wasmtime::Result<Result<Data, String>> {
        self.policy("policy.suggest", PolicyOp::Suggest { since_s, module }).await
    }

    async fn grant(&mut self, line: String) -> wasmtime::Result<Result<Data, String>> {
        self.policy("policy.grant", PolicyOp::Grant { line }).await
    }

    async fn revoke(&mut self, line: String) -> wasmtime::Result<Result<Data, String>> {
        self.policy("policy.revoke", PolicyOp::Revoke { line }).await
    }

    async fn rollback(&mut self, name: String) -> wasmtime::Result<Result<Data, String>> {
        self.policy("policy.rollback", PolicyOp::Rollback { name }).await
    }
}

impl Guest {
    async fn policy(&mut self, what: &'static str, op: PolicyOp) -> wasmtime::Result<Result<Data, String>> {
        match self.ask(what, HostOp::Policy(op)).await? {
            Ok(value) => Ok(Ok(super::data(what, value)?)),
            Err(error) => Ok(Err(error)),
        }
    }
}
