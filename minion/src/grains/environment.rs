//! Grains of the minion's environment: locale, shell, paths, and what of Python's world formulas ask for.

use brine_protocol::value::{Value, list, map};

use super::map::Grains;

/// The longest variable that becomes a grain.
const MAX_BYTES: usize = 32 * 1024;

pub(super) fn collect(grains: &mut Grains) {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| variable(name).filter(|v| !v.is_empty()));
    let (language, encoding) = language(locale.as_deref().unwrap_or("C"));
    let timezone = jiff::Zoned::now().strftime("%Z").to_string();
    grains.set(
        "locale_info",
        map([
            ("defaultlanguage", Value::from(language)),
            ("defaultencoding", Value::from(encoding.as_str())),
            ("detectedencoding", Value::from(encoding.to_lowercase())),
            ("timezone", Value::from(timezone)),
        ]),
    );
    grains.text("shell", &variable("SHELL").unwrap_or_else(|| "/bin/sh".to_owned()));
    let path = variable("PATH").unwrap_or_default();
    let path = path.trim();
    grains.text("path", path);
    grains.set("systempath", list(path.split(':')));
    let cwd = std::env::current_dir().map(|cwd| cwd.to_string_lossy().into_owned());
    grains.text("cwd", &cwd.unwrap_or_default());
    grains.text("ps", "ps -efHww");
    let update = path.split(':').filter(|folder| folder.starts_with('/'));
    let is_transactional =
        update.map(|folder| std::path::Path::new(folder).join("transactional-update")).any(|p| p.is_file());
    grains.set("transactional", Value::from(is_transactional));
    grains.set("fibre_channel_host", Value::from(false));
    // There is no Python in a minion. Templates that ask find an empty value of the right kind; of the version, by which they
    // choose packages of Python, that of the host's.
    grains.set("package", Value::Nil);
    grains.set("pythonversion", Value::Array(python().into_iter().map(Value::from).collect()));
    grains.set("pythonpath", Value::Array(Vec::new()));
    grains.text("pythonexecutable", "");
    grains.text("saltpath", "");
    grains.text("zmqversion", "");
}

/// The version of this host's Python: `[3, 11]`, by the file's name; empty if there is none.
fn python() -> Vec<u64> {
    let file = std::fs::canonicalize("/usr/bin/python3");
    let name = file.ok().and_then(|file| Some(file.file_name()?.to_str()?.to_owned()));
    name.map(|name| python_version(&name)).unwrap_or_default()
}

fn python_version(name: &str) -> Vec<u64> {
    let numbers = name.strip_prefix("python").unwrap_or_default().split('.').map(str::parse);
    numbers.collect::<Result<_, _>>().unwrap_or_default()
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| value.len() <= MAX_BYTES)
}

/// Language and encoding as Python's `locale.getlocale` names them: for `C`, which Python takes for `C.UTF-8`, they are those of
/// American English.
fn language(locale: &str) -> (&str, String) {
    let (name, encoding) = locale.split_once('.').unwrap_or((locale, ""));
    let encoding = encoding.split('@').next().unwrap_or_default();
    let name = name.split('@').next().unwrap_or_default();
    if matches!(name, "C" | "POSIX" | "") {
        return ("en_US", "UTF-8".to_owned());
    }
    let folded: String = encoding.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let encoding = match folded.as_str() {
        "utf8" => "UTF-8".to_owned(),
        "" | "iso88591" => "ISO8859-1".to_owned(),
        other => match other.strip_prefix("iso8859") {
            Some(part) => format!("ISO8859-{part}"),
            None => encoding.to_owned(),
        },
    };
    (name, encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_has_the_version_of_its_name() {
        for (name, version) in
            [("python3.11", &[3, 11][..]), ("python3", &[3]), ("python3.11-dbg", &[]), ("python", &[]), ("sh", &[])]
        {
            assert_eq!(python_version(name), version, "{name}");
        }
    }

    #[test]
    fn locales_have_pythons_names() {
        for (locale, language_name, encoding) in [
            ("C", "en_US", "UTF-8"),
            ("C.UTF-8", "en_US", "UTF-8"),
            ("POSIX", "en_US", "UTF-8"),
            ("de_DE.utf8", "de_DE", "UTF-8"),
            ("de_DE", "de_DE", "ISO8859-1"),
            ("de_DE.ISO-8859-15@euro", "de_DE", "ISO8859-15"),
            ("ja_JP.eucJP", "ja_JP", "eucJP"),
        ] {
            assert_eq!(language(locale), (language_name, encoding.to_owned()), "{locale}");
        }
    }
}
