//! What is mounted: by the kernel's list, and what `mount` and `blkid` add to it.

use brine_guest::program::{self, Program};
use brine_guest::{Value, changes};

/// A file system that is mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The place; a space in it is `\040`.
    pub at: String,
    pub device: String,
    /// The device as `mount` names it.
    pub other_device: Option<String>,
    pub fstype: String,
    /// Options of the place.
    pub opts: Vec<String>,
    /// Options of the file system.
    pub superopts: Vec<String>,
    pub uuid: Option<String>,
    pub label: Option<String>,
    /// The fields `mountid`, `parentid`, `major`, `minor` and `root`.
    numbers: [String; 5],
}

fn options(text: &str) -> Vec<String> {
    text.split(',').map(|option| option.replace("\\040", "\\ ")).collect()
}

impl Mount {
    /// Reads a line of `/proc/self/mountinfo`.
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let separator = words.iter().position(|word| *word == "-")?;
        let [id, parent, numbers, root, at, opts, ..] = &words[..] else { return None };
        let [fstype, device, superopts, ..] = words.get(separator + 1..)? else { return None };
        let (major, minor) = numbers.split_once(':')?;
        Some(Self {
            at: (*at).to_owned(),
            device: device.replace("\\040", "\\ "),
            fstype: (*fstype).to_owned(),
            opts: options(opts),
            superopts: options(superopts),
            numbers: [id, parent, major, minor, root].map(|word| (*word).to_owned()),
            ..Self::default()
        })
    }

    pub(crate) fn value(&self, extended: bool) -> Value {
        let mut opts = self.opts.clone();
        if !extended {
            // As `/proc/self/mounts` has them.
            opts.extend(self.superopts.iter().filter(|option| !self.opts.contains(option)).cloned());
        }
        let mut value = vec![
            ("device", Value::from(self.device.as_str())),
            ("alt_device", self.other_device.clone().into()),
            ("fstype", self.fstype.as_str().into()),
            ("opts", opts.into()),
        ];
        if extended {
            let names = ["mountid", "parentid", "major", "minor", "root"];
            value.extend(names.into_iter().zip(self.numbers.iter().map(|number| number.as_str().into())));
            value.extend([
                ("superopts", self.superopts.clone().into()),
                ("device_uuid", self.uuid.clone().into()),
                ("device_label", self.label.clone().into()),
            ]);
        }
        Value::dict(value)
    }
}

/// All that is mounted. Of several at one place, the last one counts.
pub(crate) fn all() -> Result<Vec<Mount>, String> {
    let file = "/proc/self/mountinfo";
    let text = Program::new(["cat", file]).run()?.ok()?;
    let named = listed(&Program::new(["mount", "-l"]).run()?.stdout);
    let devices = blkid(&[])?;
    let mut mounts: Vec<Mount> = Vec::new();
    for mut mount in text.lines().filter_map(Mount::read) {
        mount.other_device = named.iter().rev().find(|(at, _)| *at == mount.at).map(|(_, device)| device.clone());
        let device = devices.iter().find(|device| device.name == mount.device);
        mount.uuid = device.and_then(|device| device.field("UUID")).map(str::to_lowercase);
        mount.label = device.and_then(|device| device.field("LABEL")).map(str::to_owned);
        mounts.retain(|known| known.at != mount.at);
        mounts.push(mount);
    }
    Ok(mounts)
}

/// Finds what is mounted at a place.
pub(crate) fn at<'a>(mounts: &'a [Mount], place: &str) -> Option<&'a Mount> {
    mounts.iter().find(|mount| mount.at == place)
}

/// Whether something is mounted at a place.
pub(crate) fn is_at(place: &str) -> Result<bool, String> {
    Ok(at(&all()?, place).is_some())
}

/// Places and devices in what `mount -l` prints.
fn listed(text: &str) -> Vec<(String, String)> {
    let pair = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some(((*words.get(2)?).to_owned(), (*words.first()?).to_owned()))
    };
    text.lines().filter_map(pair).collect()
}

/// A device that `blkid` knows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub name: String,
    fields: Vec<(String, String)>,
}

impl Device {
    /// Reads a line: `/dev/sda1: LABEL="a b" UUID="…"`.
    fn read(line: &str) -> Option<Self> {
        let (name, mut rest) = line.split_once(": ")?;
        let mut fields = Vec::new();
        while let Some((key, after)) = rest.split_once("=\"") {
            let (value, after) = after.split_once('"')?;
            fields.push((key.trim().to_owned(), value.to_owned()));
            rest = after;
        }
        Some(Self { name: name.to_owned(), fields })
    }

    pub(crate) fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

/// The devices that `blkid` finds; none on a host without it.
pub(crate) fn blkid(words: &[&str]) -> Result<Vec<Device>, String> {
    if !program::exists("blkid")? {
        return Ok(Vec::new());
    }
    // Without its cache, which it would write.
    let done = Program::new(["blkid", "-c", "/dev/null"]).args(words.iter().copied()).run()?;
    Ok(if done.code == 0 { done.stdout.lines().filter_map(Device::read).collect() } else { Vec::new() })
}

/// The swap areas in use: device, and its fields as Salt shows them.
pub(crate) fn swaps() -> Result<Vec<(String, Value)>, String> {
    let text = Program::new(["cat", "/proc/swaps"]).run()?.ok()?;
    Ok(text.lines().filter_map(swap).collect())
}

fn swap(line: &str) -> Option<(String, Value)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, kind, size, used, priority, ..] = &words[..] else { return None };
    let fields = [("type", *kind), ("size", *size), ("used", *used), ("priority", *priority)];
    (*name != "Filename").then(|| ((*name).to_owned(), Value::dict(fields.map(|(key, value)| (key, value.into())))))
}

/// Whether there is something at a path.
pub(crate) fn exists(path: &str) -> Result<bool, String> {
    if path.starts_with('/') { Ok(changes::look(path, true)?.is_some()) } else { Ok(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_and_the_programs_lines_are_read() {
        let line = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount::read(line).unwrap();
        assert_eq!(
            (mount.at.as_str(), mount.device.as_str(), mount.fstype.as_str()),
            ("/mnt\\0402", "/dev/root", "ext3")
        );
        assert_eq!(mount.superopts, ["rw", "errors=continue"]);
        assert_eq!(mount.numbers, ["36", "35", "98", "0", "/mnt1"]);
        assert_eq!(mount.value(false).get("opts"), Some(&vec!["rw", "noatime", "errors=continue"].into()));
        let device = Device::read("/dev/sda1: LABEL=\"a b\" UUID=\"AB-1\" TYPE=\"vfat\"").unwrap();
        assert_eq!((device.field("LABEL"), device.field("UUID"), device.field("X")), (Some("a b"), Some("AB-1"), None));
        assert_eq!(listed("tmpfs on /run type tmpfs (rw)\nx\n"), [("/run".into(), "tmpfs".into())]);
        assert!(swap("Filename Type Size Used Priority").is_none());
        assert_eq!(swap("/dev/sda2 partition 8 0 -2").unwrap().0, "/dev/sda2");
    }
}
