//! Reads and writes the file of mounts.

use brine_guest::Value;
use brine_guest::changes::{self, Put};

use crate::fstab::{self, Entry};

/// The file of mounts of a host.
pub(crate) const FSTAB: &str = "/etc/fstab";

/// An entry that is wanted. Spaces in device and options are `\ `.
pub(crate) struct Line<'a> {
    pub name: &'a str,
    pub device: &'a str,
    pub fstype: &'a str,
    pub opts: &'a str,
    /// A number; none for 0.
    pub dump: Value,
    pub pass_num: Value,
    /// The fields by which an entry is known; none for those that Salt takes.
    pub match_on: Value,
    /// Whether an entry that is known stays as it is.
    pub keeps: bool,
}

impl Line<'_> {
    fn entry(&self) -> Result<Entry, String> {
        let number = |value: &Value| if *value == Value::None { "0".into() } else { value.to_text() };
        let fields = [
            self.device.replace("\\ ", "\\040"),
            self.name.to_owned(),
            self.fstype.to_owned(),
            self.opts.replace("\\ ", "\\040"),
            number(&self.dump),
            number(&self.pass_num),
        ];
        match fields.iter().find(|field| field.contains(['\n', '\r', '\0'])) {
            Some(field) => Err(format!("{field:?} is no field of one line")),
            None => Ok(Entry(fields)),
        }
    }
}

/// The text of the file; none if there is none.
pub(crate) fn read(config: Option<&str>) -> Result<Option<String>, String> {
    changes::read_text(config.unwrap_or(FSTAB))
}

/// Sets an entry: `new`, `change` or `present`. With `looks`, nothing is written.
pub(crate) fn set(line: &Line<'_>, config: Option<&str>, looks: bool) -> Result<&'static str, String> {
    let config = config.unwrap_or(FSTAB);
    let entry = line.entry()?;
    let known_by = entry.known_by(&line.match_on)?;
    let old = changes::read_text(config)?.ok_or_else(|| format!("Bad config file \"{config}\""))?;
    let (word, new) = fstab::set(&old, &entry, &known_by, line.keeps);
    if word != "present" && !looks {
        Put::new(config).instead_of(Some(old.as_bytes())).text(&new)?;
    }
    Ok(word)
}

/// Removes the entries of a place, and of a device if one is said.
pub(crate) fn remove(name: &str, device: Option<&str>, config: Option<&str>) -> Result<(), String> {
    let config = config.unwrap_or(FSTAB);
    let missing = || format!("Couldn't read from {config}: [Errno 2] No such file or directory: '{config}'");
    let old = changes::read_text(config)?.ok_or_else(missing)?;
    let new = fstab::without(&old, name, device);
    if new != old {
        Put::new(config).instead_of(Some(old.as_bytes())).text(&new)?;
    }
    Ok(())
}
