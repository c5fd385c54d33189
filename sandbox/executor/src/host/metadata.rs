//! `brine:host/metadata`
use brine_sandbox_wire::{HostOp, UsersOp};

use super::bindings::brine::host::metadata as wit;
use crate::guest::Guest;

impl wit::Host for Guest {
    async fn stat(&mut self, _path: String, _follow: bool) -> wasmtime::Result<Result<wit::FileStat, wit::Error>> {
        Ok(Err(wit::Error::NotFound))
    }

    async fn user_name(&mut self, uid: u32) -> wasmtime::Result<Option<String>> {
        let what = "metadata.user-name";
        let value = self.ask_or_end(what, HostOp::Users(UsersOp::UserName { uid })).await?;
        Ok(super::parsed(what, &value)?)
    }

    async fn group_name(&mut self, gid: u32) -> wasmtime::Result<Option<String>> {
        let what = "metadata.group-name";
        let value = self.ask_or_end(what, HostOp::Users(UsersOp::GroupName { gid })).await?;
        Ok(super::parsed(what, &value)?)
    }
}
