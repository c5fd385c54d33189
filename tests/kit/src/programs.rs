//! Where Brine's programs and the modules for tests are.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// Returns the folder of Brine's programs: `BRINE_BIN`, or else the folder of the cargo profile that built this test.
pub fn program_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("BRINE_BIN") {
        return PathBuf::from(folder);
    }
    let exe = std::env::current_exe().expect("this test has a path");
    let folder = exe.parent().expect("a program is in a folder");
    // Tests are in target/PROFILE/deps, the programs one level above.
    folder.parent().filter(|_| folder.ends_with("deps")).unwrap_or(folder).to_path_buf()
}

/// Returns one of Brine's programs.
pub fn program(name: &str) -> PathBuf {
    existing(program_folder().join(name), "build")
}

/// Returns the folder of the executor and the compiler: `BRINE_LIB`, or else that of the other programs.
pub fn library() -> PathBuf {
    std::env::var_os("BRINE_LIB").map_or_else(program_folder, PathBuf::from)
}

/// Returns `brine-executor` or `brine-compiler`, built if it does not exist. Each has a cargo call of its own, because
/// cargo unifies features within one call.
pub fn sandbox_program(name: &str) -> PathBuf {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = BUILDING.lock();
    let path = library().join(name);
    if !path.exists() {
        let built = Command::new(env!("CARGO")).args(["build", "-p", name]).status().expect("cargo runs");
        assert!(built.success() && path.exists(), "{} is missing; `make build` makes it", path.display());
    }
    path
}

/// Returns one of the example modules, such as `hello`.
pub fn example(name: &str) -> PathBuf {
    existing(program_folder().join("../examples").join(format!("{name}.wasm")), "modules")
}

/// Returns one of the modules that only tests use, such as `large`.
pub fn testing(name: &str) -> PathBuf {
    existing(program_folder().join("../testing").join(format!("{name}.wasm")), "modules")
}

fn existing(path: PathBuf, goal: &str) -> PathBuf {
    assert!(path.exists(), "{} is missing: run `make {goal}` first", path.display());
    path
}
