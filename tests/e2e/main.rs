//! End to end: real daemons and commands on loopback, in temporary folders.

mod api;
mod api_credentials;
mod api_events;
mod api_paths;
mod api_v1;
mod commands;
mod completion;
mod copies;
mod daemons;
mod failures;
mod job_store;
mod keys;
mod modules;
mod odd_files;
mod ping;
mod presence;
mod returners;
mod runners;
mod salts_tests;
mod sandbox;
mod secrets;
mod signatures;
mod slow_link;
mod swarm;
mod targets;
mod updates;
