//! A whole master on loopback, with minions and local callers made from `brine-protocol` that send valid and invalid
//! requests.

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
mod pillar;
mod process;
mod quotas;
mod refusals;
mod reload;
mod returns;
mod rotation;
mod sealed;
