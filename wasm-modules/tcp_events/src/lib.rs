//! The module `tcp_events`: an engine. Its documentation is in `wit/world.wit`.

wit_bindgen::generate!({
    world: "tcp-events",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/engine-types@1.0.0": brine_guest::host::engine_types,
        "wasi:io/error@0.2.6": brine_tcp::wasi::io::error,
        "wasi:io/poll@0.2.6": brine_tcp::wasi::io::poll,
        "wasi:io/streams@0.2.6": brine_tcp::wasi::io::streams,
        "wasi:sockets/network@0.2.6": brine_tcp::wasi::sockets::network,
        "wasi:sockets/instance-network@0.2.6": brine_tcp::wasi::sockets::instance_network,
        "wasi:sockets/ip-name-lookup@0.2.6": brine_tcp::wasi::sockets::ip_name_lookup,
        "wasi:sockets/tcp@0.2.6": brine_tcp::wasi::sockets::tcp,
        "wasi:sockets/tcp-create-socket@0.2.6": brine_tcp::wasi::sockets::tcp_create_socket,
    },
    generate_all,
});

use brine_guest::{Value, json};
use brine_tcp::Connection;

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
    let mut connection = Connection::open(&settings.host, settings.port)?;
    connection.send(lines)?;
    connection.end()
}

export!(Module);
