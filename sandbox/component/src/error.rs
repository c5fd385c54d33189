//! Why a component cannot be read.

/// Why a file is no module. One line each, for the operator who put the file there: what follows its name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReadError {
    /// Not WebAssembly at all.
    #[error("is not WebAssembly: it does not begin with \"\\0asm\"")]
    NotWasm,
    /// WebAssembly, but not a component.
    #[error("is a core WebAssembly module, not a component (wasm-component-ld or `wasm-tools component new` make one)")]
    NotComponent,
    /// An interface description and no code.
    #[error("is a WIT package, not a component: it has no code")]
    WitPackage,
    /// It does not parse or does not validate.
    #[error("is not a valid component: {0}")]
    Malformed(String),
    /// Nothing to call.
    #[error("exports no function")]
    NoFunctions,
    /// Two exports would be called by one name.
    #[error("exports {first} and {second}, which would both be called {name}")]
    Clash {
        /// The name, in snake_case.
        name: String,
        /// One export.
        first: String,
        /// The other.
        second: String,
    },
    /// What was said of it is no description.
    #[error("is described in a way that cannot be read, as by a compiler of another version")]
    Garbled,
    /// Over a bound of this crate.
    #[error("{what}; the limit is {limit}")]
    TooMuch {
        /// What there is too much of.
        what: String,
        /// How much there may be.
        limit: usize,
    },
}

/// Errors of other crates have line breaks, and may quote the file.
pub(crate) fn one_line(text: &str) -> String {
    brine_text::joined(text, 400)
}
