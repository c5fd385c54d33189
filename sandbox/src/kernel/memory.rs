//! Determines how much memory instances may have on this host.

use std::path::Path;

/// Returns half of the memory available to this process. The other half is for the host's own work.
pub(crate) fn half() -> u64 {
    let info = rustix::system::sysinfo();
    #[allow(clippy::useless_conversion, reason = "it is narrower on 32-bit hosts")]
    let installed = u64::try_from(info.totalram).unwrap_or(u64::MAX).saturating_mul(u64::from(info.mem_unit));
    let allowed = std::fs::read_to_string("/proc/self/cgroup").ok();
    let allowed = allowed.and_then(|text| of_group(&text, Path::new("/sys/fs/cgroup")));
    allowed.map_or(installed, |allowed| allowed.min(installed)) / 2
}

/// Returns the smallest limit of this process's group and its ancestors.
fn of_group(membership: &str, root: &Path) -> Option<u64> {
    let group = membership.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let groups = Path::new(group).ancestors().map(|group| root.join(group).join("memory.max"));
    groups.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_all_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("system.slice/salt-minion.service")).unwrap();
        let write = |path: &str, text: &str| std::fs::write(root.path().join(path).join("memory.max"), text).unwrap();
        let least = || of_group("12:cpu:/\n0::/system.slice/salt-minion.service\n", root.path());
        assert_eq!(least(), None);
        write("system.slice/salt-minion.service", "max\n");
        assert_eq!(least(), None);
        write("system.slice/salt-minion.service", "1000000\n");
        assert_eq!(least(), Some(1_000_000));
        write("system.slice", "500000\n");
        assert_eq!(least(), Some(500_000));
        assert!(half() > 1 << 20);
    }
}
