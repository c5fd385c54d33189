//! Content that comes in parts. It is kept in a file without a name until the job uses it or ends.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use brine_sandbox::JobContext;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::content::MAX_CONTENT;

/// Upper bound on the stages of one call: a module writes one file after the other.
const MAX_OF_ONE: usize = 4;
/// Upper bound on all stages. Each is an open file.
const MAX_STAGES: usize = 64;
/// Upper bound on the bytes of all stages: some of the largest files at once. They are on the disk of the minion's own folder.
const MAX_BYTES: u64 = 4 * MAX_CONTENT;
/// What the calls of one module may have of both: three quarters, so that none keeps all others from writing.
const MAX_STAGES_OF_MODULE: usize = MAX_STAGES / 4 * 3;
const MAX_BYTES_OF_MODULE: u64 = MAX_BYTES / 4 * 3;

/// The running call to which a stage belongs. The minion keeps the context as long as the call runs.
#[derive(Clone, Default)]
pub(super) struct Job {
    context: Weak<JobContext>,
    module: String,
}

impl Job {
    pub(super) fn of(job: &Arc<JobContext>, module: &str) -> Self {
        Self { context: Arc::downgrade(job), module: module.to_owned() }
    }

    fn runs(&self) -> bool {
        self.context.strong_count() > 0
    }

    fn is(&self, other: &Self) -> bool {
        self.runs() && self.context.ptr_eq(&other.context)
    }
}

struct Stage {
    job: Job,
    file: Arc<File>,
    size: u64,
}

pub(super) struct Stages {
    folder: PathBuf,
    stages: Mutex<HashMap<u64, Stage>>,
}

impl Stages {
    pub(super) fn new(cachedir: &Path) -> Self {
        Self { folder: super::folder(cachedir), stages: Mutex::default() }
    }

    fn stages(&self) -> MutexGuard<'_, HashMap<u64, Stage>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a part. Returns the number of the stage.
    pub(super) fn take(&self, job: &Job, stage: Option<u64>, data: &[u8]) -> Result<u64, String> {
        let (number, file) = match stage {
            Some(number) => {
                let mut stages = self.stages();
                has_room(&mut stages, job, data)?;
                let stage = stages.get_mut(&number).filter(|stage| stage.job.is(job)).ok_or_else(missing)?;
                if stage.size + data.len() as u64 > MAX_CONTENT {
                    return Err(format!("a file is given at most {MAX_CONTENT} bytes"));
                }
                stage.size += data.len() as u64;
                (number, Arc::clone(&stage.file))
            }
            None => {
                let file = Arc::new(self.file().map_err(|error| format!("there is no room for the content: {error}"))?);
                let mut stages = self.stages();
                has_room(&mut stages, job, data)?;
                let count = |is: &dyn Fn(&Job) -> bool| stages.values().filter(|stage| is(&stage.job)).count();
                let of_one = count(&|other| other.is(job));
                let of_module = count(&|other| other.module == job.module);
                if of_one >= MAX_OF_ONE || of_module >= MAX_STAGES_OF_MODULE || stages.len() >= MAX_STAGES {
                    return Err(format!(
                        "at most {MAX_OF_ONE} contents of one call, {MAX_STAGES_OF_MODULE} of one module, and {MAX_STAGES} of all, are staged"
                    ));
                }
                let number = loop {
                    let number = rand::random::<u64>();
                    if !stages.contains_key(&number) {
                        break number;
                    }
                };
                let stage = Stage { job: job.clone(), file: Arc::clone(&file), size: data.len() as u64 };
                stages.insert(number, stage);
                (number, file)
            }
        };
        (&*file).write_all(data).map_err(|error| format!("the content cannot be kept: {error}"))?;
        Ok(number)
    }

    /// Returns a stage's content and forgets the stage.
    pub(super) fn used(&self, job: &Job, number: u64) -> Result<Arc<File>, String> {
        let mut stages = self.stages();
        match stages.get(&number).is_some_and(|stage| stage.job.is(job)) {
            true => stages.remove(&number).map(|stage| stage.file).ok_or_else(missing),
            false => Err(missing()),
        }
    }

    fn file(&self) -> std::io::Result<File> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.folder)?;
        let mode = Mode::RUSR | Mode::WUSR;
        match rustix::fs::openat(CWD, &self.folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
            Ok(file) => Ok(file.into()),
            // Some file systems have no files without a name.
            Err(_) => {
                let path = self.folder.join(format!("stage-{}", hex::encode(rand::random::<[u8; 16]>())));
                let file = brine_files::create_own(&path, 0o600)?;
                rustix::fs::unlinkat(CWD, &path, AtFlags::empty())?;
                Ok(file)
            }
        }
    }
}

fn has_room(stages: &mut HashMap<u64, Stage>, job: &Job, data: &[u8]) -> Result<(), String> {
    stages.retain(|_, stage| stage.job.runs());
    let (mut all, mut of_module) = (data.len() as u64, data.len() as u64);
    for stage in stages.values() {
        all = all.saturating_add(stage.size);
        if stage.job.module == job.module {
            of_module = of_module.saturating_add(stage.size);
        }
    }
    if all > MAX_BYTES || of_module > MAX_BYTES_OF_MODULE {
        return Err(format!(
            "at most {MAX_BYTES_OF_MODULE} bytes of one module's calls, and {MAX_BYTES} of all, are staged"
        ));
    }
    Ok(())
}

fn missing() -> String {
    "there is no such staged content of this call".to_owned()
}
