//! This crate is empty; the checks are in `tests/`.
