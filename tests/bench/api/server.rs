//! A master with one minion and salt-api in front, of either kind, as in production: with TLS.

use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use brine_kit::ports::free_ports;
use brine_kit::process::{Daemon, run};
use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master, Minion, python};
use serde_json::{Value, json};

use super::http::{Address, Caller, NAME};

const PASSWORD: &str = "right-horse-battery";
/// The minion's id.
pub(super) const ID: &str = "bench";
/// Time that an idle daemon gets before its memory is measured.
const QUIET: Duration = Duration::from_secs(3);

/// The daemons.
pub(super) struct Server {
    pub(super) daemon: Daemon,
    _minion: Minion,
    master: Master,
    pub(super) address: Address,
}

/// Whether this kind has a salt-api here: Python's needs CherryPy.
pub(super) fn is_there(kind: Kind) -> bool {
    kind == Kind::Brine || run(&python(), &["-c", "import cherrypy"]).code == 0
}

impl Server {
    pub(super) fn start(kind: Kind) -> Self {
        let [port] = free_ports();
        let mut master = Master::prepare(
            kind,
            &format!(
                "timeout: 60\ngather_job_timeout: 30\nsharedsecret: {PASSWORD}\n\
                 external_auth: {{sharedsecret: {{admin: ['.*', '@runner', '@wheel', '@events']}}}}\n\
                 netapi_enable_clients: [local, local_async, wheel]\napi_logfile: api.log\napi_pidfile: api.pid\n\
                 rest_cherrypy: {{host: 127.0.0.1, port: {port}, ssl_crt: ../api.crt, ssl_key: ../api.key}}"
            ),
        );
        let (certificate, key) = (master.path("api.crt"), master.path("api.key"));
        let words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"];
        let subject = format!("/CN={NAME}");
        let name = format!("subjectAltName=DNS:{NAME}");
        let (crt, key) = (certificate.display().to_string(), key.display().to_string());
        let more = ["-subj", &subject, "-addext", &name, "-addext", "basicConstraints=critical,CA:FALSE"];
        let files = ["-keyout", &key, "-out", &crt];
        run("openssl".as_ref(), &[&words[..], &more[..], &files[..]].concat()).exits(0);
        // Python's takes paths as they are written.
        let config = master.path("conf/master");
        let text = std::fs::read_to_string(&config).expect("our own file");
        let text = text.replace("../api.crt", &crt).replace("../api.key", &key);
        std::fs::write(&config, text).expect("our own file");
        master.log_level = "warning";
        master.up();
        let mut minion = Minion::prepare(kind, ID, master.ret_port, &format!("publish_port: {}", master.publish_port));
        minion.log_level = "warning";
        master.accept(&mut minion);
        let words = ["-c", &master.conf(), "-l", "warning"];
        let daemon = Daemon::start(&kind.program("salt-api"), &words, &master.path("api.out"));
        wait_for("salt-api to listen", || TcpStream::connect(("127.0.0.1", port)).ok().map(drop));
        std::thread::sleep(QUIET);
        let certificate = std::fs::read_to_string(certificate).expect("openssl has written it");
        Self { daemon, _minion: minion, master, address: Address::new(port, &certificate) }
    }

    /// The socket on which local programs fire events.
    pub(super) fn bus(&self) -> PathBuf {
        self.master.path("sock/master_event_pull.ipc")
    }

    /// Logs in, and returns the token.
    pub(super) async fn log_in(&self) -> String {
        let log_in = json!({"username": "admin", "password": PASSWORD, "eauth": "sharedsecret"});
        let (status, answer) = Caller::new(&self.address, "").post("/login", &log_in).await;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let token = answer["return"][0]["token"].as_str();
        token.unwrap_or_else(|| panic!("no log-in: {status} {answer}")).to_owned()
    }
}
