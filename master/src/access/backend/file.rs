//! `file`: names and passwords in a file, with Salt's options (`^filename`, `^filetype`, `^hashtype`,
//! `^field_separator`, `^username_field`, `^password_field`, `^realm`). `^groupfile` is Brine's own: lines of `group:
//! user user`, as in Apache's `AuthGroupFile`.
//!
//! The file is read at each log-in, so changes take effect at once.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use brine_protocol::value::{Value, ValueExt};
use md5::{Digest, Md5};
use sha2::{Sha256, Sha512};
use subtle::ConstantTimeEq;

use super::{Backend, htpasswd};

/// Largest size in bytes of a file with passwords or groups; enough for some ten thousand users.
const FILE_MAX: u64 = 4 << 20;

pub(super) struct File {
    path: PathBuf,
    kind: Kind,
    groups: Option<PathBuf>,
}

enum Kind {
    Text { hash: Hash, separator: String, username: usize, password: usize },
    Htpasswd,
    Htdigest { realm: String },
}

#[derive(Clone, Copy)]
enum Hash {
    Plain,
    Md5,
    Sha256,
    Sha512,
}

impl File {
    pub(super) fn new(options: &[(String, Value)]) -> Result<Self, String> {
        let option = |name: &str| options.iter().find(|(known, _)| known == name).map(|(_, value)| value.python_str());
        let field = |name: &str, default: usize| match option(name).map(|n| n.parse::<usize>()) {
            None => Ok(default - 1),
            Some(Ok(n @ 1..)) => Ok(n - 1),
            Some(_) => Err(format!("^{name} must be a number from 1")),
        };
        let path = option("filename").ok_or("^filename is not set")?;
        let kind = match option("filetype").as_deref() {
            None | Some("text") => Kind::Text {
                hash: match option("hashtype").as_deref() {
                    None | Some("plaintext") => Hash::Plain,
                    Some("md5") => Hash::Md5,
                    Some("sha256") => Hash::Sha256,
                    Some("sha512") => Hash::Sha512,
                    Some(other) => {
                        return Err(format!("^hashtype {other:?} is none of plaintext, md5, sha256, sha512"));
                    }
                },
                separator: option("field_separator").filter(|s| !s.is_empty()).unwrap_or_else(|| ":".to_owned()),
                username: field("username_field", 1)?,
                password: field("password_field", 2)?,
            },
            Some("htpasswd") => Kind::Htpasswd,
            Some("htdigest") => Kind::Htdigest { realm: option("realm").ok_or("htdigest needs ^realm")? },
            Some(other) => return Err(format!("^filetype {other:?} is none of text, htpasswd, htdigest")),
        };
        Ok(Self { path: path.into(), kind, groups: option("groupfile").map(PathBuf::from) })
    }
}

impl Backend for File {
    fn check(&self, username: &str, password: &str) -> Result<Option<Vec<String>>, String> {
        if self.accepts(username, password)? { self.groups(username).map(Some) } else { Ok(None) }
    }
}

impl File {
    fn accepts(&self, username: &str, password: &str) -> Result<bool, String> {
        let text = read(&self.path)?;
        Ok(match &self.kind {
            Kind::Text { hash, separator, username: name_at, password: password_at } => {
                let fields = |line: &'_ str| -> Option<(String, String)> {
                    let fields: Vec<&str> = line.trim().split(separator.as_str()).collect();
                    Some(((*fields.get(*name_at)?).to_owned(), (*fields.get(*password_at)?).to_owned()))
                };
                let stored = text.lines().filter_map(fields).find(|(name, _)| name == username);
                stored.is_some_and(|(_, stored)| hash.matches(password, &stored))
            }
            Kind::Htpasswd => {
                match text.lines().filter_map(|line| line.trim().split_once(':')).find(|(n, _)| *n == username) {
                    Some((_, stored)) => htpasswd::verify(password, stored)?,
                    None => false,
                }
            }
            Kind::Htdigest { realm } => {
                let start = format!("{username}:{realm}:");
                let stored = text.lines().find_map(|line| line.trim().strip_prefix(&start));
                let digest = hex::encode(Md5::digest(format!("{start}{password}")));
                // With a colon in the name, `name:realm:` could be another user's prefix.
                !username.contains(':') && stored.is_some_and(|stored| same(&digest, &stored.to_lowercase()))
            }
        })
    }

    fn groups(&self, username: &str) -> Result<Vec<String>, String> {
        let Some(path) = &self.groups else { return Ok(Vec::new()) };
        let text = read(path)?;
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let of_user = lines.filter(|(_, users)| users.split_whitespace().any(|user| user == username));
        Ok(of_user.map(|(group, _)| group.trim().to_owned()).collect())
    }
}

impl Hash {
    fn matches(self, password: &str, stored: &str) -> bool {
        match self {
            Self::Plain => same(password, stored),
            Self::Md5 => same(&hex::encode(Md5::digest(password)), stored),
            Self::Sha256 => same(&hex::encode(Sha256::digest(password)), stored),
            Self::Sha512 => same(&hex::encode(Sha512::digest(password)), stored),
        }
    }
}

fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

fn read(path: &Path) -> Result<String, String> {
    let failed = |why: std::io::Error| format!("{}: {why}", path.display());
    let file = brine_files::open_named(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.permissions().mode() & 0o002 != 0 {
        return Err(format!("{} is not used: everybody may write it. Run: chmod o-w {0}", path.display()));
    }
    let content = brine_files::read(&file, FILE_MAX).map_err(failed)?;
    String::from_utf8(content).map_err(|_| format!("{}: it is no text in UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &str, options: &[(&str, &str)]) -> (tempfile::TempDir, File) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users");
        std::fs::write(&path, content).unwrap();
        let mut all = vec![("filename".to_owned(), Value::from(path.to_str().unwrap()))];
        all.extend(options.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
        (dir, File::new(&all).unwrap())
    }

    #[test]
    fn text_files() {
        let (_dir, users) = file("dean:goneFishing\n\nbroken\ngene:OceanMan\ndean:second\n", &[]);
        for (name, password, yes) in [
            ("dean", "goneFishing", true),
            ("gene", "OceanMan", true),
            ("gene", "oceanman", false),
            ("dean", "second", false),
            ("broken", "", false),
            ("nobody", "OceanMan", false),
        ] {
            assert_eq!(users.accepts(name, password), Ok(yes), "{name} {password}");
        }
        // The example in the documentation of Salt's module.
        let legacy = [("hashtype", "md5"), ("username_field", "2"), ("password_field", "3"), ("field_separator", "|")];
        let (_dir, users) = file("46|trey|098f6bcd4621d373cade4e832627b4f6\n", &legacy);
        assert_eq!((users.accepts("trey", "test"), users.accepts("trey", "Test")), (Ok(true), Ok(false)));
        let (_dir, users) = file(&format!("a:{}\n", hex::encode(Sha512::digest("b"))), &[("hashtype", "sha512")]);
        assert_eq!((users.accepts("a", "b"), users.accepts("a", "")), (Ok(true), Ok(false)));
    }

    #[test]
    fn digest_files() {
        // As htdigest makes it for ("cory", "Realm", "pw").
        let line = format!("cory:Realm:{}\n", hex::encode(Md5::digest("cory:Realm:pw")));
        let (_dir, users) = file(&line, &[("filetype", "htdigest"), ("realm", "Realm")]);
        assert_eq!((users.accepts("cory", "pw"), users.accepts("cory", "pW")), (Ok(true), Ok(false)));
        let (_dir, users) = file(&line, &[("filetype", "htdigest"), ("realm", "Other")]);
        assert_eq!(users.accepts("cory", "pw"), Ok(false));
    }

    #[test]
    fn groups() {
        let (dir, _) = file("a:b\n", &[]);
        std::fs::write(dir.path().join("groups"), "admins: joe ann\nweb: ann\n").unwrap();
        let (_keep, users) = file("a:b\n", &[("groupfile", dir.path().join("groups").to_str().unwrap())]);
        assert_eq!(users.groups("ann").unwrap(), ["admins", "web"]);
        assert!(users.groups("an").unwrap().is_empty());
    }

    #[test]
    fn a_file_that_everybody_may_write_is_not_used() {
        let (dir, users) = file("a:b\n", &[]);
        let path = dir.path().join("users");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(users.accepts("a", "b").unwrap_err().contains("chmod o-w"));
    }

    #[test]
    fn options_are_checked() {
        let option = |name: &str, value: &str| (name.to_owned(), Value::from(value));
        for (options, why) in [
            (vec![], "^filename"),
            (vec![option("filename", "x"), option("filetype", "csv")], "^filetype"),
            (vec![option("filename", "x"), option("hashtype", "rot13")], "^hashtype"),
            (vec![option("filename", "x"), option("filetype", "htdigest")], "^realm"),
            (vec![option("filename", "x"), option("username_field", "0")], "^username_field"),
        ] {
            let error = File::new(&options).err().unwrap();
            assert!(error.contains(why), "{error}");
        }
    }
}
