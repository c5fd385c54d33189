//! Tokens, which replace a log-in until they expire. Each has two files with the same content, `cachedir/tokens/TOKEN`
//! and `TOKEN.p`.
//!
//! Python's salt-api ends a session by removing the file itself: `TOKEN` in 3006 and 3007, `TOKEN.p` in 3008. The
//! master therefore writes both, reads them at each use, and refuses a token if either is missing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{Value, ValueExt, map};
use subtle::ConstantTimeEq;

use crate::files;

/// Bytes of randomness in a token. Its text is hexadecimal.
const TOKEN_BYTES: usize = 32;
/// Bound on the number of tokens. Each log-in through salt-api makes one.
const TOKENS_MAX: usize = 50_000;
/// Shortest interval between removals of expired tokens when tokens are made.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Largest size of a token's file in bytes. It contains the names of a user and of groups.
const FILE_MAX: u64 = 64 << 10;

/// Makes, reads and removes tokens.
#[derive(Debug)]
pub(super) struct Tokens {
    dir: PathBuf,
    swept: Mutex<Option<Instant>>,
}

/// The user of a token.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) name: String,
    pub(super) eauth: String,
    pub(super) groups: Vec<String>,
    expire: f64,
    data: Value,
}

/// Expiry of a token from the configuration: the end of the last year that Python's datetime supports.
const NEVER: f64 = 253_402_300_799.0;

impl Token {
    /// Makes the token of an entry in the configuration.
    pub(super) fn standing(name: &str, eauth: &str, text: &str) -> Self {
        let data = map([
            ("start", Value::from(0.0)),
            ("expire", Value::from(NEVER)),
            ("name", Value::from(name)),
            ("eauth", Value::from(eauth)),
            ("token", Value::from(text)),
        ]);
        Self { name: name.to_owned(), eauth: eauth.to_owned(), groups: Vec::new(), expire: NEVER, data }
    }

    /// When it expires, in seconds of the Unix epoch.
    pub(super) const fn expire(&self) -> f64 {
        self.expire
    }

    /// Returns the data that `get_token` shows.
    pub(super) fn data(&self) -> &Value {
        &self.data
    }
}

impl Tokens {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, swept: Mutex::default() }
    }

    /// Makes the folder. Python's programs look for it before the first token exists.
    pub(super) fn make_dir(&self) -> io::Result<()> {
        files::make_private_dir(&self.dir)
    }

    /// Makes a token that expires after `lifetime`. Returns the reply to `mk_token`.
    pub(super) fn mint(&self, name: &str, eauth: &str, groups: &[String], lifetime: Duration) -> io::Result<Value> {
        files::make_private_dir(&self.dir)?;
        self.sweep()?;
        let token = hex::encode(rand::random::<[u8; TOKEN_BYTES]>());
        let start = now();
        let mut data = map([
            ("start", Value::from(start)),
            ("expire", Value::from(start + lifetime.as_secs_f64())),
            ("name", Value::from(name)),
            ("eauth", Value::from(eauth)),
            ("token", Value::from(token.as_str())),
        ]);
        if !groups.is_empty() {
            data.insert("groups", Value::Array(groups.iter().map(|group| Value::from(group.as_str())).collect()));
        }
        let packed = msgpack::encode_disk(&data);
        let (first, second) = self.paths(&token);
        files::write_atomic(&second, &packed, 0o600)?;
        files::write_atomic(&first, &packed, 0o600)?;
        Ok(data)
    }

    /// Returns the token with this text, unless it has expired or was removed.
    pub(super) fn read(&self, text: &str) -> io::Result<Option<Token>> {
        // The text becomes a path, so only the characters of a token are accepted.
        let is_token = text.len() == TOKEN_BYTES * 2 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !is_token {
            return Ok(None);
        }
        let (first, second) = self.paths(text);
        let token = read(&first)?.filter(|token| {
            let stored = token.data.get_text("token").unwrap_or_default();
            bool::from(stored.as_bytes().ct_eq(text.as_bytes())) && second.is_file()
        });
        if token.as_ref().is_some_and(|token| token.expire <= now()) {
            self.forget(text);
            return Ok(None);
        }
        Ok(token)
    }

    /// Returns whether the files of a token that [`Tokens::read`] returned are still there.
    pub(super) fn is_there(&self, text: &str) -> bool {
        let (first, second) = self.paths(text);
        first.is_file() && second.is_file()
    }

    /// Ends a token that [`Tokens::read`] returned.
    pub(super) fn end(&self, text: &str) -> io::Result<()> {
        let (first, second) = self.paths(text);
        let removed = [first, second].map(std::fs::remove_file);
        // Without either file it is no token any more.
        if removed.iter().any(Result::is_ok) { Ok(()) } else { removed.into_iter().collect() }
    }

    fn forget(&self, text: &str) {
        let (first, second) = self.paths(text);
        for path in [first, second] {
            if let Err(error) = std::fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                // The log must not contain the file's name, which is the token.
                tracing::warn!("an expired token in {} cannot be removed: {error}", self.dir.display());
            }
        }
    }

    /// Removes all expired tokens.
    pub(super) fn forget_expired(&self) -> io::Result<()> {
        match self.sweep() {
            // The folder is missing until the first log-in.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            swept => swept,
        }
    }

    /// Removes expired tokens, and fails if too many remain.
    fn sweep(&self) -> io::Result<()> {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.is_some_and(|at| at.elapsed() < SWEEP_EVERY) {
            return Ok(());
        }
        let now = now();
        let mut kept = 0;
        for entry in std::fs::read_dir(&self.dir)? {
            let path = entry?.path();
            match read(&path) {
                Ok(Some(token)) if token.expire > now => kept += 1,
                _ => {
                    let _ = std::fs::remove_file(&path);
                }
            }
        }
        if kept / 2 >= TOKENS_MAX {
            return Err(io::Error::other(format!("there are {TOKENS_MAX} tokens; lower token_expire")));
        }
        *swept = Some(Instant::now());
        Ok(())
    }

    fn paths(&self, token: &str) -> (PathBuf, PathBuf) {
        (self.dir.join(token), self.dir.join(format!("{token}.p")))
    }
}

fn read(path: &Path) -> io::Result<Option<Token>> {
    let Some((packed, _)) = files::read_regular(path, FILE_MAX)? else { return Ok(None) };
    let Ok(data) = msgpack::decode_disk(&packed, &Limits::DISK) else { return Ok(None) };
    let text = |key: &str| data.get_text(key).map(str::to_owned);
    let (Some(name), Some(eauth), Some(expire)) =
        (text("name"), text("eauth"), data.get("expire").and_then(Value::as_f64))
    else {
        return Ok(None);
    };
    let groups =
        data.get_list("groups").unwrap_or_default().iter().filter_map(|g| g.text().map(str::to_owned)).collect();
    Ok(Some(Token { name, eauth, groups, expire, data }))
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn tokens() -> (tempfile::TempDir, Tokens) {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(dir.path().join("tokens"));
        (dir, tokens)
    }

    #[test]
    fn a_token_is_private_and_stands_for_its_user() {
        let (dir, tokens) = tokens();
        let data = tokens.mint("fred", "file", &["web".to_owned()], HOUR).unwrap();
        let text = data.get_text("token").unwrap();
        assert_eq!(text.len(), 64);
        let token = tokens.read(text).unwrap().unwrap();
        assert_eq!((token.name.as_str(), token.eauth.as_str(), token.groups), ("fred", "file", vec!["web".to_owned()]));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&dir.path().join("tokens")), 0o700);
        for name in [text.to_owned(), format!("{text}.p")] {
            assert_eq!(mode(&dir.path().join("tokens").join(name)), 0o600);
        }
        assert_ne!(tokens.mint("fred", "file", &[], HOUR).unwrap().get_text("token").unwrap(), text);
    }

    #[test]
    fn an_expired_token_is_none_and_goes() {
        let (dir, tokens) = tokens();
        let data = tokens.mint("fred", "file", &[], Duration::ZERO).unwrap();
        assert!(tokens.read(data.get_text("token").unwrap()).unwrap().is_none());
        assert_eq!(std::fs::read_dir(dir.path().join("tokens")).unwrap().count(), 0);
    }

    #[test]
    fn an_ended_token_is_none() {
        let (dir, tokens) = tokens();
        let (data, other) = (tokens.mint("fred", "file", &[], HOUR), tokens.mint("fred", "file", &[], HOUR));
        let (data, other) = (data.unwrap(), other.unwrap());
        let text = data.get_text("token").unwrap();
        tokens.end(text).unwrap();
        assert!(tokens.read(text).unwrap().is_none());
        assert!(tokens.end(text).is_err());
        assert!(tokens.read(other.get_text("token").unwrap()).unwrap().is_some());
        assert_eq!(std::fs::read_dir(dir.path().join("tokens")).unwrap().count(), 2);
    }

    #[test]
    fn a_token_of_which_python_removed_a_file_is_none() {
        for suffix in ["", ".p"] {
            let (dir, tokens) = tokens();
            let data = tokens.mint("fred", "file", &[], HOUR).unwrap();
            let text = data.get_text("token").unwrap();
            std::fs::remove_file(dir.path().join("tokens").join(format!("{text}{suffix}"))).unwrap();
            assert!(tokens.read(text).unwrap().is_none(), "{suffix:?}");
        }
    }

    #[test]
    fn nothing_but_a_token_is_a_path() {
        let (dir, tokens) = tokens();
        let data = tokens.mint("fred", "file", &[], HOUR).unwrap();
        let text = data.get_text("token").unwrap();
        std::fs::copy(dir.path().join("tokens").join(text), dir.path().join("other")).unwrap();
        for wrong in
            ["", ".", "..", "../other", "x", &text[1..], &text.to_uppercase(), &format!("{text}.p"), &"0".repeat(64)]
        {
            assert!(tokens.read(wrong).unwrap().is_none(), "{wrong}");
        }
        // A file under the name of another token.
        let other = "0".repeat(64);
        for suffix in ["", ".p"] {
            std::fs::copy(dir.path().join("other"), dir.path().join("tokens").join(format!("{other}{suffix}")))
                .unwrap();
        }
        assert!(tokens.read(&other).unwrap().is_none());
    }
}
