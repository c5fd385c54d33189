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

/// The tag of the event by which the master's bus tells a subscriber that it was too slow. The event replaces the lost
/// ones.
pub const LOST: &str = "brine/events/lost";

/// A subscription to the bus. Unwanted events are dropped by their tag before their data is decoded.
pub struct BusSubscription {
    path: PathBuf,
    stream: Option<UnixStream>,
    decoder: FrameDecoder,
}

impl BusSubscription {
    /// Connects. The subscription receives every event fired from then on.
    ///
    /// # Errors
    /// When no master listens on the socket, or this user may not open it.
    pub async fn connect(path: PathBuf) -> Result<Self, ClientError> {
        match UnixStream::connect(&path).await {
            Ok(stream) => Ok(Self { path, stream: Some(stream), decoder: FrameDecoder::default() }),
            Err(source) if source.kind() == ErrorKind::PermissionDenied => Err(ClientError::NotPermitted(path)),
            Err(source) => Err(ClientError::MasterDown { socket: path, source }),
        }
    }

    /// Checks that a master runs. The bus answers at once, while a refused TCP connection would only be retried. A user
    /// that may not listen to the bus may still publish.
    pub(crate) async fn probe(path: PathBuf) -> Result<(), ClientError> {
        match Self::connect(path).await {
            Err(ClientError::NotPermitted(_)) => Ok(()),
            connected => connected.map(drop),
        }
    }

    /// Waits for the next event that is `wanted`. Returns none if the master closed the bus; the next call then waits
    /// for the bus to return. An event that does not decode is skipped, because minions' data is on the bus.
    /// Cancel-safe.
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

/// The tag at the start of an encoded event.
fn tag_of(body: &[u8]) -> Option<&str> {
    let end = body.windows(2).position(|pair| pair == b"\n\n")?;
    std::str::from_utf8(&body[..end]).ok()
}
