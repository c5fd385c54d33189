//! The orchestrations that run, on disk: a master that ended before them says so at its next start. It resumes none,
//! because nobody knows how far what it had begun came.

use std::path::{Path, PathBuf};

use brine_protocol::ids::Jid;
use brine_protocol::value::{ValueExt as _, from_json, map, to_json};

use super::super::function::Run;
use crate::files;

/// Bound on the bytes of a file.
const FILE_MAX: u64 = 4 << 10;
/// Bound on the files that are looked at.
const FILES_MAX: usize = 1_000;

fn folder(cachedir: &Path) -> PathBuf {
    cachedir.join("orchestrations")
}

/// Writes down that an orchestration begins. Without it, nobody learns of its end in a crash, which is no reason not to
/// run it.
pub(super) async fn write(run: &Run) {
    let (dir, jid) = (folder(&run.parts.opts.cachedir), run.job.jid.clone());
    let text = to_json(&map([("fun", run.fun()), ("user", &run.job.user)])).to_string();
    let written = tokio::task::spawn_blocking(move || {
        files::make_private_dir(&dir)?;
        files::write_atomic(&dir.join(jid.as_str()), text.as_bytes(), 0o600)
    });
    if let Ok(Err(error)) = written.await {
        tracing::warn!("an orchestration is not written down: {error}");
    }
}

/// Forgets an orchestration that has ended.
pub(super) async fn forget(run: &Run) {
    let path = folder(&run.parts.opts.cachedir).join(run.job.jid.as_str());
    let _ = tokio::task::spawn_blocking(move || std::fs::remove_file(path)).await;
}

/// An orchestration that ended with its master.
pub(in crate::runners) struct Interrupted {
    pub(in crate::runners) jid: Jid,
    pub(in crate::runners) fun: String,
    pub(in crate::runners) user: String,
}

impl Interrupted {
    /// What is said of it.
    pub(in crate::runners) const SAID: &'static str = "The master ended while this orchestration ran. It is not resumed: the jobs that it had started went on, and no other was started.";

    /// Takes all that a master left.
    pub(in crate::runners) async fn take(cachedir: &Path) -> Vec<Self> {
        let dir = folder(cachedir);
        tokio::task::spawn_blocking(move || {
            let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
            entries.flatten().take(FILES_MAX).filter_map(|entry| Self::read(&entry.path())).collect()
        })
        .await
        .unwrap_or_default()
    }

    fn read(path: &Path) -> Option<Self> {
        let jid = Jid::try_from(path.file_name()?.to_str()?).ok()?;
        let found = files::read_regular(path, FILE_MAX);
        let _ = std::fs::remove_file(path);
        let value = from_json(&serde_json::from_slice(&found.ok()??.0).ok()?);
        let text = |name: &str| value.get(name).map(|text| text.python_str()).unwrap_or_default();
        Some(Self { jid, fun: text("fun"), user: text("user") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_master_left_is_said_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = folder(dir.path());
        files::make_private_dir(&at).unwrap();
        std::fs::write(at.join("20260101000000000001"), r#"{"fun": "state.orchestrate", "user": "ann"}"#).unwrap();
        std::fs::write(at.join("20260101000000000002"), "rubbish").unwrap();
        std::fs::write(at.join("no jid"), "{}").unwrap();
        let left = Interrupted::take(dir.path()).await;
        let said: Vec<_> = left.iter().map(|one| (one.jid.as_str(), one.fun.as_str(), one.user.as_str())).collect();
        assert_eq!(said, [("20260101000000000001", "state.orchestrate", "ann")]);
        assert!(Interrupted::take(dir.path()).await.is_empty());
    }
}
