//! What a module may import.
/// The owner's grants.
#[derive(Debug, Clone, Default)]
pub struct Policy {}
/// What one module was granted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {}
/// A module that imports what it was not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("refused")]
pub struct Refused {}
