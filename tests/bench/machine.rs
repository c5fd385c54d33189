//! Describes the machine of the benchmark.

/// Returns one sentence about this machine, without its name.
pub(crate) fn describe() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':')).map(|(_, model)| model.trim());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = read("/proc/meminfo");
    let kib =
        memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok());
    let gib = kib.unwrap_or(0).div_ceil(1024 * 1024);
    let release = read("/proc/sys/kernel/osrelease");
    // The rest of the version names a particular build.
    let kernel: String = release.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let folder = std::env::temp_dir();
    format!(
        "{}, {cores} cores, {gib} GiB of memory, Linux {kernel}, temporary folders on {}",
        model.unwrap_or("a processor without a name"),
        filesystem(&folder)
    )
}

/// Returns the type of the file system of a folder.
fn filesystem(folder: &std::path::Path) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let fields = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
    };
    let under = mounts.lines().filter_map(fields).filter(|(point, _)| folder.starts_with(point));
    under.max_by_key(|(point, _)| point.len()).map_or_else(|| "an unknown file system".into(), |(_, kind)| kind)
}
