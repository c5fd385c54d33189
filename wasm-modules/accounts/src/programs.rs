//! The programs that look at accounts and change them.

use brine_guest::Result;
use brine_guest::host::{log, process};
use brine_guest::program::{Output, Program};

/// Runs a program that changes accounts. `names` come after `--`, so that none of them is taken for an option.
pub(crate) fn change(program: &str, options: &[&str], root: Option<&str>, names: &[&str]) -> Result<Output> {
    let program = found(program)?;
    run(command(&program, options, root, names), &program)
}

/// [`change`] with standard input: for what must not be seen among the host's processes.
pub(crate) fn change_by_input(program: &str, options: &[&str], root: Option<&str>, input: &str) -> Result<Output> {
    let program = found(program)?;
    run(Program::new([&program]).args(options.iter().copied()).args(rooted(root)).stdin(input), &program)
}

fn command(program: &str, options: &[&str], root: Option<&str>, names: &[&str]) -> Program {
    Program::new([program]).args(options.iter().copied()).args(rooted(root)).arg("--").args(names.iter().copied())
}

fn rooted(root: Option<&str>) -> Vec<String> {
    root.map_or_else(Vec::new, |root| vec!["-R".into(), root.into()])
}

fn run(program: Program, name: &str) -> Result<Output> {
    let output = program.run()?;
    if !output.succeeded() {
        let why = format!("Command '{name}' failed with return code: {}: {}", output.code, output.stderr);
        log::write(log::Level::Error, &why);
    }
    Ok(output)
}

/// The path of a program.
fn found(program: &str) -> Result<String> {
    process::which(program)?.ok_or_else(|| format!("Command '{program}' cannot be found"))
}

/// Whether there is a directory at a path.
///
/// # Errors
/// When the host has no program `test`, or it was not granted.
pub fn is_directory(path: &str) -> Result<bool> {
    Ok(Program::new(["/usr/bin/test", "-d", path]).run()?.succeeded())
}

/// Makes a directory with its missing parents; each of the new ones gets this owner.
pub(crate) fn make_directory(path: &str, uid: i64, gid: i64) -> Result<bool> {
    let mut missing = vec![path];
    for parent in std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(parent, _)| parent)).skip(1) {
        if parent.is_empty() || is_directory(parent)? {
            break;
        }
        missing.insert(0, parent);
    }
    let (uid, gid) = (uid.to_string(), gid.to_string());
    Ok(change("install", &["-d", "-m", "0755", "-o", &uid, "-g", &gid], None, &missing)?.succeeded())
}

/// The lines that the name service has for a key, or all of a database. A key that begins with a dash names nobody.
pub(crate) fn getent(database: &str, key: Option<&str>) -> Result<Vec<String>> {
    if key.is_some_and(|key| key.is_empty() || key.starts_with('-')) {
        return Ok(Vec::new());
    }
    let output = Program::new(["getent", database]).args(key).run()?;
    match output.code {
        0 => Ok(output.stdout.lines().map(str::to_owned).collect()),
        // No such key, and no enumeration.
        2 | 3 => Ok(Vec::new()),
        code => Err(format!("getent {database} ended with {code}: {}", output.stderr)),
    }
}

/// The ids of all groups that have a user as a member. `id` would name the own group of another user with the same number.
pub(crate) fn group_ids(user: &str) -> Result<Vec<i64>> {
    let output = Program::new(["getent", "initgroups", user]).run()?;
    if !output.succeeded() {
        return Ok(Vec::new());
    }
    Ok(output.stdout.split_whitespace().skip(1).filter_map(|gid| gid.parse().ok()).collect())
}

/// The name of a user's own group, as `id` prints it.
pub(crate) fn primary_group(user: &str) -> Result<String> {
    Ok(Program::new(["id", "-g", "-n", "--", user]).merged().run()?.stdout)
}
