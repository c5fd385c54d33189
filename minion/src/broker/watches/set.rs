//! What one beacon watches.
//!
//! A directory that is moved out of a watched one is not watched any more, whatever the kernel would still tell of it: it
//! may be where nothing is granted. One that is moved within comes under its new name. A path that was asked for is found
//! anew at each look, so that what is there now is what is watched.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use brine_sandbox::Watch;
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use tracing::warn;

use super::super::changes::{Finder, Found, Said};
use super::bits::{
    IN_ALL_EVENTS, IN_CREATE, IN_DONT_FOLLOW, IN_IGNORED, IN_ISDIR, IN_MASK_CREATE, IN_MOVE_SELF, IN_MOVED_FROM,
    IN_MOVED_TO, IN_ONESHOT, IN_ONLYDIR, IN_Q_OVERFLOW, IN_UNMOUNT,
};
use super::queue::{Happened, Queue};

/// Upper bound on the watched files and directories of all beacons. Each takes about a kilobyte of the kernel's memory.
pub(super) const MAX_WATCHED: usize = 8_192;
/// Upper bound on the names that are looked at for directories below one path.
const MAX_NAMES: usize = 1_000_000;
/// Upper bound on the directories around a directory.
const MAX_DEPTH: usize = 256;
/// Bytes read at once: some thousand events.
const BUFFER: usize = 64 << 10;
/// Upper bound on the reads of one look.
const READS: usize = 16;
/// The time between two lines about lost events. Each loss is an event.
const LOST_AGAIN: Duration = Duration::from_secs(60);
/// Upper bound on the different lines in the log about one beacon.
const MAX_SAID: usize = 64;

/// What one beacon watches.
pub(super) struct Set {
    beacon: String,
    inotify: Arc<OwnedFd>,
    finder: Option<Finder>,
    roots: Vec<Root>,
    /// By the kernel's number.
    watched: HashMap<i32, Watched>,
    /// The number of what all beacons watch.
    all: Arc<AtomicUsize>,
    queue: Queue,
    /// Directories that left a watched one, and come back at once if they were moved within: path and cookie.
    left: Option<(u32, Arc<Watch>)>,
    said: HashSet<String>,
    /// When it was said last that events were lost.
    said_lost: Option<Instant>,
}

/// How much of what happened was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    All,
    /// There may be more.
    More,
}

/// A path that was asked for.
struct Root {
    asked: Arc<Watch>,
    /// What is watched there: the kernel's number, device and inode.
    at: Option<(i32, (u64, u64))>,
}

struct Watched {
    asked: Arc<Watch>,
    path: Arc<str>,
}

/// A walk through directories.
struct Walk {
    asked: Arc<Watch>,
    /// Whether what is there counts as made just now.
    tells: bool,
    /// Names that were looked at.
    names: usize,
}

impl Walk {
    fn new(asked: &Arc<Watch>, tells: bool) -> Self {
        Self { asked: Arc::clone(asked), tells, names: 0 }
    }
}

impl Set {
    pub(super) fn new(beacon: &str, all: Arc<AtomicUsize>) -> Result<Self, Errno> {
        Ok(Self {
            beacon: beacon.to_owned(),
            inotify: Arc::new(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?),
            finder: None,
            roots: Vec::new(),
            watched: HashMap::new(),
            all,
            queue: Queue::default(),
            left: None,
            said: HashSet::new(),
            said_lost: None,
        })
    }

    pub(super) fn inotify(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.inotify)
    }

    /// Watches what is asked for, and returns what happened.
    pub(super) fn take(&mut self, finder: Finder, asked: Vec<Watch>, after: u64) -> Result<Vec<Happened>, Said> {
        for _ in 0..READS {
            if self.read() == Read::All {
                break;
            }
        }
        self.finder = Some(finder);
        self.watch(asked)?;
        Ok(self.queue.take(after))
    }

    fn watch(&mut self, asked: Vec<Watch>) -> Result<(), Said> {
        let mut before = std::mem::take(&mut self.roots);
        for asked in asked {
            let known = before.iter().position(|root| *root.asked == asked).map(|at| before.swap_remove(at));
            self.roots.push(known.unwrap_or_else(|| Root { asked: Arc::new(asked), at: None }));
        }
        for gone in &before {
            self.unwatch(&gone.asked);
            if !self.roots.iter().any(|root| root.asked.path == gone.asked.path) {
                self.queue.forget(&gone.asked.path);
            }
        }
        for at in 0..self.roots.len() {
            self.renew(at)?;
        }
        Ok(())
    }

    /// Watches what is now at a path that was asked for.
    fn renew(&mut self, at: usize) -> Result<(), Said> {
        let asked = Arc::clone(&self.roots[at].asked);
        let finder = finder_of(&self.finder)?;
        let found = match finder.find(&asked.path) {
            Ok(found) => found,
            // The others are watched meanwhile.
            Err(Said::Failed(why)) => {
                self.say(why);
                None
            }
            Err(refused) => {
                self.roots[at].at = None;
                self.unwatch(&asked);
                self.queue.forget(&asked.path);
                return Err(refused);
            }
        };
        let now = found.as_ref().map(|found| found.id);
        if let Some((number, id)) = self.roots[at].at
            && Some(id) == now
            && self.watched.get(&number).is_some_and(|watched| Arc::ptr_eq(&watched.asked, &asked))
        {
            return Ok(());
        }
        self.roots[at].at = None;
        self.unwatch(&asked);
        let Some(found) = found else { return Ok(()) };
        finder_of(&self.finder)?.admit(&found)?;
        if let Some(number) = self.add(&asked, &found, Arc::from(asked.path.as_str()), true) {
            self.roots[at].at = Some((number, found.id));
            if asked.recurse && found.is_directory {
                self.descend(&mut Walk::new(&asked, false), &found, &asked.path, 0);
            }
        }
        Ok(())
    }

    /// Has the kernel watch a file or directory. None if it does not, or it is watched for another path.
    fn add(&mut self, asked: &Arc<Watch>, found: &Found, path: Arc<str>, is_root: bool) -> Option<i32> {
        if self.all.load(Ordering::Relaxed) >= MAX_WATCHED {
            self.say(format!("more than {MAX_WATCHED} files and directories are not watched: {path} is the first"));
            return None;
        }
        let mut mask = asked.mask & !IN_DONT_FOLLOW;
        if mask & IN_ONESHOT == 0 {
            // By these it is known what is where.
            mask |= IN_MOVE_SELF;
            if found.is_directory {
                mask |= IN_MOVED_FROM | IN_MOVED_TO | if asked.auto_add { IN_CREATE } else { 0 };
            }
        }
        if !is_root {
            // One that was asked for by itself stays what it is.
            mask |= IN_MASK_CREATE | IN_ONLYDIR;
        }
        // The file itself, whatever its name is by now.
        let opened = format!("/proc/self/fd/{}", found.file.as_raw_fd());
        match inotify::add_watch(&self.inotify, opened, WatchFlags::from_bits_retain(mask)) {
            Ok(number) => {
                let asked = Arc::clone(asked);
                if self.watched.insert(number, Watched { asked, path }).is_none() {
                    self.all.fetch_add(1, Ordering::Relaxed);
                }
                Some(number)
            }
            Err(Errno::EXIST) => None,
            Err(Errno::NOSPC) => {
                self.say("fs.inotify.max_user_watches of this host is reached, and no more is watched".to_owned());
                None
            }
            Err(error) => {
                self.say(format!("{path} is not watched: {error}"));
                None
            }
        }
    }

    /// Watches the directories in a directory.
    fn descend(&mut self, walk: &mut Walk, top: &Found, path: &str, depth: usize) {
        let shown: Arc<str> = Arc::from(path);
        let base = path.trim_end_matches('/');
        for (name, kind) in list(top) {
            walk.names += 1;
            if walk.names >= MAX_NAMES || depth >= MAX_DEPTH {
                return self.say(format!("not all directories in {} are watched: they are too many", walk.asked.path));
            }
            let is_directory = match kind {
                FileType::Directory => true,
                FileType::Unknown => self.directory(top, &name).is_some(),
                _ => false,
            };
            if walk.tells {
                let mask = IN_CREATE | if is_directory { IN_ISDIR } else { 0 };
                self.tell(&walk.asked, &shown, Some(name.clone()), mask, 0);
            }
            if is_directory {
                self.add_below(walk, top, &name, &format!("{base}/{name}"), depth + 1);
            }
        }
    }

    /// Watches a directory in a directory, and those below.
    fn add_below(&mut self, walk: &mut Walk, parent: &Found, name: &str, path: &str, depth: usize) {
        if walk.asked.skip.iter().any(|skip| path.starts_with(skip.as_str())) {
            return;
        }
        let Some(found) = self.directory(parent, name) else { return };
        if self.add(&walk.asked, &found, Arc::from(path), false).is_some() {
            self.descend(walk, &found, path, depth);
        }
    }

    /// A directory in a directory, if it may be watched.
    fn directory(&mut self, parent: &Found, name: &str) -> Option<Found> {
        let finder = self.finder.as_ref()?;
        let found = finder.directory_in(parent, name).ok()??;
        finder.admit(&found).is_ok().then_some(found)
    }

    /// Watches a directory that came into a watched one.
    fn came(&mut self, asked: &Arc<Watch>, parent: &str, name: &str, tells: bool) {
        let path = format!("{}/{name}", parent.trim_end_matches('/'));
        let Some(finder) = &self.finder else { return };
        let parent = match finder.find(parent) {
            Ok(Some(found)) if found.is_directory => found,
            _ => return,
        };
        if finder.admit(&parent).is_ok() {
            self.add_below(&mut Walk::new(asked, tells), &parent, name, &path, 0);
        }
    }

    /// Watches nothing any more that was asked for by this.
    fn unwatch(&mut self, asked: &Arc<Watch>) {
        self.drop_watched(|watched| Arc::ptr_eq(&watched.asked, asked));
    }

    fn drop_watched(&mut self, which: impl Fn(&Watched) -> bool) {
        let numbers: Vec<i32> =
            self.watched.iter().filter(|(_, watched)| which(watched)).map(|(number, _)| *number).collect();
        for number in numbers {
            self.forget(number);
            // It may be gone.
            let _ = inotify::remove_watch(&self.inotify, number);
        }
    }

    fn forget(&mut self, number: i32) {
        if self.watched.remove(&number).is_some() {
            self.all.fetch_sub(1, Ordering::Relaxed);
        }
        for root in &mut self.roots {
            if root.at.is_some_and(|(at, _)| at == number) {
                root.at = None;
            }
        }
    }

    /// Reads what the kernel has to say, up to some thousand events.
    pub(super) fn read(&mut self) -> Read {
        let inotify = Arc::clone(&self.inotify);
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&*inotify, &mut buffer);
        let (mut bytes, mut several) = (0, Vec::new());
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
            // As the kernel has it: with padding.
            bytes += 16 + name.as_ref().map_or(0, |name| (name.len() / 16 + 1) * 16);
            several.push((event.wd(), event.events().bits(), event.cookie(), name));
            if reader.is_buffer_empty() {
                break;
            }
        }
        for (number, mask, cookie, name) in several {
            self.happened(number, mask, cookie, name);
        }
        // The kernel fills the space if it can.
        if bytes < BUFFER / 2 { Read::All } else { Read::More }
    }

    fn happened(&mut self, number: i32, mask: u32, cookie: u32, name: Option<String>) {
        if mask & IN_Q_OVERFLOW != 0 {
            self.say_lost("the kernel's queue of events was full");
            return self.queue.lose();
        }
        // Of one that is not watched any more nothing is told.
        let Some(watched) = self.watched.get(&number) else { return };
        let (asked, path) = (Arc::clone(&watched.asked), Arc::clone(&watched.path));
        if mask & IN_IGNORED != 0 {
            self.forget(number);
        }
        if mask & IN_ISDIR != 0
            && let Some(name) = &name
        {
            self.directory_moved(&asked, &path, name, mask, cookie);
        }
        self.tell(&asked, &path, name, mask, cookie);
        if mask & IN_MOVE_SELF != 0 {
            // What is there instead is found at the next look.
            let below = format!("{path}/");
            self.drop_watched(|watched| {
                Arc::ptr_eq(&watched.asked, &asked) && (watched.path == path || watched.path.starts_with(&below))
            });
        }
    }

    /// Follows a directory that came into a watched one, or left it.
    fn directory_moved(&mut self, asked: &Arc<Watch>, path: &str, name: &str, mask: u32, cookie: u32) {
        if mask & IN_MOVED_FROM != 0 {
            let moved = format!("{}/{name}", path.trim_end_matches('/'));
            let below = format!("{moved}/");
            let is = |watched: &Watched| *watched.path == *moved || watched.path.starts_with(&below);
            self.left = self.watched.values().any(is).then(|| (cookie, Arc::clone(asked)));
            self.drop_watched(is);
        } else if mask & IN_MOVED_TO != 0 {
            let moved_within = self.left.take().is_some_and(|(left, by)| left == cookie && Arc::ptr_eq(&by, asked));
            if asked.auto_add || moved_within {
                self.came(asked, path, name, false);
            }
        } else if mask & IN_CREATE != 0 && asked.auto_add {
            self.came(asked, path, name, true);
        }
    }

    fn tell(&mut self, asked: &Arc<Watch>, path: &Arc<str>, name: Option<String>, mask: u32, cookie: u32) {
        // Some are heard for the minion's own use.
        if mask & (asked.mask & IN_ALL_EVENTS | IN_IGNORED | IN_UNMOUNT) == 0 {
            return;
        }
        let watch = Some(Arc::clone(asked));
        let event = Happened { number: 0, watch, path: Arc::clone(path), name, mask, cookie };
        if !self.queue.push(event) {
            self.say_lost("more wait than there is room for");
        }
    }

    fn say_lost(&mut self, why: &str) {
        if self.said_lost.is_some_and(|said| said.elapsed() < LOST_AGAIN) {
            return;
        }
        self.said_lost = Some(Instant::now());
        warn!("of what beacon {} watches, events were lost: {why}", self.beacon);
    }

    /// Says something, once.
    fn say(&mut self, words: String) {
        if self.said.len() < MAX_SAID && !self.said.contains(&words) {
            warn!("beacon {}: {words}", self.beacon);
            self.said.insert(words);
        }
    }

    #[cfg(test)]
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.watched.values().map(|watched| watched.path.to_string()).collect();
        paths.sort();
        paths
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        self.all.fetch_sub(self.watched.len(), Ordering::Relaxed);
        for number in self.watched.keys() {
            // This also wakes the task that reads, and so ends it.
            let _ = inotify::remove_watch(&self.inotify, *number);
        }
    }
}

fn finder_of(finder: &Option<Finder>) -> Result<&Finder, Said> {
    finder.as_ref().ok_or_else(|| Said::Failed("nothing is watched yet".to_owned()))
}

/// The names in a directory that are text.
fn list(directory: &Found) -> Vec<(String, FileType)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::openat(&directory.file, Path::new("."), flags, Mode::empty()) else {
        return Vec::new();
    };
    let Ok(entries) = Dir::new(opened) else { return Vec::new() };
    let named = entries.filter_map(Result::ok).take(MAX_NAMES);
    let named = named.filter_map(|entry| Some((entry.file_name().to_str().ok()?.to_owned(), entry.file_type())));
    named.filter(|(name, _)| !matches!(name.as_str(), "." | "..")).collect()
}
