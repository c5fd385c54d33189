//! LocalClient with the master's own key.

use super::{minions, script, start};

#[test]
fn local_client() {
    let master = start("nodegroups: {pair: 'L@one,two'}");
    let _minions = minions(&master);
    // Accepted but never connected.
    std::fs::write(master.path("pki/minions/down"), std::fs::read(master.path("pki/minions/one")).expect("a key"))
        .expect("our own folder");
    script(&master, "local_client", &[]);
}
