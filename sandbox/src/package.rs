//! The package folder: the sandbox's two programs and the standard modules.

use std::path::{Path, PathBuf};

/// The environment variable that names the package folder and overrides the default places.
const BRINE_LIB: &str = "BRINE_LIB";

/// A part of the package was not found.
#[derive(Debug, thiserror::Error)]
#[error("{part} is in none of {}; install the whole package, or name its folder in the environment variable {BRINE_LIB}", .tried.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "))]
pub struct PackageError {
    part: &'static str,
    tried: Vec<PathBuf>,
}

/// The parts of the package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The program that runs instances.
    pub executor: PathBuf,
    /// The program that compiles modules.
    pub compiler: PathBuf,
    /// The standard modules.
    pub modules: PathBuf,
}

impl Package {
    /// Searches in `BRINE_LIB`, else beside the program: in `../lib/brine` of an installation, or in the program's own
    /// folder of a build.
    ///
    /// # Errors
    /// When a part of the package is missing; the error names the part and the folders.
    pub fn find() -> Result<Self, PackageError> {
        let named = std::env::var_os(BRINE_LIB).map(PathBuf::from);
        let program = std::env::current_exe().ok();
        Self::find_in(named.as_deref(), program.as_deref().and_then(Path::parent))
    }

    fn find_in(named: Option<&Path>, program_dir: Option<&Path>) -> Result<Self, PackageError> {
        let mut places = Vec::new();
        match (named, program_dir) {
            (Some(dir), _) => places.push(dir.to_owned()),
            (None, Some(dir)) => places.extend([dir.join("../lib/brine"), dir.to_owned()]),
            (None, None) => {}
        }
        let first = |part: &'static str, candidates: Vec<PathBuf>| {
            candidates.iter().find(|p| p.exists()).cloned().ok_or(PackageError { part, tried: candidates })
        };
        let program = |name: &'static str| first(name, places.iter().map(|p| p.join(name)).collect());
        let modules = places.iter().flat_map(|p| [p.join("modules"), p.join("../modules")]).collect();
        Ok(Self {
            executor: program("brine-executor")?,
            compiler: program("brine-compiler")?,
            modules: first("the folder of standard modules", modules)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn fill(dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        for name in ["brine-executor", "brine-compiler"] {
            fs::write(dir.join(name), "").unwrap();
        }
    }

    #[test]
    fn installed_built_and_named_layouts_are_found() {
        let root = tempfile::tempdir().unwrap();
        let installed = root.path().join("usr/lib/brine");
        fill(&installed);
        fs::create_dir_all(installed.join("modules")).unwrap();
        let bin = root.path().join("usr/bin");
        fs::create_dir_all(&bin).unwrap();
        assert!(Package::find_in(None, Some(&bin)).is_ok());

        let built = root.path().join("target/debug");
        fill(&built);
        fs::create_dir_all(root.path().join("target/modules")).unwrap();
        let package = Package::find_in(None, Some(&built)).unwrap();
        assert_eq!(package.executor, built.join("brine-executor"));
        assert_eq!(package.modules, built.join("../modules"));

        let error = Package::find_in(Some(&root.path().join("nowhere")), Some(&built)).unwrap_err();
        assert!(error.to_string().contains("nowhere") && error.to_string().contains("BRINE_LIB"), "{error}");
    }
}
