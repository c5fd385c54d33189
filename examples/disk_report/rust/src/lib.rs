//! The module `disk_report`: how full file systems are. Its functions and their documentation are in `wit/world.wit`.

wit_bindgen::generate!({ path: "wit", generate_all });

use brine::host::disks::{Mount, Space, mounts, usage};

struct Module;

impl Guest for Module {
    fn report(mount: Option<String>) -> Result<Vec<FileSystem>, String> {
        let all = mounts()?;
        // What is mounted over another hides it.
        let hidden = |at: usize| all[at + 1..].iter().any(|later| later.mount_point == all[at].mount_point);
        let mut seen = all.iter().enumerate().filter(|(at, _)| !hidden(*at)).map(|(_, mount)| mount);
        if let Some(wanted) = mount {
            let mount = seen.find(|mount| mount.mount_point == wanted);
            let mount = mount.ok_or_else(|| format!("nothing is mounted at {wanted}"))?;
            return Ok(vec![file_system(mount, usage(&wanted)?)]);
        }
        // One that does not answer is left out, as df does.
        let known = seen.filter_map(|mount| Some((mount, usage(&mount.mount_point).ok()?)));
        Ok(known.filter(|(_, space)| space.blocks > 0).map(|(mount, space)| file_system(mount, space)).collect())
    }
}

fn file_system(mount: &Mount, space: Space) -> FileSystem {
    let used = space.blocks.saturating_sub(space.blocks_free);
    let total = used + space.blocks_available;
    FileSystem {
        mount_point: mount.mount_point.clone(),
        device: mount.device.clone(),
        fstype: mount.fstype.clone(),
        size: space.blocks * space.block_size,
        used: used * space.block_size,
        available: space.blocks_available * space.block_size,
        percent: if total == 0 { 0 } else { (used * 100).div_ceil(total) as u8 },
    }
}

export!(Module);
