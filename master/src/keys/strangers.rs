//! An index in memory of the keys in a folder that strangers can fill: their number, origin and order.
//!
//! The folder stays authoritative. Changes by this process are recorded here. Changes by other programs, such as
//! `salt-key`, show in the folder's timestamps, and the folder is then listed again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use brine_files::Stamp;
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyFileAction, KeyFileError, KeyState, KeyStore};

use super::SETTLED;

/// Longest time between listings under continuous changes by this process. A folder's timestamps have a limited
/// resolution, so a change of another program can be hidden by one of our own; after our last change the folder is
/// therefore listed once more.
const LIST_EVERY: Duration = Duration::from_secs(60);
/// A folder with more keys is listed so rarely that listing takes at most this part of the time, however often other
/// programs change it.
const FEW: usize = 1_000;
const LISTING_PART: u32 = 10;

/// Bounds on the number of keys; 0 is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Of all keys.
    pub all: usize,
    /// Of the keys from one address.
    pub of_address: usize,
}

/// The keys in one folder.
#[derive(Debug, Default)]
pub(super) struct Held {
    ids: HashMap<MinionId, Place>,
    /// By age: the oldest key has the lowest number.
    order: BTreeMap<u64, MinionId>,
    by_origin: HashMap<u64, BTreeSet<u64>>,
    next: u64,
    /// The folder's stamp after the last listing or our last change.
    stamp: Option<Stamp>,
    /// The time of our last change, if the folder was not listed since.
    changed: Option<Instant>,
    /// The time of the last listing, and its duration.
    listed: Option<(Instant, Duration)>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    number: u64,
    origin: Option<u64>,
}

impl Held {
    /// Checks whether another program changed the folder, and lists it again if so.
    pub(super) fn look(&mut self, store: &KeyStore, state: KeyState) -> Result<(), KeyFileError> {
        let dir = store.folder(state);
        let metadata = std::fs::metadata(&dir).map_err(KeyFileError::at(KeyFileAction::List, &dir))?;
        let stamp = Stamp::of(&metadata);
        if let Some((at, took)) = self.listed {
            let age = at.elapsed();
            let is_known = self.stamp == Some(stamp) && self.changed.is_none_or(|at| at.elapsed() < SETTLED);
            let is_too_much = self.ids.len() > FEW && age < took * LISTING_PART;
            if age < LIST_EVERY && (is_known || is_too_much) {
                return Ok(());
            }
        }
        let began = Instant::now();
        let found = store.ids(state, |_| {})?;
        self.become_what_is_there(&dir, found);
        (self.stamp, self.changed) = (Some(stamp), None);
        self.listed = Some((Instant::now(), began.elapsed()));
        Ok(())
    }

    /// Records the state in which this process left the folder.
    pub(super) fn changed(&mut self, dir: &Path) {
        // If the folder cannot be read, the next `look` lists it or fails.
        self.stamp = std::fs::metadata(dir).ok().map(|metadata| Stamp::of(&metadata));
        self.changed = Some(Instant::now());
    }

    fn become_what_is_there(&mut self, dir: &Path, found: Vec<MinionId>) {
        let gone: Vec<MinionId> = {
            let found: std::collections::HashSet<&MinionId> = found.iter().collect();
            self.ids.keys().filter(|id| !found.contains(id)).cloned().collect()
        };
        gone.iter().for_each(|id| self.remove(id));
        let mut new: Vec<(SystemTime, MinionId)> = Vec::new();
        for id in found {
            if !self.ids.contains_key(&id) {
                let since = std::fs::symlink_metadata(dir.join(id.as_str())).and_then(|metadata| metadata.modified());
                new.push((since.unwrap_or(SystemTime::UNIX_EPOCH), id));
            }
        }
        new.sort();
        new.into_iter().for_each(|(_, id)| self.add(&id, None));
    }

    /// Adds a key as the newest.
    pub(super) fn add(&mut self, id: &MinionId, origin: Option<u64>) {
        self.remove(id);
        let number = self.next;
        self.next += 1;
        self.ids.insert(id.clone(), Place { number, origin });
        self.order.insert(number, id.clone());
        if let Some(origin) = origin {
            self.by_origin.entry(origin).or_default().insert(number);
        }
    }

    pub(super) fn remove(&mut self, id: &MinionId) {
        let Some(Place { number, origin }) = self.ids.remove(id) else { return };
        self.order.remove(&number);
        if let Some(origin) = origin
            && let Some(numbers) = self.by_origin.get_mut(&origin)
        {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_origin.remove(&origin);
            }
        }
    }

    /// Returns the oldest key, if it must be removed before another one from `origin` fits.
    pub(super) fn in_the_way(&self, origin: Option<u64>, room: Room) -> Option<MinionId> {
        let full = |held: usize, most: usize| most > 0 && held >= most;
        let of_origin = origin.and_then(|origin| self.by_origin.get(&origin));
        let number = match of_origin.filter(|numbers| full(numbers.len(), room.of_address)) {
            Some(numbers) => numbers.first(),
            None if full(self.ids.len(), room.all) => self.order.keys().next(),
            None => None,
        };
        number.and_then(|number| self.order.get(number)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> MinionId {
        format!("m{n}").parse().unwrap()
    }

    #[test]
    fn the_oldest_is_in_the_way_of_its_address_and_of_all() {
        let mut held = Held::default();
        let room = Room { all: 5, of_address: 3 };
        held.add(&id(0), None);
        for n in 1..4 {
            assert_eq!(held.in_the_way(Some(7), room), None, "{n}");
            held.add(&id(n), Some(7));
        }
        assert_eq!(held.in_the_way(Some(7), room), Some(id(1)), "of this address");
        assert_eq!(held.in_the_way(Some(8), room), None);
        held.add(&id(4), Some(8));
        assert_eq!(held.in_the_way(Some(8), room), Some(id(0)), "of all");
        assert_eq!(held.in_the_way(None, room), Some(id(0)));
        assert_eq!(held.in_the_way(Some(7), Room { all: 0, of_address: 0 }), None, "no bound");
        held.add(&id(0), Some(8));
        assert_eq!(held.in_the_way(None, room), Some(id(1)), "it came again");
        (0..5).for_each(|n| held.remove(&id(n)));
        assert!(held.ids.is_empty() && held.order.is_empty() && held.by_origin.is_empty());
    }
}
