//! Keeps the grains.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use brine_protocol::value::{Value, ValueExt as _};

use super::cache::Cache;
use super::collect::{host, is_skipped};
use super::custom::{self, Change, ChangeError};
use super::from_modules::FromModules;
use super::layers::{Layers, WALLS};
use crate::config::MinionOpts;

/// The grains of the last collection.
pub struct GrainsStore {
    opts: Arc<MinionOpts>,
    cache: Option<Cache>,
    /// Locked while the sources are read and combined, so that the last change counts.
    layers: Mutex<Layers>,
    now: RwLock<Arc<Value>>,
    /// Whether `now` came from the file of an earlier run.
    from_cache: bool,
}

impl GrainsStore {
    /// Collects the grains for the first time, or takes those that an earlier run kept. Blocks on files.
    pub fn new(opts: Arc<MinionOpts>) -> Arc<Self> {
        let store = Self::without_facts(opts);
        store.begin();
        store
    }

    /// Knows nothing before [`GrainsStore::begin`], but what an earlier run kept. Blocks on one file.
    pub(crate) fn without_facts(opts: Arc<MinionOpts>) -> Arc<Self> {
        let cache = opts.collecting.cache.map(|expires| Cache::new(&opts.cachedir, expires));
        let kept = cache.as_ref().and_then(Cache::read).filter(|_| !is_skipped(&opts));
        let from_cache = kept.is_some();
        let layers = Layers::new(&opts);
        let now = RwLock::new(Arc::new(kept.unwrap_or_else(|| Value::Map(Vec::new()))));
        Arc::new(Self { opts, cache, layers: Mutex::new(layers), now, from_cache })
    }

    /// Collects the grains for the first time, unless an earlier run kept them. Blocks on files, and some milliseconds on name servers.
    pub(crate) fn begin(&self) {
        if !self.from_cache {
            self.refresh();
        }
    }

    /// The grains as they were collected last.
    pub fn now(&self) -> Arc<Value> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the grains are those that an earlier run kept: then nothing has to be collected at the start.
    pub(crate) fn is_from_cache(&self) -> bool {
        self.from_cache
    }

    /// Collects the grains of the host again; what modules found stays. Blocks on files.
    pub fn refresh(&self) {
        let mut layers = self.layers();
        layers.host = host(&self.opts);
        self.combine(&layers);
    }

    /// Takes what modules found. Blocks on files.
    pub(crate) fn put_modules(&self, found: FromModules) {
        let mut layers = self.layers();
        layers.modules = found;
        self.combine(&layers);
    }

    /// Takes the walls around modules. Blocks on files.
    pub(crate) fn put_walls(&self, walls: Value) {
        let mut layers = self.layers();
        if self.from_cache {
            // The rest of the layers is not collected yet.
            let mut grains = Value::clone(&self.now());
            grains.insert(WALLS, walls.clone());
            self.put(grains);
            layers.walls = Some(walls);
            return;
        }
        layers.walls = Some(walls);
        self.combine(&layers);
    }

    /// The modules whose grains are left out, a line each.
    pub(crate) fn troubles(&self) -> Vec<String> {
        self.layers().modules.troubles().collect()
    }

    /// Changes the grains file and takes its grains. Blocks on files.
    ///
    /// # Errors
    /// When the file cannot be read, is not the minion's to change, or cannot be written. It is as before then.
    pub(crate) fn change_file(&self, changes: &[Change]) -> Result<(), ChangeError> {
        let mut layers = self.layers();
        custom::change(&self.opts.grains_file, changes)?;
        if self.from_cache {
            layers.host = host(&self.opts);
        }
        self.combine(&layers);
        Ok(())
    }

    fn combine(&self, layers: &Layers) {
        let fresh = match is_skipped(&self.opts) {
            true => Value::Map(Vec::new()),
            false => layers.combine(&self.opts),
        };
        if let Some(cache) = &self.cache {
            cache.write(&fresh);
        }
        self.put(fresh);
    }

    fn put(&self, fresh: Value) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
    }

    fn layers(&self) -> MutexGuard<'_, Layers> {
        self.layers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
