//! Examines a module without installing it: reads it, and compiles it on request, in the same cage as on a minion.
//! Nothing is kept.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use brine_component::ModuleInfo;
use nix::sys::resource::{UsageWho, getrusage};

use crate::CompileLimits;
use crate::kernel::cache::described;
use crate::kernel::compile::{CompileError, Compiler};
use crate::kernel::user;

/// The cost of compiling a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileCost {
    /// Bytes of machine code.
    pub code: u64,
    /// Wall-clock time.
    pub wall: Duration,
    /// CPU time of all cores.
    pub cpu: Duration,
    /// Peak memory in bytes. Never less than this program's own memory, which the system includes.
    pub memory: u64,
}

/// Runs the compiler `brine-compiler` in its cage to read a module, and to compile it if `compile` is true.
///
/// # Errors
///
/// Returns one line that follows the module's name, such as `is no component`.
pub async fn examine(
    program: PathBuf,
    limits: CompileLimits,
    wasm: &[u8],
    compile: bool,
) -> Result<(ModuleInfo, Option<CompileCost>), String> {
    let user = user::of_the_sandbox(None)?;
    let compiler = Compiler { program, limits, user };
    let failed = |error: std::io::Error| format!("cannot be given to the compiler: {error}");
    let folder = tempfile::tempdir().map_err(failed)?;
    let mut file = tempfile::tempfile().map_err(failed)?;
    file.write_all(wasm).and_then(|()| std::io::Seek::rewind(&mut file)).map_err(failed)?;
    let (output, info) = (folder.path().join("code"), folder.path().join("info"));
    let (began, before) = (Instant::now(), children());
    let done = match compile {
        true => compiler.compile(file, &output, &info).await,
        false => compiler.describe(file, &output, &info).await,
    };
    done.map_err(|error| match error {
        CompileError::Refused(why) => why,
        CompileError::Failed(why) => format!("cannot be looked at: {why}"),
    })?;
    let wall = began.elapsed();
    let info = described(&info).map_err(failed)?.map_err(|error| error.to_string())?;
    let compiled = match compile {
        false => None,
        true => {
            let (cpu, memory) = children();
            let code = std::fs::metadata(&output).map_err(failed)?.len();
            Some(CompileCost { code, wall, cpu: cpu.saturating_sub(before.0), memory })
        }
    };
    Ok((info, compiled))
}

/// Returns the CPU time of all ended children and the highest peak memory of one.
fn children() -> (Duration, u64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Default::default() };
    let duration = |time: nix::sys::time::TimeVal| {
        let micros = time.tv_sec().saturating_mul(1_000_000).saturating_add(time.tv_usec());
        Duration::from_micros(u64::try_from(micros).unwrap_or_default())
    };
    let memory = u64::try_from(usage.max_rss()).unwrap_or_default().saturating_mul(1024);
    (duration(usage.user_time()) + duration(usage.system_time()), memory)
}
