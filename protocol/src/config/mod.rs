//! Configuration files (§12): Salt's keys, defaults, includes and YAML.

mod defaults;
mod files;
mod shown;
pub mod yaml;

#[cfg(test)]
mod tests;

pub use shown::CONFIG_PUBLIC;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::value::{Value, ValueExt};

/// Whose configuration it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// `salt-master` and the programs on its host.
    Master,
    /// `salt-minion` and `salt-call`.
    Minion,
}

impl Role {
    /// The file's name: `master` or `minion`.
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
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that is not trusted: why, in one line.
    #[error("{0}")]
    Untrusted(String),
    /// A file is not YAML.
    #[error("the configuration file {} is not valid YAML: {source}", path.display())]
    Yaml {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
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
        /// What it must be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
}

/// What to do about a file that cannot be read.
fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "; run this as root or as the user it belongs to",
        std::io::ErrorKind::NotADirectory => "; name the folder it is in, not the file",
        _ => "",
    }
}

/// A configuration: Salt's defaults, overlaid by the file and what it includes. Unknown keys are kept.
#[derive(Debug, Clone)]
pub struct Config {
    role: Role,
    path: PathBuf,
    opts: Value,
}

impl Config {
    /// Reads the file (`<conf>/master` or `<conf>/minion`), `<conf>/<role>.d/*.conf` and its `include`s. A missing main file
    /// is an empty one, as in Salt.
    ///
    /// # Errors
    /// When a file is unreadable, not YAML, or not a map.
    pub fn load(path: &Path, role: Role) -> Result<Self, ConfigError> {
        Self::load_trusted(path, role, &|_| Ok(()))
    }

    /// As [`Config::load`]; `trust` is asked before each file is read, also before one that may not be there.
    ///
    /// # Errors
    /// As [`Config::load`], and when a file is not trusted.
    pub fn load_trusted(
        path: &Path,
        role: Role,
        trust: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<Self, ConfigError> {
        let path = std::path::absolute(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let default_include = defaults_of(role).get("default_include").cloned();
        let own = files::load(&path, default_include.as_ref(), trust)?;
        Self::build(own, path, role)
    }

    /// The names of all options: Salt's own with their defaults, and what the files have.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.opts.entries().unwrap_or_default().iter().filter_map(|(key, _)| key.text())
    }

    /// A configuration from text, without includes; for tests and for `--local` runs.
    ///
    /// # Errors
    /// When the text is not a map in YAML.
    pub fn from_yaml(text: &str, path: &Path, role: Role) -> Result<Self, ConfigError> {
        Self::build(files::parse(text, path)?, path.to_owned(), role)
    }

    /// Lays the file's options over the defaults and derives what Salt derives.
    fn build(own: Value, path: PathBuf, role: Role) -> Result<Self, ConfigError> {
        let mut opts = defaults_of(role);
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
        let mut config = Self { role, path, opts };
        config.derive()?;
        Ok(config)
    }

    fn derive(&mut self) -> Result<(), ConfigError> {
        // Names that an owner may write as numbers.
        for key in ["id", "user", "master_finger"] {
            if let Some(value) = self.value(key).filter(|v| v.text().is_none()) {
                let text = value.python_str();
                self.set(key, text);
            }
        }
        let cachedir = self.get_str("cachedir")?;
        if self.role == Role::Master {
            // Socket paths have a limit of some 100 bytes: Salt moves them when they are much longer than the cache's.
            if self.get_str("sock_dir")?.len() > cachedir.len() + 10 {
                self.set("sock_dir", format!("{cachedir}/.salt-unix"));
            }
            self.set("token_dir", format!("{cachedir}/tokens"));
            self.set("syndic_dir", format!("{cachedir}/syndics"));
            if self.opt_str("id")?.is_none() {
                let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
                self.set("id", format!("{host}_master"));
            }
            // Nothing but true opens the door.
            for key in ["open_mode", "auto_accept"] {
                let open = self.value(key) == Some(&Value::Boolean(true));
                self.set(key, open);
            }
        }
        if self.opt_str("extension_modules")?.is_none() {
            self.set("extension_modules", format!("{cachedir}/extmods"));
        }
        let hash_type = self.get_str("hash_type")?.to_lowercase();
        self.set("hash_type", hash_type);
        self.prepend_root_dir()
    }

    /// Salt's `prepend_root_dir`: every path option that is not below `root_dir` already is put there.
    fn prepend_root_dir(&mut self) -> Result<(), ConfigError> {
        let root = self.get_str("root_dir")?;
        let root = match self.dir().join(root).to_string_lossy().trim_end_matches('/') {
            "" => "/".to_owned(),
            root => root.to_owned(),
        };
        self.set("root_dir", root.as_str());
        let base = root.trim_end_matches('/');
        for key in defaults::paths(self.role) {
            let Some(path) = self.opt_str(key)? else { continue };
            // Log files may be syslog addresses.
            if path.contains("://") || path == base || path.starts_with(&format!("{base}/")) && !base.is_empty() {
                continue;
            }
            self.set(key, format!("{base}/{}", path.trim_start_matches('/')));
        }
        Ok(())
    }

    /// The role.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The main file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of the main file.
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// All options, a map.
    pub const fn opts(&self) -> &Value {
        &self.opts
    }

    /// Sets an option, as a flag on the command line does.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.opts.insert(key, value.into());
    }

    /// An option, `a:b:c` into maps; none if it is missing or nil.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.opts.get(key).or_else(|| self.opts.traverse(key, ":")).filter(|v| !v.is_nil())
    }

    fn required<T>(
        &self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, ConfigError> {
        self.value(key).and_then(read).ok_or_else(|| self.wrong(key, expected))
    }

    /// An option as text (numbers and booleans are shown as Python does).
    ///
    /// # Errors
    /// When it is missing, a list or a map.
    pub fn get_str(&self, key: &str) -> Result<String, ConfigError> {
        self.required(key, "text", scalar_text)
    }

    /// As [`Config::get_str`], none when it is missing, nil or empty.
    ///
    /// # Errors
    /// When it is a list or a map.
    pub fn opt_str(&self, key: &str) -> Result<Option<String>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(_) => Ok(Some(self.get_str(key)?).filter(|text| !text.is_empty())),
        }
    }

    /// An option as a path, absolute (relative ones are below the file's directory), with `root_dir` before it already.
    ///
    /// # Errors
    /// When it is missing or not text.
    pub fn get_path(&self, key: &str) -> Result<PathBuf, ConfigError> {
        let text = self.required(key, "a path", |v| v.text().filter(|t| !t.is_empty()).map(str::to_owned))?;
        // A log service is named by a URL.
        Ok(if text.contains("://") { PathBuf::from(text) } else { self.dir().join(text) })
    }

    /// As [`Config::get_path`], none when it is missing, nil or empty.
    ///
    /// # Errors
    /// When it is not text.
    pub fn opt_path(&self, key: &str) -> Result<Option<PathBuf>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(value) if value.text() == Some("") => Ok(None),
            Some(_) => self.get_path(key).map(Some),
        }
    }

    /// An option as a boolean.
    ///
    /// # Errors
    /// When it is missing or no boolean.
    pub fn get_bool(&self, key: &str) -> Result<bool, ConfigError> {
        self.required(key, "true or false", Value::as_bool)
    }

    /// An option as a whole number that is not negative.
    ///
    /// # Errors
    /// When it is missing or no such number.
    pub fn get_u64(&self, key: &str) -> Result<u64, ConfigError> {
        self.required(key, "a whole number of 0 or more", Value::as_u64)
    }

    /// An option as a whole number.
    ///
    /// # Errors
    /// When it is missing or no such number.
    pub fn get_i64(&self, key: &str) -> Result<i64, ConfigError> {
        self.required(key, "a whole number", Value::as_i64)
    }

    /// An option as a port.
    ///
    /// # Errors
    /// When it is missing or not within 0 to 65535.
    pub fn get_port(&self, key: &str) -> Result<u16, ConfigError> {
        self.required(key, "a port between 0 and 65535", |v| u16::try_from(v.as_u64()?).ok())
    }

    /// An option as a number.
    ///
    /// # Errors
    /// When it is missing or no number.
    pub fn get_f64(&self, key: &str) -> Result<f64, ConfigError> {
        self.required(key, "a number", Value::as_f64)
    }

    /// An option in seconds (fractions too) as a duration.
    ///
    /// # Errors
    /// When it is missing, negative or no number.
    pub fn get_duration(&self, key: &str) -> Result<Duration, ConfigError> {
        self.required(key, "a number of seconds", |v| Duration::try_from_secs_f64(v.as_f64()?).ok())
    }

    /// An option in milliseconds as a duration.
    ///
    /// # Errors
    /// When it is missing, negative or no number.
    pub fn get_duration_ms(&self, key: &str) -> Result<Duration, ConfigError> {
        self.required(key, "a number of milliseconds", |v| Some(Duration::from_millis(v.as_u64()?)))
    }

    /// An option as a list of texts; one text is a list of it, nil is empty.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn get_list(&self, key: &str) -> Result<Vec<String>, ConfigError> {
        match self.value(key) {
            None => Ok(Vec::new()),
            Some(value) => texts(value).ok_or_else(|| self.wrong(key, "a list of texts")),
        }
    }

    /// An option as a map of names to lists of texts, such as `file_roots`; missing or nil is empty.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn get_map_of_lists(&self, key: &str) -> Result<Vec<(String, Vec<String>)>, ConfigError> {
        let expected = "a map of names to lists of texts";
        match self.value(key) {
            None => Ok(Vec::new()),
            Some(Value::Map(entries)) => entries
                .iter()
                .map(|(name, list)| {
                    let list = if list.is_nil() { Some(Vec::new()) } else { texts(list) };
                    Some((scalar_text(name)?, list?))
                })
                .collect::<Option<_>>()
                .ok_or_else(|| self.wrong(key, expected)),
            Some(_) => Err(self.wrong(key, expected)),
        }
    }

    /// The error for an option that an owner found wrong by its own rules.
    pub fn wrong(&self, key: &str, expected: &'static str) -> ConfigError {
        let got = self.value(key).map_or_else(|| "missing".to_owned(), |v| v.python_repr().chars().take(80).collect());
        ConfigError::Type { key: key.to_owned(), file: self.path.clone(), expected, got }
    }
}

fn defaults_of(role: Role) -> Value {
    yaml::load(defaults::of(role)).expect("the defaults are YAML, which a test checks")
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(_) => value.text().map(str::to_owned),
        Value::Integer(_) | Value::F64(_) | Value::Boolean(_) => Some(value.python_str()),
        _ => None,
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => items.iter().map(scalar_text).collect(),
        other => scalar_text(other).map(|text| vec![text]),
    }
}
