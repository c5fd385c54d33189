//! Finds the granted program for a guest's argument.
//!
//! Pure: folders that are symbolic links (`/bin` on most systems) were resolved when the configuration was read. The
//! program's own name is never resolved: a grant of `/bin/vi`, a link to `busybox`, does not grant `busybox`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::looks::Look;
use crate::names::Names;

/// The folders to search for a program's bare name, whatever the minion's own `PATH`.
pub const PROGRAM_FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The granted programs, and how they may be run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessGrant {
    /// The programs: absolute paths. They run with any arguments.
    pub programs: Names,
    /// Command lines that may run too, and with them those that only look. Their programs need not be among the granted
    /// ones. None: a program runs with any arguments or not at all.
    pub lines: Option<Vec<Look>>,
    /// Users as which they may run, in addition to the module's own.
    pub users: Names,
    /// Groups that they may have, in addition to those of their user.
    pub groups: Names,
    /// Variables that may be set, in addition to the harmless ones of locale and time zone.
    pub env: Names,
    /// Directories in which they may start, with everything below them, in addition to `/`.
    pub cwd: Names,
    /// Whether processes in a session of their own may outlive a program that ended successfully.
    pub detach: bool,
    /// Upper bound on the bytes of a file that they may write. None: the minion's own limit.
    pub file_size: Option<u64>,
    /// Command lines that only look, for plan mode.
    pub looks: Vec<Look>,
    /// Those that a standard module comes with, which are in no configuration.
    pub own_looks: Vec<Look>,
    /// The symbolic links among this host's folders of programs.
    pub host: Host,
}

/// Facts about the host that decisions need. They are collected once, so that decisions read nothing from the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Folders that are symbolic links, and their targets: `/bin` is `/usr/bin`.
    pub folders: Arc<BTreeMap<String, String>>,
    /// The user that the minion runs as.
    pub user: Option<Arc<str>>,
}

/// The result of [`ProcessGrant::find`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program<'a> {
    /// This granted program.
    Granted(&'a str),
    /// Any program is granted; the argument is used as it is.
    Any,
    /// The program is not granted.
    No,
}

impl ProcessGrant {
    /// Returns the program of a command line that only looks, by its path in the list: what runs is what was listed.
    pub(crate) fn looks(&self, argv: &[String]) -> Option<&str> {
        let mut looks = self.looks.iter().chain(&self.own_looks);
        looks.find(|look| look.is(argv, |folder| self.host.folder(folder))).map(Look::program)
    }

    /// Returns the program of a command line that may run although its program is not granted with any arguments.
    pub fn line(&self, argv: &[String]) -> Option<&str> {
        let mut lines = self.of_lines();
        lines.find(|line| line.is(argv, |folder| self.host.folder(folder))).map(Look::program)
    }

    /// Returns the command lines that may run if only command lines are granted.
    fn of_lines(&self) -> impl Iterator<Item = &Look> {
        let lines = self.lines.iter().flatten();
        let looks = self.lines.iter().flat_map(|_| self.looks.iter().chain(&self.own_looks));
        lines.chain(looks)
    }

    /// Returns all programs that may run, with some arguments at least.
    pub fn all_programs(&self) -> Names {
        self.of_lines().fold(self.programs.clone(), |names, line| names.with(line.program()))
    }

    /// Checks whether nothing may run.
    pub fn is_none(&self) -> bool {
        self.programs.is_none() && self.lines.is_none()
    }

    /// Adds what another grant permits.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.programs, &other.programs),
            (&mut self.users, &other.users),
            (&mut self.groups, &other.groups),
            (&mut self.env, &other.env),
            (&mut self.cwd, &other.cwd),
        ];
        for (names, others) in pairs {
            names.add(others);
        }
        match (&mut self.lines, &other.lines) {
            (Some(lines), Some(others)) => {
                lines.extend(others.iter().filter(|line| !lines.contains(line)).cloned().collect::<Vec<_>>())
            }
            (lines @ None, Some(others)) => *lines = Some(others.clone()),
            (_, None) => {}
        }
        let looks: Vec<Look> = other.looks.iter().filter(|look| !self.looks.contains(look)).cloned().collect();
        self.looks.extend(looks);
        self.detach |= other.detach;
        self.file_size = self.file_size.zip(other.file_size).map(|(own, other)| own.max(other));
    }

    /// Returns the granted program for a bare name (the first one of that file name) or an absolute path (the same file
    /// name in the same folder).
    pub fn find(&self, asked: &str) -> Program<'_> {
        let programs = match &self.programs {
            Names::Any => return Program::Any,
            Names::Only(programs) => programs,
        };
        let mut programs = programs.iter().map(String::as_str).chain(self.of_lines().map(Look::program));
        let found = match asked.rsplit_once('/') {
            None => programs.find(|program| split(program).1 == asked),
            Some((folder, name)) => programs.find(|program| {
                let granted = split(program);
                granted.1 == name && self.host.folder(granted.0) == self.host.folder(folder)
            }),
        };
        found.map_or(Program::No, Program::Granted)
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl Host {
    /// Collects the facts about this host: folders of programs, those of `programs` included, and the minion's user.
    pub fn look<'a>(programs: impl Iterator<Item = &'a str>) -> Self {
        let folders = PROGRAM_FOLDERS.into_iter().chain(programs.map(|program| split(program).0));
        let mut links = BTreeMap::new();
        for folder in folders {
            let real = std::fs::canonicalize(if folder.is_empty() { "/" } else { folder });
            if let Some(real) = real.ok().and_then(|real| real.to_str().map(str::to_owned))
                && real != folder
            {
                links.insert(folder.to_owned(), if real == "/" { String::new() } else { real });
            }
        }
        Self { folders: Arc::new(links), user: None }
    }

    fn folder<'a>(&'a self, folder: &'a str) -> &'a str {
        self.folders.get(folder).map_or(folder, String::as_str)
    }
}

/// Returns where a program of this bare name is on this host. For error messages only, never for a decision.
pub(crate) fn locate(name: &str) -> String {
    let there = PROGRAM_FOLDERS.into_iter().find(|folder| Path::new(folder).join(name).is_file());
    let folder = there.unwrap_or("/usr/bin");
    format!("{folder}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged() -> Host {
        let folders = [("/bin", "/usr/bin"), ("/sbin", "/usr/sbin")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        Host { folders: Arc::new(folders.into()), user: None }
    }

    #[test]
    fn programs_are_found_by_name_and_folder() {
        let programs = ["/bin/ls", "/opt/a/run", "/opt/b/run", "/init"].map(str::to_owned).to_vec();
        let grant = ProcessGrant { programs: Names::Only(programs), host: merged(), ..ProcessGrant::default() };
        for (asked, expect) in [
            ("ls", Some("/bin/ls")),
            ("/bin/ls", Some("/bin/ls")),
            ("/usr/bin/ls", Some("/bin/ls")),
            ("/sbin/ls", None),
            ("/opt/bin/ls", None),
            ("run", Some("/opt/a/run")),
            ("/opt/b/run", Some("/opt/b/run")),
            ("/opt/c/run", None),
            ("/init", Some("/init")),
            ("init", Some("/init")),
            ("LS", None),
            ("", None),
            ("/", None),
            ("/bin/", None),
            ("bin/ls", None),
            ("./ls", None),
            ("/bin/../bin/ls", None),
            ("/bin//ls", None),
            ("/bin/ls/", None),
            ("l?", None),
            ("*", None),
        ] {
            let expect = expect.map_or(Program::No, Program::Granted);
            assert_eq!(grant.find(asked), expect, "{asked:?}");
        }
        assert_eq!(ProcessGrant { programs: Names::Any, ..grant }.find("anything"), Program::Any);
    }

    /// A folder's link is resolved once, when the host is read. A program's link is not resolved.
    #[test]
    fn the_host_is_looked_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let path = |name: &str| base.join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(path("real")).unwrap();
        std::os::unix::fs::symlink("real", path("link")).unwrap();
        std::fs::write(path("real/busybox"), "").unwrap();
        std::os::unix::fs::symlink("busybox", path("real/vi")).unwrap();
        let programs = vec![path("link/vi")];
        let host = Host::look(programs.iter().map(String::as_str));
        let grant = ProcessGrant { programs: Names::Only(programs), host, ..ProcessGrant::default() };
        assert_eq!(grant.find(&path("real/vi")), Program::Granted(&path("link/vi")));
        assert_eq!(grant.find(&path("link/vi")), Program::Granted(&path("link/vi")));
        for other in ["real/busybox", "link/busybox"] {
            assert_eq!(grant.find(&path(other)), Program::No);
        }
    }

    #[test]
    fn where_programs_are() {
        assert!(locate("sh").ends_with("bin/sh"));
        assert_eq!(locate("no-such-program-anywhere"), "/usr/bin/no-such-program-anywhere");
    }
}
