//! Messages about wrong calls: the usage line and the error, in the form of Salt's commands.

use brine_protocol::exit;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::Failure;

/// The failure for a wrong call of the command `T`: the usage line and the error, with exit code 64.
pub fn misuse<T: CommandFactory>(what: &str) -> Failure {
    fail(T::command(), what)
}

/// As [`misuse`], for the given command.
pub(super) fn fail(command: clap::Command, what: &str) -> Failure {
    Failure::new(exit::USAGE, describe(command, what))
}

fn describe(mut command: clap::Command, what: &str) -> String {
    let usage = command.render_usage();
    format!("{usage}\n\n{}: error: {what}", command.get_name())
}

/// The text of clap's error in the form of Python's optparse.
pub(super) fn describe_error(error: &clap::Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let option = text(ContextKind::InvalidArg);
    let option = option.split([' ', '=']).next().unwrap_or_default();
    let value = text(ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::UnknownArgument => format!("no such option: {option}"),
        ErrorKind::InvalidValue if value.is_empty() => format!("{option} option requires 1 argument"),
        ErrorKind::InvalidValue => {
            let choices = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(choices)) => choices.iter().map(|c| format!("'{c}'")).collect::<Vec<_>>(),
                _ => Vec::new(),
            };
            format!("option {option}: invalid choice: '{value}' (choose from {})", choices.join(", "))
        }
        ErrorKind::ValueValidation => format!("option {option}: invalid integer value: '{value}'"),
        ErrorKind::TooManyValues => format!("{option} option does not take a value"),
        _ => {
            let text = error.render().to_string();
            text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command};

    use super::*;

    #[test]
    fn wrong_calls_are_told_as_salt_tells_them() {
        let command = || {
            let number = Arg::new("n").long("number").value_parser(clap::value_parser!(u8));
            let flag = Arg::new("f").long("flag").action(ArgAction::SetTrue);
            let choice = Arg::new("c").long("choice").value_parser(["a", "b"]);
            Command::new("salt-x").override_usage("salt-x [options]").args([number, flag, choice])
        };
        for (line, what) in [
            (&["--unknown"][..], "no such option: --unknown"),
            (&["--unknown=1"], "no such option: --unknown"),
            (&["-z"], "no such option: -z"),
            (&["--number"], "--number option requires 1 argument"),
            (&["--number=x"], "option --number: invalid integer value: 'x'"),
            (&["--choice=c"], "option --choice: invalid choice: 'c' (choose from 'a', 'b')"),
        ] {
            let error = command().try_get_matches_from([&["salt-x"], line].concat()).unwrap_err();
            assert!(error.use_stderr());
            assert_eq!(
                describe(command(), &describe_error(&error)),
                format!("Usage: salt-x [options]\n\nsalt-x: error: {what}")
            );
        }
    }
}
