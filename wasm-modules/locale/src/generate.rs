//! Locales that are there, and those that are made.

use brine_guest::changes::{self, Kind};
use brine_guest::program::{self, Output, Program};
use regex_lite::escape;

use crate::name::{Name, normal};
use crate::{Host, checked, edit};

/// The locales that may be made, on Debian.
const SUPPORTED: &str = "/usr/share/i18n/SUPPORTED";
const SOURCES: &str = "/usr/share/i18n/locales";
/// Those that `locale-gen` makes.
const WANTED: &str = "/etc/locale.gen";
/// Those that Ubuntu's makes, without [`WANTED`].
const WANTED_OF_UBUNTU: &str = "/var/lib/locales/supported.d";

/// The locales that there are.
pub(crate) fn all() -> Result<Vec<String>, String> {
    let listed = Program::new(["locale", "-a"]).merged().run()?.stdout;
    Ok(listed.split('\n').map(str::to_owned).collect())
}

/// Whether a locale is there.
pub(crate) fn is_there(locale: &str) -> Result<bool, String> {
    let wanted = normal(locale);
    Ok(all()?.iter().any(|known| normal(known.trim()) == wanted))
}

/// Makes a locale; none if it cannot be made here.
pub(crate) fn generate(host: &Host, locale: &str, verbose: bool) -> Result<Option<Output>, String> {
    let (is_debian, is_ubuntu) = (host.text("os") == "Debian", host.text("os") == "Ubuntu");
    let mut name = Name::read(checked(locale)?);
    let mut locale = locale.to_owned();
    if name.charmap.is_empty() && !is_ubuntu {
        name.charmap.clone_from(&name.codeset);
        locale = name.text();
    }
    let source = format!("{}_{}", name.language, name.territory);
    let is_known = match is_debian {
        true => edit::has_line(SUPPORTED, &locale)?,
        false => match changes::list(SOURCES) {
            Ok(sources) => sources.iter().any(|(known, _)| *known == source),
            Err(_) => return Err(format!("Locale \"{locale}\" is not available.")),
        },
    };
    if !is_known {
        return Ok(None);
    }
    if changes::is(WANTED, Kind::Regular)? {
        edit::replace(WANTED, &format!(r"^\s*#\s*{}\s*$", escape(&locale)), &format!("{locale}\n"))?;
    } else if is_ubuntu {
        let file = format!("{WANTED_OF_UBUNTU}/{}", name.language);
        edit::make(&file)?;
        edit::replace(&file, &escape(&locale), &locale)?;
    }
    let program = if program::exists("locale-gen")? {
        Program::new(["locale-gen".to_owned(), if is_ubuntu { normal(&locale) } else { locale }])
    } else if program::exists("localedef")? {
        let result = format!("{source}.{}", name.codeset);
        let words = ["localedef", "--force", "-i", &source, "-f", &name.codeset, &result];
        Program::new(words).arg(if verbose { "--verbose" } else { "--quiet" })
    } else {
        return Err("Command \"locale-gen\" or \"localedef\" was not found on this system.".into());
    };
    program.run().map(Some)
}
