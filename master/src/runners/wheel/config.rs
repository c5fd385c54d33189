//! `config.update_config`: writes a file of settings beside the master's configuration, for programs. The file's name
//! cannot be a path, and the content must be a YAML map with which the master can start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_cli::output::{Outputter, Style};
use brine_protocol::config::{Config, ConfigError, Role, yaml};
use brine_protocol::ids::SafePath;
use brine_protocol::target::fnmatch;
use brine_protocol::value::{Value, ValueExt as _};

use super::roots;
use crate::runners::RunnerOpts;
use crate::runners::function::{Failure, Function, Outcome, Run, functions};

/// Bound on the bytes of a written file. The largest configurations, with all nodegroups, have some hundred kilobytes.
const FILE_MAX: usize = 1 << 20;
/// Longest name of a file in characters.
const NAME_MAX: usize = 64;
/// Readable only by the owner, because settings may be secrets.
const MODE: u32 = 0o600;

/// Checks that a master can start with a configuration.
type Check = fn(&Config) -> Result<(), ConfigError>;

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Writes settings into the file of this name in master.d, which the master reads when it starts or reloads.
    "config.update_config(file_name, yaml_contents)" => update_config,
};

/// Writes the settings. An error is returned as the result, as in Salt.
async fn update_config(run: Run) -> Outcome {
    let parts = Arc::clone(&run.parts);
    let name = run.text("file_name");
    let contents = run.get("yaml_contents").cloned().ok_or_else(|| run.wrong("yaml_contents must be settings"))?;
    let write = move || {
        let RunnerOpts { conf_file, default_include, .. } = &parts.opts;
        update(conf_file, default_include, &name, &contents, parts.check_config)
    };
    let written =
        tokio::task::spawn_blocking(write).await.map_err(|_| Failure::from("the file could not be written"))?;
    Ok(Value::from(written.unwrap_or_else(|why| why)))
}

fn update(
    conf_file: &Path,
    default_include: &str,
    name: &str,
    contents: &Value,
    check: Check,
) -> Result<String, String> {
    let (dir, path) = place(conf_file, default_include, name)?;
    let settings = settings(contents)?;
    let text = Outputter::Yaml.render(&settings, &Style::default());
    if text.len() > FILE_MAX {
        return Err(format!("The settings have more than the {} KiB of one file", FILE_MAX >> 10));
    }
    if yaml::load(&text).ok().map(sorted) != Some(sorted(settings.clone())) {
        return Err(
            "The settings hold what YAML cannot say: they may have texts, numbers, true, false, null, lists and maps"
                .to_owned(),
        );
    }
    try_out(conf_file, &settings, check)?;
    let dest = dir.join(path.as_str());
    roots::put_with(&dir, &path, format!("{text}\n").as_bytes(), Some(MODE))
        .map_err(|error| format!("{} cannot be written: {error}", dest.display()))?;
    Ok(format!("Wrote {name}.conf"))
}

/// Returns the existing folder, which belongs to the operator, and the path below it.
fn place(conf_file: &Path, default_include: &str, name: &str) -> Result<(PathBuf, SafePath), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let invalid = || "Invalid path".to_owned();
    if name.is_empty() || name.len() > NAME_MAX || name.starts_with(['.', '-']) || !name.chars().all(plain) {
        return Err(invalid());
    }
    let file = format!("{name}.conf");
    let (folder, pattern) = default_include.rsplit_once('/').unwrap_or(("", default_include));
    if folder.contains(['*', '?', '[']) || !fnmatch(pattern, &file) {
        return Err(format!("{file} would not be read: default_include is {default_include}"));
    }
    let root = conf_file.parent().unwrap_or(Path::new("/"));
    let (root, folder) = match folder.strip_prefix('/') {
        Some(folder) => (Path::new("/"), folder),
        None => (root, folder),
    };
    let path = if folder.is_empty() { file } else { format!("{folder}/{file}") };
    Ok((root.to_owned(), SafePath::try_from(path).map_err(|_| invalid())?))
}

/// Reads a map, or the YAML text of one.
fn settings(contents: &Value) -> Result<Value, String> {
    let settings = match contents.text() {
        Some(text) if text.len() > FILE_MAX => {
            return Err(format!("The settings have more than the {} KiB of one file", FILE_MAX >> 10));
        }
        Some(text) => yaml::load_foreign(text).map_err(|error| format!("yaml_contents is no YAML: {error}"))?,
        None => contents.clone(),
    };
    match settings.entries() {
        Some(entries) if entries.iter().all(|(key, _)| key.text().is_some()) => Ok(settings),
        _ => Err("yaml_contents must be a map of settings by their names".to_owned()),
    }
}

/// Sorts maps recursively, for comparing values.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Map(entries) => {
            let mut entries: Vec<_> = entries.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by_cached_key(|(key, _)| key.to_string());
            Value::Map(entries)
        }
        other => other,
    }
}

/// Checks that the master can start with the settings.
fn try_out(conf_file: &Path, settings: &Value, check: Check) -> Result<(), String> {
    let failed = |error: ConfigError| format!("The master could not start with it: {error}");
    // If the current configuration is broken, the settings may be meant to repair it.
    let mut config = match Config::load(conf_file, Role::Master) {
        Ok(config) => config,
        Err(_) => Config::from_yaml("", conf_file, Role::Master).map_err(failed)?,
    };
    for (key, value) in settings.entries().unwrap_or_default() {
        config.set(key.text().unwrap_or_default(), value.clone());
    }
    check(&config).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use brine_protocol::value::{map, text};

    use super::*;

    const INCLUDE: &str = "master.d/*.conf";

    fn update(conf_file: &Path, default_include: &str, name: &str, contents: &Value) -> Result<String, String> {
        super::update(conf_file, default_include, name, contents, |config| {
            crate::MasterOpts::from_config(config).map(drop)
        })
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("conf/master");
        std::fs::create_dir(dir.path().join("conf")).unwrap();
        std::fs::write(&file, "timeout: 7\n").unwrap();
        (dir, file)
    }

    #[test]
    fn settings_are_written_for_their_owner_and_read_back() {
        let (_dir, file) = folder();
        let wrote = update(&file, INCLUDE, "gui", &map([("timeout", 9)])).unwrap();
        assert_eq!(wrote, "Wrote gui.conf");
        let written = file.with_file_name("master.d/gui.conf");
        assert_eq!(std::fs::read_to_string(&written).unwrap(), "timeout: 9\n");
        assert_eq!(std::fs::metadata(&written).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Config::load(&file, Role::Master).unwrap().value("timeout"), Some(&Value::from(9)));
        // As text, replacing the existing file. Its mode becomes private.
        std::fs::set_permissions(&written, std::fs::Permissions::from_mode(0o644)).unwrap();
        update(&file, INCLUDE, "gui", &text("timeout: 11\nnodegroups: {a: 'L@x,y'}")).unwrap();
        assert_eq!(Config::load(&file, Role::Master).unwrap().value("timeout"), Some(&Value::from(11)));
        assert_eq!(std::fs::metadata(&written).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(written.parent().unwrap()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn names_that_are_paths_write_nothing() {
        let (dir, file) = folder();
        let win = map([("timeout", 9)]);
        for name in
            ["../evil", "..", ".", "", "a/b", "/etc/x", "a\0b", ".hidden", "-x", "a\nb", "ü", "..\\x", &"x".repeat(65)]
        {
            assert_eq!(update(&file, INCLUDE, name, &win), Err("Invalid path".to_owned()), "{name:?}");
        }
        assert!(update(&file, "master.d/*.yml", "x", &win).unwrap_err().contains("would not be read"));
        assert!(update(&file, "*/x*.conf", "x", &win).is_err());
        // Neither the folder nor the file can be a symlink to another place.
        let outside = dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("kept"), "kept").unwrap();
        symlink(&outside, file.with_file_name("master.d")).unwrap();
        assert!(update(&file, INCLUDE, "x", &win).unwrap_err().contains("cannot be written"));
        std::fs::remove_file(file.with_file_name("master.d")).unwrap();
        std::fs::create_dir(file.with_file_name("master.d")).unwrap();
        symlink(outside.join("kept"), file.with_file_name("master.d/x.conf")).unwrap();
        update(&file, INCLUDE, "x", &win).unwrap();
        assert_eq!(std::fs::read_to_string(outside.join("kept")).unwrap(), "kept");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_configuration_is_not_written() {
        let (_dir, file) = folder();
        for contents in [
            text("a: ["),
            text("- a"),
            text("win"),
            text("a: !!python/object/apply:os.system [id]"),
            text("ret_port: many"),
            Value::from(7),
            Value::Array(vec![]),
            Value::Map(vec![(Value::from(1), Value::from(2))]),
            map([("a", Value::Ext(1, vec![1]))]),
            map([("a", "x".repeat(FILE_MAX))]),
        ] {
            let why = update(&file, INCLUDE, "x", &contents).unwrap_err();
            assert!(why.len() < 500 && why != "Invalid path", "{why}");
        }
        assert!(!file.with_file_name("master.d/x.conf").exists());
    }
}
