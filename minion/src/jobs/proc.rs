//! `cachedir/proc/<jid>`: one file a running job, the publication's load and the pid (PROTOCOL §9.3).
//!
//! The minion and `salt-call` see each other's jobs through it, and a minion that starts again sees which jobs its
//! predecessor did not finish.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_protocol::ids::Jid;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt};
use tokio::sync::watch;
use tracing::warn;

use crate::spare_files::SpareFiles;

/// Upper bound on the records that are read; no minion may have so many jobs at once.
const MAX_RECORDS: usize = 10_000;
/// Listing jobs reads each record, so a record leaves out arguments larger than this.
const MAX_RECORD_BYTES: u64 = 4 * 1024 * 1024;
pub(crate) const PID: &str = "pid";
/// The fingerprint of the master that asked: for this program only.
pub(crate) const MASTER: &str = "master_fingerprint";

/// The folder.
#[derive(Debug)]
pub struct ProcDir {
    dir: PathBuf,
    files: Arc<SpareFiles>,
    here: Arc<Here>,
}

/// Receives the order to end one job.
#[derive(Debug, Clone)]
pub(crate) struct End(watch::Receiver<bool>);

impl End {
    /// Whether the order was given.
    pub(crate) fn is_ordered(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the order; for ever, if the job ends without one.
    pub(crate) async fn ordered(mut self) {
        if self.0.wait_for(|ordered| *ordered).await.is_err() {
            std::future::pending().await
        }
    }
}

/// The jobs of this process, with the sender of the order to end each of them.
#[derive(Debug, Default)]
struct Here(Mutex<HashMap<Jid, watch::Sender<bool>>>);

impl Here {
    fn jobs(&self) -> MutexGuard<'_, HashMap<Jid, watch::Sender<bool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job that an earlier run of the minion did not finish.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) jid: Jid,
    pub(crate) load: Value,
    /// The fingerprint of the master that asked; earlier versions did not record it.
    pub(crate) master: Option<Arc<str>>,
    pub(crate) record: ProcRecord,
}

/// One job that runs; its file, if it has one, is removed on drop.
#[derive(Debug)]
pub(crate) struct ProcRecord {
    jid: Jid,
    /// The file and its size.
    file: Option<(PathBuf, usize)>,
    files: Arc<SpareFiles>,
    /// None for a job of another process.
    here: Option<Arc<Here>>,
}

impl ProcRecord {
    /// Leaves the file for the next start.
    pub(crate) fn leave(mut self) {
        self.file = None;
    }
}

impl Drop for ProcRecord {
    fn drop(&mut self) {
        if let Some(here) = &self.here {
            here.jobs().remove(&self.jid);
        }
        if let Some((path, size)) = &self.file {
            let _ = self.files.remove(path, *size);
        }
    }
}

impl ProcDir {
    /// Opens the folder and makes it if it is missing.
    ///
    /// # Errors
    /// When the folder cannot be made, read or made private.
    pub fn open(dir: &Path) -> io::Result<Arc<Self>> {
        crate::spare_files::private_dir(dir)?;
        let files = Arc::new(SpareFiles::open(dir)?);
        Ok(Arc::new(Self { dir: dir.to_owned(), files, here: Arc::default() }))
    }

    /// Records a job that starts now, with `load` also in a file. A file that cannot be written does not keep the job from running.
    pub(crate) fn record(&self, jid: &Jid, load: Option<&Value>, master: Option<&str>) -> (ProcRecord, End) {
        let (sender, ordered) = watch::channel(false);
        self.here.jobs().insert(jid.clone(), sender);
        let file = load.map(|load| self.write(jid, load, master));
        let (files, here) = (Arc::clone(&self.files), Some(Arc::clone(&self.here)));
        (ProcRecord { jid: jid.clone(), file, files, here }, End(ordered))
    }

    fn write(&self, jid: &Jid, load: &Value, master: Option<&str>) -> (PathBuf, usize) {
        let path = self.dir.join(jid.as_str());
        let mut content = load.clone();
        content.insert(PID, std::process::id());
        if let Some(master) = master {
            content.insert(MASTER, master);
        }
        let mut bytes = msgpack::encode_network(&content);
        if bytes.len() as u64 > MAX_RECORD_BYTES {
            let none = Value::Array(Vec::new());
            let arg = match content.get_list("fun") {
                Some(functions) => vec![none; functions.len()],
                None => Vec::new(),
            };
            content.insert("arg", Value::Array(arg));
            bytes = msgpack::encode_network(&content);
        }
        if let Err(e) = self.files.create(&path, &bytes) {
            warn!(%jid, "cannot record the job in {}: {e}", path.display());
        }
        (path, bytes.len())
    }

    /// Orders a job of this process to end, whether it runs or waits. Returns false if there is no such job.
    pub(crate) fn end(&self, jid: &Jid) -> bool {
        self.here.jobs().get(jid).map(|job| job.send_replace(true)).is_some()
    }

    /// Orders all jobs of this process to end and returns their jids.
    pub(crate) fn end_all(&self) -> Vec<Jid> {
        let jobs = self.here.jobs();
        jobs.iter().map(|(jid, job)| (jid.clone(), job.send_replace(true)).0).collect()
    }

    /// The jobs that run, each its load with `pid`; `except` is left out.
    pub fn running(&self, except: &str) -> Vec<Value> {
        self.jids().into_iter().filter(|jid| jid.as_str() != except).filter_map(|jid| self.read_running(&jid)).collect()
    }

    /// The jobs that run, each its load with `pid`, without `except`; those of this master alone, if one is named.
    pub(crate) fn running_of(&self, master: Option<&str>, except: &str) -> Vec<Value> {
        let jids = self.jids().into_iter().filter(|jid| jid.as_str() != except);
        jids.filter_map(|jid| {
            let load = self.read(&jid).filter(|load| is_alive(load))?;
            let asked_by = load.get_text(MASTER);
            (master.is_none() || asked_by == master).then_some(load)
        })
        .collect()
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// One job that runs.
    pub fn find(&self, jid: &Jid) -> Option<Value> {
        self.read_running(jid)
    }

    /// Takes the records that an earlier run of the minion left, with their loads; dropping a record removes its file. Records of
    /// `salt-call` processes that have ended are removed, records of living processes stay.
    pub(crate) fn take_left(&self) -> Vec<Left> {
        let mut left = Vec::new();
        for jid in self.jids() {
            let path = self.dir.join(jid.as_str());
            let load = self.read(&jid);
            let pid = load.as_ref().and_then(|l| l.get_u64(PID));
            // In a container, this process may have the same pid as the earlier run.
            if pid.is_some_and(|pid| pid != u64::from(std::process::id()) && is_salt(pid)) {
                continue;
            }
            let record =
                ProcRecord { jid: jid.clone(), file: Some((path, 0)), files: Arc::clone(&self.files), here: None };
            // After a power failure, the file may have the content of another job.
            if let Some(mut load) = load.filter(|load| load.get_text("jid").is_none_or(|own| own == jid.as_str()))
                && load.get_text("tgt") != Some(SALT_CALL)
            {
                let _ = load.remove(PID);
                let master = load.remove(MASTER).and_then(|master| Some(master.text()?.into()));
                left.push(Left { jid, load, master, record });
            }
        }
        left
    }

    fn jids(&self) -> Vec<Jid> {
        let Ok(items) = fs::read_dir(&self.dir) else { return Vec::new() };
        let names = items.flatten().take(MAX_RECORDS).filter_map(|item| item.file_name().into_string().ok());
        let mut jids: Vec<Jid> = names.filter_map(|name| name.parse().ok()).collect();
        jids.sort();
        jids
    }

    fn read_running(&self, jid: &Jid) -> Option<Value> {
        let mut load = self.read(jid)?;
        let _ = load.remove(MASTER);
        is_alive(&load).then_some(load)
    }

    fn read(&self, jid: &Jid) -> Option<Value> {
        let bytes = brine_files::read_own(&self.dir.join(jid.as_str()), MAX_RECORD_BYTES).ok()?;
        msgpack::decode(&bytes, &msgpack::Limits::DISK).ok().filter(|load| load.entries().is_some())
    }
}

/// The `tgt` of calls on this host, as in Salt.
pub(crate) const SALT_CALL: &str = "salt-call";

/// Whether the process that runs a job is there.
fn is_alive(load: &Value) -> bool {
    load.get_u64(PID).is_some_and(|pid| pid == u64::from(std::process::id()) || is_salt(pid))
}

/// Whether a process is alive and one of Salt's, so that a reused pid is not taken for a job.
fn is_salt(pid: u64) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.windows(4).any(|w| w == b"salt"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{list, map};
    use futures_util::FutureExt;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("proc");
        (folder, dir)
    }

    #[test]
    fn a_record_lives_as_long_as_its_job() {
        let (_folder, dir) = folder();
        let procs = ProcDir::open(&dir).unwrap();
        let (one, two) = (Jid::now(), Jid::now());
        let load = map([("fun", "test.ping")]);
        let (record, _) = procs.record(&one, Some(&load), None);
        let _other = procs.record(&two, Some(&load), None);
        assert_eq!(procs.running(two.as_str()).len(), 1);
        let found = procs.find(&one).unwrap();
        assert_eq!(found.get_text("fun"), Some("test.ping"));
        assert_eq!(found.get_u64("pid"), Some(u64::from(std::process::id())));
        drop(record);
        assert!(procs.find(&one).is_none());
    }

    #[test]
    fn a_job_is_told_to_end_while_it_is_there() {
        let (_folder, dir) = folder();
        let procs = ProcDir::open(&dir).unwrap();
        let (jid, other) = (Jid::now(), Jid::now());
        let (record, end) = procs.record(&jid, Some(&map([("fun", "a.b")])), None);
        let (_unrecorded, others) = procs.record(&other, None, None);
        assert!(end.clone().ordered().now_or_never().is_none());
        assert!(procs.end(&jid));
        assert!(end.ordered().now_or_never().is_some());
        assert!(others.clone().ordered().now_or_never().is_none());
        assert_eq!(procs.running("").len(), 1);
        drop(record);
        assert!(!procs.end(&jid));
        assert_eq!(procs.end_all(), [other]);
        assert!(others.ordered().now_or_never().is_some());
    }

    /// Without the record, the job would have no return if the minion died.
    #[test]
    fn a_job_with_large_arguments_is_recorded_without_them() {
        let (_folder, dir) = folder();
        let procs = ProcDir::open(&dir).unwrap();
        let large = Value::from("x".repeat(5 << 20));
        for (fun, arg, kept) in [
            (Value::from("test.echo"), list([large.clone()]), list::<Value>([])),
            (
                list(["test.echo", "test.ping"]),
                list([list([large]), list::<Value>([])]),
                list([list::<Value>([]), list::<Value>([])]),
            ),
        ] {
            let jid = Jid::now();
            let load = map([("fun", fun), ("arg", arg), ("jid", Value::from(&jid)), ("tgt", Value::from("*"))]);
            let (record, _) = procs.record(&jid, Some(&load), Some("aa:bb"));
            assert_eq!(procs.find(&jid).unwrap().get("arg"), Some(&kept));
            record.leave();
            assert!(procs.find(&jid).unwrap().get(MASTER).is_none());
            let left = procs.take_left();
            assert_eq!(left[0].master.as_deref(), Some("aa:bb"));
            assert!(left[0].load.get(MASTER).is_none() && left[0].load.get(PID).is_none());
            assert!(brine_protocol::job::JobLoad::parse(&left[0].load).is_ok(), "{}", left[0].load);
        }
    }

    #[test]
    fn what_a_dead_minion_left_is_taken_once_and_strange_files_do_no_harm() {
        let (_folder, dir) = folder();
        let procs = ProcDir::open(&dir).unwrap();
        let jid = Jid::now();
        let write = |name: &str, load: &Value| fs::write(dir.join(name), msgpack::encode_network(load)).unwrap();
        write(jid.as_str(), &map([("fun", Value::from("test.sleep")), ("pid", Value::from(u32::MAX))]));
        let call = map([("tgt", Value::from(SALT_CALL)), ("pid", Value::from(u32::MAX))]);
        write(Jid::now().as_str(), &call);
        fs::write(dir.join(Jid::now().as_str()), b"\xc1").unwrap();
        fs::write(dir.join("notes"), "x").unwrap();
        assert!(procs.running("").is_empty());
        let left = procs.take_left();
        assert_eq!(left.len(), 1);
        assert_eq!((&left[0].jid, &left[0].master), (&jid, &None));
        // Until its return is kept it can be taken again, by the next run too.
        for left in left {
            left.record.leave();
        }
        assert_eq!(procs.take_left().len(), 1);
        assert!(procs.take_left().is_empty());
        assert!(dir.join("notes").exists());
    }
}
