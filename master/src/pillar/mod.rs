//! The pillar: what a master tells each minion alone (PROTOCOL.md §6.4), compiled by `brine_pillar`.
//!
//! | file | content |
//! |---|---|
//! | `cache`, `workers` | what keeps pillars, and what runs compilations |
//! | `service` | the above for requests and runners |

mod cache;
mod service;
mod workers;

pub(crate) use brine_pillar::{PillarSettings, Subject, failed};
pub(crate) use service::{Caching, Pillars};
