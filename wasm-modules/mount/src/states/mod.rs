//! The states, in Salt's sentences.
//!
//! - [`mounted`]: what is to be mounted · [`entries`]: the file of mounts, and swap areas

mod entries;
mod mounted;

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run};

use crate::exports::states::Guest;
use crate::system::Wanted;
use crate::{Data, Module, active, cache, file, fstab, options, system, value};

type Done = Result<StateResult, String>;

/// What a state came to so far.
pub(crate) struct Came {
    pub result: Option<bool>,
    pub comment: String,
    pub changes: Vec<(&'static str, Value)>,
}

impl Came {
    pub(crate) fn new() -> Self {
        Self { result: Some(true), comment: String::new(), changes: Vec::new() }
    }

    pub(crate) fn fail(mut self, comment: impl Into<String>) -> StateResult {
        (self.result, self.comment) = (Some(false), comment.into());
        self.into()
    }

    pub(crate) fn would(mut self, comment: impl Into<String>) -> StateResult {
        (self.result, self.comment) = (None, comment.into());
        self.into()
    }

    /// Adds what became of the entry in the file of mounts.
    pub(crate) fn persisted(&mut self, word: &str) {
        match word {
            "new" => {
                self.changes.push(("persist", "new".into()));
                self.comment += ". Added new entry to the fstab.";
            }
            "change" => {
                self.changes.push(("persist", "update".into()));
                self.comment += ". Updated the entry in the fstab.";
            }
            _ => self.comment += ". Entry already exists in the fstab.",
        }
    }
}

impl From<Came> for StateResult {
    fn from(came: Came) -> Self {
        Self::new(came.result, came.comment, Value::dict(came.changes))
    }
}

/// A list of texts; empty where nothing is said.
fn texts(argument: Option<Data>) -> Result<Vec<String>, String> {
    Ok(match value(argument)? {
        Value::List(items) => items.iter().map(Value::to_text).collect(),
        Value::Text(text) => text.split(',').map(str::to_owned).collect(),
        _ => Vec::new(),
    })
}

#[rustfmt::skip]
impl Guest for Module {
    fn mounted(
        name: String, device: String, fstype: String, mkmnt: Option<bool>, opts: Option<Data>, dump: Option<Data>,
        pass_num: Option<Data>, config: Option<String>, persist: Option<bool>, mount: Option<bool>, user: Option<String>,
        match_on: Option<Data>, device_name_regex: Option<Data>, extra_mount_invisible_options: Option<Data>,
        extra_mount_invisible_keys: Option<Data>, extra_mount_ignore_fs_keys: Option<Data>,
        extra_mount_translate_options: Option<Data>, hidden_opts: Option<Data>, bind_mount_copy_active_opts: Option<bool>,
        _: Data,
    ) -> Done {
        for (what, said) in [("name", &name), ("device", &device), ("fstype", &fstype)] {
            if said.is_empty() {
                return Ok(StateResult::bad(format!("Must provide {what} to mount.mounted")));
            }
        }
        let mut invisible = texts(extra_mount_invisible_options)?;
        invisible.extend(texts(hidden_opts)?);
        let state = mounted::Wish {
            name: if name == "/" { &name } else { name.trim_end_matches('/') },
            device: &device,
            fstype: &fstype,
            makes: mkmnt == Some(true),
            opts: options(opts)?,
            mounts: mount != Some(false),
            user: user.as_deref(),
            devices: texts(device_name_regex)?,
            invisible,
            invisible_keys: texts(extra_mount_invisible_keys)?,
            ignored_keys: value(extra_mount_ignore_fs_keys)?,
            translated: value(extra_mount_translate_options)?,
            copies: bind_mount_copy_active_opts != Some(false),
        };
        let entry = mounted::Persist {
            is_wanted: persist != Some(false),
            config: config.as_deref(),
            dump: value(dump)?,
            pass_num: value(pass_num)?,
            match_on: value(match_on)?,
        };
        mounted::mounted(state, entry)
    }

    fn unmounted(
        name: String, device: Option<String>, config: Option<String>, persist: Option<bool>, user: Option<String>, _: Data,
    ) -> Done {
        if name.is_empty() {
            return Ok(StateResult::bad("Must provide name to mount.unmounted"));
        }
        let mut came = Came::new();
        if active::is_at(&name.replace(' ', "\\040"))? {
            if is_dry_run() {
                return Ok(came.would(format!("Mount point {name} is mounted but should not be")));
            }
            match system::umount(&name, device.as_deref(), user.as_deref(), false)? {
                Ok(()) => {
                    came.comment = "Target was successfully unmounted".into();
                    came.changes.push(("umount", true.into()));
                }
                Err(why) => (came.result, came.comment) = (Some(false), why),
            }
            cache::keep(&name, None)?;
        } else {
            came.comment = "Target was already unmounted".into();
        }
        if persist == Some(true) {
            entries::purge(&mut came, &name, device.as_deref(), config.as_deref())?;
        }
        Ok(came.into())
    }

    fn swap(name: String, persist: Option<bool>, config: Option<String>) -> Done {
        entries::swap(&name, persist != Some(false), config.as_deref())
    }

    fn fstab_present(
        name: String, fs_file: String, fs_vfstype: String, fs_mntops: Option<Data>, fs_freq: Option<Data>, fs_passno: Option<Data>,
        mount_by: Option<String>, config: Option<String>, mount: Option<bool>, match_on: Option<Data>, not_change: Option<bool>,
    ) -> Done {
        let at = entries::place(&fs_file);
        let Some(device) = entries::device(&name, mount_by.as_deref())? else {
            let by = mount_by.unwrap_or_default();
            return Ok(StateResult::bad(format!("Device {name} cannot be converted to {by}")));
        };
        let line = file::Line {
            name: at,
            device: &device,
            fstype: &fs_vfstype,
            opts: &options(fs_mntops)?.join(","),
            dump: value(fs_freq)?,
            pass_num: value(fs_passno)?,
            match_on: value(match_on)?,
            keeps: not_change == Some(true),
        };
        entries::present(&name, &line, config.as_deref(), mount != Some(false))
    }

    fn fstab_absent(name: String, fs_file: String, mount_by: Option<String>, config: Option<String>) -> Done {
        let device = entries::device(&name, mount_by.as_deref())?;
        entries::absent(entries::place(&fs_file), device.as_deref(), config.as_deref())
    }

    fn mod_watch(
        name: String, sfun: Option<String>, device: Option<String>, fstype: Option<String>, opts: Option<Data>, user: Option<String>,
        _: Data,
    ) -> Done {
        let sfun = sfun.unwrap_or_default();
        if sfun != "mounted" {
            return Ok(StateResult::good(format!("Watch not supported in {sfun} at this time")));
        }
        let (device, fstype) = (device.unwrap_or_default(), fstype.unwrap_or_default());
        let wanted = Wanted {
            at: &name,
            device: Some(&device),
            makes: false,
            fstype: &fstype,
            opts: &options(opts)?,
            user: user.as_deref(),
        };
        if is_dry_run() {
            return Ok(StateResult::would(format!("{name} would be remounted"), brine_guest::states::no_changes()));
        }
        Ok(match system::remount(&wanted)? {
            Ok(()) => StateResult::good(format!("{name} remounted")),
            Err(why) => StateResult::bad(format!("{name} failed to remount: {why}")),
        })
    }
}

/// The entries of the file of mounts by place.
fn known(config: Option<&str>) -> Result<Vec<(String, fstab::Entry)>, String> {
    Ok(fstab::entries(&file::read(config)?.unwrap_or_default()))
}
