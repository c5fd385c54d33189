//! `wasi:sockets/tcp` for a call without any rule of `network`. The process of such a call may make no socket, so a guest gets the number
//! of one that does not exist. Each address that it wants to connect to is refused, and told with the line that would grant it.

use std::net::{IpAddr, SocketAddr};

use brine_sandbox_wire::{LogLevel, Wanted};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily, IpSocketAddress, Network};
use wasmtime_wasi::p2::bindings::sockets::tcp::{self, ShutdownType};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable, Pollable, SocketResult, TcpSocket, subscribe};

use crate::guest::Guest;
use crate::network::not_granted;

/// A socket that does not exist.
struct Unconnected {
    family: IpAddressFamily,
    /// What `finish-bind` and `finish-connect` answer.
    step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Made,
    Binding,
    Connecting,
    Refused,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Unconnected {
    async fn ready(&mut self) {}
}

fn ours(socket: &Resource<TcpSocket>) -> Resource<Unconnected> {
    Resource::new_borrow(socket.rep())
}

/// Makes one.
pub(super) fn create(guest: &mut Guest, family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
    let socket = guest.table.push(Unconnected { family, step: Step::Made })?;
    // The guest holds only a number.
    Ok(Resource::new_own(socket.rep()))
}

/// Answers of operations that need a connection, and of options, which nothing reads.
macro_rules! answers {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty = $answer:expr;)+) => {
        $(fn $name(&mut self, socket: Resource<TcpSocket>, $($arg: $type),*) -> SocketResult<$result> {
            let _ = self.table.get(&ours(&socket))?;
            $(let _ = $arg;)*
            $answer.map_err(|code: ErrorCode| code.into())
        })+
    };
}

impl tcp::Host for Guest {}

impl tcp::HostTcpSocket for Guest {
    async fn start_bind(
        &mut self,
        socket: Resource<TcpSocket>,
        network: Resource<Network>,
        address: IpSocketAddress,
    ) -> SocketResult<()> {
        let _ = self.table.get(&network)?;
        let address = SocketAddr::from(address);
        let socket = self.table.get_mut(&ours(&socket))?;
        // What a guest may do before it connects; nobody listens.
        if socket.step != Step::Made || !address.ip().is_unspecified() || address.port() != 0 {
            return Err(ErrorCode::AccessDenied.into());
        }
        socket.step = Step::Binding;
        Ok(())
    }

    fn finish_bind(&mut self, socket: Resource<TcpSocket>) -> SocketResult<()> {
        let socket = self.table.get_mut(&ours(&socket))?;
        if socket.step != Step::Binding {
            return Err(ErrorCode::NotInProgress.into());
        }
        socket.step = Step::Made;
        Ok(())
    }

    fn start_connect(
        &mut self,
        socket: Resource<TcpSocket>,
        network: Resource<Network>,
        address: IpSocketAddress,
    ) -> SocketResult<()> {
        let _ = self.table.get(&network)?;
        let to = SocketAddr::from(address);
        let socket = self.table.get_mut(&ours(&socket))?;
        let is_of_family = matches!(socket.family, IpAddressFamily::Ipv4) == to.is_ipv4();
        if socket.step != Step::Made {
            return Err(ErrorCode::InvalidState.into());
        }
        // Where a real socket does not ask whether it may.
        let is_mapped = matches!(to.ip(), IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
        if !is_of_family || is_mapped || to.port() == 0 || to.ip().is_unspecified() || to.ip().is_multicast() {
            return Err(ErrorCode::InvalidArgument.into());
        }
        socket.step = Step::Connecting;
        self.line.log(LogLevel::Warning, &not_granted(to, &self.module));
        self.line.refused(Wanted::Connection { to });
        Ok(())
    }

    fn finish_connect(
        &mut self,
        socket: Resource<TcpSocket>,
    ) -> SocketResult<(Resource<DynInputStream>, Resource<DynOutputStream>)> {
        let socket = self.table.get_mut(&ours(&socket))?;
        if socket.step != Step::Connecting {
            return Err(ErrorCode::NotInProgress.into());
        }
        socket.step = Step::Refused;
        Err(ErrorCode::AccessDenied.into())
    }

    async fn start_listen(&mut self, socket: Resource<TcpSocket>) -> SocketResult<()> {
        let _ = self.table.get(&ours(&socket))?;
        Err(ErrorCode::AccessDenied.into())
    }

    fn is_listening(&mut self, socket: Resource<TcpSocket>) -> wasmtime::Result<bool> {
        let _ = self.table.get(&ours(&socket))?;
        Ok(false)
    }

    fn address_family(&mut self, socket: Resource<TcpSocket>) -> wasmtime::Result<IpAddressFamily> {
        Ok(self.table.get(&ours(&socket))?.family)
    }

    fn subscribe(&mut self, socket: Resource<TcpSocket>) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(&mut self.table, ours(&socket))
    }

    fn drop(&mut self, socket: Resource<TcpSocket>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Unconnected>::new_own(socket.rep()))?;
        Ok(())
    }

    answers! {
        finish_listen() -> () = Err(ErrorCode::NotInProgress);
        accept() -> (Resource<TcpSocket>, Resource<DynInputStream>, Resource<DynOutputStream>) = Err(ErrorCode::InvalidState);
        local_address() -> IpSocketAddress = Err(ErrorCode::InvalidState);
        remote_address() -> IpSocketAddress = Err(ErrorCode::InvalidState);
        shutdown(how: ShutdownType) -> () = Err(ErrorCode::InvalidState);
        set_listen_backlog_size(value: u64) -> () = Ok(());
        keep_alive_enabled() -> bool = Ok(false);
        set_keep_alive_enabled(value: bool) -> () = Ok(());
        keep_alive_idle_time() -> u64 = Err(ErrorCode::NotSupported);
        set_keep_alive_idle_time(value: u64) -> () = Ok(());
        keep_alive_interval() -> u64 = Err(ErrorCode::NotSupported);
        set_keep_alive_interval(value: u64) -> () = Ok(());
        keep_alive_count() -> u32 = Err(ErrorCode::NotSupported);
        set_keep_alive_count(value: u32) -> () = Ok(());
        hop_limit() -> u8 = Err(ErrorCode::NotSupported);
        set_hop_limit(value: u8) -> () = Ok(());
        receive_buffer_size() -> u64 = Err(ErrorCode::NotSupported);
        set_receive_buffer_size(value: u64) -> () = Ok(());
        send_buffer_size() -> u64 = Err(ErrorCode::NotSupported);
        set_send_buffer_size(value: u64) -> () = Ok(());
    }
}
