//! Users and groups with root's rights. A number means whoever has it, however it is written, and so does another name for it on this host.

use nix::unistd::{Gid, Group, User};

/// Groups that have root's rights, or can get them.
const ROOTS_GROUPS: [&str; 13] =
    ["admin", "disk", "docker", "incus", "kmem", "kvm", "libvirt", "lxd", "podman", "root", "shadow", "sudo", "wheel"];

/// Whether a user's rights are all there are.
pub(super) fn is_root(user: &str) -> bool {
    user == "root"
        || number(user) == Some(0)
        || User::from_name(user).ok().flatten().is_some_and(|user| user.uid.is_root())
}

/// Whether a group has root's rights, or can get them.
pub(super) fn is_roots_group(group: &str) -> bool {
    let named = |name: &str| ROOTS_GROUPS.contains(&name);
    let by_number = || match number(group)? {
        0 => Some(true),
        gid => Group::from_gid(Gid::from_raw(gid)).ok().flatten().map(|group| named(&group.name)),
    };
    named(group) || by_number() == Some(true)
}

fn number(name: &str) -> Option<u32> {
    name.parse().ok()
}
