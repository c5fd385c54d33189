//! C: bindings by wit-bindgen, compiled by zig's clang with its WASI libc, and made a component by wit-component. The
//! same sources give the same bytes in every folder.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use wit_bindgen_core::Files;

use super::{Language, Project, componentize};
use crate::failure::Failure;
use crate::wit::Wit;
use crate::{file, tool};

pub(super) struct C;

/// The file with the world's functions. The build compiles all files in its folder.
const MAIN: &str = "src/module.c";

const VERSION: &str = "0.17.0";
const SIZE: &str = "101 MB to fetch, 290 MB on disk; the first build makes its libc";
/// For x86_64 and aarch64.
const REQUIREMENTS: &str = "ziglang==0.17.0 \
    --hash=sha256:97079827064a7492cce5541ceb438ae8003ce1e54e399676da2d62fb7a5dc08b \
    --hash=sha256:d2804f94f54f7fcf8169f4b212a619ad688a4e2e6592e976f0cf2e58e2cd8af3\n";
/// Parts of zig's folder `lib` for other systems: 180 MB.
const UNUSED: [&str; 8] =
    ["docs", "libtsan", "libcxx", "libc/mingw", "libc/glibc", "libc/darwin", "libc/freebsd", "libc/netbsd"];
/// Prefixes of the folders of headers that stay.
const HEADERS: [&str; 2] = ["wasm", "generic-musl"];

impl Language for C {
    fn title(&self) -> &'static str {
        "C"
    }

    fn looks_for(&self) -> &'static str {
        MAIN
    }

    fn template(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (MAIN, include_str!("../../templates/c/module.c.in")),
            ("src/greeting.h", include_str!("../../templates/c/greeting.h.in")),
            ("src/greeting.c", include_str!("../../templates/c/greeting.c.in")),
            ("tests/greeting.c", include_str!("../../templates/c/test.c.in")),
            ("Makefile", include_str!("../../templates/c/Makefile.in")),
            (".gitignore", "/bindings/\n/tests/greeting\n*.wasm\n"),
        ]
    }

    fn engine_template(&self) -> (&'static str, &'static str) {
        (MAIN, include_str!("../../templates/c/module_engine.c.in"))
    }

    fn tour(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (MAIN, "what they do"),
            ("bindings/{{name}}.h", "their types in C, once it is built"),
            ("tests/greeting.c", "a test"),
        ]
    }

    fn test_command(&self) -> &'static str {
        "make test"
    }

    fn build(&self, project: &Project) -> Result<Vec<u8>, Failure> {
        let tool = tool::installed("ziglang", VERSION, SIZE, install)?;
        let sources = sources(&project.dir.join("src"))?;
        // The bindings stay, because an editor needs the header.
        let folder = project.dir.join("bindings");
        let bindings = bindings(&project.wit, &folder)?;

        let (core, cache) = (project.scratch.join("core.wasm"), tool.join("cache"));
        let mut command = tool::command(tool.join("lib/ziglang/zig"));
        // `assert` writes file names into the result. They are relative to the module's folder.
        command.current_dir(&project.dir).env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", &cache);
        command.args(["cc", "--target=wasm32-wasi", "-mexec-model=reactor", "-std=c17", "-Os", "-Wall", "-Wextra"]);
        // Function names stay, so that a trap's backtrace is useful.
        command.args(["-Wl,--strip-debug", "-Isrc", "-Ibindings"]);
        command.args(sources.iter().chain(&bindings).map(|path| seen(&project.dir, path))).arg("-o").arg(&core);
        let hint = format!("remove {} and build again", tool.display());
        tool::run("zig cc", &mut command, &hint)?;
        let core = fs::read(&core).map_err(|error| Failure::unreadable(&core, error))?;
        componentize(core).map_err(explained)
    }
}

fn explained(failure: Failure) -> Failure {
    let words = failure.to_string();
    if words.contains("wasi_snapshot_preview1") {
        return Failure::input(format!(
            "{words}\n  something here calls into WASI (printf, fopen, time, …), which no module has by itself: say things through \
             brine:host/log, and import in wit/world.wit what is needed of the host"
        ));
    }
    failure
}

fn install(dir: &Path) -> Result<(), Failure> {
    tool::pip(dir, REQUIREMENTS)?;
    let lib = dir.join("lib/ziglang/lib");
    for name in UNUSED {
        // The folder may already be missing.
        let _ = fs::remove_dir_all(lib.join(name));
    }
    for entry in fs::read_dir(lib.join("libc/include")).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !HEADERS.iter().any(|kept| name.to_string_lossy().starts_with(kept)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Returns the C files of a folder, sorted by name.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| Failure::unreadable(folder, error);
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            sources.push(path);
        }
    }
    sources.sort();
    Ok(sources)
}

/// Writes header, code and type information for the world. Returns the files to compile and link.
fn bindings(wit: &Wit, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::unwritable(folder, error))?;
    let mut files = Files::default();
    let made = wit_bindgen_c::Opts::default().build().generate(&mut wit.resolve.clone(), wit.world, &mut files);
    made.map_err(|error| Failure::input(format!("there are no bindings in C for the WIT: {error:#}")))?;
    let mut linked = Vec::new();
    for (name, contents) in files.iter() {
        let path = folder.join(name);
        file::write(&path, contents)?;
        if !name.ends_with(".h") {
            linked.push(path);
        }
    }
    Ok(linked)
}

/// Returns a path relative to the folder.
fn seen(folder: &Path, path: &Path) -> OsString {
    path.strip_prefix(folder).unwrap_or(path).into()
}
