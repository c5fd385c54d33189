//! Encrypted requests (§6) of accepted minions. Session key and token prove the sender.

use brine_protocol::auth::RESUME;
use brine_protocol::envelope::AesEnvelope;
use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::msgpack::Limits;
use brine_protocol::request::{
    AEAD, AEAD_VERSION, Request, RequestPolicy, RequestRefusal, clear_reply, open_request_with, seal_content_reply,
    seal_reply,
};
use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_zmtp::Reply;

use super::Handlers;
use super::shares::Entry;
use crate::fault::Fault;
use crate::fileserver::{FileRequest, FileServer};
use crate::key_removal::KeyRemoval;
use crate::keys::{MinionKey, MinionKeys};
use crate::lanes::{Place, Turn};
use crate::live_settings::LiveSettings;
use crate::mine::{Mine, MineRequest};
use crate::private_ops::is_token;
use crate::quotas::QuotaKind;
use crate::refusals::{Refusals, Stranger, Who};
use crate::replay::Freshness;

/// Bound on the values in one request; each takes 40 bytes of memory.
const ITEMS_MAX: usize = 1 << 20;

/// The master's options in the answer to a request with `env_only`, besides the environments.
const ENV_ONLY: [&str; 3] = ["top_file_merging_strategy", "env_order", "default_top"];

/// All encrypted commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Return,
    MinionEvent,
    Pillar,
    MasterOpts,
    MasterTops,
    Mine,
    MineGet,
    MineDelete,
    MineFlush,
    RegisterResources,
    Files(FileRequest),
    FileRecv,
    MinionPub,
    PubRet,
    MinionRunner,
    /// `minion_publish`, which works in no version of Salt (§6.1), and `_syndic_return`, because there are no syndics.
    NotAllowed,
    RevokeAuth,
    VerifyMinion,
    /// Brine's own (§3.10).
    Resume,
}

/// The names of the commands, except those of the file server.
const COMMANDS: [(&str, Command); 19] = [
    ("_return", Command::Return),
    ("_minion_event", Command::MinionEvent),
    ("_pillar", Command::Pillar),
    ("_master_opts", Command::MasterOpts),
    ("_master_tops", Command::MasterTops),
    ("_mine", Command::Mine),
    ("_mine_get", Command::MineGet),
    ("_mine_delete", Command::MineDelete),
    ("_mine_flush", Command::MineFlush),
    ("_register_resources", Command::RegisterResources),
    ("_file_recv", Command::FileRecv),
    ("minion_pub", Command::MinionPub),
    ("pub_ret", Command::PubRet),
    ("minion_runner", Command::MinionRunner),
    ("minion_publish", Command::NotAllowed),
    ("_syndic_return", Command::NotAllowed),
    ("revoke_auth", Command::RevokeAuth),
    ("verify_minion", Command::VerifyMinion),
    (RESUME, Command::Resume),
];

impl Command {
    fn parse(name: &str) -> Option<Self> {
        let known = COMMANDS.iter().find(|(known, _)| *known == name).map(|(_, command)| *command);
        known.or_else(|| FileRequest::parse(name).map(Self::Files))
    }

    /// Returns the kind that a command is throttled as, and the answer if it is refused. Returns, events and grains are
    /// throttled in their handlers.
    fn makes_keep(self) -> Option<(QuotaKind, Value)> {
        match self {
            Self::FileRecv => Some((QuotaKind::File, Value::from(false))),
            Self::Mine | Self::MineDelete | Self::MineFlush => Some((QuotaKind::Other, Value::from(false))),
            // The job store keeps their jobs beside the returns.
            Self::MinionPub | Self::MinionRunner => Some((QuotaKind::Unasked, empty_map())),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Files(FileRequest::Serve) => "_serve_file",
            Self::Files(FileRequest::Hash | FileRequest::HashAndStat) => "_file_hash",
            Self::Files(_) => "lists of files",
            Self::NotAllowed => "not allowed",
            other => COMMANDS.iter().find(|(_, command)| *command == other).map_or("", |(name, _)| name),
        }
    }
}

pub(super) async fn answer(
    handlers: &Handlers,
    envelope: &AesEnvelope,
    reply: &Reply,
    place: &mut Place,
    turn: &mut Turn,
) -> Result<Vec<u8>, Fault> {
    let refused = |error: RequestRefusal| {
        let peer = super::sender(reply);
        let why = format!("an encrypted request from {peer} was refused: {error}");
        let data = map([("error", error.to_string()), ("peer", peer)]);
        handlers.refusals.tell(Who::Stranger(Stranger::Request), &why, "brine/refused/request", data);
        Ok(clear_reply(&error.reply()))
    };
    // Looks up the accepted key first: a minion without one has no session.
    let Some((key, session)) =
        envelope.id.as_ref().and_then(|id| Some((handlers.keys.accepted(id)?, handlers.sessions.for_request(id)?)))
    else {
        return refused(RequestRefusal::UnknownMinion);
    };
    let policy = RequestPolicy {
        minimum_version: handlers.opts.minimum_version,
        ttl: handlers.opts.ttl,
        limits: Limits { max_bytes: handlers.opts.bytes_max, max_items: ITEMS_MAX, ..Limits::REQUEST },
        ..RequestPolicy::now()
    };
    let by_key = |token: &[u8]| key.public.as_ref().is_some_and(|public| is_token(public, token));
    let known = |_: &MinionId, token: &[u8]| session.is_token(token, &key, || by_key(token));
    let request = match open_request_with(envelope, &session.crypticle, &policy, known) {
        Ok(request) => request,
        Err(error) => return refused(error),
    };
    // Minions of 3006, 3007 and 3008 send both with every command (§4.1). Without one of them a replay cannot be
    // detected.
    let (Some(nonce), Some(ts)) = (&request.nonce, request.load.get_i64("ts")) else {
        let refusal =
            replayed(&handlers.refusals, &request.id, reply, "it has no nonce, or no whole number as its ts, to tell");
        // Salt's text.
        let salts = map([("error", "Nonce not included in request")]);
        let is_pillar = request.nonce.is_none() && request.cmd == "_pillar";
        return Ok(if is_pillar { clear_reply(&salts) } else { refusal });
    };
    let command = Command::parse(&request.cmd);
    let earlier = session.is_of_earlier_run(request.run.as_deref());
    let fresh = match earlier {
        false => session.freshness(nonce, ts),
        true if command == Some(Command::Resume) => session.freshness_of_question(nonce, ts),
        true => {
            if request.run.is_none() {
                // An implementation that knows no runs authenticates and gets another session.
                handlers.sessions.retire(&request.id, &session);
            }
            let refusal = replayed(&handlers.refusals, &request.id, reply, "it is from before this master's start");
            return Ok(refusal);
        }
    };
    match fresh {
        Freshness::New => {}
        Freshness::Replayed => return Ok(replayed(&handlers.refusals, &request.id, reply, "it was seen before")),
        Freshness::TooOld => {
            // If the cause is the minion's clock and not a replay, the minion now authenticates again and gets a new
            // session.
            if !earlier {
                handlers.sessions.retire(&request.id, &session);
            }
            return Ok(replayed(&handlers.refusals, &request.id, reply, "it is much older than the minion's last one"));
        }
    }
    // A question for the run may be a recording: it proves nothing, and only the minion can read the answer.
    if !earlier {
        reply.authenticated(handlers.peer_keys.minion(&request.id));
        handlers.sessions.note_seals(&request.id, &session, request.seals);
    }
    let _within = match handlers.shares.enter(&request.id) {
        Entry::Now(within) => within,
        Entry::Later(given) => {
            // Meanwhile it is in nobody's way.
            turn.give_back();
            place.give_back();
            let within = given.await.map_err(|_| Fault::new("the master ends"))?;
            *place = handlers.lanes.place().await;
            within
        }
        Entry::Full => {
            let id = &request.id;
            let said = format!("a request of {id} was refused: it has too many under way");
            let data = map([("id", Value::from(id.as_str())), ("error", "too many requests under way".into())]);
            handlers.refusals.tell(Who::Minion(id), &said, format!("brine/refused/busy/{id}"), data);
            return Ok(clear_reply(&Value::from("Some exception handling minion payload")));
        }
    };
    let nonce = nonce.clone();
    let value = match command {
        Some(Command::Resume) => match handlers.auths.auth.resume(&request.id, &key, &session) {
            Some(keys) => keys,
            None => return Ok(clear_reply(&Value::from("bad load"))),
        },
        Some(Command::Pillar) => return handlers.pillars.answer(request, &key, &session.crypticle, turn).await,
        Some(command) => {
            // These handlers wait for other minions, or for their own turns.
            if matches!(command, Command::MinionRunner | Command::MineGet | Command::PubRet | Command::Files(_)) {
                turn.give_back();
            }
            let under_aead = command == Command::Files(FileRequest::Serve)
                && request.load.get_u64(AEAD) == Some(AEAD_VERSION.into());
            let value = run(handlers, command, request, &key, envelope.load.len() as u64, turn).await?;
            if under_aead {
                return seal_content_reply(&session.key, value, envelope)
                    .ok_or_else(|| Fault::new("a request without id or MAC was opened"));
            }
            value
        }
        None => empty_map(),
    };
    Ok(seal_reply(&session.crypticle, &value, Some(&nonce)))
}

/// Refuses a request that may be a replay.
fn replayed(refusals: &Refusals, id: &MinionId, reply: &Reply, why: &str) -> Vec<u8> {
    let peer = super::sender(reply);
    let said = format!("a request of {id} from {peer} was refused as a replay: {why}");
    let data = map([("id", id.as_str()), ("error", why), ("peer", &peer)]);
    refusals.tell(Who::Stranger(Stranger::Replay), &said, format!("brine/refused/replay/{id}"), data);
    clear_reply(&Value::from("bad load"))
}

async fn run(
    handlers: &Handlers,
    command: Command,
    request: Request,
    key: &MinionKey,
    bytes: u64,
    turn: &mut Turn,
) -> Result<Value, Fault> {
    let Request { id, load, .. } = &request;
    if let Some((kind, refused)) = command.makes_keep()
        && handlers.throttle.admit(id, command.name(), kind, (1, bytes), turn).await.is_err()
    {
        return Ok(refused);
    }
    let _timed = handlers.timings.during(command.name());
    let Handlers { keys, mine, refusals, .. } = handlers;
    Ok(match command {
        Command::Return => handlers.returns.accept_request(request, key, bytes, turn).await?,
        Command::MinionEvent => handlers.events.accept(id, load, bytes, turn).await,
        Command::MasterOpts => master_opts(&handlers.live.load(), load),
        Command::RegisterResources => Value::from(true),
        Command::Files(what) => handlers.files.answer_to(&request.id, what, request.load).await,
        Command::FileRecv => files_receive(&handlers.files, refusals, id, load).await,
        Command::RevokeAuth if !handlers.opts.may_revoke => load.clone(),
        Command::RevokeAuth => revoke(keys, &handlers.key_removal, id)?,
        Command::Mine => change_mine(mine, refusals, id, MineRequest::Put, load).await,
        Command::MineDelete => change_mine(mine, refusals, id, MineRequest::Delete, load).await,
        Command::MineFlush => change_mine(mine, refusals, id, MineRequest::Flush, load).await,
        Command::MineGet => {
            let accepted = keys.list(KeyState::Accepted)?;
            mine.get(id, load, accepted).await.unwrap_or_else(|why| {
                refuse_mine(refusals, id, &why);
                empty_map()
            })
        }
        Command::MinionPub => handlers.peer.publish(id, load).await?,
        Command::PubRet => handlers.peer.returns(id, load).await?,
        Command::MinionRunner => handlers.peer.runner(id, load).await?,
        // Salt's own answer: the command never worked.
        Command::VerifyMinion => Value::from(""),
        Command::MasterTops | Command::NotAllowed | Command::Pillar | Command::Resume => empty_map(),
    })
}

/// Stores a piece of a pushed file. Returns whether it was stored.
async fn files_receive(files: &FileServer, refusals: &Refusals, id: &MinionId, load: &Value) -> Value {
    let done = files.receive(id.clone(), load.clone()).await;
    if let Err(why) = &done {
        let said = format!("a file pushed by {id} was refused: {why}");
        let data = map([("id", id.as_str()), ("error", why)]);
        refusals.tell(Who::Minion(id), &said, format!("brine/refused/file/{id}"), data);
    }
    Value::from(done.is_ok())
}

/// Changes the mine data of a minion. Returns whether it was changed.
async fn change_mine(mine: &Mine, refusals: &Refusals, id: &MinionId, what: MineRequest, load: &Value) -> Value {
    let done = mine.change(id, what, load).await;
    if let Err(why) = &done {
        refuse_mine(refusals, id, why);
    }
    Value::from(done.is_ok())
}

fn refuse_mine(refusals: &Refusals, id: &MinionId, why: &str) {
    let said = format!("a request of {id} to the mine was refused: {why}");
    let data = map([("id", id.as_str()), ("error", why)]);
    refusals.tell(Who::Minion(id), &said, format!("brine/refused/mine/{id}"), data);
}

fn master_opts(live: &LiveSettings, load: &Value) -> Value {
    let env_only = load.get("env_only").is_some_and(ValueExt::truthy);
    // Only the names of the environments, without paths of this host.
    let envs = live.file_roots.iter().map(|(env, _)| (Value::from(env.as_str()), Value::Array(Vec::new()))).collect();
    let mut told = vec![(Value::from("file_roots"), Value::Map(envs))];
    for (key, value) in live.told_to_minions.entries().unwrap_or_default() {
        if !env_only || key.text().is_some_and(|key| ENV_ONLY.contains(&key)) {
            told.push((key.clone(), value.clone()));
        }
    }
    Value::Map(told)
}

/// Removes the sender's own key. A minion cannot remove another key.
fn revoke(keys: &MinionKeys, removal: &KeyRemoval, id: &MinionId) -> Result<Value, Fault> {
    keys.remove(KeyState::Accepted, id)?;
    removal.removed(id);
    tracing::warn!("{id} gave up its key");
    Ok(Value::from(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_is_called() {
        for name in [
            "",
            "_ext_nodes",
            "__class__",
            "_return ",
            "run_func",
            "_handle_minion_event",
            "publish",
            "_auth",
            "_file_",
        ] {
            assert_eq!(Command::parse(name), None, "{name}");
        }
    }
}
