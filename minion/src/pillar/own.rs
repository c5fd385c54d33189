//! The pillar of a minion without a master: compiled here, from its own `pillar_roots`.

use std::sync::Arc;

use brine_pillar::{HttpFetch, PillarCompiler, PillarSettings, STACK, Subject};
use brine_protocol::config::{Config, ConfigError};
use brine_protocol::value::{Value, ValueExt};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing::warn;

use super::refresh::PillarError;
use super::wanted::Wanted;
use crate::config::MinionOpts;

/// Bound on the causes of one pillar in the log.
const CAUSES_MAX: usize = 5;

/// Compiles the pillar of this host.
pub(crate) struct OwnPillar {
    compiler: Arc<PillarCompiler>,
    fetch: Arc<HttpFetch>,
}

impl OwnPillar {
    /// A compiler by the settings of this configuration. It fetches documents on the current runtime.
    ///
    /// # Errors
    /// When a setting of the pillar is wrong.
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let compiler = PillarCompiler::new(PillarSettings::from_config(&config.as_masters())?);
        Ok(Self { compiler: Arc::new(compiler), fetch: Arc::new(HttpFetch::new(Handle::current())) })
    }

    /// Compiles a pillar; what is wrong with it is logged.
    ///
    /// # Errors
    /// When it cannot be compiled at all.
    pub(super) async fn compile(&self, opts: &MinionOpts, grains: Value, wanted: Wanted) -> Result<Value, PillarError> {
        let text = |value: &Value| value.text().filter(|text| !text.is_empty()).map(str::to_owned);
        let subject = Subject {
            id: opts.id.clone(),
            grains,
            saltenv: text(&wanted.saltenv),
            pillarenv: text(&wanted.pillarenv),
            given: wanted.overrides,
        };
        if let Some(why) = self.compiler.is_too_much(&subject.given) {
            return Err(PillarError::Own(why));
        }
        let (compiler, fetch, (done, compiled)) =
            (Arc::clone(&self.compiler), Arc::clone(&self.fetch), oneshot::channel());
        let work = move || {
            let _ = done.send(compiler.compile(&subject, &fetch));
        };
        let thread = std::thread::Builder::new().name("pillar".to_owned()).stack_size(STACK).spawn(work);
        thread.map_err(|error| PillarError::Own(format!("the system starts no thread: {error}")))?;
        let failed = |_| PillarError::Own("the compilation panicked: this is a bug, please report it".to_owned());
        let compiled = compiled.await.map_err(failed)?;
        for cause in compiled.causes.iter().take(CAUSES_MAX) {
            warn!("the pillar has an error: {cause}");
        }
        if compiled.causes.len() > CAUSES_MAX {
            warn!("the pillar has {} more errors", compiled.causes.len() - CAUSES_MAX);
        }
        Ok(compiled.pillar)
    }
}
