//! Session keys (§3.5), one for each accepted minion, in `cachedir/sessions/<id>`, so that sessions survive a restart
//! of the master.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use brine_protocol::crypticle::{AesKey, Crypticle};
use brine_protocol::ids::MinionId;
use brine_protocol::secret::Secret;
use sha2::{Digest, Sha256};

use crate::files;
use crate::keys::MinionKey;
use crate::replay::{Freshness, ReplayGuard};

/// Largest size of a session file in bytes. The master writes 76.
const FILE_MAX: u64 = 256;

/// Sessions made together, such as after a restart with an empty folder, must not expire together, because the whole
/// fleet would authenticate at once. Each session expires earlier by up to this fraction of `publish_session`.
const EARLIER_PART: u32 = 8;

/// A minion's session.
#[derive(Debug)]
pub(crate) struct MinionSession {
    pub(crate) key: AesKey,
    pub(crate) crypticle: Crypticle,
    made: SystemTime,
    /// From 0 to 1. Derived from the key, so the value is the same after a restart.
    earlier: f64,
    replay: Mutex<ReplayGuard>,
    /// The last token that was verified: its digest, and the accepted key that verified it.
    token: Mutex<Option<([u8; 32], Arc<MinionKey>)>>,
}

impl MinionSession {
    fn new(key: AesKey, made: SystemTime) -> Self {
        let hash: [u8; 32] = Sha256::digest(key.text().expose().as_bytes()).into();
        let earlier = f64::from(hash[0]) / f64::from(u8::MAX);
        Self { crypticle: Crypticle::new(&key), key, made, earlier, replay: Mutex::default(), token: Mutex::default() }
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

    /// Checks a request for replay. The request must have been decrypted with this session's key.
    pub(crate) fn freshness(&self, nonce: &str, ts: i64) -> Freshness {
        self.replay.lock().unwrap_or_else(PoisonError::into_inner).check(nonce, ts)
    }
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    dir: PathBuf,
    age_max: Duration,
    live: Mutex<HashMap<MinionId, Arc<MinionSession>>>,
}

impl Sessions {
    pub(crate) fn open(dir: PathBuf, age_max: Duration) -> io::Result<Self> {
        files::make_dir(&dir, 0o700)?;
        Ok(Self { dir, age_max, live: Mutex::default() })
    }

    /// Returns the session of a minion that has one. Never makes a session, because a request can name any id (§13.2).
    pub(crate) fn for_request(&self, id: &MinionId) -> Option<Arc<MinionSession>> {
        let mut live = self.lock();
        if let Some(session) = live.get(id) {
            if self.is_fresh(session) {
                return Some(Arc::clone(session));
            }
            live.remove(id);
            return None;
        }
        let session =
            self.read(id).inspect_err(|e| tracing::warn!("the session file of {id} is not used: {e}")).ok()??;
        live.insert(id.clone(), Arc::clone(&session));
        Some(session)
    }

    /// Returns the session of a minion that has just authenticated, and makes one if there is no valid one. A session
    /// from before the key was stored (`key_stored`) is not valid: the holder of the id's former key may know it, and
    /// could read the new minion's requests.
    pub(crate) fn for_auth(&self, id: &MinionId, key_stored: SystemTime) -> io::Result<Arc<MinionSession>> {
        let good = |session: &Arc<MinionSession>| session.made >= key_stored;
        if let Some(session) = self.for_request(id).filter(good) {
            return Ok(session);
        }
        let mut live = self.lock();
        // Another task may have made the session meanwhile.
        if let Some(session) = live.get(id).filter(|session| good(session)) {
            return Ok(Arc::clone(session));
        }
        let key = AesKey::generate();
        files::write_atomic(&self.dir.join(id.as_str()), key.text().expose().as_bytes(), 0o600)?;
        let session = Arc::new(MinionSession::new(key, SystemTime::now()));
        live.insert(id.clone(), Arc::clone(&session));
        Ok(session)
    }

    /// Ends a session, because the minion's key was removed.
    pub(crate) fn forget(&self, id: &MinionId) {
        let mut live = self.lock();
        live.remove(id);
        match std::fs::remove_file(self.dir.join(id.as_str())) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => tracing::warn!("the session file of {id} stays: {e}"),
            _ => {}
        }
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
        let Some((content, metadata)) = files::read_regular(&self.dir.join(id.as_str()), FILE_MAX)? else {
            return Ok(None);
        };
        let text = Secret::new(String::from_utf8(content).map_err(io::Error::other)?);
        let key = AesKey::from_text(text.expose().trim()).map_err(io::Error::other)?;
        let session = MinionSession::new(key, metadata.modified()?);
        Ok(self.is_fresh(&session).then(|| Arc::new(session)))
    }

    fn is_fresh(&self, session: &MinionSession) -> bool {
        SystemTime::now().duration_since(session.made).is_ok_and(|age| age < self.lifetime(session))
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

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn a_session_survives_a_restart_and_ends_with_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().join("sessions"), DAY).unwrap();
        assert!(sessions.for_request(&id("a")).is_none());
        assert!(!dir.path().join("sessions/a").exists(), "a request alone leaves nothing behind");
        let made = sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH).unwrap().key, made.key);
        let mode = std::fs::metadata(dir.path().join("sessions/a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let sessions = Sessions::open(dir.path().join("sessions"), DAY).unwrap();
        assert_eq!(sessions.for_request(&id("a")).unwrap().key, made.key);
        sessions.forget(&id("a"));
        assert!(sessions.for_request(&id("a")).is_none());
        assert_ne!(sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH).unwrap().key, made.key);
    }

    #[test]
    fn a_session_does_not_outlive_the_key_it_was_made_for() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().to_owned(), DAY).unwrap();
        let before = sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH).unwrap();
        let replaced = SystemTime::now();
        let after = sessions.for_auth(&id("a"), replaced).unwrap();
        assert_ne!(before.key, after.key);
        assert_eq!(sessions.for_auth(&id("a"), replaced).unwrap().key, after.key);
        assert_eq!(sessions.for_request(&id("a")).unwrap().key, after.key);
    }

    #[test]
    fn sessions_that_were_made_together_do_not_end_together() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().to_owned(), DAY).unwrap();
        let ids: Vec<MinionId> = (0..200).map(|n| id(&format!("m{n}"))).collect();
        let lifetime = |sessions: &Sessions, id| {
            let session = sessions.for_auth(id, SystemTime::UNIX_EPOCH).unwrap();
            sessions.lifetime(&session)
        };
        let lifetimes: Vec<Duration> = ids.iter().map(|id| lifetime(&sessions, id)).collect();
        let (shortest, longest) = (*lifetimes.iter().min().unwrap(), *lifetimes.iter().max().unwrap());
        assert!(shortest >= DAY * 7 / 8 && longest <= DAY, "{shortest:?} {longest:?}");
        assert!(longest - shortest > DAY / 16, "spread over hours: {shortest:?} {longest:?}");
        // After a restart every session has the same lifetime.
        let again = Sessions::open(dir.path().to_owned(), DAY).unwrap();
        assert!(ids.iter().zip(&lifetimes).all(|(id, before)| lifetime(&again, id) == *before));
    }

    #[test]
    fn sessions_of_minions_that_are_gone_go() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().to_owned(), DAY).unwrap();
        for name in ["a", "b"] {
            sessions.for_auth(&id(name), SystemTime::UNIX_EPOCH).unwrap();
        }
        // As after a restart: no session is loaded yet.
        let sessions = Sessions::open(dir.path().to_owned(), DAY).unwrap();
        sessions.forget_others(|id| id.as_str() == "a").unwrap();
        assert!(dir.path().join("a").exists() && !dir.path().join("b").exists());
    }

    /// Only the first request of a session costs an RSA operation, and a token verified with one key is not valid for
    /// another key.
    #[test]
    fn a_token_is_verified_once_for_each_key() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(dir.path().to_owned(), DAY).unwrap();
        let session = sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH).unwrap();
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
        let sessions = Sessions::open(dir.path().to_owned(), Duration::ZERO).unwrap();
        let made = sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH).unwrap();
        assert!(sessions.for_request(&id("a")).is_none());
        assert_ne!(sessions.for_auth(&id("a"), SystemTime::UNIX_EPOCH).unwrap().key, made.key);
    }
}
