//! Where a request comes from.

use std::net::IpAddr;

/// The address of a request's caller, which each request has as an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);
