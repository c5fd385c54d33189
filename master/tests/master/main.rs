//! A whole master on loopback, and minions and local callers built from `brine-protocol` that speak to it, well and badly.

#![allow(missing_docs, clippy::unwrap_used)]

mod access;
mod acl;
mod auth;
mod crowds;
mod cves;
mod floods;
mod harness;
mod jobs;
mod maintenance;
mod measure;
mod peer;
mod process;
mod quotas;
mod refusals;
mod reload;
mod returns;
mod rotation;
