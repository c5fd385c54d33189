//! A salt-api with a scripted master, and clients that write bytes.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brine_api::chunk::Client;
use brine_api::link::{Answer, Caller, Cursor, Follow, Link, LinkError, Watch};
use brine_api::listen::Server;
use brine_api::pages::{AppOpts, Paths};
use brine_api::rules::Rules;
use brine_api::settings::TlsFiles;
use brine_api::state::{Api, Live};
use brine_api::tls::Tls;
use brine_client::runner::Started;
use brine_client::{Job, LogIn, Published};
use brine_protocol::config::{Config, Role};
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{Value, ValueExt as _, empty_map, map};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

/// The password of ann.
pub const PASSWORD: &str = "right-horse-battery";
/// The time within which salt-api answers whatever else there is.
pub const SECOND: Duration = Duration::from_secs(1);

/// The token of ann.
pub fn token() -> String {
    "a1".repeat(32)
}

/// A log-in as JSON.
pub fn log_in(user: &str, password: &str) -> String {
    format!(r#"{{"username": "{user}", "password": "{password}", "eauth": "pam"}}"#)
}

/// A master that knows ann.
#[derive(Debug, Default)]
pub struct Double {
    /// Who tried to log in, and from where.
    pub log_ins: Mutex<Vec<(String, IpAddr)>>,
    /// The jobs, runners and functions of the wheel that were called.
    pub calls: AtomicUsize,
    /// Whether the master is away.
    pub is_away: AtomicBool,
}

impl Double {
    fn call<T>(&self, caller: &Caller, answer: T) -> Result<T, LinkError> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(LinkError::Away);
        }
        self.calls.fetch_add(1, Ordering::SeqCst);
        if *caller.token.secret().expose() == token() { Ok(answer) } else { Err(LinkError::Denied("No.".to_owned())) }
    }

    /// The number of attempts to log in.
    pub fn tried(&self) -> usize {
        self.log_ins.lock().unwrap().len()
    }
}

impl Link for Double {
    fn is_up(&self) -> bool {
        !self.is_away.load(Ordering::SeqCst)
    }

    fn log_in<'a>(&'a self, log_in: &'a LogIn, from: IpAddr) -> Answer<'a, Value> {
        Box::pin(async move {
            if self.is_away.load(Ordering::SeqCst) {
                return Err(LinkError::Away);
            }
            let LogIn::External { username, password, .. } = log_in else { panic!("a name and a password") };
            self.log_ins.lock().unwrap().push((username.clone(), from));
            match (username.as_str(), password.expose() == PASSWORD) {
                ("many", _) => Err(LinkError::TooMany(Duration::from_secs(17))),
                ("slow", _) => std::future::pending().await,
                ("ann", true) => Ok(map([
                    ("token", Value::from(token())),
                    ("name", Value::from("ann")),
                    ("eauth", Value::from("pam")),
                    ("start", Value::from(1000)),
                    ("expire", Value::from(2000)),
                ])),
                _ => Err(LinkError::Denied("No.".to_owned())),
            }
        })
    }

    fn token<'a>(&'a self, caller: &'a Caller) -> Answer<'a, Option<Value>> {
        Box::pin(async move {
            if self.is_away.load(Ordering::SeqCst) {
                return Err(LinkError::Away);
            }
            Ok((*caller.token.secret().expose() == token()).then(|| map([("name", "ann")])))
        })
    }

    fn perms<'a>(&'a self, _: &'a Caller) -> Answer<'a, Vec<Value>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn end_token<'a>(&'a self, _: &'a Caller) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn publish<'a>(&'a self, caller: &'a Caller, _: &'a Job) -> Answer<'a, Published> {
        let published = Published { jid: "20260101000000000000".to_owned(), minions: Vec::new(), missing: Vec::new() };
        Box::pin(async move { self.call(caller, published) })
    }

    fn runner<'a>(
        &'a self,
        caller: &'a Caller,
        _: &'a str,
        _: Vec<Value>,
        _: Vec<(String, Value)>,
    ) -> Answer<'a, Started> {
        let started = Started { tag: "salt/run/1".to_owned(), jid: "20260101000000000000".to_owned() };
        Box::pin(async move { self.call(caller, started) })
    }

    fn wheel<'a>(
        &'a self,
        caller: &'a Caller,
        _: &'a str,
        _: Vec<Value>,
        _: Vec<(String, Value)>,
    ) -> Answer<'a, Value> {
        Box::pin(async move { self.call(caller, empty_map()) })
    }

    fn query<'a>(&'a self, caller: &'a Caller, _: &'a str, _: Value) -> Answer<'a, Value> {
        Box::pin(async move { self.call(caller, empty_map()) })
    }

    fn fire_hook<'a>(&'a self, caller: Option<&'a Caller>, _: IpAddr, _: &'a str, _: Value) -> Answer<'a, ()> {
        Box::pin(async move { self.call(caller.ok_or_else(|| LinkError::Denied("No.".to_owned()))?, ()) })
    }

    fn watch<'a>(&'a self, _: &'a Caller, _: Option<Cursor>) -> Answer<'a, Watch> {
        Box::pin(async { Err(LinkError::Away) })
    }

    fn follow(&self) -> Follow {
        panic!("no test waits for a result")
    }

    fn timeouts(&self) -> (Duration, Duration) {
        (SECOND, SECOND)
    }
}

/// A salt-api.
pub struct Running {
    pub master: Arc<Double>,
    pub server: Server,
    pub address: SocketAddr,
    tls: bool,
}

impl Running {
    /// With these settings below `rest_cherrypy`, without TLS.
    pub async fn start(yaml: &str) -> Self {
        Self::start_with(yaml, false).await
    }

    /// With these settings below `rest_cherrypy`.
    pub async fn start_with(yaml: &str, tls: bool) -> Self {
        let yaml = format!("rest_cherrypy: {{{yaml}}}");
        let config = Config::from_yaml(&yaml, Path::new("/etc/salt/master"), Role::Master).unwrap();
        let clients = ["local_async", "runner_async", "wheel", "wheel_async"];
        let live = Live {
            clients: clients.iter().map(|name| Client::parse(name).unwrap()).collect(),
            rules: Rules::from_config(&config).unwrap(),
            groups: Nodegroups::default(),
            rest_timeout: Duration::from_secs(5),
            open_stats: false,
        };
        let files = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http").join(name);
        let files = TlsFiles { crt: files("api.crt"), key: files("api.key"), chain: None };
        let tls = tls.then(|| Arc::new(Tls::read(&files).unwrap()));
        let is_tls = tls.is_some();
        let prefix = config.value("rest_cherrypy:root_prefix").and_then(|prefix| prefix.text()).unwrap_or_default();
        let own = env!("CARGO_MANIFEST_DIR");
        let app = AppOpts {
            page: Some(Path::new(own).join("tests/http/main.rs")),
            path: "/app".to_owned(),
            folder: Some(Path::new(own).join("tests/http")),
            folder_path: "/static".to_owned(),
            icon: Some(Path::new(own).join("tests/http/main.rs")),
        };
        let paths = Paths { prefix: prefix.to_owned(), hook: "/hook".to_owned() };
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
        let master = Arc::<Double>::default();
        let api = Arc::new(Api::new(Arc::clone(&master) as Arc<dyn Link>, tls.is_some(), paths, app, live));
        Self { master, server: Server::start(listener, tls, api), address, tls: is_tls }
    }

    /// A connection from 127.0.0.`last`.
    pub async fn connect_from(&self, last: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    /// A connection with TLS from 127.0.0.1.
    pub async fn connect_tls(
        &self,
        alpn: &[&[u8]],
        versions: &[&'static SupportedProtocolVersion],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(include_bytes!("api.crt")).unwrap()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let stream = self.connect_from(1).await;
        TlsConnector::from(Arc::new(config)).connect("api.example".try_into().unwrap(), stream).await
    }

    /// Sends bytes from 127.0.0.`last`, and reads until the connection ends.
    pub async fn raw(&self, last: u8, bytes: &[u8]) -> String {
        exchange(self.connect_from(last).await, bytes).await
    }

    /// Sends one request, and reads its answer.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.send_from(1, method, path, headers, body).await
    }

    /// Sends one request from 127.0.0.`last`, and reads its answer.
    pub async fn send_from(&self, last: u8, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let request = request(method, path, headers, body);
        let reply = if self.tls {
            let versions = [&tokio_rustls::rustls::version::TLS13];
            exchange(self.connect_tls(&[], &versions).await.unwrap(), request.as_bytes()).await
        } else {
            self.raw(last, request.as_bytes()).await
        };
        Reply::parse(&reply)
    }

    /// Logs ann in, which has to take less than a second.
    pub async fn log_in_at_once(&self, last: u8) {
        let began = std::time::Instant::now();
        let reply = self.send_from(last, "POST", "/login", &[], &log_in("ann", PASSWORD)).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(began.elapsed() < SECOND, "/login took {:?}", began.elapsed());
    }
}

/// A request after which the connection ends.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    let has = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    for (name, value) in [("Host", "api.example"), ("Content-Type", "application/json")] {
        if !has(name) {
            request += &format!("{name}: {value}\r\n");
        }
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request + &format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Sends bytes and reads until the other side closes. Errors are an end too: who is refused may be cut off.
pub async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> String {
    let _ = stream.write_all(bytes).await;
    let _ = stream.flush().await;
    let mut reply = Vec::new();
    let read = async {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut piece).await {
            reply.extend_from_slice(&piece[..length]);
        }
    };
    tokio::time::timeout(Duration::from_secs(45), read).await.expect("the connection ends");
    String::from_utf8_lossy(&reply).into_owned()
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}
