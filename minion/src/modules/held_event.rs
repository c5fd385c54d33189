//! How the master hears that something was held: an event under this minion's own tags.
//!
//! `salt/minion/<id>/sandbox/held`, whose data is what `sandbox.diff NAME` answers: `name`, `why`, `in_use` and `held` (each with
//! version, sha256, size, origin, signed_by, signed), `functions` and `permissions` (added, removed), `lines` of the
//! configuration and the command `approve`. Sent once for each content that is held; that it still is, is in the return of each sync
//! and in `sandbox.list`.

use brine_sandbox::{ModuleName, Sha256Hex};

use super::Modules;
use crate::runtime::Runtime;

impl Modules {
    /// The version of a module that is held now.
    pub(super) fn held_version(runtime: &dyn Runtime, name: &ModuleName) -> Option<Sha256Hex> {
        runtime.held(name.as_str()).map(|held| held.sha256())
    }

    /// Tells the master if something else is held of a module now than before.
    pub(super) async fn notify_if_held(&self, runtime: &dyn Runtime, name: &ModuleName, before: Option<Sha256Hex>) {
        let held = Self::held_version(runtime, name);
        if held.is_none() || held == before {
            return;
        }
        let Some(events) = self.events.get() else { return };
        if let Some(difference) = runtime.difference(name.as_str()).await {
            events.send_own("sandbox/held", difference).await;
        }
    }
}
