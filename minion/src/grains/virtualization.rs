//! The grains `virtual` and `virtual_subtype`: what the machine is made of, with Salt's words.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::map::Grains;
use crate::text_file::read_text;

const MAX_BYTES: u64 = 64 * 1024;

/// `virtual` and, if there is one, `virtual_subtype`.
type Kind = (&'static str, Option<&'static str>);

/// A word in the machine's maker or name (DMI), and what it means.
const MACHINES: [(&str, Kind); 13] = [
    ("VMware", ("VMware", None)),
    ("VirtualBox", ("VirtualBox", None)),
    ("Xen", ("xen", None)),
    ("Microsoft Corporation Virtual", ("VirtualPC", None)),
    ("Parallels", ("Parallels", None)),
    ("RHEV Hypervisor", ("kvm", Some("rhev"))),
    ("oVirt", ("kvm", Some("ovirt"))),
    ("Nutanix AHV", ("kvm", Some("Nutanix AHV"))),
    ("Amazon EC2", ("Nitro", Some("Amazon EC2"))),
    ("KVM", ("kvm", None)),
    ("QEMU", ("kvm", None)),
    ("Bochs", ("kvm", None)),
    ("Google Compute", ("kvm", None)),
];

pub(super) fn collect(grains: &mut Grains) {
    let (kind, mut subtype) = container().or_else(machine).unwrap_or(("physical", None));
    if is_chroot() {
        subtype = Some("chroot");
    }
    grains.text("virtual", kind);
    if let Some(subtype) = subtype {
        grains.text("virtual_subtype", subtype);
    }
}

fn container() -> Option<Kind> {
    let init_cgroup = read_text("/proc/1/cgroup", MAX_BYTES).unwrap_or_default();
    let manager = read_text("/run/systemd/container", MAX_BYTES).unwrap_or_default();
    let subtype = if Path::new("/.dockerenv").exists() || init_cgroup.contains("/docker") {
        Some("Docker")
    } else if Path::new("/run/.containerenv").exists() || init_cgroup.contains("/libpod") {
        Some("Podman")
    } else if init_cgroup.contains("/lxc") || manager.trim().starts_with("lxc") {
        Some("LXC")
    } else if init_cgroup.contains("kubepods") {
        None
    } else if manager.trim() == "systemd-nspawn" {
        return Some(("systemd-nspawn", None));
    } else {
        return None;
    };
    Some(("container", subtype))
}

fn machine() -> Option<Kind> {
    let dmi = |file: &str| read_text(&format!("/sys/class/dmi/id/{file}"), 1024).unwrap_or_default().trim().to_owned();
    of_machine(&format!("{} {}", dmi("sys_vendor"), dmi("product_name")))
}

fn of_machine(name: &str) -> Option<Kind> {
    MACHINES.iter().find(|(mark, _)| name.contains(mark)).map(|(_, kind)| *kind)
}

/// Whether this process has another root than the system's first one. Only root can tell.
fn is_chroot() -> bool {
    let root = |path: &str| std::fs::metadata(path).map(|of| (of.dev(), of.ino()));
    matches!((root("/"), root("/proc/1/root/.")), (Ok(own), Ok(first)) if own != first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_have_salts_words() {
        for (name, kind) in [
            ("innotek GmbH VirtualBox", Some(("VirtualBox", None))),
            ("QEMU Standard PC", Some(("kvm", None))),
            ("Amazon EC2 t3.micro", Some(("Nitro", Some("Amazon EC2")))),
            ("Microsoft Corporation Virtual Machine", Some(("VirtualPC", None))),
            ("Dell Inc. PowerEdge", None),
        ] {
            assert_eq!(of_machine(name), kind, "{name}");
        }
    }
}
