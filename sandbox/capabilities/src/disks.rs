//! `disks`: list mounts and their free space.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[("disk", Standard::All), ("diskusage", Standard::All), ("ps", Standard::All)],
    ..Declaration::new("disks", "see what is mounted and how full it is", &["brine:host/disks"], Kind::Flag)
};

/// `brine:host/disks`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DisksOp {
    /// Returns an array of maps: `device`, `mount_point`, `fstype`, `options` (array of text), `device_number`.
    Mounts,
    /// Runs `statvfs` on a mount point. Returns a map: `block_size`, `blocks`, `blocks_free`, `blocks_available`,
    /// `inodes`, `inodes_free`. Fails if the file system does not answer in time.
    Usage {
        /// One of the mount points.
        mount_point: String,
    },
    /// Returns an array with all visible file systems that answer, as maps: `mount`, as in `Mounts`, and `space`, as in
    /// `Usage`.
    FileSystems,
    /// Returns such a map for the file system visible at a mount point.
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

    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }

    fn is_foreseeable(&self) -> bool {
        true
    }
}
