//! PostgreSQL with the tables of Salt's returners `postgres` and `pgjsonb`: what is written here Python's returners read, and the other way
//! round. A build without the feature `postgres` reads the settings too, and refuses them.

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

/// The returners of these servers. Each connects when it is used.
#[cfg(feature = "postgres")]
pub(super) fn returners(servers: &HashMap<ReturnerName, PostgresOpts>) -> HashMap<ReturnerName, Arc<dyn Returner>> {
    let each = servers.iter().map(|(name, opts)| {
        let returner: Arc<dyn Returner> = Arc::new(returner::Postgres::new(name.clone(), opts.clone()));
        (name.clone(), returner)
    });
    each.collect()
}

/// None: [`PostgresOpts::all`] has refused every server.
#[cfg(not(feature = "postgres"))]
pub(super) fn returners(_: &HashMap<ReturnerName, PostgresOpts>) -> HashMap<ReturnerName, Arc<dyn Returner>> {
    HashMap::new()
}
