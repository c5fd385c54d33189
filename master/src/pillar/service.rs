//! Compiles pillars for requests and runners: on threads of their own, from the cache where that is on, with the causes
//! of errors in the log.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use brine_pillar::{Compiled, HttpFetch, PillarCompiler, PillarSettings, Subject, failed};
use brine_protocol::ids::{MinionId, Saltenv};
use brine_protocol::value::{Value, ValueExt as _, empty_map};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::cache::{Key, PillarCache};
use super::workers::Workers;
use crate::refusals::{Refusals, Who};

/// Bound on the causes of one pillar in the log.
const CAUSES_MAX: usize = 5;
/// Bound on the targets by grains that were warned of.
const WARNED_MAX: usize = 1_000;

/// The pillar compiler of a master.
pub(crate) struct Pillars {
    inner: Arc<Inner>,
    workers: Arc<Workers>,
    refusals: Arc<Refusals>,
    /// Environment and target of what was warned of.
    warned: Mutex<HashSet<(String, String)>>,
}

struct Inner {
    compiler: ArcSwap<PillarCompiler>,
    cache: PillarCache,
    fetch: HttpFetch,
}

/// What becomes of kept pillars, where the master keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caching {
    /// One that is not too old is the answer.
    On,
    /// They are forgotten before.
    Renewed,
    /// They do not count.
    Off,
}

/// A compiled pillar. It does not print.
pub(crate) struct Answer {
    /// A map, with `_errors` if there are any.
    pub(crate) pillar: Value,
    /// Whether it has no `_errors`.
    pub(crate) is_whole: bool,
}

impl Pillars {
    /// Makes the compiler. It fetches documents on this runtime.
    pub(crate) fn new(settings: &PillarSettings, cachedir: &Path, runtime: Handle, refusals: Arc<Refusals>) -> Self {
        let compiler = ArcSwap::from_pointee(PillarCompiler::new(settings.clone()));
        let inner = Inner { compiler, cache: PillarCache::new(cachedir), fetch: HttpFetch::new(runtime) };
        Self { inner: inner.into(), workers: Workers::new(settings.opts.workers), refusals, warned: Mutex::default() }
    }

    /// Takes up new settings.
    pub(crate) fn replace(&self, settings: &PillarSettings) {
        self.inner.compiler.store(PillarCompiler::new(settings.clone()).into());
        self.warned.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Describes the compilations, for the log.
    pub(crate) fn line(&self) -> String {
        format!("pillars: {}", self.workers.line())
    }

    /// Returns the pillar of a minion.
    pub(crate) async fn compile(&self, subject: Subject, caching: Caching) -> Answer {
        let id = subject.id.clone();
        let (inner, (done, result)) = (Arc::clone(&self.inner), oneshot::channel());
        let work = move || {
            // Nobody waits for it any more.
            if !done.is_closed() {
                let _ = done.send(inner.compile(&subject, caching));
            }
        };
        let why = match self.workers.submit(&id, work) {
            Err(why) => why.to_string(),
            Ok(()) => match result.await {
                Ok(compiled) => {
                    self.report(&id, &compiled);
                    return Answer { pillar: compiled.pillar, is_whole: compiled.is_whole };
                }
                Err(_) => "its compilation panicked: this is a bug in salt-master, please report it".to_owned(),
            },
        };
        self.refusals.log(Who::Minion(&id), &format!("the pillar of {id} is not compiled: {why}"));
        Answer { pillar: failed(&id), is_whole: false }
    }

    /// Returns the top file for a minion, or the errors that it would be told.
    pub(crate) async fn show_top(&self, subject: Subject) -> Result<Value, Vec<String>> {
        let id = subject.id.clone();
        let (inner, (done, result)) = (Arc::clone(&self.inner), oneshot::channel());
        let work = move || {
            let _ = done.send(inner.compiler.load_full().show_top(&subject));
        };
        self.workers.submit(&id, work).map_err(|why| vec![why.to_string()])?;
        match result.await {
            Ok(Ok(top)) => Ok(top),
            Ok(Err((errors, causes))) => {
                self.log(&id, &causes);
                Err(errors)
            }
            Err(_) => Err(vec!["the top file cannot be rendered".to_owned()]),
        }
    }

    /// Whether pillars are kept.
    pub(crate) fn keeps(&self) -> bool {
        self.inner.compiler.load().opts().cache.is_some()
    }

    /// Forgets the kept pillars of a minion, of one environment or of all.
    pub(crate) async fn forget(&self, id: MinionId, pillarenv: Option<String>) {
        let inner = Arc::clone(&self.inner);
        let forget = move || {
            let env = pillarenv.as_deref().map(Saltenv::try_from);
            match env {
                Some(Err(_)) => {}
                Some(Ok(env)) => inner.cache.forget(&id, Some(&env)),
                None => inner.cache.forget(&id, None),
            }
        };
        let _ = tokio::task::spawn_blocking(forget).await;
    }

    /// Returns a kept pillar.
    pub(crate) async fn kept(&self, id: MinionId, pillarenv: Option<String>) -> Option<Value> {
        let inner = Arc::clone(&self.inner);
        let get = move || {
            let opts = inner.compiler.load().opts().cache?;
            let pillarenv = pillarenv.map(|env| Saltenv::try_from(env.as_str())).transpose().ok()?;
            inner.cache.get(&Key { id, pillarenv }, opts)
        };
        tokio::task::spawn_blocking(get).await.ok().flatten()
    }

    fn report(&self, id: &MinionId, compiled: &Compiled) {
        self.log(id, &compiled.causes);
        for (env, target) in &compiled.by_grains {
            let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
            let cause = (env.clone(), target.clone());
            if warned.len() < WARNED_MAX && warned.insert(cause) {
                let target = brine_protocol::text::short(target, 200);
                tracing::warn!(
                    "the pillar's top file of {env} gives pillar by the target {target:?}, which asks grains: they are the \
                     minion's own word, so any minion can get that pillar by claiming them"
                );
            }
        }
    }

    fn log(&self, id: &MinionId, causes: &[String]) {
        for cause in causes.iter().take(CAUSES_MAX) {
            self.refusals.log(Who::Minion(id), &format!("the pillar of {id} has an error: {cause}"));
        }
        if causes.len() > CAUSES_MAX {
            let more = causes.len() - CAUSES_MAX;
            self.refusals.log(Who::Minion(id), &format!("the pillar of {id} has {more} more errors"));
        }
    }
}

impl Inner {
    fn compile(&self, subject: &Subject, caching: Caching) -> Compiled {
        let compiler = self.compiler.load_full();
        if let Some(cause) = compiler.is_too_much(&subject.given) {
            return Compiled {
                pillar: failed(&subject.id),
                is_whole: false,
                causes: vec![cause],
                by_grains: Vec::new(),
            };
        }
        let pillarenv = compiler.pillarenv(subject);
        let key = pillarenv.as_deref().map(Saltenv::try_from).transpose().ok();
        let key = key.map(|pillarenv| Key { id: subject.id.clone(), pillarenv });
        let (Some(cache), Some(key)) = (compiler.opts().cache.filter(|_| caching != Caching::Off), key) else {
            return compiler.compile(subject, &self.fetch);
        };
        if caching == Caching::Renewed {
            self.cache.forget(&key.id, key.pillarenv.as_ref());
        }
        let kept = self.cache.get(&key, cache);
        let mut compiled = kept.map_or_else(
            || {
                // What a command line gives is no part of what is kept.
                let mut compiled = compiler.compile(&Subject { given: empty_map(), ..subject.clone() }, &self.fetch);
                if compiled.is_whole
                    && let Err(why) = self.cache.put(&key, &compiled.pillar, cache)
                {
                    compiled.causes.push(format!("it is not kept: {why}"));
                }
                compiled
            },
            |pillar| Compiled { pillar, is_whole: true, causes: Vec::new(), by_grains: Vec::new() },
        );
        if subject.given.truthy() {
            match compiler.merged(&compiled.pillar, &subject.given) {
                Ok(pillar) => compiled.pillar = pillar,
                Err(why) => compiled.causes.push(format!("pillar= is left out: {why}")),
            }
        }
        compiled
    }
}
