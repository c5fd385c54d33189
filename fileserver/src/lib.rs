//! The file server's files (§6.1, §6.5): what is under `file_roots`, read-only: for a master's minions, and for a minion without a
//! master.
//!
//! A path in a request must be a valid `SafePath`, otherwise it is not found. The kernel resolves it beneath the root
//! (`openat2` with `RESOLVE_BENEATH`), and the opened file is then examined, hashed and served. So no symlink leads out
//! of a root, not even one that changes in between (CVE-2020-11652, CVE-2024-22231, CVE-2024-22232).

mod also;
mod hash;
mod hash_type;
mod listing;
mod modules;
mod opts;
mod root;
mod tree;
mod whole;

pub use also::{ALSO, MAX_ALSO, MAX_ALSO_BYTES};
pub use hash_type::HashType;
pub use listing::{Ignore, Lister, Listing};
pub use modules::ServedModule;
pub use opts::{Roots, TreeOpts, roots};
pub use root::{Found, Root};
pub use tree::{FileRequest, FileTree, LENGTH, SIZE};
pub use whole::WholeFile;
