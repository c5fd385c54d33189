//! Checks for settings that are probably mistakes, at the start: one log line each, with advice.

use std::path::Path;

use brine_protocol::config::Config;

use crate::config::MasterOpts;

/// Logs settings that a master can run with but that are probably wrong.
pub fn look(config: &Config, opts: &MasterOpts) {
    for line in roots(config, opts) {
        tracing::warn!("{line}");
    }
}

/// Finds `file_roots` that do not exist. Salt's defaults are exempt, because nobody wrote them.
fn roots(config: &Config, opts: &MasterOpts) -> Vec<String> {
    let defaults = Config::from_yaml("", Path::new("/etc/salt/master"), config.role());
    if defaults.is_ok_and(|defaults| defaults.value("file_roots") == config.value("file_roots")) {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for (env, paths) in &opts.files.tree.roots {
        if paths.is_empty() {
            lines.push(format!(
                "file_roots has no folder for {env}: minions find no files there; name one, or take it out"
            ));
        }
        for path in paths {
            let why = match std::fs::read_dir(path) {
                Ok(_) => continue,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist: make it".to_owned(),
                Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                    "is not a folder: name the folder it is in".to_owned()
                }
                Err(error) => format!("cannot be read ({error}): let {} read it", brine_daemon::user::current()),
            };
            lines.push(format!(
                "the folder {} of file_roots ({env}) {why}, or take it out of file_roots",
                path.display()
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::config::Role;

    fn lines(dir: &Path, text: &str) -> Vec<String> {
        let config = Config::from_yaml(text, &dir.join("master"), Role::Master).unwrap();
        roots(&config, &MasterOpts::from_config(&config).unwrap())
    }

    #[test]
    fn roots_that_lead_nowhere_are_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("there")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(lines(dir.path(), "").is_empty(), "nobody asked for Salt's defaults");
        assert!(lines(dir.path(), "file_roots: {base: [there]}").is_empty());
        for (text, said) in [
            ("file_roots: {base: [there, gone]}", "gone of file_roots (base) does not exist: make it"),
            ("file_roots: {dev: [file]}", "file of file_roots (dev) is not a folder"),
            ("file_roots: {base: []}", "no folder for base"),
        ] {
            let lines = lines(dir.path(), text);
            assert!(lines.len() == 1 && lines[0].contains(said) && !lines[0].contains('\n'), "{text}: {lines:?}");
        }
    }
}
