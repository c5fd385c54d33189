//! High data: what the SLS files of a run say, merged.
//!
//! | file | |
//! |---|---|
//! | `sls` | renders an SLS with what it includes |
//! | `include` | which SLS files an include names |
//! | `declarations` | brings a file's ids, `extend` and `exclude` into one form |
//! | `merge` | brings files together |
//! | `verify` | what is wrong with high data |

mod declarations;
mod include;
mod merge;
mod sls;
mod verify;

pub(crate) use sls::Renderer;
pub(crate) use verify::verify;
