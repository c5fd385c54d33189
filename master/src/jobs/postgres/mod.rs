//! PostgreSQL with the tables of Salt's returners `postgres` and `pgjsonb`. Python's returners can read what the master
//! writes, and the master can read what they write. A build without the feature `postgres` reads the settings too, and
//! refuses them.

mod options;
#[cfg(feature = "postgres")]
mod returner;
#[cfg(feature = "postgres")]
mod rows;
#[cfg(feature = "postgres")]
mod session;

use std::collections::HashMap;
use std::sync::Arc;

pub use options::PostgresOpts;

use super::returner::{Returner, ReturnerName};

/// Makes the returners of these servers. Each connects at its first use.
#[cfg(feature = "postgres")]
pub(super) fn returners(servers: &HashMap<ReturnerName, PostgresOpts>) -> HashMap<ReturnerName, Arc<dyn Returner>> {
    let each = servers.iter().map(|(name, opts)| {
        let returner: Arc<dyn Returner> = Arc::new(returner::Postgres::new(name.clone(), opts.clone()));
        (name.clone(), returner)
    });
    each.collect()
}

/// Returns none, because [`PostgresOpts::all`] has refused every server.
#[cfg(not(feature = "postgres"))]
pub(super) fn returners(_: &HashMap<ReturnerName, PostgresOpts>) -> HashMap<ReturnerName, Arc<dyn Returner>> {
    HashMap::new()
}
