//! The event that tells the master that a module is held.
//!
//! The event is `salt/minion/<id>/sandbox/held`. Its data is what `sandbox.diff NAME` returns: `name`, `why`, `in_use` and `held` (each
//! with version, sha256, size, origin, signed_by, signed), `functions` and `permissions` (added, removed), `lines` of the configuration
//! and the command `approve`. It is sent once for each content that is held. Each sync's return and `sandbox.list` show that the module
//! is still held.

use brine_sandbox::{ModuleName, PolicyOp, Sandbox, Sha256Hex};

use super::Modules;

impl Modules {
    /// The version of a module that is held now.
    pub(super) fn held_version(sandbox: &Sandbox, name: &ModuleName) -> Option<Sha256Hex> {
        sandbox.held(name.as_str()).map(|held| held.sha256())
    }

    /// Sends the event if another version is held now than before.
    pub(super) async fn notify_if_held(&self, sandbox: &Sandbox, name: &ModuleName, before: Option<Sha256Hex>) {
        let held = Self::held_version(sandbox, name);
        if held.is_none() || held == before {
            return;
        }
        let Some(events) = self.events.get() else { return };
        if let Ok(difference) = sandbox.report(PolicyOp::Diff { name: name.to_string() }).await {
            events.send_own("sandbox/held", difference).await;
        }
    }
}
