//! The module `disk_report`: how full file systems are. Its functions and their documentation are in `wit/world.wit`.

wit_bindgen::generate!({ path: "wit", generate_all });

use brine::host::disks::{self, Space};

struct Module;

impl Guest for Module {
    fn report(mount: Option<String>) -> Result<Vec<FileSystem>, String> {
        if let Some(mount) = mount {
            return Ok(vec![row(disks::file_system_at(&mount)?)]);
        }
        let all = disks::file_systems()?.into_iter();
        Ok(all.filter(|one| one.space.blocks > 0).map(row).collect())
    }
}

fn row(disks::FileSystem { mount, space }: disks::FileSystem) -> FileSystem {
    let Space { block_size, blocks, blocks_free, blocks_available, .. } = space;
    let used = blocks.saturating_sub(blocks_free);
    let total = used + blocks_available;
    FileSystem {
        mount_point: mount.mount_point,
        device: mount.device,
        fstype: mount.fstype,
        size: blocks * block_size,
        used: used * block_size,
        available: blocks_available * block_size,
        percent: if total == 0 { 0 } else { (used * 100).div_ceil(total) as u8 },
    }
}

export!(Module);
