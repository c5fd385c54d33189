//! Runs the compiler in its cage and judges how it ended.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use brine_sandbox_walls::Walls;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::io::AsyncReadExt;
use tokio::process::Child;

use crate::kernel::spawn::{Start, spawn};
use crate::kernel::user::User;

/// Upper bound on the bytes kept of the compiler's error message, which is one line.
const MAX_WORDS: usize = 4 * 1024;

/// Time for the compiler to report its engine, which takes milliseconds.
const ENGINE: Duration = Duration::from_secs(30);

/// Why there is no compiled code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CompileError {
    /// The module's fault. A second attempt would fail too, so there is none.
    #[error("{0}")]
    Refused(String),
    /// The compiler or this host is at fault.
    #[error("{0}")]
    Failed(String),
}

/// The limits of one compilation. The engine itself has none there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileLimits {
    /// Size of a module in bytes, checked before the compiler starts.
    pub module: u64,
    /// Bytes of address space. An interpreter of 18 MB needs 400 MB.
    pub memory: u64,
    /// Seconds of CPU time. An interpreter of 18 MB needs 11 to 15 s on a fast, idle processor; the default suffices
    /// for a processor four times as slow.
    pub cpu_s: u64,
    /// Bytes of compiled code.
    pub file: u64,
    /// Wall-clock time. It allows for a busy host, because the compiler runs at low priority.
    pub wall: Duration,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { module: 32 << 20, memory: 1 << 30, cpu_s: 60, file: 128 << 20, wall: Duration::from_secs(300) }
    }
}

#[derive(Debug)]
pub(crate) struct Compiler {
    pub(crate) program: PathBuf,
    pub(crate) limits: CompileLimits,
    /// None: the minion's own user.
    pub(crate) user: Option<User>,
}

impl Compiler {
    /// Returns the engine's key, on which compiled code depends beside the component, and the walls around the
    /// compiler.
    pub(crate) async fn engine(&self) -> Result<(String, Walls), CompileError> {
        let child = self.start(vec!["--engine".to_owned()], None, true).await?;
        let output = match tokio::time::timeout(ENGINE, child.wait_with_output()).await {
            Ok(output) => {
                output.map_err(|error| CompileError::Failed(format!("cannot wait for the compiler: {error}")))?
            }
            Err(_) => return Err(CompileError::Failed(format!("the compiler {} hangs", self.program.display()))),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let (key, walls) = text.trim().split_once('\n').unwrap_or_default();
        let well_formed = !key.is_empty() && key.len() <= 64 && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if output.status.success()
            && well_formed
            && let Ok(walls) = serde_json::from_str::<Walls>(walls)
        {
            return Ok((key.to_owned(), walls.bounded()));
        }
        let words = last_line(&output.stderr).unwrap_or_else(|| "it did not name its engine".into());
        Err(CompileError::Failed(format!("the compiler {} cannot be used: {words}", self.program.display())))
    }

    /// Compiles the component in `wasm` to the file `output`, and writes its description to `info`. Dropping the future
    /// ends the compiler.
    pub(crate) async fn compile(&self, wasm: File, output: &Path, info: &Path) -> Result<(), CompileError> {
        self.run(vec!["--socket".to_owned()], wasm, output, info).await
    }

    /// Writes only the description; `output` stays empty.
    pub(crate) async fn describe(&self, wasm: File, output: &Path, info: &Path) -> Result<(), CompileError> {
        self.run(vec!["--socket".to_owned(), "--describe".to_owned()], wasm, output, info).await
    }

    async fn run(&self, mut args: Vec<String>, wasm: File, output: &Path, info: &Path) -> Result<(), CompileError> {
        let limits = &self.limits;
        for (option, value) in
            [("--memory", limits.memory), ("--cpu", limits.cpu_s), ("--file", limits.file), ("--module", limits.module)]
        {
            args.extend([option.to_owned(), value.to_string()]);
        }
        let files = hand_over(&wasm, output, info);
        let files = files.map_err(|error| CompileError::Failed(format!("no files for the compiler: {error}")))?;
        let mut child = self.start(args, Some(files), false).await?;
        let stderr = child.stderr.take().expect("standard error was asked for");
        let ended = async {
            let mut words = Vec::new();
            let mut stderr = stderr.take(MAX_WORDS as u64);
            stderr.read_to_end(&mut words).await?;
            // Bytes beyond the bound are discarded. They must be read, or the compiler would block.
            let mut rest = stderr.into_inner();
            tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
            io::Result::Ok((child.wait().await?, words))
        };
        match tokio::time::timeout(limits.wall, ended).await {
            Ok(Ok((status, _))) if status.success() => Ok(()),
            Ok(Ok((status, words))) => Err(judge(status, &words, limits)),
            Ok(Err(error)) => Err(CompileError::Failed(format!("cannot wait for the compiler: {error}"))),
            // A busy host can cause this timeout too, so it is no verdict on the module; the limits on CPU time and
            // memory are.
            Err(_) => Err(CompileError::Failed(format!("it was not compiled within {} s", limits.wall.as_secs_f32()))),
        }
    }

    /// Returns the limits as text: a refusal by the compiler depends on them, beside the component and the engine.
    pub(crate) fn limits_text(&self) -> String {
        let CompileLimits { module: _, memory, cpu_s, file, wall: _ } = self.limits;
        format!("memory {memory}, cpu {cpu_s}, file {file}")
    }

    async fn start(&self, args: Vec<String>, socket: Option<OwnedFd>, stdout: bool) -> Result<Child, CompileError> {
        let start = Start { program: self.program.clone(), args, user: self.user.clone(), socket, stdout };
        spawn(start).await.map_err(|why| CompileError::Failed(format!("the compiler {why}")))
    }
}

/// Makes a socket that carries the compiler's three open files: the component and the two result files. The compiler's
/// user could open none of them.
fn hand_over(wasm: &File, output: &Path, info: &Path) -> io::Result<OwnedFd> {
    let create = |path: &Path| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let (output, info) = (create(output)?, create(info)?);
    let (here, there) = UnixStream::pair()?;
    let files = [wasm.as_fd(), output.as_fd(), info.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let pushed = control.push(SendAncillaryMessage::ScmRights(&files));
    debug_assert!(pushed, "there is room for three");
    rustix::net::sendmsg(&here, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(there.into())
}

/// Maps the compiler's exit status to an error.
fn judge(status: ExitStatus, words: &[u8], limits: &CompileLimits) -> CompileError {
    let memory = limits.memory >> 20;
    let out_of_memory = String::from_utf8_lossy(words).contains("memory allocation of");
    let words = last_line(words);
    match (status.code(), status.signal()) {
        (Some(65 | 70), _) => CompileError::Refused(words.unwrap_or_else(|| "was refused by the compiler".into())),
        (Some(code), _) => CompileError::Failed(format!(
            "the compiler ended with code {code}: {}",
            words.unwrap_or_else(|| "it did not say why".into())
        )),
        // SIGABRT: Rust raises it when an allocation fails.
        (None, Some(6)) if out_of_memory => {
            CompileError::Refused(format!("needs more than {memory} MiB of memory to compile"))
        }
        (None, Some(24)) => CompileError::Refused(format!("takes more than {} s of CPU to compile", limits.cpu_s)),
        (None, Some(25)) => {
            CompileError::Refused(format!("becomes more than {} MiB of machine code", limits.file >> 20))
        }
        // Faults of the compiler itself, caused by the component.
        (None, Some(signal @ (4 | 6 | 7 | 8 | 11))) => {
            CompileError::Refused(format!("made the compiler fail (signal {signal})"))
        }
        (None, Some(signal)) => CompileError::Failed(format!("the compiler was ended by signal {signal}")),
        (None, None) => CompileError::Failed("the compiler ended in an unknown way".into()),
    }
}

fn last_line(words: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(words);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(brine_text::short(line, 600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends() {
        let limits = CompileLimits::default();
        // Raw wait statuses: the exit code is in the second byte, the signal in the first.
        for (raw, words, expect) in [
            (65 << 8, "is no component\n", CompileError::Refused("is no component".into())),
            (70 << 8, "made it fail\n", CompileError::Refused("made it fail".into())),
            (73 << 8, "cannot write x", CompileError::Failed("the compiler ended with code 73: cannot write x".into())),
            (
                6,
                "memory allocation of 99 bytes failed\nnote: run with\n",
                CompileError::Refused("needs more than 1024 MiB of memory to compile".into()),
            ),
            (6, "", CompileError::Refused("made the compiler fail (signal 6)".into())),
            (11, "", CompileError::Refused("made the compiler fail (signal 11)".into())),
            (24, "", CompileError::Refused("takes more than 60 s of CPU to compile".into())),
            (25, "", CompileError::Refused("becomes more than 128 MiB of machine code".into())),
            // Signals from outside: these can be tried again.
            (9, "", CompileError::Failed("the compiler was ended by signal 9".into())),
            (15, "", CompileError::Failed("the compiler was ended by signal 15".into())),
        ] {
            assert_eq!(judge(ExitStatus::from_raw(raw), words.as_bytes(), &limits), expect, "{raw}");
        }
    }

    #[test]
    fn words_are_one_line() {
        assert_eq!(last_line(b"first\n\x1b[31mlast\n\n"), Some("\\x1b[31mlast".into()));
        assert_eq!(last_line(b" \n"), None);
    }
}
