//! `wasi:io`: streams, their errors, and what waits for them.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::bindings::io::{error, poll, streams};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable, StreamError, StreamResult};

use super::{Recorded, Spy, args, rows, spied, waiting_rows};
use crate::guest::Guest;

/// Upper bound on the bytes of a replayed write to a standard stream, as for other calls.
const MAX_OUTPUT: usize = 64 << 10;

pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    error::add_to_linker::<Guest, Spy>(linker, spied)?;
    poll::add_to_linker::<Guest, Spy>(linker, spied)?;
    streams::add_to_linker::<Guest, Spy>(linker, spied)
}

impl error::Host for Recorded<'_> {}

impl error::HostError for Recorded<'_> {
    rows! {
        "wasi:io/error.error", error::HostError, |guest| guest.table;
        to_debug_string(error: Resource<streams::Error>) -> wasmtime::Result<String>;
    }

    fn drop(&mut self, error: Resource<streams::Error>) -> wasmtime::Result<()> {
        if self.0.replays() { Ok(()) } else { error::HostError::drop(&mut self.0.table, error) }
    }
}

impl poll::Host for Recorded<'_> {
    waiting_rows! {
        "wasi:io/poll", poll::Host, |guest| guest.table;
        poll(pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>>;
    }
}

impl poll::HostPollable for Recorded<'_> {
    waiting_rows! {
        "wasi:io/poll.pollable", poll::HostPollable, |guest| guest.table;
        block(pollable: Resource<DynPollable>) -> wasmtime::Result<()>;
        ready(pollable: Resource<DynPollable>) -> wasmtime::Result<bool>;
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        if self.0.replays() { Ok(()) } else { poll::HostPollable::drop(&mut self.0.table, pollable) }
    }
}

impl streams::Host for Recorded<'_> {
    /// The error of a failed operation becomes a handle, whose number is recorded.
    fn convert_stream_error(&mut self, error: StreamError) -> wasmtime::Result<streams::StreamError> {
        if !matches!(error, StreamError::LastOperationFailed(_)) {
            return streams::Host::convert_stream_error(&mut self.0.table, error);
        }
        let (name, asked) = ("wasi:io/streams.stream-error", args!());
        let handle = match self.0.replayed::<Resource<streams::Error>, _>(name, &asked) {
            Some(handle) => handle,
            None => {
                let error = streams::Host::convert_stream_error(&mut self.0.enter().table, error);
                let handle = error.map(|error| match error {
                    streams::StreamError::LastOperationFailed(handle) => handle,
                    streams::StreamError::Closed => Resource::new_own(u32::MAX),
                });
                self.0.told(name, asked, handle)
            }
        };
        Ok(streams::StreamError::LastOperationFailed(handle?))
    }
}

impl streams::HostInputStream for Recorded<'_> {
    rows! {
        "wasi:io/streams.input-stream", streams::HostInputStream, |guest| guest.table;
        read(stream: Resource<DynInputStream>, length: u64) -> StreamResult<Vec<u8>>;
        skip(stream: Resource<DynInputStream>, length: u64) -> StreamResult<u64>;
        subscribe(stream: Resource<DynInputStream>) -> wasmtime::Result<Resource<DynPollable>>;
    }
    waiting_rows! {
        "wasi:io/streams.input-stream", streams::HostInputStream, |guest| guest.table;
        blocking_read(stream: Resource<DynInputStream>, length: u64) -> StreamResult<Vec<u8>>;
        blocking_skip(stream: Resource<DynInputStream>, length: u64) -> StreamResult<u64>;
    }

    async fn drop(&mut self, stream: Resource<DynInputStream>) -> wasmtime::Result<()> {
        if self.0.replays() { Ok(()) } else { streams::HostInputStream::drop(&mut self.0.table, stream).await }
    }
}

impl streams::HostOutputStream for Recorded<'_> {
    rows! {
        "wasi:io/streams.output-stream", streams::HostOutputStream, |guest| guest.table;
        check_write(stream: Resource<DynOutputStream>) -> StreamResult<u64>;
        subscribe(stream: Resource<DynOutputStream>) -> wasmtime::Result<Resource<DynPollable>>;
        write_zeroes(stream: Resource<DynOutputStream>, length: u64) -> StreamResult<()>;
        flush(stream: Resource<DynOutputStream>) -> StreamResult<()>;
        splice(
            stream: Resource<DynOutputStream>,
            from: Resource<DynInputStream>,
            length: u64
        ) -> StreamResult<u64>;
    }
    waiting_rows! {
        "wasi:io/streams.output-stream", streams::HostOutputStream, |guest| guest.table;
        blocking_write_zeroes_and_flush(stream: Resource<DynOutputStream>, length: u64) -> StreamResult<()>;
        blocking_flush(stream: Resource<DynOutputStream>) -> StreamResult<()>;
        blocking_splice(
            stream: Resource<DynOutputStream>,
            from: Resource<DynInputStream>,
            length: u64
        ) -> StreamResult<u64>;
    }

    fn write(&mut self, stream: Resource<DynOutputStream>, bytes: Vec<u8>) -> StreamResult<()> {
        let (name, asked) = ("wasi:io/streams.output-stream.write", args!(stream, bytes));
        if let Some(told) = self.0.replayed(name, &asked) {
            self.logged(&stream, &bytes);
            return told;
        }
        let told = streams::HostOutputStream::write(&mut self.0.enter().table, stream, bytes);
        self.0.told(name, asked, told)
    }

    async fn blocking_write_and_flush(
        &mut self,
        stream: Resource<DynOutputStream>,
        bytes: Vec<u8>,
    ) -> StreamResult<()> {
        let (name, asked) = ("wasi:io/streams.output-stream.blocking-write-and-flush", args!(stream, bytes));
        if let Some(told) = self.0.replayed(name, &asked) {
            self.logged(&stream, &bytes);
            return told;
        }
        let guest = self.0.enter();
        let told = streams::HostOutputStream::blocking_write_and_flush(&mut guest.table, stream, bytes).await;
        self.0.told(name, asked, told)
    }

    async fn drop(&mut self, stream: Resource<DynOutputStream>) -> wasmtime::Result<()> {
        if self.0.replays() {
            self.0.output(stream.rep(), None);
            return Ok(());
        }
        streams::HostOutputStream::drop(&mut self.0.table, stream).await
    }
}

impl Recorded<'_> {
    /// Logs what a replayed call writes to a standard stream: errors name the last line of the log.
    fn logged(&mut self, stream: &Resource<DynOutputStream>, bytes: &[u8]) {
        let level = self.0.recorder.as_ref().and_then(|recorder| recorder.level(stream.rep()));
        if let Some(level) = level {
            self.0.stdio(level).take(&bytes[..bytes.len().min(MAX_OUTPUT)]);
        }
    }
}
