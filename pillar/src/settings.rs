//! All settings of a compiler.

use brine_protocol::options;

use crate::ext::{self, Source};
use crate::opts::PillarOpts;

options! {
    /// What decides about pillars, and the sources besides `pillar_roots`.
    #[derive(Debug, Clone)]
    pub struct PillarSettings from c {
        /// What decides about pillars.
        pub opts: PillarOpts = PillarOpts::from_config(c)?,
        pub(crate) ext: Vec<Source> = ext::read(c)?,
    }
}
