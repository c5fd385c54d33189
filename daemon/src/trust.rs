//! A user who may write a minion's configuration controls its master and the rights of modules on this host; one who
//! may write a master's configuration controls all its minions. So only root and the user that reads a configuration
//! may write its files, the folders on the way to them, and the links on that way (the class of CVE-2021-22004). No
//! setting switches this check off, because it would be in the file itself.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Upper bound on the links on the way to a file, as in the kernel.
const MAX_LINKS: usize = 40;
const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o022;

/// Other users may change a file that the daemon reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{wanted} is not read, because {whose} may be changed by others than root and the user who reads it (mode {mode:04o}, owner {owner}); \
     mend that with: {mend}",
    whose = Whose { path, wanted },
    mend = self.mend()
)]
pub struct Untrusted {
    /// The file or folder to be read.
    wanted: PathBuf,
    /// The part that others may change: the file, a folder on the way, or a link.
    path: PathBuf,
    mode: u32,
    owner: u32,
    wrong_owner: bool,
    /// The user that should own it.
    user: u32,
}

struct Whose<'a> {
    path: &'a Path,
    wanted: &'a Path,
}

impl fmt::Display for Whose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path == self.wanted { f.write_str("it") } else { write!(f, "{}", self.path.display()) }
    }
}

impl Untrusted {
    fn mend(&self) -> String {
        let path = quoted(&self.path);
        let chown = self.wrong_owner.then(|| {
            let user = crate::user::name_of(self.user).unwrap_or_else(|| self.user.to_string());
            format!("chown -h {user} {path}")
        });
        let chmod = (self.mode & OTHERS_WRITE != 0).then(|| format!("chmod go-w {path}"));
        chown.into_iter().chain(chmod).collect::<Vec<_>>().join(" && ")
    }
}

/// A path quoted for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = brine_protocol::text::line(&text);
    let plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+@%:,".contains(c));
    if plain { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Checks a file or folder of the configuration and the way to it. A missing path passes if its folder does.
///
/// # Errors
/// When other users may write the path or a folder above it.
pub fn check(path: &Path) -> Result<(), Untrusted> {
    check_for(path, rustix::process::geteuid().as_raw())
}

fn check_for(wanted: &Path, user: u32) -> Result<(), Untrusted> {
    let refuse = |path: &Path, meta: &fs::Metadata, may_be_sticky: bool, link: bool| {
        let mode = meta.mode() & 0o7777;
        let wrong_owner = meta.uid() != 0 && meta.uid() != user;
        // A link has no mode of its own: the mode of its folder determines which users may replace it.
        let writable = !link && mode & OTHERS_WRITE != 0 && !(may_be_sticky && mode & STICKY != 0);
        if !wrong_owner && !writable {
            return Ok(());
        }
        let mode = if link { mode & !OTHERS_WRITE } else { mode };
        let (wanted, path) = (wanted.to_owned(), path.to_owned());
        Err(Untrusted { wanted, path, mode, owner: meta.uid(), wrong_owner, user })
    };
    let Ok(absolute) = std::path::absolute(wanted) else { return Ok(()) };
    let mut left: VecDeque<OsString> = parts(&absolute).collect();
    let mut here = PathBuf::from("/");
    let mut links = 0;
    // A path that cannot be examined cannot be read either, and reading reports the error.
    let Ok(mut folder) = fs::symlink_metadata(&here) else { return Ok(()) };
    loop {
        // In a sticky folder, others cannot replace this user's files, but they can add new ones. So a file that is
        // read may not lie directly in a sticky folder.
        refuse(&here, &folder, left.len() > 1, false)?;
        let Some(part) = left.pop_front() else { return Ok(()) };
        if part == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&part);
        let Ok(meta) = fs::symlink_metadata(&next) else { return Ok(()) };
        if meta.is_symlink() {
            refuse(&next, &meta, true, true)?;
            links += 1;
            let Ok(target) = fs::read_link(&next) else { return Ok(()) };
            if links > MAX_LINKS {
                return Ok(());
            }
            if target.is_absolute() {
                here = PathBuf::from("/");
                let Ok(root) = fs::symlink_metadata(&here) else { return Ok(()) };
                folder = root;
            }
            for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                left.push_front(part);
            }
            continue;
        }
        if !meta.is_dir() {
            return refuse(&next, &meta, false, false);
        }
        (here, folder) = (next, meta);
    }
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A folder `etc` with a file; both are acceptable.
    fn tree() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let etc = root.path().join("etc");
        fs::create_dir(&etc).unwrap();
        chmod(&etc, 0o755);
        let file = etc.join("minion");
        fs::write(&file, "").unwrap();
        chmod(&file, 0o644);
        (root, etc, file)
    }

    #[test]
    fn files_and_folders_that_others_may_write_are_refused_with_what_mends_it() {
        let (root, etc, file) = tree();
        assert_eq!(check(&file), Ok(()));
        for (path, bad, good) in
            [(&file, 0o664, 0o644), (&file, 0o646, 0o600), (&etc, 0o775, 0o755), (&etc, 0o757, 0o700)]
        {
            chmod(path, bad);
            let error = check(&file).unwrap_err();
            assert_eq!(error.path, *path);
            let text = error.to_string();
            let mend = format!("mode {bad:04o}, owner {}); mend that with: chmod go-w {}", error.owner, path.display());
            assert!(
                text.starts_with(&file.display().to_string()) && text.contains(&mend) && !text.contains('\n'),
                "{text}"
            );
            chmod(path, good);
            assert_eq!(check(&file), Ok(()));
        }
        // Others could make the missing file.
        chmod(&etc, 0o777);
        assert!(check(&etc.join("absent")).is_err());
        assert!(check(&etc).is_err());
        chmod(&etc, 0o755);
        assert_eq!(check(&etc.join("absent")), Ok(()));
        assert_eq!(check(&root.path().join("no/such/folder")), Ok(()));
    }

    /// `/tmp` itself is sticky, so tests run below it; directly in such a folder nothing is trusted.
    #[test]
    fn a_sticky_folder_may_be_on_the_way_and_no_more() {
        let (root, etc, file) = tree();
        chmod(root.path(), 0o1777);
        assert_eq!(check(&file), Ok(()));
        chmod(root.path(), 0o777);
        assert_eq!(check(&file).unwrap_err().path, root.path());
        chmod(root.path(), 0o700);
        chmod(&etc, 0o1777);
        assert_eq!(check(&file).unwrap_err().path, etc);
    }

    #[test]
    fn links_are_followed_to_all_that_they_pass() {
        let (root, etc, file) = tree();
        let other = root.path().join("other");
        fs::create_dir(&other).unwrap();
        for link in [other.join("absolute"), other.join("relative")] {
            let target = if link.ends_with("absolute") { file.clone() } else { PathBuf::from("../etc/minion") };
            symlink(target, &link).unwrap();
            assert_eq!(check(&link), Ok(()));
            chmod(&file, 0o666);
            assert_eq!(check(&link).unwrap_err().path, file);
            chmod(&file, 0o644);
            chmod(&etc, 0o777);
            assert_eq!(check(&link).unwrap_err().path, etc);
            chmod(&etc, 0o755);
            // The folder of the link itself.
            chmod(&other, 0o777);
            assert_eq!(check(&link).unwrap_err().path, other);
            chmod(&other, 0o755);
        }
        let round = other.join("round");
        symlink("round", &round).unwrap();
        assert_eq!(check(&round), Ok(())); // reading it fails
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        let (_root, etc, file) = tree();
        let owner = fs::metadata(&file).unwrap().uid();
        let stranger = owner.wrapping_add(4711);
        // For another user, the same files belong to a foreign user; files of root would be trusted.
        let seen = check_for(&file, stranger);
        if owner == 0 {
            assert_eq!(seen, Ok(()));
            std::os::unix::fs::chown(&file, Some(4711), None).unwrap();
            let error = check(&file).unwrap_err();
            assert!(error.to_string().contains(&format!("chown -h root {}", file.display())), "{error}");
            assert_eq!(check_for(&file, 4711), Ok(()));
            std::os::unix::fs::chown(&file, Some(0), None).unwrap();
            std::os::unix::fs::chown(&etc, Some(4711), None).unwrap();
            assert_eq!(check(&file).unwrap_err().path, etc);
            std::os::unix::fs::chown(&etc, Some(0), None).unwrap();
            let link = etc.join("link");
            symlink(&file, &link).unwrap();
            std::os::unix::fs::lchown(&link, Some(4711), None).unwrap();
            assert_eq!(check(&link).unwrap_err().path, link);
        } else {
            assert!(seen.unwrap_err().wrong_owner);
        }
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted(Path::new("/etc/salt/minion")), "/etc/salt/minion");
        assert_eq!(quoted(Path::new("/a b/$(x)'y")), r"'/a b/$(x)'\''y'");
        assert_eq!(quoted(Path::new("/a\nb")), "'/a\\nb'");
    }
}
