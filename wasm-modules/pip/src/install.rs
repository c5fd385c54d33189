//! The command lines that install and remove packages.

use brine_guest::changes::{self, Kind};
use brine_guest::{Data, Result, Value};

use crate::arguments::{flag, full, texts};

macro_rules! arguments {
    ($($name:ident)*) => {
        /// The arguments of `pip.install`.
        #[derive(Debug, Default)]
        pub(crate) struct Given {
            $(pub(crate) $name: Option<Data>,)*
        }
    };
}

arguments! {
    pkgs requirements bin_env log proxy timeout editable find_links index_url extra_index_url no_index mirrors target
    download cache_dir source upgrade force_reinstall ignore_installed exists_action no_deps global_options
    install_options user cwd pre_releases cert saltenv env_vars trusted_host no_cache_dir extra_args no_binary
    disable_version_check
}

/// Addresses that pip takes.
const SCHEMES: [&str; 4] = ["http://", "https://", "ftp://", "file://"];

impl Given {
    /// The words behind `pip install`, and behind the files of requirements; none if nothing is asked for.
    ///
    /// # Errors
    /// What pip would not take.
    pub(crate) fn words(&self) -> Result<Option<Vec<String>>> {
        let mut words = Words::default();
        if let Some(no_binary) = texts(self.no_binary.as_ref())?.filter(|list| !list.is_empty()) {
            words.option("--no-binary", &no_binary.join(","));
        }
        self.common(&mut words)?;
        for link in texts(self.find_links.as_ref())?.unwrap_or_default() {
            if !is_address(&link) && changes::look(&link, true).ok().flatten().is_none() {
                return Err(format!("'{link}' is not a valid URL or path"));
            }
            words.option("--find-links", &link);
        }
        let (index, extra) = (full(self.index_url.as_ref())?, full(self.extra_index_url.as_ref())?);
        let no_index = flag(self.no_index.as_ref(), false)?;
        if no_index && (index.is_some() || extra.is_some()) {
            return Err("'no_index' and ('index_url' or 'extra_index_url') are mutually exclusive.".into());
        }
        for (option, url) in [("--index-url", index), ("--extra-index-url", extra)] {
            let Some(url) = url else { continue };
            if !is_address(&url) {
                return Err(format!("'{url}' is not a valid URL"));
            }
            words.option(option, &url);
        }
        words.flag("--no-index", self.no_index.as_ref())?;
        if flag(self.mirrors.as_ref(), false)? {
            return Err(
                "pip >= 7.0.0 does not support mirror argument: use index_url and/or extra_index_url instead".into()
            );
        }
        words.flag(QUIET, self.disable_version_check.as_ref())?;
        words.text("--target", self.target.as_ref())?;
        words.text("--download", self.download.as_ref())?;
        words.text("--cache-dir", self.cache_dir.as_ref())?;
        words.text("--source", self.source.as_ref())?;
        words.flag("--upgrade", self.upgrade.as_ref())?;
        words.flag("--force-reinstall", self.force_reinstall.as_ref())?;
        words.flag("--ignore-installed", self.ignore_installed.as_ref())?;
        if let Some(action) = full(self.exists_action.as_ref())? {
            if !matches!(action.to_lowercase().as_str(), "s" | "i" | "w" | "b") {
                return Err(format!(
                    "The exists_action pip option only supports the values s, i, w, and b. '{action}' is not valid."
                ));
            }
            words.option("--exists-action", &action);
        }
        words.flag("--no-deps", self.no_deps.as_ref())?;
        words.flag("--no-cache-dir", self.no_cache_dir.as_ref())?;
        words.flag("--pre", self.pre_releases.as_ref())?;
        words.text("--cert", self.cert.as_ref())?;
        words.each("--global-option", self.global_options.as_ref())?;
        words.each("--install-option", self.install_options.as_ref())?;
        let packages = texts(self.pkgs.as_ref())?.unwrap_or_default();
        let editable = texts(self.editable.as_ref())?.unwrap_or_default();
        if packages.is_empty() && editable.is_empty() && !flag(self.requirements.as_ref(), false)? {
            return Ok(None);
        }
        // A comma in a version is a semicolon, because commas are between packages.
        words.0.extend(packages.iter().map(|package| package.replace(';', ",")));
        for place in editable {
            let is_named = place.contains("#egg=") || place.contains("&egg=");
            if place != "." && !place.starts_with("file://") && !place.starts_with('/') && !is_named {
                return Err("You must specify an egg for this editable".into());
            }
            words.option("--editable", &place);
        }
        words.text("--trusted-host", self.trusted_host.as_ref())?;
        words.more(self.extra_args.as_ref())?;
        Ok(Some(words.0))
    }

    /// The words behind `pip uninstall -y`.
    pub(crate) fn removing(&self) -> Result<Vec<String>> {
        let mut words = Words::default();
        self.common(&mut words)?;
        words.0.extend(texts(self.pkgs.as_ref())?.unwrap_or_default());
        words.more(self.extra_args.as_ref())?;
        Ok(words.0)
    }

    fn common(&self, words: &mut Words) -> Result<()> {
        if let Some(log) = full(self.log.as_ref())? {
            if changes::is(&log, Kind::Directory).unwrap_or(false) {
                return Err(format!("'{log}' is a directory. Use --log path_to_file"));
            }
            words.option("--log", &log);
        }
        words.text("--proxy", self.proxy.as_ref())?;
        if let Some(timeout) = full(self.timeout.as_ref())? {
            if timeout.parse::<i64>().is_err() {
                return Err(format!("'{timeout}' is not a valid timeout, must be an integer"));
            }
            words.option("--timeout", &timeout);
        }
        Ok(())
    }
}

pub(crate) const QUIET: &str = "--disable-pip-version-check";

fn is_address(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

#[derive(Debug, Default)]
struct Words(Vec<String>);

impl Words {
    fn option(&mut self, name: &str, value: &str) {
        self.0.extend([name.to_owned(), value.to_owned()]);
    }

    fn flag(&mut self, name: &str, argument: Option<&Data>) -> Result<()> {
        self.0.extend(flag(argument, false)?.then(|| name.to_owned()));
        Ok(())
    }

    fn text(&mut self, name: &str, argument: Option<&Data>) -> Result<()> {
        if let Some(value) = full(argument)? {
            self.option(name, &value);
        }
        Ok(())
    }

    fn each(&mut self, name: &str, argument: Option<&Data>) -> Result<()> {
        texts(argument)?.unwrap_or_default().iter().for_each(|value| self.option(name, value));
        Ok(())
    }

    /// Words, and dicts of options with values.
    fn more(&mut self, argument: Option<&Data>) -> Result<()> {
        let Some(Value::List(items)) = argument.map(Data::value).transpose()? else { return Ok(()) };
        for item in items {
            let Value::Dict(entries) = item else {
                self.0.push(item.to_text());
                continue;
            };
            if let Some((name, value)) = entries.last() {
                if matches!(value, Value::Dict(_) | Value::List(_)) {
                    return Err(format!("Too many levels in: {}", name.to_text()));
                }
                self.option(&name.to_text(), &value.to_text());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_options() {
        let given = Given {
            pkgs: Some("a>=1;<2, b".into()),
            no_index: Some(true.into()),
            upgrade: Some(true.into()),
            timeout: Some(Value::Int(5).into()),
            find_links: Some("https://h/x".into()),
            extra_args: Some(Value::List(vec!["-v".into(), Value::dict([("--x", "y".into())])]).into()),
            ..Given::default()
        };
        let expect = "--timeout 5 --find-links https://h/x --no-index --upgrade a>=1,<2 b -v --x y"
            .split(' ')
            .collect::<Vec<_>>();
        assert_eq!(given.words().unwrap().unwrap(), expect);
        assert_eq!(Given::default().words(), Ok(None));
        let wrong = |given: Given| given.words().unwrap_err();
        assert_eq!(wrong(Given { index_url: Some("h".into()), ..Given::default() }), "'h' is not a valid URL");
        let both = Given { index_url: Some("https://h".into()), no_index: Some(true.into()), ..Given::default() };
        assert!(wrong(both).ends_with("are mutually exclusive."));
        assert!(wrong(Given { editable: Some("git+https://h/x".into()), ..Given::default() }).contains("egg"));
    }
}
