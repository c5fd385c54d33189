//! Loads modules into an executor and unloads them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brine_sandbox_wire::{Sha256Hex, ToExecutor};
use tokio::sync::oneshot;

use super::Link;
use crate::kernel::loadable::{CodeSource, Loadable};

/// Time to load a module, which is mapping a file.
const LOAD: Duration = Duration::from_secs(10);

impl Link {
    /// Checks, without waiting, whether the module is loaded.
    pub(crate) fn has(&self, key: Sha256Hex) -> bool {
        self.state().modules.get(&key).is_some_and(|cell| cell.initialized())
    }

    /// Loads the module if necessary, with code from the cache or, if that was lost, compiled again.
    pub(crate) async fn ensure(&self, module: &Loadable, source: &dyn CodeSource) -> Result<(), String> {
        self.loaded(module, source.code(module)).await
    }

    /// Loads the module with this code if necessary.
    pub(crate) async fn loaded(
        &self,
        module: &Loadable,
        code: impl Future<Output = Result<std::fs::File, String>>,
    ) -> Result<(), String> {
        if let Some(why) = self.suspects.set_aside(module.key) {
            return Err(format!("module {} is not available: {why}", module.name));
        }
        let cell = Arc::clone(self.state().modules.entry(module.key).or_default());
        cell.get_or_try_init(|| async { self.load(module, code.await?).await }).await.copied()
    }

    async fn load(&self, module: &Loadable, code: std::fs::File) -> Result<(), String> {
        let key = module.key;
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            if let Some(why) = &state.died {
                return Err(format!("the executor {why}"));
            }
            state.loading.insert(key, sender);
        }
        let imports_granted = Some(module.interfaces.clone());
        let load = ToExecutor::Load { module: key, name: module.name.to_string(), imports_granted };
        let conversation = async {
            let sent = std::pin::pin!(async {
                let mut sender = self.sender.lock().await;
                self.state().sent.push_back(key);
                sender.send_with_file(&load, code.into()).await
            });
            let sent = self.taken(sent).await;
            sent.map_err(|error| format!("the executor cannot be reached: {error}"))?;
            receiver.await.unwrap_or_else(|_| Err("the executor ended while it loaded the module".into()))
        };
        match self.patiently(LOAD, std::pin::pin!(conversation)).await {
            Some(result) => {
                module.was_loaded.fetch_or(result.is_ok(), Ordering::Relaxed);
                result
            }
            None => {
                self.state().loading.remove(&key);
                Err(format!("the executor did not load the module within {} s", LOAD.as_secs()))
            }
        }
    }

    /// Unloads a module. Its running calls continue.
    pub(crate) async fn unload(&self, module: Sha256Hex) {
        self.state().modules.remove(&module);
        let _ = self.send(&ToExecutor::Unload { module }).await;
    }

    pub(super) fn load_ended(&self, module: Sha256Hex, result: Result<(), String>) {
        let waiting = {
            let mut state = self.state();
            if let Some(at) = state.sent.iter().position(|sent| *sent == module) {
                state.sent.remove(at);
                self.suspects.loaded(module);
            }
            state.loading.remove(&module)
        };
        if let Some(waiting) = waiting {
            let _ = waiting.send(result);
        }
    }
}
