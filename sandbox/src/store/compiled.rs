//! Gets compiled code for a component: from the cache, or from the compiler in its cage with a bound on concurrent
//! compilers.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_component::ModuleInfo;
use brine_sandbox_wire::Sha256Hex;
use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::{InstallError, Shelf, Store, hash, off_thread};
use crate::kernel::cache::{self, CacheError, PutError};
use crate::kernel::compile::CompileError;
use crate::kernel::loadable::{CodeSource, Loadable};
use crate::{ModuleName, SMALL_MODULE};

impl Store {
    /// Returns the description of a component whose code is in the cache, or else compiles the component. The code itself is checked
    /// when an executor gets it.
    pub(super) async fn described(
        &self,
        name: &ModuleName,
        sha256: Sha256Hex,
        wasm: &Bytes,
        standard: bool,
    ) -> Result<ModuleInfo, InstallError> {
        let cache = Arc::clone(&self.cache);
        match off_thread(move || cache.describe(sha256)).await {
            Ok(info) => Ok(info),
            Err(_) => Ok(self.compiled(name, sha256, wasm, standard).await?.info),
        }
    }

    /// Returns compiled code from the cache, or else compiles the component.
    async fn compiled(
        &self,
        name: &ModuleName,
        sha256: Sha256Hex,
        wasm: &Bytes,
        standard: bool,
    ) -> Result<cache::Compiled, InstallError> {
        if let Some(known) = self.known(name, sha256).await {
            return known;
        }
        let failed = |error: &dyn std::fmt::Display| InstallError::failed(name, error);
        // Standard modules are no interpreters, so that none takes longer than the others by far.
        let size = if standard { 0 } else { wasm.len() as u64 };
        let (_turn, waited) = self.compiling.enter(size).await;
        // The same content may have been compiled meanwhile under another name.
        if waited && let Some(known) = self.known(name, sha256).await {
            return known;
        }
        let stage = self.cache.stage().map_err(|error| failed(&error))?;
        let component = stage.component(wasm.clone()).await.map_err(|error| failed(&error))?;
        let started = std::time::Instant::now();
        match self.compiler.compile(component, &stage.code(), &stage.info()).await {
            Ok(()) => {
                tracing::debug!(module = %name, %sha256, ms = started.elapsed().as_millis() as u64, "compiled");
                let cache = Arc::clone(&self.cache);
                let taken = off_thread(move || cache.put(sha256, &stage).map(|()| cache.get(sha256)));
                match taken.await {
                    Ok(compiled) => compiled.map_err(|error| failed(&error)),
                    Err(PutError::Refused(error)) => Err(self.refuse_content(name, sha256, error.to_string())),
                    Err(error) => Err(failed(&error)),
                }
            }
            Err(CompileError::Refused(reason)) => Err(self.refuse_content(name, sha256, reason)),
            Err(CompileError::Failed(reason)) => Err(failed(&reason)),
        }
    }

    /// Remembers that a content is refused, so that it is not compiled again.
    fn refuse_content(&self, name: &ModuleName, sha256: Sha256Hex, reason: String) -> InstallError {
        if let Err(error) = self.cache.refuse(sha256, &self.compiler.limits_text(), &reason) {
            tracing::warn!(module = %name, "its refusal could not be written down: {error}");
        }
        InstallError::Refused { name: name.clone(), reason, before: false }
    }

    /// Checks whether an installed module takes long to prepare: it is large, and its content is not compiled. A module
    /// that replaces a standard one never counts as slow, so that the standard one does not serve meanwhile.
    pub(super) async fn takes_long(&self, name: &ModuleName) -> bool {
        let size = std::fs::metadata(self.folder.path_of(Shelf::Current, name)).map_or(0, |meta| meta.len());
        if size <= SMALL_MODULE || super::locked(&self.standard).contains(name) {
            return false;
        }
        let Ok(Some(files)) = self.shelf(Shelf::Current, name).await else { return false };
        !self.cache.knows(hash(&files.wasm).await, &self.compiler.limits_text())
    }

    /// Returns the earlier result for a content: compiled code or a refusal.
    async fn known(&self, name: &ModuleName, sha256: Sha256Hex) -> Option<Result<cache::Compiled, InstallError>> {
        if let Some(compiled) = self.cached(name, sha256).await {
            return Some(Ok(compiled));
        }
        let reason = self.cache.refusal(sha256, &self.compiler.limits_text())?;
        Some(Err(InstallError::Refused { name: name.clone(), reason, before: true }))
    }

    async fn cached(&self, name: &ModuleName, sha256: Sha256Hex) -> Option<cache::Compiled> {
        let cache = Arc::clone(&self.cache);
        match off_thread(move || cache.get(sha256)).await {
            Ok(compiled) => Some(compiled),
            Err(CacheError::Missing) => None,
            Err(error) => {
                tracing::error!(module = %name, %sha256, "{error}; it is compiled again");
                // An entry that cannot be read now, for example for lack of file descriptors, is still good.
                if matches!(error, CacheError::Tampered(_)) {
                    self.cache.discard(sha256);
                }
                None
            }
        }
    }

    /// Returns the component of a module in use: from its installed place, or from the shelf to which an update moved
    /// it.
    async fn component(&self, module: &Loadable) -> Result<Bytes, String> {
        let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
        let shelves = [Shelf::Current, Shelf::Previous, Shelf::Held];
        for shelf in if module.standard { &[] } else { &shelves[..] } {
            if let Some(files) = self.shelf(*shelf, &module.name).await.map_err(unreadable)?
                && hash(&files.wasm).await == module.sha256
            {
                return Ok(files.wasm);
            }
        }
        if module.standard {
            let files = self.standard_files(&module.name).map_err(unreadable)?;
            if let Some(files) = files
                && hash(&files.wasm).await == module.sha256
            {
                return Ok(files.wasm);
            }
        }
        Err("changed on the disk".to_owned())
    }
}

impl CodeSource for Store {
    fn modules(&self) -> Vec<Arc<Loadable>> {
        let table = self.table();
        let used = table.values().filter(|entry| entry.loadable.was_loaded.load(Ordering::Relaxed));
        used.map(|entry| Arc::clone(&entry.loadable)).collect()
    }

    fn cached_code<'a>(&'a self, module: &'a Loadable) -> BoxFuture<'a, Option<File>> {
        Box::pin(async { self.cached(&module.name, module.sha256).await.map(|compiled| compiled.code) })
    }

    fn code<'a>(&'a self, module: &'a Loadable) -> BoxFuture<'a, Result<File, String>> {
        Box::pin(async {
            if let Some(code) = self.cached_code(module).await {
                return Ok(code);
            }
            let wasm = self.component(module).await.map_err(|error| format!("module {} {error}", module.name))?;
            let compiled = self.compiled(&module.name, module.sha256, &wasm, module.standard).await;
            compiled.map(|compiled| compiled.code).map_err(|error| error.to_string())
        })
    }
}
