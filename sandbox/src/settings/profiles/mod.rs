//! `sandbox:profiles`: blocks of grants that the owner takes over by name. Each is a data file: Brine's are within the
//! program (and installed beside it, to be read), the owner's are files of the same kind in a folder of his own. Their
//! entries have the syntax of `sandbox:modules` and are read like the owner's; they count for standard modules only.
//!
//! - `library.rs` the files · `file.rs` one file · `parameters.rs` paths and names that a profile takes

mod file;
mod library;
mod parameters;
#[cfg(test)]
mod tests;

use rmpv::Value;

use super::{Result, error, values};
use crate::policy::Profile;
pub(super) use library::Library;

/// Upper bound on the files that are read for one list, with what they include.
const MAX_READ: usize = 256;
/// Upper bound on the profiles that a configuration takes over. Each is looked at in every decision.
const MAX_TAKEN: usize = 64;

/// All profiles of Brine, those that take parameters without any.
///
/// # Errors
///
/// A file of them is not right, which a test excludes.
pub fn all() -> Result<Vec<Profile>> {
    Library::default().all()
}

/// Reads the profiles that the owner takes over: names, and names with parameters (`{services: [nginx]}`).
pub(super) fn read(path: &str, value: &Value, library: &Library) -> Result<Vec<Profile>> {
    taken(path, value, library, &mut Within::default())
}

/// The files that are being read.
#[derive(Debug, Default)]
struct Within {
    /// Each includes the next.
    files: Vec<String>,
    /// How many were read: files that include others several times are read several times.
    read: usize,
}

/// The profiles of a list, of the configuration or of `includes` in a file.
fn taken(path: &str, value: &Value, library: &Library, within: &mut Within) -> Result<Vec<Profile>> {
    let Value::Array(items) = value else {
        return error(path, format!("a list of profiles is expected, not {value}; there are: {}", library.names()));
    };
    if items.len() > MAX_TAKEN {
        return error(path, format!("it has more than {MAX_TAKEN} items"));
    }
    let mut profiles: Vec<Profile> = Vec::new();
    for item in items {
        let wanted = match item {
            Value::Map(entries) if entries.is_empty() => return error(path, "an item is empty"),
            Value::Map(_) => values::entries(path, item)?.into_iter().map(|(name, of)| (name, Some(of))).collect(),
            name => vec![(values::text(path, name)?, None)],
        };
        for (name, parameters) in wanted {
            let profile = library.profile(path, name, parameters, within)?;
            if !profiles.contains(&profile) {
                profiles.push(profile);
            }
        }
    }
    Ok(profiles)
}
