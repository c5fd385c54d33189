//! Grains that modules find: an installed module that exports a function `grains` is called whenever grains are collected;
//! the standard modules have none, so that no start waits for them. It has the grants of any of its functions, is bounded
//! in time, and what it returns in size, depth and names. A module that fails is left out, and the log and
//! `sandbox.check` say why.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{JobContext, Rest, Sandbox};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use tracing::warn;

use super::layers::WALLS;
use crate::weight::weight;

/// The function that a module exports.
const FUNCTION: &str = "grains";
/// Time of one module.
const EACH: Duration = Duration::from_secs(5);
/// Time of all of them.
const ALL: Duration = Duration::from_secs(15);
/// Modules at once.
const AT_ONCE: usize = 4;
/// Upper bound on the bytes of one module's grains.
const MAX_BYTES: usize = 256 * 1024;
/// Upper bound on the memory of all modules' grains together. A master may serve a thousand modules, and a byte of a message can be forty in
/// memory.
const ALL_WEIGHT: usize = 32 << 20;
/// Upper bound on the levels of one module's grains.
const MAX_DEPTH: usize = 16;
/// Upper bound on the bytes of a name.
const MAX_NAME: usize = 256;

type Entries = Vec<(Value, Value)>;
type Answer = (String, Result<Entries, String>);

/// What the modules of this minion found, in the order of their names.
#[derive(Default)]
pub(crate) struct FromModules(Vec<Answer>);

impl FromModules {
    /// Asks all modules that have grains. `host` are the grains of the host, for a parameter `grains`; `master` is the
    /// fingerprint of the master whose grants count, none without a master.
    pub(crate) async fn ask(sandbox: &Arc<Sandbox>, id: &MinionId, master: Option<&str>, host: &Arc<Value>) -> Self {
        let ends = tokio::time::Instant::now() + ALL;
        let room = Arc::new(AtomicUsize::new(ALL_WEIGHT));
        let mut askers: Vec<BoxFuture<'static, Option<Answer>>> = Vec::new();
        for name in sandbox.names_installed() {
            let Some(takes_host) = takes(sandbox, &name) else { continue };
            let given = takes_host.then(|| Arc::clone(host));
            let (sandbox, job, room) = (Arc::clone(sandbox), job(id, master, &name), Arc::clone(&room));
            askers.push(Box::pin(async move {
                let found = tokio::time::timeout_at(ends, ask_one(&sandbox, job, given)).await.ok()?;
                Some((name, found.and_then(|entries| within(&room, entries))))
            }));
        }
        let all = askers.len();
        let mut found: Vec<Answer> =
            futures_util::stream::iter(askers).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
        if found.len() < all {
            let late = all - found.len();
            warn!("the grains of {late} modules are left out: all of them together took longer than {ALL:?}");
        }
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let found = Self(found);
        for trouble in found.troubles() {
            warn!("{trouble}");
        }
        found
    }

    /// The grains of each module.
    pub(super) fn grains(&self) -> impl Iterator<Item = &[(Value, Value)]> {
        self.0.iter().filter_map(|(_, found)| found.as_deref().ok())
    }

    /// One line for each module that is left out.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = String> {
        let failed = self.0.iter().filter_map(|(name, found)| Some((name, found.as_ref().err()?)));
        failed.map(|(name, why)| format!("the grains of module {name} are left out: {why}"))
    }

    #[cfg(test)]
    pub(super) fn of<const N: usize>(found: [(&str, Result<Entries, String>); N]) -> Self {
        Self(found.into_iter().map(|(name, found)| (name.to_owned(), found)).collect())
    }
}

/// Takes the room for a module's grains.
fn within(room: &AtomicUsize, entries: Entries) -> Result<Entries, String> {
    let bytes = entries.iter().map(|(key, value)| weight(key) + weight(value)).sum::<usize>();
    match room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)) {
        Ok(_) => Ok(entries),
        Err(_) => Err(format!("those of all modules together take more than {ALL_WEIGHT} bytes of memory")),
    }
}

/// Whether the module's function takes the grains of the host; none if it has no function that can be asked.
fn takes(sandbox: &Sandbox, name: &str) -> Option<bool> {
    let module = sandbox.describe(name)?;
    let function = module.info.functions.iter().find(|known| known.name == FUNCTION)?;
    let takes_host = function.params.iter().any(|p| *p.name == *FUNCTION && matches!(p.rest, Rest::No));
    let mut others = function.params.iter().filter(|p| *p.name != *FUNCTION);
    others.all(|p| p.optional || !matches!(p.rest, Rest::No)).then_some(takes_host)
}

fn job(id: &MinionId, master: Option<&str>, module: &str) -> JobContext {
    JobContext {
        jid: Jid::now().to_string(),
        function: format!("{module}.{FUNCTION}"),
        user: crate::accounts::own_name(),
        minion_id: id.to_string(),
        master: master.map(str::to_owned),
        timeout_ms: u64::try_from(EACH.as_millis()).ok(),
        ..JobContext::default()
    }
}

async fn ask_one(sandbox: &Sandbox, job: JobContext, host: Option<Arc<Value>>) -> Result<Entries, String> {
    let fun = job.function.clone();
    let kwargs = host.map(|host| vec![(FUNCTION.to_owned(), Value::clone(&host))]).unwrap_or_default();
    let outcome = sandbox.run(job, &fun, Vec::new(), kwargs).await;
    if !outcome.success {
        return Err(reason(&outcome.value));
    }
    checked(outcome.value)
}

fn reason(value: &Value) -> String {
    value.text().map_or_else(|| "it failed".to_owned(), str::to_owned)
}

/// Checks what a module returned.
fn checked(value: Value) -> Result<Entries, String> {
    if is_deeper(&value, MAX_DEPTH) {
        return Err(format!("they nest deeper than {MAX_DEPTH} levels"));
    }
    let bytes = msgpack::encode_network(&value).len();
    if bytes > MAX_BYTES {
        return Err(format!("they take {bytes} bytes, more than the {MAX_BYTES} there may be"));
    }
    let Value::Map(entries) = value else { return Err("they are no dict".to_owned()) };
    for (key, _) in &entries {
        match key.text() {
            None => return Err("a name is no text".to_owned()),
            Some(WALLS) => return Err(format!("{WALLS} is the minion's own account of its sandbox")),
            Some(name) if name.is_empty() || name.len() > MAX_NAME || name.contains(char::is_control) => {
                return Err(format!("a name is not one line of at most {MAX_NAME} bytes"));
            }
            Some(_) => {}
        }
    }
    Ok(entries)
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Map(entries) => levels == 0 || entries.iter().any(|(_, item)| is_deeper(item, levels - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::{list, map};

    use super::*;

    #[test]
    fn what_is_out_of_bounds_is_refused_with_the_reason() {
        let deep = |levels: usize| (0..levels).fold(Value::from(1), |value, _| list([value]));
        assert!(checked(map([("role", Value::from("web")), ("deep", deep(MAX_DEPTH - 1))])).is_ok());
        for (value, why) in [
            (Value::from("web"), "they are no dict"),
            (map([("a", deep(MAX_DEPTH))]), "they nest deeper than 16 levels"),
            (map([("a", Value::from("x".repeat(MAX_BYTES)))]), "more than the 262144"),
            (map([("sandbox", "none")]), "the minion's own account"),
            (map([("a\nb", "x")]), "a name is not one line"),
            (map([("", "x")]), "a name is not one line"),
            (map([(1, "x")]), "a name is no text"),
        ] {
            let error = checked(value).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn all_modules_share_the_room() {
        // Some kilobytes of a message, and many of memory.
        let small = || vec![(Value::from("a"), list(vec![Value::from(1); 50_000]))];
        let room = AtomicUsize::new(ALL_WEIGHT);
        let taken = (0..1_000).take_while(|_| within(&room, small()).is_ok()).count();
        assert!((5..100).contains(&taken), "{taken}");
        assert!(within(&room, small()).unwrap_err().contains("all modules together"));
        assert!(within(&room, vec![(Value::from("a"), Value::from(1))]).is_ok(), "what is small has room still");
    }
}
