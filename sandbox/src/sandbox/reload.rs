//! What the owner says now instead of at the start: grants, keys, revocations, limits. Every module is decided on anew.

use std::sync::Arc;

use brine_sandbox_wire::Limits;

use super::{Inner, Sandbox};
use crate::store::Entry;
use crate::{ModuleName, Policy};

/// What became of the modules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Those that may do something else than before, or are back.
    pub changed: Vec<ModuleName>,
    /// Those that cannot be called any more; their jobs were ended.
    pub refused: Vec<ModuleName>,
}

impl Sandbox {
    /// From now on this is the owner's word. New jobs are held to it when this returns. Jobs of a module that is refused now are ended;
    /// others that run end on what they began with. Goes on when the caller goes away.
    pub async fn reload(&self, policy: Policy, limits: Limits) -> Reloaded {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { inner.reload(policy, limits).await }).await.unwrap_or_default()
    }
}

impl Inner {
    async fn reload(self: Arc<Self>, policy: Policy, limits: Limits) -> Reloaded {
        // One after the other: the last word counts.
        let _alone = self.reloading.lock().await;
        self.store.replace_policy(policy);
        self.limits.store(Arc::new(limits));
        let mut reloaded = Reloaded::default();
        for name in self.store.all_names() {
            let _alone = self.installing.enter(&name).await;
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

    /// The module as it is on the disk, or the package's of this name; none, and the reason is written down, where neither may be called.
    async fn decide_anew(&self, name: &ModuleName) -> Option<Arc<Entry>> {
        let left_out = match self.store.read_installed(name).await {
            Ok(Some(entry)) => return Some(Arc::new(entry)),
            Ok(None) => None,
            Err(left_out) => Some(left_out),
        };
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
            tracing::error!(module = %now.name, "what the configuration says of it now cannot be taken up: {error}");
            return false;
        }
        tracing::info!(module = %now.name, sha256 = %now.module.sha256, "taken up as the configuration says now");
        self.switch(now, before.filter(|before| before.key != now.key)).await;
        // Another content has taken the place of one that is refused now.
        if let Some(before) = before.filter(|before| before.module.sha256 != now.module.sha256) {
            self.jobs.end_module(&before.name, "its module is not trusted any more by the owner of this host");
        }
        true
    }
}

/// Whether jobs would see no difference.
fn same(before: &Entry, now: &Entry) -> bool {
    before.key == now.key
        && before.grants == now.grants
        && before.signers == now.signers
        && before.standard == now.standard
}
