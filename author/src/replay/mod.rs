//! `salt-module replay` and `salt-module test`: recorded calls again, without their host.
//!
//! - `show.rs` what was asked and returned, in words

mod show;

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use brine_cli::commandline::user_cache;
use brine_cli::output::Outputter;
use brine_cli::print;
use brine_recording::{MAX_FILE, Recording, RecordingError, SUFFIX};
use brine_sandbox::{ModuleName, Replayed, Replayer, Sha256Hex};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::cage;
use crate::cli::{Replay, Test};
use crate::failure::{self, Failure};
use crate::file;

/// Upper bound on the recordings of one folder.
const MAX_RECORDINGS: usize = 10_000;

pub(crate) fn run(options: &Replay) -> Result<ExitCode, Failure> {
    if let Some(out) = options.out.as_deref().filter(|out| Outputter::by_name(out).is_none()) {
        return Err(Failure::usage(format!(
            "--out: there is no outputter {out}; there are nested, json, yaml, raw, txt…"
        )));
    }
    let recording = read(&options.file)?;
    let path = match &options.module {
        Some(path) => checked(path, &options.file, &recording)?,
        None => recorded_module(&options.file, &recording)?,
    };
    let replayed = block_on(async {
        let mut host = Host::start().await?;
        host.replay(&path, &recording).await
    })?;
    match show::difference(&recording, &replayed) {
        Some(difference) => {
            print::stdout(&difference);
            Ok(ExitCode::from(failure::FAILED))
        }
        None => {
            show::outcome(&replayed.outcome, options.out.as_deref())?;
            print::stderr(&format!("The same as in the recording, with {}.", show::calls(recording.calls.len())));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs all recordings of a folder.
pub(crate) fn test(options: &Test) -> Result<ExitCode, Failure> {
    let files = recordings(&options.folder)?;
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let width = files.iter().map(|path| name(path).chars().count()).max().unwrap_or_default();
    let (bad, used) = block_on(async {
        let mut host = Host::start().await?;
        let mut bad = 0;
        for path in &files {
            let said = match host.test(path, options).await {
                Ok(None) => "ok".to_owned(),
                Ok(Some(difference)) => {
                    bad += 1;
                    format!("differs: {}", difference.replace('\n', &format!("\n{:width$}  ", "")))
                }
                Err(failure) => {
                    bad += 1;
                    format!("not run: {failure}")
                }
            };
            say!("{:width$}  {said}", name(path));
        }
        Ok::<_, Failure>((bad, host.used))
    })?;
    let many = if files.len() == 1 { "" } else { "s" };
    say!("{} recording{many}: {} ok, {bad} not", files.len(), files.len() - bad);
    if let Some(unused) = options.modules.iter().find(|module| !used.contains(*module)) {
        let name = file::module_name(unused)?;
        let why = format!("--module {}: no recording here is of the module {name}", unused.display());
        return Err(Failure::input(why));
    }
    Ok(if bad == 0 { ExitCode::SUCCESS } else { ExitCode::from(failure::FAILED) })
}

/// Returns the recordings of a folder, sorted by name.
fn recordings(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| Failure::unreadable(folder, error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.to_str().is_some_and(|name| name.ends_with(SUFFIX)) {
            files.push(path);
        }
        if files.len() > MAX_RECORDINGS {
            return Err(Failure::input(format!("{} has more than {MAX_RECORDINGS} recordings", folder.display())));
        }
    }
    if files.is_empty() {
        let why = format!("{} has no recordings, NAME{SUFFIX}", folder.display());
        return Err(Failure::new(failure::NO_INPUT, why));
    }
    files.sort();
    Ok(files)
}

fn block_on<T>(what: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("no threads: {error}")))?;
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = what => ended,
            _ = tokio::signal::ctrl_c() => Err(Failure::new(failure::INTERRUPTED, "interrupted")),
        }
    });
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    ended
}

/// Reads a recording, which may come from anybody.
fn read(path: &Path) -> Result<Recording, Failure> {
    let unreadable = |error: std::io::Error| Failure::unreadable(path, error);
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Failure::unreadable(path, "it is no file"));
    }
    // Without reading any of it. A file that grows meanwhile is read up to that bound.
    let recording =
        if metadata.len() > MAX_FILE { Err(RecordingError::TooLarge) } else { Recording::from_reader(file) };
    recording.map_err(|error| Failure::input(format!("{} {error}", path.display())))
}

fn sha256(wasm: &[u8]) -> Sha256Hex {
    Sha256Hex::from(<[u8; 32]>::from(Sha256::digest(wasm)))
}

/// The module's name in a recording.
fn module_name(path: &Path, recording: &Recording) -> Result<ModuleName, Failure> {
    let named = recording.head.module.parse();
    named.map_err(|error| Failure::input(format!("{} is damaged: {error}", path.display())))
}

/// Returns the file of a module for this recording. A file that names another module is refused.
fn checked(module: &Path, path: &Path, recording: &Recording) -> Result<PathBuf, Failure> {
    let name = module_name(path, recording)?;
    match file::module_name(module) {
        Ok(other) if other != name => Err(Failure::input(format!(
            "{} is a recording of the module {name}, and {} is the module {other}",
            path.display(),
            module.display()
        ))),
        _ => Ok(module.to_owned()),
    }
}

/// Returns the module's file in the folder of the recording or in the current folder.
fn beside(path: &Path, name: &ModuleName) -> Option<PathBuf> {
    let file = format!("{name}.wasm");
    [path.with_file_name(&file), PathBuf::from(&file)].into_iter().find(|path| path.is_file())
}

/// Finds the recorded module.
fn recorded_module(path: &Path, recording: &Recording) -> Result<PathBuf, Failure> {
    let (name, recorded) = (module_name(path, recording)?, recording.head.sha256);
    let Some(module) = beside(path, &name) else {
        return Err(Failure::new(
            failure::NO_INPUT,
            format!(
                "{} is a recording of the module {name}, and there is no {name}.wasm beside it or in this folder; name \
                 its file behind the recording (sha256 {recorded})",
                path.display()
            ),
        ));
    };
    let found = sha256(&file::read(&module)?);
    if found != recorded {
        return Err(Failure::input(format!(
            "{} is a recording of another content than {} has (sha256 {recorded}, not {found}); to see where a changed \
             module asks something else, name it: salt-module replay {} {}",
            path.display(),
            module.display(),
            path.display(),
            module.display()
        )));
    }
    Ok(module)
}

/// What runs recorded calls.
struct Host {
    replayer: Replayer,
    loaded: Option<PathBuf>,
    /// The modules of `--module` that a recording was of.
    used: BTreeSet<PathBuf>,
    /// Where the compiled code is, if the user has no folder for it.
    _folder: Option<TempDir>,
}

impl Host {
    async fn start() -> Result<Self, Failure> {
        let package = cage::package()?;
        let kept = user_cache().map(|cache| cache.join("replay"));
        let kept = kept.filter(|dir| DirBuilder::new().recursive(true).mode(0o700).create(dir).is_ok());
        let (cache, folder) = match kept {
            Some(kept) => (kept, None),
            None => {
                let folder = tempfile::tempdir();
                let folder = folder.map_err(|error| Failure::failed(format!("no folder to work in: {error}")))?;
                (folder.path().join("compiled"), Some(folder))
            }
        };
        let replayer = Replayer::start(package.executor, package.compiler, &cache).await;
        let replayer = replayer.map_err(|why| Failure::new(failure::UNAVAILABLE, why))?;
        Ok(Self { replayer, loaded: None, used: BTreeSet::new(), _folder: folder })
    }

    async fn replay(&mut self, module: &Path, recording: &Recording) -> Result<Replayed, Failure> {
        if self.loaded.as_deref() != Some(module) {
            self.loaded = None;
            let name = recording.head.module.parse().map_err(|_| Failure::input("the recording is damaged"))?;
            let loaded = self.replayer.load(&name, &file::read(module)?).await;
            loaded.map_err(|why| Failure::input(format!("{} {why}", module.display())))?;
            self.loaded = Some(module.to_owned());
        }
        self.replayer.replay(recording).await.map_err(Failure::failed)
    }

    /// Runs one recording of a folder. Returns the first difference.
    async fn test(&mut self, path: &Path, options: &Test) -> Result<Option<String>, Failure> {
        let recording = read(path)?;
        let name = module_name(path, &recording)?;
        let named = |module: &&PathBuf| file::module_name(module).is_ok_and(|named| named == name);
        let module = match options.modules.iter().find(named) {
            Some(module) => {
                self.used.insert(module.clone());
                module.clone()
            }
            None => beside(path, &name).ok_or_else(|| {
                let why = format!("there is no {name}.wasm in this folder or in that of the recordings");
                Failure::new(failure::NO_INPUT, why)
            })?,
        };
        let replayed = self.replay(&module, &recording).await?;
        Ok(show::difference(&recording, &replayed))
    }
}
