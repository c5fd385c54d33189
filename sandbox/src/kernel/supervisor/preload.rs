//! Loads the modules that the permanent executor has from its start.

use std::sync::Arc;

use crate::kernel::link::Link;
use crate::kernel::loadable::{CodeSource, Loadable};

/// Loads every module whose compiled code is in the cache. Returns the modules whose code is missing.
pub(super) async fn preload(link: &Link, source: &dyn CodeSource) -> Vec<Arc<Loadable>> {
    let mut lost = Vec::new();
    for module in source.modules() {
        match source.cached_code(&module).await {
            Some(code) => {
                if let Err(why) = link.loaded(&module, async { Ok(code) }).await {
                    tracing::error!(module = %module.name, "{why}");
                }
            }
            None => lost.push(module),
        }
    }
    lost
}

/// Compiles lost code again, while jobs of other modules run.
pub(super) async fn repair_all(link: Arc<Link>, source: Arc<dyn CodeSource>, lost: Vec<Arc<Loadable>>) {
    for module in lost {
        if let Err(why) = link.ensure(&module, &*source).await {
            tracing::error!(module = %module.name, "{why}");
        }
    }
}
