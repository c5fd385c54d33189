//! Grains of devices: disks, and processors for graphics.

use std::path::{Path, PathBuf};

use brine_protocol::value::{Value, list, map};

use super::map::Grains;
use crate::text_file::read_text;

/// Upper bound on the devices of one kind.
const DEVICES_MAX: usize = 4096;
/// Bytes of an attribute in sysfs.
const ATTRIBUTE_BYTES: u64 = 4096;
/// The database of PCI names has 1.5 MiB.
const MAX_NAMES_BYTES: u64 = 16 * 1024 * 1024;
const NAMES: [&str; 2] = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"];
/// PCI vendors of graphics, with Salt's names for them.
const VENDORS: [(&str, &str); 8] = [
    ("10de", "nvidia"),
    ("1002", "amd"),
    ("1022", "amd"),
    ("8086", "intel"),
    ("1013", "cirrus logic"),
    ("15ad", "vmware"),
    ("102b", "matrox"),
    ("1a03", "aspeed"),
];
/// PCI classes: VGA, 3D, other displays, processing accelerators.
const GRAPHICS: [&str; 4] = ["0x0300", "0x0302", "0x0380", "0x1200"];

pub(super) fn collect(grains: &mut Grains) {
    let (disks, ssds) = disks(Path::new("/sys/block"));
    grains.set("disks", list(disks));
    grains.set("ssds", list(ssds));
    let gpus =
        gpus(Path::new("/sys/bus/pci/devices"), || NAMES.iter().find_map(|path| read_text(path, MAX_NAMES_BYTES)));
    grains.set("num_gpus", Value::from(gpus.len()));
    grains.set("gpus", Value::Array(gpus));
    if let Some(arrays) = read_text("/proc/mdstat", ATTRIBUTE_BYTES * 16) {
        grains.set("mdadm", list(md_arrays(&arrays)));
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).take(DEVICES_MAX).collect();
    paths.sort();
    paths
}

fn attribute(device: &Path, name: &str) -> Option<String> {
    read_text(device.join(name).to_str()?, ATTRIBUTE_BYTES).map(|text| text.trim().to_owned())
}

/// Rotating disks and others. Devices that are no hardware, such as loop devices, are neither.
fn disks(block: &Path) -> (Vec<String>, Vec<String>) {
    let (mut disks, mut ssds) = (Vec::new(), Vec::new());
    for device in entries(block) {
        let is_virtual = device.read_link().is_ok_and(|to| to.starts_with("../devices/virtual"));
        let Some(name) = device.file_name().map(|name| name.to_string_lossy().into_owned()) else { continue };
        match attribute(&device, "queue/rotational").filter(|_| !is_virtual).as_deref() {
            Some("0") => ssds.push(name),
            Some("1") => disks.push(name),
            _ => {}
        }
    }
    (disks, ssds)
}

fn gpus(devices: &Path, names: impl FnOnce() -> Option<String>) -> Vec<Value> {
    let is_graphics = |device: &PathBuf| {
        attribute(device, "class").is_some_and(|class| GRAPHICS.iter().any(|graphics| class.starts_with(graphics)))
    };
    let found: Vec<PathBuf> = entries(devices).into_iter().filter(is_graphics).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let names = names().unwrap_or_default();
    let describe = |device: &PathBuf| {
        let id = |name| attribute(device, name).map(|id| id.trim_start_matches("0x").to_owned()).unwrap_or_default();
        let (vendor, device) = (id("vendor"), id("device"));
        let known = VENDORS.iter().find(|(known, _)| *known == vendor).map_or("unknown", |(_, name)| name);
        let model = model(&names, &vendor, &device).unwrap_or_else(|| format!("Device {device}"));
        map([("vendor", Value::from(known)), ("model", Value::from(model))])
    };
    found.iter().map(describe).collect()
}

/// Finds a device's name in pci.ids: vendors at the beginning of a line, their devices behind one tab.
fn model(names: &str, vendor: &str, device: &str) -> Option<String> {
    let of_vendor = names.lines().skip_while(|line| !is_entry(line, vendor)).skip(1);
    let mut devices = of_vendor.take_while(|line| line.starts_with(['\t', '#']) || line.is_empty());
    let found = devices.find(|line| line.strip_prefix('\t').is_some_and(|line| is_entry(line, device)))?;
    Some(found.trim_start().get(device.len()..)?.trim().to_owned())
}

fn is_entry(line: &str, id: &str) -> bool {
    !id.is_empty() && line.strip_prefix(id).is_some_and(|rest| rest.starts_with(' '))
}

/// The names of the arrays in `/proc/mdstat`.
fn md_arrays(text: &str) -> Vec<&str> {
    let is_head = |line: &&str| line.starts_with("Personalities : ") || line.starts_with("unused devices:");
    text.lines().filter(|line| !is_head(line)).filter_map(|line| Some(line.split_once(" : ")?.0)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn disks_rotate_or_not() {
        let root = tempfile::tempdir().unwrap();
        let block = root.path().join("block");
        fs::create_dir(&block).unwrap();
        for (name, at, rotational) in
            [("sda", "pci/sda", "1\n"), ("nvme0n1", "pci/nvme0n1", "0\n"), ("loop0", "virtual/loop0", "0\n")]
        {
            let device = root.path().join("devices").join(at);
            fs::create_dir_all(device.join("queue")).unwrap();
            fs::write(device.join("queue/rotational"), rotational).unwrap();
            symlink(format!("../devices/{at}"), block.join(name)).unwrap();
        }
        assert_eq!(disks(&block), (vec!["sda".to_owned()], vec!["nvme0n1".to_owned()]));
    }

    #[test]
    fn graphics_have_names() {
        let root = tempfile::tempdir().unwrap();
        for (name, class, vendor, device) in [
            ("0000:00:01.0", "0x030000", "0x10de", "0x1eb8"),
            ("0000:00:02.0", "0x030200", "0x1234", "0x1111"),
            ("0000:00:03.0", "0x020000", "0x8086", "0x100e"),
        ] {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            for (file, text) in [("class", class), ("vendor", vendor), ("device", device)] {
                fs::write(folder.join(file), format!("{text}\n")).unwrap();
            }
        }
        let names = "# names\n1000  Other\n\t1eb8  Wrong\n10de  NVIDIA Corporation\n\t0001  First\n\t\t10de 1eb8  Part\n\t1eb8  TU104GL [Tesla T4]\n10ec  Next\n";
        let gpu = |vendor: &str, model: &str| map([("vendor", vendor), ("model", model)]);
        let found = gpus(root.path(), || Some(names.to_owned()));
        assert_eq!(found, [gpu("nvidia", "TU104GL [Tesla T4]"), gpu("unknown", "Device 1111")]);
    }

    #[test]
    fn arrays_have_names() {
        let text = "Personalities : [raid1]\nmd0 : active raid1 sdb1[1] sda1[0]\n      1 blocks [2/2] [UU]\n\nunused devices: <none>\n";
        assert_eq!(md_arrays(text), ["md0"]);
    }
}
