//! A root that is thrown away: for tests that install packages, add users or start services.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::needs::missing;
use crate::process::{Output, run_with};

const HOLD: &str = include_str!("hold.sh");
/// Rights over what the namespaces share with the host: its clock, its modules, its network, its power.
const TAKEN: &str = "-sys_time,-sys_module,-net_admin,-sys_boot";

/// This host's files beneath a layer of memory, with process ids of its own. Programs in it see the host's files, and what they write
/// is gone with the value, as are all processes that they started. The network is the host's; the kernel's settings can only be read.
/// `/run` is empty, but for `/run/changed`: the upper layer, which has what was written.
#[derive(Debug)]
pub struct ThrowawayRoot {
    holder: Child,
    /// The first process of the root, in the host's process ids.
    first: String,
    _folder: tempfile::TempDir,
}

impl ThrowawayRoot {
    /// Makes a root. `folders` have to be in it; they are shared with the host only if they are mounts of their own. Returns none, and
    /// reports it, where that needs more than the test may do.
    pub fn new(folders: &[&Path]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            missing("a root to throw away", "run the tests as root");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("brine-root-").tempdir().unwrap();
        let mut holder = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-c", HOLD, "hold"])
            .arg(folder.path())
            .args(folders.iter().map(|folder| mount_around(folder)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("unshare, of util-linux");
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.trim_end() != "ready" {
            let output = holder.wait_with_output().unwrap();
            missing("an overlay in namespaces of its own", &String::from_utf8_lossy(&output.stderr));
            return None;
        }
        let children = format!("/proc/{0}/task/{0}/children", holder.id());
        let first = std::fs::read_to_string(children).unwrap().trim().to_owned();
        Some(Self { holder, first, _folder: folder })
    }

    /// Runs a program in the root to its end.
    pub fn run(&self, program: &Path, args: &[&str]) -> Output {
        self.run_with(program, args, &[])
    }

    /// Like [`ThrowawayRoot::run`], with additional environment variables.
    pub fn run_with(&self, program: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
        let program = program.to_str().unwrap();
        let enter = ["--target", &self.first, "--mount", "--pid", "--root", "--wd=/", "setpriv"];
        let rights = ["--bounding-set", TAKEN, "--inh-caps", TAKEN, program];
        run_with(Path::new("nsenter"), &[&enter[..], &rights[..], args].concat(), env)
    }

    /// Runs a line of shell in the root and returns its output; it has to succeed.
    pub fn shell(&self, line: &str) -> String {
        self.run(Path::new("/bin/sh"), &["-ec", line]).exits(0).stdout
    }

    /// The files and directories that were written since the root was made, sorted: their paths, without those that only lead to them.
    pub fn changed(&self) -> Vec<String> {
        let found = self.shell("cd /run/changed && find . ! -type d -o -empty | LC_ALL=C sort");
        found
            .lines()
            .filter_map(|line| line.strip_prefix('.'))
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

impl Drop for ThrowawayRoot {
    fn drop(&mut self) {
        // The kernel ends the first process with its parent, and with it all others of the namespace.
        _ = self.holder.kill();
        _ = self.holder.wait();
    }
}

/// The mount that has a folder.
fn mount_around(folder: &Path) -> PathBuf {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| std::fs::metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).dev();
    let own = device(folder);
    folder.ancestors().take_while(|path| device(path) == own).last().unwrap().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_it_is_gone_and_never_on_the_host() {
        let Some(root) = ThrowawayRoot::new(&[Path::new(env!("CARGO_MANIFEST_DIR"))]) else { return };
        assert!(root.changed().is_empty());
        root.shell("echo one > /etc/brine-throwaway; mkdir /srv/brine-throwaway");
        assert_eq!(root.changed(), ["/etc/brine-throwaway", "/srv/brine-throwaway"]);
        assert_eq!(root.shell("cat /etc/brine-throwaway"), "one\n");
        assert!(!Path::new("/etc/brine-throwaway").exists() && !Path::new("/srv/brine-throwaway").exists());
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_eq!(root.run(Path::new("cat"), &[own.to_str().unwrap()]).stdout, std::fs::read_to_string(&own).unwrap());
        // The kernel's settings and the clock are the host's.
        assert_ne!(root.run(Path::new("sh"), &["-c", "echo 1 > /proc/sys/vm/swappiness"]).code, 0);
        assert_ne!(root.run(Path::new("date"), &["-s", "@1"]).code, 0);
    }

    #[test]
    fn its_processes_end_with_it() {
        let Some(root) = ThrowawayRoot::new(&[]) else { return };
        let name = format!("{}", 86_000 + std::process::id());
        root.shell(&format!("sleep {name} >/dev/null 2>&1 &"));
        let runs = || run_with(Path::new("pgrep"), &["-f", &format!("^sleep {name}$")], &[]).code == 0;
        assert!(runs());
        drop(root);
        crate::wait::wait_for("the end of what it started", || (!runs()).then_some(()));
    }
}
