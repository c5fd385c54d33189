//! The check of programs: the program, its arguments and its environment.

use std::collections::BTreeSet;

use super::{ProcessOp, ProcessRun};
use crate::Capability;
use crate::check::{Least, Refusal};
use crate::forms::{Form, MAX_BULK, MAX_PATH, clean, is_user, is_variable, malformed, size, text, why_not_absolute};
use crate::grants::{Grant, Grants};
use crate::looks::Look;
use crate::names::Names;
use crate::programs::{ProcessGrant, Program, locate};

/// Upper bound on the arguments of one program.
const MAX_ARGUMENTS: usize = 4_096;
/// Upper bound on the bytes of one argument or variable: Linux accepts 128 KiB, including the NUL.
const MAX_ARGUMENT: usize = (128 << 10) - 1;
/// Upper bound on the bytes of all arguments and variables. Linux accepts 2 MiB with a stack of 8 MiB.
const MAX_ARGUMENTS_BYTES: usize = 1 << 20;
/// Upper bound on the variables of one program.
const MAX_VARIABLES: usize = 512;
/// Upper bound on the bytes of a variable's name.
const MAX_VARIABLE: usize = 256;

pub(super) fn check(granted: &Grants, op: ProcessOp) -> Result<ProcessOp, Refusal> {
    match op {
        ProcessOp::Run(run) => Ok(ProcessOp::Run(Box::new(checked(granted, *run)?))),
        ProcessOp::Probe(run) => Ok(ProcessOp::Probe(Box::new(checked(granted, *run)?))),
        ProcessOp::Look(_) => Err(malformed("the command", "is one that only the minion makes")),
        ProcessOp::Which { name } => {
            program_name(&name)?;
            let mut wanted = Wanted::new(granted);
            let name = wanted.program(name);
            wanted.granted().map(|()| ProcessOp::Which { name })
        }
        // The guest asks whether the shell was granted. For a path that was not, the broker reports that there is none.
        ProcessOp::Shell { path: Some(path) } => {
            program_name(&path)?;
            let granted = match granted.process.find(&path) {
                Program::Granted(granted) => granted.to_owned(),
                Program::Any | Program::No => path,
            };
            Ok(ProcessOp::Shell { path: Some(granted) })
        }
        ProcessOp::Shell { path: None } => Ok(ProcessOp::Shell { path: None }),
    }
}

fn checked(granted: &Grants, mut run: ProcessRun) -> Result<ProcessRun, Refusal> {
    form(&run)?;
    let mut wanted = Wanted::new(granted);
    run.argv[0] = wanted.program(std::mem::take(&mut run.argv[0]));
    if let Some(cwd) = run.cwd.as_deref().filter(|cwd| *cwd != "/") {
        let parts: Vec<&str> = cwd.split('/').collect();
        wanted.name(
            granted.process.cwd.holds(&parts, '/'),
            |grant| &mut grant.cwd,
            cwd,
            || format!("run programs in {cwd}"),
        );
    }
    for (name, value) in &run.env {
        let may = is_harmless(name, value) || granted.process.env.matches(name);
        wanted.name(may, |grant| &mut grant.env, name, || format!("set the variable {name}"));
    }
    // The user as which the program runs anyway.
    let own = granted.user.as_deref().or(granted.process.host.user.as_deref());
    if let Some(user) = run.run_as.as_deref() {
        let may = Some(user) == own || granted.process.users.has(user);
        wanted.name(may, |grant| &mut grant.users, user, || format!("run programs as user {user}"));
    }
    if let Some(group) = run.group.as_deref() {
        let may = granted.process.groups.has(group);
        wanted.name(may, |grant| &mut grant.groups, group, || format!("run programs as group {group}"));
    }
    wanted.granted()?;
    // A program of which only some command lines are granted.
    if !granted.process.programs.has(&run.argv[0]) {
        match granted.process.line(&run.argv) {
            Some(program) if only_the_words_count(&granted.process, &run) => program.clone_into(&mut run.argv[0]),
            _ => return Err(with_line(&granted.process, &run)),
        }
    }
    if run.run_as.is_none() {
        run.run_as.clone_from(&granted.user);
    }
    Ok(run)
}

/// Refuses a command line that is not among the granted ones.
fn with_line(granted: &ProcessGrant, run: &ProcessRun) -> Refusal {
    let what =
        format!("run {} in this way: only some command lines of {} are granted", super::shown(&run.argv), run.argv[0]);
    // What a configuration line cannot name exactly, it does not name.
    let exact = run.argv.iter().all(|word| {
        !word.is_empty() && !word.starts_with('!') && !word.contains(|c: char| c.is_whitespace() || is_glob_char(c))
    });
    let line = Look::read(&run.argv.join(" ")).ok().filter(|_| exact && only_the_words_count(granted, run));
    let lift = line.map(|line| {
        let mut grant = granted.clone();
        grant.lines.get_or_insert_default().push(line);
        Box::new((Capability::Process, Grant::Process(grant)))
    });
    Refusal::NotGranted { what, lift, least: Least::AsTold }
}

/// Whether a character stands for others in a command line.
const fn is_glob_char(c: char) -> bool {
    matches!(c, '*' | '?')
}

/// Checks bounds and forms, which do not depend on grants.
fn form(run: &ProcessRun) -> Result<(), Refusal> {
    let Some(program) = run.argv.first() else { return Err(malformed("the command", "has no program")) };
    program_name(program)?;
    if run.argv.len() > MAX_ARGUMENTS {
        return Err(malformed(
            "the command",
            &format!("has {} arguments; the most is {MAX_ARGUMENTS}", run.argv.len()),
        ));
    }
    for argument in &run.argv {
        size("an argument", argument.len(), MAX_ARGUMENT)?;
        clean("an argument", argument, Form::Bytes)?;
    }
    if run.env.len() > MAX_VARIABLES {
        return Err(malformed(
            "the environment",
            &format!("has {} variables; the most is {MAX_VARIABLES}", run.env.len()),
        ));
    }
    let mut seen = BTreeSet::new();
    for (name, value) in &run.env {
        if name.len() > MAX_VARIABLE || !is_variable(name) {
            return Err(malformed("the name of a variable", "is to be letters, digits and _, no digit first"));
        }
        if !seen.insert(name) {
            return Err(malformed(&format!("the variable {name}"), "is there twice"));
        }
        size("a variable", name.len() + value.len() + 1, MAX_ARGUMENT)?;
        clean("a variable", value, Form::Bytes)?;
    }
    let bytes = run.argv.iter().map(|argument| argument.len() + 1);
    let bytes = bytes.chain(run.env.iter().map(|(name, value)| name.len() + value.len() + 2)).sum();
    size("the arguments and variables", bytes, MAX_ARGUMENTS_BYTES)?;
    if let Some(cwd) = &run.cwd
        && let Some(why) = why_not_absolute(cwd)
    {
        return Err(malformed("the directory to start in", why));
    }
    for (what, user) in [("the user", &run.run_as), ("the group", &run.group)] {
        if user.as_deref().is_some_and(|user| !is_user(user)) {
            return Err(malformed(what, "is neither a name nor a number"));
        }
    }
    if run.umask.is_some_and(|umask| umask > 0o777) {
        return Err(malformed("the umask", "is not one: 777 is the most"));
    }
    size("the input", run.stdin.as_ref().map_or(0, |stdin| stdin.len()), MAX_BULK)
}

/// Checks a program's name: a bare name, or an absolute path in its only valid spelling.
fn program_name(name: &str) -> Result<(), Refusal> {
    text("the program", name, MAX_PATH, Form::Line)?;
    if matches!(name, "." | "..") {
        return Err(malformed("the program", "is a folder"));
    }
    match name.contains('/').then(|| why_not_absolute(name)).flatten() {
        Some(why) => Err(malformed("the program", why)),
        None if name == "/" => Err(malformed("the program", "is a folder")),
        None => Ok(()),
    }
}

/// The bits that a umask has which lets others write nothing.
const NOT_FOR_OTHERS: u32 = 0o022;

/// Checks whether nothing but the command line decides what a look does: no input, no folder with a configuration file, no
/// umask that lets others write what is made, no variable, unless the grant names it. `any` names nothing: with it, `LD_PRELOAD` or `GIT_CONFIG_COUNT` would make another
/// program of one that looks.
pub(super) fn only_the_words_count(granted: &ProcessGrant, run: &ProcessRun) -> bool {
    let folder = run.cwd.as_deref().is_none_or(|cwd| {
        let parts: Vec<&str> = cwd.split('/').collect();
        cwd == "/" || (granted.cwd != Names::Any && granted.cwd.holds(&parts, '/'))
    });
    let named = |(name, value): &(String, String)| {
        is_harmless(name, value)
            || QUIET.contains(&(name.as_str(), value.as_str()))
            || matches!(&granted.env, Names::Only(names) if names.iter().any(|known| known == name))
    };
    // What is made by it is not for others to write.
    let umask = run.umask.is_none_or(|umask| umask & NOT_FOR_OTHERS == NOT_FOR_OTHERS);
    folder && umask && run.env.iter().all(named) && run.stdin.as_ref().is_none_or(|stdin| stdin.is_empty())
}

/// Variables that keep programs of Debian from asking questions.
const QUIET: [(&str, &str); 4] = [
    ("APT_LISTBUGS_FRONTEND", "none"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("UCF_FORCE_CONFFOLD", "1"),
];

/// Checks for variables that only affect presentation: language and time zone, given as a name and not as a file.
fn is_harmless(name: &str, value: &str) -> bool {
    const MAX: usize = 128;
    let locale =
        name == "LANG" || name.strip_prefix("LC_").is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_uppercase()));
    let inside = |extra: &'static [char]| move |c: char| c.is_ascii_alphanumeric() || extra.contains(&c);
    let named = value.len() <= MAX && !value.contains("..");
    if locale {
        named && value.chars().all(inside(&['.', '_', '-', '@']))
    } else {
        name == "TZ" && named && !value.starts_with('/') && value.chars().all(inside(&['/', '_', '-', '+', ',', '.']))
    }
}

/// Collects everything that exceeds the grant: one refusal names all of it, and one configuration line grants it.
struct Wanted<'a> {
    granted: &'a ProcessGrant,
    grant: ProcessGrant,
    missing: Vec<String>,
}

impl<'a> Wanted<'a> {
    fn new(granted: &'a Grants) -> Self {
        Self { granted: &granted.process, grant: granted.process.clone(), missing: Vec::new() }
    }

    /// Returns the program's path for execution.
    fn program(&mut self, asked: String) -> String {
        match self.granted.find(&asked) {
            Program::Granted(path) => path.to_owned(),
            Program::Any => asked,
            Program::No => {
                let path = if asked.contains('/') { asked } else { locate(&asked) };
                self.grant.programs = self.grant.programs.with(&path);
                self.missing.push(format!("run {path}"));
                path
            }
        }
    }

    fn name(
        &mut self,
        may: bool,
        names: impl Fn(&mut ProcessGrant) -> &mut Names,
        name: &str,
        what: impl Fn() -> String,
    ) {
        if !may {
            let names = names(&mut self.grant);
            *names = names.with(name);
            self.missing.push(what());
        }
    }

    fn granted(self) -> Result<(), Refusal> {
        if self.missing.is_empty() {
            return Ok(());
        }
        Err(Refusal::not_granted(self.missing.join(" and not "), Capability::Process, Grant::Process(self.grant)))
    }
}
