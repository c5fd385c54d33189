//! `brine:host/watches`: what happens to files, from the broker.

use brine_sandbox_wire::{HostOp, Watch, WatchesOp};
use serde::Deserialize;
use wasmtime::component::HasSelf;

use super::Link;
use super::bindings::brine::host::watches as wit;
use crate::guest::Guest;

/// The capability `changes` has this interface too.
pub(super) const LINK: Link =
    ("brine:host/watches", |linker| wit::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest));

type Taken = Result<Vec<wit::Event>, String>;

#[derive(Deserialize)]
struct Event {
    number: u64,
    watch: String,
    path: String,
    name: Option<String>,
    mask: u32,
    cookie: u32,
}

impl From<wit::Watch> for Watch {
    fn from(wit::Watch { path, mask, recurse, auto_add, skip }: wit::Watch) -> Self {
        Self { path, mask, recurse, auto_add, skip }
    }
}

impl From<Event> for wit::Event {
    fn from(Event { number, watch, path, name, mask, cookie }: Event) -> Self {
        Self { number, watch, path, name, mask, cookie }
    }
}

impl wit::Host for Guest {
    async fn take(&mut self, watches: Vec<wit::Watch>, after: u64) -> wasmtime::Result<Taken> {
        self.watched("watches.take", watches, after, 0).await
    }

    async fn wait(&mut self, watches: Vec<wit::Watch>, after: u64, most_ms: u32) -> wasmtime::Result<Taken> {
        self.watched("watches.wait", watches, after, most_ms).await
    }
}

impl Guest {
    async fn watched(
        &mut self,
        what: &'static str,
        watches: Vec<wit::Watch>,
        after: u64,
        wait_ms: u32,
    ) -> wasmtime::Result<Taken> {
        let watches = watches.into_iter().map(Into::into).collect();
        let op = HostOp::Watches(WatchesOp::Take { watches, after, wait_ms });
        let taken = self.ask_for::<Vec<Event>>(what, op).await?;
        Ok(taken.map(|events| events.into_iter().map(Into::into).collect()))
    }
}
