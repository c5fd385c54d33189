//! Bits of inotify(7).

pub(super) const IN_CREATE: u32 = 0x100;
pub(super) const IN_MOVED_FROM: u32 = 0x40;
pub(super) const IN_MOVED_TO: u32 = 0x80;
pub(super) const IN_MOVE_SELF: u32 = 0x800;
pub(super) const IN_ALL_EVENTS: u32 = 0xfff;
pub(super) const IN_UNMOUNT: u32 = 0x2000;
pub(super) const IN_Q_OVERFLOW: u32 = 0x4000;
pub(super) const IN_IGNORED: u32 = 0x8000;
pub(super) const IN_ONLYDIR: u32 = 0x0100_0000;
pub(super) const IN_DONT_FOLLOW: u32 = 0x0200_0000;
pub(super) const IN_MASK_CREATE: u32 = 0x1000_0000;
pub(super) const IN_ISDIR: u32 = 0x4000_0000;
pub(super) const IN_ONESHOT: u32 = 0x8000_0000;
