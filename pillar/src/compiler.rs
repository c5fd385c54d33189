//! Compilations by one set of settings.

use brine_protocol::msgpack;
use brine_protocol::value::Value;
use brine_render::convert::{ConvertError, ConvertLimits};

use crate::compile::{self, Chosen, Compiled, Subject};
use crate::fetch::HttpFetch;
use crate::opts::PillarOpts;
use crate::roots::Environments;
use crate::settings::PillarSettings;

/// What a minion is told, and the causes for the log.
type Failed = (Vec<String>, Vec<String>);

/// Compiles pillars.
pub struct PillarCompiler {
    settings: PillarSettings,
    envs: Environments,
}

impl PillarCompiler {
    /// A compiler with these settings.
    pub fn new(settings: PillarSettings) -> Self {
        Self { envs: Environments::new(&settings.opts), settings }
    }

    /// Its settings.
    pub fn opts(&self) -> &PillarOpts {
        &self.settings.opts
    }

    /// The environment of a subject's pillar, if it is of one alone.
    pub fn pillarenv(&self, subject: &Subject) -> Option<String> {
        Chosen::new(subject, self.opts()).pillarenv
    }

    /// Compiles the pillar of a subject. Blocks, on a stack of [`crate::STACK`].
    pub fn compile(&self, subject: &Subject, fetch: &HttpFetch) -> Compiled {
        let envs = self.envs.for_request(Chosen::new(subject, self.opts()).any());
        compile::compile(subject, &self.settings, &envs, fetch)
    }

    /// The top file for a subject, as `pillar.show_top` shows it. Blocks, on a stack of [`crate::STACK`].
    ///
    /// # Errors
    /// What a minion would be told, and the causes for the log.
    pub fn show_top(&self, subject: &Subject) -> Result<Value, Failed> {
        let envs = self.envs.for_request(Chosen::new(subject, self.opts()).any());
        compile::show_top(subject, &self.settings, &envs)
    }

    /// Why `pillar=` of a command line is too large; none if it is not.
    pub fn is_too_much(&self, given: &Value) -> Option<String> {
        let (bytes, max) = (msgpack::encode_disk(given).len(), self.opts().override_max);
        (bytes > max).then(|| format!("pillar= has {bytes} bytes, the limit is pillar_max_override: {max}"))
    }

    /// Merges `pillar=` of a command line over a pillar.
    ///
    /// # Errors
    /// One of the two is no dict, or they are too large. The text has no values.
    pub fn merged(&self, pillar: &Value, given: &Value) -> Result<Value, String> {
        use brine_render::Value as Rendered;
        let said = |why: ConvertError| why.to_string();
        let (pillar, given) = (Rendered::from_wire(pillar).map_err(said)?, Rendered::from_wire(given).map_err(said)?);
        self.opts()
            .merging
            .merge(&pillar, &given)?
            .to_wire(ConvertLimits { bytes: self.opts().size_max, ..ConvertLimits::default() })
            .map_err(said)
    }
}
