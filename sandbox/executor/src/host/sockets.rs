//! `wasi:sockets`: TCP connections to granted addresses, and look-ups of names by the minion's resolver. Listening and
//! UDP are not available.

use std::net::IpAddr;
use std::sync::Arc;

use brine_sandbox_wire::hosts::NetworkHost;
use brine_sandbox_wire::{ByteBuf, HostError, HostOp, LogLevel, MAX_OPEN_REQUESTS, NetworkOp, Wanted};
use tokio::sync::oneshot::error::TryRecvError;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{self, ResolveAddressStream};
use wasmtime_wasi::p2::bindings::sockets::network::{self, ErrorCode, IpAddress, IpAddressFamily, Network as Handle};
use wasmtime_wasi::p2::bindings::sockets::tcp_create_socket;
use wasmtime_wasi::p2::{DynPollable, Pollable, SocketError, SocketResult, TcpSocket, subscribe};
use wasmtime_wasi::sockets::WasiSocketsView;

use super::parsed;
use crate::failure::HostFailure;
use crate::guest::Guest;
use crate::line::{Answer, Line, answered};
use crate::network::Network;

/// The name of the look-up in errors.
const RESOLVE: &str = "ip-name-lookup";

/// Upper bound on the bytes of the minion's reply.
const MAX_ANSWER: u64 = 64 << 10;

/// Upper bound on the look-ups of a guest that have no answer yet. The guest may make any other request meanwhile.
const MAX_LOOKUPS: usize = MAX_OPEN_REQUESTS as usize - 1;

/// Upper bound on the characters of a name in a message.
const MAX_SHOWN: usize = 260;

impl network::Host for Guest {
    fn network_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        network::Host::network_error_code(&mut self.sockets(), error)
    }

    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }
}

impl network::HostNetwork for Guest {
    fn drop(&mut self, network: Resource<Handle>) -> wasmtime::Result<()> {
        network::HostNetwork::drop(&mut self.sockets(), network)
    }
}

impl tcp_create_socket::Host for Guest {
    fn create_tcp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.room().map_err(SocketError::trap)?;
        if self.unconnected {
            return super::unconnected::create(self, family);
        }
        if self.network().is_empty() {
            // No process without a grant makes a socket. In a recorded call, the address is never said.
            self.line.refused(Wanted::Socket);
        }
        let socket = tcp_create_socket::Host::create_tcp_socket(&mut self.sockets(), family)?;
        self.tcp.push(socket.rep());
        Ok(socket)
    }
}

/// The look-up of a name: pending, or with its addresses.
struct Lookup {
    name: String,
    network: Arc<Network>,
    line: Arc<Line>,
    state: State,
}

enum State {
    Asked(Answer),
    Known(Result<std::vec::IntoIter<IpAddr>, Unknown>),
}

/// Why a look-up has no addresses.
enum Unknown {
    Code(ErrorCode),
    /// The failure ends the guest, so it is returned once.
    Failure(Option<HostFailure>),
}

impl Lookup {
    fn found(&self, answer: &[u8]) -> Result<std::vec::IntoIter<IpAddr>, Unknown> {
        let texts: Vec<String> = parsed(RESOLVE, answer).map_err(|failure| Unknown::Failure(Some(failure)))?;
        let addresses: Vec<IpAddr> = texts.iter().filter_map(|text| text.parse().ok()).collect();
        let usable = self.network.learn(&self.name, &addresses);
        if usable.is_empty() {
            let name = brine_text::short(&self.name, MAX_SHOWN);
            let text = match addresses.first() {
                Some(address) => {
                    format!("{name} leads to {address}, which is reached only where that address itself is granted")
                }
                None => format!("{name} has no addresses"),
            };
            self.line.log(LogLevel::Warning, &text);
            return Err(Unknown::Code(if addresses.is_empty() {
                ErrorCode::NameUnresolvable
            } else {
                ErrorCode::AccessDenied
            }));
        }
        Ok(usable.into_iter())
    }

    fn answered(&mut self, answer: Option<Result<ByteBuf, HostError>>) {
        let answer = answered(RESOLVE, answer, MAX_ANSWER);
        self.state = State::Known(match answer {
            Ok(Ok(answer)) => self.found(&answer),
            Ok(Err(error)) => {
                let name = brine_text::short(&self.name, MAX_SHOWN);
                self.line.log(LogLevel::Warning, &format!("{name} is not found: {error}"));
                Err(Unknown::Code(ErrorCode::NameUnresolvable))
            }
            Err(failure) => Err(Unknown::Failure(Some(failure))),
        });
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Lookup {
    async fn ready(&mut self) {
        if let State::Asked(answer) = &mut self.state {
            let answer = answer.await.ok();
            self.answered(answer);
        }
    }
}

impl ip_name_lookup::Host for Guest {
    fn resolve_addresses(
        &mut self,
        network: Resource<Handle>,
        name: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        let _ = self.table.get(&network)?;
        let state = match NetworkHost::read(&name) {
            Some(NetworkHost::Address(address)) => State::Known(Ok(vec![address].into_iter())),
            // The minion counts a look-up until it has an answer, so a stream that the guest has dropped counts too.
            Some(NetworkHost::Name(_)) if self.line.open_requests() >= MAX_LOOKUPS => {
                return Err(ErrorCode::TemporaryResolverFailure.into());
            }
            Some(NetworkHost::Name(_)) => {
                let op = HostOp::Network(NetworkOp::Resolve { name: name.clone() });
                match self.begin(op).map_err(SocketError::trap)? {
                    Ok(answer) => State::Asked(answer),
                    Err(_) => return Err(ErrorCode::InvalidArgument.into()),
                }
            }
            None => return Err(ErrorCode::InvalidArgument.into()),
        };
        let lookup = Lookup { name, network: self.network(), line: Arc::clone(&self.line), state };
        let stream = self.table.push(lookup)?;
        // The guest holds only a number. This cast makes the number refer to a look-up of this crate.
        Ok(Resource::new_own(stream.rep()))
    }
}

fn ours(stream: &Resource<ResolveAddressStream>) -> Resource<Lookup> {
    Resource::new_borrow(stream.rep())
}

impl ip_name_lookup::HostResolveAddressStream for Guest {
    fn resolve_next_address(&mut self, stream: Resource<ResolveAddressStream>) -> SocketResult<Option<IpAddress>> {
        let lookup = self.table.get_mut(&ours(&stream))?;
        if let State::Asked(answer) = &mut lookup.state {
            match answer.try_recv() {
                Ok(answer) => lookup.answered(Some(answer)),
                Err(TryRecvError::Closed) => lookup.answered(None),
                Err(TryRecvError::Empty) => {}
            }
        }
        match &mut lookup.state {
            State::Asked(_) => Err(ErrorCode::WouldBlock.into()),
            State::Known(Ok(addresses)) => Ok(addresses.next().map(Into::into)),
            State::Known(Err(Unknown::Code(code))) => Err((*code).into()),
            State::Known(Err(Unknown::Failure(failure))) => Err(match failure.take() {
                Some(failure) => SocketError::trap(failure),
                None => ErrorCode::NameUnresolvable.into(),
            }),
        }
    }

    fn subscribe(&mut self, stream: Resource<ResolveAddressStream>) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(&mut self.table, ours(&stream))
    }

    fn drop(&mut self, stream: Resource<ResolveAddressStream>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Lookup>::new_own(stream.rep()))?;
        Ok(())
    }
}
