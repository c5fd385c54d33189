//! The files under `file_roots`, and the answers to requests about them.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use brine_protocol::ids::{SafePath, Saltenv};
use brine_protocol::value::{Value, ValueExt, empty_map, map};

use crate::hash::HashCache;
use crate::listing::{Ignore, Lister, Listing};
use crate::opts::TreeOpts;
use crate::root::{Found, Root};

/// The field of `_serve_file` with the bytes that the client wants (PROTOCOL §6.5.2). The answer has it too, as far as it is granted.
pub const LENGTH: &str = "length";
/// The field of its answer with the bytes of the whole file, where the client said a length.
pub const SIZE: &str = "size";
/// Upper bound on the bytes of a piece that a client asks for. The server holds a piece in memory for each request that it answers.
const MAX_LENGTH: u64 = 1 << 20;

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRequest {
    /// The environments.
    Envs,
    /// The files of an environment.
    List,
    /// Its folders.
    DirList,
    /// Its folders without entries.
    EmptyDirs,
    /// Its symbolic links, with their targets.
    Symlinks,
    /// Whether there is a file, and its state.
    Find,
    /// The hash of a file.
    Hash,
    /// The hash and the state of a file.
    HashAndStat,
    /// A piece of a file.
    Serve,
}

impl FileRequest {
    /// The kind that a command on the wire names.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "_file_envs" => Self::Envs,
            "_file_list" => Self::List,
            "_dir_list" => Self::DirList,
            "_file_list_emptydirs" => Self::EmptyDirs,
            "_symlink_list" => Self::Symlinks,
            "_file_find" => Self::Find,
            "_file_hash" => Self::Hash,
            "_file_hash_and_stat" => Self::HashAndStat,
            "_serve_file" => Self::Serve,
            _ => return None,
        })
    }
}

/// The files of all environments. Its calls block while they read the disk.
pub struct FileTree {
    pub(crate) envs: BTreeMap<Saltenv, Env>,
    pub(crate) hashes: HashCache,
    pub(crate) ignore: Ignore,
    buffer_size: usize,
}

/// The folders of an environment.
pub(crate) struct Env {
    pub(crate) roots: Vec<Root>,
    pub(crate) lister: Lister,
}

impl FileTree {
    /// Makes the tree of these settings.
    ///
    /// # Errors
    /// `file_ignore_regex` has a text that is no regular expression.
    pub fn new(opts: &TreeOpts) -> Result<Self, String> {
        let mut envs: BTreeMap<Saltenv, Env> = BTreeMap::new();
        for (name, paths) in &opts.roots {
            let roots = paths.iter().map(|path| Root::new(path.clone(), opts.follow_symlinks)).collect();
            envs.insert(name.clone(), Env { roots, lister: Lister::default() });
        }
        Ok(Self {
            envs,
            hashes: HashCache::new(opts.hash_type),
            ignore: Ignore::new(&opts.ignore_glob, &opts.ignore_regex)?,
            buffer_size: opts.buffer_size,
        })
    }

    /// Forgets unused hashes.
    pub fn upkeep(&self) {
        self.hashes.upkeep();
    }

    /// The number of hashes in memory.
    pub fn remembered_hashes(&self) -> usize {
        self.hashes.remembered()
    }

    /// Forgets the lists of the environments for which `is_meant` is true. Returns their names.
    pub fn forget_lists(&self, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
        let meant = self.envs.iter().filter(|(name, _)| is_meant(name.as_str()));
        meant.filter(|(_, env)| env.lister.forget()).map(|(name, _)| name.as_str().to_owned()).collect()
    }

    /// Answers a request. A missing file has Salt's empty answer. A request may name further files (`also.rs`).
    pub fn answer(&self, what: FileRequest, load: &Value) -> Value {
        let answer = self.answer_one(what, load);
        self.answer_also(what, load, answer)
    }

    /// Answers a request about one file, or about none.
    pub(crate) fn answer_one(&self, what: FileRequest, load: &Value) -> Value {
        match what {
            FileRequest::Envs => Value::Array(self.envs.keys().map(Value::from).collect()),
            FileRequest::List => self.names(load, |listing| Box::new(listing.files.iter())),
            FileRequest::DirList => self.names(load, |listing| Box::new(listing.dirs.keys())),
            FileRequest::EmptyDirs => self
                .names(load, |listing| Box::new(listing.dirs.iter().filter(|(_, empty)| **empty).map(|(dir, _)| dir))),
            FileRequest::Symlinks => self.symlinks(load),
            FileRequest::Find => match self.find(load) {
                // Not the path on this host: Salt's clients only check whether it is empty.
                Some(found) => map([
                    ("path", Value::from(found.path.as_str())),
                    ("rel", Value::from(found.path.as_str())),
                    ("stat", stat(&found)),
                    ("back", Value::from("roots")),
                ]),
                None => map([("path", ""), ("rel", "")]),
            },
            FileRequest::Hash => self.find(load).and_then(|found| self.hash(&found)).unwrap_or_else(|| Value::from("")),
            FileRequest::HashAndStat => {
                match self.find(load).and_then(|found| Some((self.hash(&found)?, stat(&found)))) {
                    Some((hash, stat)) => Value::Array(vec![hash, stat]),
                    None => Value::Array(vec![Value::from(""), Value::Nil]),
                }
            }
            FileRequest::Serve => self.serve(load).unwrap_or_else(|| map([("data", ""), ("dest", "")])),
        }
    }

    fn env(&self, load: &Value, from_path: Option<&str>) -> Option<&Env> {
        let name = from_path.or_else(|| load.get_text("saltenv"))?;
        self.envs.get(&Saltenv::try_from(name).ok()?)
    }

    pub(crate) fn find(&self, load: &Value) -> Option<Found> {
        let (path, env) = split_path(load.get_text("path")?)?;
        if self.ignore.matches(path.as_str()) {
            return None;
        }
        self.env(load, env.as_deref())?.roots.iter().find_map(|root| root.open_file(&path))
    }

    fn hash(&self, found: &Found) -> Option<Value> {
        let hsum = self.hashes.of(found)?;
        Some(map([("hash_type", self.hashes.kind().name()), ("hsum", &*hsum)]))
    }

    /// Reads one chunk. An empty chunk marks the end, so a file that shrinks or grows meanwhile ends too.
    fn serve(&self, load: &Value) -> Option<Value> {
        let at = load.get_u64("loc")?;
        let found = self.find(load)?;
        let length = load.get_u64(LENGTH).map(|length| length.clamp(1, MAX_LENGTH));
        let most = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(self.buffer_size);
        let mut data = vec![0; most.min(usize::try_from(found.metadata.len().saturating_sub(at)).ok()?)];
        let mut filled = 0;
        while filled < data.len() {
            match found.file.read_at(&mut data[filled..], at.checked_add(filled as u64)?) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        data.truncate(filled);
        let mut reply = empty_map();
        if let Some(length) = length {
            reply.insert(LENGTH, length);
            reply.insert(SIZE, found.metadata.len());
        }
        if let Some(level) =
            load.get_u64("gzip").and_then(|n| u32::try_from(n).ok()).filter(|level| (1..=9).contains(level))
            && !data.is_empty()
        {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
            packed.write_all(&data).ok()?;
            data = packed.finish().ok()?;
            reply.insert("gzip", level);
        }
        reply.insert("data", Value::Binary(data));
        reply.insert("dest", found.path.as_str());
        Some(reply)
    }

    fn listing(&self, load: &Value) -> Option<Arc<Listing>> {
        let env = self.env(load, None)?;
        Some(env.lister.list(&env.roots, &self.ignore))
    }

    fn names<'a>(
        &self,
        load: &Value,
        which: impl for<'b> Fn(&'b Listing) -> Box<dyn Iterator<Item = &'b String> + 'b>,
    ) -> Value {
        let Some(listing) = self.listing(load) else { return Value::Array(Vec::new()) };
        let prefix = prefix(load);
        Value::Array(
            which(&listing).filter(|name| under(name, &prefix)).map(|name| Value::from(name.as_str())).collect(),
        )
    }

    fn symlinks(&self, load: &Value) -> Value {
        let Some(listing) = self.listing(load) else { return empty_map() };
        let prefix = prefix(load);
        let links = listing.links.iter().filter(|(name, _)| under(name, &prefix));
        map(links.map(|(name, target)| (name.as_str(), target.as_str())))
    }
}

fn prefix(load: &Value) -> String {
    load.get_text("prefix").unwrap_or_default().trim_matches('/').to_owned()
}

fn under(name: &str, prefix: &str) -> bool {
    name.starts_with(prefix)
}

/// Splits `a/b`, `salt://a/b` or `salt://a/b?saltenv=dev` into a checked path and the environment in it.
fn split_path(text: &str) -> Option<(SafePath, Option<String>)> {
    let text = text.strip_prefix("salt://").unwrap_or(text);
    let (path, env) = match text.split_once("?saltenv=") {
        Some((path, env)) => (path, Some(env.to_owned())),
        None => (text, None),
    };
    if path.starts_with('/') {
        return None;
    }
    // Normalised like os.path.normpath, but `..` is refused by the following check.
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    Some((SafePath::try_from(parts.join("/")).ok()?, env))
}

/// Returns mode, ino, dev, nlink, uid, gid, size, atime, mtime, ctime.
fn stat(found: &Found) -> Value {
    let m = &found.metadata;
    let signed = [m.atime(), m.mtime(), m.ctime()];
    let unsigned = [u64::from(m.mode()), m.ino(), m.dev(), m.nlink(), u64::from(m.uid()), u64::from(m.gid()), m.size()];
    Value::Array(unsigned.into_iter().map(Value::from).chain(signed.into_iter().map(Value::from)).collect())
}
