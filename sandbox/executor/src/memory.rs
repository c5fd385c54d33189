//! Bounds the memory of an instance: everything together must stay within the call's limit and within the memory that
//! the minion lent so far.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use wasmtime::ResourceLimiterAsync;

use crate::failure::HostFailure;
use crate::line::Line;

/// Upper bound on the core instances of one component: Rust, C and JavaScript need 3; Python links dynamically and
/// needs up to 40.
const MAX_INSTANCES: usize = 64;
/// Upper bounds on the memories and tables of one component. Languages use one or two.
const MAX_MEMORIES: usize = 4;
const MAX_TABLES: usize = 16;
/// Bytes that an element of a table counts: a pointer, and the preparation of the function that it may refer to.
const TABLE_ELEMENT: u64 = 16;

/// The memory of an instance.
#[derive(Debug)]
pub struct Memory {
    limit: u64,
    held: u64,
    peak: u64,
    last_grown: u64,
    refused: bool,
    /// Requests more memory from the minion.
    line: Arc<Line>,
}

/// The type that `async_trait` generates.
type Growing<'a> = Pin<Box<dyn Future<Output = wasmtime::Result<bool>> + Send + 'a>>;

impl Memory {
    /// Limits an instance to this many bytes.
    #[must_use]
    pub fn new(limit: u64, line: Arc<Line>) -> Self {
        Self { limit, held: 0, peak: 0, last_grown: 0, refused: false, line }
    }

    /// The largest number of bytes held at once.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Whether the limit refused a request.
    #[must_use]
    pub fn refused(&self) -> bool {
        self.refused
    }

    fn grow(&mut self, more: u64) -> Growing<'_> {
        let Some(held) = self.held.checked_add(more).filter(|held| *held <= self.limit) else {
            self.refused = true;
            return Box::pin(ready(Ok(false)));
        };
        let Some(asked) = self.line.hold(held) else {
            self.take(held, more);
            return Box::pin(ready(Ok(true)));
        };
        Box::pin(async move {
            match asked.await {
                Ok(Ok(())) => {
                    // The lease is the whole limit now.
                    let _ = self.line.hold(held);
                    self.take(held, more);
                    Ok(true)
                }
                Ok(Err(error)) => Err(HostFailure::NoMemory(error).into()),
                Err(_) => Err(HostFailure::NoMemory("the minion gave no answer".into()).into()),
            }
        })
    }

    fn take(&mut self, held: u64, more: u64) {
        self.held = held;
        self.last_grown = more;
        self.peak = self.peak.max(held);
    }

    fn undo(&mut self) {
        self.held -= self.last_grown;
        self.last_grown = 0;
        let _ = self.line.hold(self.held);
    }

    /// Whether the memory's own maximum forbids the growth. Then the growth fails by itself and does not concern the
    /// budget.
    fn forbidden(&mut self, desired: usize, maximum: Option<usize>) -> bool {
        let forbidden = maximum.is_some_and(|maximum| desired > maximum);
        if forbidden {
            self.last_grown = 0;
        }
        forbidden
    }
}

fn wide(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

impl ResourceLimiterAsync for Memory {
    fn memory_growing<'a, 'r>(&'a mut self, current: usize, desired: usize, maximum: Option<usize>) -> Growing<'r>
    where
        'a: 'r,
        Self: 'r,
    {
        match self.forbidden(desired, maximum) {
            true => Box::pin(ready(Ok(true))),
            false => self.grow(wide(desired.saturating_sub(current))),
        }
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.undo();
        Ok(())
    }

    fn table_growing<'a, 'r>(&'a mut self, current: usize, desired: usize, maximum: Option<usize>) -> Growing<'r>
    where
        'a: 'r,
        Self: 'r,
    {
        match self.forbidden(desired, maximum) {
            true => Box::pin(ready(Ok(true))),
            false => self.grow(wide(desired.saturating_sub(current)).saturating_mul(TABLE_ELEMENT)),
        }
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.undo();
        Ok(())
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 1 << 16;

    #[tokio::test]
    async fn more_than_was_lent_is_asked_for_once_and_given_back_while_little_is_held() {
        let line = Arc::new(Line::new(1, 0, 0).within(Some(2 * PAGE as u64)));
        let mut memory = Memory::new(8 * PAGE as u64, Arc::clone(&line));
        assert!(memory.memory_growing(0, 2 * PAGE, None).await.unwrap());
        assert!(line.outgoing().is_empty());
        let answer = async {
            tokio::task::yield_now().await;
            assert!(matches!(line.outgoing()[..], [brine_sandbox_wire::FromExecutor::Grow { call: 1 }]));
            assert!(!line.give_back(2 * PAGE as u64), "it asks for more");
            line.grown(None);
        };
        let (grown, ()) = tokio::join!(memory.memory_growing(2 * PAGE, 4 * PAGE, None), answer);
        assert!(grown.unwrap());
        // The call may now use its whole limit, but no more.
        assert!(memory.memory_growing(4 * PAGE, 8 * PAGE, None).await.unwrap());
        assert!(!memory.memory_growing(8 * PAGE, 9 * PAGE, None).await.unwrap());
        assert!(memory.refused() && line.outgoing().is_empty());
        assert!(!line.give_back(2 * PAGE as u64));
        assert!(line.give_back(8 * PAGE as u64));
        assert!(!line.give_back(8 * PAGE as u64), "it was given back before");
        assert_eq!(memory.peak(), 8 * PAGE as u64);
    }

    #[tokio::test]
    async fn who_gets_no_more_is_told_why() {
        let line = Arc::new(Line::new(1, 0, 0).within(Some(PAGE as u64)));
        let mut memory = Memory::new(8 * PAGE as u64, Arc::clone(&line));
        let refuse = async {
            tokio::task::yield_now().await;
            line.grown(Some("busy".into()));
        };
        let (grown, ()) = tokio::join!(memory.memory_growing(0, 2 * PAGE, None), refuse);
        assert_eq!(grown.unwrap_err().to_string(), "busy");
    }
}
