//! `brine:host/disks`: the mounted file systems and how full they are, from the broker.

use brine_sandbox_wire::{DisksOp, HostOp};
use serde::Deserialize;
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::disks as wit;
use crate::guest::Guest;

pub(super) const LINKS: Links =
    &[("brine:host/disks", |linker| wit::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

#[derive(Deserialize)]
struct Mount {
    device: String,
    mount_point: String,
    fstype: String,
    options: Vec<String>,
    device_number: u64,
}

#[derive(Deserialize)]
struct Space {
    block_size: u64,
    blocks: u64,
    blocks_free: u64,
    blocks_available: u64,
    inodes: u64,
    inodes_free: u64,
}

#[derive(Deserialize)]
struct FileSystem {
    mount: Mount,
    space: Space,
}

impl From<FileSystem> for wit::FileSystem {
    fn from(FileSystem { mount, space }: FileSystem) -> Self {
        Self { mount: mount.into(), space: space.into() }
    }
}

impl From<Mount> for wit::Mount {
    fn from(mount: Mount) -> Self {
        let Mount { device, mount_point, fstype, options, device_number } = mount;
        Self { device, mount_point, fstype, options, device_number }
    }
}

impl From<Space> for wit::Space {
    fn from(space: Space) -> Self {
        let Space { block_size, blocks, blocks_free, blocks_available, inodes, inodes_free } = space;
        Self { block_size, blocks, blocks_free, blocks_available, inodes, inodes_free }
    }
}

impl wit::Host for Guest {
    async fn mounts(&mut self) -> wasmtime::Result<Result<Vec<wit::Mount>, String>> {
        let mounts = self.ask_for::<Vec<Mount>>("disks.mounts", HostOp::Disks(DisksOp::Mounts)).await?;
        Ok(mounts.map(|mounts| mounts.into_iter().map(Into::into).collect()))
    }

    async fn usage(&mut self, mount_point: String) -> wasmtime::Result<Result<wit::Space, String>> {
        let op = HostOp::Disks(DisksOp::Usage { mount_point });
        Ok(self.ask_for::<Space>("disks.usage", op).await?.map(Into::into))
    }

    async fn file_systems(&mut self) -> wasmtime::Result<Result<Vec<wit::FileSystem>, String>> {
        let all = self.ask_for::<Vec<FileSystem>>("disks.file-systems", HostOp::Disks(DisksOp::FileSystems)).await?;
        Ok(all.map(|all| all.into_iter().map(Into::into).collect()))
    }

    async fn file_system_at(&mut self, mount_point: String) -> wasmtime::Result<Result<wit::FileSystem, String>> {
        let op = HostOp::Disks(DisksOp::FileSystemAt { mount_point });
        Ok(self.ask_for::<FileSystem>("disks.file-system-at", op).await?.map(Into::into))
    }
}
