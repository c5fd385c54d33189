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
use rustix::process::Signal;

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

/// The configuration of a master and of salt-api with a certificate. Returns also salt-api's port.
fn prepare() -> (Master, u16) {
    let [port] = free_ports();
    let master = Master::prepare(
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
    certify(&master);
    (master, port)
}

/// Makes a key and a certificate, new ones each time.
fn certify(master: &Master) {
    let (crt, key) = (master.path("api.crt").display().to_string(), master.path("api.key").display().to_string());
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost \
                 -addext subjectAltName=DNS:localhost";
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.extend(["-keyout", &key, "-out", &crt]);
    run("openssl".as_ref(), &words).exits(0);
}

fn start() -> Api {
    let (mut master, port) = prepare();
    master.up();
    let minions = minions(&master);
    std::fs::write(master.path("pki/minions/down"), std::fs::read(master.path("pki/minions/one")).expect("a key"))
        .expect("our own folder");
    let daemon = serve(&master, port);
    let (url, certificate) = (format!("https://localhost:{port}"), master.path("api.crt"));
    Api { _daemon: daemon, url, certificate, _minions: minions, master }
}

fn serve(master: &Master, port: u16) -> Daemon {
    let daemon = Daemon::start(&program("salt-api"), &["-c", &master.conf()], &master.path("api.out"));
    wait_for("salt-api to listen", || TcpStream::connect(("127.0.0.1", port)).ok().map(drop));
    daemon
}

/// SIGHUP takes new certificates up, for connections from then on; what cannot be used leaves the old ones.
#[test]
fn sighup_loads_certificates_anew() {
    let (master, port) = prepare();
    let daemon = serve(&master, port);
    let (url, file) = (format!("https://localhost:{port}/"), master.path("api.crt").display().to_string());
    let trusts = |certificate: &str| run("curl".as_ref(), &["-sS", "--cacert", certificate, &url]).code == 0;
    let first = master.path("first.crt");
    std::fs::copy(&file, &first).expect("our own folder");
    let first = first.display().to_string();
    assert!(trusts(&first));
    certify(&master);
    assert!(trusts(&first) && !trusts(&file), "not before SIGHUP");
    daemon.signal(Signal::HUP);
    wait_for("the new certificate", || trusts(&file).then_some(()));
    assert!(!trusts(&first));
    let second = master.path("second.crt").display().to_string();
    std::fs::copy(&file, &second).expect("our own folder");
    std::fs::write(&file, "no certificate").expect("our own folder");
    daemon.signal(Signal::HUP);
    daemon.wait_log("the one before stays");
    assert!(trusts(&second));
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
