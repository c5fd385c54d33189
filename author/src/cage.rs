//! Reads a module by the compiler in its cage, because the module may be hostile.

use std::path::{Path, PathBuf};

use brine_component::ModuleInfo;
use brine_minion::config::Package;
use brine_sandbox::{CompileCost, CompileLimits, ModuleName, Sha256Hex};
use sha2::{Digest, Sha256};

use crate::asks::Asks;
use crate::failure::{self, Failure};
use crate::file;

/// A module under examination.
pub(crate) struct Module {
    pub(crate) path: PathBuf,
    /// The module's name from the file name; `module` if the file name does not contain a valid one.
    pub(crate) name: String,
    pub(crate) wasm: Vec<u8>,
    pub(crate) sha256: Sha256Hex,
    pub(crate) info: ModuleInfo,
    pub(crate) asks: Asks,
    /// The cost of compiling it, or why it cannot be compiled. None: it was not compiled.
    pub(crate) compiled: Option<Result<CompileCost, String>>,
}

impl Module {
    /// Reads a module, and compiles it if `compile` is true.
    pub(crate) fn read(path: &Path, compile: bool) -> Result<Self, Failure> {
        let wasm = file::read(path)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::failed(format!("cannot run programs: {error}")))?;
        let compiler = package()?.compiler;
        let examine = |compile| {
            runtime.block_on(brine_sandbox::examine(compiler.clone(), CompileLimits::default(), &wasm, compile))
        };
        let no_module = |why: String| Failure::input(format!("{} {why}", path.display()));
        let (info, compiled) = match (examine(compile), compile) {
            (Ok((info, compiled)), _) => (info, compiled.map(Ok)),
            // The description of a module that cannot be compiled is still useful.
            (Err(why), true) => match examine(false) {
                Ok((info, _)) => (info, Some(Err(why))),
                Err(_) => return Err(no_module(why)),
            },
            (Err(why), false) => return Err(no_module(why)),
        };
        let name = file::module_name(path).map_or_else(|_| "module".to_owned(), |name: ModuleName| name.to_string());
        let sha256 = Sha256Hex::from(<[u8; 32]>::from(Sha256::digest(&wasm)));
        let asks = Asks::of(&info.imports);
        Ok(Self { path: path.to_owned(), name, wasm, sha256, info, asks, compiled })
    }

    pub(crate) fn version(&self) -> &str {
        self.info.version.as_deref().unwrap_or("(no version)")
    }
}

/// Returns the sandbox's programs.
pub(crate) fn package() -> Result<Package, Failure> {
    Package::find().map_err(|error| Failure::new(failure::UNAVAILABLE, error.to_string()))
}
