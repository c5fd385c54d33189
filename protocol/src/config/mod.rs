//! Configuration files (§12): Salt's keys, defaults, includes and YAML.

pub mod yaml;

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
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
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
        let _ = (path, role);
        todo!()
    }

    /// A configuration from text, without includes; for tests and for `--local` runs.
    ///
    /// # Errors
    /// When the text is not a map in YAML.
    pub fn from_yaml(text: &str, path: &Path, role: Role) -> Result<Self, ConfigError> {
        let _ = (text, path, role);
        todo!()
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

    /// An option as text (numbers and booleans are shown as Python does).
    ///
    /// # Errors
    /// When it is missing, a list or a map.
    pub fn get_str(&self, key: &str) -> Result<String, ConfigError> {
        let _ = key;
        todo!()
    }

    /// As [`Config::get_str`], none when it is missing, nil or empty.
    ///
    /// # Errors
    /// When it is a list or a map.
    pub fn opt_str(&self, key: &str) -> Result<Option<String>, ConfigError> {
        let _ = key;
        todo!()
    }

    /// An option as a path, absolute (relative ones are below the file's directory), with `root_dir` before it already.
    ///
    /// # Errors
    /// When it is missing or not text.
    pub fn get_path(&self, key: &str) -> Result<PathBuf, ConfigError> {
        let _ = key;
        todo!()
    }

    /// An option as a boolean.
    ///
    /// # Errors
    /// When it is missing or no boolean.
    pub fn get_bool(&self, key: &str) -> Result<bool, ConfigError> {
        let _ = key;
        todo!()
    }

    /// An option as a whole number that is not negative.
    ///
    /// # Errors
    /// When it is missing or no such number.
    pub fn get_u64(&self, key: &str) -> Result<u64, ConfigError> {
        let _ = key;
        todo!()
    }

    /// An option as a whole number.
    ///
    /// # Errors
    /// When it is missing or no such number.
    pub fn get_i64(&self, key: &str) -> Result<i64, ConfigError> {
        let _ = key;
        todo!()
    }

    /// An option as a port.
    ///
    /// # Errors
    /// When it is missing or not within 0 to 65535.
    pub fn get_port(&self, key: &str) -> Result<u16, ConfigError> {
        let _ = key;
        todo!()
    }

    /// An option as a number.
    ///
    /// # Errors
    /// When it is missing or no number.
    pub fn get_f64(&self, key: &str) -> Result<f64, ConfigError> {
        let _ = key;
        todo!()
    }

    /// An option in seconds (fractions too) as a duration.
    ///
    /// # Errors
    /// When it is missing, negative or no number.
    pub fn get_duration(&self, key: &str) -> Result<Duration, ConfigError> {
        let _ = key;
        todo!()
    }

    /// An option in milliseconds as a duration.
    ///
    /// # Errors
    /// When it is missing, negative or no number.
    pub fn get_duration_ms(&self, key: &str) -> Result<Duration, ConfigError> {
        let _ = key;
        todo!()
    }

    /// An option as a list of texts; one text is a list of it, nil is empty.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn get_list(&self, key: &str) -> Result<Vec<String>, ConfigError> {
        let _ = key;
        todo!()
    }

    /// An option as a map of names to lists of texts, such as `file_roots`.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn get_map_of_lists(&self, key: &str) -> Result<Vec<(String, Vec<String>)>, ConfigError> {
        let _ = key;
        todo!()
    }

    /// The error for an option that an owner found wrong by its own rules.
    pub fn wrong(&self, key: &str, expected: &'static str) -> ConfigError {
        let got = self.value(key).map_or_else(|| "missing".to_owned(), |v| v.python_repr().chars().take(80).collect());
        ConfigError::Type { key: key.to_owned(), file: self.path.clone(), expected, got }
    }
}
