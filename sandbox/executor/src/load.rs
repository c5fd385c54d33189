//! Turns an open file of compiled code into a component. Unsafe: it runs what it is given.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};

use wasmtime::Engine;
use wasmtime::component::Component;

/// The largest file of compiled code: what the compiler's cage lets it write.
const MAX_CODE: u64 = 256 << 20;

/// Maps the code. wasmtime checks its header, its own version and the engine's settings; the code itself it has to take as it is,
/// which is why only the minion's own compiler's files come here, as open files that nobody else can write.
///
/// # Errors
/// Where it is no code of this engine.
pub fn load(engine: &Engine, file: OwnedFd) -> wasmtime::Result<Component> {
    let mut file = File::from(file);
    // Its metadata could be had by a call only that takes paths too, which the walls refuse.
    let length = file.seek(SeekFrom::End(0))?;
    if length > MAX_CODE {
        wasmtime::bail!("{length} bytes of code are over the limit of {MAX_CODE}");
    }
    // A mapped file costs no memory of its own. The way there leads through /proc, which confinement may have closed; then the
    // code is read, which is as good and costs its size.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    #[expect(clippy::disallowed_methods, reason = "asks whether the one open file can be opened by its number")]
    let reachable = File::open(&path).is_ok();
    if reachable {
        // SAFETY: the file is what this host's compiler wrote, handed over by the minion, which keeps it in a folder that only it
        // can write and replaces files by renaming, never in place (DESIGN.md §3.4). The minion is trusted with
        // this: it could run any code it likes without us.
        return unsafe { Component::deserialize_file(engine, &path) };
    }
    let mut code = Vec::with_capacity(usize::try_from(length)?);
    file.rewind()?;
    file.take(MAX_CODE).read_to_end(&mut code)?;
    // SAFETY: as above.
    unsafe { Component::deserialize(engine, &code) }
}
