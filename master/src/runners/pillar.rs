//! `pillar.*`: compiles and shows pillars on the master.

use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::target::{Keys, read_entries};
use brine_protocol::value::{Value, ValueExt as _, empty_map, list, map};

use super::function::{Failure, Function, Outcome, Run, functions};
use crate::pillar::{Caching, Subject};

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Forgets kept pillars of minions, of one environment with `pillarenv`. Returns false if the master keeps none
    /// (`pillar_cache`).
    "pillar.clear_pillar_cache(minion='*', **kwargs)" => clear_pillar_cache,
    /// Compiles the pillar of a minion from the grains that the master knows; without one, of a minion that is named *.
    /// `saltenv` and `pillarenv` set environments, other keywords are grains.
    "pillar.show_pillar(minion='*', **kwargs)" => show_pillar,
    /// Returns the kept pillars of minions, of one environment with `pillarenv`, or false if the master keeps none.
    "pillar.show_pillar_cache(minion='*', **kwargs)" => show_pillar_cache,
    /// Returns the top file of the pillar as it counts for a minion; without one, for any whose grains are known.
    "pillar.show_top(minion=None, saltenv='base')" => show_top,
};

async fn show_pillar(run: Run) -> Outcome {
    let minion = run.text("minion");
    let id = MinionId::try_from(minion.as_str()).map_err(|_| run.wrong("minion must be the id of a minion"))?;
    let mut grains = known_grains(&run, &id).await.unwrap_or_else(|| map([("fqdn", minion.as_str())]));
    let (mut saltenv, mut pillarenv) = (Some("base".to_owned()), None);
    for (name, value) in keywords(&run) {
        match name.as_str() {
            "saltenv" => saltenv = text(&value),
            "pillarenv" => pillarenv = text(&value),
            _ => grains.insert(name.as_str(), value),
        }
    }
    let subject = Subject { id, grains, saltenv, pillarenv, given: empty_map() };
    Ok(run.parts.pillars.compile(subject, Caching::Off).await.pillar)
}

async fn show_top(run: Run) -> Outcome {
    let named = run.find_text("minion");
    let id = match named.as_deref() {
        Some(name) => MinionId::try_from(name).map_err(|_| run.wrong("minion must be the id of a minion"))?,
        None => any_minion(&run)?,
    };
    let grains = known_grains(&run, &id).await.unwrap_or_else(empty_map);
    let saltenv = Some(run.text("saltenv"));
    match run.parts.pillars.show_top(Subject { id, grains, saltenv, pillarenv: None, given: empty_map() }).await {
        Ok(top) => Ok(top),
        Err(errors) => Ok(list(errors)),
    }
}

async fn clear_pillar_cache(run: Run) -> Outcome {
    if !run.parts.pillars.keeps() {
        // Salt clears the minions' data as well, where it keeps any.
        return Ok(Value::from(run.parts.opts.has_data));
    }
    let pillarenv = keyword(&run, "pillarenv");
    for id in meant(&run).await? {
        run.parts.pillars.forget(id, pillarenv.clone()).await;
    }
    Ok(Value::from(true))
}

async fn show_pillar_cache(run: Run) -> Outcome {
    if !run.parts.pillars.keeps() {
        return Ok(Value::from(false));
    }
    let pillarenv = keyword(&run, "pillarenv");
    let mut shown = empty_map();
    for id in meant(&run).await? {
        if let Some(pillar) = run.parts.pillars.kept(id.clone(), pillarenv.clone()).await {
            shown.insert(id.as_str(), pillar);
        }
    }
    Ok(shown)
}

/// The accepted minions that a glob matches.
async fn meant(run: &Run) -> Result<Vec<MinionId>, Failure> {
    let glob = Value::from(run.text("minion"));
    let found = run.parts.dispatcher.targets.find("glob", &glob).await;
    found.map_err(|fault| Failure::from(fault.to_string()))
}

/// Any minion whose grains are known, or else any at all.
fn any_minion(run: &Run) -> Result<MinionId, Failure> {
    let ids = run.parts.keys.list(KeyState::Accepted).map_err(|fault| Failure::from(fault.to_string()))?;
    let has_grains = |id: &&MinionId| run.parts.opts.cachedir.join("grains").join(format!("{id}.p")).exists();
    let any = MinionId::try_from("*").map_err(|_| Failure::from("there is no minion"))?;
    Ok(ids.iter().find(has_grains).or(ids.first()).cloned().unwrap_or(any))
}

async fn known_grains(run: &Run, id: &MinionId) -> Option<Value> {
    let path = run.parts.opts.cachedir.join("grains").join(format!("{id}.p"));
    tokio::task::spawn_blocking(move || read_entries(&path, &Keys::All)).await.ok().flatten()
}

fn keywords(run: &Run) -> impl Iterator<Item = (String, Value)> {
    run.given.kwargs.iter().filter(|(name, _)| !name.starts_with("__")).cloned()
}

fn keyword(run: &Run, name: &str) -> Option<String> {
    keywords(run).find(|(key, _)| key == name).and_then(|(_, value)| text(&value))
}

fn text(value: &Value) -> Option<String> {
    (!value.is_nil()).then(|| value.python_str())
}
