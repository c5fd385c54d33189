//! The part of the settings that looks at the host, once: files of keys, links of folders, the minion's own user.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rmpv::Value;

use super::{Result, Settings, error};
use crate::grants::{Host, Names};
use crate::policy::{Capability, Entry, Grant, Policy, Rules, Signers};
use crate::signature::SigningKey;

/// Bytes of a file of a public key: a comment and a line.
const MAX_KEY_FILE: u64 = 4_096;

impl Settings {
    /// Reads the value of `sandbox` as [`Settings::read`] does, then the files of keys that it names (absolute or in `beside`, the
    /// folder of the configuration), and looks at what else a decision has to know of this host.
    pub fn load(value: &Value, beside: &Path) -> Result<Self> {
        let mut settings = Self::read(value)?;
        let policy = &mut settings.policy;
        policy.host = Host::look(programs(policy).iter().map(String::as_str));
        policy.host.user = own_user();
        read_keys(policy, Some(beside))?;
        Ok(settings)
    }
}

/// Fills in the keys that entries name; with a folder those in files too.
pub(super) fn read_keys(policy: &mut Policy, beside: Option<&Path>) -> Result<()> {
    policy.keys.clear();
    rules_keys("sandbox:modules", &mut policy.general, beside, &mut policy.keys)?;
    for (master, rules) in &mut policy.masters {
        rules_keys(&format!("sandbox:masters:{master}:modules"), rules, beside, &mut policy.keys)?;
    }
    Ok(())
}

/// Every program that is named anywhere.
fn programs(policy: &Policy) -> Vec<String> {
    let rules = std::iter::once(&policy.general).chain(policy.masters.values());
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

/// The name of the user that this process is, by the host's table of users.
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

fn rules_keys(path: &str, rules: &mut Rules, beside: Option<&Path>, keys: &mut Vec<SigningKey>) -> Result<()> {
    for ((module, function), entry) in &mut rules.functions {
        entry_keys(&format!("{path}:{module}.{function}"), entry, beside, keys)?;
    }
    for (module, entry) in &mut rules.modules {
        entry_keys(&format!("{path}:{module}"), entry, beside, keys)?;
    }
    entry_keys(&format!("{path}:*"), &mut rules.every, beside, keys)
}

fn entry_keys(path: &str, entry: &mut Entry, beside: Option<&Path>, keys: &mut Vec<SigningKey>) -> Result<()> {
    let Some(Signers::OneOf(signers)) = &mut entry.signed_by else { return Ok(()) };
    for signer in signers {
        let path = format!("{path}:signed_by");
        let key = match (SigningKey::line(&signer.written), beside) {
            (Some(key), _) => key,
            (None, Some(beside)) => key_file(&path, &signer.written, beside)?,
            (None, None) => continue,
        };
        signer.key = Some(key.id);
        if keys.iter().all(|known| known.id != key.id) {
            keys.push(key);
        }
    }
    Ok(())
}

fn key_file(path: &str, written: &str, beside: &Path) -> Result<SigningKey> {
    // An absolute name takes the folder's place.
    let file = beside.join(written);
    let cannot = |why: String| {
        error(path, format!("{written:?} is no public key of minisign, and the file {} {why}", file.display()))
    };
    if let Some(why) = others_may_write(&file) {
        return error(path, why);
    }
    let mut text = String::new();
    let read = fs::File::open(&file).and_then(|file| file.take(MAX_KEY_FILE).read_to_string(&mut text));
    match read {
        Err(error) => cannot(format!("cannot be read: {error}")),
        Ok(_) => match SigningKey::file(&text, written) {
            Some(key) => Ok(key),
            None => cannot("has none in it: a line of comment and a line that begins with RW are expected".to_owned()),
        },
    }
}

/// Why somebody else than root and this process's user could change what is in a file: one line; none where nobody can. A file
/// that is not there is nobody's.
pub fn others_may_write(file: &Path) -> Option<String> {
    let file = fs::canonicalize(file).ok()?;
    let me = rustix::process::geteuid().as_raw();
    let mut path: Option<&Path> = Some(&file);
    while let Some(at) = path {
        let meta = fs::symlink_metadata(at).ok()?;
        // In a folder like /tmp others may write, but not replace what is not theirs.
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

    /// Keys are read beside the configuration, and not where others could put theirs.
    #[test]
    fn files_of_keys() {
        const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let file = base.join("ops.pub");
        let config = crate::testing::yaml("modules: {\"*\": {signed_by: [ops.pub]}}");
        let load = || Settings::load(&config, &base).map(|settings| settings.policy).map_err(|error| error.to_string());
        let key = "sandbox:modules:*:signed_by";
        let cannot = format!("{key}: \"ops.pub\" is no public key of minisign, and the file {}", file.display());
        assert_eq!(load().unwrap_err(), format!("{cannot} cannot be read: No such file or directory (os error 2)"));
        fs::write(&file, "x").unwrap();
        let expect = format!("{cannot} has none in it: a line of comment and a line that begins with RW are expected");
        assert_eq!(load().unwrap_err(), expect);
        fs::write(&file, format!("untrusted comment: x\n{KEY}\n")).unwrap();
        let policy = load().unwrap();
        assert_eq!(policy.keys.len(), 1);
        assert!(
            matches!(&policy.general.every.signed_by, Some(Signers::OneOf(keys)) if keys[0].key == Some(policy.keys[0].id))
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        let why =
            format!("{} may be written by others (mode 666); `chmod go-w` it and give it to root", file.display());
        assert_eq!(load().unwrap_err(), format!("{key}: {why}"));
    }

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
        // Only root gives files away.
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
        // The same through a link from elsewhere.
        let other = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(&file, other.path().join("link")).unwrap();
        assert!(others_may_write(&other.path().join("link")).is_some());
        mode(&base, 0o1777);
        assert_eq!(others_may_write(&file), None);
        mode(&base, 0o700);
    }
}
