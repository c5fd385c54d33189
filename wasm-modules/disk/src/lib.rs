//! The module `disk`: file systems and how full they are. The functions and their documentation are in `wit/world.wit`.

wit_bindgen::generate!({
    world: "disk",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/disks@1.0.0": brine_guest::host::disks,
    },
});

mod df;

use brine_guest::Value;
use brine_guest::host::disks::{self, Mount, Space};

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
        // Salt's answer for one that is not there is an empty dict.
        Ok(percent.pop().map_or(Value::Dict(percent), |(_, used)| used).into())
    }
}

/// A dict of what `row` makes of each file system, by its mount point.
fn table(all: bool, row: impl Fn(&Mount, &Space) -> Value) -> Result<Value, String> {
    let mut mounts = disks::mounts()?;
    if !all {
        mounts = df::distinct(mounts);
    }
    let mut rows = Vec::new();
    for mount in mounts {
        // One that does not answer, or that is not to be seen, is left out, as df does.
        let Ok(space) = disks::usage(&mount.mount_point) else { continue };
        if all || space.blocks > 0 {
            rows.push((Value::from(mount.mount_point.as_str()), row(&mount, &space)));
        }
    }
    Ok(Value::Dict(rows))
}

export!(Module);
