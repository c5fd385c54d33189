//! Landlock: restricts files, TCP ports, and signals and sockets to other processes.

use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags};

use crate::{Spec, WalledProgram, Walls};

/// The newest version of landlock whose rights this code knows. An older kernel enforces those that it has.
const NEWEST: ABI = ABI::V9;

/// Upper bound on ports with a rule each. A grant with more ports is nearly a grant of all.
const MAX_PORTS: u32 = 2_048;

/// Opens the granted directories and files by paths without symbolic links: a user who can replace a part of a path must not be
/// able to change the grant. A directory that cannot be opened is left out and noted; the others count.
pub(crate) fn open(spec: &Spec, walls: &mut Walls) -> Vec<(OwnedFd, bool)> {
    let open = |path: &str| {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
            Err(rustix::io::Errno::LOOP) => Err("a part of its path is a symbolic link".to_owned()),
            // A kernel before 5.6 has no landlock either, so the opened directory grants nothing.
            Err(error) => Err(std::io::Error::from(error).to_string()),
            Ok(opened) => match rustix::fs::fstat(&opened).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
                Ok(FileType::Directory | FileType::RegularFile) => Ok(opened),
                _ => Err("it is neither a directory nor a regular file".to_owned()),
            },
        }
    };
    let uid = rustix::process::geteuid().as_raw();
    let mut opened = Vec::new();
    for grant in &spec.directories {
        let directory = match open(&grant.path) {
            Ok(directory) => directory,
            Err(why) => {
                walls.notes.push(format!("the directory {} is left out: user {uid} cannot open it: {why}", grant.path));
                continue;
            }
        };
        // Rules of landlock only add rights: within a writable directory, a read-only one is writable too, unless its
        // mount is read-only.
        if let Some(outer) = spec.writable_around(grant)
            && !is_read_only(&directory)
        {
            let (outer, inner) = (&outer.path, &grant.path);
            walls
                .missing
                .push(format!("once escaped it can change {inner}, which may only be read, as it can {outer}"));
        }
        opened.push((directory, grant.writable));
    }
    opened
}

/// Whether the mount of a directory is read-only.
fn is_read_only(directory: &OwnedFd) -> bool {
    rustix::fs::fstatvfs(directory).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY))
}

fn rights(writable: bool) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    // The process may make no devices, sockets or pipes, and may execute nothing.
    let write = AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSym
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    if writable { read | write } else { read }
}

/// The ports that get a rule; none if there are too many.
fn ports(spec: &Spec) -> Option<Vec<u16>> {
    let count: u32 = spec.connect.iter().map(|(low, high)| u32::from(*high) - u32::from(*low) + 1).sum();
    (count <= MAX_PORTS).then(|| spec.connect.iter().flat_map(|(low, high)| *low..=*high).collect())
}

/// Restricts this thread and the threads that it starts later.
pub(crate) fn restrict(spec: &Spec, directories: Vec<(OwnedFd, bool)>, walls: &mut Walls) {
    match enforce(spec, directories) {
        Ok(abi) => {
            walls.landlock = abi;
            describe(spec, abi, walls);
        }
        // `Walls::lacking` says that landlock is missing; this note says why.
        Err(why) => walls.notes.push(format!("no landlock: {why}")),
    }
}

fn enforce(spec: &Spec, directories: Vec<(OwnedFd, bool)>) -> Result<u32, String> {
    let ports = ports(spec);
    let network = if ports.is_some() { AccessNet::from_all(NEWEST) } else { AccessNet::BindTcp.into() };
    let restricted = || -> Result<_, RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(network)?
            .scope(Scope::from_all(NEWEST))?
            .create()?;
        for (directory, writable) in directories {
            let is_file =
                rustix::fs::fstat(&directory).is_ok_and(|stat| !FileType::from_raw_mode(stat.st_mode).is_dir());
            // The kernel refuses rights of directories for a file.
            let rights = if is_file { rights(writable) & AccessFs::from_file(NEWEST) } else { rights(writable) };
            ruleset = ruleset.add_rule(PathBeneath::new(directory, rights))?;
        }
        for port in ports.into_iter().flatten() {
            ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
        }
        ruleset.restrict_self()
    };
    let status = restricted().map_err(|error| error.to_string())?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if status.ruleset != RulesetStatus::NotEnforced => {
            Ok(u32::try_from(effective_abi as i32).unwrap_or_default())
        }
        LandlockStatus::NotImplemented => Err("this kernel has none (CONFIG_SECURITY_LANDLOCK)".into()),
        LandlockStatus::NotEnabled => Err("it is not enabled (the kernel's parameter lsm= does not name it)".into()),
        LandlockStatus::Available { .. } => Err("the kernel did not take the rules".into()),
    }
}

/// Notes the rights that this version of landlock cannot restrict and that no other wall restricts.
fn describe(spec: &Spec, abi: u32, walls: &mut Walls) {
    let directories = !spec.directories.is_empty();
    let network = !spec.connect.is_empty();
    if directories && abi < 3 {
        let what = "can empty files outside its directories that its user may write";
        walls.missing.push(format!("landlock is version {abi}: it {what} (version 3, Linux 6.2)"));
    }
    if network && abi < 4 {
        let what = "can connect to any TCP port";
        walls.missing.push(format!("landlock is version {abi}: once escaped it {what} (version 4, Linux 6.7)"));
    }
    if network && abi >= 4 && ports(spec).is_none() {
        walls.notes.push("its grant is of so many ports that the kernel confines it to none".into());
    }
    if abi < 6 && spec.kind == WalledProgram::Executor {
        let what = "signals and abstract sockets are kept from it by seccomp alone";
        walls.notes.push(format!("landlock is version {abi}: {what} (version 6, Linux 6.12)"));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    use std::process::Command;

    use super::*;

    /// The environment variable that names the child's attack.
    const CHILD: &str = "BRINE_WALLS_CHILD";

    /// Landlock alone, without the other walls: a child raises only this wall and attacks it. (In an executor, seccomp
    /// refuses many of the attacks first.)
    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test's own program, again")]
    fn alone() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["ro", "rw"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        // The dynamic loader is the only program that starts without opening another file.
        let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/bin/true"];
        let loader = loaders.into_iter().find(|path| std::path::Path::new(path).exists()).unwrap();
        std::fs::copy(loader, root.join("rw/program")).unwrap();
        let name = format!("brine-walls-{}", std::process::id());
        let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = listeners.iter().map(|listener| listener.local_addr().unwrap().port().to_string());
        let told = [root.to_str().unwrap().to_owned(), name].into_iter().chain(ports).collect::<Vec<_>>().join("\n");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "files::tests::child", "--nocapture", "--test-threads=1"])
            .env(CHILD, told)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        let results: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("> ")).collect();
        let abi = results[0].parse::<u32>().unwrap();
        let denied = |since, what| if abi >= since { what } else { "none" };
        assert_eq!(
            results[1..],
            [
                "connect to its port: none",
                &format!("connect to another: {}", denied(4, "13")),
                &format!("listen: {}", denied(4, "13")),
                "read outside: 13",
                "list outside: 13",
                "write in rw: none",
                "write in ro: 13",
                "execute in rw: 13",
                "a pipe in rw: 13",
                &format!("signal: {}", denied(6, "1")),
                &format!("abstract socket: {}", denied(6, "1")),
            ],
            "{said}"
        );
    }

    /// The child's part of the test above; not a test by itself.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "to be refused")]
    fn child() {
        let Ok(told) = std::env::var(CHILD) else { return };
        let [root, name, port, other] = told.split('\n').collect::<Vec<_>>()[..] else { panic!("{told}") };
        let mut spec = Spec::executor();
        spec.option("--read-only", &format!("{root}/ro")).unwrap();
        spec.option("--read-write", &format!("{root}/rw")).unwrap();
        spec.option("--connect-port", port).unwrap();
        let mut walls = Walls::default();
        let directories = open(&spec, &mut walls);
        restrict(&spec, directories, &mut walls);
        println!("\n> {}", walls.landlock);
        let say = |what: &str, result: Result<(), std::io::Error>| {
            let error = result.err().map(|error| error.raw_os_error().unwrap_or_default().to_string());
            println!("> {what}: {}", error.as_deref().unwrap_or("none"));
        };
        let connect = |port: &str| TcpStream::connect(("127.0.0.1", port.parse::<u16>().unwrap())).map(drop);
        say("connect to its port", connect(port));
        say("connect to another", connect(other));
        say("listen", TcpListener::bind("127.0.0.1:0").map(drop));
        say("read outside", std::fs::read("/etc/passwd").map(drop));
        say("list outside", std::fs::read_dir(root).map(drop));
        say("write in rw", std::fs::write(format!("{root}/rw/file"), "x"));
        say("write in ro", std::fs::write(format!("{root}/ro/file"), "x"));
        say("execute in rw", Command::new(format!("{root}/rw/program")).status().map(drop));
        let mode = Mode::RUSR;
        let pipe = rustix::fs::mknodat(CWD, format!("{root}/rw/pipe"), rustix::fs::FileType::Fifo, mode, 0);
        say("a pipe in rw", pipe.map_err(Into::into));
        let parent = rustix::process::getppid().unwrap();
        say("signal", rustix::process::test_kill_process(parent).map_err(Into::into));
        let address = SocketAddr::from_abstract_name(name).unwrap();
        say("abstract socket", UnixStream::connect_addr(&address).map(drop));
    }

    #[test]
    fn granted_directories_are_what_their_paths_say() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        rustix::fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        let spec = |name: &str| {
            let mut spec = Spec::executor();
            spec.option("--read-only", root.join(name).to_str().unwrap()).unwrap();
            spec
        };
        for (name, why) in [
            ("link", "a part of its path is a symbolic link"),
            ("link/below", "a part of its path is a symbolic link"),
            ("missing", "No such file or directory (os error 2)"),
            ("file/below", "Not a directory (os error 20)"),
            ("pipe", "it is neither a directory nor a regular file"),
        ] {
            let mut walls = Walls::default();
            let mut spec = spec(name);
            spec.option("--read-only", root.join("real").to_str().unwrap()).unwrap();
            assert_eq!(open(&spec, &mut walls).len(), 1, "the other one counts");
            let [note] = &walls.notes[..] else { panic!("{walls:?}") };
            assert!(note.contains(root.join(name).to_str().unwrap()) && note.ends_with(why), "{note}");
            assert_eq!(walls.missing, [""; 0]);
        }
    }

    #[test]
    fn what_may_only_be_read_within_what_may_be_changed_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("outer/inner")).unwrap();
        std::fs::create_dir_all(root.join("outermost")).unwrap();
        let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let missing = |grants: &[(&str, &str)]| {
            let mut spec = Spec::executor();
            grants.iter().for_each(|(option, name)| assert!(spec.option(option, &path(name)).unwrap()));
            let mut walls = Walls::default();
            assert_eq!(open(&spec, &mut walls).len(), grants.len());
            walls.missing
        };
        let (ro, rw) = ("--read-only", "--read-write");
        let (inner, outer) = (path("outer/inner"), path("outer"));
        assert_eq!(
            missing(&[(rw, "outer"), (ro, "outer/inner")]),
            [format!("once escaped it can change {inner}, which may only be read, as it can {outer}")]
        );
        for whole in [
            [(ro, "outer"), (rw, "outer/inner")],
            [(rw, "outer"), (ro, "outermost")],
            [(rw, "outer"), (rw, "outer/inner")],
        ] {
            assert_eq!(missing(&whole), [""; 0], "{whole:?}");
        }
    }

    #[test]
    fn what_old_kernels_leave_open() {
        let mut files = Spec::executor();
        files.option("--read-only", "/etc").unwrap();
        let mut network = Spec::executor();
        network.option("--connect-port", "80").unwrap();
        for (spec, abi, missing, notes) in [
            (&Spec::executor(), 6, 0, 0),
            (&Spec::executor(), 1, 0, 1),
            (&files, 2, 1, 1),
            (&files, 3, 0, 1),
            (&network, 3, 1, 1),
            (&network, 6, 0, 0),
        ] {
            let mut walls = Walls::default();
            describe(spec, abi, &mut walls);
            assert_eq!((walls.missing.len(), walls.notes.len()), (missing, notes), "{abi} {walls:?}");
        }
    }

    #[test]
    fn a_rule_for_each_port_but_not_for_all_of_them() {
        let mut spec = Spec::executor();
        spec.connect = vec![(80, 81), (443, 443)];
        assert_eq!(ports(&spec), Some(vec![80, 81, 443]));
        spec.connect.push((1, 65535));
        assert_eq!(ports(&spec), None);
    }
}
