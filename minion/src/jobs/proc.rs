//! `cachedir/proc/<jid>`: one file a running job, the publication's load and the pid (PROTOCOL §9.3).
//!
//! The minion and `salt-call` see each other's jobs through it, and a minion that starts again sees which jobs its
//! predecessor did not finish. Most jobs are over before anybody looks: the daemon first writes each job into a slot of
//! `proc.spare/slots`, and makes the file when the job has run for some time ([`ProcRecord::show`]).

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_protocol::ids::Jid;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt};
use tokio::sync::watch;
use tracing::warn;

use crate::slots::{self, Slot, Slots};
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
    /// Only the daemon has slots.
    slots: Option<Arc<Slots>>,
    here: Arc<Here>,
    pid: u32,
}

/// Why a job is ordered to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Somebody killed it.
    Killed,
    /// The minion ends.
    MinionEnds,
}

/// Receives the order to end one job.
#[derive(Debug, Clone)]
pub(crate) struct End(watch::Receiver<Option<Why>>);

impl End {
    /// Whether the order was given.
    pub(crate) fn is_ordered(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits for the order; for ever, if the job ends without one.
    pub(crate) async fn ordered(mut self) -> Why {
        let ordered = self.0.wait_for(Option::is_some).await.map(|why| *why);
        match ordered {
            Ok(Some(why)) => why,
            _ => std::future::pending().await,
        }
    }
}

/// The jobs of this process, with the sender of the order to end each of them.
#[derive(Debug, Default)]
struct Here(Mutex<HashMap<Jid, watch::Sender<Option<Why>>>>);

impl Here {
    fn jobs(&self) -> MutexGuard<'_, HashMap<Jid, watch::Sender<Option<Why>>>> {
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

/// One job that runs; its file or slot, if it has one, is removed on drop.
#[derive(Debug)]
pub(crate) struct ProcRecord {
    jid: Jid,
    /// The file and its size.
    file: Option<(PathBuf, usize)>,
    slot: Option<InSlot>,
    files: Arc<SpareFiles>,
    /// None for a job of another process.
    here: Option<Arc<Here>>,
}

/// A record in a slot, and the file that it gets when its job takes long.
#[derive(Debug)]
struct InSlot {
    slot: Slot,
    slots: Arc<Slots>,
    path: PathBuf,
}

impl ProcRecord {
    /// Makes the file of a job that has had a slot until now.
    pub(crate) fn show(&mut self) {
        let Some(InSlot { slot, slots, path }) = self.slot.take() else { return };
        let content = slots.read(&slot).unwrap_or_default();
        match self.files.create(&path, &content) {
            Ok(()) => {
                self.file = Some((path, content.len()));
                slots.clear(slot);
            }
            Err(e) => {
                warn!(jid = %self.jid, "cannot record the job in {}: {e}", path.display());
                self.slot = Some(InSlot { slot, slots, path });
            }
        }
    }

    /// Leaves the file for the next start.
    pub(crate) fn leave(mut self) {
        self.file = None;
    }
}

/// Gives the order to end a job. The first one counts.
fn give(job: &watch::Sender<Option<Why>>, why: Why) {
    job.send_if_modified(|ordered| ordered.is_none() && ordered.replace(why).is_none());
}

impl Drop for ProcRecord {
    fn drop(&mut self) {
        if let Some(here) = &self.here {
            here.jobs().remove(&self.jid);
        }
        if let Some((path, size)) = &self.file {
            let _ = self.files.remove(path, *size);
        }
        if let Some(InSlot { slot, slots, .. }) = self.slot.take() {
            slots.clear(slot);
        }
    }
}

impl ProcDir {
    /// Opens the folder and makes it if it is missing. Only the daemon has slots for its jobs; those that an earlier daemon left in them
    /// get their files.
    ///
    /// # Errors
    /// When the folder cannot be made, read or made private.
    pub fn open(dir: &Path, daemon: bool) -> io::Result<Arc<Self>> {
        crate::spare_files::private_dir(dir)?;
        let files = Arc::new(SpareFiles::open(dir)?);
        let slots = if daemon { Self::open_slots(dir, &files) } else { None };
        Ok(Arc::new(Self { dir: dir.to_owned(), files, slots, here: Arc::default(), pid: std::process::id() }))
    }

    fn open_slots(dir: &Path, files: &SpareFiles) -> Option<Arc<Slots>> {
        let opened = Slots::open(&files.slots());
        let (slots, left) = opened.inspect_err(|e| warn!("jobs get files at once: {e}")).ok()?;
        for (slot, record) in left {
            // A record that gets no file keeps its slot for the next start.
            match record.name.parse::<Jid>().map(|jid| files.create(&dir.join(jid.as_str()), &record.content)) {
                Ok(Ok(())) | Err(_) => slots.clear(slot),
                Ok(Err(e)) => warn!(jid = record.name, "a job that an earlier run left cannot be read: {e}"),
            }
        }
        Some(Arc::new(slots))
    }

    /// Records a job that starts now, with `load` also in a file. A file that cannot be written does not keep the job from running.
    pub(crate) fn record(&self, jid: &Jid, load: Option<&Value>, master: Option<&str>) -> (ProcRecord, End) {
        let (sender, ordered) = watch::channel(None);
        self.here.jobs().insert(jid.clone(), sender);
        let (files, here) = (Arc::clone(&self.files), Some(Arc::clone(&self.here)));
        let mut record = ProcRecord { jid: jid.clone(), file: None, slot: None, files, here };
        if let Some(load) = load {
            self.write(&mut record, load, master);
        }
        (record, End(ordered))
    }

    fn write(&self, record: &mut ProcRecord, load: &Value, master: Option<&str>) {
        let jid = &record.jid;
        let path = self.dir.join(jid.as_str());
        let mut content = load.clone();
        content.insert(PID, self.pid);
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
        if let Some((slot, slots)) =
            self.slots.as_ref().and_then(|slots| Some((slots.put(jid.as_str(), &bytes)?, slots)))
        {
            record.slot = Some(InSlot { slot, slots: Arc::clone(slots), path });
            return;
        }
        if let Err(e) = self.files.create(&path, &bytes) {
            warn!(%jid, "cannot record the job in {}: {e}", path.display());
        }
        record.file = Some((path, bytes.len()));
    }

    /// Orders a job of this process to end, whether it runs or waits. Returns false if there is no such job.
    pub(crate) fn end(&self, jid: &Jid) -> bool {
        self.here.jobs().get(jid).map(|job| give(job, Why::Killed)).is_some()
    }

    /// Orders all jobs of this process to end, because it ends itself, and returns their jids.
    pub(crate) fn end_all(&self) -> Vec<Jid> {
        let jobs = self.here.jobs();
        jobs.iter().map(|(jid, job)| (jid.clone(), give(job, Why::MinionEnds)).0).collect()
    }

    /// The jobs that run, each its load with `pid`; `except` is left out.
    pub fn running(&self, except: &str) -> Vec<Value> {
        self.loads(except).filter_map(|load| self.if_running(load)).collect()
    }

    /// The jobs that run, each its load with `pid`, without `except`; those of this master alone, if one is named.
    pub(crate) fn running_of(&self, master: Option<&str>, except: &str) -> Vec<Value> {
        let asked = |load: &Value| master.is_none() || load.get_text(MASTER) == master;
        self.loads(except).filter(|load| self.is_alive(load) && asked(load)).collect()
    }

    /// The loads that are recorded, whether their jobs run or not, in the order of their jids.
    fn loads(&self, except: &str) -> impl Iterator<Item = Value> {
        // First the slots: a job that gets its file meanwhile is then in both.
        let mut all: BTreeMap<Jid, Value> = self.in_slots().collect();
        all.extend(self.jids().into_iter().filter_map(|jid| Some((jid.clone(), self.read(&jid)?))));
        all.into_iter().filter(move |(jid, _)| jid.as_str() != except).map(|(_, load)| load)
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// One job that runs.
    pub fn find(&self, jid: &Jid) -> Option<Value> {
        let in_slot = || self.in_slots().find(|(one, _)| one == jid).map(|(_, load)| load);
        // Between the two looks it may have got its file.
        let load = self.read(jid).or_else(in_slot).or_else(|| self.read(jid))?;
        self.if_running(load)
    }

    /// Whether a job runs here or waits for its turn, also one without a record.
    pub(crate) fn runs(&self, jid: &Jid) -> bool {
        self.here.jobs().contains_key(jid) || self.find(jid).is_some()
    }

    /// The jobs of the daemon that have no files yet.
    fn in_slots(&self) -> impl Iterator<Item = (Jid, Value)> {
        let records = slots::read_records(&self.files.slots()).into_iter();
        records.filter_map(|record| Some((record.name.parse().ok()?, decode(&record.content)?)))
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
            if pid.is_some_and(|pid| pid != u64::from(self.pid) && is_salt(pid)) {
                continue;
            }
            let (file, files) = (Some((path, 0)), Arc::clone(&self.files));
            let record = ProcRecord { jid: jid.clone(), file, slot: None, files, here: None };
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

    fn if_running(&self, mut load: Value) -> Option<Value> {
        let _ = load.remove(MASTER);
        self.is_alive(&load).then_some(load)
    }

    /// Whether the process of a job is alive: this one, or another one of Salt's.
    fn is_alive(&self, load: &Value) -> bool {
        load.get_u64(PID).is_some_and(|pid| pid == u64::from(self.pid) || is_salt(pid))
    }

    fn read(&self, jid: &Jid) -> Option<Value> {
        decode(&brine_files::read_own(&self.dir.join(jid.as_str()), MAX_RECORD_BYTES).ok()?)
    }
}

fn decode(record: &[u8]) -> Option<Value> {
    msgpack::decode(record, &msgpack::Limits::DISK).ok().filter(|load| load.entries().is_some())
}

/// The `tgt` of calls on this host, as in Salt.
pub(crate) const SALT_CALL: &str = "salt-call";

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
        let procs = ProcDir::open(&dir, false).unwrap();
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

    /// As `salt-call` and Salt's own tools see it.
    #[test]
    fn a_job_of_the_daemon_gets_its_file_when_it_takes_long() {
        let (_folder, dir) = folder();
        let (daemon, other) = (ProcDir::open(&dir, true).unwrap(), ProcDir::open(&dir, false).unwrap());
        let (short, long) = (Jid::now(), Jid::now());
        let load = map([("fun", "test.ping")]);
        let (record, _) = daemon.record(&short, Some(&load), None);
        let (mut shown, _) = daemon.record(&long, Some(&load), Some("aa"));
        shown.show();
        let files = || fs::read_dir(&dir).unwrap().count();
        assert_eq!(files(), 1);
        for procs in [&daemon, &other] {
            assert_eq!(procs.find(&short), procs.find(&long));
            assert_eq!(procs.find(&long).unwrap().get_text("fun"), Some("test.ping"));
            assert_eq!(procs.running("").len(), 2);
            assert_eq!(procs.running(short.as_str()).len(), 1);
        }
        drop((record, shown));
        assert_eq!((files(), daemon.running("").len()), (0, 0));
    }

    #[test]
    fn a_job_in_a_slot_outlives_its_process() {
        let (_folder, dir) = folder();
        let daemon = ProcDir::open(&dir, true).unwrap();
        let (jid, ended) = (Jid::now(), Jid::now());
        let load = map([("fun", Value::from("test.sleep")), ("jid", Value::from(&jid))]);
        let _running = daemon.record(&jid, Some(&load), Some("aa:bb"));
        drop(daemon.record(&ended, Some(&load), None));
        let _strange = daemon.slots.as_ref().unwrap().put("../x", b"\x80").unwrap();
        // As it is when the process is killed now.
        let copy = dir.with_file_name("copy");
        fs::create_dir_all(copy.with_file_name("copy.spare")).unwrap();
        fs::copy(daemon.files.slots(), copy.with_file_name("copy.spare/slots")).unwrap();
        let procs = ProcDir::open(&copy, true).unwrap();
        let left = procs.take_left();
        assert_eq!((left.len(), &left[0].jid, left[0].master.as_deref()), (1, &jid, Some("aa:bb")));
        drop(left);
        assert!(procs.take_left().is_empty() && !copy.join("../x").exists());
    }

    #[test]
    fn a_job_is_told_to_end_while_it_is_there() {
        let (_folder, dir) = folder();
        let procs = ProcDir::open(&dir, false).unwrap();
        let (jid, other) = (Jid::now(), Jid::now());
        let (record, end) = procs.record(&jid, Some(&map([("fun", "a.b")])), None);
        let (_unrecorded, others) = procs.record(&other, None, None);
        assert!(end.clone().ordered().now_or_never().is_none());
        assert!(procs.end(&jid));
        assert_eq!(end.ordered().now_or_never(), Some(Why::Killed));
        assert!(others.clone().ordered().now_or_never().is_none());
        assert_eq!(procs.running("").len(), 1);
        drop(record);
        assert!(!procs.end(&jid));
        assert_eq!(procs.end_all(), std::slice::from_ref(&other));
        assert!(procs.end(&other));
        assert_eq!(others.ordered().now_or_never(), Some(Why::MinionEnds));
    }

    /// Without the record, the job would have no return if the minion died.
    #[test]
    fn a_job_with_large_arguments_is_recorded_without_them() {
        let (_folder, dir) = folder();
        let procs = ProcDir::open(&dir, false).unwrap();
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
        let procs = ProcDir::open(&dir, false).unwrap();
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
