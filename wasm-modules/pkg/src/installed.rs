//! The packages that are installed.

use std::cell::RefCell;

use brine_apt::arguments::Keywords;
use brine_apt::dpkg::{self, Installed, Versions};
use brine_guest::{Result, Value, fnmatch};

use crate::host::{self, How};

thread_local! {
    /// The list of this call, until something is installed or removed.
    static LIST: RefCell<Option<Installed>> = const { RefCell::new(None) };
}

/// Which packages to list, and how.
#[derive(Default)]
pub(crate) struct Listing {
    pub versions_as_list: bool,
    pub removed: bool,
    pub purge_desired: bool,
}

/// All packages of the host.
pub(crate) fn all() -> Result<Installed> {
    if let Some(list) = LIST.with_borrow(Clone::clone) {
        return Ok(list);
    }
    host::check_family()?;
    let done = host::run(&["dpkg-query", "--showformat", dpkg::LIST_FORMAT, "-W"], How::default())?;
    let list = Installed::read(&done.stdout, &host::architecture());
    LIST.set(Some(list.clone()));
    Ok(list)
}

/// Forgets what was installed: it is looked at again.
pub(crate) fn forget() {
    LIST.set(None);
}

/// The packages as most callers need them.
pub(crate) fn current() -> Result<Versions> {
    Ok(all()?.listed(false, false))
}

/// Those of which only configuration files are left.
pub(crate) fn removed() -> Result<Versions> {
    Ok(all()?.removed)
}

pub(crate) fn list_pkgs(listing: &Listing) -> Result<Value> {
    Ok(dpkg::to_value(&all()?.listed(listing.removed, listing.purge_desired), listing.versions_as_list))
}

/// Keeps the parts of versions that `attr` asks for: the version is one part here, and apt tells no other.
pub(crate) fn version(names: &[String], keywords: &Keywords) -> Result<Value> {
    let as_list = keywords.is_true("versions_as_list", false);
    let listing = all()?.listed(keywords.is_true("removed", false), keywords.is_true("purge_desired", false));
    let mut found = Versions::new();
    let mut with_glob = false;
    for name in names {
        if name.contains('*') {
            with_glob = true;
            let matching = listing.iter().filter(|(package, _)| fnmatch(name, package));
            found.extend(matching.map(|(package, versions)| (package.clone(), versions.clone())));
        } else {
            found.insert(name.clone(), listing.get(name).cloned().unwrap_or_default());
        }
    }
    let all = dpkg::to_value(&found, as_list);
    match all {
        Value::Dict(mut entries) if entries.len() == 1 && !with_glob => Ok(entries.remove(0).1),
        all => Ok(all),
    }
}
