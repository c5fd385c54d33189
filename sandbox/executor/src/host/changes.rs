//! `brine:host/changes`: changes of files, made by the broker.

use brine_sandbox_wire::{ByteBuf, Change, ChangesOp, Content, HostOp, Owner};
use serde::Deserialize;
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::changes as wit;
use crate::failure::HostFailure;
use crate::guest::Guest;

pub(super) const LINKS: Links = &[
    ("brine:host/changes", |linker| wit::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)),
    super::watches::LINK,
];

/// Bytes of content that go into one message. The rest is staged before.
const PIECE: usize = 1 << 20;

#[derive(Deserialize)]
struct Entry {
    kind: String,
    mode: u32,
    uid: u32,
    gid: u32,
    user: Option<String>,
    group: Option<String>,
    size: u64,
    inode: u64,
    nlink: u64,
    atime: f64,
    mtime: f64,
    ctime: f64,
    target: Option<String>,
    sha256: Option<String>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
    kind: String,
}

#[derive(Deserialize)]
struct Changed {
    before: Option<Entry>,
    after: Option<Entry>,
    planned: bool,
    backup: Option<String>,
    count: u64,
    written: u64,
    new_files: u64,
}

#[derive(Deserialize)]
struct Backup {
    name: String,
    location: String,
    size: u64,
    mtime: f64,
}

fn kind(text: &str) -> wit::Kind {
    match text {
        "regular" => wit::Kind::Regular,
        "directory" => wit::Kind::Directory,
        "symlink" => wit::Kind::Symlink,
        "block" => wit::Kind::Block,
        "character" => wit::Kind::Character,
        "fifo" => wit::Kind::Fifo,
        "socket" => wit::Kind::Socket,
        _ => wit::Kind::Unknown,
    }
}

impl From<Entry> for wit::Entry {
    fn from(entry: Entry) -> Self {
        let Entry { mode, uid, gid, user, group, size, inode, nlink, atime, mtime, ctime, target, sha256, .. } = entry;
        let kind = kind(&entry.kind);
        Self { kind, mode, uid, gid, user, group, size, inode, nlink, atime, mtime, ctime, target, sha256 }
    }
}

impl From<wit::Owner> for Owner {
    fn from(wit::Owner { user, group }: wit::Owner) -> Self {
        Self { user, group }
    }
}

impl Guest {
    async fn change(&mut self, what: &'static str, change: Change) -> wasmtime::Result<Result<wit::Change, String>> {
        let done = match self.ask_for::<Changed>(what, HostOp::Changes(ChangesOp::Do(Box::new(change)))).await? {
            Ok(done) => done,
            Err(error) => return Ok(Err(error)),
        };
        self.files.budget.take(done.written, done.new_files)?;
        let Changed { before, after, planned, backup, count, .. } = done;
        let (before, after) = (before.map(Into::into), after.map(Into::into));
        Ok(Ok(wit::Change { before, after, planned, backup, count }))
    }

    /// Sends all content but the last piece. Returns the number of the stage.
    async fn staged(&mut self, bytes: &[u8]) -> wasmtime::Result<Result<u64, String>> {
        let mut stage = None;
        for piece in bytes.chunks(PIECE) {
            match self.stage_part("changes.put", stage, piece.to_vec()).await? {
                Ok(number) => stage = Some(number),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(stage.ok_or_else(|| "there is nothing to stage".to_owned()))
    }

    /// Stages a part. It is on the disk from then on, whether it is put anywhere or not, so it counts here.
    async fn stage_part(
        &mut self,
        what: &'static str,
        stage: Option<u64>,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<u64, String>> {
        self.files.budget.take(u64::try_from(data.len()).unwrap_or(u64::MAX), 0)?;
        let op = ChangesOp::Stage { stage, data: ByteBuf::from(data) };
        Ok(self.ask_for(what, HostOp::Changes(op)).await?)
    }
}

/// A refused look is an error of the function, because a module may have another grant to look by. A refused change ends
/// the call.
fn said<T>(asked: Result<Result<T, String>, HostFailure>) -> Result<Result<T, String>, HostFailure> {
    match asked {
        Err(HostFailure::Denied { error, .. }) => Ok(Err(error)),
        asked => asked,
    }
}

impl wit::Host for Guest {
    async fn look(
        &mut self,
        path: String,
        follow: bool,
        hash: bool,
    ) -> wasmtime::Result<Result<Option<wit::Entry>, String>> {
        let op = HostOp::Changes(ChangesOp::Look { path, follow, hash });
        let entry = said(self.ask_for::<Option<Entry>>("changes.look", op).await)?;
        Ok(entry.map(|entry| entry.map(Into::into)))
    }

    async fn list(&mut self, path: String, after: Option<String>) -> wasmtime::Result<Result<Vec<wit::Name>, String>> {
        let op = HostOp::Changes(ChangesOp::List { path, after });
        let names = said(self.ask_for::<Vec<Name>>("changes.list", op).await)?;
        let name = |Name { name, kind: text }| wit::Name { name, kind: kind(&text) };
        Ok(names.map(|names| names.into_iter().map(name).collect()))
    }

    async fn read(
        &mut self,
        path: String,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, String>> {
        let op = HostOp::Changes(ChangesOp::Read { path, offset, length });
        let read = said(self.ask_for::<Option<ByteBuf>>("changes.read", op).await)?;
        Ok(read.map(|bytes| bytes.map(ByteBuf::into_vec)))
    }

    async fn stage(&mut self, stage: Option<u64>, data: Vec<u8>) -> wasmtime::Result<Result<u64, String>> {
        self.stage_part("changes.stage", stage, data).await
    }

    async fn backups(&mut self, path: String) -> wasmtime::Result<Result<Vec<wit::Backup>, String>> {
        let op = HostOp::Changes(ChangesOp::Backups { path });
        let backups = self.ask_for::<Vec<Backup>>("changes.backups", op).await?;
        let backup = |Backup { name, location, size, mtime }| wit::Backup { name, location, size, mtime };
        Ok(backups.map(|backups| backups.into_iter().map(backup).collect()))
    }

    async fn put(
        &mut self,
        path: String,
        content: wit::Content,
        options: wit::PutOptions,
    ) -> wasmtime::Result<Result<wit::Change, String>> {
        let content = match content {
            wit::Content::Bytes(bytes) if bytes.len() > PIECE => match self.staged(&bytes).await? {
                Ok(stage) => Content::Staged(stage),
                Err(error) => return Ok(Err(error)),
            },
            wit::Content::Bytes(bytes) => Content::Bytes(ByteBuf::from(bytes)),
            wit::Content::Staged(stage) => Content::Staged(stage),
            wit::Content::Master(wit::MasterFile { path, saltenv, sha256 }) => {
                Content::Master { path, saltenv, sha256 }
            }
            wit::Content::File(path) => Content::File(path),
            wit::Content::Backup(name) => Content::Backup(name),
        };
        let wit::PutOptions { owner, mode, backup, follow, expect } = options;
        let change = Change::Put { path, content, owner: owner.into(), mode, backup, follow, expect };
        self.change("changes.put", change).await
    }

    async fn make_directory(
        &mut self,
        path: String,
        parents: bool,
        owner: wit::Owner,
        mode: Option<u32>,
    ) -> wasmtime::Result<Result<wit::Change, String>> {
        let change = Change::MakeDirectory { path, parents, owner: owner.into(), mode };
        self.change("changes.make-directory", change).await
    }

    async fn symlink(
        &mut self,
        path: String,
        target: String,
        owner: wit::Owner,
        replace: bool,
    ) -> wasmtime::Result<Result<wit::Change, String>> {
        self.change("changes.symlink", Change::Symlink { path, target, owner: owner.into(), replace }).await
    }

    async fn hard_link(&mut self, path: String, target: String) -> wasmtime::Result<Result<wit::Change, String>> {
        self.change("changes.hard-link", Change::HardLink { path, target }).await
    }

    async fn rename(&mut self, path: String, to: String) -> wasmtime::Result<Result<wit::Change, String>> {
        self.change("changes.rename", Change::Rename { path, to }).await
    }

    async fn remove(&mut self, path: String, recursive: bool) -> wasmtime::Result<Result<wit::Change, String>> {
        self.change("changes.remove", Change::Remove { path, recursive }).await
    }

    async fn set_permissions(
        &mut self,
        path: String,
        owner: wit::Owner,
        mode: Option<u32>,
        follow: bool,
    ) -> wasmtime::Result<Result<wit::Change, String>> {
        let change = Change::SetPermissions { path, owner: owner.into(), mode, follow };
        self.change("changes.set-permissions", change).await
    }

    async fn touch(
        &mut self,
        path: String,
        atime: Option<i64>,
        mtime: Option<i64>,
    ) -> wasmtime::Result<Result<wit::Change, String>> {
        self.change("changes.touch", Change::Touch { path, atime, mtime }).await
    }

    async fn remove_backup(&mut self, path: String, name: String) -> wasmtime::Result<Result<wit::Change, String>> {
        self.change("changes.remove-backup", Change::RemoveBackup { path, name }).await
    }
}
