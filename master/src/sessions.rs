//! Session keys (§3.5), one for each accepted minion, in `cachedir/brine_sessions/<id>`, so that sessions survive a restart of the
//! master. The files are encrypted with a key that follows from the master's RSA key: a copy of the folder alone opens nothing.
//!
//! What was recorded before a restart must not be taken after it, when the nonces that were seen are forgotten. So a session that was read
//! from its file is good for requests that say this master's run (§3.10), which it tells in answers that only the minion can read.
//!
//! A session also says whether its minion opens sealed publications (§5.5). Only a request that the session proves changes that, so nobody
//! on the network can make the master fall back to publications that all minions can read.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use brine_protocol::auth::MasterRun;
use brine_protocol::crypticle::{AesKey, Crypticle};
use brine_protocol::ids::MinionId;
use brine_protocol::sealed::Vault;
use sha2::{Digest, Sha256};

use crate::files;
use crate::keys::MinionKey;
use crate::replay::{Freshness, ReplayGuard};

/// Largest size of a session file in bytes. The master writes 117.
const FILE_MAX: u64 = 256;
/// Bits of a file's flags.
const SEALS: u8 = 1;
const RETIRED: u8 = 2;

/// Sessions made together, such as after a restart with an empty folder, must not expire together, because the whole
/// fleet would authenticate at once. Each session expires earlier by up to this fraction of `publish_session`.
const EARLIER_PART: u32 = 8;
/// Time in which the file of a session is written once because of what its minion says about sealed publications. Otherwise a minion
/// that says something else with each request would keep the disk, and the lock of all sessions, busy.
const SEALS_WRITTEN_EVERY: Duration = Duration::from_secs(60);

/// A minion's session.
#[derive(Debug)]
pub(crate) struct MinionSession {
    pub(crate) key: AesKey,
    pub(crate) crypticle: Crypticle,
    made: SystemTime,
    /// When the minion's key was stored, of a session that was made since this master's start.
    key_stored: Option<SystemTime>,
    /// The minion opens sealed publications.
    seals: AtomicBool,
    /// When a change of `seals` was last written.
    seals_written: Mutex<Option<Instant>>,
    /// No request is accepted under it any more. Publications are still sealed with it, until the minion has another one.
    retired: AtomicBool,
    /// From 0 to 1. Derived from the key, so the value is the same after a restart.
    earlier: f64,
    /// The run that requests have to say, if the session was made in an earlier one.
    run: Option<MasterRun>,
    replay: Mutex<ReplayGuard>,
    /// Questions for the run, of which each counts once too.
    questions: Mutex<ReplayGuard>,
    /// The last token that was verified: its digest, and the accepted key that verified it.
    token: Mutex<Option<([u8; 32], Arc<MinionKey>)>>,
}

impl MinionSession {
    fn new(key: AesKey, made: SystemTime, flags: u8, run: Option<MasterRun>) -> Self {
        let hash: [u8; 32] = Sha256::digest(key.text().expose().as_bytes()).into();
        let earlier = f64::from(hash[0]) / f64::from(u8::MAX);
        Self {
            crypticle: Crypticle::new(&key),
            key,
            made,
            key_stored: None,
            seals: AtomicBool::new(flags & SEALS != 0),
            seals_written: Mutex::default(),
            retired: AtomicBool::new(flags & RETIRED != 0),
            earlier,
            run,
            replay: Mutex::default(),
            questions: Mutex::default(),
            token: Mutex::default(),
        }
    }

    /// Whether it was made when this key of the minion was stored already. Otherwise the holder of a former key may know it.
    ///
    /// The times alone do not tell if the clock was set back since the key was stored.
    pub(crate) fn is_of_key(&self, key_stored: SystemTime) -> bool {
        self.made >= key_stored || self.key_stored == Some(key_stored)
    }

    /// Whether a change of `seals` may be written now.
    fn may_write_seals(&self, now: Instant) -> bool {
        let mut written = self.seals_written.lock().unwrap_or_else(PoisonError::into_inner);
        let may = written.is_none_or(|at| now.duration_since(at) >= SEALS_WRITTEN_EVERY);
        if may {
            *written = Some(now);
        }
        may
    }

    /// Whether the minion opens sealed publications.
    pub(crate) fn seals(&self) -> bool {
        self.seals.load(Ordering::Relaxed)
    }

    /// The content of its file: nanoseconds since the epoch, flags, and the key's text.
    fn to_bytes(&self) -> Vec<u8> {
        let made = self
            .made
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |made| u64::try_from(made.as_nanos()).unwrap_or(u64::MAX));
        let flags =
            if self.seals() { SEALS } else { 0 } | if self.retired.load(Ordering::Relaxed) { RETIRED } else { 0 };
        [made.to_be_bytes().as_slice(), &[flags], self.key.text().expose().as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8], run: MasterRun) -> Option<Self> {
        let (made, rest) = bytes.split_first_chunk::<8>()?;
        let (flags, text) = rest.split_first()?;
        let made = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(u64::from_be_bytes(*made)))?;
        Some(Self::new(AesKey::from_bytes(text).ok()?, made, *flags, Some(run)))
    }

    /// Checks that this is a token of the minion's accepted key. `verify` costs an RSA operation and is not called if
    /// the same token was verified with the same key before.
    pub(crate) fn is_token(&self, token: &[u8], key: &Arc<MinionKey>, verify: impl FnOnce() -> bool) -> bool {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let lock = || self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if lock().as_ref().is_some_and(|(known, with)| *known == digest && Arc::ptr_eq(with, key)) {
            return true;
        }
        let good = verify();
        if good {
            *lock() = Some((digest, Arc::clone(key)));
        }
        good
    }

    /// The run that this session's requests have to say, if it is of an earlier one.
    pub(crate) const fn run(&self) -> Option<&MasterRun> {
        self.run.as_ref()
    }

    /// Whether a request that says this of the run may be a recording of an earlier one.
    pub(crate) fn is_of_earlier_run(&self, said: Option<&[u8]>) -> bool {
        self.run.as_ref().is_some_and(|run| said != Some(run))
    }

    /// Checks a request for replay. The request must have been decrypted with this session's key.
    pub(crate) fn freshness(&self, nonce: &str, ts: i64) -> Freshness {
        self.replay.lock().unwrap_or_else(PoisonError::into_inner).check(nonce, ts)
    }

    /// As [`MinionSession::freshness`], of a question for the run. Such a request may be a recording, so it must not decide about others.
    pub(crate) fn freshness_of_question(&self, nonce: &str, ts: i64) -> Freshness {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).check(nonce, ts)
    }
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    dir: PathBuf,
    age_max: Duration,
    vault: Vault,
    run: MasterRun,
    live: Mutex<HashMap<MinionId, Arc<MinionSession>>>,
}

impl Sessions {
    pub(crate) fn open(dir: PathBuf, age_max: Duration, vault: Vault) -> io::Result<Self> {
        files::make_dir(&dir, 0o700)?;
        Ok(Self { dir, age_max, vault, run: rand::random(), live: Mutex::default() })
    }

    /// Returns the session of a minion that has one. Never makes a session, because a request can name any id (§13.2).
    pub(crate) fn for_request(&self, id: &MinionId) -> Option<Arc<MinionSession>> {
        self.known(id).filter(|session| self.is_fresh(session))
    }

    /// Divides minions into those that get a publication sealed, with their sessions, and the others. A session's age does not count here:
    /// its minion has no other one yet. That the key was stored since (`stored_at`) does: the minion is about to get another session, and
    /// could not open then what was sealed under this one.
    pub(crate) fn divide(
        &self,
        ids: &[MinionId],
        stored_at: impl Fn(&MinionId) -> Option<SystemTime>,
    ) -> (Vec<(MinionId, Arc<MinionSession>)>, Vec<MinionId>) {
        let (mut sealed, mut shared) = (Vec::new(), Vec::new());
        let is_current = |id: &MinionId, session: &MinionSession| stored_at(id).is_some_and(|at| session.is_of_key(at));
        for id in ids {
            match self.known(id).filter(|session| session.seals() && is_current(id, session)) {
                Some(session) => sealed.push((id.clone(), session)),
                None => shared.push(id.clone()),
            }
        }
        (sealed, shared)
    }

    /// The session of a minion, however old, from memory or from its file.
    fn known(&self, id: &MinionId) -> Option<Arc<MinionSession>> {
        let mut live = self.lock();
        if let Some(session) = live.get(id) {
            return Some(Arc::clone(session));
        }
        let session =
            self.read(id).inspect_err(|e| tracing::warn!("the session file of {id} is not used: {e}")).ok()??;
        live.insert(id.clone(), Arc::clone(&session));
        Some(session)
    }

    /// Returns the session of a minion that has just authenticated, and makes one if there is no valid one. A session
    /// from before the key was stored (`key_stored`) is not valid: the holder of the id's former key may know it, and
    /// could read the new minion's requests.
    ///
    /// `seals` is what the minion said without proof. It counts only until the first request of a key's first session.
    pub(crate) fn for_auth(
        &self,
        id: &MinionId,
        key_stored: SystemTime,
        seals: bool,
    ) -> io::Result<Arc<MinionSession>> {
        // Python's minions say no run.
        let says_runs = |session: &MinionSession| session.run.is_none() || session.seals();
        let good = |session: &Arc<MinionSession>| {
            session.is_of_key(key_stored) && self.is_fresh(session) && says_runs(session)
        };
        let before = self.known(id).filter(|session| session.is_of_key(key_stored));
        if let Some(session) = before.as_ref().filter(|session| good(session)) {
            return Ok(Arc::clone(session));
        }
        let mut live = self.lock();
        // Another task may have made the session meanwhile.
        if let Some(session) = live.get(id).filter(|session| good(session)) {
            return Ok(Arc::clone(session));
        }
        let seals = before.map_or(seals, |before| before.seals());
        let flags = if seals { SEALS } else { 0 };
        let session = MinionSession::new(AesKey::generate(), SystemTime::now(), flags, None);
        let session = Arc::new(MinionSession { key_stored: Some(key_stored), ..session });
        self.write(id, &session)?;
        live.insert(id.clone(), Arc::clone(&session));
        Ok(session)
    }

    /// Notes what a request that the session proves says about sealed publications.
    pub(crate) fn note_seals(&self, id: &MinionId, session: &MinionSession, seals: bool) {
        if session.seals.swap(seals, Ordering::Relaxed) == seals {
            return;
        }
        tracing::debug!("{id} {}", if seals { "opens sealed publications" } else { "opens no sealed publications" });
        // Until the next restart what is in memory counts, and after it the minion's first request.
        if session.may_write_seals(Instant::now()) {
            self.rewrite(id, session);
        }
    }

    /// Accepts no more requests under a session, so that its minion authenticates again and gets another one.
    pub(crate) fn retire(&self, id: &MinionId, session: &MinionSession) {
        session.retired.store(true, Ordering::Relaxed);
        self.rewrite(id, session);
    }

    fn rewrite(&self, id: &MinionId, session: &MinionSession) {
        // With the lock: a session that ended meanwhile must not come back.
        let live = self.lock();
        if live.get(id).is_some_and(|live| std::ptr::eq(&**live, session))
            && let Err(e) = self.write(id, session)
        {
            tracing::warn!("the session file of {id} is not written: {e}");
        }
    }

    fn write(&self, id: &MinionId, session: &MinionSession) -> io::Result<()> {
        let sealed = self.vault.seal(id.as_str(), &session.to_bytes());
        files::write_atomic(&self.dir.join(id.as_str()), &sealed, 0o600)
    }

    /// Ends a session, because the minion's key was removed.
    pub(crate) fn forget(&self, id: &MinionId) {
        let mut live = self.lock();
        live.remove(id);
        self.remove_file(id);
    }

    /// Removes the sessions of minions that are no longer accepted, also those not used since the start.
    pub(crate) fn forget_others(&self, is_accepted: impl Fn(&MinionId) -> bool) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            // Session files are named by ids.
            let Some(id) = name.to_str().and_then(|name| MinionId::try_from(name).ok()) else { continue };
            if !is_accepted(&id) {
                self.forget(&id);
            }
        }
        Ok(())
    }

    /// Returns the minions whose session was used since the master started.
    pub(crate) fn ids(&self) -> Vec<MinionId> {
        self.lock().keys().cloned().collect()
    }

    /// Returns the number of sessions used since the master started.
    pub(crate) fn live(&self) -> usize {
        self.lock().len()
    }

    fn read(&self, id: &MinionId) -> io::Result<Option<Arc<MinionSession>>> {
        let Some((content, _)) = files::read_regular(&self.dir.join(id.as_str()), FILE_MAX)? else {
            return Ok(None);
        };
        let opened =
            self.vault.open(id.as_str(), &content).and_then(|bytes| MinionSession::from_bytes(&bytes, self.run));
        if opened.is_none() {
            // It would be read, and told of, at each job for a minion that does not come back.
            self.remove_file(id);
            return Err(io::Error::other("it was made with another key of this master, or is damaged; it is removed"));
        }
        Ok(opened.map(Arc::new))
    }

    fn remove_file(&self, id: &MinionId) {
        match std::fs::remove_file(self.dir.join(id.as_str())) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => tracing::warn!("the session file of {id} stays: {e}"),
            _ => {}
        }
    }

    fn is_fresh(&self, session: &MinionSession) -> bool {
        !session.retired.load(Ordering::Relaxed)
            && SystemTime::now().duration_since(session.made).is_ok_and(|age| age < self.lifetime(session))
    }

    fn lifetime(&self, session: &MinionSession) -> Duration {
        self.age_max - (self.age_max / EARLIER_PART).mul_f64(session.earlier)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MinionId, Arc<MinionSession>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn id(text: &str) -> MinionId {
        MinionId::try_from(text).unwrap()
    }

    fn vault() -> Vault {
        Vault::of(&brine_protocol::keys::PrivateKey::from_pem(brine_kit::keys::PEM[0]).unwrap())
    }

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn a_session_survives_a_restart_and_ends_with_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().join("sessions"), DAY, vault()).unwrap();
        assert!(sessions.for_request(&id("a")).is_none());
        assert!(!dir.path().join("sessions/a").exists(), "a request alone leaves nothing behind");
        let made = sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH, true).unwrap();
        assert_eq!(sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH, true).unwrap().key, made.key);
        let mode = std::fs::metadata(dir.path().join("sessions/a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let sessions = Sessions::open(dir.path().join("sessions"), DAY, vault()).unwrap();
        assert_eq!(sessions.for_request(&id("a")).unwrap().key, made.key);
        sessions.forget(&id("a"));
        assert!(sessions.for_request(&id("a")).is_none());
        assert_ne!(sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH, true).unwrap().key, made.key);
    }

    #[test]
    fn a_session_does_not_outlive_the_key_it_was_made_for() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().to_owned(), DAY, vault()).unwrap();
        let before = sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH, false).unwrap();
        let replaced = SystemTime::now();
        let after = sessions.for_auth(&id("a"), replaced, false).unwrap();
        assert_ne!(before.key, after.key);
        assert_eq!(sessions.for_auth(&id("a"), replaced, false).unwrap().key, after.key);
        assert_eq!(sessions.for_request(&id("a")).unwrap().key, after.key);
    }

    /// Anybody can send an `_auth` request with a key that he has seen.
    #[test]
    fn a_session_stays_where_the_clock_was_set_back() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().to_owned(), DAY, vault()).unwrap();
        let stored = SystemTime::now() + DAY;
        let made = sessions.for_auth(&id("a"), stored, false).unwrap();
        assert_eq!(sessions.for_auth(&id("a"), stored, false).unwrap().key, made.key);
        assert_ne!(sessions.for_auth(&id("a"), stored + DAY, false).unwrap().key, made.key, "of another key");
    }

    #[test]
    fn sessions_that_were_made_together_do_not_end_together() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().to_owned(), DAY, vault()).unwrap();
        let ids: Vec<MinionId> = (0..200).map(|n| id(&format!("m{n}"))).collect();
        let lifetime = |sessions: &Sessions, id| {
            let session = sessions.for_auth(id, SystemTime::UNIX_EPOCH, true).unwrap();
            sessions.lifetime(&session)
        };
        let lifetimes: Vec<Duration> = ids.iter().map(|id| lifetime(&sessions, id)).collect();
        let (shortest, longest) = (*lifetimes.iter().min().unwrap(), *lifetimes.iter().max().unwrap());
        assert!(shortest >= DAY * 7 / 8 && longest <= DAY, "{shortest:?} {longest:?}");
        assert!(longest - shortest > DAY / 16, "spread over hours: {shortest:?} {longest:?}");
        // After a restart every session has the same lifetime.
        let again = Sessions::open(dir.path().to_owned(), DAY, vault()).unwrap();
        assert!(ids.iter().zip(&lifetimes).all(|(id, before)| lifetime(&again, id) == *before));
    }

    #[test]
    fn sessions_of_minions_that_are_gone_go() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().to_owned(), DAY, vault()).unwrap();
        for name in ["a", "b"] {
            sessions.for_auth(&id(name), SystemTime::UNIX_EPOCH, false).unwrap();
        }
        // As after a restart: no session is loaded yet.
        let sessions = Sessions::open(dir.path().to_owned(), DAY, vault()).unwrap();
        sessions.forget_others(|id| id.as_str() == "a").unwrap();
        assert!(dir.path().join("a").exists() && !dir.path().join("b").exists());
    }

    /// Only the first request of a session costs an RSA operation, and a token verified with one key is not valid for
    /// another key.
    #[test]
    fn a_token_is_verified_once_for_each_key() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().to_owned(), DAY, vault()).unwrap();
        let session = sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH, false).unwrap();
        let key = |pem: &str| Arc::new(MinionKey { pem: pem.to_owned(), public: None });
        let (old, new) = (key("old"), key("new"));
        let verified = std::cell::Cell::new(0);
        let ask = |token: &[u8], key: &Arc<MinionKey>, good: bool| {
            session.is_token(token, key, || {
                verified.set(verified.get() + 1);
                good
            })
        };
        assert!(!ask(b"forged", &old, false) && !ask(b"forged", &old, false));
        assert_eq!(verified.take(), 2, "what was refused is asked again");
        assert!(ask(b"token", &old, true) && ask(b"token", &old, false) && ask(b"token", &old, false));
        assert_eq!(verified.take(), 1);
        assert!(!ask(b"forged", &old, false) && !ask(b"token", &new, false));
        assert_eq!(verified.take(), 2);
        assert!(ask(b"token", &old, false), "a refusal in between forgets nothing");
    }

    #[test]
    fn an_old_session_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().to_owned(), Duration::ZERO, vault()).unwrap();
        let made = sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH, false).unwrap();
        assert!(sessions.for_request(&id("a")).is_none());
        assert_ne!(sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH, false).unwrap().key, made.key);
    }

    #[test]
    fn only_a_proved_request_changes_whether_a_minion_gets_sealed_publications() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Sessions::open(dir.path().to_owned(), DAY, vault()).unwrap();
        let at = |sessions: &Sessions, time| sessions.divide(&[id("a")], |_| time).0.len() == 1;
        let seals = |sessions: &Sessions| at(sessions, Some(SystemTime::UNIX_EPOCH));
        let sessions = open();
        assert!(!seals(&sessions), "a minion without a session");
        let session = sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH, true).unwrap();
        assert!(seals(&sessions) && seals(&open()));
        // A key that was rejected and accepted again, or is not accepted.
        assert!(!at(&sessions, Some(SystemTime::now() + DAY)) && !at(&sessions, None));
        // What anybody can send for this id.
        sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH, false).unwrap();
        assert!(seals(&sessions));
        sessions.note_seals(&id("a"), &session, false);
        assert!(!seals(&sessions) && !seals(&open()));
        sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH, true).unwrap();
        assert!(!seals(&sessions));
        sessions.note_seals(&id("a"), &session, true);
        assert!(seals(&sessions) && !seals(&open()), "the file is not written with each change");
        // As after a minute.
        *session.seals_written.lock().unwrap() = None;
        sessions.note_seals(&id("a"), &session, false);
        *session.seals_written.lock().unwrap() = None;
        sessions.note_seals(&id("a"), &session, true);
        assert!(seals(&open()));
        // Somebody plays an old request back: the session ends, and what is known of the minion stays.
        sessions.retire(&id("a"), &session);
        for sessions in [&sessions, &open()] {
            assert!(sessions.for_request(&id("a")).is_none() && seals(sessions));
        }
        let next = open().for_auth(&id("a"), SystemTime::UNIX_EPOCH, false).unwrap();
        assert!(next.seals() && next.key != session.key);
        // Of another key with this id nothing is known.
        let later = SystemTime::now() + Duration::from_secs(5);
        assert!(!open().for_auth(&id("a"), later, false).unwrap().seals());
    }

    #[test]
    fn a_session_file_opens_only_with_the_masters_key() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().to_owned(), DAY, vault()).unwrap();
        let made = sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH, false).unwrap();
        let file = std::fs::read(dir.path().join("a")).unwrap();
        let text = made.key.text().expose().as_bytes();
        assert!(!file.windows(8).any(|eight| text.starts_with(eight)));
        // A file that was given another minion's name.
        std::fs::copy(dir.path().join("a"), dir.path().join("b")).unwrap();
        assert!(Sessions::open(dir.path().to_owned(), DAY, vault()).unwrap().for_request(&id("b")).is_none());
        assert!(dir.path().join("a").exists() && !dir.path().join("b").exists(), "what opens never is not kept");
        let other = Vault::of(&brine_protocol::keys::PrivateKey::from_pem(brine_kit::keys::PEM[1]).unwrap());
        assert!(Sessions::open(dir.path().to_owned(), DAY, other).unwrap().for_request(&id("a")).is_none());
        assert!(!dir.path().join("a").exists());
    }
}
