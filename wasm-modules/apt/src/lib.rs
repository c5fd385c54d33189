//! What the modules for Debian's packages share, without I/O: versions ([`version`], [`wanted`]), what the programs of dpkg and apt print
//! ([`dpkg`], [`cache`]), sources of packages ([`sources`]), keys ([`keys`]), arguments ([`arguments`]), and errors with Salt's layout
//! ([`failure`], [`nested`]).

pub mod arguments;
pub mod cache;
pub mod dpkg;
pub mod failure;
pub mod keys;
pub mod nested;
pub mod sources;
pub mod version;
pub mod wanted;
