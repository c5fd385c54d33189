//! `salt`, `salt-run` and their clients against a master that each test scripts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../fake_master/mod.rs"]
mod fake_master;

mod batches;
mod copies;
mod log_ins;
mod printing;
mod runners;
mod waiting;
mod wrong;

use brine_client::{ClientOpts, Job, LocalClient};
use brine_protocol::config::{Config, Role};
use fake_master::{Done, FakeMaster};

const SALT: &str = env!("CARGO_BIN_EXE_salt");
const SALT_CP: &str = env!("CARGO_BIN_EXE_salt-cp");
const SALT_KEY: &str = env!("CARGO_BIN_EXE_salt-key");
const SALT_RUN: &str = env!("CARGO_BIN_EXE_salt-run");
const JID: &str = "20261120134740245008";
const PROBE: &str = "20261120134741000000";

const NO_RESPONSE: &str = "    Minion did not return. [No response]\n    The minions may not have all finished running and any \
                           remaining minions will return upon completion. To look up the return data for this job later, \
                           run the following command:\n    \n    salt-run jobs.lookup_jid 20261120134740245008\n";

impl Done {
    #[track_caller]
    fn is(&self, code: i32, stdout: &str, stderr: &str) {
        assert_eq!((self.code, self.stdout.as_str(), self.stderr.as_str()), (code, stdout, stderr));
    }
}

fn client(master: &FakeMaster) -> LocalClient {
    let config = Config::load(&master.path("conf/master"), Role::Master).unwrap();
    LocalClient::new(ClientOpts::new(&config).unwrap())
}

fn ping() -> Job {
    Job::new("*", "test.ping", vec![])
}
