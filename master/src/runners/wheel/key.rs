//! `key.*`: the functions of `salt-key`, for programs.

use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyListing, KeyState, PrivateKey, PublicKey, clean_pem};
use brine_protocol::target::fnmatch;
use brine_protocol::value::{Value, ValueExt, empty_map, map};

use crate::keys::MinionKeyError;
use crate::runners::function::{Failure, Function, Outcome, Run, functions};
use brine_fileserver::HashType;

/// Bound on the globs and ids in one request.
const WORDS_MAX: usize = 65_536;
/// Largest size in bits of a generated key, because larger ones take minutes.
const BITS_MAX: u64 = 8_192;

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Accepts pending keys by a glob of ids.
    "key.accept(match, include_rejected=False, include_denied=False)"
        => |run| async move { change(&run, KeyState::Accepted, &globs(&run)?) },
    /// Accepts keys by a dict of states and ids: {minions_pre: [a, b]}.
    "key.accept_dict(match, include_rejected=False, include_denied=False)"
        => |run| async move { change(&run, KeyState::Accepted, &listed(&run)) },
    /// Deletes keys by a glob of ids, in whatever state.
    "key.delete(match)" => |run| async move { delete(&run, &globs(&run)?) },
    /// Deletes keys by a dict of states and ids: {minions: [a], minions_pre: [b]}.
    "key.delete_dict(match)" => |run| async move { delete(&run, &listed(&run)) },
    /// Returns the fingerprints of keys by a glob of ids, as the minions show them.
    "key.finger(match, hash_type=None)" => |run| async move { finger(&run) },
    /// Returns the fingerprint of the master's key, as minions show it.
    "key.finger_master(hash_type=None)" => |run| async move { finger_master(&run) },
    /// Makes a key pair and returns it; nothing of it is kept.
    "key.gen(id_=None, keysize=2048)" => |run| async move { Ok(pair(&run).await?.value()) },
    /// Makes a key pair for a minion, accepts it, and returns it; of its private half nothing is kept.
    "key.gen_accept(id_, keysize=2048, force=False)" => gen_accept,
    /// Lists ids by a glob, each under its state.
    "key.glob_match(match)" => |run| async move { Ok(shown(&matching(&run, &globs(&run)?)?)) },
    /// Returns public keys by a glob of ids; Salt's name for it is key.print.
    "key.key_str(match)" => |run| async move { key_str(&run) },
    /// Lists the ids in one state: accepted, pre, rejected, denied; or all.
    "key.list(match)" => |run| async move { list(&run) },
    /// Lists all ids by their state, and the master's own keys.
    "key.list_all()" => |run| async move { list_all(&run) },
    /// Returns the master's public key.
    "key.master_key_str()" => |run| async move { Ok(map([("local", map([("master.pub", master_pem(&run))]))])) },
    /// Salt's earlier name of key.glob_match.
    "key.name_match(match)" => |run| async move { Ok(shown(&matching(&run, &globs(&run)?)?)) },
    /// Returns public keys by a glob of ids.
    "key.print(match)" => |run| async move { key_str(&run) },
    /// Rejects pending keys by a glob of ids.
    "key.reject(match, include_accepted=False, include_denied=False)"
        => |run| async move { change(&run, KeyState::Rejected, &globs(&run)?) },
    /// Rejects keys by a dict of states and ids: {minions_pre: [a, b]}.
    "key.reject_dict(match, include_accepted=False, include_denied=False)"
        => |run| async move { change(&run, KeyState::Rejected, &listed(&run)) },
};

/// A selection of keys.
enum Meant {
    Globs(Vec<String>),
    Ids(KeyListing),
}

/// Reads a glob, several comma-separated ones, or a list of them.
fn globs(run: &Run) -> Result<Meant, Failure> {
    let given = run.get("match").ok_or_else(|| run.wrong("match must be a glob of minion ids"))?;
    let globs: Vec<String> = match given.list() {
        Some(globs) => globs.iter().map(ValueExt::python_str).collect(),
        None => given.python_str().split(',').map(str::to_owned).collect(),
    };
    if globs.iter().all(String::is_empty) || globs.len() > WORDS_MAX {
        return Err(run.wrong("match must be a glob of minion ids"));
    }
    Ok(Meant::Globs(globs))
}

/// Reads ids by state. Invalid ids and states select no keys.
fn listed(run: &Run) -> Meant {
    let state = |name: &str| KeyState::ALL.into_iter().find(|state| state.folder() == name);
    let ids = |value: &Value| -> Vec<MinionId> {
        let ids = value.list().unwrap_or_default().iter().take(WORDS_MAX);
        ids.filter_map(|id| MinionId::try_from(id.python_str().as_str()).ok()).collect()
    };
    let entries = run.get("match").and_then(ValueExt::entries).unwrap_or_default();
    Meant::Ids(entries.iter().filter_map(|(name, value)| Some((state(name.text()?)?, ids(value)))).collect())
}

/// Returns the existing keys of a selection, by state.
fn matching(run: &Run, meant: &Meant) -> Result<KeyListing, Failure> {
    let mut found = Vec::new();
    for state in KeyState::ALL {
        let ids = run.parts.keys.list(state).map_err(text)?;
        let is_meant = |id: &&MinionId| match meant {
            Meant::Globs(globs) => globs.iter().any(|glob| fnmatch(glob, id.as_str())),
            Meant::Ids(listed) => listed.iter().any(|(of, ids)| *of == state && ids.contains(id)),
        };
        let ids: Vec<MinionId> = ids.iter().filter(is_meant).cloned().collect();
        if !ids.is_empty() {
            found.push((state, ids));
        }
    }
    Ok(found)
}

fn shown(found: &KeyListing) -> Value {
    map(found.iter().map(|(state, ids)| (state.folder(), ids_of(ids))))
}

fn ids_of(ids: &[MinionId]) -> Value {
    Value::Array(ids.iter().map(Value::from).collect())
}

fn list_all(run: &Run) -> Outcome {
    let mut shown = empty_map();
    for state in KeyState::ALL {
        shown.insert(state.folder(), ids_of(&run.parts.keys.list(state).map_err(text)?));
    }
    shown.insert("local", Value::Array(vec!["master.pem".into(), "master.pub".into()]));
    Ok(shown)
}

fn list(run: &Run) -> Outcome {
    match KeyState::listed_by(&run.text("match")) {
        Some(&[state]) => Ok(map([(state.folder(), ids_of(&run.parts.keys.list(state).map_err(text)?))])),
        Some(_) => list_all(run),
        None => Ok(empty_map()),
    }
}

/// Returns the current states of the selected keys, which is Salt's result of a change.
fn now(run: &Run, meant: &Meant) -> Outcome {
    let anywhere = match meant {
        Meant::Globs(globs) => Meant::Globs(globs.clone()),
        Meant::Ids(listed) => {
            let all: Vec<MinionId> = listed.iter().flat_map(|(_, ids)| ids).cloned().collect();
            Meant::Ids(KeyState::ALL.into_iter().map(|state| (state, all.clone())).collect())
        }
    };
    Ok(shown(&matching(run, &anywhere)?))
}

/// Moves keys. As in Salt, only pending ones, unless the call includes other states.
fn change(run: &Run, to: KeyState, meant: &Meant) -> Outcome {
    for (from, ids) in matching(run, meant)? {
        let wanted = from != to
            && match from {
                KeyState::Pending => true,
                KeyState::Accepted => run.is("include_accepted"),
                KeyState::Rejected => run.is("include_rejected"),
                KeyState::Denied => run.is("include_denied"),
            };
        for id in ids.into_iter().filter(|_| wanted) {
            let key = run.parts.keys.find(from, &id).ok().flatten();
            if run.parts.keys.move_to(from, to, &id).map_err(text)? {
                if from == KeyState::Accepted {
                    run.parts.key_removal.revoked(&id);
                }
                let mut data =
                    map([("result", Value::from(true)), ("act", Value::from(to.act())), ("id", Value::from(&id))]);
                if let Some(key) = key {
                    data.insert("pub", key.pem.as_str());
                }
                run.parts.bus.fire("salt/key", data);
            }
        }
    }
    now(run, meant)
}

fn delete(run: &Run, meant: &Meant) -> Outcome {
    for (state, ids) in matching(run, meant)? {
        for id in ids {
            if run.parts.keys.remove(state, &id).map_err(text)? {
                run.parts.key_removal.removed(&id);
            }
        }
    }
    now(run, meant)
}

/// Returns `{state: {id: …}}` for the selected keys.
fn each(run: &Run, of: impl Fn(&str) -> String) -> Result<Value, Failure> {
    let mut shown = empty_map();
    for (state, ids) in matching(run, &globs(run)?)? {
        let mut keys = empty_map();
        for id in &ids {
            // A key that was removed since the listing is left out.
            if let Some(key) = run.parts.keys.find(state, id).map_err(text)? {
                keys.insert(id.as_str(), of(&key.pem));
            }
        }
        shown.insert(state.folder(), keys);
    }
    Ok(shown)
}

fn key_str(run: &Run) -> Outcome {
    each(run, str::to_owned)
}

fn hash_type(run: &Run) -> Result<HashType, Failure> {
    match run.find_text("hash_type") {
        None => Ok(run.parts.opts.hash_type),
        Some(name) => HashType::parse(&name.to_lowercase())
            .ok_or_else(|| run.wrong("hash_type must be sha224, sha256, sha384 or sha512")),
    }
}

fn finger(run: &Run) -> Outcome {
    let kind = hash_type(run)?;
    let mut shown = each(run, |pem| fingerprint(pem, kind))?;
    // As in Salt, the master's public key matches too. Nothing of its private key is shown.
    let Meant::Globs(globs) = globs(run)? else { return Ok(shown) };
    if globs.iter().any(|glob| fnmatch(glob, "master.pub")) {
        shown.insert("local", map([("master.pub", fingerprint(&master_pem(run), kind))]));
    }
    Ok(shown)
}

fn finger_master(run: &Run) -> Outcome {
    let finger = fingerprint(&master_pem(run), hash_type(run)?);
    Ok(map([("local", map([("master.pub", finger)]))]))
}

/// Computes a fingerprint like `salt-call --local key.finger`: over the text between the first and the last line.
fn fingerprint(pem: &str, kind: HashType) -> String {
    let pem = clean_pem(pem);
    let lines: Vec<&str> = pem.lines().collect();
    let body = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
    let digest = kind.digest(body.iter().flat_map(|line| [*line, "\n"]).collect::<String>().as_bytes());
    let pairs: Vec<&str> = (0..digest.len()).step_by(2).filter_map(|at| digest.get(at..at + 2)).collect();
    pairs.join(":")
}

fn master_pem(run: &Run) -> String {
    run.parts.private.public().clean_pem().to_owned()
}

/// A new key pair. Not `Debug`, so that the private key is never printed.
struct Pair {
    key: PrivateKey,
    public: PublicKey,
}

impl Pair {
    fn value(&self) -> Value {
        map([("priv", self.key.to_pem().expose().as_str()), ("pub", self.public.clean_pem())])
    }
}

async fn pair(run: &Run) -> Result<Pair, Failure> {
    let bits = run.get("keysize").and_then(|bits| bits.as_u64().or_else(|| bits.text()?.parse().ok()));
    let bits = bits.filter(|bits| *bits <= BITS_MAX);
    let bits = bits.ok_or_else(|| run.wrong("keysize must be a number of bits up to 8192"))?;
    // As in Salt, the minimum is 2048.
    let bits = usize::try_from(bits.max(2_048)).unwrap_or(2_048);
    let made = tokio::task::spawn_blocking(move || crate::private_ops::generate(bits)).await;
    let key = made.map_err(|_| "no key could be made".to_owned())?.map_err(|error| error.to_string())?;
    let public = key.public().clone();
    Ok(Pair { key, public })
}

async fn gen_accept(run: Run) -> Outcome {
    let id = run.text("id_");
    let id = MinionId::try_from(id.as_str()).map_err(|error| run.wrong(&error.to_string()))?;
    let known = |state| run.parts.keys.find(state, &id).map(|key| key.is_some()).map_err(text);
    let mut taken = Vec::new();
    for state in [KeyState::Accepted, KeyState::Pending, KeyState::Rejected] {
        if known(state)? {
            taken.push(state);
        }
    }
    if !taken.is_empty() && !run.is("force") {
        return Ok(empty_map());
    }
    let pair = pair(&run).await?;
    for state in taken {
        if run.parts.keys.remove(state, &id).map_err(text)? && state == KeyState::Accepted {
            run.parts.key_removal.removed(&id);
        }
    }
    run.parts.keys.put(KeyState::Accepted, &id, pair.public.clean_pem()).map_err(text)?;
    run.parts.keys.sync_accepted(&id).map_err(text)?;
    Ok(pair.value())
}

#[expect(clippy::needless_pass_by_value, reason = "the form map_err takes")]
fn text(error: MinionKeyError) -> Failure {
    error.to_string().into()
}

/// Returns a result without its private key, for events. Only the caller gets the key.
pub(in crate::runners) fn without_private_key(result: &Value) -> Value {
    let mut told = result.clone();
    if told.has("priv") && told.has("pub") {
        told.remove("priv");
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_what_minions_show() {
        let pem = "-----BEGIN PUBLIC KEY-----\nAAAA\nBBBB\n-----END PUBLIC KEY-----\n";
        assert_eq!(fingerprint(pem, HashType::Sha256), brine_protocol::keys::fingerprint(pem));
        assert_eq!(fingerprint(pem, HashType::Sha512).split(':').count(), 64);
        for none in ["", "x", "x\ny"] {
            assert_eq!(fingerprint(none, HashType::Sha256), brine_protocol::keys::fingerprint(none), "{none:?}");
        }
    }

    #[test]
    fn an_event_has_no_private_key() {
        let made = map([("priv", "secret"), ("pub", "known")]);
        assert_eq!(without_private_key(&made), map([("pub", "known")]));
        let other = map([("priv", "x")]);
        assert_eq!(without_private_key(&other), other);
    }
}
