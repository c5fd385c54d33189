//! Reads the keys that the configuration names: as lines, in files beside it, and in the owner's folder of keys.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Result, error, others_may_write};
use crate::policy::{Entry, Policy, Rules, Signer, Signers};
use crate::signature::SigningKey;

/// Default name of the owner's folder of keys, beside the configuration.
const FOLDER: &str = "module_keys";
const SUFFIX: &str = ".pub";
/// Upper bound on the keys in the folder. Each is tried on every signature.
const MAX_KEYS: usize = 100;
/// Upper bound on the bytes of a public-key file: a comment and a line.
const MAX_KEY_FILE: u64 = 4_096;

/// Where to look for keys, and those found.
struct Reader<'a> {
    /// The configuration's folder. None: no files are read.
    beside: Option<&'a Path>,
    folder: PathBuf,
    /// The keys in the owner's folder.
    any: Vec<SigningKey>,
    /// All keys that are named.
    keys: Vec<SigningKey>,
}

/// Fills in the keys that entries name. With `host` (the configuration's folder and the setting of the owner's folder
/// of keys), also reads keys from files.
pub(super) fn read(policy: &mut Policy, host: Option<(&Path, Option<&str>)>) -> Result<()> {
    let mut reader =
        Reader { beside: host.map(|(beside, _)| beside), folder: PathBuf::new(), any: Vec::new(), keys: Vec::new() };
    if let Some((beside, folder)) = host {
        reader.folder = beside.join(folder.unwrap_or(FOLDER));
        reader.any = keys_of(&reader.folder, folder.is_some())?;
    }
    reader.rules("sandbox:modules", &mut policy.general)?;
    for (master, rules) in &mut policy.masters {
        reader.rules(&format!("sandbox:masters:{master}:modules"), rules)?;
    }
    policy.revoked.keys.clear();
    for signer in &mut policy.revoked.written {
        reader.signer("sandbox:revoked:keys", signer)?;
        policy.revoked.keys.extend(signer.key);
    }
    for key in reader.any {
        if reader.keys.iter().all(|known| known.id != key.id) {
            reader.keys.push(key);
        }
    }
    policy.keys = reader.keys;
    Ok(())
}

impl Reader<'_> {
    fn rules(&mut self, path: &str, rules: &mut Rules) -> Result<()> {
        for ((module, function), entry) in &mut rules.functions {
            self.entry(&format!("{path}:{module}.{function}"), entry)?;
        }
        for (module, entry) in &mut rules.modules {
            self.entry(&format!("{path}:{module}"), entry)?;
        }
        self.entry(&format!("{path}:*"), &mut rules.every)
    }

    fn entry(&mut self, path: &str, entry: &mut Entry) -> Result<()> {
        let Some(Signers::Needed(quorum)) = &mut entry.signed_by else { return Ok(()) };
        let path = format!("{path}:signed_by");
        if quorum.any {
            let signer = |key: &SigningKey| Signer { written: key.written.clone(), key: Some(key.id) };
            quorum.of = self.any.iter().map(signer).collect();
        }
        for signer in &mut quorum.of {
            self.signer(&path, signer)?;
        }
        let there_are = quorum.keys().len();
        if self.beside.is_some() && there_are < quorum.at_least {
            let folder = self.folder.display();
            let why = match (quorum.any, there_are) {
                (true, 0) => format!(
                    "any key of {folder} is asked for, and there is none: put public keys there, as NAME{SUFFIX}"
                ),
                (true, some) => {
                    format!(
                        "{} signatures are asked for, and there are {some} different keys in {folder}",
                        quorum.at_least
                    )
                }
                (false, some) => {
                    format!("{} signatures are asked for, and there are {some} different keys", quorum.at_least)
                }
            };
            return error(&path, why);
        }
        Ok(())
    }

    fn signer(&mut self, path: &str, signer: &mut Signer) -> Result<()> {
        let key = match (SigningKey::line(&signer.written), self.beside) {
            (Some(key), _) => key,
            (None, Some(beside)) => self.file(path, &signer.written, beside)?,
            (None, None) => return Ok(()),
        };
        signer.key = Some(key.id);
        if self.keys.iter().all(|known| known.id != key.id) {
            self.keys.push(key);
        }
        Ok(())
    }

    fn file(&self, path: &str, written: &str, beside: &Path) -> Result<SigningKey> {
        // `join` with an absolute name ignores the folder.
        let files = [beside.join(written), self.folder.join(written)];
        let file = files.iter().find(|file| file.exists()).unwrap_or(&files[0]);
        read_key(path, file, written)
    }
}

/// Returns the keys in the owner's folder, by name.
fn keys_of(folder: &Path, named: bool) -> Result<Vec<SigningKey>> {
    let path = "sandbox:keys";
    let cannot = |why: io::Error| error(path, format!("the folder {} cannot be read: {why}", folder.display()));
    let entries = match fs::read_dir(folder) {
        Err(why) if why.kind() == io::ErrorKind::NotFound && !named => return Ok(Vec::new()),
        Err(why) => return cannot(why),
        Ok(entries) => entries,
    };
    if let Some(why) = others_may_write(folder) {
        return error(path, why);
    }
    // A folder in which others may create files is refused, even if it is sticky.
    if fs::metadata(folder).is_ok_and(|meta| meta.mode() & 0o022 != 0) {
        return error(path, format!("{} may be written by others; `chmod go-w` it", folder.display()));
    }
    let mut files = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => files.push(entry.path()),
            Err(why) => return cannot(why),
        }
    }
    files.retain(|file| file.to_str().is_some_and(|file| file.ends_with(SUFFIX)));
    if files.len() > MAX_KEYS {
        return error(path, format!("{} has more than {MAX_KEYS} keys", folder.display()));
    }
    files.sort();
    let name = |file: &Path| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    files.iter().map(|file| read_key(path, file, &name(file))).collect()
}

fn read_key(path: &str, file: &Path, written: &str) -> Result<SigningKey> {
    let cannot = |why: String| {
        error(path, format!("{written:?} is no public key of minisign, and the file {} {why}", file.display()))
    };
    if let Some(why) = others_may_write(file) {
        return error(path, why);
    }
    match brine_files::read_named_text(file, MAX_KEY_FILE) {
        Err(error) => cannot(format!("cannot be read: {error}")),
        Ok(text) => match SigningKey::file(&text, written) {
            Some(key) => Ok(key),
            None => cannot("has none in it: a line of comment and a line that begins with RW are expected".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::Settings;

    const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    const OTHER: &str = "RWR0ZXN0a2V5McEDcDky7N5lOKlopH4K4PYQPchhbUfGngoqhHd7JUAp";

    /// A configuration folder and its settings.
    struct Host {
        _dir: tempfile::TempDir,
        base: PathBuf,
    }

    impl Host {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            Self { base: dir.path().canonicalize().unwrap(), _dir: dir }
        }

        fn put(&self, file: &str, key: &str) -> PathBuf {
            let file = self.base.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, format!("untrusted comment: x\n{key}\n")).unwrap();
            file
        }

        fn load(&self, config: &str) -> std::result::Result<Policy, String> {
            let settings = Settings::load(&crate::testing::yaml(config), &self.base);
            settings.map(|settings| settings.policy).map_err(|error| error.to_string())
        }
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn every(policy: &Policy) -> Vec<(&str, Option<String>)> {
        let Some(Signers::Needed(quorum)) = &policy.general.every.signed_by else { panic!("nobody is asked for") };
        quorum.of.iter().map(|signer| (signer.written.as_str(), signer.key.map(|key| key.to_string()))).collect()
    }

    /// Keys are read beside the configuration and in the owner's folder, but not from places where other users may
    /// write.
    #[test]
    fn files_of_keys() {
        let host = Host::new();
        let config = "modules: {\"*\": {signed_by: [ops.pub]}}";
        let key = "sandbox:modules:*:signed_by";
        let file = host.base.join("ops.pub");
        let cannot = format!("{key}: \"ops.pub\" is no public key of minisign, and the file {}", file.display());
        assert_eq!(
            host.load(config).unwrap_err(),
            format!("{cannot} cannot be read: No such file or directory (os error 2)")
        );
        fs::write(&file, "x").unwrap();
        let expect = format!("{cannot} has none in it: a line of comment and a line that begins with RW are expected");
        assert_eq!(host.load(config).unwrap_err(), expect);
        host.put("ops.pub", KEY);
        let policy = host.load(config).unwrap();
        assert_eq!(every(&policy), [("ops.pub", Some(KEY.to_owned()))]);
        assert_eq!(policy.keys.len(), 1);
        mode(&file, 0o666);
        let why =
            format!("{} may be written by others (mode 666); `chmod go-w` it and give it to root", file.display());
        assert_eq!(host.load(config).unwrap_err(), format!("{key}: {why}"));
        // The owner's folder. A file beside the configuration takes precedence.
        fs::remove_file(&file).unwrap();
        host.put("module_keys/ops.pub", OTHER);
        assert_eq!(every(&host.load(config).unwrap()), [("ops.pub", Some(OTHER.to_owned()))]);
        host.put("ops.pub", KEY);
        assert_eq!(every(&host.load(config).unwrap()), [("ops.pub", Some(KEY.to_owned()))]);
    }

    #[test]
    fn any_key_of_the_folder() {
        let host = Host::new();
        let config = "modules: {\"*\": {signed_by: any}}";
        let folder = host.base.join("module_keys");
        let none = format!(
            "sandbox:modules:*:signed_by: any key of {} is asked for, and there is none: put public keys there, as NAME.pub",
            folder.display()
        );
        assert_eq!(host.load(config).unwrap_err(), none);
        host.put("module_keys/ops.pub", KEY);
        host.put("module_keys/README", "no key");
        let other = host.put("module_keys/dev.pub", OTHER);
        let policy = host.load(config).unwrap();
        assert_eq!(every(&policy), [("dev.pub", Some(OTHER.to_owned())), ("ops.pub", Some(KEY.to_owned()))]);
        assert_eq!(policy.general.every.to_string(), "{signed_by: any}");
        // Keys that no entry requires are read too: reports name them.
        assert_eq!(host.load("{}").unwrap().keys.len(), 2);
        // Another folder. A folder that is named must exist.
        let elsewhere = "{keys: elsewhere, modules: {\"*\": {signed_by: any}}}";
        let missing = format!(
            "sandbox:keys: the folder {} cannot be read: No such file or directory (os error 2)",
            host.base.join("elsewhere").display()
        );
        assert_eq!(host.load(elsewhere).unwrap_err(), missing);
        host.put("elsewhere/ops.pub", KEY);
        assert_eq!(every(&host.load(elsewhere).unwrap()), [("ops.pub", Some(KEY.to_owned()))]);
        // An invalid key, a key that others may change, and a folder in which others may write.
        fs::write(&other, "x").unwrap();
        assert!(host.load(config).unwrap_err().starts_with("sandbox:keys: \"dev.pub\" is no public key of minisign"));
        host.put("module_keys/dev.pub", OTHER);
        mode(&other, 0o622);
        assert!(host.load(config).unwrap_err().contains("may be written by others (mode 622)"));
        mode(&other, 0o644);
        for bad in [0o777, 0o1777] {
            mode(&folder, bad);
            let error = host.load(config).unwrap_err();
            assert!(error.starts_with("sandbox:keys: ") && error.contains("written by others"), "{error}");
        }
        mode(&folder, 0o755);
        assert!(host.load(config).is_ok());
    }

    #[test]
    fn several_keys_are_different_ones() {
        let host = Host::new();
        host.put("module_keys/ops.pub", KEY);
        host.put("module_keys/same.pub", KEY);
        let list = "modules: {x: {signed_by: {at_least: 2, of: [ops.pub, same.pub]}}}";
        let why = "2 signatures are asked for, and there are 1 different keys";
        assert_eq!(host.load(list).unwrap_err(), format!("sandbox:modules:x:signed_by: {why}"));
        let any = "modules: {x: {signed_by: {at_least: 2, of: any}}}";
        let folder = host.base.join("module_keys");
        assert_eq!(host.load(any).unwrap_err(), format!("sandbox:modules:x:signed_by: {why} in {}", folder.display()));
        host.put("module_keys/same.pub", OTHER);
        assert_eq!(
            host.load(list).unwrap().general.modules["x"].to_string(),
            "{signed_by: {at_least: 2, of: [ops.pub, same.pub]}}"
        );
        assert_eq!(host.load(any).unwrap().general.modules["x"].to_string(), "{signed_by: {at_least: 2, of: any}}");
    }

    /// A revoked key does not prevent the minion's start, even if it was the only one.
    #[test]
    fn revoked_keys() {
        let host = Host::new();
        host.put("module_keys/ops.pub", KEY);
        let policy = host.load("{revoked: {keys: [ops.pub]}, modules: {\"*\": {signed_by: any}}}").unwrap();
        assert!(policy.revoked.keys.contains(&policy.keys[0].id));
        let error = host.load("{revoked: {keys: [old.pub]}}").unwrap_err();
        assert!(error.starts_with("sandbox:revoked:keys: \"old.pub\" is no public key of minisign"), "{error}");
    }
}
