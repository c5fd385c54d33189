//! The pure codec.
