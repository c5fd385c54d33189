//! One run of the compiler in its cage, and what its end means.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;

use crate::CompileLimits;

/// What of the compiler's words is kept: they are one line.
const MAX_WORDS: usize = 4 * 1024;

/// For the compiler to name its engine; it takes milliseconds.
const ENGINE: Duration = Duration::from_secs(30);

/// Why there is no compiled code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CompileError {
    /// The module's fault: it would happen again, and so is not tried again.
    #[error("{0}")]
    Refused(String),
    /// The compiler or this host is at fault.
    #[error("{0}")]
    Failed(String),
}

#[derive(Debug)]
pub(crate) struct Compiler {
    pub(crate) program: PathBuf,
    pub(crate) limits: CompileLimits,
}

impl Compiler {
    /// The key of what compiled code depends on beside the component.
    pub(crate) async fn engine(&self) -> Result<String, CompileError> {
        let output = self.command().arg("--engine").stdin(Stdio::null()).stdout(Stdio::piped()).output();
        let output = match tokio::time::timeout(ENGINE, output).await {
            Ok(output) => output.map_err(|error| self.cannot_start(&error))?,
            Err(_) => return Err(CompileError::Failed(format!("the compiler {} hangs", self.program.display()))),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let key = text.trim();
        let well_formed = !key.is_empty() && key.len() <= 64 && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if output.status.success() && well_formed {
            return Ok(key.to_owned());
        }
        let words = last_line(&output.stderr).unwrap_or_else(|| "it did not name its engine".into());
        Err(CompileError::Failed(format!("the compiler {} cannot be used: {words}", self.program.display())))
    }

    /// Compiles what can be read from `wasm` into the file `output`, with what it says about itself in `info`.
    /// Dropping the future ends the compiler.
    pub(crate) async fn compile(&self, wasm: File, output: &Path, info: &Path) -> Result<(), CompileError> {
        let limits = &self.limits;
        let mut child = self
            .command()
            .arg("--output")
            .arg(output)
            .arg("--info")
            .arg(info)
            .args(["--memory", &limits.memory.to_string(), "--cpu", &limits.cpu_s.to_string()])
            .args(["--file", &limits.file.to_string(), "--module", &limits.module.to_string()])
            .stdin(Stdio::from(wasm))
            .spawn()
            .map_err(|error| self.cannot_start(&error))?;
        let stderr = child.stderr.take().expect("standard error was asked for");
        let ended = async {
            let mut words = Vec::new();
            let mut stderr = stderr.take(MAX_WORDS as u64);
            stderr.read_to_end(&mut words).await?;
            // What is said beyond the bound goes nowhere, but must not stop it.
            let mut rest = stderr.into_inner();
            tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
            io::Result::Ok((child.wait().await?, words))
        };
        match tokio::time::timeout(limits.wall, ended).await {
            Ok(Ok((status, _))) if status.success() => Ok(()),
            Ok(Ok((status, words))) => Err(judge(status, &words, limits)),
            Ok(Err(error)) => Err(CompileError::Failed(format!("cannot wait for the compiler: {error}"))),
            // The clock runs for other reasons too; CPU time and memory are what tells a bomb.
            Err(_) => Err(CompileError::Failed(format!("it was not compiled within {} s", limits.wall.as_secs_f32()))),
        }
    }

    /// What a verdict of the compiler depends on beside the component and the engine.
    pub(crate) fn limits_text(&self) -> String {
        let CompileLimits { module: _, memory, cpu_s, file, wall: _ } = self.limits;
        format!("memory {memory}, cpu {cpu_s}, file {file}")
    }

    #[expect(clippy::disallowed_methods, reason = "one of the sandbox's own two programs")]
    fn command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.program);
        command.env_clear().stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).process_group(0);
        command
    }

    fn cannot_start(&self, error: &io::Error) -> CompileError {
        CompileError::Failed(format!("the compiler {} cannot be started: {error}", self.program.display()))
    }
}

/// What the end of a compiler says about the module.
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
        // SIGABRT, which Rust raises where an allocation fails.
        (None, Some(6)) if out_of_memory => {
            CompileError::Refused(format!("needs more than {memory} MiB of memory to compile"))
        }
        (None, Some(24)) => CompileError::Refused(format!("takes more than {} s of CPU to compile", limits.cpu_s)),
        (None, Some(25)) => {
            CompileError::Refused(format!("becomes more than {} MiB of machine code", limits.file >> 20))
        }
        // Only the compiler itself can do these; the component made it.
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
    Some(line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(600).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends() {
        let limits = CompileLimits::default();
        // Raw wait statuses: an exit code in the second byte, a signal in the first.
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
            (24, "", CompileError::Refused("takes more than 20 s of CPU to compile".into())),
            (25, "", CompileError::Refused("becomes more than 128 MiB of machine code".into())),
            // Somebody else's doing: try again.
            (9, "", CompileError::Failed("the compiler was ended by signal 9".into())),
            (15, "", CompileError::Failed("the compiler was ended by signal 15".into())),
        ] {
            assert_eq!(judge(ExitStatus::from_raw(raw), words.as_bytes(), &limits), expect, "{raw}");
        }
    }

    #[test]
    fn words_are_one_line() {
        assert_eq!(last_line(b"first\n\x1b[31mlast\n\n"), Some(" [31mlast".into()));
        assert_eq!(last_line(b" \n"), None);
    }
}
