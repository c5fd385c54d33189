//! The files of profiles: Brine's, and those of the owner's folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rmpv::Value;

use super::super::{Result, error, others_may_write};
use super::file::{MAX_FILE, Source};
use super::{MAX_READ, Within};
use crate::policy::Profile;

/// Default name of the owner's folder of profiles, beside the configuration.
const FOLDER: &str = "profiles.d";
const SUFFIX: &str = ".yaml";
/// Upper bound on the files in the owner's folder.
const MAX_FILES: usize = 64;
/// Upper bound on profiles within profiles.
const MAX_DEPTH: usize = 8;

/// Brine's profiles.
const SHIPPED: [(&str, &str); 6] = [
    ("files", include_str!("files.yaml")),
    ("observe", include_str!("observe.yaml")),
    ("packages", include_str!("packages.yaml")),
    ("salt", include_str!("salt.yaml")),
    ("services", include_str!("services.yaml")),
    ("states", include_str!("states.yaml")),
];

/// All profiles that there are, by name.
#[derive(Debug, Clone)]
pub(crate) struct Library(BTreeMap<String, Source>);

impl Default for Library {
    /// Brine's.
    fn default() -> Self {
        let source = |(name, text): (&str, &str)| {
            let path = format!("the profile {name}");
            (name.to_owned(), Source { path, from: "Brine's package".to_owned(), text: text.to_owned() })
        };
        Self(SHIPPED.map(source).into())
    }
}

impl Library {
    /// Brine's, and those of the owner's folder: `named` by the setting, or the one beside the configuration if it is there.
    pub(crate) fn load(beside: &Path, named: Option<&str>) -> Result<Self> {
        let mut library = Self::default();
        let folder = beside.join(named.unwrap_or(FOLDER));
        let path = "sandbox:profiles_dir";
        let cannot = |why: io::Error| error(path, format!("the folder {} cannot be read: {why}", folder.display()));
        let entries = match fs::read_dir(&folder) {
            Err(why) if why.kind() == io::ErrorKind::NotFound && named.is_none() => return Ok(library),
            Err(why) => return cannot(why),
            Ok(entries) => entries,
        };
        if let Some(why) = others_may_write(&folder) {
            return error(path, why);
        }
        // A folder in which others may create files is refused, even if it is sticky.
        if fs::metadata(&folder).is_ok_and(|meta| meta.mode() & 0o022 != 0) {
            return error(path, format!("{} may be written by others; `chmod go-w` it", folder.display()));
        }
        let mut files = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) => files.push(entry.path()),
                Err(why) => return cannot(why),
            }
            // Files of other kinds count too: the folder has to be read to its end.
            if files.len() > MAX_FILES {
                return error(path, format!("{} has more than {MAX_FILES} files", folder.display()));
            }
        }
        files.sort();
        for file in files {
            let Some(name) = file.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(SUFFIX))
            else {
                continue;
            };
            library.add(name, &file)?;
        }
        Ok(library)
    }

    fn add(&mut self, name: &str, file: &Path) -> Result<()> {
        let path = file.display().to_string();
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'));
        if !is_name {
            return error(&path, "a profile is named by its file: lower-case letters, digits, _ and -, a letter first");
        }
        if self.0.contains_key(name) {
            return error(&path, format!("Brine has a profile {name} of its own; give this file another name"));
        }
        if let Some(why) = others_may_write(file) {
            return error(&path, why);
        }
        let text = brine_files::read_named_text(file, MAX_FILE as u64)
            .or_else(|why| error(&path, format!("it cannot be read: {why}")))?;
        let source = Source { from: path.clone(), path, text };
        self.0.insert(name.to_owned(), source);
        Ok(())
    }

    /// The names of all profiles, for an error.
    pub(super) fn names(&self) -> String {
        self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// All profiles, those that take parameters without any.
    pub(crate) fn all(&self) -> Result<Vec<Profile>> {
        self.those(|_| true)
    }

    /// The profiles of the owner's folder, likewise. Brine's are right, and reading them would be half of what a minion computes before it
    /// signs in.
    pub(crate) fn own(&self) -> Result<Vec<Profile>> {
        self.those(|name| SHIPPED.iter().all(|(shipped, _)| *shipped != name))
    }

    fn those(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<Profile>> {
        self.0
            .iter()
            .filter(|(name, _)| wanted(name))
            .map(|(name, source)| source.read(name, None, self, &mut Within { files: vec![name.clone()], read: 0 }))
            .collect()
    }

    /// One profile, as `path` takes it over.
    pub(super) fn profile(
        &self,
        path: &str,
        name: &str,
        parameters: Option<&Value>,
        within: &mut Within,
    ) -> Result<Profile> {
        let Some(source) = self.0.get(name) else {
            return error(path, format!("there is no profile {name}; there are: {}", self.names()));
        };
        if within.files.iter().any(|outer| outer == name) {
            let circle = within.files.iter().chain([&name.to_owned()]).cloned().collect::<Vec<_>>().join(" includes ");
            return error(path, format!("a profile cannot include itself: {circle}"));
        }
        if within.files.len() >= MAX_DEPTH {
            return error(path, format!("profiles include each other more than {MAX_DEPTH} deep"));
        }
        within.read += 1;
        if within.read > MAX_READ {
            return error(path, format!("profiles include others more than {MAX_READ} times"));
        }
        within.files.push(name.to_owned());
        let profile = source.read(name, Some((path, parameters)), self, within);
        within.files.pop();
        profile
    }
}
