//! The keys of another host: as the program `ssh-keyscan` gets them, and as they are set in a file.

use brine_guest::program::Program;
use brine_guest::{Result, Value};

use crate::known_hosts::{self, Entry, File};

/// How often a host that says nothing is asked.
const ATTEMPTS: usize = 5;

/// A host whose keys are wanted.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// Its name.
    pub hostname: &'a str,
    /// A kind of key; none for all.
    pub enc: Option<&'a str>,
    /// Its port; none for 22.
    pub port: Option<i64>,
    /// Whether names are hashed.
    pub hash: bool,
    /// Seconds that it has to answer.
    pub timeout: u64,
    /// A hash for fingerprints.
    pub fingerprint_hash_type: Option<&'a str>,
}

impl Asked<'_> {
    /// Asks the host.
    ///
    /// # Errors
    /// When the program cannot be run, or the name is none.
    pub fn keys(&self) -> Result<Vec<Entry>> {
        known_hosts::name(self.hostname, None)?;
        let mut program = Program::new(["ssh-keyscan"]);
        if let Some(port) = self.port {
            program = program.args(["-p".to_owned(), port.to_string()]);
        }
        if let Some(enc) = self.enc {
            program = program.args(["-t", enc]);
        }
        if self.hash {
            program = program.arg("-H");
        }
        program = program.args(["-T".to_owned(), self.timeout.to_string(), self.hostname.to_owned()]);
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            said = program.run()?.stdout;
            if !said.is_empty() {
                break;
            }
        }
        let entries = said.lines().map(|line| Entry::of_line(line, self.fingerprint_hash_type));
        Ok(entries.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

/// What a host is to be known by.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The host.
    pub asked: Asked<'a>,
    /// The key, if it is given.
    pub key: Option<&'a str>,
    /// The hash that the host's key must have, if it is given.
    pub fingerprint: Option<&'a str>,
}

/// What became of it.
#[derive(Debug, Clone)]
pub enum Set {
    /// The keys were there.
    Exists(Vec<String>),
    /// Others were there.
    Updated {
        /// What was there.
        old: Vec<Entry>,
        /// What is there now.
        new: Vec<Entry>,
    },
    /// A sentence of Salt's.
    Failed(String),
}

impl Set {
    /// As Salt's function returns it.
    pub fn value(&self) -> Value {
        match self {
            Self::Exists(keys) => Value::dict([("status", "exists".into()), ("keys", keys.clone().into())]),
            Self::Updated { old, new } => Value::dict([
                ("status", "updated".into()),
                ("old", known_hosts::value(old)),
                ("new", known_hosts::value(new)),
            ]),
            Self::Failed(why) => Value::dict([("status", "error".into()), ("error", why.as_str().into())]),
        }
    }
}

impl Wanted<'_> {
    /// Sets the key in a file, and writes it. `salt` gives random bytes.
    ///
    /// # Errors
    /// When the host cannot be asked, or the file not be written.
    pub fn set(&self, mut file: File, salt: impl FnMut() -> [u8; 20]) -> Result<Set> {
        let Asked { hostname, enc, port, hash, fingerprint_hash_type, .. } = self.asked;
        if port.is_some_and(|port| port != 22) && hash {
            let why = "argument port can not be used in conjunction with argument hash_known_hosts";
            return Ok(Set::Failed(why.into()));
        }
        let name = known_hosts::name(hostname, port)?;
        let old = file.entries(&name, fingerprint_hash_type)?;
        let of_kind = old.iter().filter(|known| enc.is_none_or(|enc| known.enc == enc));
        let keys: Vec<String> = of_kind.map(|known| known.key.clone()).collect();
        let has = |fingerprint: &str| old.iter().any(|known| known.fingerprint.as_deref() == Some(fingerprint));
        let is_missing = old.is_empty()
            || self.fingerprint.is_some_and(|fingerprint| !has(fingerprint))
            || self.key.is_some_and(|key| !keys.iter().any(|known| known == key));
        let is_open = !is_missing && self.key.is_none() && self.fingerprint.is_none();
        if !is_missing && !is_open {
            return Ok(Set::Exists(keys));
        }
        let mut new = match self.key {
            Some(key) => vec![Entry {
                hostname: hostname.to_owned(),
                key: key.to_owned(),
                enc: enc.unwrap_or("None").to_owned(),
                fingerprint: None,
                port: None,
            }],
            None => {
                let found = self.asked.keys()?;
                if found.is_empty() {
                    return Ok(Set::Failed("Unable to receive remote host keys".into()));
                }
                let wanted = |entry: &Entry| entry.fingerprint.as_deref() == self.fingerprint;
                if self.fingerprint.is_some() && !found.iter().any(wanted) {
                    let why =
                        "Remote host public keys found but none of their fingerprints match the one you have provided";
                    return Ok(Set::Failed(why.into()));
                }
                let same = found.iter().all(|entry| keys.contains(&entry.key))
                    && keys.iter().all(|key| found.iter().any(|entry| entry.key == *key));
                if is_open && same {
                    return Ok(Set::Exists(keys));
                }
                found
            }
        };
        for entry in new.iter_mut().filter(|_| !hash) {
            entry.port = known_hosts::written_port(&entry.hostname, port);
        }
        file.remove(&name, enc);
        file.add(&new)?;
        if self.key.is_some() && hash {
            file.hash(salt);
        }
        file.save(false)?;
        Ok(Set::Updated { old, new })
    }
}
