//! `file.patch`: applies a patch of the master, of this host or of the web. Comments and results are Salt's.

use brine_guest::changes::{self, Kind, Put};
use brine_guest::host::job;
use brine_guest::states::is_dry_run;
use brine_guest::{Value, path, words};

use super::{Arguments, Ret};
use crate::edit::patch::{self, Options, Outcome};
use crate::manage::get::Asked;
use crate::manage::{source, template};

/// Options that the state has itself.
const OWN: [&str; 6] = ["-N", "--forward", "-r", "--reject-file", "-o", "--output"];

pub(crate) fn patch(name: &str, args: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("A file/directory to be patched is required"));
    }
    if !name.starts_with('/') {
        return Ok(Ret::bad(format!("{name} is not an absolute path")));
    }
    let Some(entry) = changes::look(name, true)? else {
        return Ok(Ret::bad(format!("{name} does not exist")));
    };
    let mut ret = Ret::new();
    for old in ["hash", "dry_run_first"].into_iter().filter(|old| args.has(old)) {
        ret.warnings.push(format!("The '{old}' argument is no longer used and has been ignored."));
    }
    let reject_file = args.text("reject_file");
    if let Some(file) = &reject_file {
        let around = path::dirname(file);
        if !around.starts_with('/') {
            return Ok(ret.failed(format!("'{file}' is not an absolute path")));
        }
        if !changes::is(around, Kind::Directory)? {
            return Ok(ret.failed(format!(
                "Parent directory for reject_file '{file}' either does not exist, or is not a directory"
            )));
        }
    }
    let (strip, options) = match options(args) {
        Ok(options) => options,
        Err(comment) => return Ok(ret.failed(comment)),
    };
    let mut options = Options::read(&options)?;
    if entry.kind == Kind::Directory {
        options.strip = strip.unwrap_or(0);
    }
    let content = match content(args) {
        Ok(content) => content,
        Err(comment) => return Ok(ret.failed(comment)),
    };
    let trial = patch::run(name, &content, &options, true)?;
    if trial.retcode != 0 {
        return refused(ret, &trial, reject_file.as_deref());
    }
    if is_dry_run() {
        ret.result = None;
        ret.comment = "The patch would be applied".into();
        ret.changes = entries(&trial);
        return Ok(ret);
    }
    let done = patch::run(name, &content, &options, false)?;
    ret.changes = entries(&done);
    if done.retcode != 0 {
        return Ok(ret.failed("Failed to apply patch"));
    }
    ret.comment = "Patch successfully applied".into();
    Ok(ret)
}

fn entries(outcome: &Outcome) -> Vec<(Value, Value)> {
    let Value::Dict(entries) = outcome.value() else { unreachable!("it is a dict") };
    entries
}

/// The options: how many folders are left out, and all others.
fn options(args: &Arguments) -> Result<(Option<usize>, Vec<String>), String> {
    let line = args.text("options").unwrap_or_default();
    let all = words::split(&line)?;
    let mut strip = args.get("strip").map(Value::to_text);
    let (mut rest, mut refused) = (Vec::new(), Vec::new());
    let mut words = all.into_iter();
    let said = |option: &str| {
        format!("Invalid format for '{option}' CLI option. Consider using the 'strip' option for this state.")
    };
    let is_number = |text: &str| text.trim().parse::<i64>().is_ok();
    while let Some(word) = words.next() {
        refused.extend(OWN.into_iter().find(|own| word.starts_with(own)));
        let (option, number) = if let Some(number) = word.strip_prefix("-p") {
            ("-p", number.to_owned())
        } else if word.starts_with("--strip") {
            let after = word.rsplit_once('=').map(|(_, number)| number.to_owned());
            ("-strip", after.or_else(|| words.next()).unwrap_or_default())
        } else {
            rest.push(word);
            continue;
        };
        if !is_number(&number) {
            return Err(said(option));
        }
        strip = Some(number);
    }
    if !refused.is_empty() {
        return Err(format!("The following CLI options are not allowed: {}", refused.join(", ")));
    }
    let number = |text: String| text.trim().parse().map_err(|_| format!("{text:?} is no number of folders to strip"));
    Ok((strip.map(number).transpose()?, rest))
}

/// The patch: rendered, and with the hash that it has to have.
fn content(args: &Arguments) -> Result<Vec<u8>, String> {
    let saltenv = args.named("saltenv").or_else(|| job::state().map(|state| state.saltenv));
    let saltenv = saltenv.unwrap_or_else(|| "base".into());
    let (chosen, source_hash) = source::choose(&args.value("source"), &args.value("source_hash"), &saltenv)?;
    let mut asked = Asked {
        name: "the patch".into(),
        source: Some(chosen.to_text()),
        source_hash,
        source_hash_name: args.named("source_hash_name"),
        skip_verify: args.flag("skip_verify", false),
        use_etag: false,
        template: args.named("template"),
        saltenv,
        names: Vec::new(),
    };
    template::add_context(&mut asked.names, &args.value("defaults"), &args.value("context"));
    let got = asked.get().and_then(|got| got.map(|got| got.fetched()).transpose()).map_err(|trouble| trouble.text())?;
    let got = got.ok_or("no source was given")?;
    match &got.sum {
        Some(sum) => got.body.load_checked(sum),
        None => got.body.load(),
    }
}

/// The result where not all of the patch fits.
fn refused(mut ret: Ret, trial: &Outcome, reject_file: Option<&str>) -> Result<Ret, String> {
    if trial.rejects.is_empty() {
        return Ok(ret.failed(if trial.stderr.is_empty() { &trial.stdout } else { &trial.stderr }));
    }
    if trial.is_there {
        ret.comment = "Patch was already applied".into();
        return Ok(ret);
    }
    let mut comment = "Patch would not apply cleanly, no changes made. Results of dry-run are below.".to_owned();
    match reject_file {
        Some(file) => drop(Put::new(file).bytes(trial.rejects.clone())?),
        None => comment += " Run state again using the reject_file option to save rejects to a persistent file.",
    }
    Ok(ret.failed(format!("{comment}\n\n{}", shown(trial))))
}

/// What the trial came to, as Salt's outputter `nested` shows it.
fn shown(trial: &Outcome) -> String {
    let mut lines = vec!["----------".to_owned()];
    for (name, text) in [("retcode", trial.retcode.to_string()), ("stderr", trial.stderr.clone())] {
        lines.push(format!("{name}:"));
        lines.extend(text.lines().map(|line| format!("    {line}")));
    }
    lines.push("stdout:".to_owned());
    lines.extend(trial.stdout.lines().map(|line| format!("    {line}")));
    lines.iter().map(|line| format!("{}{line}", " ".repeat(14))).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, strip: Option<i64>) -> Result<(Option<usize>, Vec<String>), String> {
        let strip = strip.map(|strip| ("strip".into(), strip.into()));
        options(&Arguments::from([("options".into(), line.into())].into_iter().chain(strip).collect()))
    }

    #[test]
    fn options_are_salts() {
        assert_eq!(read("-p1 -s", None), Ok((Some(1), vec!["-s".to_owned()])));
        assert_eq!(read("--strip 2", Some(5)), Ok((Some(2), vec![])));
        assert_eq!(read("--strip=3 --fuzz=1", None), Ok((Some(3), vec!["--fuzz=1".to_owned()])));
        assert_eq!(read("", Some(1)), Ok((Some(1), vec![])));
        let why = "The following CLI options are not allowed: -o, --reject-file";
        assert_eq!(read("-o x --reject-file=y", None), Err(why.into()));
        assert!(read("-px", None).unwrap_err().starts_with("Invalid format for '-p' CLI option"));
        assert!(read("--strip", None).unwrap_err().starts_with("Invalid format for '-strip' CLI option"));
    }

    #[test]
    fn a_trial_is_shown_as_salt_shows_it() {
        let trial = Outcome { retcode: 1, stdout: "a\nb".into(), ..Outcome::default() };
        let indented = ["----------", "retcode:", "    1", "stderr:", "stdout:", "    a", "    b"];
        assert_eq!(shown(&trial), indented.map(|line| format!("              {line}")).join("\n"));
    }
}
