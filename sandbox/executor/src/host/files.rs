//! `brine:host/files`: the master's file server, through the broker.

use brine_sandbox_wire::{ByteBuf, FilesOp, HostOp, ListKind};
use serde::Deserialize;
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::files as wit;
use crate::guest::Guest;

pub(super) const LINKS: Links =
    &[("brine:host/files", |linker| wit::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

#[derive(Deserialize)]
struct Digest {
    hash_type: String,
    hsum: String,
    size: Option<u64>,
}

impl From<Digest> for wit::Digest {
    fn from(digest: Digest) -> Self {
        let Digest { hash_type, hsum, size } = digest;
        Self { hash_type, hsum, size }
    }
}

impl wit::Host for Guest {
    async fn list(
        &mut self,
        saltenv: String,
        prefix: Option<String>,
        kind: wit::Kind,
    ) -> wasmtime::Result<Result<Vec<String>, String>> {
        let kind = match kind {
            wit::Kind::Files => ListKind::Files,
            wit::Kind::Dirs => ListKind::Dirs,
            wit::Kind::EmptyDirs => ListKind::EmptyDirs,
            wit::Kind::Symlinks => ListKind::Symlinks,
        };
        let prefix = prefix.unwrap_or_default();
        Ok(self.ask_for("files.list", HostOp::Files(FilesOp::List { saltenv, prefix, kind })).await?)
    }

    async fn envs(&mut self) -> wasmtime::Result<Result<Vec<String>, String>> {
        Ok(self.ask_for("files.envs", HostOp::Files(FilesOp::Envs)).await?)
    }

    async fn hash(&mut self, path: String, saltenv: String) -> wasmtime::Result<Result<Option<wit::Digest>, String>> {
        let op = HostOp::Files(FilesOp::Hash { path, saltenv });
        Ok(self.ask_for::<Option<Digest>>("files.hash", op).await?.map(|digest| digest.map(Into::into)))
    }

    async fn hash_all(
        &mut self,
        paths: Vec<String>,
        saltenv: String,
    ) -> wasmtime::Result<Result<Vec<Option<wit::Digest>>, String>> {
        let op = HostOp::Files(FilesOp::HashAll { paths, saltenv });
        let all = self.ask_for::<Vec<Option<Digest>>>("files.hash-all", op).await?;
        Ok(all.map(|all| all.into_iter().map(|digest| digest.map(Into::into)).collect()))
    }

    async fn mode(&mut self, path: String, saltenv: String) -> wasmtime::Result<Result<Option<u32>, String>> {
        Ok(self.ask_for("files.mode", HostOp::Files(FilesOp::Mode { path, saltenv })).await?)
    }

    async fn read(
        &mut self,
        path: String,
        saltenv: String,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, String>> {
        let op = HostOp::Files(FilesOp::Read { path, saltenv, offset, length });
        let read = self.ask_for::<Option<ByteBuf>>("files.read", op).await?;
        Ok(read.map(|bytes| bytes.map(ByteBuf::into_vec)))
    }

    async fn cache(&mut self, path: String, saltenv: String) -> wasmtime::Result<Result<Option<String>, String>> {
        Ok(self.ask_for("files.cache", HostOp::Files(FilesOp::Cache { path, saltenv })).await?)
    }

    async fn cache_all(
        &mut self,
        paths: Vec<String>,
        saltenv: String,
    ) -> wasmtime::Result<Result<Vec<Option<String>>, String>> {
        Ok(self.ask_for("files.cache-all", HostOp::Files(FilesOp::CacheAll { paths, saltenv })).await?)
    }

    async fn push(
        &mut self,
        path: Vec<String>,
        offset: u64,
        data: Vec<u8>,
        size: u64,
    ) -> wasmtime::Result<Result<bool, String>> {
        let op = HostOp::Files(FilesOp::Push { path, offset, data: ByteBuf::from(data), size });
        Ok(self.ask_for("files.push", op).await?)
    }
}
