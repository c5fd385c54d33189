//! The part of the settings that reads from the host, once: symbolic links of folders, the minion's own user, write
//! permissions. `keys.rs` reads the keys.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_capabilities::{Capability, Grant, Host, Names};
use rmpv::Value;

use super::{Result, Settings, keys};
use crate::policy::Policy;

impl Settings {
    /// Reads the value of `sandbox` like [`Settings::read`]. Reads the owner's profiles before, and then the key files that it names (absolute, in
    /// `beside`, which is the configuration's folder, or in the owner's folder of keys) and the facts of this host that
    /// decisions need.
    ///
    /// # Errors
    ///
    /// A setting or a key file is invalid, or other users may write it.
    pub fn load(value: &Value, beside: &Path) -> Result<Self> {
        let entries = super::values::entries("sandbox", value)?;
        let folder = entries.iter().find(|(key, _)| *key == "profiles_dir").map(|(_, value)| value);
        let folder = folder.map(|value| super::values::text("sandbox:profiles_dir", value)).transpose()?;
        let library = super::profiles::Library::load(beside, folder)?;
        let mut settings = Self::read_with(value, &library)?;
        settings.policy.own_profiles = library.own()?;
        let policy = &mut settings.policy;
        policy.host = Host::look(programs(policy).iter().map(String::as_str));
        policy.host.user = own_user();
        keys::read(policy, Some((beside, settings.keys.as_deref())))?;
        Ok(settings)
    }
}

/// Returns all programs that the policy names.
fn programs(policy: &Policy) -> Vec<String> {
    let profiles = policy.profiles.iter().map(|profile| &profile.rules);
    let rules = std::iter::once(&policy.general).chain(policy.masters.values()).chain(profiles);
    let entries = rules.flat_map(|rules| rules.functions.values().chain(rules.modules.values()).chain([&rules.every]));
    let grants = entries.filter_map(|entry| entry.says.get(&Capability::Process));
    let names = grants.filter_map(|grant| match grant {
        Grant::Process(process) => match &process.programs {
            Names::Only(programs) => Some(programs.clone()),
            Names::Any => None,
        },
        _ => None,
    });
    names.flatten().collect()
}

/// Returns the name of this process's user from the host's table of users.
fn own_user() -> Option<std::sync::Arc<str>> {
    let uid = rustix::process::geteuid().as_raw();
    if uid == 0 {
        return Some("root".into());
    }
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    fields
        .filter(|fields| fields.get(2) == Some(&uid.to_string().as_str()))
        .find_map(|fields| Some((*fields.first()?).into()))
}

/// Returns one line that says why a user other than root and this process's user could change a file. None if no one
/// else can, or if the file does not exist.
pub fn others_may_write(file: &Path) -> Option<String> {
    let file = fs::canonicalize(file).ok()?;
    let me = rustix::process::geteuid().as_raw();
    let mut path: Option<&Path> = Some(&file);
    while let Some(at) = path {
        let meta = fs::symlink_metadata(at).ok()?;
        // In a sticky folder like /tmp, other users may create files but not replace another user's files.
        let kept = meta.is_dir() && meta.mode() & 0o1000 != 0;
        let why = if meta.uid() != 0 && meta.uid() != me {
            format!("belongs to user {}", meta.uid())
        } else if meta.mode() & 0o022 != 0 && !kept {
            format!("may be written by others (mode {:o})", meta.mode() & 0o7777)
        } else {
            path = at.parent();
            continue;
        };
        let at: PathBuf = at.to_owned();
        let whose = if at == file { String::new() } else { format!("{} can be replaced: ", file.display()) };
        return Some(format!("{whose}{} {why}; `chmod go-w` it and give it to root", at.display()));
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_that_others_may_write() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let file = base.join("key.pub");
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(others_may_write(&file), None);
        fs::write(&file, "").unwrap();
        mode(&file, 0o644);
        assert_eq!(others_may_write(&file), None);
        for bad in [0o664, 0o646] {
            mode(&file, bad);
            let why = others_may_write(&file).unwrap();
            let expect = format!(
                "{} may be written by others (mode {bad:o}); `chmod go-w` it and give it to root",
                file.display()
            );
            assert_eq!(why, expect);
        }
        mode(&file, 0o644);
        // Only root can change a file's owner.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(4711), None).unwrap();
            let why = format!("{} belongs to user 4711; `chmod go-w` it and give it to root", file.display());
            assert_eq!(others_may_write(&file), Some(why));
            std::os::unix::fs::chown(&file, Some(0), None).unwrap();
        }
        mode(&base, 0o777);
        let why = others_may_write(&file).unwrap();
        assert!(
            why.starts_with(&format!("{} can be replaced: {} may be written", file.display(), base.display())),
            "{why}"
        );
        // The same through a symbolic link from elsewhere.
        let other = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(&file, other.path().join("link")).unwrap();
        assert!(others_may_write(&other.path().join("link")).is_some());
        mode(&base, 0o1777);
        assert_eq!(others_may_write(&file), None);
        mode(&base, 0o700);
    }
}
