//! Programs, and how they may be run.

use brine_sandbox::{Names, ProcessGrant};

use super::accounts::{is_root, is_roots_group};
use super::paths::Files;
use super::programs::{changes_anything, runs_anything};
use super::variables;
use super::words::{Risk, named, some, text};

/// What the programs of a grant can be used for.
pub(super) fn risks(grant: &ProcessGrant, files: &Files<'_>) -> Vec<Risk> {
    let ProcessGrant {
        programs,
        lines,
        users,
        groups,
        env,
        cwd,
        detach,
        // A bound: without it, a file may be as large as the host permits.
        file_size: _,
        looks,
        // Brine's own, which are harmless.
        own_looks: _,
        host: _,
    } = grant;
    if *programs == Names::Any {
        // There is nothing beyond it.
        return vec![Risk::high("run any program, which is as good as the whole host")];
    }
    let mut all = of_programs(programs, files);
    let each = lines.iter().flatten().chain(looks).map(|line| (line.program(), line.to_string()));
    all.extend(each.map(|(program, line)| of_line(program, &line, files)));
    all.extend(of_env(env));
    all.extend(of_users(users));
    all.extend(of_groups(groups));
    if !cwd.is_none() {
        all.push(Risk::medium(format!("start programs in {}, where they may read what they do", named(cwd))));
    }
    if *detach {
        all.push(Risk::medium("leave programs behind that run on after the job"));
    }
    if all.is_empty() {
        all.push(match lines {
            Some(_) => Risk::low("run the command lines that only look, if it is one of Brine's modules with such"),
            None => Risk::low("ask to run programs, and get nothing yet"),
        });
    }
    all
}

fn of_programs(programs: &Names, files: &Files<'_>) -> Vec<Risk> {
    let Names::Only(programs) = programs else { return Vec::new() };
    let mut all: Vec<Risk> = programs.iter().filter_map(|program| strong(program, files)).collect();
    let others: Vec<&str> =
        programs.iter().filter(|program| strong(program, files).is_none()).map(String::as_str).collect();
    if !others.is_empty() {
        all.push(Risk::medium(format!("run {} with arguments of its choice", some(others.into_iter()))));
    }
    all
}

/// A program that is as good as any.
fn strong(program: &str, files: &Files<'_>) -> Option<Risk> {
    let name = text(program);
    if program.contains(['*', '?', '[']) {
        Some(Risk::high(format!("run what is like {name}, which may be any program")))
    } else if runs_anything(program) {
        Some(Risk::high(format!("run anything by {name}, which does what it is told")))
    } else if changes_anything(program) {
        Some(Risk::high(format!("change what this host runs by {name}")))
    } else if files.writes(program) {
        Some(Risk::high(format!("run anything as {name}, which it can replace")))
    } else {
        None
    }
}

/// A command line; what it leaves open is the module's choice.
fn of_line(program: &str, line: &str, files: &Files<'_>) -> Risk {
    let arguments = line.strip_prefix(program).unwrap_or(line);
    let shown = text(line);
    let is_open = arguments.contains(['*', '?']);
    if runs_anything(program) || files.writes(program) {
        Risk::high(format!("run anything by the line {shown}"))
    } else if arguments.contains("**") {
        Risk::high(format!("run {} with any arguments by the line {shown}", text(program)))
    } else if changes_anything(program) && is_open {
        Risk::high(format!("change what this host runs by the line {shown}"))
    } else {
        Risk::medium(format!("run the line {shown}"))
    }
}

fn of_env(env: &Names) -> Option<Risk> {
    match variables::strong(env) {
        Some(name) => {
            Some(Risk::high(format!("run anything by variables ({}) that say what a program loads", text(name))))
        }
        None if env.is_none() => None,
        None => Some(Risk::medium(format!("set the variables {} of programs", named(env)))),
    }
}

fn of_users(users: &Names) -> Option<Risk> {
    match users {
        Names::Any => Some(Risk::high("run programs as any user, root included")),
        Names::Only(names) if names.iter().any(|name| is_root(name)) => {
            Some(Risk::high("run programs as root, whose rights are all there are"))
        }
        Names::Only(names) if names.is_empty() => None,
        Names::Only(_) => Some(Risk::medium(format!("run programs as {}", named(users)))),
    }
}

fn of_groups(groups: &Names) -> Option<Risk> {
    match groups {
        Names::Any => Some(Risk::high("run programs with any group, root's included")),
        Names::Only(names) if names.iter().any(|name| is_roots_group(name)) => Some(Risk::high(format!(
            "run programs with the groups {}, by which they can get root's rights",
            named(groups)
        ))),
        Names::Only(names) if names.is_empty() => None,
        Names::Only(_) => Some(Risk::medium(format!("run programs with the groups {}", named(groups)))),
    }
}
