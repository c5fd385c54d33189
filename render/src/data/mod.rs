//! What Salt does to data, for filters of templates and for execution functions: walks, merges, copies, names of files.
//!
//! | file | content |
//! |---|---|
//! | `argument` | a word of a command line as value |
//! | `budget`, `error` | the bounds of such work, and what goes wrong in it |
//! | `chance` | what Python's `random` chooses by a seed |
//! | `copy` | copies, also without what must not be shown |
//! | `hash` | digests and base64 |
//! | `merge` | dicts into dicts (`salt.utils.dictupdate`) |
//! | `paths` | names of files (`posixpath`) |
//! | `traverse` | `a:b:0` |

mod argument;
mod budget;
pub mod chance;
mod copy;
mod error;
pub mod hash;
pub mod merge;
pub mod paths;
mod traverse;

pub use argument::argument;
pub use budget::Budget;
pub use copy::{deep_copy, mask, plain};
pub use error::CallError;
pub use traverse::{integer, traverse};

use crate::value::Value;

/// Python's `str` of a value, of a megabyte at most.
///
/// # Errors
/// The text is longer.
pub fn text(value: &Value) -> Result<String, CallError> {
    struct Bounded(String);
    impl std::fmt::Write for Bounded {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            if self.0.len() + text.len() > 1 << 20 {
                return Err(std::fmt::Error);
            }
            self.0.push_str(text);
            Ok(())
        }
    }
    let mut out = Bounded(String::new());
    value.write_str(&mut out).map_err(|_| CallError::python("a text of more than a megabyte"))?;
    Ok(out.0)
}
