//! Applies a changed configuration: grants, keys, revocations, limits. Every module is decided on again.

use std::sync::Arc;

use brine_sandbox_wire::Limits;

use super::{Inner, Sandbox};
use crate::store::Entry;
use crate::{ModuleName, Policy};

/// The effect of a reload on the modules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// The modules whose permissions changed, or that can be called again.
    pub changed: Vec<ModuleName>,
    /// The modules that cannot be called any more. Their jobs were ended.
    pub refused: Vec<ModuleName>,
}

impl Sandbox {
    /// Applies a policy and limits. New jobs are bound by them when this returns. Jobs of a module that is now refused
    /// are ended; other running jobs keep what they started with. The reload continues if the caller goes away.
    pub async fn reload(&self, policy: Policy, limits: Limits) -> Reloaded {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { inner.reload(policy, limits).await }).await.unwrap_or_default()
    }
}

impl Inner {
    async fn reload(self: Arc<Self>, policy: Policy, limits: Limits) -> Reloaded {
        // Reloads run one after the other, so that the last configuration takes effect.
        let _alone = self.reloading.lock().await;
        self.store.replace_policy(policy);
        self.limits.store(Arc::new(limits));
        let mut reloaded = Reloaded::default();
        for name in self.store.all_names() {
            let _alone = self.store.installing.enter(&name).await;
            let before = self.store.get(name.as_str());
            let now = self.decide_anew(&name).await;
            match (before, now) {
                (Some(before), Some(now)) if same(&before, &now) => {}
                (before, Some(now)) => {
                    if self.take(&now, before.as_ref()).await {
                        reloaded.changed.push(name.clone());
                    }
                }
                (Some(before), None) => {
                    self.store.take_out(&name);
                    let ended =
                        self.jobs.end_module(&name, "its module is not trusted any more by the owner of this host");
                    tracing::warn!(module = %name, ended, "refused by the configuration that was read again");
                    tokio::spawn(Arc::clone(&self).retire(before));
                    reloaded.refused.push(name.clone());
                }
                (None, None) => {}
            }
            self.store.look_at_held(&name).await;
        }
        self.store.prune().await;
        reloaded
    }

    /// Returns the module that may be called now: the installed one, or the standard one of this name. If neither may
    /// be called, records the reason and returns None.
    async fn decide_anew(&self, name: &ModuleName) -> Option<Arc<Entry>> {
        let left_out = match self.store.read_installed(name).await {
            Ok(Some(entry)) => return Some(Arc::new(entry)),
            Ok(None) => None,
            Err(left_out) => Some(left_out),
        };
        if self.store.is_pending(name.as_str()) {
            // The standard module will be prepared by the policy that is in force then.
            if let Some((error, origin)) = left_out {
                self.store.leave_out(name.clone(), &error, Some(origin));
            }
            return None;
        }
        let standard = self.store.standard(name).await;
        let (error, origin) = match (left_out, standard) {
            (None, Ok(standard)) => return standard.map(Arc::new),
            (None, Err(error)) => (error, None),
            (Some((error, origin)), standard) => {
                if let Ok(Some(standard)) = standard {
                    self.store.leave_out(name.clone(), &error, Some(origin));
                    return Some(Arc::new(standard));
                }
                (error, Some(origin))
            }
        };
        self.store.leave_out(name.clone(), &error, origin);
        None
    }

    async fn take(self: &Arc<Self>, now: &Arc<Entry>, before: Option<&Arc<Entry>>) -> bool {
        if let Err(error) = self.load(now).await {
            tracing::error!(module = %now.name(), "what the configuration says of it now cannot be taken up: {error}");
            return false;
        }
        tracing::info!(module = %now.name(), sha256 = %now.module.sha256, "taken up as the configuration says now");
        self.switch(now, before.filter(|before| before.key() != now.key())).await;
        // Another content replaces one that is now refused.
        if let Some(before) = before.filter(|before| before.module.sha256 != now.module.sha256) {
            self.jobs.end_module(before.name(), "its module is not trusted any more by the owner of this host");
        }
        true
    }
}

/// Checks whether jobs would notice no difference.
fn same(before: &Entry, now: &Entry) -> bool {
    before.key() == now.key()
        && before.grants == now.grants
        && before.signers == now.signers
        && before.is_standard() == now.is_standard()
}
