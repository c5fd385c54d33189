//! A subscription to the master's event bus that survives a restart of the master.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::event::{Event, FrameDecoder};
use brine_protocol::value::ValueExt as _;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;

use crate::ClientError;

/// The pause between attempts to reach a bus that was there before.
const RECONNECT: Duration = Duration::from_millis(200);

/// The event by which the master's bus tells a subscriber that it was too slow, in the place of what it lost.
pub const LOST: &str = "brine/events/lost";

/// The bus. Events of no interest are dropped by their tag, before their data is decoded.
pub struct Bus {
    path: PathBuf,
    stream: Option<UnixStream>,
    decoder: FrameDecoder,
}

impl Bus {
    /// Connects; everything that is fired from then on is received.
    ///
    /// # Errors
    /// When no master listens there, or this user may not.
    pub async fn connect(path: PathBuf) -> Result<Self, ClientError> {
        match UnixStream::connect(&path).await {
            Ok(stream) => Ok(Self { path, stream: Some(stream), decoder: FrameDecoder::default() }),
            Err(source) if source.kind() == ErrorKind::PermissionDenied => Err(ClientError::NotPermitted(path)),
            Err(source) => Err(ClientError::MasterDown { socket: path, source }),
        }
    }

    /// Checks that a master runs. The bus tells at once, while a refused TCP connection is only retried. A user that may not
    /// listen to the bus may still publish.
    pub(crate) async fn probe(path: PathBuf) -> Result<(), ClientError> {
        match Self::connect(path).await {
            Err(ClientError::NotPermitted(_)) => Ok(()),
            connected => connected.map(drop),
        }
    }

    /// The next event that is `wanted`; none if the master closed the bus (the next call waits for it to come back).
    /// An event that does not decode is left out: the bus carries what minions send. Cancel-safe.
    pub async fn next(&mut self, wanted: impl Fn(&str) -> bool) -> Option<Event> {
        loop {
            let Some(stream) = &mut self.stream else {
                tokio::time::sleep(RECONNECT).await;
                if let Ok(stream) = UnixStream::connect(&self.path).await {
                    tracing::info!("the master's event bus is back");
                    self.decoder = FrameDecoder::default();
                    self.stream = Some(stream);
                }
                continue;
            };
            match self.decoder.next_body() {
                Ok(Some(body)) => {
                    let Some(tag) = tag_of(&body) else { continue };
                    if !wanted(tag) {
                        if tag == LOST {
                            warn_of_loss(&body);
                        }
                        continue;
                    }
                    match Event::decode(&body) {
                        Ok(event) => return Some(event),
                        Err(error) => tracing::warn!("left out an event that does not decode: {error}"),
                    }
                }
                Ok(None) => match stream.read_buf(self.decoder.buffer()).await {
                    Ok(0) => return self.lost("it closed the connection"),
                    Ok(_) => {}
                    Err(error) => return self.lost(&error.to_string()),
                },
                Err(error) => return self.lost(&error.to_string()),
            }
        }
    }

    fn lost(&mut self, why: &str) -> Option<Event> {
        tracing::warn!("lost the master's event bus: {why}");
        self.stream = None;
        None
    }
}

fn warn_of_loss(body: &[u8]) {
    let lost = Event::decode(body).ok().and_then(|event| event.data.get_u64("lost")).unwrap_or_default();
    tracing::warn!(
        "the master's event bus was faster than this command, which lost {lost} events; what it shows may lack returns: salt-run \
         jobs.lookup_jid JID has them all"
    );
}

/// The tag in front of an encoded event.
fn tag_of(body: &[u8]) -> Option<&str> {
    let end = body.windows(2).position(|pair| pair == b"\n\n")?;
    std::str::from_utf8(&body[..end]).ok()
}
