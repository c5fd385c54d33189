//! Logs of all programs: to stderr, and to a file if one is named, in Salt's two formats.
//!
//! What a peer sent may be in a message: control characters are escaped, so that one event is one line.

use std::fmt;
use std::path::Path;

use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts logging. The level is one of Salt's names (`quiet`, `critical`, `error`, `warning`, `info`, `profile`, `debug`,
/// `trace`, `garbage`, `all`); what is logged to the file has its own. Only the first call of a program counts.
///
/// # Errors
/// When a level is unknown or the file cannot be opened, as one line.
pub fn init(level: &str, file: Option<(&Path, &str)>) -> Result<(), String> {
    let console = tracing_subscriber::fmt::layer()
        .event_format(Format::Console)
        .with_writer(std::io::stderr)
        .with_filter(parse_level(level)?);
    let file = match file {
        None => None,
        Some((path, level)) => {
            let level = parse_level(level)?;
            let file = open(path).map_err(|e| format!("cannot open the log file {}: {e}", path.display()))?;
            let layer = tracing_subscriber::fmt::layer()
                .event_format(Format::File)
                .with_writer(std::sync::Mutex::new(file))
                .with_filter(level);
            Some(layer)
        }
    };
    let _ = tracing_subscriber::registry().with(console).with(file).try_init();
    Ok(())
}

/// What one of Salt's level names lets through.
///
/// # Errors
/// When there is no such level, as one line.
pub fn parse_level(name: &str) -> Result<LevelFilter, String> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "quiet" => LevelFilter::OFF,
        "critical" | "error" => LevelFilter::ERROR,
        "warning" => LevelFilter::WARN,
        "info" | "profile" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        "trace" | "garbage" | "all" => LevelFilter::TRACE,
        _ => {
            return Err(format!(
                "{name:?} is not a log level: use quiet, critical, error, warning, info, debug, trace or all"
            ));
        }
    })
}

fn open(path: &Path) -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

enum Format {
    Console,
    File,
}

impl<S, N> FormatEvent<S, N> for Format
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let meta = event.metadata();
        let level = match *meta.level() {
            Level::ERROR => "ERROR",
            Level::WARN => "WARNING",
            Level::INFO => "INFO",
            Level::DEBUG => "DEBUG",
            Level::TRACE => "TRACE",
        };
        match self {
            Self::Console => write!(out, "[{level:<8}] ")?,
            Self::File => {
                let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S,%3f").to_string();
                let (target, line, pid) = (meta.target(), meta.line().unwrap_or(0), std::process::id());
                write!(out, "{now} [{target:<17}:{line:<4}][{level:<8}][{pid}] ")?;
            }
        }
        let mut message = String::new();
        ctx.field_format().format_fields(Writer::new(&mut message), event)?;
        write_line(&mut out, &message)
    }
}

fn write_line(out: &mut Writer<'_>, message: &str) -> fmt::Result {
    for c in message.chars() {
        match c {
            '\n' => out.write_str("\\n")?,
            c if c.is_control() && c != '\t' => write!(out, "\\x{:02x}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_char('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_salts() {
        assert_eq!(parse_level("Warning"), Ok(LevelFilter::WARN));
        assert_eq!(parse_level("garbage"), Ok(LevelFilter::TRACE));
        assert_eq!(parse_level("quiet"), Ok(LevelFilter::OFF));
        assert!(parse_level("loud").unwrap_err().contains("loud"));
    }

    #[test]
    fn a_message_is_one_line() {
        let mut out = String::new();
        write_line(&mut Writer::new(&mut out), "a\nb\x1b[31m\tc").unwrap();
        assert_eq!(out, "a\\nb\\x1b[31m\tc\n");
    }
}
