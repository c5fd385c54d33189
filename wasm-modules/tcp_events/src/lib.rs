//! The module `tcp_events`: an engine. Its documentation is in `wit/world.wit`.

wit_bindgen::generate!({
    world: "tcp-events",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/engine-types@1.0.0": brine_guest::host::engine_types,
    },
    generate_all,
});

use brine_guest::{Value, json};
use wasi::io::streams::{InputStream, OutputStream};
use wasi::sockets::instance_network::instance_network;
use wasi::sockets::ip_name_lookup::resolve_addresses;
use wasi::sockets::network::{
    ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress,
};
use wasi::sockets::tcp::{ShutdownType, TcpSocket};
use wasi::sockets::tcp_create_socket::create_tcp_socket;

/// What `blocking-write-and-flush` takes at once.
const MAX_WRITE: usize = 4_096;

struct Module;

impl Guest for Module {
    fn engine(config: Data, events: Vec<Event>, _: Option<Vec<u8>>) -> Result<Answer, String> {
        let settings = Settings::read(&config.value()?)?;
        let lines = events.iter().map(|event| settings.line(event)).collect::<Result<String, String>>()?;
        let done = |handled, error| Ok(Answer { handled, error, state: None });
        match send(&settings, lines.as_bytes()) {
            Ok(()) => done(u32::try_from(events.len()).unwrap_or(u32::MAX), None),
            Err(why) => done(0, Some(format!("{}:{}: {why}", settings.host, settings.port))),
        }
    }
}

struct Settings {
    host: String,
    port: u16,
    token: Option<String>,
}

impl Settings {
    fn read(config: &Value) -> Result<Self, String> {
        let Some(Value::Text(host)) = config.get("host") else {
            return Err("the engine's setting host says where events are sent; it is not set".into());
        };
        let port = match config.get("port") {
            Some(Value::Int(port)) => u16::try_from(*port).ok().filter(|port| *port > 0),
            _ => None,
        };
        let port = port.ok_or("the engine's setting port is to be a number from 1 to 65535")?;
        let token = match config.get("token") {
            None | Some(Value::None) => None,
            Some(Value::Text(token)) if !token.contains(char::is_whitespace) => Some(token.clone()),
            Some(_) => return Err("the engine's setting token is to be text without blanks".into()),
        };
        Ok(Self { host: host.clone(), port, token })
    }

    /// An event as a line. JSON has no line breaks of its own.
    fn line(&self, event: &Event) -> Result<String, String> {
        let value = Value::dict([
            ("tag", Value::Text(event.tag.clone())),
            ("data", event.data.value()?),
            ("source", Value::Text(event.source.clone())),
        ]);
        let text = json::to_text(&value);
        Ok(match &self.token {
            Some(token) => format!("{token} {text}\n"),
            None => format!("{text}\n"),
        })
    }
}

fn send(settings: &Settings, lines: &[u8]) -> Result<(), String> {
    let (socket, _input, output) = reach(&settings.host, settings.port)?;
    for part in lines.chunks(MAX_WRITE) {
        output.blocking_write_and_flush(part).map_err(|_| "the connection broke".to_owned())?;
    }
    drop(output);
    socket.shutdown(ShutdownType::Send).map_err(error("the connection broke"))
}

/// A connection to the first address of a host that takes one.
fn reach(host: &str, port: u16) -> Result<(TcpSocket, InputStream, OutputStream), String> {
    let stream = resolve_addresses(&instance_network(), host).map_err(error("it is not found"))?;
    let mut last = "it has no address".to_owned();
    loop {
        match stream.resolve_next_address() {
            Ok(Some(address)) => match connect(address, port) {
                Ok(connection) => return Ok(connection),
                Err(why) => last = why,
            },
            Ok(None) => return Err(last),
            Err(ErrorCode::WouldBlock) => stream.subscribe().block(),
            Err(code) => return Err(error("it is not found")(code)),
        }
    }
}

fn connect(address: IpAddress, port: u16) -> Result<(TcpSocket, InputStream, OutputStream), String> {
    let (to, family) = match address {
        IpAddress::Ipv4(address) => (IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address }), IpAddressFamily::Ipv4),
        IpAddress::Ipv6(address) => (
            IpSocketAddress::Ipv6(Ipv6SocketAddress { port, flow_info: 0, address, scope_id: 0 }),
            IpAddressFamily::Ipv6,
        ),
    };
    let socket = create_tcp_socket(family).map_err(error("no socket"))?;
    socket.start_connect(&instance_network(), to).map_err(error("no connection"))?;
    loop {
        match socket.finish_connect() {
            Ok((input, output)) => return Ok((socket, input, output)),
            Err(ErrorCode::WouldBlock) => socket.subscribe().block(),
            Err(code) => return Err(error("no connection")(code)),
        }
    }
}

fn error(what: &'static str) -> impl Fn(ErrorCode) -> String {
    move |code| format!("{what}: {}", code.name())
}

export!(Module);
