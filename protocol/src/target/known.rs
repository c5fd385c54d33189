//! What a master has on disk of its minions, `cachedir/grains` and `cachedir/pillar` (§0.2), for targets that ask for it.

use std::path::Path;

use super::{Facts, Needs, Resolved, Target};
use crate::ids::MinionId;
use crate::msgpack::{self, Limits};
use crate::value::Value;

/// Bytes of a minion's grains or pillar that are read; what is written has a bound of its own.
const DATA_BYTES_MAX: u64 = 16 << 20;

/// What is known of one minion.
#[derive(Debug)]
pub struct Known<'a> {
    id: &'a MinionId,
    grains: Option<Value>,
    pillar: Option<Value>,
}

impl<'a> Known<'a> {
    /// Reads what the target asks for; what is not there or cannot be read is not known.
    pub fn read(cachedir: &Path, id: &'a MinionId, target: &Target) -> Self {
        Self::read_banks(cachedir, id, target.needs())
    }

    /// Reads all there is, for several targets.
    pub fn read_all(cachedir: &Path, id: &'a MinionId) -> Self {
        Self::read_banks(cachedir, id, Needs { grains: true, pillar: true })
    }

    fn read_banks(cachedir: &Path, id: &'a MinionId, needs: Needs) -> Self {
        let bank = |wanted: bool, bank: &str| wanted.then(|| read(&cachedir.join(bank).join(format!("{id}.p"))))?;
        Self { id, grains: bank(needs.grains, "grains"), pillar: bank(needs.pillar, "pillar") }
    }

    /// As a target wants them.
    pub fn facts(&self) -> Facts<'_> {
        Facts { id: self.id, grains: self.grains.as_ref(), pillar: self.pillar.as_ref() }
    }

    /// The same where nobody is to profit from what is not known: no grains are empty ones, and then no address fits.
    pub fn strictly(mut self) -> Self {
        let _ = self.grains.get_or_insert_with(crate::value::empty_map);
        self
    }
}

impl Target {
    /// The minions among these that are meant, by what is on disk of them. Reads a file or two a minion where the target asks for
    /// grains or pillar.
    pub fn resolve_known(&self, ids: &[MinionId], cachedir: &Path) -> Resolved {
        if !self.needs_data() {
            return self.resolve(ids.iter().map(Facts::of_id));
        }
        let is_meant = |id: &&MinionId| self.matches(&Known::read(cachedir, id, self).facts());
        let matched = ids.iter().filter(is_meant).cloned().collect();
        Resolved { matched, missing: self.missing(ids.iter().map(MinionId::as_str)) }
    }
}

fn read(path: &Path) -> Option<Value> {
    let size = std::fs::metadata(path).ok()?.len();
    if size > DATA_BYTES_MAX {
        tracing::warn!("{} has {size} bytes and is not read", path.display());
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    match msgpack::decode(&bytes, &Limits::REQUEST) {
        Ok(value @ Value::Map(_)) => Some(value),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!("{} cannot be read: {error}", path.display());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::TargetType;
    use crate::value::{map, text};

    #[test]
    fn data_is_read_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.p");
        assert_eq!(read(&path), None);
        let grains = map([("os", "Debian")]);
        std::fs::write(&path, msgpack::encode_disk(&grains)).unwrap();
        assert_eq!(read(&path), Some(grains));
        std::fs::write(&path, b"\xc1").unwrap();
        assert_eq!(read(&path), None);
        std::fs::File::create(&path).unwrap().set_len(DATA_BYTES_MAX + 1).unwrap();
        assert_eq!(read(&path), None);
    }

    #[test]
    fn minions_of_which_nothing_is_known() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("grains")).unwrap();
        let grains = map([("os", text("Debian")), ("ipv4", crate::value::list(["10.0.0.1"]))]);
        std::fs::write(dir.path().join("grains/a.p"), msgpack::encode_disk(&grains)).unwrap();
        let ids = ["a", "b"].map(|id| MinionId::new(id).unwrap());
        let resolved = |kind: TargetType, expr: &str| {
            let target = Target::parse(kind, &text(expr), ":").unwrap();
            let strict =
                ids.iter().filter(|id| target.matches(&Known::read(dir.path(), id, &target).strictly().facts()));
            let names = |ids: Vec<&MinionId>| ids.into_iter().map(MinionId::as_str).collect::<Vec<_>>().join(" ");
            let found = target.resolve_known(&ids, dir.path());
            (names(found.matched.iter().collect()), names(strict.collect()), found.missing.join(" "))
        };
        let expect =
            |found: &str, strict: &str, missing: &str| (found.to_owned(), strict.to_owned(), missing.to_owned());
        assert_eq!(resolved(TargetType::Grain, "os:*"), expect("a", "a", ""));
        assert_eq!(resolved(TargetType::Pillar, "os:*"), expect("", "", ""));
        assert_eq!(resolved(TargetType::IpCidr, "10.0.0.0/8"), expect("a b", "a", ""));
        assert_eq!(resolved(TargetType::Compound, "G@os:* or L@b,c"), expect("a b", "a b", "c"));
    }
}
