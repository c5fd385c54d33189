//! The master's data about its minions on disk, `cachedir/grains` and `cachedir/pillar` (§0.2), for targets that need
//! it.

use std::borrow::Cow;
use std::path::Path;

use super::{Facts, Keys, Needs, Resolved, Target};
use crate::ids::MinionId;
use crate::msgpack::{self, Limits};
use crate::value::Value;

/// Upper bound on the bytes read of a minion's grains or pillar; writing has a bound of its own.
const DATA_BYTES_MAX: u64 = 16 << 20;

/// The known data about one minion.
#[derive(Debug)]
pub struct Known<'a> {
    /// Its id.
    pub id: &'a MinionId,
    /// Entries of its grains; at least the requested ones.
    pub grains: Option<Cow<'a, Value>>,
    /// Entries of its pillar.
    pub pillar: Option<Cow<'a, Value>>,
}

impl<'a> Known<'a> {
    /// Reads the data that the target needs. Missing or unreadable data is unknown.
    pub fn read(cachedir: &Path, id: &'a MinionId, target: &Target) -> Self {
        Self::read_banks(cachedir, id, &target.needs())
    }

    /// Reads all data, for several targets.
    pub fn read_all(cachedir: &Path, id: &'a MinionId) -> Self {
        Self::read_banks(cachedir, id, &Needs { grains: Keys::All, pillar: Keys::All })
    }

    fn read_banks(cachedir: &Path, id: &'a MinionId, needs: &Needs) -> Self {
        let bank = |bank: &str, keys: &Keys| match keys.is_empty() {
            true => None,
            false => read_entries(&cachedir.join(bank).join(format!("{id}.p")), keys).map(Cow::Owned),
        };
        Self { id, grains: bank("grains", &needs.grains), pillar: bank("pillar", &needs.pillar) }
    }

    /// The data in the form that targets need.
    pub fn facts(&self) -> Facts<'_> {
        Facts { id: self.id, grains: self.grains.as_deref(), pillar: self.pillar.as_deref() }
    }

    /// Treats unknown grains as empty, so that no address matches. For decisions in which unknown data must not count
    /// in favour of anybody.
    pub fn strictly(mut self) -> Self {
        let _ = self.grains.get_or_insert_with(|| Cow::Owned(crate::value::empty_map()));
        self
    }
}

impl Target {
    /// Returns those of these minions that match by their data on disk. Reads one or two files for each minion if the
    /// target needs grains or pillar.
    pub fn resolve_known(&self, ids: &[MinionId], cachedir: &Path) -> Resolved {
        self.resolve_with(ids, |id| Known::read(cachedir, id, self))
    }

    /// Returns those of these minions that match by the data that `know` returns for each; [`Target::needs`] names the
    /// required data.
    pub fn resolve_with<'a>(&self, ids: &'a [MinionId], know: impl Fn(&'a MinionId) -> Known<'a>) -> Resolved {
        if !self.needs_data() {
            return self.resolve(ids.iter().map(Facts::of_id));
        }
        let is_meant = |id: &&'a MinionId| self.matches(&know(id).facts());
        let matched = ids.iter().filter(is_meant).cloned().collect();
        Resolved { matched, missing: self.0.missing(ids.iter().map(MinionId::as_str)) }
    }
}

/// Reads the entries with these keys from a file of grains or pillar; none if the file is missing or unreadable.
pub fn read_entries(path: &Path, keys: &Keys) -> Option<Value> {
    let bytes = match brine_files::read_own(path, DATA_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) => {
            use std::io::ErrorKind::{NotFound, PermissionDenied};
            if !matches!(error.kind(), NotFound | PermissionDenied) {
                tracing::warn!("{} is not read: {error}", path.display());
            }
            return None;
        }
    };
    let decoded = match keys {
        Keys::All => msgpack::decode(&bytes, &Limits::REQUEST),
        Keys::These(keys) => msgpack::decode_entries(&bytes, &Limits::REQUEST, &|key| keys.contains(key)),
    };
    match decoded {
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
        let mut some = Keys::default();
        some.add(Some("os"));
        let read = |keys: &Keys| read_entries(&path, keys);
        assert_eq!((read(&Keys::All), read(&some)), (None, None));
        let grains = map([("os", "Debian"), ("kernel", "Linux")]);
        std::fs::write(&path, msgpack::encode_disk(&grains)).unwrap();
        assert_eq!((read(&Keys::All), read(&some)), (Some(grains), Some(map([("os", "Debian")]))));
        std::fs::write(&path, b"\xc1").unwrap();
        assert_eq!((read(&Keys::All), read(&some)), (None, None));
        std::fs::File::create(&path).unwrap().set_len(DATA_BYTES_MAX + 1).unwrap();
        assert_eq!((read(&Keys::All), read(&some)), (None, None));
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
