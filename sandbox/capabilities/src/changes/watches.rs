//! `brine:host/watches`: what happens to files, for beacons. Whoever may look at a directory may be told of its changes.

use super::check;
use crate::prelude::*;

/// Upper bound on the paths of one beacon.
const MAX_WATCHES: usize = 256;
/// Upper bound on the directories left out below one path.
const MAX_SKIPPED: usize = 64;
/// `IN_ALL_EVENTS`, `IN_ONLYDIR`, `IN_EXCL_UNLINK` and `IN_ONESHOT`. Whether links are followed is not for the module to
/// say.
const BITS: u32 = 0x0000_0fff | 0x0100_0000 | 0x0400_0000 | 0x8000_0000;

/// `brine:host/watches`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchesOp {
    /// Sets what is watched. Returns an array of maps of what happened: `number`, `watch`, `path`, `name` (text or nil),
    /// `mask`, `cookie`.
    Take {
        /// What to watch.
        watches: Vec<Watch>,
        /// The number of the last event that is done with.
        after: u64,
        /// How long to wait where nothing has happened. The minion waits a minute at most.
        wait_ms: u32,
    },
}

/// One path to watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// A file or directory.
    pub path: String,
    /// The kernel's bits.
    pub mask: u32,
    /// Whether directories below are watched too.
    pub recurse: bool,
    /// Whether directories that come into a watched one are watched too.
    pub auto_add: bool,
    /// Beginnings of the paths of directories that are not watched.
    pub skip: Vec<String>,
}

impl Operation for WatchesOp {
    const INTERFACE: &'static str = "brine:host/watches";

    fn size(&self) -> Size {
        let Self::Take { watches, .. } = self;
        Size::names(watches.iter().map(|watch| watch.path.len() + Size::NAME + Size::list(&watch.skip)).sum())
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        let Self::Take { watches, .. } = &self;
        if watches.len() > MAX_WATCHES {
            return Err(malformed("the watches", &format!("are {}; the most is {MAX_WATCHES}", watches.len())));
        }
        for Watch { path, mask, skip, .. } in watches {
            check::look(granted, path)?;
            if mask & !BITS != 0 {
                return Err(malformed("the mask", "has bits that are no events and none of the known options"));
            }
            if skip.len() > MAX_SKIPPED {
                return Err(malformed("the skipped paths", &format!("are {}; the most is {MAX_SKIPPED}", skip.len())));
            }
            skip.iter().try_for_each(|path| forms::text("the skipped path", path, forms::MAX_PATH, Form::Bytes))?;
        }
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trees::{Access, Tree};

    #[test]
    fn what_may_be_looked_at_may_be_watched() {
        let mut granted = Grants::default();
        granted.changes = vec![Tree { path: "/etc".to_owned(), access: Access::Look }];
        let who = Asker { module: "m", minion_id: "id", ..Asker::default() };
        let watch = |path: &str| Watch {
            path: path.to_owned(),
            mask: 0x302,
            recurse: true,
            auto_add: true,
            skip: vec!["/etc/ssl".to_owned()],
        };
        let take = |watches| WatchesOp::Take { watches, after: 0, wait_ms: u32::MAX }.check(&who, &granted);
        assert!(take(vec![watch("/etc"), watch("/etc/ssh")]).is_ok());
        for path in ["/srv", "/", "/etcetera"] {
            assert!(matches!(take(vec![watch("/etc"), watch(path)]), Err(Refusal::NotGranted { .. })), "{path}");
        }
        for odd in [
            watch("/etc/../root"),
            watch("etc"),
            watch(""),
            watch("/etc/\0"),
            Watch { mask: 0x0200_0000, ..watch("/etc") },
            Watch { mask: u32::MAX, ..watch("/etc") },
            Watch { skip: vec![String::new()], ..watch("/etc") },
            Watch { skip: vec!["/x".to_owned(); MAX_SKIPPED + 1], ..watch("/etc") },
        ] {
            assert!(matches!(take(vec![odd.clone()]), Err(Refusal::Malformed(_))), "{odd:?}");
        }
        assert!(take(vec![watch("/etc"); MAX_WATCHES]).is_ok());
        assert!(matches!(take(vec![watch("/etc"); MAX_WATCHES + 1]), Err(Refusal::Malformed(_))));
    }
}
