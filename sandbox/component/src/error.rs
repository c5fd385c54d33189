//! Why a component cannot be read.

/// Why a file is not a module. Each text is one line for the operator, and continues a sentence that begins with the
/// file's name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReadError {
    /// Not WebAssembly at all.
    #[error("is not WebAssembly: it does not begin with \"\\0asm\"")]
    NotWasm,
    /// WebAssembly, but not a component.
    #[error("is a core WebAssembly module, not a component (wasm-component-ld or `wasm-tools component new` make one)")]
    NotComponent,
    /// An interface description without code.
    #[error("is a WIT package, not a component: it has no code")]
    WitPackage,
    /// It does not parse or does not validate.
    #[error("is not a valid component: {0}")]
    Malformed(String),
    /// There is nothing to call.
    #[error("exports no function")]
    NoFunctions,
    /// Two exports have the same name for callers.
    #[error("exports {first} and {second}, which would both be called {name}")]
    Clash {
        /// The name, in snake_case.
        name: String,
        /// One export.
        first: String,
        /// The other.
        second: String,
    },
    /// The description is invalid.
    #[error("is described in a way that cannot be read, as by a compiler of another version")]
    Garbled,
    /// A bound of this crate is exceeded.
    #[error("{what}; the limit is {limit}")]
    TooMuch {
        /// The item that exceeds the bound.
        what: String,
        /// The bound.
        limit: usize,
    },
}

impl ReadError {
    /// Makes one of another crate's error, which has line breaks and may quote the file.
    pub(crate) fn malformed(error: impl std::fmt::Display) -> Self {
        // `:#` is anyhow's form with all causes.
        Self::Malformed(brine_text::joined(&format!("{error:#}"), 400))
    }
}
