//! Logging of all programs: to stderr, and to a file if one is configured, in Salt's two formats.
//!
//! A message may contain a peer's text, so [`brine_protocol::text`] makes it one line in which all characters are
//! visible.

mod args;
mod syslog;

pub use args::{LogArgs, start_logging};
pub use syslog::is_url;

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::OFlags;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Context, Filter, Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use brine_protocol::trusted_path::{self, LastLink};
use syslog::Syslog;

/// Salt's message about a log service that does not answer. Then only the console has the log.
const NO_SERVICE: &str = "The log_file does not exist. Logging not setup correctly or syslog service not started.";

/// Starts logging. The level is one of [`LEVELS`]; the file has a level of its own. The file may be a log service
/// ([`is_url`]); a missing service causes a warning. Only the first call in a program has an effect.
///
/// # Errors
/// One line, when a level is unknown or the file cannot be opened.
pub fn init(level: &str, file: Option<(&Path, &str)>) -> Result<(), String> {
    CONSOLE.set(parse_level(level)?);
    let console = tracing_subscriber::fmt::layer()
        .event_format(Format::Console)
        .with_writer(std::io::stderr)
        .with_filter(&CONSOLE);
    let mut trouble = None;
    let file = match file {
        None => None,
        Some((path, level)) => {
            FILE.set(parse_level(level)?);
            let (target, format) = match path.to_str().filter(|_| is_url(path)) {
                None => (Target::File(path.to_owned(), open(path)?), Format::File),
                Some(url) => match Syslog::parse(url) {
                    Ok(mut syslog) => {
                        trouble = syslog.connect().err().map(|why| format!("{NO_SERVICE} ({url}: {why})"));
                        (Target::Service(syslog), Format::Service(program()))
                    }
                    Err(why) => {
                        trouble = Some(why);
                        (Target::None, Format::File)
                    }
                },
            };
            *lock(&LOG_FILE) = target;
            let layer = tracing_subscriber::fmt::layer().event_format(format).with_writer(LogFiles).with_filter(&FILE);
            Some(layer)
        }
    };
    let _ = tracing_subscriber::registry().with(console).with(file).try_init();
    if let Some(why) = trouble {
        tracing::warn!("{why}");
    }
    Ok(())
}

/// Changes the log levels.
pub fn set_levels(console: LevelFilter, file: LevelFilter) {
    CONSOLE.set(console);
    FILE.set(file);
    tracing::callsite::rebuild_interest_cache();
}

/// Opens the log file again, if there is one, because a log rotation renames the open file.
///
/// # Errors
/// One line, when the file cannot be opened; the open one stays in use.
pub fn reopen() -> Result<(), String> {
    if let Target::File(path, file) = &mut *lock(&LOG_FILE) {
        *file = open(path)?;
    }
    Ok(())
}

static CONSOLE: CurrentLevel = CurrentLevel::new();
static FILE: CurrentLevel = CurrentLevel::new();
/// The log besides the console.
static LOG_FILE: Mutex<Target> = Mutex::new(Target::None);

#[derive(Debug)]
enum Target {
    None,
    File(PathBuf, File),
    Service(Syslog),
}

/// The name of this program's lines in the service's log.
fn program() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    path.as_deref()
        .and_then(Path::file_name)
        .map_or_else(|| "salt".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A log level that can change at run time.
struct CurrentLevel(AtomicU8);

const ORDER: [LevelFilter; 6] = [
    LevelFilter::OFF,
    LevelFilter::ERROR,
    LevelFilter::WARN,
    LevelFilter::INFO,
    LevelFilter::DEBUG,
    LevelFilter::TRACE,
];

impl CurrentLevel {
    const fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    fn set(&self, level: LevelFilter) {
        let at = ORDER.iter().position(|known| *known == level).and_then(|at| u8::try_from(at).ok());
        self.0.store(at.unwrap_or_default(), Ordering::Relaxed);
    }

    fn get(&self) -> LevelFilter {
        ORDER.get(usize::from(self.0.load(Ordering::Relaxed))).copied().unwrap_or(LevelFilter::OFF)
    }
}

impl<S> Filter<S> for &'static CurrentLevel {
    fn enabled(&self, meta: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        *meta.level() <= self.get()
    }

    // tracing calls this again when the level changes.
    fn callsite_enabled(&self, meta: &'static Metadata<'static>) -> Interest {
        if *meta.level() <= self.get() { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.get())
    }
}

/// Writes to the open log file, or to the service.
struct LogFile(Level);

/// Makes a writer for an event, whose level the service receives.
struct LogFiles;

impl MakeWriter<'_> for LogFiles {
    type Writer = LogFile;

    fn make_writer(&self) -> LogFile {
        LogFile(Level::INFO)
    }

    fn make_writer_for(&self, meta: &Metadata<'_>) -> LogFile {
        LogFile(*meta.level())
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        match &mut *lock(&LOG_FILE) {
            Target::File(_, file) => file.write(line),
            Target::Service(syslog) => {
                syslog.send(self.0, line.strip_suffix(b"\n").unwrap_or(line));
                Ok(line.len())
            }
            Target::None => Ok(line.len()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(()) // a file has no buffer here
    }
}

/// Salt's names of log levels.
pub const LEVELS: [&str; 10] =
    ["all", "garbage", "trace", "debug", "profile", "info", "warning", "error", "critical", "quiet"];

/// The levels that one of Salt's level names includes.
///
/// # Errors
/// One line, when there is no such level.
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

fn open(path: &Path) -> Result<File, String> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    let user = rustix::process::geteuid().as_raw();
    trusted_path::open_file(path, flags, 0o640, user, LastLink::Followed)
        .map_err(|e| format!("cannot open the log file {}: {e}", path.display()))
}

enum Format {
    Console,
    File,
    /// The format for the service, which adds the time; with the program's name.
    Service(String),
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
            Self::Service(program) => write!(out, "{program}[{}]: [{level:<8}] ", std::process::id())?,
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
    writeln!(out, "{}", brine_protocol::text::line(message))
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
        write_line(&mut Writer::new(&mut out), "a\nb\x1b[31m\tc\u{202e}\u{200b}").unwrap();
        assert_eq!(out, "a\\nb\\x1b[31m\\tc\\u202e\\u200b\n");
    }
}
