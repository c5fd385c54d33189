//! The files `known_hosts` of ssh: names of hosts, which may be hashed, with their keys. What `ssh-keygen -F`, `-R` and `-H` do
//! is done here, without a program.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_guest::changes::{self, Content, Kind, Owner, Put};
use brine_guest::{Result, Value, path};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use crate::accounts::Account;
use crate::fingerprint;

/// What hashed names begin with: HMAC-SHA1 of the name, with its key before it.
const HASHED: &str = "|1|";
/// The port that is not part of a name.
const PORT: i64 = 22;
/// Upper bound on the steps of matching a name with a pattern.
const MAX_STEPS: usize = 100_000;

/// A host's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The names, as in the file.
    pub hostname: String,
    /// In base64.
    pub key: String,
    /// Its kind.
    pub enc: String,
    /// Its hash; none of a key that was given.
    pub fingerprint: Option<String>,
    /// The port that is written with the name.
    pub port: Option<i64>,
}

impl Entry {
    /// As Salt's functions return it.
    pub fn value(&self) -> Value {
        let mut entries = vec![
            ("hostname", self.hostname.as_str().into()),
            ("key", self.key.as_str().into()),
            ("enc", self.enc.as_str().into()),
        ];
        entries.extend(self.fingerprint.as_deref().map(|fingerprint| ("fingerprint", fingerprint.into())));
        entries.extend(self.port.map(|port| ("port", port.into())));
        Value::dict(entries)
    }

    /// The entry of a line with exactly three fields; none of other lines, as in Salt.
    ///
    /// # Errors
    /// When there is no hash of this kind.
    pub fn of_line(line: &str, fingerprint_hash_type: Option<&str>) -> Result<Option<Self>> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [hostname, enc, key] = fields[..] else { return Ok(None) };
        if hostname.starts_with('#') {
            return Ok(None);
        }
        let fingerprint = fingerprint::of(key, fingerprint_hash_type)?.filter(|_| !key.is_empty());
        Ok(fingerprint.map(|fingerprint| Self {
            hostname: hostname.to_owned(),
            key: key.to_owned(),
            enc: enc.to_owned(),
            fingerprint: Some(fingerprint),
            port: None,
        }))
    }
}

/// A list of entries as Salt's functions return it.
pub fn value(entries: &[Entry]) -> Value {
    match entries {
        [] => Value::None,
        entries => Value::List(entries.iter().map(Entry::value).collect()),
    }
}

/// The port that is written with a name: one that is not 22, of a name without one.
pub fn written_port(hostname: &str, port: Option<i64>) -> Option<i64> {
    port.filter(|port| *port != PORT && !hostname.contains(':'))
}

/// Whether a key, or one with a fingerprint, is among the known ones: Salt's `exists`, `add` or `update`.
pub fn check(known: &[Entry], key: Option<&str>, fingerprint: Option<&str>) -> &'static str {
    let given = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
    let is = match (given(key), given(fingerprint)) {
        _ if known.is_empty() => return "add",
        (Some(key), _) => known.iter().any(|entry| entry.key == key),
        (None, fingerprint @ Some(_)) => known.iter().any(|entry| entry.fingerprint == fingerprint),
        (None, None) => true,
    };
    if is { "exists" } else { "update" }
}

/// Random bytes for a hashed name, from random numbers.
pub fn salt(mut random: impl FnMut() -> u64) -> [u8; 20] {
    let mut salt = [0; 20];
    for part in salt.chunks_mut(8) {
        part.copy_from_slice(&random().to_le_bytes()[..part.len()]);
    }
    salt
}

/// The name that a host has in files: with its port, unless that is 22.
///
/// # Errors
/// When it is no name.
pub fn name(hostname: &str, port: Option<i64>) -> Result<String> {
    if hostname.is_empty()
        || hostname.starts_with('-')
        || hostname.contains(|c: char| c.is_whitespace() || c.is_control() || ",|*?!#".contains(c))
    {
        return Err(format!("{hostname:?} is no host's name"));
    }
    Ok(match port {
        Some(port) if port != PORT && port != 0 => format!("[{hostname}]:{port}"),
        _ => hostname.to_owned(),
    })
}

/// A file.
#[derive(Debug, Clone)]
pub struct File {
    /// Where it is.
    pub path: String,
    account: Option<Account>,
    old: Option<String>,
    text: String,
}

impl File {
    /// Reads a file: a user's, or the host's without one. `config` is its path, of a user's also below its directory.
    ///
    /// # Errors
    /// Salt's sentence: there is no such user, or the path is not absolute.
    pub fn open(user: Option<&str>, config: Option<&str>) -> Result<Self> {
        let config = config.filter(|config| !config.is_empty());
        let (path, account) = match user.filter(|user| !user.is_empty()) {
            None => {
                let config = config.unwrap_or("/etc/ssh/ssh_known_hosts");
                if !config.starts_with('/') {
                    return Err("Cannot determine absolute path to file.".into());
                }
                (config.to_owned(), None)
            }
            Some(user) => {
                let account = Account::named(user)?.ok_or_else(|| format!("User {user} does not exist"))?;
                (account.path(config.unwrap_or(".ssh/known_hosts")), Some(account))
            }
        };
        let old = if changes::is(&path, Kind::Regular)? { changes::read_text(&path)? } else { None };
        Ok(Self { path, account, text: old.clone().unwrap_or_default(), old })
    }

    /// Whether the file is there.
    pub fn is_there(&self) -> bool {
        self.old.is_some()
    }

    /// The entries of a name.
    ///
    /// # Errors
    /// When there is no hash of this kind.
    pub fn entries(&self, name: &str, fingerprint_hash_type: Option<&str>) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        for line in self.text.lines().filter(|line| is_of(line, name)) {
            found.extend(Entry::of_line(line, fingerprint_hash_type)?);
        }
        Ok(found)
    }

    /// Removes the lines of a name, those of one kind of key if it is given; returns their numbers, from 1.
    pub fn remove(&mut self, name: &str, enc: Option<&str>) -> Vec<usize> {
        let mut gone = Vec::new();
        let mut left = String::new();
        for (number, line) in self.text.split_inclusive('\n').enumerate() {
            let kind = line.split_whitespace().rev().nth(1);
            if is_of(line, name) && enc.is_none_or(|enc| kind == Some(enc)) {
                gone.push(number + 1);
            } else {
                left.push_str(line);
            }
        }
        self.text = left;
        gone
    }

    /// Removes all lines of a name and writes the file; returns what `ssh-keygen -R` says.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn forget(mut self, name: &str) -> Result<String> {
        let path = self.path.clone();
        let gone = self.remove(name, None);
        if gone.is_empty() {
            return Ok(format!("Host {name} not found in {path}"));
        }
        self.save(true)?;
        let mut lines: Vec<String> = gone.iter().map(|number| format!("# Host {name} found: line {number}")).collect();
        lines.push(format!("{path} updated."));
        lines.push(format!("Original contents retained as {path}.old"));
        Ok(lines.join("\n"))
    }

    /// Adds the entries at the end.
    ///
    /// # Errors
    /// When a field is no word.
    pub fn add(&mut self, entries: &[Entry]) -> Result<()> {
        for Entry { hostname, key, enc, port, .. } in entries {
            if [hostname, key, enc].iter().any(|field| field.is_empty() || field.contains(char::is_whitespace)) {
                return Err(format!("the key of {hostname:?} is not one word"));
            }
            let hostname = match port {
                Some(port) => format!("[{hostname}]:{port}"),
                None => hostname.clone(),
            };
            if !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text.push_str(&format!("{hostname} {enc} {key}\n"));
        }
        Ok(())
    }

    /// Hashes all names. `salt` gives random bytes.
    pub fn hash(&mut self, mut salt: impl FnMut() -> [u8; 20]) {
        let mut text = String::new();
        for line in self.text.lines() {
            let (names, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            if names.is_empty() || names.starts_with(['#', '@', '|']) || names.contains(['*', '?', '!']) {
                text.push_str(line);
                text.push('\n');
                continue;
            }
            for name in names.split(',') {
                text.push_str(&format!("{} {rest}\n", hashed(&name.to_lowercase(), &salt())));
            }
        }
        self.text = text;
    }

    /// Writes the file if it changed. A new one is its user's alone, and so is its directory. With `keep`, what was there
    /// stays beside it as `.old`.
    ///
    /// # Errors
    /// One line, when it cannot be written.
    pub fn save(self, keep: bool) -> Result<()> {
        if self.old.as_ref() == Some(&self.text) {
            return Ok(());
        }
        let owner = match &self.account {
            Some(account) => account.owner(),
            None => Owner { user: None, group: None },
        };
        if keep && self.old.is_some() {
            let old = format!("{}.old", self.path);
            let put = Put::new(&old).follow(false).owner(owner.user.clone(), owner.group.clone()).mode(Some(0o600));
            put.content(&Content::File(self.path.clone()))?;
        }
        let mode = self.old.is_none().then_some(0o600);
        let put = Put::new(&self.path).instead_of(self.old.as_deref().map(str::as_bytes));
        let put = put.owner(owner.user.clone(), owner.group.clone()).mode(mode);
        match put.clone().text(&self.text) {
            // The directory is looked at only here: it need not be granted where it is there.
            Err(why) if why.contains("[Errno 2]") => {
                let mode = self.account.as_ref().map(|_| 0o700);
                changes::make_directory(path::dirname(&self.path), true, &owner, mode)?;
                put.text(&self.text).map(drop)
            }
            done => done.map(drop),
        }
    }
}

fn hashed(name: &str, salt: &[u8]) -> String {
    format!("{HASHED}{}|{}", STANDARD.encode(salt), STANDARD.encode(mac(name, salt)))
}

fn mac(name: &str, salt: &[u8]) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(salt) else { return Vec::new() };
    mac.update(name.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Whether a line is of a host, as ssh reads it.
fn is_of(line: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    let mut fields = line.split_whitespace();
    let names = match fields.next() {
        Some(marker) if marker.starts_with('@') => fields.next(),
        first => first,
    };
    let Some(names) = names.filter(|names| !names.starts_with('#')) else { return false };
    if let Some(hash) = names.strip_prefix(HASHED) {
        let salt = hash.split_once('|').map(|(salt, _)| STANDARD.decode(salt));
        return matches!(salt, Some(Ok(salt)) if hashed(&name, &salt) == names);
    }
    let mut is = false;
    for pattern in names.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches(pattern, &name) => return false,
            Some(_) => {}
            None => is |= matches(pattern, &name),
        }
    }
    is
}

/// Whether a name fits a pattern with `*` and `?`.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.as_bytes());
    let pattern = pattern.as_bytes();
    // Where to go on after the last `*` if the rest does not fit.
    let (mut at, mut in_name, mut retry, mut steps) = (0, 0, None, 0);
    while in_name < name.len() {
        steps += 1;
        if steps > MAX_STEPS {
            return false;
        }
        match pattern.get(at) {
            Some(b'*') => {
                retry = Some((at + 1, in_name));
                at += 1;
            }
            Some(c) if *c == b'?' || *c == name[in_name] => (at, in_name) = (at + 1, in_name + 1),
            _ => match retry {
                Some((after, from)) => {
                    retry = Some((after, from + 1));
                    (at, in_name) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    // `ssh-keygen -H` made the second line of `host.example ssh-ed25519 AAAAC3Nz`.
    const FILE: &str = "# mine\nweb1,10.0.0.1 ssh-rsa AAAAB3Nz\nweb1 ssh-ed25519 AAAAC3Nz\nweb1 ssh-rsa AAAA comment\n\
                        *.example,!a.example ssh-rsa AAAA\n[web1]:2222 ssh-rsa BBBB\n";

    fn file(text: &str) -> File {
        File { path: "/etc/x".into(), account: None, old: Some(text.into()), text: text.into() }
    }

    fn keys(text: &str, name: &str) -> Vec<String> {
        file(text).entries(name, None).unwrap().into_iter().map(|entry| entry.key).collect()
    }

    /// Recorded from `ssh.get_known_host_entries` of Salt 3008.3.
    #[test]
    fn entries_are_found_as_ssh_does() {
        assert_eq!(keys(FILE, "web1"), ["AAAAB3Nz", "AAAAC3Nz"]);
        assert_eq!(keys(FILE, "WEB1"), ["AAAAB3Nz", "AAAAC3Nz"]);
        assert_eq!(keys(FILE, "10.0.0.1"), ["AAAAB3Nz"]);
        assert_eq!(keys(FILE, "b.example"), ["AAAA"]);
        assert_eq!(keys(FILE, &name("web1", Some(2222)).unwrap()), ["BBBB"]);
        assert!(keys(FILE, "a.example").is_empty() && keys(FILE, "web").is_empty());
    }

    #[test]
    fn hashed_names_are_found() {
        let mut one = file(FILE);
        let mut count = 0;
        one.hash(|| {
            count += 1;
            [count; 20]
        });
        assert!(!one.text.contains("web1") && one.text.contains("*.example,!a.example ssh-rsa"));
        assert_eq!(keys(&one.text, "web1"), ["AAAAB3Nz", "AAAAC3Nz"]);
        assert_eq!(keys(&one.text, "10.0.0.1"), ["AAAAB3Nz"]);
        // Made by OpenSSH's ssh-keygen.
        let theirs = "|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= ssh-rsa AAAA";
        assert_eq!(keys(theirs, "192.168.1.61"), ["AAAA"]);
        assert!(keys("|1|rubbish ssh-rsa AAAA", "x").is_empty());
    }

    #[test]
    fn entries_are_removed_and_added() {
        let mut one = file(FILE);
        assert_eq!(one.remove("web1", Some("ssh-ed25519")), [3]);
        assert_eq!(one.remove("web1", None), [2, 3]);
        let entry = |hostname: &str, port| Entry {
            hostname: hostname.into(),
            key: "CCCC".into(),
            enc: "ssh-rsa".into(),
            fingerprint: None,
            port,
        };
        one.add(&[entry("web2", None), entry("web2", Some(2200))]).unwrap();
        assert!(one.text.ends_with("BBBB\nweb2 ssh-rsa CCCC\n[web2]:2200 ssh-rsa CCCC\n"));
        assert!(one.add(&[entry("a\nb", None)]).is_err());
        for bad in ["", "-oProxyCommand=x", "a b", "a,b", "*", "a\n"] {
            assert!(name(bad, None).is_err(), "{bad:?}");
        }
    }
}
