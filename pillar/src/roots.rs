//! `pillar_roots`: the environments, and the files of one compilation.
//!
//! As in the file server, the kernel resolves each path beneath its root, so that no symlink and no `..` leads out.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use brine_protocol::ids::{SafePath, Saltenv};

use crate::opts::PillarOpts;
use brine_fileserver::{Ignore, Lister, Root};

/// The environment that is any environment that is not listed.
const ANY: &str = "__env__";
/// The environment that every master has.
pub(crate) const BASE: &str = "base";

/// An environment's folders.
#[derive(Debug)]
pub(crate) struct Env {
    pub(crate) name: String,
    paths: Vec<PathBuf>,
    roots: Vec<Root>,
    lister: Lister,
}

/// All environments.
#[derive(Debug)]
pub(crate) struct Environments {
    listed: Vec<Arc<Env>>,
    /// The folders of `__env__`.
    any: Option<Vec<PathBuf>>,
    follow_symlinks: bool,
}

impl Env {
    fn new(name: &str, paths: Vec<PathBuf>, follow_symlinks: bool) -> Arc<Self> {
        let roots = paths.iter().map(|path| Root::new(path.clone(), follow_symlinks)).collect();
        Arc::new(Self { name: name.to_owned(), paths, roots, lister: Lister::default() })
    }

    /// The names of all SLS files, sorted.
    fn names(&self) -> BTreeSet<String> {
        let listing = self.lister.list(&self.roots, &Ignore::default());
        let name = |path: &String| {
            let stem = path.strip_suffix("/init.sls").or_else(|| path.strip_suffix(".sls"))?;
            Some(stem.replace('/', "."))
        };
        listing.files().filter_map(name).collect()
    }
}

impl Environments {
    pub(crate) fn new(opts: &PillarOpts) -> Self {
        let follow_symlinks = opts.follow_symlinks;
        let env = |(name, paths): &(Saltenv, Vec<PathBuf>)| Env::new(name.as_str(), paths.clone(), follow_symlinks);
        let is_any = |(name, _): &&(Saltenv, Vec<PathBuf>)| name.as_str() == ANY;
        Self {
            listed: opts.roots.iter().filter(|env| !is_any(env)).map(env).collect(),
            any: opts.roots.iter().find(is_any).map(|(_, paths)| paths.clone()),
            follow_symlinks,
        }
    }

    /// The environments for a request that is about `env`: one that is not listed gets the folders of `__env__`.
    pub(crate) fn for_request(&self, env: &str) -> Vec<Arc<Env>> {
        let mut envs = self.listed.clone();
        if let Some(paths) = &self.any
            && !envs.iter().any(|known| known.name == env)
            // A minion names it, and it becomes part of a path.
            && Saltenv::try_from(env).is_ok()
        {
            let paths = paths.iter().map(|path| PathBuf::from(path.to_string_lossy().replace(ANY, env)));
            envs.push(Env::new(env, paths.collect(), self.follow_symlinks));
        }
        envs
    }
}

/// Why a file is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("it has {0} bytes, the limit is pillar_max_file_size: {1}")]
    TooLarge(u64, usize),
    #[error("it is not UTF-8")]
    NotText,
    #[error("it cannot be read: {0}")]
    Unreadable(std::io::ErrorKind),
    #[error("the pillar has more files than pillar_max_files: {0}")]
    TooMany(usize),
    #[error("the pillar takes longer than pillar_timeout: {0} s")]
    Late(u64),
}

/// A file of an environment.
#[derive(Debug, Clone)]
pub(crate) struct PillarFile {
    /// Below the roots.
    pub(crate) rel: String,
    /// On this host, for messages and `tplpath`.
    pub(crate) path: String,
    pub(crate) text: Rc<str>,
}

/// The files of one compilation, and its bounds.
pub(crate) struct Files<'a> {
    envs: &'a [Arc<Env>],
    opts: &'a PillarOpts,
    count: Cell<usize>,
    ends: Instant,
    names: RefCell<HashMap<String, Rc<BTreeSet<String>>>>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(envs: &'a [Arc<Env>], opts: &'a PillarOpts) -> Self {
        Self { envs, opts, count: Cell::new(0), ends: Instant::now() + opts.timeout, names: RefCell::default() }
    }

    /// The names of environments: `base` first, then as configured.
    pub(crate) fn envs(&self) -> Vec<&str> {
        let others = self.envs.iter().map(|env| env.name.as_str()).filter(|name| *name != BASE);
        std::iter::once(BASE).chain(others).collect()
    }

    /// Whether `pillar_roots` has this environment.
    pub(crate) fn has_env(&self, name: &str) -> bool {
        self.env(name).is_some()
    }

    /// Whether the environment has folders.
    pub(crate) fn has_roots(&self, name: &str) -> bool {
        self.env(name).is_some_and(|env| !env.roots.is_empty())
    }

    /// The folders of an environment.
    pub(crate) fn folders(&self, name: &str) -> Option<&'a [PathBuf]> {
        self.env(name).map(|env| env.paths.as_slice())
    }

    fn env(&self, name: &str) -> Option<&'a Env> {
        self.envs.iter().find(|env| env.name == name).map(|env| &**env)
    }

    /// When the compilation has to be done.
    pub(crate) fn ends(&self) -> Instant {
        self.ends
    }

    /// Looks at the clock.
    pub(crate) fn check_time(&self) -> Result<(), ReadError> {
        if Instant::now() > self.ends { Err(ReadError::Late(self.opts.timeout.as_secs())) } else { Ok(()) }
    }

    /// Reads a file; `None` if there is none. A path that leads out of the roots has no file.
    pub(crate) fn read(&self, env: &str, rel: &str) -> Result<Option<PillarFile>, ReadError> {
        self.check_time()?;
        let (Some(env), Some(rel)) = (self.env(env), checked(rel)) else { return Ok(None) };
        let found = env.roots.iter().find_map(|root| Some((root, root.open_file(&rel)?)));
        let Some((root, found)) = found else { return Ok(None) };
        self.count.set(self.count.get() + 1);
        if self.count.get() > self.opts.files_max {
            return Err(ReadError::TooMany(self.opts.files_max));
        }
        let max = self.opts.file_size_max;
        let size = found.metadata.len();
        if size > max as u64 {
            return Err(ReadError::TooLarge(size, max));
        }
        let mut bytes = Vec::with_capacity(size as usize + 1);
        let read = found.file.take(max as u64 + 1).read_to_end(&mut bytes);
        let read = read.map_err(|error| ReadError::Unreadable(error.kind()))?;
        if read > max {
            return Err(ReadError::TooLarge(read as u64, max));
        }
        let text = String::from_utf8(bytes).map_err(|_| ReadError::NotText)?;
        let path = root.path().join(rel.as_str()).to_string_lossy().into_owned();
        Ok(Some(PillarFile { rel: rel.as_str().to_owned(), path, text: text.into() }))
    }

    /// Whether there is a file.
    pub(crate) fn exists(&self, env: &str, rel: &str) -> bool {
        let (Some(env), Some(rel)) = (self.env(env), checked(rel)) else { return false };
        env.roots.iter().any(|root| root.open_file(&rel).is_some())
    }

    /// Whether a path on this host is a file below the roots; `None` if it is not below them.
    pub(crate) fn has_path(&self, path: &str) -> Option<bool> {
        let mut below = None;
        for env in self.envs {
            for (root, folder) in env.roots.iter().zip(&env.paths) {
                let Some(rel) = std::path::Path::new(path).strip_prefix(folder).ok().and_then(|rel| rel.to_str())
                else {
                    continue;
                };
                let found = checked(rel).is_some_and(|rel| root.open_file(&rel).is_some());
                below = Some(below.unwrap_or(false) || found);
            }
        }
        below
    }

    /// The file of an SLS: `a/b.sls` or `a/b/init.sls`.
    pub(crate) fn sls(&self, env: &str, sls: &str) -> Result<Option<PillarFile>, ReadError> {
        let stem = sls.replace('.', "/");
        match self.read(env, &format!("{stem}.sls"))? {
            None => self.read(env, &format!("{stem}/init.sls")),
            found => Ok(found),
        }
    }

    /// The names of SLS files that match a glob, sorted; `None` if there is no such environment.
    pub(crate) fn matching(&self, env: &str, glob: &str) -> Option<Vec<String>> {
        if env != BASE && !self.has_env(env) {
            return None;
        }
        if !glob.contains(['*', '?', '[']) {
            let stem = glob.replace('.', "/");
            let is_there = !glob.contains('/')
                && (self.exists(env, &format!("{stem}.sls")) || self.exists(env, &format!("{stem}/init.sls")));
            return Some(if is_there { vec![glob.to_owned()] } else { Vec::new() });
        }
        let known = self.names.borrow().get(env).cloned();
        let names = known.unwrap_or_else(|| {
            let names = Rc::new(self.env(env).map(Env::names).unwrap_or_default());
            self.names.borrow_mut().insert(env.to_owned(), names.clone());
            names
        });
        let glob = brine_protocol::target::Glob::new(glob);
        Some(names.iter().filter(|name| glob.matches(name)).cloned().collect())
    }
}

/// A path below the roots as a checked one, normalised like `os.path.normpath`; `..` and absolute paths are refused.
fn checked(rel: &str) -> Option<SafePath> {
    let rel = rel.strip_prefix("salt://").unwrap_or(rel);
    if rel.starts_with('/') {
        return None;
    }
    let parts: Vec<&str> = rel.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    SafePath::try_from(parts.join("/")).ok()
}
