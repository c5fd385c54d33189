//! Turns an open file of compiled code into a component. Unsafe: it maps the file, and runs what it is given.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use wasmtime::component::Component;
use wasmtime::{CustomCodeMemory, Engine};

/// The largest file of compiled code: what the compiler's cage lets it write.
const MAX_CODE: u64 = 256 << 20;

/// Bytes of code that are mapped. wasmtime does not say when it has let go of code that it did not map itself, so what is mapped
/// stays: of a module that is replaced, a file without a name and some address space. What comes after so many bytes is read.
const MAX_MAPPED: u64 = 1 << 30;

/// The engine that runs what the compiler made: [`brine_engine::config`], and code that was mapped here.
///
/// # Errors
/// Where this host cannot run it.
pub fn engine() -> wasmtime::Result<Engine> {
    let mut config = brine_engine::config();
    // Elsewhere code has to be made coherent before it runs, which wasmtime sees to where it has read it.
    if cfg!(target_arch = "x86_64") {
        config.with_custom_code_memory(Some(Arc::new(Code)));
    }
    Engine::new(&config)
}

/// The code of a file, mapped where it can be: a mapped file costs no memory of its own. wasmtime checks its header, its own version and
/// the engine's settings; the code itself it has to take as it is, which is why only the minion's own compiler's files come
/// here, as open files that nobody else can write.
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
    // A file system may forbid that its files are run; then, as where it is no code, the other way has the last word.
    if let Some(component) = mapped(engine, &file, length) {
        return Ok(component);
    }
    let mut code = Vec::with_capacity(usize::try_from(length)?);
    file.rewind()?;
    file.take(MAX_CODE).read_to_end(&mut code)?;
    // SAFETY: the file is what this host's compiler wrote, handed over by the minion, which keeps it in a folder that only it
    // can write and replaces files by renaming, never in place (DESIGN.md §3.4). The minion is trusted with
    // this: it could run any code it likes without us.
    unsafe { Component::deserialize(engine, &code) }
}

/// The same without a path: the way from an open file to its name leads through /proc, which the walls refuse.
fn mapped(engine: &Engine, file: &File, length: u64) -> Option<Component> {
    static MAPPED: AtomicU64 = AtomicU64::new(0);
    let size = usize::try_from(length).ok().filter(|size| *size > 0)?;
    if MAPPED.load(Ordering::Relaxed).checked_add(length)? > MAX_MAPPED {
        return None;
    }
    // SAFETY: a new mapping at an address of the kernel's choice; no memory of ours is touched.
    let start = unsafe { rustix::mm::mmap(ptr::null_mut(), size, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }.ok()?;
    let memory = NonNull::slice_from_raw_parts(NonNull::new(start)?.cast::<u8>(), size);
    // SAFETY: as in `load`, and nobody changes the file or unmaps it where this succeeds.
    match unsafe { Component::deserialize_raw(engine, memory) } {
        Ok(component) => {
            MAPPED.fetch_add(length, Ordering::Relaxed);
            // What was read to make it ready is not what its calls run. Those find their pages in the system's cache.
            // SAFETY: the mapping of above. Nothing was written to it, so what is read again is the same.
            let _ = unsafe { rustix::mm::madvise(start, size, rustix::mm::Advice::LinuxDontNeed) };
            Some(component)
        }
        Err(_) => {
            // SAFETY: the mapping of above, which nothing refers to any more.
            let _ = unsafe { rustix::mm::munmap(start, size) };
            None
        }
    }
}

/// Makes code executable that is mapped for reading only.
struct Code;

impl CustomCodeMemory for Code {
    fn required_alignment(&self) -> usize {
        rustix::param::page_size()
    }

    fn publish_executable(&self, start: *const u8, length: usize) -> wasmtime::Result<()> {
        protect(start, length, MprotectFlags::READ | MprotectFlags::EXEC)
    }

    fn unpublish_executable(&self, start: *const u8, length: usize) -> wasmtime::Result<()> {
        protect(start, length, MprotectFlags::READ)
    }
}

fn protect(start: *const u8, length: usize, to: MprotectFlags) -> wasmtime::Result<()> {
    // SAFETY: wasmtime's own pages of code, which none of ours are among: they start and end at pages' bounds.
    let done = unsafe { rustix::mm::mprotect(start.cast_mut().cast::<c_void>(), length, to) };
    done.map_err(|error| io::Error::from(error).into())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "makes what it loads")]
mod tests {
    use std::fs;

    use super::*;

    /// Whether the process has this file mapped as code.
    fn runs(path: &std::path::Path) -> bool {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().any(|line| line.contains(" r-xp ") && line.ends_with(path.to_str().unwrap()))
    }

    #[test]
    fn code_is_mapped_and_runs() {
        let engine = engine().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("code");
        let source = r#"(component
            (core module $m (func (export "f") (result i32) i32.const 7))
            (core instance $i (instantiate $m))
            (func (export "f") (result u32) (canon lift (core func $i "f"))))"#;
        let compiled = brine_engine::engine().unwrap().precompile_component(&wat::parse_str(source).unwrap()).unwrap();
        fs::write(&path, &compiled).unwrap();
        let component = load(&engine, File::open(&path).unwrap().into()).unwrap();
        assert_eq!(runs(&path), cfg!(target_arch = "x86_64"));
        let mut store = wasmtime::Store::new(&engine, ());
        store.set_epoch_deadline(1);
        let linker = wasmtime::component::Linker::new(&engine);
        let instance = linker.instantiate(&mut store, &component).unwrap();
        let f = instance.get_typed_func::<(), (u32,)>(&mut store, "f").unwrap();
        assert_eq!(f.call(&mut store, ()).unwrap(), (7,));
        drop((store, component));
        assert!(!runs(&path), "what is let go of can be run no more");
    }

    #[test]
    fn what_is_no_code_is_mapped_by_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("code");
        for what in [&b""[..], b"\0asm", &[0x7f; 9_000]] {
            fs::write(&path, what).unwrap();
            assert!(load(&engine().unwrap(), File::open(&path).unwrap().into()).is_err());
            let maps = fs::read_to_string("/proc/self/maps").unwrap();
            assert!(!maps.contains(path.to_str().unwrap()));
        }
    }
}
