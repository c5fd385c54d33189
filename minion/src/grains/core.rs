//! Grains of the machine and its kernel: CPU, memory, kernel, init, identity numbers.

use super::map::Grains;
use crate::text_file::read_text;
use brine_protocol::value::Value;

/// `/proc/cpuinfo` of a host with a thousand CPUs is about 1.5 MB.
const MAX_CPUINFO_BYTES: u64 = 8 * 1024 * 1024;
const MAX_SMALL_BYTES: u64 = 64 * 1024;

pub(super) fn collect(grains: &mut Grains) {
    kernel(grains);
    cpu(grains);
    memory(grains);
    machine_id(grains);
    process(grains);
    grains.text("init", init());
}

fn kernel(grains: &mut Grains) {
    let uname = rustix::system::uname();
    let text = |c: &std::ffi::CStr| c.to_string_lossy().into_owned();
    grains.text("kernel", &text(uname.sysname()));
    grains.text("nodename", &text(uname.nodename()));
    grains.text("kernelrelease", &text(uname.release()));
    grains.text("kernelversion", &text(uname.version()));
    let arch = text(uname.machine());
    grains.text("osarch", os_arch(&arch));
    grains.text("cpuarch", &arch);
}

/// The package manager's name of the architecture on Debian and its relatives; `osarch` has it. Elsewhere the kernel's name.
fn os_arch(machine: &str) -> &str {
    if !std::path::Path::new("/etc/debian_version").exists() {
        return machine;
    }
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "armv7l" => "armhf",
        "i686" => "i386",
        "ppc64le" => "ppc64el",
        other => other,
    }
}

fn cpu(grains: &mut Grains) {
    let Some(text) = read_text("/proc/cpuinfo", MAX_CPUINFO_BYTES) else { return };
    let mut count = 0u64;
    let mut model = None;
    let mut flags = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key.trim() {
            "processor" => count += 1,
            "model name" | "Processor" | "cpu" if model.is_none() => model = Some(value.to_owned()),
            "flags" | "Features" if flags.is_none() => {
                flags = Some(value.split_whitespace().map(Value::from).collect())
            }
            _ => {}
        }
    }
    grains.set("num_cpus", Value::from(count.max(1)));
    grains.text("cpu_model", model.as_deref().unwrap_or("Unknown"));
    grains.set("cpu_flags", Value::Array(flags.unwrap_or_default()));
}

fn memory(grains: &mut Grains) {
    let Some(text) = read_text("/proc/meminfo", MAX_SMALL_BYTES) else { return };
    for (field, grain) in [("MemTotal:", "mem_total"), ("SwapTotal:", "swap_total")] {
        let kib = text.lines().find_map(|l| l.strip_prefix(field)?.split_whitespace().next()?.parse::<u64>().ok());
        if let Some(kib) = kib {
            grains.set(grain, Value::from(kib / 1024)); // MiB
        }
    }
}

fn machine_id(grains: &mut Grains) {
    for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
        if let Some(id) = read_text(path, 256).map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()) {
            grains.text("machine_id", &id);
            return;
        }
    }
}

fn process(grains: &mut Grains) {
    let uid = rustix::process::getuid().as_raw();
    let gid = rustix::process::getgid().as_raw();
    grains.set("uid", Value::from(uid));
    grains.set("gid", Value::from(gid));
    grains.set("pid", Value::from(std::process::id()));
    if let Some(name) = crate::accounts::user_name(uid) {
        grains.text("username", &name);
    }
    if let Some(name) = crate::accounts::group_name(gid) {
        grains.text("groupname", &name);
    }
}

fn init() -> &'static str {
    use std::path::Path;
    if Path::new("/run/systemd/system").exists() {
        return "systemd";
    }
    match std::fs::read_link("/proc/1/exe").ok().and_then(|p| p.file_name().map(|n| n.to_string_lossy().into_owned())) {
        Some(name) if name == "init" => "sysvinit",
        Some(name) if name == "runit" => "runit",
        Some(name) if name == "openrc-init" => "openrc",
        Some(name) if name == "s6-svscan" => "s6",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_facts_are_there() {
        let mut grains = Grains::default();
        collect(&mut grains);
        assert_eq!(grains.get_text("kernel"), Some("Linux"));
        for key in ["kernelrelease", "cpuarch", "nodename", "cpu_model", "init"] {
            assert!(grains.get_text(key).is_some_and(|v| !v.is_empty()), "{key}");
        }
    }
}
