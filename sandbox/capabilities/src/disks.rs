//! `disks`: what is mounted, and how full it is.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[("disk", Standard::All)],
    ..Declaration::new("disks", "see what is mounted and how full it is", &["brine:host/disks"], Kind::Flag)
};

/// `brine:host/disks`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DisksOp {
    /// Answered by an array of maps: `device`, `mount_point`, `fstype`, `options` (array of text), `device_number`.
    Mounts,
    /// What `statvfs` says of a mount point; answered by a map: `block_size`, `blocks`, `blocks_free`, `blocks_available`,
    /// `inodes`, `inodes_free`; an error where it does not answer in time.
    Usage {
        /// One of the mount points.
        mount_point: String,
    },
    /// All that can be seen and answer; answered by an array of maps: `mount`, as of `Mounts`, and `space`, as of `Usage`.
    FileSystems,
    /// The one that is seen at a mount point; answered by such a map.
    FileSystemAt {
        /// One of the mount points.
        mount_point: String,
    },
}

impl Operation for DisksOp {
    const INTERFACE: &'static str = "brine:host/disks";

    fn size(&self) -> Size {
        match self {
            Self::Mounts | Self::FileSystems => Size::default(),
            Self::Usage { mount_point } | Self::FileSystemAt { mount_point } => Size::names(mount_point.len()),
        }
    }

    fn check(self, _: &Asker<'_>, _: &Grants) -> Result<Self, Refusal> {
        if let Self::Usage { mount_point } | Self::FileSystemAt { mount_point } = &self {
            forms::text("the mount point", mount_point, forms::MAX_PATH, Form::Bytes)?;
        }
        Ok(self)
    }
}
