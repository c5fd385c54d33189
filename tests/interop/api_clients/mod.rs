//! Programs that drive Salt's salt-api, unchanged and in front of ours: pepper, curl as Salt's documentation calls it, and
//! Python's requests. Over TLS, as they are used.

mod curl;
mod pepper;

use std::net::TcpStream;
use std::path::PathBuf;

use brine_kit::ports::free_ports;
use brine_kit::process::{Daemon, run, run_with};
use brine_kit::programs::program;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Master, Minion, python};

use super::python_clients::minions;

const PASSWORD: &str = "right-horse-battery";

/// salt-api with TLS in front of a master with two minions, `one` (role web) and `two` (db), and `down`, which never comes.
struct Api {
    // Ends first.
    _daemon: Daemon,
    url: String,
    /// The server's certificate, PEM.
    certificate: PathBuf,
    _minions: [Minion; 2],
    master: Master,
}

fn start() -> Api {
    let [port] = free_ports();
    let mut master = Master::prepare(
        brine_tests::salt::Kind::Brine,
        &format!(
            "timeout: 15\nsharedsecret: {PASSWORD}\nnodegroups: {{web: 'G@role:web'}}\n\
             external_auth: {{sharedsecret: {{ann: ['.*', '@runner', '@wheel'], joe: [test.ping]}}}}\n\
             token_expire_user_override: {{sharedsecret: [ann]}}\n\
             netapi_enable_clients: [local, local_async, local_batch, local_subset, runner, runner_async, wheel, wheel_async]\n\
             api_logfile: api.log\napi_pidfile: api.pid\n\
             rest_cherrypy: {{host: 127.0.0.1, port: {port}, ssl_crt: ../api.crt, ssl_key: ../api.key}}"
        ),
    );
    let (certificate, key) = (master.path("api.crt"), master.path("api.key"));
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost \
                 -addext subjectAltName=DNS:localhost";
    let (crt, key) = (certificate.display().to_string(), key.display().to_string());
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.extend(["-keyout", &key, "-out", &crt]);
    run("openssl".as_ref(), &words).exits(0);
    master.up();
    let minions = minions(&master);
    std::fs::write(master.path("pki/minions/down"), std::fs::read(master.path("pki/minions/one")).expect("a key"))
        .expect("our own folder");
    let daemon = Daemon::start(&program("salt-api"), &["-c", &master.conf()], &master.path("api.out"));
    wait_for("salt-api to listen", || TcpStream::connect(("127.0.0.1", port)).ok().map(drop));
    let url = format!("https://localhost:{port}");
    Api { _daemon: daemon, url, certificate, _minions: minions, master }
}

#[test]
fn requests_and_the_cookie() {
    let api = start();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/python/api_requests.py");
    let certificate = api.certificate.display().to_string();
    let words = [script, &api.url, &certificate, PASSWORD];
    let output = run_with(&python(), &words, &[("PYTHONDONTWRITEBYTECODE", "1")]);
    eprintln!("{}", output.stdout);
    output.exits(0);
}
