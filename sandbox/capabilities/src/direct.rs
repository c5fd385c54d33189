//! What an executor itself refuses a guest: files and addresses that it reaches without the broker. It says so, and the owner is told.
//!
//! An escaped guest can say anything in the executor's name. What it says is checked as a guest's request is, and it grants nothing.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::Capability;
use crate::check::{Least, Refusal};
use crate::filesystem::grant_with_directory;
use crate::forms::MAX_PATH;
use crate::grants::{Directory, Grants};
use crate::hosts::{NetworkHost, plain};
use crate::reach;

/// What a guest wanted of an executor.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Wanted {
    /// A file or a directory.
    Path {
        /// Absolute, without `.` and `..`.
        path: String,
        /// What for.
        access: PathAccess,
    },
    /// A TCP connection.
    Connection {
        /// The address.
        to: SocketAddr,
    },
    /// A TCP socket, whose address is not known yet: the process may make none.
    Socket,
}

/// What a guest wanted of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PathAccess {
    /// To look at it or read it.
    Read,
    /// To change what is there.
    Change,
    /// To make, replace or remove its name in its directory. Only a grant of that directory allows it.
    Name,
    /// To go there by a symbolic link that leads out of the directory that it is in. No grant lets the kernel follow it.
    ByLink,
}

impl Wanted {
    /// Returns the refusal for the owner. None for what is no refusal: malformed, granted, or of a function without the interface.
    #[must_use]
    pub fn refusal(self, granted: &Grants) -> Option<Refusal> {
        match self {
            Self::Path { path, access } => refused_path(granted, &path, access),
            Self::Connection { to } => {
                let host = NetworkHost::Address(plain(to.ip()));
                let reached = granted.allows_host(&host.to_string(), to.port());
                if reached || !granted.allows("wasi:sockets/tcp") {
                    return None;
                }
                let what = format!("connect to {}", SocketAddr::new(plain(to.ip()), to.port()));
                Some(reach::not_granted(granted, what, &host, to.port()))
            }
            Self::Socket => {
                // In plan mode, a process has no network though its function was granted one.
                let reaches = !(granted.direct.network.is_empty() && granted.would_reach.is_empty());
                (!reaches && granted.allows("wasi:sockets/tcp")).then(|| Refusal::NotGranted {
                    what: "connect to an address, before one was granted".to_owned(),
                    lift: None,
                    least: Least::No,
                })
            }
        }
    }
}

fn refused_path(granted: &Grants, path: &str, access: PathAccess) -> Option<Refusal> {
    if !path.starts_with('/')
        || path.len() > MAX_PATH
        || path.contains('\0')
        || !granted.allows("wasi:filesystem/types")
    {
        return None;
    }
    let change = matches!(access, PathAccess::Change | PathAccess::Name);
    let within = |dir: &&Directory| dir.path == path || dir.rest(path).is_some();
    let around = granted.direct.directories.iter().filter(within).max_by_key(|dir| dir.path.len());
    let opens = |dir: &Directory| !change || dir.writable || granted.would_write.contains(&dir.path);
    if around.is_some_and(opens) {
        return None;
    }
    let words = if change { "write" } else { "read" };
    let (what, line) = match access {
        PathAccess::ByLink => (format!("{words} {path} by a link"), false),
        PathAccess::Read | PathAccess::Change => (format!("{words} {path}"), true),
        PathAccess::Name => (format!("{words} {path}"), false),
    };
    let grant = grant_with_directory(granted, path, change).filter(|_| path != "/");
    let lift = grant.map(|grant| Box::new((Capability::Filesystem, grant)));
    Some(Refusal::NotGranted { what, lift, least: if line { Least::AsTold } else { Least::No } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Grant;
    use crate::programs::Host;
    use crate::rules::read_rule;

    fn granted() -> Grants {
        let mut grants = Grants::default();
        let directories = [("/srv/ro", false), ("/srv/rw", true)]
            .map(|(path, writable)| Directory { path: path.to_owned(), writable });
        let interfaces = ["wasi:filesystem/types", "wasi:sockets/tcp"];
        grants.put(Capability::Filesystem, interfaces, Grant::Directories(directories.to_vec()), &Host::default());
        grants.direct.network = vec![read_rule("10.0.0.0/8:80").unwrap()];
        grants
    }

    fn said(wanted: Wanted) -> Option<(String, bool)> {
        match wanted.refusal(&granted())? {
            Refusal::NotGranted { what, lift, least } => Some((what, lift.is_some() && least != Least::No)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_granted_or_malformed_is_no_refusal() {
        use PathAccess::{ByLink, Change, Name, Read};
        let long = format!("/{}", "x".repeat(MAX_PATH));
        for (path, access, expect) in [
            ("/etc/x", Read, Some(("read /etc/x", true))),
            ("/etc/x", Change, Some(("write /etc/x", true))),
            ("/etc/x", Name, Some(("write /etc/x", false))),
            ("/etc/x", ByLink, Some(("read /etc/x by a link", false))),
            ("/srv/ro/x", Change, Some(("write /srv/ro/x", true))),
            ("/srv/ro/x", Read, None),
            ("/srv/rw/x", Change, None),
            ("/srv/rw", Name, None),
            ("/srv/rwx", Read, Some(("read /srv/rwx", true))),
            // Nothing less than the whole host would allow this.
            ("/", Read, Some(("read /", false))),
            // No line can name these.
            ("/etc/../x", Read, Some(("read /etc/../x", false))),
            ("etc/x", Read, None),
            ("/etc/\0", Read, None),
            (long.as_str(), Read, None),
        ] {
            let found = said(Wanted::Path { path: path.to_owned(), access });
            assert_eq!(found.as_ref().map(|(what, line)| (what.as_str(), *line)), expect, "{path:.40} {access:?}");
        }
        for (to, expect) in [
            ("192.0.2.1:80", Some("connect to 192.0.2.1:80")),
            ("10.0.0.1:80", None),
            ("[::ffff:10.0.0.1]:80", None),
            ("10.0.0.1:81", Some("connect to 10.0.0.1:81")),
            ("[2001:db8::1]:80", Some("connect to [2001:db8::1]:80")),
        ] {
            let found = said(Wanted::Connection { to: to.parse().unwrap() });
            assert_eq!(
                found.as_ref().map(|(what, line)| (what.as_str(), *line)),
                expect.map(|what| (what, true)),
                "{to}"
            );
        }
        assert_eq!(said(Wanted::Socket), None);
        let mut alone = granted();
        alone.direct.network.clear();
        assert!(Wanted::Socket.refusal(&alone).is_some());
        // A function that may not use the interfaces has nothing to say of them.
        let wanted = [
            Wanted::Path { path: "/etc/x".to_owned(), access: Read },
            Wanted::Connection { to: "192.0.2.1:80".parse().unwrap() },
            Wanted::Socket,
        ];
        assert!(wanted.into_iter().all(|wanted| wanted.refusal(&Grants::default()).is_none()));
    }
}
