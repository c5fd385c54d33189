//! Generates `docs/settings.md`, `pkg/master` and `pkg/minion` from the table. Tests check that the files are up to
//! date.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

/// Upper bound on the characters of a comment line in the sample files.
const WIDTH: usize = 100;

/// Returns the default as documents show it. None if there is no default to show.
fn default_of(side: Side) -> Option<&'static str> {
    Some(side.default).filter(|default| !["", "null", "''"].contains(default))
}

/// Returns the daemons that use a setting, or all that accept it if none uses it.
fn sides(row: &Row) -> Vec<(Role, Side)> {
    let all = [Role::Master, Role::Minion].into_iter().filter_map(|role| Some((role, row.on(role)?)));
    let (used, unused): (Vec<_>, Vec<_>) = all.partition(|(_, side)| side.used);
    if used.is_empty() { unused } else { used }
}

/// Returns one text if it is the same for all daemons, or else each daemon's own.
fn each_or_one(sides: &[(Role, Side)], show: impl Fn(Side) -> String) -> String {
    let shown: Vec<String> = sides.iter().map(|(_, side)| show(*side)).collect();
    if shown.iter().all(|text| *text == shown[0]) {
        return shown[0].clone();
    }
    let each: Vec<String> =
        sides.iter().zip(shown).map(|((role, _), text)| format!("{}: {text}", role.as_str())).collect();
    each.join(", ")
}

fn type_of(row: &Row) -> String {
    let kind = row.kind.to_string();
    kind.strip_prefix("a ").map(str::to_owned).unwrap_or(kind)
}

fn applied(side: Side) -> String {
    if side.live { "SIGHUP" } else { "restart" }.to_owned()
}

fn reference() -> String {
    let mut text = "# Settings\n\n\
        <!-- Generated from protocol/src/config/settings by `make settings`; a test compares. -->\n\n\
        Every setting of `/etc/salt/master`, `/etc/salt/minion` and the files in `master.d` and `minion.d`. `a:b` is the key `b` of the\n\
        mapping `a`. Null and empty text stand for the default. A value of a wrong type or out of range is an error that names the setting\n\
        and the file, and the daemon does not start (exit code 64). Other settings are accepted, for modules to read; below `sandbox` they are\n\
        errors.\n\n\
        *Applied*: SIGHUP applies the setting to the running daemon, or it counts from the next start. *Public*: `config.get` and the\n\
        runners show it to everybody that may call them; for the others see `config_public` and [sandbox.md](sandbox.md).\n"
        .to_owned();
    for area in AREAS {
        text.push_str(&format!(
            "\n## {}\n\n| setting | daemon | type, unit, range | default | applied | public | |\n|---|---|---|---|---|---|---|\n",
            area.title
        ));
        for row in area.rows {
            let sides = sides(row);
            let names: Vec<&str> = sides.iter().map(|(role, _)| role.as_str()).collect();
            let default = |side| default_of(side).map_or_else(|| "none".to_owned(), |text| format!("`{text}`"));
            let unused = sides.iter().all(|(_, side)| !side.used);
            let cells = [
                format!("`{}`", row.name),
                names.join(", "),
                if unused { "any".to_owned() } else { type_of(row) },
                each_or_one(&sides, default),
                if unused { "never".to_owned() } else { each_or_one(&sides, applied) },
                if row.public { "yes" } else { "no" }.to_owned(),
                row.doc.trim().to_owned(),
            ];
            text.push_str(&format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | ")));
        }
    }
    text
}

fn comment(text: &str, sample: &mut String) {
    let mut line = "#".to_owned();
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            sample.push_str(&line);
            sample.push('\n');
            line = "#".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    sample.push_str(&line);
    sample.push('\n');
}

fn sample(role: Role) -> String {
    let name = role.as_str();
    let mut sample = String::new();
    comment(
        &format!(
            "Settings of salt-{name}, each with its default. To change one, remove the # before it, or write it into a file {name}.d/*.conf. \
             docs/settings.md has all of them in a table."
        ),
        &mut sample,
    );
    for area in AREAS {
        let used = area.rows.iter().filter_map(|row| Some((*row, row.on(role).filter(|side| side.used)?)));
        let used: Vec<_> = used.collect();
        if !used.is_empty() {
            sample.push_str(&format!("\n\n### {}\n", area.title));
        }
        for (row, side) in used {
            sample.push('\n');
            comment(row.doc, &mut sample);
            let reload = if side.live { "SIGHUP applies it" } else { "counts from the next start" };
            comment(&format!("({}; {reload})", type_of(row)), &mut sample);
            let depth = row.name.matches(':').count();
            let key = row.name.rsplit(':').next().unwrap();
            let has_keys =
                rows().any(|other| other.name.strip_prefix(row.name).is_some_and(|rest| rest.starts_with(':')));
            let default = if has_keys { "" } else { side.default };
            let line = format!("#{}{key}: {default}", "  ".repeat(depth));
            sample.push_str(line.trim_end());
            sample.push('\n');
        }
    }
    sample
}

/// Returns the sample file with every setting uncommented.
fn uncommented(sample: &str) -> String {
    let lines = sample.lines().filter_map(|line| line.strip_prefix('#'));
    let settings = lines.filter(|line| line.starts_with("  ") || !line.starts_with([' ', '#']) && !line.is_empty());
    settings.map(|line| format!("{line}\n")).collect()
}

fn check_file(path: &str, expected: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var_os("BRINE_WRITE_SETTINGS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{} is not what the table of settings gives: run `make settings`", path.display());
}

#[test]
fn generated_files_are_what_the_table_gives() {
    check_file("docs/settings.md", &reference());
    check_file("pkg/master", &sample(Role::Master));
    check_file("pkg/minion", &sample(Role::Minion));
}

#[test]
fn the_samples_hold_the_defaults() {
    for role in [Role::Master, Role::Minion] {
        let path = Path::new("/etc/salt").join(role.as_str());
        let config = |text: &str| Config::from_yaml(text, &path, role).unwrap();
        let (plain, sample) = (config(""), config(&uncommented(&sample(role))));
        for row in rows().filter(|row| row.on(role).is_some_and(|side| side.used) && row.is_top_level()) {
            if !matches!(row.kind, SettingKind::Mapping) {
                assert_eq!(sample.value(row.name), plain.value(row.name), "{}", row.name);
            }
        }
    }
}

#[test]
fn each_row_is_whole() {
    let mut names: Vec<&str> = rows().map(|row| row.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a setting has two rows");
    for row in rows() {
        let name = row.name;
        let doc = row.doc.trim();
        assert!(doc.ends_with('.') && doc.len() <= 160, "{name}: one line of documentation that ends with a full stop");
        assert!(row.master.is_some() || row.minion.is_some(), "{name}");
        for side in [row.master, row.minion].into_iter().flatten() {
            let value = side.value();
            if default_of(side).is_none() {
                continue;
            }
            let dir = Path::new("/");
            let fits = match row.kind {
                SettingKind::Boolean | SettingKind::Truth => bool::read(&value, row.kind, dir).is_some(),
                SettingKind::Integer { .. } => i64::read(&value, row.kind, dir).is_some(),
                SettingKind::Port => u16::read(&value, row.kind, dir).is_some(),
                SettingKind::Time { .. } => Duration::read(&value, row.kind, dir).is_some(),
                SettingKind::Text | SettingKind::Choice(_) => String::read(&value, row.kind, dir).is_some(),
                SettingKind::Path => PathBuf::read(&value, row.kind, dir).is_some(),
                SettingKind::List => Vec::<String>::read(&value, row.kind, dir).is_some(),
                SettingKind::Folders => Folders::read(&value, row.kind, dir).is_some(),
                SettingKind::Mapping => value.entries().is_some(),
                SettingKind::Size { .. } | SettingKind::Span | SettingKind::Any => !value.is_nil(),
            };
            assert!(fits, "the default of {name} does not fit its type");
        }
    }
}

/// `config.items` requests settings by name, and the host refuses settings that are not public.
#[test]
fn config_items_asks_for_public_settings() {
    let names = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wasm-modules/config/src/names.rs");
    let names = std::fs::read_to_string(names).unwrap();
    let names: Vec<&str> =
        names.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\",")).collect();
    assert!(names.len() > 100);
    for name in names.into_iter().filter(|name| *name != "conf_file") {
        assert!(row(name).is_some_and(|row| row.public && row.minion.is_some()), "{name}");
    }
}

#[test]
fn values_out_of_range_are_errors_that_name_all() {
    let path = Path::new("/etc/salt/minion");
    let config = |text: &str| Config::from_yaml(text, path, Role::Minion).unwrap();
    let said = |error: ConfigError| error.to_string();
    assert_eq!(
        said(config("keysize: 512").get(KEYSIZE).unwrap_err()),
        "the option keysize in /etc/salt/minion must be a whole number of bits from 2048 to 8192, not 512"
    );
    assert_eq!(
        said(config("auth_timeout: -0.5").get(AUTH_TIMEOUT).unwrap_err()),
        "the option auth_timeout in /etc/salt/minion must be a number of seconds from 0 to 1000000000, not -0.5"
    );
    assert_eq!(
        said(config("spool_max_bytes: -1").get(SPOOL_MAX_BYTES).unwrap_err()),
        "the option spool_max_bytes in /etc/salt/minion must be a whole number of bytes, 0 or more, not -1"
    );
    for row in rows() {
        let refused = |number: i64| {
            let value = Value::from(number);
            let dir = Path::new("/");
            i64::read(&value, row.kind, dir).is_none() && Duration::read(&value, row.kind, dir).is_none()
        };
        match row.kind {
            SettingKind::Integer { min, max, .. } | SettingKind::Time { min, max, .. } => {
                assert!(refused(min - 1) && !refused(min) && (max == i64::MAX || refused(max + 1)), "{}", row.name);
            }
            SettingKind::Port => assert!(refused(-1) && !refused(0) && refused(65_536), "{}", row.name),
            _ => {}
        }
    }
}

#[test]
fn null_and_empty_text_stand_for_the_default() {
    let config = |text: &str| Config::from_yaml(text, Path::new("/etc/salt/minion"), Role::Minion).unwrap();
    for text in ["auth_tries:", "auth_tries: ''", ""] {
        assert_eq!(config(text).get(AUTH_TRIES).unwrap(), 7, "{text}");
    }
    assert_eq!(config("mine_interval:").find(MINE_INTERVAL).unwrap(), None);
    assert_eq!(config("").find(MINE_INTERVAL).unwrap(), Some(Duration::from_secs(3_600)));
    let master =
        Config::from_yaml("root_dir: /r\npki_dir: ''\nautosign_file: ''\n", Path::new("/m"), Role::Master).unwrap();
    assert_eq!(master.get(PKI_DIR).unwrap(), Path::new("/r/etc/salt/pki/master"));
    assert_eq!(master.find(AUTOSIGN_FILE).unwrap(), None, "there is no such file then");
}
