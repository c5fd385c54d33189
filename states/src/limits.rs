//! The bounds of a compile: an SLS is a stranger's.

use std::cell::Cell;

use brine_render::{jinja, yaml};

use crate::fault::{Fault, Res};

/// The bounds of one compile, and of the run of its chunks.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Upper bound on the chunks.
    pub chunks: usize,
    /// Upper bound on the SLS files that are rendered.
    pub files: usize,
    /// Upper bound on the bytes that the renders of all files make.
    pub rendered: usize,
    /// Upper bound on includes within includes: each takes stack.
    pub depth: usize,
    /// Upper bound on requisites between chunks.
    pub edges: usize,
    /// Upper bound on the values that are copied: each of `names` has a copy of its state's arguments.
    pub values: usize,
    /// Upper bound on the comparisons of searches for names and patterns, which grow with the square of a tree.
    pub searches: u64,
    /// Upper bound on the bytes of an error's text that come from a value.
    pub text: usize,
    /// Upper bound on the attempts of a state with `retry`.
    pub attempts: u64,
    /// Upper bound on the seconds between two attempts.
    pub interval: u64,
    /// Upper bound on the seconds that failed attempts and the waits after them take in a run: what comes after a state that never succeeds has to
    /// have its turn before the run's time is over. A parallel state has as many for itself.
    pub patience: u64,
    /// Of each template.
    pub jinja: jinja::Limits,
    /// Of each file.
    pub yaml: yaml::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            chunks: 100_000,
            files: 10_000,
            rendered: 64 << 20,
            depth: 100,
            edges: 1_000_000,
            values: 8_000_000,
            searches: 200_000_000,
            text: 64 << 10,
            attempts: 10_000,
            interval: 86_400,
            patience: 1_800,
            jinja: jinja::Limits::default(),
            yaml: yaml::Limits::default(),
        }
    }
}

/// What is left of the limits.
pub(crate) struct Budget {
    pub(crate) limits: Limits,
    chunks: Cell<usize>,
    files: Cell<usize>,
    rendered: Cell<usize>,
    edges: Cell<usize>,
    values: Cell<usize>,
    searches: Cell<u64>,
    patience: Cell<u64>,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            chunks: Cell::new(limits.chunks),
            files: Cell::new(limits.files),
            rendered: Cell::new(limits.rendered),
            edges: Cell::new(limits.edges),
            values: Cell::new(limits.values),
            searches: Cell::new(limits.searches),
            patience: Cell::new(limits.patience),
            limits,
        }
    }

    pub(crate) fn chunk(&self) -> Res<()> {
        take(&self.chunks, 1, || format!("more than {} states", self.limits.chunks))
    }

    pub(crate) fn file(&self) -> Res<()> {
        take(&self.files, 1, || format!("more than {} SLS files", self.limits.files))
    }

    pub(crate) fn rendered(&self, bytes: usize) -> Res<()> {
        take(&self.rendered, bytes, || format!("the SLS files render to more than {} bytes", self.limits.rendered))
    }

    pub(crate) fn edge(&self) -> Res<()> {
        take(&self.edges, 1, || format!("more than {} requisites", self.limits.edges))
    }

    pub(crate) fn value(&self) -> Res<()> {
        take(&self.values, 1, || format!("the states have more than {} values", self.limits.values))
    }

    pub(crate) fn search(&self, count: usize) -> Res<()> {
        let left = self.searches.get().checked_sub(count as u64);
        self.searches.set(left.ok_or_else(|| {
            Fault::Limit(format!("the names of requisites take more than {} comparisons", self.limits.searches))
        })?);
        Ok(())
    }

    /// Takes the seconds of an attempt that failed and of the wait after it; false if so many are not left.
    pub(crate) fn wait(&self, seconds: u64) -> bool {
        let left = self.patience.get().checked_sub(seconds);
        self.patience.set(left.unwrap_or(self.patience.get()));
        left.is_some()
    }

    pub(crate) fn depth(&self, depth: usize) -> Res<()> {
        if depth < self.limits.depth {
            return Ok(());
        }
        Err(Fault::Limit(format!("more than {} includes within includes", self.limits.depth)))
    }
}

fn take(left: &Cell<usize>, count: usize, message: impl FnOnce() -> String) -> Res<()> {
    left.set(left.get().checked_sub(count).ok_or_else(|| Fault::Limit(message()))?);
    Ok(())
}
