//! The module `disk`: file systems and how full they are. The functions and their documentation are in `wit/world.wit`.
//!
//! - [`df`] the numbers of `df` · [`states`] the state

wit_bindgen::generate!({
    world: "disk",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/disks@1.0.0": brine_guest::host::disks,
    },
});

mod df;
mod states;

use brine_guest::Value;
use brine_guest::host::disks::{self, FileSystem, Mount, Space};

struct Module;

impl Guest for Module {
    fn usage(args: Option<Data>) -> Result<Data, String> {
        let all = df::flags(args.as_ref(), "disk.usage")?;
        Ok(table(all, df::blocks)?.into())
    }

    fn inodeusage(args: Option<Data>) -> Result<Data, String> {
        let all = df::flags(args.as_ref(), "disk.inodeusage")?;
        Ok(table(all, df::inodes)?.into())
    }

    fn percent(args: Option<String>) -> Result<Data, String> {
        let Value::Dict(mut percent) = table(false, |_, space| df::capacity(space))? else {
            unreachable!("a table is a dict")
        };
        let Some(wanted) = args.filter(|wanted| !wanted.is_empty()) else { return Ok(Value::Dict(percent).into()) };
        percent.retain(|(mount_point, _)| mount_point.text() == Some(&wanted));
        // For a missing file system, Salt returns an empty dict.
        Ok(percent.pop().map_or(Value::Dict(percent), |(_, used)| used).into())
    }
}

/// A dict of mount points with the result of `row` for each file system.
fn table(all: bool, row: impl Fn(&Mount, &Space) -> Value) -> Result<Value, String> {
    let mut known = disks::file_systems()?;
    if !all {
        known = df::distinct(known);
        known.retain(|FileSystem { space, .. }| space.blocks > 0);
    }
    let rows = known.iter().map(|FileSystem { mount, space }| (mount.mount_point.as_str().into(), row(mount, space)));
    Ok(Value::Dict(rows.collect()))
}

export!(Module);
