//! Loads compiled code from an open file. The code is unsafe because it maps the file and runs its content.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use wasmtime::component::Component;
use wasmtime::{CustomCodeMemory, Engine};

/// Upper bound on a file of compiled code, which is also the compiler's limit.
const MAX_CODE: u64 = 256 << 20;

/// Upper bound on the bytes of mapped code. wasmtime does not report when it stops using code that it did not map
/// itself, so mappings are never removed: a replaced module leaves a deleted file and some address space. Code beyond
/// this bound is read into memory.
const MAX_MAPPED: u64 = 1 << 30;

/// The engine for the compiler's output: [`brine_engine::config`], and support for code that this module maps.
///
/// # Errors
/// When this host cannot run the engine.
pub fn engine() -> wasmtime::Result<Engine> {
    let mut config = brine_engine::config();
    // On other architectures, code has to be made coherent before it runs. wasmtime does that for code that it reads
    // itself.
    if cfg!(target_arch = "x86_64") {
        config.with_custom_code_memory(Some(Arc::new(Code)));
    }
    Engine::new(&config)
}

/// Attempts to seal the memory images of a component, and the pause after each. The kernel itself waits up to 75 ms in
/// each attempt, and the executor answers nobody meanwhile: so few that the minion does not take it for stuck.
const SEAL_TRIES: u32 = 10;
const SEAL_PAUSE: Duration = Duration::from_millis(5);

/// Loads compiled code, ready to be instantiated. The file is mapped if possible, because a mapped file takes no memory
/// of its own. wasmtime checks the header, its own version and the engine's settings, but not the code itself. The executor therefore
/// accepts only files of the minion's own compiler, as open files that no other user can write.
///
/// # Errors
/// When the file has no code for this engine.
pub fn load(engine: &Engine, file: OwnedFd) -> wasmtime::Result<Component> {
    let component = read(engine, file)?;
    // wasmtime would do this at the first instantiation, where failing would fail a job.
    unless_busy(|| component.initialize_copy_on_write_image())?;
    Ok(component)
}

/// Repeats an attempt while the kernel says that a file is busy. The content of each memory is in a memory file that
/// wasmtime seals against writing, and the kernel refuses that (`EBUSY`, see `F_ADD_SEALS` in fcntl(2)) as long as it
/// uses one of the file's pages itself. It does so for a moment whenever it moves memory.
fn unless_busy(mut attempt: impl FnMut() -> wasmtime::Result<()>) -> wasmtime::Result<()> {
    let is_busy = |error: &wasmtime::Error| {
        let source = error.root_cause().downcast_ref::<io::Error>();
        source.is_some_and(|source| source.kind() == io::ErrorKind::ResourceBusy)
    };
    for _ in 1..SEAL_TRIES {
        match attempt() {
            Err(error) if is_busy(&error) => thread::sleep(SEAL_PAUSE),
            other => return other,
        }
    }
    attempt()
}

fn read(engine: &Engine, file: OwnedFd) -> wasmtime::Result<Component> {
    let mut file = File::from(file);
    // `fstat` on this architecture is a system call that also takes paths, which the walls refuse, so the length is
    // found by seeking.
    let length = file.seek(SeekFrom::End(0))?;
    if length > MAX_CODE {
        wasmtime::bail!("{length} bytes of code are over the limit of {MAX_CODE}");
    }
    // A file system may forbid executing its files. Then, and if the file is not code, reading the file decides.
    if let Some(component) = mapped(engine, &file, length) {
        return Ok(component);
    }
    let mut code = Vec::with_capacity(usize::try_from(length)?);
    file.rewind()?;
    file.take(MAX_CODE).read_to_end(&mut code)?;
    // SAFETY: this host's compiler wrote the file, and the minion passed it. The minion keeps it in a folder that only
    // the minion can write, and replaces files by renaming, never in place (DESIGN.md §3.4). The minion is trusted: it
    // could run any code without the executor.
    unsafe { Component::deserialize(engine, &code) }
}

/// Maps the file by its descriptor, because the path of an open file is found only through /proc, which the walls
/// refuse.
fn mapped(engine: &Engine, file: &File, length: u64) -> Option<Component> {
    static MAPPED: AtomicU64 = AtomicU64::new(0);
    let size = usize::try_from(length).ok().filter(|size| *size > 0)?;
    if MAPPED.load(Ordering::Relaxed).checked_add(length)? > MAX_MAPPED {
        return None;
    }
    // SAFETY: a new mapping at an address that the kernel chooses; no existing memory changes.
    let start = unsafe { rustix::mm::mmap(ptr::null_mut(), size, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }.ok()?;
    let memory = NonNull::slice_from_raw_parts(NonNull::new(start)?.cast::<u8>(), size);
    // SAFETY: as in `read`. After success, the file does not change and is not unmapped.
    match unsafe { Component::deserialize_raw(engine, memory) } {
        Ok(component) => {
            MAPPED.fetch_add(length, Ordering::Relaxed);
            // The pages read during preparation are not those that calls use; calls find their pages in the page cache.
            // SAFETY: this is the mapping from above. Nothing was written to it, so reading it again gives the same
            // content.
            let _ = unsafe { rustix::mm::madvise(start, size, rustix::mm::Advice::LinuxDontNeed) };
            Some(component)
        }
        Err(_) => {
            // SAFETY: this is the mapping from above, and nothing refers to it any more.
            let _ = unsafe { rustix::mm::munmap(start, size) };
            None
        }
    }
}

/// Makes mapped code executable.
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
    // SAFETY: these are wasmtime's own pages of code; they begin and end at page boundaries and contain no other data.
    let done = unsafe { rustix::mm::mprotect(start.cast_mut().cast::<c_void>(), length, to) };
    done.map_err(|error| io::Error::from(error).into())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "makes what it loads")]
mod tests {
    use std::fs;

    use super::*;

    /// Whether the process has mapped this file as code.
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
    fn a_busy_file_is_sealed_a_moment_later() {
        let busy = || wasmtime::Error::from(io::Error::from(rustix::io::Errno::BUSY)).context("sealing");
        let mut left = 3;
        let done = unless_busy(|| {
            left -= 1;
            if left > 0 { Err(busy()) } else { Ok(()) }
        });
        assert!(done.is_ok() && left == 0);
        let mut tries = 0;
        let error = unless_busy(|| {
            tries += 1;
            Err(busy())
        });
        assert_eq!((tries, error.unwrap_err().root_cause().to_string().contains("busy")), (SEAL_TRIES, true));
        let mut tries = 0;
        unless_busy(|| {
            tries += 1;
            Err(io::Error::from(rustix::io::Errno::NOMEM).into())
        })
        .unwrap_err();
        assert_eq!(tries, 1, "another error stays one");
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
