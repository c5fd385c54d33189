//! Output: outputters to stdout or to a file, with Salt's rules for which outputter and whether in colour.

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};

use brine_protocol::config::Config;
use brine_protocol::exit;
use brine_protocol::output::{Indent, Outputter, StateSettings, Style};
use brine_protocol::value::{Value, ValueExt};

use super::Failure;
use super::options::OutputArgs;

/// Writes a line to stdout. A reader that went away (`| head`) is not an error.
pub fn stdout(text: &str) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        eprintln!("cannot write the output: {error}");
        std::process::exit(exit::GENERIC);
    }
}

/// What of states is shown, by the options and the configuration.
fn states(args: &OutputArgs, config: &Config) -> StateSettings {
    let flag = |key: &str, default: bool| config.value(key).map_or(default, ValueExt::truthy);
    // A list, or text with commas.
    let results = |key: &str| -> Vec<String> {
        let texts = |value: &Value| match value.list() {
            Some(items) => items.iter().map(ValueExt::python_str).collect(),
            None => value.python_str().split(',').map(str::to_owned).collect(),
        };
        config.value(key).map(texts).unwrap_or_default()
    };
    let mut set = StateSettings {
        verbose: flag("state_verbose", true),
        diff: flag("state_output_diff", false),
        profile: flag("state_output_profile", true),
        percent: flag("state_output_pct", false),
        tabular: config.value("state_tabular") == Some(&Value::from(true)),
        exclude: results("state_output_exclude"),
        terse: results("state_output_terse"),
        ..StateSettings::default()
    };
    let configured = config.value("state_output").and_then(ValueExt::text);
    set.set_output(args.state_output.as_deref().or(configured).unwrap_or_default());
    // As Salt reads it: any other text counts as true.
    if let Some(verbose) = &args.state_verbose {
        set.verbose = !matches!(verbose.as_str(), "False" | "false" | "");
    }
    set
}

/// Prints values.
#[derive(Debug)]
pub struct Printer {
    /// `--out`, or `output` in the configuration: counts for every return, whatever it asks for.
    chosen: Option<String>,
    style: Style,
    file: Option<File>,
}

impl Printer {
    /// By the options and the configuration.
    ///
    /// # Errors
    /// When the output file cannot be opened.
    pub fn new(args: &OutputArgs, config: &Config) -> Result<Self, Failure> {
        let file = match &args.output_file {
            None => None,
            Some(path) => {
                let mut options = File::options();
                options.create(true).append(args.output_file_append).write(true).truncate(!args.output_file_append);
                let failed = |error| Failure::new(exit::USAGE, format!("{}: Access denied: {error}", path.display()));
                Some(options.open(path).map_err(failed)?)
            }
        };
        let terminal = file.is_none() && std::io::stdout().is_terminal();
        let wanted = config.value("color").is_none_or(ValueExt::truthy);
        let color = args.force_color || (!args.no_color && terminal && wanted);
        let indent = match (args.output_indent, config.opts().get("output_indent")) {
            (Some(columns), _) => Indent::Columns(columns),
            (None, None) => Indent::Unset,
            (None, Some(Value::String(text))) if text.as_str() == Some("pretty") => Indent::Pretty,
            (None, Some(value)) => value.as_i64().map_or(Indent::Null, Indent::Columns),
        };
        let strip_colors = config.value("strip_colors").is_none_or(ValueExt::truthy);
        let configured = || config.value("output").and_then(|output| output.text().map(str::to_owned));
        let chosen = args.output.clone().or_else(configured).filter(|name| !name.is_empty());
        // with colours it will end on a terminal, whatever is in between
        let style = Style {
            color,
            visible: terminal || color,
            indent,
            strip_colors,
            state: states(args, config),
            ..Style::default()
        };
        Ok(Self { chosen, style, file })
    }

    /// Whether the operator chose the outputter.
    pub const fn is_chosen(&self) -> bool {
        self.chosen.is_some()
    }

    /// Prints a value with the chosen outputter, or with the one it asks for.
    pub fn show(&mut self, value: &Value, out: &str, retcode: i64) {
        let name = self.chosen.as_deref().unwrap_or(out);
        let outputter = Outputter::by_name(name).unwrap_or_else(|| {
            // what Salt's grains runner asks for, which is not the operator's fault
            if name != "grains" {
                let name = self.style.pass(name);
                tracing::error!("Invalid outputter {name} specified, fall back to nested");
            }
            Outputter::Nested
        });
        let style = Style { retcode, ..self.style.clone() };
        let text = outputter.render(value, &style);
        if text.is_empty() {
            return;
        }
        match &mut self.file {
            None => stdout(&text),
            Some(file) => {
                if let Err(error) = writeln!(file, "{text}") {
                    eprintln!("cannot write the output: {error}");
                    std::process::exit(exit::GENERIC);
                }
            }
        }
    }

    /// Prints a line that is not a value (a heading, a jid), which always goes to stdout; `text` may come from a minion.
    pub fn line(&self, text: &str) {
        stdout(&self.style.pass(text));
    }
}
