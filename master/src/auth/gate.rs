//! The decision on an authentication (§3.2), from the key folders, the settings and the request.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use brine_protocol::auth::AuthRequest;
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyState, PublicKey, clean_pem};

use super::GateOpts;
use super::autosign::{Autosign, Signed};
use crate::keys::{MinionKey, MinionKeyError, MinionKeys};

/// The decision on a key.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Accepted; with the rule's name if the key was accepted just now.
    Accept(PublicKey, Option<String>),
    /// Stored for an operator, in place of these keys, which were the oldest.
    Pending(Vec<MinionId>),
    /// Refused, because an operator or `autoreject_file` rejected it.
    Rejected,
    /// Refused, because another key is stored for this id.
    Denied,
    /// Refused, because there are `max_minions` minions.
    Full,
    /// Refused as unusable, and never stored.
    Unusable(String),
}

/// Decides on authentications. Minions with the accepted key are not delayed. All others are decided one at a time, so
/// that two requests for one id cannot both be the first.
#[derive(Debug)]
pub(crate) struct Gate {
    keys: Arc<MinionKeys>,
    rules: ArcSwap<Rules>,
    /// Held while a stranger's request is decided.
    deciding: Mutex<()>,
}

#[derive(Debug)]
struct Rules {
    opts: GateOpts,
    autosign: Autosign,
}

impl Rules {
    fn new(opts: GateOpts, keys: &MinionKeys) -> Self {
        Self { autosign: Autosign::new(&opts, keys.pki()), opts }
    }
}

impl Gate {
    pub(crate) fn new(opts: GateOpts, keys: Arc<MinionKeys>) -> Self {
        Self { rules: ArcSwap::from_pointee(Rules::new(opts, &keys)), keys, deciding: Mutex::default() }
    }

    /// Replaces the settings.
    pub(crate) fn replace(&self, opts: GateOpts) {
        self.rules.store(Rules::new(opts, &self.keys).into());
    }

    /// Returns whether this is the accepted key of the id. The peer may also be somebody who has seen the key.
    pub(crate) fn is_accepted(&self, id: &MinionId, pem: &str) -> bool {
        self.keys.accepted(id).is_some_and(|stored| stored.pem == clean_pem(pem))
    }

    /// Decides on a request from `origin`; `live` is the number of minions that have worked with this master since its
    /// start. What was accepted is on the disk.
    pub(crate) fn decide(
        &self,
        request: &AuthRequest,
        origin: Option<u64>,
        live: usize,
    ) -> Result<Verdict, MinionKeyError> {
        let verdict = self.judge(request, origin, live)?;
        if let Verdict::Accept(_, Some(_)) = verdict {
            // Outside of the lock, so that the syncs of many new minions run at the same time.
            self.keys.sync_accepted(&request.id)?;
        }
        Ok(verdict)
    }

    fn judge(&self, request: &AuthRequest, origin: Option<u64>, live: usize) -> Result<Verdict, MinionKeyError> {
        let id = &request.id;
        if id.as_str().starts_with('.') {
            // Files with a leading dot in the key folders are Salt's own, and no tool lists them.
            return Ok(Verdict::Unusable("an id that starts with a dot cannot be accepted".to_owned()));
        }
        let rules = self.rules.load();
        let accepted = self.keys.find(KeyState::Accepted, id)?;
        if rules.opts.max_minions > 0 && live > rules.opts.max_minions && accepted.is_none() {
            return Ok(Verdict::Full);
        }
        // Checked before anything is stored, so that key folders contain only keys.
        let key = match request.key() {
            Ok(key) => key,
            Err(error) => return Ok(Verdict::Unusable(error.to_string())),
        };
        let is_known =
            |stored: Option<&Arc<MinionKey>>| stored.is_some_and(|stored| same(stored, &key, &request.pub_pem));
        // The common case: it writes nothing, so it needs no lock.
        if is_known(accepted.as_ref()) && (rules.opts.open_mode || self.keys.find(KeyState::Rejected, id)?.is_none()) {
            return Ok(Verdict::Accept(key, None));
        }
        let _one_at_a_time = self.deciding.lock().unwrap_or_else(PoisonError::into_inner);
        // `salt-key` moves keys meanwhile: from waiting to rejected or accepted, from rejected to accepted. In this order a key that is
        // moved is found where it came to, and does not begin to wait anew.
        // A file without a key was torn by a crash or put there by hand; no operator can have accepted it.
        let pending = self.keys.find(KeyState::Pending, id)?.filter(|stored| stored.public.is_some());
        let rejected = self.keys.find(KeyState::Rejected, id)?;
        let accepted = self.keys.find(KeyState::Accepted, id)?;
        if rules.opts.open_mode {
            let known = is_known(accepted.as_ref());
            if !known {
                self.keys.put(KeyState::Accepted, id, &request.pub_pem)?;
            }
            return Ok(Verdict::Accept(key, (!known).then(|| "open_mode".to_owned())));
        }
        if rejected.is_some() {
            return Ok(Verdict::Rejected);
        }
        // A file without a key was torn by a crash before its sync, so that nobody was told that it is accepted.
        if let Some(stored) = accepted.filter(|stored| stored.public.is_some()) {
            if is_known(Some(&stored)) {
                return Ok(Verdict::Accept(key, None));
            }
            return self.deny(request);
        }
        if rules.autosign.rejects(id) {
            self.keys.remove(KeyState::Pending, id)?;
            self.keys.put_rejected(id, &request.pub_pem, origin, rules.opts.room)?;
            return Ok(Verdict::Rejected);
        }
        if pending.is_some() && !is_known(pending.as_ref()) {
            return self.deny(request);
        }
        match rules.autosign.signs(id, request.autosign_grains.as_ref()) {
            Signed::No => {}
            signed => {
                self.keys.put(KeyState::Accepted, id, &request.pub_pem)?;
                self.keys.remove(KeyState::Pending, id)?;
                tracing::info!("the key of {id} was accepted by {signed}");
                return Ok(Verdict::Accept(key, Some(signed.to_string())));
            }
        }
        if pending.is_some() {
            return Ok(Verdict::Pending(Vec::new()));
        }
        let gone = self.keys.put_pending(id, &request.pub_pem, origin, rules.opts.room)?;
        for id in &gone {
            // Otherwise denied keys could outnumber the known ids.
            if self.keys.find(KeyState::Accepted, id)?.is_none() {
                self.keys.remove(KeyState::Denied, id)?;
            }
        }
        Ok(Verdict::Pending(gone))
    }

    fn deny(&self, request: &AuthRequest) -> Result<Verdict, MinionKeyError> {
        // At most one denied key for each known id. An unchanged key is not written again.
        let known = self.keys.find(KeyState::Denied, &request.id)?;
        if known.is_none_or(|stored| stored.pem != clean_pem(&request.pub_pem)) {
            self.keys.put(KeyState::Denied, &request.id, &request.pub_pem)?;
        }
        Ok(Verdict::Denied)
    }
}

fn same(stored: &MinionKey, key: &PublicKey, pem: &str) -> bool {
    stored.pem == clean_pem(pem) || stored.public.as_ref() == Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Room;
    use brine_protocol::keys::{EncAlg, SignAlg};
    use brine_protocol::value::{Value, map};
    use std::path::Path;
    use std::sync::LazyLock;
    use std::time::Duration;

    static PEMS: LazyLock<[String; 2]> =
        LazyLock::new(|| [(); 2].map(|()| crate::private_ops::generate(2048).unwrap().public().clean_pem().to_owned()));

    struct Fixture {
        _dir: tempfile::TempDir,
        keys: Arc<MinionKeys>,
        gate: Gate,
    }

    fn opts() -> GateOpts {
        GateOpts {
            auto_accept: false,
            open_mode: false,
            max_minions: 0,
            autosign_file: None,
            autoreject_file: None,
            autosign_timeout: Duration::from_secs(7_200),
            autosign_grains_dir: None,
            permissive_pki_access: false,
            auth_events: true,
            auth_events_autosign_grains: Vec::new(),
            minimum_auth_version: 3,
            room: Room { all: 0, of_address: 0 },
        }
    }

    fn fixture(change: impl FnOnce(&mut GateOpts, &Path)) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let keys = Arc::new(MinionKeys::open(&dir.path().join("pki")).unwrap());
        let mut opts = opts();
        change(&mut opts, dir.path());
        Fixture { gate: Gate::new(opts, Arc::clone(&keys)), keys, _dir: dir }
    }

    impl Fixture {
        fn ask(&self, id: &str, pem: &str) -> &'static str {
            self.ask_with(id, pem, None)
        }

        fn ask_with(&self, id: &str, pem: &str, autosign_grains: Option<Value>) -> &'static str {
            self.ask_from(id, pem, autosign_grains, None)
        }

        fn ask_from(&self, id: &str, pem: &str, autosign_grains: Option<Value>, origin: Option<u64>) -> &'static str {
            let request = AuthRequest {
                seals: false,
                id: MinionId::try_from(id).unwrap(),
                nonce: "0".repeat(32),
                pub_pem: pem.to_owned(),
                enc_algo: EncAlg::OaepSha1,
                sig_algo: SignAlg::Pkcs1v15Sha1,
                token: None,
                autosign_grains,
                version: 3,
            };
            match self.gate.decide(&request, origin, 5).unwrap() {
                Verdict::Accept(..) => "accept",
                Verdict::Pending(_) => "pend",
                Verdict::Rejected => "reject",
                Verdict::Denied => "denied",
                Verdict::Full => "full",
                Verdict::Unusable(_) => "error",
            }
        }

        fn lists(&self) -> String {
            [KeyState::Accepted, KeyState::Pending, KeyState::Rejected, KeyState::Denied]
                .map(|state| {
                    let ids = self.keys.list(state).unwrap();
                    ids.iter().map(MinionId::as_str).collect::<Vec<_>>().join(",")
                })
                .join(" ")
        }
    }

    #[test]
    fn a_key_waits_is_accepted_and_others_are_denied() {
        let f = fixture(|_, _| ());
        let id = MinionId::try_from("a").unwrap();
        assert_eq!((f.ask("a", &PEMS[0]), f.ask("a", &PEMS[0])), ("pend", "pend"));
        assert_eq!(f.ask("a", &PEMS[1]), "denied", "another key while one is pending");
        assert_eq!(f.lists(), " a  a");
        f.keys.move_to(KeyState::Pending, KeyState::Accepted, &id).unwrap();
        assert_eq!((f.ask("a", &PEMS[0]), f.ask("a", &PEMS[1])), ("accept", "denied"));
        assert_eq!(
            f.ask("a", &format!("{}\r\n\n", PEMS[0].replace('\n', "\r\n"))),
            "accept",
            "line ends do not matter"
        );
        f.keys.move_to(KeyState::Accepted, KeyState::Rejected, &id).unwrap();
        assert_eq!((f.ask("a", &PEMS[0]), f.ask("a", &PEMS[1])), ("reject", "reject"));
    }

    /// Python's master does not bear it, which is why a minion asks it no sooner than after `acceptance_wait_time`.
    #[test]
    fn a_key_that_is_accepted_while_its_minion_asks_does_not_wait_again() {
        let f = fixture(|_, _| ());
        let path = |state: KeyState| f.keys.pki().join(state.folder()).join("a");
        for round in 0..1_000 {
            assert_eq!(f.ask("a", &PEMS[0]), "pend", "{round}");
            std::thread::scope(|scope| {
                scope.spawn(|| std::fs::rename(path(KeyState::Pending), path(KeyState::Accepted)).unwrap());
                while f.ask("a", &PEMS[0]) == "pend" {}
            });
            assert!(!path(KeyState::Pending).exists(), "{round}");
            std::fs::remove_file(path(KeyState::Accepted)).unwrap();
        }
    }

    #[test]
    fn what_is_no_key_is_never_stored() {
        for change in
            [|_: &mut GateOpts| (), |o: &mut GateOpts| o.auto_accept = true, |o: &mut GateOpts| o.open_mode = true]
        {
            let f = fixture(|o, _| change(o));
            for rubbish in ["", "x", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"] {
                assert_eq!(f.ask("a", rubbish), "error");
            }
            assert_eq!(f.ask(".key_cache", &PEMS[0]), "error");
            assert_eq!(f.lists(), "   ");
        }
    }

    #[test]
    fn open_mode_takes_any_key_and_auto_accept_the_first() {
        let f = fixture(|o, _| o.open_mode = true);
        assert_eq!((f.ask("a", &PEMS[0]), f.ask("a", &PEMS[1]), f.lists().as_str()), ("accept", "accept", "a   "));
        let f = fixture(|o, _| o.auto_accept = true);
        assert_eq!((f.ask("a", &PEMS[0]), f.ask("a", &PEMS[1])), ("accept", "denied"));
    }

    /// As a failure of the power leaves it, before the sync and so before anybody was told.
    #[test]
    fn a_torn_accepted_key_keeps_its_minion_out_no_longer_than_no_key() {
        for (auto_accept, expected) in [(true, "accept"), (false, "pend")] {
            let f = fixture(|o, _| o.auto_accept = auto_accept);
            f.keys.put(KeyState::Accepted, &MinionId::try_from("a").unwrap(), "").unwrap();
            assert_eq!(f.ask("a", &PEMS[0]), expected);
        }
    }

    #[test]
    fn the_fleet_is_bounded_for_newcomers_only() {
        let f = fixture(|o, _| o.max_minions = 4);
        f.keys.put(KeyState::Accepted, &MinionId::try_from("old").unwrap(), &PEMS[0]).unwrap();
        assert_eq!((f.ask("new", &PEMS[0]), f.ask("old", &PEMS[0])), ("full", "accept"));
        let f = fixture(|o, _| o.max_minions = 5);
        assert_eq!(f.ask("new", &PEMS[0]), "pend", "as in Salt, one more than max_minions gets in");
    }

    #[test]
    fn strangers_do_not_fill_the_disk_nor_keep_others_out() {
        let f = fixture(|o, dir| {
            std::fs::write(dir.join("reject"), "bad*\n").unwrap();
            o.autoreject_file = Some(dir.join("reject"));
            o.room = Room { all: 3, of_address: 2 };
        });
        let ask = |id: &str, origin: u64| f.ask_from(id, &PEMS[0], None, Some(origin));
        f.keys.put(KeyState::Accepted, &MinionId::try_from("old").unwrap(), &PEMS[0]).unwrap();
        assert_eq!((ask("a", 1), f.ask("a", &PEMS[1]), ask("b", 1), ask("new", 2)), ("pend", "denied", "pend", "pend"));
        assert_eq!(f.lists(), "old a,b,new  a");
        assert_eq!(ask("c", 1), "pend", "in place of the oldest of its address");
        assert_eq!(f.lists(), "old b,c,new  ", "which is not denied any more");
        assert_eq!(ask("d", 3), "pend", "in place of the oldest of all");
        assert_eq!(f.lists(), "old c,d,new  ");
        // Ids with a stored key keep their place.
        assert_eq!((ask("old", 1), ask("c", 1), ask("d", 1), ask("new", 1)), ("accept", "pend", "pend", "pend"));
        // Rejected keys stay, because they are an operator's decision.
        for id in ["bad1", "bad2", "bad3", "bad1"] {
            assert_eq!(ask(id, 4), "reject");
        }
        assert_eq!(f.lists(), "old c,d,new bad1,bad2 ");
    }

    /// Files that other programs add and remove count too.
    #[test]
    fn keys_that_salt_key_moves_behind_the_masters_back_make_room() {
        let f = fixture(|o, _| o.room = Room { all: 3, of_address: 0 });
        let path = |state: KeyState, id: &str| f.keys.pki().join(state.folder()).join(id);
        let modified = || path(KeyState::Pending, "").metadata().unwrap().modified().unwrap();
        // Waits until the file system's clock has advanced, because changes within one step of it are invisible.
        let moved_on = || {
            let before = modified();
            while modified() == before {
                std::fs::write(path(KeyState::Pending, ".x"), "").unwrap();
                std::fs::remove_file(path(KeyState::Pending, ".x")).unwrap();
            }
        };
        for id in ["a", "b", "c"] {
            f.ask(id, &PEMS[0]);
        }
        moved_on();
        std::fs::rename(path(KeyState::Pending, "a"), path(KeyState::Accepted, "a")).unwrap();
        std::fs::remove_file(path(KeyState::Pending, "c")).unwrap();
        f.ask("d", &PEMS[0]);
        f.ask("e", &PEMS[0]);
        assert_eq!(f.lists(), "a b,d,e  ");
        moved_on();
        std::fs::write(path(KeyState::Pending, "f"), &*PEMS[0]).unwrap();
        f.ask("g", &PEMS[0]);
        assert_eq!(f.lists(), "a e,f,g  ", "the oldest two have gone");
    }

    #[test]
    fn a_pending_file_that_is_no_key_keeps_nobody_out() {
        let f = fixture(|_, _| ());
        std::fs::write(f.keys.pki().join("minions_pre/a"), "").unwrap();
        assert_eq!((f.ask("a", &PEMS[0]), f.ask("a", &PEMS[0]), f.ask("a", &PEMS[1])), ("pend", "pend", "denied"));
    }

    #[test]
    fn lists_of_ids_sign_and_reject() {
        let f = fixture(|o, dir| {
            std::fs::write(dir.join("sign"), "# ours\nweb*\n\nh[0-9]+\\.example\n").unwrap();
            std::fs::write(dir.join("reject"), "web-old\n").unwrap();
            o.autosign_file = Some(dir.join("sign"));
            o.autoreject_file = Some(dir.join("reject"));
        });
        assert_eq!((f.ask("web1", &PEMS[0]), f.ask("h12.example", &PEMS[0])), ("accept", "accept"));
        assert_eq!((f.ask("h12.example.org", &PEMS[0]), f.ask("# ours", &PEMS[0])), ("pend", "pend"));
        assert_eq!(f.ask("web-old", &PEMS[0]), "reject");
        assert_eq!(f.lists(), "h12.example,web1 # ours,h12.example.org web-old ");
    }

    #[test]
    fn a_list_others_may_write_is_ignored() {
        use std::os::unix::fs::PermissionsExt;
        for (mode, permissive, verdict) in
            [(0o646, true, "pend"), (0o664, false, "pend"), (0o664, true, "accept"), (0o644, false, "accept")]
        {
            let f = fixture(|o, dir| {
                std::fs::write(dir.join("sign"), "*\n").unwrap();
                std::fs::set_permissions(dir.join("sign"), std::fs::Permissions::from_mode(mode)).unwrap();
                o.autosign_file = Some(dir.join("sign"));
                o.permissive_pki_access = permissive;
            });
            assert_eq!(f.ask("a", &PEMS[0]), verdict, "{mode:o} {permissive}");
        }
    }

    #[test]
    fn a_stub_signs_once_and_not_for_ever() {
        let f = fixture(|_, _| ());
        let stub = f.keys.pki().join("minions_autosign/a");
        std::fs::write(&stub, "").unwrap();
        assert_eq!(f.ask("b", &PEMS[0]), "pend");
        assert_eq!(f.ask("a", &PEMS[0]), "accept");
        assert!(!stub.exists());
        let f = fixture(|o, _| o.autosign_timeout = Duration::ZERO);
        std::fs::write(f.keys.pki().join("minions_autosign/a"), "").unwrap();
        assert_eq!(f.ask("a", &PEMS[0]), "pend");
    }

    #[test]
    fn grains_sign_by_files_named_by_the_operator() {
        let f = fixture(|o, dir| {
            std::fs::create_dir(dir.join("grains")).unwrap();
            std::fs::write(dir.join("grains/uuid"), "# known\n123\n").unwrap();
            std::fs::write(dir.join("secret"), "x\n").unwrap();
            o.autosign_grains_dir = Some(dir.join("grains"));
        });
        assert_eq!(f.ask_with("a", &PEMS[0], Some(map([("uuid", Value::from(124))]))), "pend");
        assert_eq!(f.ask_with("a", &PEMS[0], Some(map([("../secret", Value::from("x"))]))), "pend");
        assert_eq!(f.ask_with("a", &PEMS[0], Some(map([("uuid", Value::from(123))]))), "accept");
    }
}
