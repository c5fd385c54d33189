//! Authentication until the master accepts (PROTOCOL §3.4).

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use brine_protocol::auth::{AuthOutcome, Credentials, MinionAuth, resume_request};
use brine_protocol::keys::KeyError;
use brine_protocol::request::SealedRequest;
use brine_protocol::value::{Value, map};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use super::channel::{Channel, SignedIn};
use super::error::SignInError;
use crate::pki::Pki;

/// What to do about a refusal that the operator may take back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// At start: end at once if only a change on this host can help.
    Start,
    /// Later: keep asking. An impostor or a mistake on the master must not end a running minion.
    Running,
}

/// An attempt to sign in that goes on by itself. It ends by itself too: its tries are counted.
pub(super) type Attempt = JoinHandle<Result<Arc<SignedIn>, SignInError>>;

/// The waits between attempts to sign in: `acceptance_wait_time`, which doubles up to `acceptance_wait_time_max` if that is set. Before them
/// comes an eighth of it and then a half, where the master bears that: what accepts a new key itself does so at once, and an operator who
/// has just started the minion looks for its key now.
struct Waits {
    whole: Duration,
    max: Duration,
    next: Duration,
    early: std::slice::Iter<'static, u32>,
}

impl Waits {
    fn new(whole: Duration, max: Duration) -> Self {
        Self { whole, max, next: whole, early: [8, 2].iter() }
    }

    /// The time from now to the next attempt.
    fn next(&mut self, soon: bool) -> Duration {
        if soon && let Some(part) = self.early.next() {
            return self.whole / *part;
        }
        let now = self.next;
        if !self.max.is_zero() {
            self.next = (now * 2).min(self.max.max(self.whole));
        }
        now
    }
}

impl Channel {
    /// Begins the first attempt to sign in, whose result the next [`Channel::sign_in_until_accepted`] takes: the master works on it while
    /// the rest of this minion starts. Not where the sign-in tells grains, which are not there yet.
    pub(crate) fn begin_sign_in(self: &Arc<Self>) {
        if !self.opts.auth.autosign_grains.is_empty() {
            return;
        }
        let this = Arc::clone(self);
        let attempt = tokio::spawn(async move { this.sign_in().await });
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(attempt);
    }

    /// Signs in, however long the operator takes to accept the key.
    ///
    /// # Errors
    /// When the minion has to end: its key was rejected, or only a change on this host can help.
    pub(crate) async fn sign_in_until_accepted(&self, patience: Patience) -> Result<Arc<SignedIn>, SignInError> {
        let opts = &self.opts.auth;
        let mut waits = Waits::new(opts.wait, opts.wait_max);
        loop {
            let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
            let attempt = match begun {
                None => self.sign_in().await,
                Some(attempt) => match attempt.await {
                    Ok(result) => result,
                    // Nobody cancels it, so it panicked: that goes on here.
                    Err(ended) => std::panic::resume_unwind(ended.into_panic()),
                },
            };
            let error = match attempt {
                Ok(live) => return Ok(live),
                Err(error) => error,
            };
            let wait = waits.next(matches!(error, SignInError::Pending { again_soon: true, .. }));
            match &error {
                SignInError::Pending { .. } => warn!("{error}. Asking again in {wait:?}"),
                SignInError::Rejected { .. } if !opts.rejected_retry => {
                    // Wait before ending, so that a service manager that restarts the minion does not storm the master.
                    error!("{error}. This minion ends in {wait:?}; with rejected_retry it would keep asking");
                    tokio::time::sleep(wait).await;
                    return Err(error);
                }
                e if e.is_permanent() && patience == Patience::Start => return Err(error),
                e => error!("cannot sign in: {e}. Trying again in {wait:?}"),
            }
            // The wait is random, so that the fleet does not ask all at once.
            tokio::time::sleep(wait.mul_f64(rand::random_range(0.75..1.25))).await;
        }
    }

    /// Signs in once: up to `auth_tries` tries until the master replies.
    ///
    /// # Errors
    /// When the master does not reply, does not accept the key, or cannot be trusted.
    pub(crate) async fn sign_in(&self) -> Result<Arc<SignedIn>, SignInError> {
        let _one_at_a_time = self.signing_in.lock().await;
        self.sign_in_locked().await
    }

    /// As [`Channel::sign_in`], unless another task signed in after the sign-in number `seen`.
    ///
    /// # Errors
    /// As [`Channel::sign_in`].
    pub(crate) async fn renew(&self, seen: u64) -> Result<Arc<SignedIn>, SignInError> {
        let _one_at_a_time = self.signing_in.lock().await;
        if let Some(live) = self.current_sign_in()
            && live.generation != seen
        {
            return Ok(live);
        }
        debug!("authenticating again");
        self.sign_in_locked().await
    }

    async fn sign_in_locked(&self) -> Result<Arc<SignedIn>, SignInError> {
        let began = Instant::now();
        if let Some(live) = self.current_sign_in().filter(|live| live.credentials.offer.is_some()) {
            match self.resume(&live).await {
                Ok(credentials) => {
                    debug!("the master goes on with the session");
                    return Ok(self.put_sign_in(credentials, began, Some(&live))?);
                }
                Err(why) => debug!("the master does not go on with the session: {why}"),
            }
        }
        let credentials = self.ask().await?;
        let had = self.current_sign_in().is_some_and(|live| live.credentials.offer.is_some());
        if had && credentials.offer.is_none() {
            warn!(
                "the master makes no publications for this minion alone any more: other minions can read its jobs. With require_sealed \
                 this minion would refuse it"
            );
        }
        if credentials.master_is_new {
            self.pki.trust_master(&credentials.master)?;
        }
        Ok(self.adopt(*credentials, began)?)
    }

    /// Asks for the present keys under the present session (PROTOCOL §3.10). One attempt: a master that does not answer is asked anew.
    async fn resume(&self, live: &SignedIn) -> Result<Credentials, String> {
        let SealedRequest { payload, nonce, .. } =
            live.session.seal_request(resume_request()).map_err(|e| e.to_string())?;
        let reply = self.new_requester().request(payload.into(), self.opts.auth.timeout).await;
        let answer = live.session.open_reply(&reply.map_err(|e| e.to_string())?, &nonce).map_err(|e| e.to_string())?;
        live.credentials.resume(&answer).map_err(|e| e.to_string())
    }

    async fn ask(&self) -> Result<Box<Credentials>, SignInError> {
        let opts = &self.opts.auth;
        let master = self.pki.master()?;
        let verify_key = opts.verify_key.as_deref().map(Pki::verify_key).transpose()?;
        let (host, id) = (|| self.endpoint.to_string(), || self.opts.id.to_string());
        let auth = MinionAuth {
            master: master.as_ref(),
            master_finger: &opts.master_finger,
            open_mode: opts.open_mode,
            verify_key: verify_key.as_ref(),
            enc_algo: opts.enc_algo,
            sig_algo: opts.sig_algo,
            autosign_grains: self.autosign_grains(),
            seals: true,
            require_sealed: opts.require_sealed,
            verdicts_say_who: self.is_brines(),
            ..MinionAuth::new(&self.opts.id, self.pki.key())
        };
        let mut requester = self.new_requester();
        let mut tries = opts.tries;
        loop {
            let attempt = auth.attempt()?;
            let reply = match requester.request(attempt.payload().to_vec().into(), opts.timeout).await {
                Ok(reply) => reply,
                Err(e) => {
                    tries -= 1;
                    if tries == 0 {
                        return Err(e.into());
                    }
                    debug!("no answer to the authentication, {tries} tries left: {e}");
                    tokio::time::sleep(PAUSE_BETWEEN_TRIES).await;
                    continue;
                }
            };
            return match attempt.verify_reply(&reply)? {
                AuthOutcome::Accepted(credentials) => Ok(credentials),
                AuthOutcome::Pending { again_soon } => {
                    Err(SignInError::Pending { master: host(), id: id(), again_soon })
                }
                AuthOutcome::Rejected => Err(SignInError::Rejected { master: host(), id: id() }),
                AuthOutcome::Full => Err(SignInError::Full { master: host() }),
            };
        }
    }

    /// The grains by which a master may accept the key (`autosign_grains`).
    fn autosign_grains(&self) -> Option<Value> {
        let names = &self.opts.auth.autosign_grains;
        if names.is_empty() {
            return None;
        }
        let grains = self.grains.now();
        let chosen = names.iter().filter_map(|name| Some((name.as_str(), crate::grains::lookup(&grains, name, ":")?)));
        Some(map(chosen.collect::<Vec<_>>()))
    }

    fn adopt(&self, credentials: Credentials, began: Instant) -> Result<Arc<SignedIn>, KeyError> {
        let live = self.put_sign_in(credentials, began, None)?;
        info!("signed in at {} as {}", self.endpoint, self.opts.id);
        Ok(live)
    }
}

/// Pause between two tries, because a starting master may close each connection at once.
const PAUSE_BETWEEN_TRIES: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_those_of_the_settings_after_two_short_ones_where_the_master_bears_them() {
        let waits = |wait: u64, wait_max: u64, soon: [bool; 6]| {
            let seconds = Duration::from_secs;
            let mut waits = Waits::new(seconds(wait), seconds(wait_max));
            soon.map(|soon| waits.next(soon).as_secs_f64())
        };
        assert_eq!(waits(8, 0, [false; 6]), [8.0; 6]);
        assert_eq!(waits(8, 20, [false; 6]), [8.0, 16.0, 20.0, 20.0, 20.0, 20.0]);
        assert_eq!(waits(8, 0, [true; 6]), [1.0, 4.0, 8.0, 8.0, 8.0, 8.0]);
        assert_eq!(waits(8, 20, [true; 6]), [1.0, 4.0, 8.0, 16.0, 20.0, 20.0]);
        assert_eq!(
            waits(8, 2, [true; 6]),
            [1.0, 4.0, 8.0, 8.0, 8.0, 8.0],
            "a bound below the setting shortens nothing"
        );
        // It has not answered at first, and then another master took its place.
        assert_eq!(waits(8, 0, [false, true, true, true, false, true]), [8.0, 1.0, 4.0, 8.0, 8.0, 8.0]);
        assert_eq!(waits(0, 0, [true; 6]), [0.0; 6]);
    }
}
