//! The settings of orchestrations.

use std::time::Duration;

use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::options;
use brine_render::jinja;

options! {
    /// The settings of orchestrations.
    #[derive(Debug, Clone)]
    pub(crate) struct OrchestrateOpts from c {
        /// `orchestrate_timeout`: the time for one, with those that it starts.
        pub(super) timeout: Duration = c.get(settings::ORCHESTRATE_TIMEOUT)?,
        /// `orchestrate_max`: how many there may be at a time.
        pub(super) at_once: usize = c.get(settings::ORCHESTRATE_MAX)?,
        /// `orchestrate_max_return`: the bytes of all results of one.
        pub(super) return_max: usize = c.get(settings::ORCHESTRATE_MAX_RETURN)?,
        /// The bounds of each template.
        pub(super) jinja: jinja::Limits = limits(c)?,
    }
}

fn limits(c: &Config) -> Result<jinja::Limits, ConfigError> {
    Ok(jinja::Limits {
        steps: c.get(settings::RENDER_MAX_STEPS)?,
        bytes: c.get(settings::RENDER_MAX_MEMORY)?,
        depth: c.get(settings::RENDER_MAX_DEPTH)?,
        templates: c.get(settings::RENDER_MAX_TEMPLATES)?,
        ..jinja::Limits::default()
    })
}
