//! Output of commands: applies outputters to stdout or a file, with Salt's rules for the choice of outputter and
//! colour.
//!
//! Text for people is printed only by [`stdout`] and [`stderr`], which make characters visible that a terminal would
//! obey or hide.

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::Args;

use crate::Failure;
use crate::output::{Indent, Outputter, StateSettings, Style};
use brine_protocol::config::Config;
use brine_protocol::config::settings::{self, Setting};
use brine_protocol::exit;
use brine_protocol::text::visible;
use brine_protocol::value::{Value, ValueExt};

/// `--out` and the like.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output Options")]
pub struct OutputArgs {
    /// Print by this outputter: nested, json, yaml, txt, raw, pprint, newline_values_only, table, highstate, key, no_return or
    /// quiet. Default: nested.
    #[arg(long = "out", alias = "output", value_name = "OUTPUT")]
    pub output: Option<String>,
    /// Columns of an indent in json, yaml and pprint; a negative number puts all on one line.
    #[arg(long = "out-indent", alias = "output-indent", value_name = "OUTPUT_INDENT", allow_negative_numbers = true)]
    pub output_indent: Option<i64>,
    /// Write the output to this file.
    #[arg(long = "out-file", alias = "output-file", value_name = "OUTPUT_FILE")]
    pub output_file: Option<PathBuf>,
    /// Append to that file instead of replacing it.
    #[arg(long = "out-file-append", alias = "output-file-append")]
    pub output_file_append: bool,
    /// Print without colours.
    #[arg(long = "no-color", alias = "no-colour")]
    pub no_color: bool,
    /// Print in colours even if stdout is no terminal.
    #[arg(long = "force-color", alias = "force-colour")]
    pub force_color: bool,
    /// How much to show of states: full, terse, mixed, changes or filter. Default: the setting state_output.
    #[arg(long = "state-output", alias = "state_output", value_name = "STATE_OUTPUT")]
    pub state_output: Option<String>,
    /// Whether to show states that changed nothing: True or False. Default: the setting state_verbose.
    #[arg(long = "state-verbose", alias = "state_verbose", value_name = "STATE_VERBOSE")]
    pub state_verbose: Option<String>,
    /// Show only states that changed something.
    #[arg(long = "output-diff")]
    pub state_output_diff: bool,
}

/// The output file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: Access denied: {source}", path.display())]
pub struct OutputError {
    /// The file.
    path: PathBuf,
    /// The system's error.
    source: std::io::Error,
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        Self::new(exit::USAGE, error.to_string())
    }
}

/// Prints a text for people to stdout, with a newline. A reader that went away (`| head`) is not an error.
pub fn stdout(text: &str) {
    rendered(&visible(text));
}

/// Prints a text for people to stderr, with a newline. A failure is ignored, because it cannot be reported.
pub fn stderr(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(visible(text).as_bytes()).and_then(|()| out.write_all(b"\n"));
}

/// Writes an outputter's text to stdout, with the outputter's own colours.
pub fn rendered(text: &str) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        stderr(&format!("cannot write the output: {error}"));
        std::process::exit(exit::GENERIC);
    }
}

/// The settings for states, from the options and the configuration.
fn states(args: &OutputArgs, config: &Config) -> StateSettings {
    let flag = |setting| config.get(setting).unwrap_or_default();
    // A list, or text separated by commas.
    let results = |setting: Setting<Value>| -> Vec<String> {
        let texts = |value: &Value| match value.list() {
            Some(items) => items.iter().map(ValueExt::python_str).collect(),
            None => value.python_str().split(',').map(str::to_owned).collect(),
        };
        config.value(setting.row.name).map(texts).unwrap_or_default()
    };
    let mut set = StateSettings {
        verbose: flag(settings::STATE_VERBOSE),
        diff: args.state_output_diff || flag(settings::STATE_OUTPUT_DIFF),
        compress_ids: flag(settings::STATE_COMPRESS_IDS),
        profile: flag(settings::STATE_OUTPUT_PROFILE),
        percent: flag(settings::STATE_OUTPUT_PCT),
        tabular: config.find(settings::STATE_TABULAR).is_ok_and(|tabular| tabular == Some(Value::from(true))),
        exclude: results(settings::STATE_OUTPUT_EXCLUDE),
        terse: results(settings::STATE_OUTPUT_TERSE),
        ..StateSettings::default()
    };
    let configured = config.find(settings::STATE_OUTPUT).ok().flatten();
    set.set_output(args.state_output.as_deref().or(configured.as_deref()).unwrap_or_default());
    // As in Salt, any other text counts as true.
    if let Some(verbose) = &args.state_verbose {
        set.verbose = !matches!(verbose.as_str(), "False" | "false" | "");
    }
    set
}

/// Prints values with outputters.
#[derive(Debug)]
pub struct Printer {
    /// `--out`, or `output` in the configuration. It overrides the outputter that a return requests.
    chosen: Option<String>,
    style: Style,
    file: Option<File>,
}

impl Printer {
    /// From the options and the configuration.
    ///
    /// # Errors
    /// When the output file cannot be opened.
    pub fn new(args: &OutputArgs, config: &Config) -> Result<Self, OutputError> {
        let file = match &args.output_file {
            None => None,
            Some(path) => {
                let mut options = File::options();
                options.create(true).append(args.output_file_append).write(true).truncate(!args.output_file_append);
                let failed = |source| OutputError { path: path.clone(), source };
                Some(options.open(path).map_err(failed)?)
            }
        };
        let terminal = file.is_none() && std::io::stdout().is_terminal();
        let wanted = config.get(settings::COLOR).unwrap_or(true);
        let color = args.force_color || (!args.no_color && terminal && wanted);
        let indent = match (args.output_indent, config.opts().get(settings::OUTPUT_INDENT.row.name)) {
            (Some(columns), _) => Indent::Columns(columns),
            (None, None) => Indent::Unset,
            (None, Some(Value::String(text))) if text.as_str() == Some("pretty") => Indent::Pretty,
            (None, Some(value)) => value.as_i64().map_or(Indent::Null, Indent::Columns),
        };
        let strip_colors = config.get(settings::STRIP_COLORS).unwrap_or(true);
        let configured = || config.find(settings::OUTPUT).ok().flatten();
        let chosen = args.output.clone().or_else(configured).filter(|name| !name.is_empty());
        // coloured output ends on a terminal, whatever is in between
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

    /// Makes characters visible on any output that a terminal would obey or hide. For lists of names, which no program
    /// needs in another form.
    #[must_use]
    pub fn for_names(mut self) -> Self {
        self.style.visible = true;
        self
    }

    /// Sets whether lists below the keys of a displayed dict are tuples in Python.
    pub const fn tuples(&mut self, yes: bool) {
        self.style.tuples = yes;
    }

    /// Whether the operator selected the outputter.
    pub const fn is_chosen(&self) -> bool {
        self.chosen.is_some()
    }

    /// Prints a value with the selected outputter, or with the one it requests.
    pub fn show(&mut self, value: &Value, out: &str, retcode: i64) {
        // A selected `highstate` would garble other values, so Salt uses it only for returns that request it.
        let name = self.chosen.as_deref().filter(|name| *name != "highstate").unwrap_or(out);
        let outputter = Outputter::by_name(name).unwrap_or_else(|| {
            // Salt's grains runner requests this, which is not the operator's mistake
            if name != "grains" {
                tracing::error!("Invalid outputter {name} specified, fall back to nested");
            }
            Outputter::Nested
        });
        // For people who read the output through a pipe or a file; a program parses the same value.
        let visible = self.style.visible || outputter.has_escapes();
        let style = Style { retcode, visible, ..self.style.clone() };
        let text = outputter.render(value, &style);
        if outputter.gave_up(value, &text) {
            tracing::error!(
                "this value has keys that JSON cannot express (bytes, or of types that cannot be sorted), so {{}} is printed, as by Salt; \
                 --out=yaml prints it"
            );
        }
        if text.is_empty() {
            return;
        }
        match &mut self.file {
            None => rendered(&text),
            Some(file) => {
                if let Err(error) = writeln!(file, "{text}") {
                    stderr(&format!("cannot write the output: {error}"));
                    std::process::exit(exit::GENERIC);
                }
            }
        }
    }

    /// Prints a line that is not a value (a heading, a jid), always to stdout. `text` may come from a minion.
    pub fn line(&self, text: &str) {
        stdout(text);
    }
}
