//! The module `temp`: temporary files and directories. The functions and their documentation are in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "temp",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
    },
    generate_all,
});

use brine_guest::changes::{self, Change, Owner, Put};
use brine_guest::path;
use wasi::random::random::get_random_u64;

struct Module;

/// What names are made of, and how long, as in Python's `tempfile`.
const CHARACTERS: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz0123456789_";
const LENGTH: usize = 8;
/// Where Python makes temporary files.
const FOLDER: &str = "/tmp";
/// No file's name is longer on Linux.
const MAX_NAME: usize = 255;

/// Where something new is made, and how its name looks.
struct Wanted {
    suffix: String,
    prefix: String,
    parent: String,
}

impl Wanted {
    fn new(suffix: Option<String>, prefix: Option<String>, parent: Option<String>) -> Result<Self, String> {
        let (suffix, prefix) = (suffix.unwrap_or_default(), prefix.unwrap_or_else(|| "tmp".into()));
        // In Python, `prefix=../x` leads out of `parent`.
        if [&suffix, &prefix].iter().any(|part| part.contains(['/', '\0'])) {
            return Err("a suffix or prefix has no slash".into());
        }
        if suffix.len() + prefix.len() + LENGTH > MAX_NAME {
            return Err(format!("a name has at most {MAX_NAME} bytes"));
        }
        Ok(Self { suffix, prefix, parent: parent.filter(|parent| !parent.is_empty()).unwrap_or_else(|| FOLDER.into()) })
    }

    fn path(&self, mut random: u64) -> String {
        let mut name = self.prefix.clone();
        for _ in 0..LENGTH {
            let count = CHARACTERS.len() as u64;
            name.push(char::from(CHARACTERS[(random % count) as usize]));
            random /= count;
        }
        path::join(&self.parent, &(name + &self.suffix))
    }

    /// Makes something at a path, which is free but for a chance of one to billions.
    fn make(&self, make: impl Fn(&str) -> Result<Change, String>) -> Result<String, String> {
        let path = self.path(get_random_u64());
        match make(&path)?.before {
            None => Ok(path),
            Some(_) => Err(format!("[Errno 17] File exists: '{path}'")),
        }
    }
}

impl Guest for Module {
    fn dir(suffix: Option<String>, prefix: Option<String>, parent: Option<String>) -> Result<String, String> {
        let nobody = Owner { user: None, group: None };
        Wanted::new(suffix, prefix, parent)?.make(|path| changes::make_directory(path, false, &nobody, Some(0o700)))
    }

    fn file(suffix: Option<String>, prefix: Option<String>, parent: Option<String>) -> Result<String, String> {
        Wanted::new(suffix, prefix, parent)?
            .make(|path| Put::new(path).follow(false).mode(Some(0o600)).expect(Some(String::new())).bytes(Vec::new()))
    }
}

#[cfg(target_family = "wasm")]
export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_pythons() {
        let wanted = Wanted::new(None, None, None).unwrap();
        assert_eq!(wanted.path(0), "/tmp/tmpaaaaaaaa");
        let last = wanted.path(37_u64.pow(8) - 1);
        assert_eq!(last, "/tmp/tmp________");
        let wanted = Wanted::new(Some(".x".into()), Some("my-".into()), Some("/run/".into())).unwrap();
        assert_eq!(wanted.path(1), "/run/my-baaaaaaa.x");
    }

    #[test]
    fn a_name_leads_out_of_no_directory() {
        for prefix in ["../x", "/", "a\0"] {
            assert!(Wanted::new(None, Some(prefix.into()), None).is_err(), "{prefix:?}");
        }
        assert!(Wanted::new(Some("x".repeat(250)), None, None).is_err());
    }
}
