//! salt-master: requests, publishing, keys, jobs, file server and the event bus.
fn main() {}
