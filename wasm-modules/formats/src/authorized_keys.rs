//! The file `authorized_keys` of a user, as Salt's module `ssh` reads and edits it.

use brine_guest::changes::{self, Kind, Put};
use brine_guest::{Result, Value, path};

use crate::accounts::Account;
use crate::fingerprint;

/// Where the file is, below the user's directory.
pub const CONFIG: &str = ".ssh/authorized_keys";

/// A public key in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// In base64.
    pub key: String,
    /// Its kind, as `ssh-rsa`.
    pub enc: String,
    /// What comes after it.
    pub comment: String,
    /// What comes before it.
    pub options: Vec<String>,
    /// Its hash.
    pub fingerprint: String,
}

impl Key {
    /// As Salt's functions return it, without the key.
    pub fn value(&self) -> Value {
        Value::dict([
            ("enc", self.enc.as_str().into()),
            ("comment", self.comment.as_str().into()),
            ("options", self.options.clone().into()),
            ("fingerprint", self.fingerprint.as_str().into()),
        ])
    }
}

/// Splits a line into what is before the kind of a key, and the rest; none if it has no key.
pub fn split(line: &str) -> Option<(&str, &str)> {
    line.char_indices().map(|(at, _)| at).find_map(|at| {
        let rest = &line[at..];
        let key = rest.strip_prefix(char::is_whitespace).filter(|rest| is_key(rest));
        key.or_else(|| Some(rest).filter(|rest| is_key(rest))).map(|key| (&line[..at], key))
    })
}

/// Whether a text begins with the kind of a key, and has more.
fn is_key(text: &str) -> bool {
    let kind = text.strip_prefix("sk-").unwrap_or(text);
    let Some(rest) = kind.strip_prefix("ssh-").or_else(|| kind.strip_prefix("ecds")) else { return false };
    let is_name = |c: char| c.is_alphanumeric() || "_@.-".contains(c);
    let after = rest.trim_start_matches(is_name);
    let mut after_chars = after.chars();
    after.len() < rest.len() && after_chars.next().is_some_and(char::is_whitespace) && after_chars.next().is_some()
}

/// The keys in a text, the last of several equal ones.
///
/// # Errors
/// When there is no hash of this kind.
pub fn keys(text: &str, fingerprint_hash_type: Option<&str>) -> Result<Vec<Key>> {
    let mut keys: Vec<Key> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some((options, rest)) = split(line) else { continue };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let [enc, key, comment @ ..] = &fields[..] else { continue };
        let Some(fingerprint) = fingerprint::of(key, fingerprint_hash_type)? else { continue };
        let options = options.split(',').filter(|_| !options.is_empty()).map(str::to_owned).collect();
        let new = Key { key: (*key).into(), enc: (*enc).into(), comment: comment.join(" "), options, fingerprint };
        match keys.iter_mut().find(|known| known.key == new.key) {
            Some(known) => *known = new,
            None => keys.push(new),
        }
    }
    Ok(keys)
}

/// A kind of key by its short names.
///
/// # Errors
/// Salt's sentence, when there is no such kind.
pub fn kind(enc: &str) -> Result<&str> {
    const OTHERS: [&str; 13] = [
        "rsa-sha2-512",
        "rsa-sha2-256",
        "rsa-sha2-512-cert-v01@openssh.com",
        "rsa-sha2-256-cert-v01@openssh.com",
        "ssh-rsa-cert-v01@openssh.com",
        "ecdsa-sha2-nistp256-cert-v01@openssh.com",
        "ecdsa-sha2-nistp384-cert-v01@openssh.com",
        "ecdsa-sha2-nistp521-cert-v01@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
        "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
        "ssh-ed25519-cert-v01@openssh.com",
        "sk-ssh-ed25519@openssh.com",
        "sk-ssh-ed25519-cert-v01@openssh.com",
    ];
    match enc {
        "r" | "rsa" | "ssh-rsa" => Ok("ssh-rsa"),
        "d" | "dsa" | "dss" | "ssh-dss" => Ok("ssh-dss"),
        "e" | "ecdsa" => Ok("ecdsa-sha2-nistp256"),
        "ecdsa-sha2-nistp521" | "ecdsa-sha2-nistp384" | "ecdsa-sha2-nistp256" => Ok(enc),
        "ed25519" | "ssh-ed25519" => Ok("ssh-ed25519"),
        _ if OTHERS.contains(&enc) => Ok(enc),
        _ => Err(format!("Incorrect encryption key type '{enc}'.")),
    }
}

/// A key that is to be in a file.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// In base64.
    pub key: &'a str,
    /// Its kind, also by a short name.
    pub enc: &'a str,
    /// What comes after it.
    pub comment: &'a str,
    /// What comes before it.
    pub options: &'a [String],
}

/// How a key in a file compares with a wanted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is not there.
    Add,
    /// It is there with another comment, kind or options.
    Update,
    /// It is there.
    Exists,
}

impl Status {
    /// Salt's word.
    pub fn text(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Exists => "exists",
        }
    }
}

/// What became of a key that was to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// It is there now.
    New,
    /// It is another now.
    Replaced,
    /// It was there.
    Unchanged,
    /// It is no one word.
    Invalid,
    /// It is no base64.
    NoKey,
    /// There is no such user, or it has no directory.
    Failed,
}

impl Set {
    /// Salt's words.
    pub fn text(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Replaced => "replace",
            Self::Unchanged => "no change",
            Self::Invalid => "invalid",
            Self::NoKey => "Invalid public key",
            Self::Failed => "fail",
        }
    }
}

/// Salt's word for a key that was removed, or was not there.
pub fn removed(was_there: bool) -> &'static str {
    if was_there { "Key removed" } else { "Key not present" }
}

fn line(wanted: &Wanted<'_>, enc: &str) -> String {
    let options = if wanted.options.is_empty() { String::new() } else { format!("{} ", wanted.options.join(",")) };
    format!("{options}{enc} {} {}\n", wanted.key, wanted.comment)
}

/// The file of a user.
#[derive(Debug, Clone)]
pub struct File {
    account: Option<Account>,
    /// Where it is; none if there is no such user.
    path: Option<String>,
    old: Option<String>,
    text: String,
    hash: Option<String>,
}

impl File {
    /// Reads the file of a user; `config` is its path, absolute or below the user's directory, with `%u` and `%h`.
    ///
    /// # Errors
    /// One line, when it cannot be read, or the path is none.
    pub fn open(user: &str, config: Option<&str>, fingerprint_hash_type: Option<&str>) -> Result<Self> {
        let account = Account::named(user)?;
        let path = match &account {
            Some(account) => Some(account.path(&expand(config.unwrap_or(CONFIG), user, &account.home)?)),
            None => None,
        };
        let old = match &path {
            Some(path) if changes::is(path, Kind::Regular)? => changes::read_text(path)?,
            _ => None,
        };
        let text = old.clone().unwrap_or_default();
        Ok(Self { account, path, old, text, hash: fingerprint_hash_type.map(str::to_owned) })
    }

    /// The keys in it.
    ///
    /// # Errors
    /// When there is no hash of the wanted kind.
    pub fn keys(&self) -> Result<Vec<Key>> {
        keys(&self.text, self.hash.as_deref())
    }

    /// Compares a wanted key with the file.
    ///
    /// # Errors
    /// When there is no such kind of key.
    pub fn check(&self, wanted: &Wanted<'_>) -> Result<Status> {
        let new = line(wanted, kind(wanted.enc)?);
        let Some(known) = self.keys()?.into_iter().find(|known| known.key == wanted.key) else {
            return Ok(Status::Add);
        };
        let Key { key, enc, comment, options, .. } = &known;
        let old = line(&Wanted { key, enc, comment, options }, enc);
        Ok(if old == new { Status::Exists } else { Status::Update })
    }

    /// Sets a key, without writing the file.
    ///
    /// # Errors
    /// When there is no such kind of key, or something has more than one line.
    pub fn set(&mut self, wanted: &Wanted<'_>) -> Result<Set> {
        if wanted.key.split_whitespace().count() > 1 {
            return Ok(Set::Invalid);
        }
        let new = line(wanted, kind(wanted.enc)?);
        if new.trim_end_matches('\n').contains(['\n', '\r', '\0']) {
            return Err("a key, its options and its comment are one line".into());
        }
        let (Some(account), Some(path)) = (&self.account, &self.path) else { return Ok(Set::Failed) };
        if fingerprint::of(wanted.key, self.hash.as_deref())?.is_none() {
            return Ok(Set::NoKey);
        }
        match self.check(wanted)? {
            Status::Exists => Ok(Set::Unchanged),
            Status::Update => {
                self.text = replaced(&self.text, wanted.key, &new);
                Ok(Set::Replaced)
            }
            Status::Add => {
                if self.old.is_none() && !make_around(account, path)? {
                    return Ok(Set::Failed);
                }
                if !self.text.is_empty() && !self.text.ends_with('\n') {
                    self.text.push('\n');
                }
                self.text.push_str(&new);
                Ok(Set::New)
            }
        }
    }

    /// Removes a key, without writing the file; returns whether it was there.
    ///
    /// # Errors
    /// When there is no hash of the wanted kind.
    pub fn remove(&mut self, key: &str) -> Result<bool> {
        if !self.keys()?.iter().any(|known| known.key == key) {
            return Ok(false);
        }
        self.text = without(&self.text, key);
        Ok(true)
    }

    /// Sets all keys of a text, with other options if some are given; returns Salt's word for all of them.
    ///
    /// # Errors
    /// As [`File::set`].
    pub fn set_all(&mut self, text: &str, options: &[String]) -> Result<&'static str> {
        let keys = keys(text, self.hash.as_deref())?;
        let mut done = Vec::new();
        for Key { key, enc, comment, options: own, .. } in &keys {
            let options = if options.is_empty() { own } else { options };
            done.push(self.set(&Wanted { key, enc, comment, options })?);
        }
        let any = |one: Set| done.contains(&one);
        Ok(if keys.is_empty() || any(Set::Failed) {
            Set::Failed.text()
        } else if any(Set::Replaced) {
            Set::Replaced.text()
        } else if any(Set::New) {
            Set::New.text()
        } else {
            Set::Unchanged.text()
        })
    }

    /// Removes all keys of a text; returns Salt's word for all of them.
    ///
    /// # Errors
    /// As [`File::remove`].
    pub fn remove_all(&mut self, text: &str) -> Result<&'static str> {
        let keys = keys(text, self.hash.as_deref())?;
        let mut any = false;
        for key in &keys {
            any |= self.remove(&key.key)?;
        }
        Ok(if keys.is_empty() { "fail" } else { removed(any) })
    }

    /// Writes the file if it changed. A new one is its user's alone, and so is its directory.
    ///
    /// # Errors
    /// One line, when it cannot be written.
    pub fn save(self) -> Result<()> {
        let (Some(account), Some(path)) = (self.account, self.path) else { return Ok(()) };
        if self.old.as_ref() == Some(&self.text) || (self.old.is_none() && self.text.is_empty()) {
            return Ok(());
        }
        let put = Put::new(&path).instead_of(self.old.as_deref().map(str::as_bytes));
        if self.old.is_some() {
            return put.text(&self.text).map(drop);
        }
        let owner = account.owner();
        put.owner(owner.user, owner.group).mode(Some(0o600)).text(&self.text).map(drop)
    }
}

/// Makes the directories around a file that are missing. Returns false if the user's own directory, which is never made,
/// is one of them.
fn make_around(account: &Account, path: &str) -> Result<bool> {
    let (around, owner) = (path::dirname(path), account.owner());
    let Some(below) = around.strip_prefix(&account.home).filter(|below| below.starts_with('/')) else {
        changes::make_directory(around, true, &owner, Some(0o700))?;
        return Ok(true);
    };
    // The user's directory is not looked at: what is below it is enough to be granted.
    let mut place = account.home.clone();
    for part in below.split('/').filter(|part| !part.is_empty()) {
        place = path::join(&place, part);
        match changes::make_directory(&place, false, &owner, Some(0o700)) {
            Ok(_) => {}
            Err(why) if why.contains("[Errno 2]") => return Ok(false),
            Err(why) => return Err(why),
        }
    }
    Ok(true)
}

/// The path with its `%`: `%u` is the user, `%h` its directory.
fn expand(path: &str, user: &str, home: &str) -> Result<String> {
    let mut out = String::new();
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('%') => out.push('%'),
            Some('u') => out.push_str(user),
            Some('h') => out.push_str(home),
            Some(c) => return Err(format!("AuthorizedKeysFile path: unknown token character \"%{c}\"")),
            None => return Err("AuthorizedKeysFile path: Last character can't be escape character".into()),
        }
    }
    Ok(out)
}

/// The lines that stay: without blank ones, and trimmed.
fn trimmed(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

fn replaced(text: &str, key: &str, new: &str) -> String {
    let is = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_kind = |field: &str| field.contains("ssh-") || field.contains("ecdsa-");
        !line.starts_with('#') && fields.windows(2).any(|pair| is_kind(pair[0]) && pair[1] == key)
    };
    trimmed(text).map(|line| if is(line) { new.to_owned() } else { format!("{line}\n") }).collect()
}

/// As in Salt, lines that are neither keys nor comments go too.
fn without(text: &str, key: &str) -> String {
    let stays = |line: &&str| {
        line.starts_with('#')
            || split(line).is_some_and(|(_, rest)| rest.split_whitespace().nth(1).is_none_or(|known| known != key))
    };
    trimmed(text).filter(stays).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "# mine\nssh-rsa AAAAB3Nz a@b c\n\nfrom=\"10.*\",no-pty ssh-ed25519 AAAAC3Nz web\nrubbish\nssh-rsa ==bad x\n";

    fn file(text: &str) -> File {
        let account = Account { uid: 1, gid: 1, home: "/nowhere".into() };
        File {
            account: Some(account),
            path: Some("/etc/keys".into()),
            old: Some(text.into()),
            text: text.into(),
            hash: None,
        }
    }

    fn wanted<'a>(key: &'a str, comment: &'a str, options: &'a [String]) -> Wanted<'a> {
        Wanted { key, enc: "rsa", comment, options }
    }

    /// Recorded from the module `ssh` of Salt 3008.3.
    #[test]
    fn keys_are_read_as_salt_does() {
        let found = keys(FILE, Some("md5")).unwrap();
        let told: Vec<String> = found.iter().map(|key| format!("{} {}", key.key, key.value().to_text())).collect();
        assert_eq!(
            told,
            [
                "AAAAB3Nz {'enc': 'ssh-rsa', 'comment': 'a@b c', 'options': [], \
                 'fingerprint': '1a:26:4a:1e:25:6a:e8:28:54:fa:ce:01:cc:d9:23:26'}",
                "AAAAC3Nz {'enc': 'ssh-ed25519', 'comment': 'web', 'options': ['from=\"10.*\"', 'no-pty'], \
                 'fingerprint': '22:c5:a0:8a:16:04:19:00:c8:dc:b9:89:4c:36:e7:2e'}",
            ]
        );
        assert!(keys(FILE, Some("nope")).is_err());
        assert_eq!(split("a,b sk-ssh-ed25519@openssh.com AAAA x"), Some(("a,b", "sk-ssh-ed25519@openssh.com AAAA x")));
        assert_eq!((split("AAAA x"), split("ssh-rsa"), split("ssh-rsa ")), (None, None, None));
    }

    #[test]
    fn keys_are_set_and_removed_as_salt_does() {
        let mut one = file(FILE);
        assert_eq!(one.set(&wanted("AAAAB3Nz", "a@b c", &[])), Ok(Set::Unchanged));
        assert_eq!(one.set(&wanted("AAAAB3Nz", "new", &["no-pty".into()])), Ok(Set::Replaced));
        let rest = "from=\"10.*\",no-pty ssh-ed25519 AAAAC3Nz web\nrubbish\nssh-rsa ==bad x\n";
        assert_eq!(one.text, format!("# mine\nno-pty ssh-rsa AAAAB3Nz new\n{rest}"));
        assert_eq!(one.set(&wanted("AAAA", "", &[])), Ok(Set::New));
        assert!(one.text.ends_with("ssh-rsa ==bad x\nssh-rsa AAAA \n"));
        assert_eq!(one.remove("AAAAB3Nz"), Ok(true));
        assert_eq!(one.text, "# mine\nfrom=\"10.*\",no-pty ssh-ed25519 AAAAC3Nz web\nssh-rsa ==bad x\nssh-rsa AAAA\n");
        assert_eq!(one.remove("AAAAB3Nz"), Ok(false));
    }

    #[test]
    fn what_is_no_key_is_not_written() {
        let mut one = file("");
        assert_eq!(one.set(&wanted("a b", "", &[])), Ok(Set::Invalid));
        assert_eq!(one.set(&wanted("nokey!", "", &[])), Ok(Set::NoKey));
        assert!(one.set(&wanted("AAAA", "x\nssh-rsa BBBB evil", &[])).is_err());
        assert!(one.set(&wanted("AAAA", "", &["a\n".into()])).is_err());
        assert!(one.set(&Wanted { enc: "nope", ..wanted("AAAA", "", &[]) }).is_err());
        assert_eq!(one.text, "");
        assert_eq!(File { account: None, path: None, ..one }.set(&wanted("AAAA", "", &[])), Ok(Set::Failed));
    }

    #[test]
    fn paths_have_tokens() {
        assert_eq!(expand("%h/k/%u%%", "web", "/home/web").as_deref(), Ok("/home/web/k/web%"));
        assert!(expand("%x", "web", "/").is_err() && expand("a%", "web", "/").is_err());
    }
}
