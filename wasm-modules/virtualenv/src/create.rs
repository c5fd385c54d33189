//! Makes a virtual environment.

use brine_guest::keywords::Keywords;
use brine_guest::path::basename;
use brine_guest::program::{self, Output, Program};
use brine_guest::{Value, changes};

/// The names of the program, in the order in which they are looked for.
const NAMES: [&str; 2] = ["virtualenv", "virtualenv3"];
/// The Python of `venv`, where no other one is said.
const PYTHON: &str = "/usr/bin/python3";

/// How an environment is to be.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    venv_bin: Option<String>,
    python: Option<String>,
    prompt: Option<String>,
    user: Option<String>,
    extra_search_dir: Option<Vec<String>>,
    never_download: Option<bool>,
    symlinks: Option<bool>,
    upgrade: Option<bool>,
    system_site_packages: bool,
    clear: bool,
    pip: bool,
}

impl Wanted {
    /// # Errors
    /// What is not offered.
    pub(crate) fn of(keywords: &Keywords) -> Result<Self, String> {
        let text = |name: &str| keywords.text(name).filter(|text| !text.trim().is_empty());
        // As in Salt, only the truth value itself counts for some.
        let flag = |name: &str| keywords.get(name).map(|value| *value == Value::Bool(true));
        if keywords.is_set("distribute") {
            return Err(
                "distribute: a script of the web would be run, which is not offered; setuptools took its place".into(),
            );
        }
        let dirs = keywords.get("extra_search_dir").map(|dirs| match dirs {
            Value::List(dirs) => dirs.iter().map(Value::to_text).collect(),
            Value::Text(text) if text.trim().is_empty() => Vec::new(),
            dirs => dirs.to_text().split(',').map(|dir| dir.trim().to_owned()).collect::<Vec<_>>(),
        });
        Ok(Self {
            venv_bin: keywords.text("venv_bin").filter(|name| !name.is_empty()),
            python: text("python"),
            prompt: text("prompt"),
            user: keywords.text("user").filter(|user| !user.is_empty()),
            extra_search_dir: dirs.filter(|dirs| !dirs.is_empty()),
            never_download: flag("never_download"),
            symlinks: flag("symlinks"),
            upgrade: flag("upgrade"),
            system_site_packages: flag("system_site_packages") == Some(true),
            clear: flag("clear") == Some(true),
            pip: keywords.is_set("pip"),
        })
    }
}

/// Python's name and a version: `python3.11`, `pypy3`.
fn is_python(program: &str) -> bool {
    let name = basename(program).to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// The numbers of a version within what `virtualenv --version` prints.
fn numbers(said: &str) -> Option<Vec<i64>> {
    let is_version = |word: &&str| {
        let mut chars = word.chars();
        chars.next().is_some_and(|first| first.is_ascii_digit()) && chars.next().is_some()
    };
    let version = said.split_whitespace().filter(is_version).collect::<String>();
    let end = ["rc", "+ds"].iter().filter_map(|end| version.find(end)).min().unwrap_or(version.len());
    version[..end].split('.').map(|part| part.parse().ok()).collect()
}

pub(crate) fn version(program: &str, user: Option<&str>) -> Result<Vec<i64>, String> {
    let mut command = Program::new([program, "--version"]).merged();
    if let Some(user) = user {
        command = command.run_as(user);
    }
    let done = command.run()?;
    let found = if done.succeeded() { numbers(&done.stdout) } else { None };
    found.ok_or_else(|| {
        format!(
            "Unable to get the virtualenv version output using '['{program}', '--version']'. Returned data: {}",
            value(&done).to_text()
        )
    })
}

/// Salt's dict of what a program left.
pub(crate) fn value(done: &Output) -> Value {
    Value::dict([
        ("pid", Value::Int(done.pid.into())),
        ("retcode", done.code.into()),
        ("stdout", done.stdout.as_str().into()),
        ("stderr", done.stderr.as_str().into()),
    ])
}

/// The words of the command, without the path.
fn words(
    wanted: &Wanted,
    venv_bin: &str,
    version: impl FnOnce() -> Result<Vec<i64>, String>,
) -> Result<Vec<String>, String> {
    let by_python = venv_bin == "venv" || is_python(venv_bin);
    let python = wanted.python.as_deref();
    let mut words: Vec<String> = match (by_python, venv_bin) {
        (true, "venv") => vec![python.unwrap_or(PYTHON).into(), "-m".into(), "venv".into()],
        (true, _) if python.is_some() => {
            return Err("Pass the target interpreter either as `venv_bin` or as `python`, not both.".into());
        }
        (true, _) => vec![venv_bin.into(), "-m".into(), "venv".into()],
        (false, _) => vec![venv_bin.into()],
    };
    let unsupported = |name: &str| {
        let option = name.replace('_', "-");
        Err(format!("The `{name}`(`--{option}`) option is not supported by '{venv_bin}'"))
    };
    if by_python || venv_bin.contains("venv") {
        if !by_python && python.is_some() {
            return unsupported("python");
        }
        if wanted.extra_search_dir.is_some() {
            return unsupported("extra_search_dir");
        }
        if wanted.never_download.is_some() {
            return unsupported("never_download");
        }
        words.extend((wanted.upgrade == Some(true)).then(|| "--upgrade".to_owned()));
        words.extend((wanted.symlinks == Some(true)).then(|| "--symlinks".to_owned()));
        if let Some(prompt) = &wanted.prompt {
            words.extend(["--prompt".to_owned(), prompt.clone()]);
        }
    } else {
        if wanted.upgrade.is_some() {
            return unsupported("upgrade");
        }
        if wanted.symlinks.is_some() {
            return unsupported("symlinks");
        }
        let version = version()?;
        words.extend(python.map(|python| format!("--python={python}")));
        words.extend(wanted.extra_search_dir.iter().flatten().map(|dir| format!("--extra-search-dir={dir}")));
        match wanted.never_download {
            Some(true) if version < vec![1, 10] || version >= vec![14, 0, 0] => words.push("--never-download".into()),
            Some(false) if version >= vec![20, 0] => words.push("--download".into()),
            _ => {}
        }
        words.extend(wanted.prompt.iter().map(|prompt| format!("--prompt='{prompt}'")));
    }
    words.extend(wanted.clear.then(|| "--clear".to_owned()));
    words.extend(wanted.system_site_packages.then(|| "--system-site-packages".to_owned()));
    Ok(words)
}

fn is_there(program: &str) -> Result<bool, String> {
    program::exists(program)
}

pub(crate) fn create(path: &str, wanted: &Wanted) -> Result<Output, String> {
    let venv_bin = match &wanted.venv_bin {
        Some(name) => name.clone(),
        None => {
            let mut found = "venv";
            for name in NAMES {
                if is_there(name)? {
                    found = name;
                    break;
                }
            }
            found.to_owned()
        }
    };
    if path.starts_with('-') {
        return Err(format!("{path:?} is no path"));
    }
    let python = wanted.python.as_deref().or_else(|| is_python(&venv_bin).then_some(venv_bin.as_str()));
    if let Some(python) = python
        && !is_there(python)?
    {
        return Err(format!("Cannot find requested python ({python})."));
    }
    let user = wanted.user.as_deref();
    let mut command = Program::new(words(wanted, &venv_bin, || version(&venv_bin, user))?).arg(path);
    if let Some(user) = user {
        command = command.run_as(user);
    }
    let was_there = changes::look(path, false)?.is_some();
    let done = command.run()?;
    if !done.succeeded() {
        // Half of an environment would count as one the next time.
        if !was_there && changes::is(path, changes::Kind::Directory)? {
            changes::remove(path, true)?;
        }
    } else if wanted.pip && changes::look(&format!("{path}/bin/pip"), true)?.is_none() {
        return Err(format!("{path} has no pip: a script of the web would have to install it, which is not offered"));
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(keywords: &[(&'static str, Value)]) -> Result<Wanted, String> {
        let all = Value::dict(keywords.iter().cloned());
        Wanted::of(&Keywords::new(&all.into(), []).unwrap())
    }

    fn line(venv_bin: &str, keywords: &[(&'static str, Value)]) -> Result<String, String> {
        words(&wanted(keywords)?, venv_bin, || Ok(vec![20, 24, 1])).map(|words| words.join(" "))
    }

    #[test]
    fn commands_are_salts() {
        let yes = || Value::Bool(true);
        for (venv_bin, keywords, expect) in [
            ("venv", &[("clear", yes())][..], "/usr/bin/python3 -m venv --clear"),
            ("venv", &[("python", "python3.11".into())], "python3.11 -m venv"),
            ("python3", &[("prompt", "a b".into()), ("symlinks", yes())], "python3 -m venv --symlinks --prompt a b"),
            ("virtualenv", &[("never_download", Value::Bool(false))], "virtualenv --download"),
            (
                "virtualenv",
                &[("python", "python3".into()), ("prompt", "a".into())],
                "virtualenv --python=python3 --prompt='a'",
            ),
            (
                "virtualenv",
                &[("extra_search_dir", "/a, /b".into())],
                "virtualenv --extra-search-dir=/a --extra-search-dir=/b",
            ),
            ("pyvenv", &[("system_site_packages", yes())], "pyvenv --system-site-packages"),
        ] {
            assert_eq!(line(venv_bin, keywords).as_deref(), Ok(expect), "{venv_bin} {keywords:?}");
        }
        for (venv_bin, keywords, why) in [
            ("virtualenv", ("upgrade", yes()), "The `upgrade`(`--upgrade`) option is not supported by 'virtualenv'"),
            (
                "venv",
                ("never_download", yes()),
                "The `never_download`(`--never-download`) option is not supported by 'venv'",
            ),
            ("pyvenv", ("python", "p".into()), "The `python`(`--python`) option is not supported by 'pyvenv'"),
        ] {
            assert_eq!(line(venv_bin, &[keywords]), Err(why.into()));
        }
        assert!(
            line("python3", &[("python", "python3".into())]).unwrap_err().starts_with("Pass the target interpreter")
        );
        assert!(line("virtualenv", &[("distribute", yes())]).is_err());
    }

    #[test]
    fn versions_and_pythons_are_told() {
        assert_eq!(
            numbers("virtualenv 20.17.1+ds from /usr/lib/python3/dist-packages/virtualenv/__init__.py"),
            Some(vec![20, 17, 1])
        );
        assert_eq!(numbers("1.11.rc2"), None);
        assert_eq!(numbers("20.0.0rc1"), Some(vec![20, 0, 0]));
        assert_eq!(numbers("no version"), None);
        for (name, is) in [
            ("python3", true),
            ("/usr/bin/python3.11", true),
            ("pypy3", true),
            ("virtualenv", false),
            ("python-x", false),
        ] {
            assert_eq!(is_python(name), is, "{name}");
        }
    }
}
