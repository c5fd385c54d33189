//! Control groups (version 2): one for each executor, below the minion's own group, if the host has delegated that
//! group to the minion. They bound what resource limits cannot: the memory of a whole process and its share of the
//! processor.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use brine_sandbox_walls::Cgroup;

/// The controllers that executors' groups use.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];
/// The group to which the minion moves itself: a group that has child groups with controllers must not contain
/// processes.
const MINION: &str = "minion";
/// Prefix of the names of executors' groups.
const PREFIX: &str = "executor-";
/// Half the weight of the minion and everything else.
const CPU_WEIGHT: u64 = 50;

/// The minion's own group, prepared for child groups.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    dir: PathBuf,
    path: String,
    controllers: Vec<&'static str>,
}

/// The limits of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupBounds {
    /// Bytes.
    pub(crate) memory: u64,
    /// Threads.
    pub(crate) pids: u64,
}

/// One executor's group. Dropping it removes the group, after the process has ended.
#[derive(Debug)]
pub(crate) struct Group {
    dir: PathBuf,
    pub(crate) said: Cgroup,
}

impl Groups {
    /// Finds the minion's group on this host and prepares it if the minion may. The error says why there are no groups.
    pub(crate) fn find() -> Result<Self, String> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let (own, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
        let (dir, path) = locate(&own, &mounts)?;
        let groups = Self::at(dir, path)?;
        if Path::new("/run/systemd/system").exists() && !delegated(&groups.dir) {
            return Err(
                "the minion's control group is systemd's to arrange; Delegate=yes in its unit gives it away".into()
            );
        }
        groups.prepare(std::process::id())?;
        Ok(groups)
    }

    /// Returns the group in this folder if it offers a useful controller.
    fn at(dir: PathBuf, path: String) -> Result<Self, String> {
        let offered = fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default();
        let offered: Vec<&str> = offered.split_whitespace().collect();
        let controllers: Vec<&str> =
            CONTROLLERS.into_iter().filter(|controller| offered.contains(controller)).collect();
        if controllers.is_empty() {
            return Err("the minion's control group has no controller for memory, pids or cpu".into());
        }
        Ok(Self { dir, path, controllers })
    }

    /// Enables the controllers for child groups. If necessary, first moves the minion to a child group.
    fn prepare(&self, pid: u32) -> Result<(), String> {
        let control = self.dir.join("cgroup.subtree_control");
        let text: Vec<String> = self.controllers.iter().map(|controller| format!("+{controller}")).collect();
        let hand_down = || fs::write(&control, text.join(" "));
        let failed = |error: &io::Error| format!("the minion's control group cannot be arranged: {error}");
        match hand_down() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                let procs = fs::read_to_string(self.dir.join("cgroup.procs")).map_err(|error| failed(&error))?;
                if !alone(&procs, pid) {
                    return Err("other processes are in the minion's control group".into());
                }
                let leaf = self.dir.join(MINION);
                match fs::create_dir(&leaf) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(&error)),
                    _ => {}
                }
                let moved = fs::write(leaf.join("cgroup.procs"), pid.to_string());
                moved.and_then(|()| hand_down()).map_err(|error| failed(&error))
            }
            other => other.map_err(|error| failed(&error)),
        }
    }

    /// Makes a group for a process and moves the process there.
    pub(crate) fn make(&self, pid: u32, bounds: GroupBounds) -> Result<Group, String> {
        self.sweep();
        let name = format!("{PREFIX}{pid}");
        let dir = self.dir.join(&name);
        let failed = |what: &str, error: &io::Error| format!("{what} of its control group: {error}");
        fs::create_dir(&dir).map_err(|error| failed("the folder", &error))?;
        let mut group = Group { dir, said: Cgroup::Unknown };
        let mut set = BTreeMap::new();
        for (controller, file, value) in [
            ("memory", "memory.max", bounds.memory.to_string()),
            ("memory", "memory.swap.max", "0".to_owned()),
            ("memory", "memory.oom.group", "1".to_owned()),
            ("pids", "pids.max", bounds.pids.to_string()),
            ("cpu", "cpu.weight", CPU_WEIGHT.to_string()),
        ] {
            if !self.controllers.contains(&controller) {
                continue;
            }
            match fs::write(group.dir.join(file), &value) {
                Ok(()) => drop(set.insert(file.to_owned(), value)),
                // A host without swap does not have this file.
                Err(_) if file == "memory.swap.max" => {}
                Err(error) => return Err(failed(file, &error)),
            }
        }
        fs::write(group.dir.join("cgroup.procs"), pid.to_string()).map_err(|error| failed("cgroup.procs", &error))?;
        group.said = Cgroup::In(format!("{}/{name}", self.path.trim_end_matches('/')), set);
        Ok(group)
    }

    /// Removes groups without processes. The kernel refuses to remove groups in use.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Fails while the process is still ending; the next `make` sweeps it.
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Returns the folder in which the minion may make groups for programs: its own group's folder, or the parent if the
/// minion was moved to a child group.
///
/// # Errors
/// Returns why there is none.
pub fn program_groups() -> Result<PathBuf, String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let (mut dir, _) = locate(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)?;
    if dir.ends_with(MINION) && !delegated(&dir) {
        dir.pop();
    }
    if Path::new("/run/systemd/system").exists() && !delegated(&dir) {
        return Err("the minion's control group is systemd's to arrange; Delegate=yes in its unit gives it away".into());
    }
    Ok(dir)
}

/// Returns the folder and the path of this process's group, from the texts of `/proc/self/cgroup` and `mountinfo`.
fn locate(own: &str, mounts: &str) -> Result<(PathBuf, String), String> {
    let path =
        own.lines().find_map(|line| line.strip_prefix("0::")).ok_or("there are no control groups of version 2")?;
    let mount = mounts.lines().find_map(|line| {
        let (fields, rest) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        rest.starts_with("cgroup2 ").then_some((root, point))
    });
    let (root, point) = mount.ok_or("control groups of version 2 are not mounted")?;
    let below =
        Path::new(path).strip_prefix(root).map_err(|_| "the minion's control group is not among those mounted")?;
    let inside = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !inside {
        return Err("the minion's control group is outside of those it sees".into());
    }
    Ok((Path::new(point).join(below), path.to_owned()))
}

/// Checks that this process is the only one in the group.
fn alone(procs: &str, pid: u32) -> bool {
    procs.lines().all(|line| line.trim() == pid.to_string())
}

/// Checks whether systemd has delegated the group.
fn delegated(dir: &Path) -> bool {
    let mut value = [0; 8];
    ["trusted.delegate", "user.delegate"].iter().any(
        |name| matches!(rustix::fs::getxattr(dir, *name, &mut value), Ok(length) if value.get(..length) == Some(b"1")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 22 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
";

    #[test]
    fn where_the_group_is() {
        let at = |own: &str, mounts: &str| locate(own, mounts).map(|(dir, path)| (dir.display().to_string(), path));
        let unit = "/system.slice/salt-minion.service";
        assert_eq!(at(&format!("0::{unit}\n"), MOUNTS), Ok((format!("/sys/fs/cgroup{unit}"), unit.into())));
        let hybrid = MOUNTS.replace("/sys/fs/cgroup rw", "/sys/fs/cgroup/unified rw");
        let lines = format!("4:memory:/x\n1:cpu:/\n0::{unit}\n");
        assert_eq!(at(&lines, &hybrid), Ok((format!("/sys/fs/cgroup/unified{unit}"), unit.into())));
        // A container, in which a part of the tree is mounted.
        let part = MOUNTS.replace("0:27 / ", "0:27 /docker/1 ");
        assert_eq!(at("0::/docker/1/a\n", &part), Ok(("/sys/fs/cgroup/a".into(), "/docker/1/a".into())));
        assert_eq!(at("0::/docker/2\n", &part), Err("the minion's control group is not among those mounted".into()));
        assert_eq!(at("0::/../x\n", MOUNTS), Err("the minion's control group is outside of those it sees".into()));
        assert_eq!(at("4:memory:/\n", MOUNTS), Err("there are no control groups of version 2".into()));
        let none = MOUNTS.replace("cgroup2", "tmpfs");
        assert_eq!(at("0::/\n", &none), Err("control groups of version 2 are not mounted".into()));
    }

    #[test]
    fn only_a_group_of_its_own_is_arranged() {
        assert!(alone("17\n", 17) && alone("", 17));
        assert!(!alone("17\n18\n", 17) && !alone("170\n", 17));
    }

    #[test]
    fn a_group_for_each_executor() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().to_owned();
        let text = |path: &str| fs::read_to_string(dir.join(path)).unwrap();
        fs::write(dir.join("cgroup.controllers"), "io rdma\n").unwrap();
        let none = Groups::at(dir.clone(), "/unit".into()).unwrap_err();
        assert_eq!(none, "the minion's control group has no controller for memory, pids or cpu");
        fs::write(dir.join("cgroup.controllers"), "cpuset cpu io memory pids\n").unwrap();
        let groups = Groups::at(dir.clone(), "/unit".into()).unwrap();
        groups.prepare(17).unwrap();
        assert_eq!(text("cgroup.subtree_control"), "+memory +pids +cpu");
        // Left by an executor that was killed together with its minion.
        fs::create_dir(dir.join("executor-1")).unwrap();
        let group = groups.make(4711, GroupBounds { memory: 1 << 30, pids: 300 }).unwrap();
        assert!(!dir.join("executor-1").exists());
        for (file, expect) in
            [("memory.max", "1073741824"), ("pids.max", "300"), ("cpu.weight", "50"), ("cgroup.procs", "4711")]
        {
            assert_eq!(text(&format!("executor-4711/{file}")), expect);
        }
        let Cgroup::In(path, bounds) = &group.said else { panic!("{:?}", group.said) };
        assert_eq!((path.as_str(), bounds.get("pids.max").map(String::as_str)), ("/unit/executor-4711", Some("300")));
        // In the kernel's file system the files go with the folder.
        for file in fs::read_dir(&group.dir).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        drop(group);
        assert!(!dir.join("executor-4711").exists());
    }
}
