//! A probe looks and changes nothing: each way to change something is tried, and what looks works.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

use std::fs::File;
use std::io::Read;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;

use brine_spawn::{Directory, Probe, Program, Step, start};
use rustix::pipe::{PipeFlags, pipe_with};

/// Runs a script as a probe or not. Returns its output with its exit code; none if this host cannot run probes.
fn run(script: &str, probe: bool) -> Option<String> {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let program = Program {
        path: "/bin/sh".into(),
        name: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into())],
        directory: Directory::OrRoot("/".into()),
        identity: None,
        umask: None,
        file_size: None,
        detach: false,
        probe: probe.then(|| Probe::new().unwrap_or_else(|why| panic!("{why}"))),
        group: None,
        stdin: None,
        stderr: theirs.try_clone().unwrap(),
        stdout: theirs,
    };
    let mut running = match start(program, drop) {
        Ok(running) => running,
        Err(error) if error.step == Step::Namespaces => return skip(&error.to_string()),
        Err(error) => panic!("{error}"),
    };
    let mut text = String::new();
    File::from(ours).read_to_string(&mut text).unwrap();
    let code = running.wait().unwrap().status.code();
    Some(format!("{}{}", text, code.map_or_else(|| "signal".to_owned(), |code| code.to_string())))
}

fn skip(why: &str) -> Option<String> {
    assert!(std::env::var_os("CI").is_none(), "probes need root with namespaces: {why}");
    println!("not tried, probes need root with namespaces: {why}");
    None
}

fn fails(script: &str) {
    if let Some(said) = run(script, true) {
        assert!(!said.ends_with("\n0") && said != "0", "{script}: {said}");
    }
}

#[test]
fn what_looks_works() {
    let own = std::process::id();
    for (script, expect) in [
        ("true", "0"),
        ("exit 3", "3"),
        ("test -e /etc/passwd && grep -q root /etc/passwd && echo yes", "yes\n0"),
        ("echo x > /dev/null && head -c 1 /dev/zero | wc -c", "1\n0"),
        ("echo a | sed s/a/b/", "b\n0"),
        ("perl -MSocket -e 'socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die $!'", "0"),
        ("x=$(echo sub; exit 0) && echo $x", "sub\n0"),
        // The host's processes are in sight.
        (&format!("test -e /proc/{own}/status && echo there"), "there\n0"),
        ("test -z \"$(ls -A /run)\" && echo hidden", "hidden\n0"),
    ] {
        if let Some(said) = run(script, true) {
            assert_eq!(said, expect, "{script}");
        }
    }
}

/// Root's checks look where modes keep others out: without that, `unless: test -f` of a file in a database's directory says
/// in a dry run that it is not there.
#[test]
fn root_looks_into_the_directories_of_others_and_changes_nothing_there() {
    let dir = tempfile::tempdir().unwrap();
    let (closed, file) = (dir.path().join("closed"), dir.path().join("closed/file"));
    std::fs::create_dir(&closed).unwrap();
    std::fs::write(&file, "content").unwrap();
    if std::os::unix::fs::chown(&closed, Some(65_534), None).is_err() {
        skip("the owner of a file cannot be changed");
        return;
    }
    for (path, mode) in [(&file, 0o000), (&closed, 0o700)] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
    let path = file.to_str().unwrap();
    if let Some(said) = run(&format!("test -f {path} && cat {path} && grep Cap[EP] /proc/self/status"), true) {
        assert_eq!(said.replace('\t', " "), "contentCapPrm: 0000000000000004\nCapEff: 0000000000000004\n0");
    }
    for script in
        [format!("echo x > {path}"), format!("touch {path}x"), format!("rm {path}"), format!("chmod 600 {path}")]
    {
        fails(&script);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "content");
}

#[test]
fn nothing_changes() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("file"), "content").unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    let listener = UnixListener::bind(at("socket")).unwrap();
    listener.set_nonblocking(true).unwrap();
    let datagrams = UnixDatagram::bind(at("datagrams")).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let pair = |kind: &str| {
        let to = at("datagrams");
        format!(
            "perl -MSocket -e 'socketpair(my $a, my $b, AF_UNIX, {kind}, 0) or die $!; \
             defined(send($a, q(x), 0, pack_sockaddr_un(q({to})))) or die $!'"
        )
    };
    let before = shown(dir.path());
    let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let (file, fifo, new, pid) = (at("file"), at("fifo"), at("new"), sleeper.id());
    for script in [
        format!("echo x > {file}"),
        format!("echo x >> {file}"),
        format!("rm {file}"),
        format!("mv {file} {new}"),
        format!("ln {file} {new}"),
        format!("ln -s {file} {new}"),
        format!("mkdir {new}"),
        format!("touch {file}"),
        format!("chmod 777 {file}"),
        format!("chown 1:1 {file}"),
        format!("truncate -s 0 {file}"),
        format!("mknod {new} c 1 3"),
        // Ways around read-only mounts.
        format!("echo x > /proc/{pid}/root{file}"),
        format!("echo x > /proc/{pid}/cwd/new"),
        format!("echo x <> {fifo} 1>&0"),
        "mount -o remount,rw /".to_owned(),
        format!("unshare -rm sh -c 'mount -o remount,rw / ; echo x > {file}'"),
        "unshare -r true".to_owned(),
        // Processes, the network, the kernel.
        format!("kill {pid}"),
        format!("kill -0 {pid}"),
        "hostname changed".to_owned(),
        "echo 1 > /proc/sys/kernel/sysrq".to_owned(),
        "echo 0 > /proc/self/oom_score_adj".to_owned(),
        "exec 3<>/dev/kmsg".to_owned(),
        "head -c 1 /dev/mem".to_owned(),
        "python3 -c 'import socket; socket.socket()'".to_owned(),
        format!("python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"{}\")'", at("socket")),
        pair("SOCK_DGRAM"),
        pair("SOCK_RAW"),
        "sudo -n true".to_owned(),
    ] {
        fails(&script);
    }
    assert_eq!(shown(dir.path()), before);
    assert!(sleeper.try_wait().unwrap().is_none(), "a process of the host was ended");
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "a socket was connected to");
    assert_eq!(datagrams.recv(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "a datagram arrived");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    // The attempts are real: without the probe they do something.
    assert_eq!(
        run(&format!("echo x > {new} && chmod 600 {new} && kill -0 $$ && echo done"), false).unwrap(),
        "done\n0"
    );
    assert!(Path::new(&new).exists());
    assert_eq!(run(&pair("SOCK_DGRAM"), false).unwrap(), "0");
    assert_eq!(datagrams.recv(&mut [0]).unwrap(), 1);
}

/// Names, modes, times and sizes in a directory.
fn shown(dir: &Path) -> Vec<String> {
    use std::os::unix::fs::MetadataExt;
    let mut all: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            let (mode, owner, size, mtime) = (meta.mode(), meta.uid(), meta.size(), meta.mtime_nsec());
            format!("{:?} {mode:o} {owner} {size} {mtime}", entry.file_name())
        })
        .collect();
    all.sort();
    all
}
