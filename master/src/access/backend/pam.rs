//! `pam`: the users and groups of this system, through the PAM service named by `auth.pam.service`.
//!
//! Each log-in runs PAM in its own process, `brine-pam` (`master/pam`). A PAM module that hangs, crashes or leaks
//! affects only that process, and a master without `pam` needs no libpam.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use zeroize::Zeroizing;

use super::Backend;

const PROGRAM: &str = "brine-pam";
/// Variable with the package's folder; overrides the default places, as for the minion's programs.
const BRINE_LIB: &str = "BRINE_LIB";
/// Time limit for PAM. Directory servers and second factors are slow, and clients wait less than a minute.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Bound on the bytes of the names of a user's groups.
const GROUPS_MAX: u64 = 1 << 20;
/// Bound on the bytes of a refusal's reason in the log.
const WHY_MAX: u64 = 1_024;
/// The folders with the descriptions of services.
const SERVICES: [&str; 2] = ["/etc/pam.d", "/usr/lib/pam.d"];

pub(super) struct Pam {
    program: PathBuf,
    service: String,
    time_max: Duration,
}

impl Pam {
    pub(super) fn find(service: &str) -> Result<Self, String> {
        if service.is_empty() || service.contains(['/', '\0']) {
            return Err(format!("auth.pam.service: {service:?} is not the name of a service"));
        }
        if !SERVICES.iter().any(|folder| Path::new(folder).join(service).exists()) {
            tracing::warn!(
                "external_auth: pam: there is no service {service} in {}; PAM takes `other` then, which mostly lets nobody in \
                 (auth.pam.service)",
                SERVICES.join(" or ")
            );
        }
        let named = std::env::var_os(BRINE_LIB).map(PathBuf::from);
        let beside = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
        let mut places: Vec<PathBuf> = match (named, beside) {
            (Some(dir), _) => vec![dir],
            // The last folder is the place of the program in test builds.
            (None, Some(dir)) => vec![dir.join("../lib/brine"), dir.clone(), dir.join("..")],
            (None, None) => Vec::new(),
        };
        places.iter_mut().for_each(|dir| dir.push(PROGRAM));
        let Some(program) = places.iter().find(|path| path.is_file()) else {
            let tried: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
            return Err(format!(
                "the program {PROGRAM} is not there; install the whole package. Looked for {}",
                tried.join(", ")
            ));
        };
        Ok(Self { program: program.clone(), service: service.to_owned(), time_max: TIME_MAX })
    }

    async fn ask(&self, username: &str, password: &str) -> Result<Option<Vec<String>>, String> {
        let failed = |what: &'static str| move |e: std::io::Error| format!("{PROGRAM} cannot be {what}: {e}");
        #[expect(
            clippy::disallowed_methods,
            reason = "the package's own program, with no argument from outside; see the head of this file"
        )]
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir("/");
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LANG", "C.UTF-8");
        // A process group of its own, so that processes started by PAM modules are killed with it.
        command.as_std_mut().process_group(0);
        let mut child = command.kill_on_drop(true).spawn().map_err(failed("started"))?;
        let mut group = Group(child.id());
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(format!("{PROGRAM} has no pipes"));
        };
        let input = Zeroizing::new([self.service.as_str(), username, password].join("\0"));
        // Ignored: a program that has ended early reports the reason on stderr.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let (mut told, mut why) = (Vec::new(), Vec::new());
        let (mut stdout, mut stderr) = (stdout.take(GROUPS_MAX), stderr.take(WHY_MAX));
        let (out, err) = tokio::join!(stdout.read_to_end(&mut told), stderr.read_to_end(&mut why));
        out.and(err).map_err(failed("read"))?;
        // Closed, because unread output would keep the program from ending.
        drop((stdout, stderr));
        let status = child.wait().await.map_err(failed("waited for"))?;
        // The kernel may reuse the process id from now on.
        group.0 = None;
        let why = brine_protocol::text::joined(
            &String::from_utf8_lossy(&why),
            usize::try_from(WHY_MAX).unwrap_or(usize::MAX),
        );
        match status.code() {
            Some(0) => {
                let names = told.split(|byte| *byte == 0).filter(|name| !name.is_empty());
                Ok(Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()))
            }
            Some(1) => {
                tracing::info!("PAM did not let a user in: {why}{}", self.hint());
                Ok(None)
            }
            _ => Err(format!("PAM could not be asked ({status}): {why}")),
        }
    }

    /// Returns a hint if the master cannot read `/etc/shadow`: `unix_chkpwd` checks only the password of the user that
    /// runs it.
    fn hint(&self) -> &'static str {
        let shadow = rustix::fs::access("/etc/shadow", rustix::fs::Access::READ_OK).is_ok();
        if shadow {
            ""
        } else {
            ". The master's user cannot read /etc/shadow, without which pam_unix checks nobody's password but its own: \
             run the master as root, or add its user to the group shadow"
        }
    }
}

/// Kills a process group when dropped: the program and all that it started.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let pid = self.0.and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Backend for Pam {
    fn check(&self, username: &str, password: &str) -> Result<Option<Vec<String>>, String> {
        if username.contains('\0') || password.contains('\0') {
            return Ok(None);
        }
        let runtime = tokio::runtime::Handle::current();
        let asked = runtime.block_on(async { tokio::time::timeout(self.time_max, self.ask(username, password)).await });
        asked.unwrap_or_else(|_| Err(format!("PAM took longer than {} s and was ended", self.time_max.as_secs())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Instant;

    fn pam(script: &str, time_max: Duration) -> (tempfile::TempDir, Pam) {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("brine-pam");
        std::fs::write(&program, format!("#!/bin/sh\ncd {}\n{script}", dir.path().display())).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        (dir, Pam { program, service: "ours".to_owned(), time_max })
    }

    async fn check(pam: Pam, name: &'static str, password: &'static str) -> Result<Option<Vec<String>>, String> {
        // Starting a script fails for a moment if a fork of another thread still has it open for writing.
        loop {
            let pam = Pam { program: pam.program.clone(), service: pam.service.clone(), time_max: pam.time_max };
            match tokio::task::spawn_blocking(move || pam.check(name, password)).await.unwrap() {
                Err(why) if why.contains("Text file busy") => tokio::task::yield_now().await,
                answer => return answer,
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_program_gets_what_it_needs_and_its_word_counts() {
        let minute = Duration::from_secs(60);
        let (dir, right) = pam("cat >in; printf 'web\\0ops\\0'", minute);
        let groups = vec!["web".to_owned(), "ops".to_owned()];
        assert_eq!(check(right, "fred", "pass word").await, Ok(Some(groups)));
        assert_eq!(std::fs::read(dir.path().join("in")).unwrap(), b"ours\0fred\0pass word");
        let (_dir, wrong) = pam("cat >/dev/null; printf web; exit 1", minute);
        assert_eq!(check(wrong, "fred", "x").await, Ok(None));
        for script in ["exit 2", "exit 77", "kill -9 $$", "echo trouble >&2; exit 2"] {
            let (_dir, broken) = pam(script, minute);
            let error = check(broken, "fred", "secret-1").await.unwrap_err();
            assert!(error.starts_with("PAM could not be asked") && !error.contains("secret-1"), "{error}");
        }
        let (dir, never) = pam("touch started", minute);
        assert_eq!(check(never, "fred\0root", "x").await, Ok(None));
        assert!(!dir.path().join("started").exists(), "a zero byte would shift what comes after it");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_module_that_hangs_is_ended_with_all_that_it_started() {
        let (dir, hangs) = pam("sleep 1000 & echo $! >child.new; mv child.new child; wait", Duration::from_secs(3));
        let began = Instant::now();
        let error = check(hangs, "fred", "x").await.unwrap_err();
        assert!(error.contains("was ended") && began.elapsed() < Duration::from_secs(60), "{error}");
        let child = std::fs::read_to_string(dir.path().join("child")).unwrap();
        let is_there = || {
            let status = std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
            status.contains("(sleep) ") && !status.contains("(sleep) Z")
        };
        let end = Instant::now() + Duration::from_secs(60);
        while is_there() {
            assert!(Instant::now() < end, "what it started still runs");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[test]
    fn a_service_is_a_name() {
        for service in ["", "../passwd", "a/b"] {
            assert!(Pam::find(service).err().unwrap().contains("auth.pam.service"), "{service}");
        }
    }
}
