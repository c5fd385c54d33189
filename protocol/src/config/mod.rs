//! Configuration files (§12): Salt's keys, defaults, includes and YAML.

mod files;
pub use files::SCHEDULE_FILE;
mod options;
pub mod settings;
mod shown;
pub mod yaml;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::value::{Value, ValueExt};
use settings::{Setting, SettingKind, scalar_text};

/// The daemon to which a configuration belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// `salt-master` and the programs on its host.
    Master,
    /// `salt-minion` and `salt-call`.
    Minion,
}

impl Role {
    /// Returns the file's name: `master` or `minion`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Minion => "minion",
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read the configuration file {}: {source}{}", path.display(), advice(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file is not trusted. The text says why, in one line.
    #[error("{0}")]
    Untrusted(String),
    /// A file is not YAML.
    #[error("the configuration file {} is not valid YAML: {source}", path.display())]
    Yaml {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        source: yaml::YamlError,
    },
    /// A file is not a map of options.
    #[error("the configuration file {} must be a map of options", .0.display())]
    NotMap(PathBuf),
    /// An option has a wrong value.
    #[error("the option {key} in {} must be {expected}, not {got}", file.display())]
    Type {
        /// The option.
        key: String,
        /// The main configuration file.
        file: PathBuf,
        /// The expected value.
        expected: String,
        /// The actual value.
        got: String,
    },
    /// The program was built without a feature that the configuration needs.
    #[error("the configuration file {} names {part}, but this program was built without the feature {feature}", file.display())]
    NotBuilt {
        /// The main configuration file.
        file: PathBuf,
        /// The part that needs the feature.
        part: String,
        /// The feature of the crate.
        feature: &'static str,
    },
}

/// Returns advice on a file that cannot be read.
fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "; run this as root or as the user it belongs to",
        std::io::ErrorKind::NotADirectory => "; name the folder it is in, not the file",
        _ => "",
    }
}

/// A configuration: Salt's defaults, overlaid by the file and its includes. Unknown keys are kept.
#[derive(Debug, Clone)]
pub struct Config {
    role: Role,
    path: PathBuf,
    opts: Value,
    includes: Vec<PathBuf>,
}

impl Config {
    /// Reads the file (`<conf>/master` or `<conf>/minion`), `<conf>/<role>.d/*.conf` and its `include`s. A missing main
    /// file counts as empty, as in Salt.
    ///
    /// # Errors
    /// When a file is unreadable, not YAML, or not a map.
    pub fn load(path: &Path, role: Role) -> Result<Self, ConfigError> {
        Self::load_trusted(path, role, &|_| Ok(()))
    }

    /// Like [`Config::load`], but calls `trust` before each file is read, even if the file may not exist.
    ///
    /// # Errors
    /// As [`Config::load`], and if a file is not trusted.
    pub fn load_trusted(
        path: &Path,
        role: Role,
        trust: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<Self, ConfigError> {
        let path = std::path::absolute(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let default_include = settings::DEFAULT_INCLUDE.row.on(role).map(|side| side.value());
        let (own, includes) = files::load(&path, default_include.as_ref(), trust)?;
        Ok(Self { includes, ..Self::build(own, path, role)? })
    }

    /// The same options as a master reads them, with a master's defaults: for a minion without a master, which looks after its own files
    /// and pillar.
    #[must_use]
    pub fn as_masters(&self) -> Self {
        let mut opts = settings::defaults(Role::Master);
        for (key, value) in self.opts.entries().unwrap_or_default().iter().filter(|(_, value)| !value.is_nil()) {
            if let Some(key) = key.text() {
                opts.insert(key, value.clone());
            }
        }
        Self { role: Role::Master, path: self.path.clone(), opts, includes: self.includes.clone() }
    }

    /// Returns the names of all options: Salt's own and those in the files.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.opts.entries().unwrap_or_default().iter().filter_map(|(key, _)| key.text())
    }

    /// Parses a configuration from text, without includes. For tests and for `--local` runs.
    ///
    /// # Errors
    /// When the text is not a map in YAML.
    pub fn from_yaml(text: &str, path: &Path, role: Role) -> Result<Self, ConfigError> {
        Self::build(files::parse(text, path)?, path.to_owned(), role)
    }

    /// Overlays the defaults with the file's options and derives the same options as Salt.
    fn build(own: Value, path: PathBuf, role: Role) -> Result<Self, ConfigError> {
        let mut opts = settings::defaults(role);
        if let Value::Map(entries) = own {
            for (key, value) in entries {
                match key.text() {
                    Some(key) => opts.insert(key, value),
                    None => tracing::warn!("{}: the option {key} is ignored: its name is not text", path.display()),
                }
            }
        }
        opts.insert("conf_file", path.to_string_lossy().into_owned());
        opts.insert("__role", role.as_str());
        let mut config = Self { role, path, opts, includes: Vec::new() };
        config.derive()?;
        Ok(config)
    }

    fn derive(&mut self) -> Result<(), ConfigError> {
        // Names that an owner may write as numbers.
        for setting in [settings::ID, settings::USER, settings::MASTER_FINGER] {
            let key = setting.row.name;
            if let Some(value) = self.value(key).filter(|v| v.text().is_none()) {
                let text = value.python_str();
                self.set(key, text);
            }
        }
        if self.role == Role::Master {
            // Socket paths are limited to some 100 bytes. Salt moves the sockets if their path is much longer than the
            // cache's.
            let cachedir = self.text(&settings::CACHEDIR)?;
            if self.text(&settings::SOCK_DIR)?.len() > cachedir.len() + 10 {
                self.set(settings::SOCK_DIR.row.name, format!("{cachedir}/.salt-unix"));
            }
            if self.find(settings::ID)?.is_none() {
                let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
                self.set(settings::ID.row.name, format!("{host}_master"));
            }
            // Only the value true enables these.
            for setting in [settings::OPEN_MODE, settings::AUTO_ACCEPT] {
                let open = self.value(setting.row.name) == Some(&Value::Boolean(true));
                self.set(setting.row.name, open);
            }
        }
        let hash_type = self.text(&settings::HASH_TYPE)?.to_lowercase();
        self.set(settings::HASH_TYPE.row.name, hash_type);
        self.prepend_root_dir()?;
        let cachedir = self.get(settings::CACHEDIR)?.to_string_lossy().into_owned();
        if self.role == Role::Master {
            self.set("token_dir", format!("{cachedir}/tokens"));
            self.set("syndic_dir", format!("{cachedir}/syndics"));
        }
        if self.find(settings::EXTENSION_MODULES)?.is_none() {
            self.set(settings::EXTENSION_MODULES.row.name, format!("{cachedir}/extmods"));
        }
        Ok(())
    }

    /// Returns a setting's text as written, or its default, before checks and before paths are made absolute.
    fn text<T>(&self, setting: &Setting<T>) -> Result<String, ConfigError> {
        let row = &setting.row;
        let Some(value) = self.value(row.name) else {
            return Ok(row.on(self.role).map_or("", |side| side.default).to_owned());
        };
        scalar_text(value).ok_or_else(|| self.wrong(row.name, row.kind.to_string()))
    }

    /// Salt's `prepend_root_dir`: moves every path below `root_dir` that is not there already.
    fn prepend_root_dir(&mut self) -> Result<(), ConfigError> {
        let root = self.get(settings::ROOT_DIR)?;
        let root = match self.dir().join(root).to_string_lossy().trim_end_matches('/') {
            "" => "/".to_owned(),
            root => root.to_owned(),
        };
        self.set(settings::ROOT_DIR.row.name, root.as_str());
        let role = self.role;
        for row in settings::rows().filter(|row| matches!(row.kind, SettingKind::Path) && row.on(role).is_some()) {
            let Some(value) = self.value(row.name) else { continue };
            let path = scalar_text(value).ok_or_else(|| self.wrong(row.name, row.kind.to_string()))?;
            if !path.is_empty() {
                self.set(row.name, self.below_root(&path));
            }
        }
        Ok(())
    }

    /// Returns a path below `root_dir`, which is already absolute.
    fn below_root(&self, path: &str) -> String {
        let base = self.value(settings::ROOT_DIR.row.name).and_then(ValueExt::text).unwrap_or_default();
        let base = base.trim_end_matches('/');
        let is_below = path == base || path.starts_with(&format!("{base}/")) && !base.is_empty();
        // Log files may be syslog addresses.
        if is_below || path.contains("://") {
            return path.to_owned();
        }
        format!("{base}/{}", path.trim_start_matches('/'))
    }

    /// Returns the role.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Returns the patterns of the files that are read beside the main file (`default_include`, `include`), absolute as the main file's path
    /// is.
    pub fn includes(&self) -> &[PathBuf] {
        &self.includes
    }

    /// Returns the files that such a pattern means now.
    #[must_use]
    pub fn included(pattern: &Path) -> Vec<PathBuf> {
        files::matches(pattern)
    }

    /// Returns the path of the main file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory of the main file.
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Returns all options, a map.
    pub const fn opts(&self) -> &Value {
        &self.opts
    }

    /// Sets an option, as a flag on the command line does.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.opts.insert(key, value.into());
    }

    /// Returns an option; `a:b:c` leads into maps. None if it is missing or nil.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.opts.get(key).or_else(|| self.opts.traverse(key, ":")).filter(|v| !v.is_nil())
    }

    /// Makes the error for an invalid value. The error does not repeat the value of a setting that may be secret.
    pub fn wrong(&self, key: &str, expected: impl Into<String>) -> ConfigError {
        let got = match self.value(key) {
            None => "missing".to_owned(),
            Some(_) if settings::row(key).is_some_and(|row| !row.public) => "something else".to_owned(),
            Some(value) => value.python_repr().chars().take(80).collect(),
        };
        ConfigError::Type { key: key.to_owned(), file: self.path.clone(), expected: expected.into(), got }
    }
}
