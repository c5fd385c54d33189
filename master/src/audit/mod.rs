//! The audit log: calls, publications and log-ins, allowed or refused, as one line of JSON each (`audit_log`;
//! docs/access.md has the fields).
//!
//! - `file.rs` the file: appending, reopening, and incomplete writes
//! - `hide.rs` removes secrets from arguments

mod file;
mod hide;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::config::settings;
use brine_protocol::options;
use brine_protocol::value::{Value, ValueExt, map, to_json};
use tokio_util::sync::CancellationToken;

use crate::access::Principal;
use crate::bus::{Bus, Next};
use file::AuditFile;

/// Bound on the bytes of the arguments in one line. Longer ones are cut.
const ARGS_BYTES_MAX: usize = 4_096;
/// Bound on the characters of any other text from a request.
const TEXT_MAX: usize = 1_024;
/// Lines about strangers at once, and the time until one more fits, so that strangers cannot fill the disk.
const STRANGERS_AT_ONCE: u32 = 200;
const STRANGER_EACH: Duration = Duration::from_millis(500);
/// The event of a change of a node's key, by `salt-key --nodes`.
const NODE_KEY: &str = "brine/node/key";
/// Interval between reports of a full disk, in the log and on the bus.
const TELL_EVERY: Duration = Duration::from_secs(10);

options! {
    /// The settings; all are Brine's own.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct AuditOpts from c {
        /// `audit_log`: the file; `None`: no audit log.
        pub(crate) path: Option<PathBuf> = c.find(settings::AUDIT_LOG)?,
        /// `audit_log_required`: an action is refused if its line cannot be written.
        pub(crate) required: bool = c.get(settings::AUDIT_LOG_REQUIRED)?,
        /// `audit_log_hide`: globs of further functions whose arguments are hidden.
        pub(crate) hide: Vec<String> = c.get(settings::AUDIT_LOG_HIDE)?,
    }
}

/// The audit log. Without `audit_log` it does nothing.
pub(crate) struct Audit {
    state: Option<Mutex<State>>,
    opts: AuditOpts,
    bus: Bus,
}

struct State {
    file: AuditFile,
    /// Lines that could not be written since the last successful write.
    lost: u64,
    told: Option<Instant>,
    /// Remaining lines about strangers at a point in time, and the number of lines left out since the last one.
    room: (Instant, u32),
    untold: u64,
}

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct AuditLine {
    fields: Vec<(&'static str, Value)>,
    /// The function and its arguments, formatted only if there is a log.
    call: Option<(String, Vec<Value>)>,
}

impl AuditLine {
    /// Makes the line of an action and its outcome.
    pub(crate) fn new(action: &'static str, outcome: &'static str) -> Self {
        Self { fields: vec![("action", action.into()), ("outcome", outcome.into())], call: None }
    }

    /// Adds the caller's name, proof and address.
    pub(crate) fn by(self, principal: &Principal) -> Self {
        let address = principal.address().map(|address| address.to_string());
        self.whose(principal.name(), principal.method(), address.unwrap_or_default())
    }

    /// Adds a name that is not proved, or the name of a rule.
    pub(crate) fn whose(self, user: &str, method: &str, address: impl Into<String>) -> Self {
        self.put("user", user).put("method", method).put("address", address.into())
    }

    /// Adds a function and its arguments.
    pub(crate) fn call(mut self, fun: impl Into<String>, args: &[Value]) -> Self {
        self.call = Some((fun.into(), args.to_vec()));
        self
    }

    /// Adds a field. Long texts are cut, and empty ones are left out.
    pub(crate) fn put(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        let value = match value.into() {
            Value::Nil => return self,
            value => match value.text() {
                Some("") => return self,
                Some(text) if text.len() > TEXT_MAX => Value::from(text.chars().take(TEXT_MAX).collect::<String>()),
                _ => value,
            },
        };
        self.fields.push((name, value));
        self
    }

    fn line(self, hidden: &[String]) -> String {
        let mut line = map([("time", brine_protocol::event::stamp())]);
        for (name, value) in self.fields {
            line.insert(name, value);
        }
        if let Some((fun, args)) = self.call {
            let args = hide::args(&fun, &args, hidden);
            line.insert("fun", fun.chars().take(TEXT_MAX).collect::<String>());
            let text = to_json(&args).to_string();
            if text.len() <= ARGS_BYTES_MAX {
                line.insert("args", args);
            } else {
                line.insert("args_cut", text[..text.floor_char_boundary(ARGS_BYTES_MAX)].to_owned());
            }
        }
        format!("{}\n", brine_protocol::text::json(&to_json(&line).to_string()))
    }
}

impl Audit {
    /// Opens the log, if one is configured.
    pub(crate) fn open(opts: AuditOpts, bus: Bus) -> std::io::Result<Self> {
        let state = match &opts.path {
            None => None,
            Some(path) => Some(Mutex::new(State {
                file: AuditFile::open(path)?,
                lost: 0,
                told: None,
                room: (Instant::now(), STRANGERS_AT_ONCE),
                untold: 0,
            })),
        };
        Ok(Self { state, opts, bus })
    }

    /// Opens the file again, after log rotation. Without this call the change is noticed within a second at the next
    /// write.
    pub(crate) fn reopen(&self) -> std::io::Result<()> {
        self.lock().map_or(Ok(()), |mut state| state.file.reopen())
    }

    /// Writes a line. Returns an error if that failed and `audit_log_required` is set.
    pub(crate) fn write(&self, record: AuditLine) -> Result<(), &'static str> {
        match self.lock() {
            Some(mut state) => self.append(&mut state, record),
            None => Ok(()),
        }
    }

    /// Writes a line about an action that is already done.
    pub(crate) fn note(&self, record: AuditLine) {
        // `append` reports the failure, and the action cannot be prevented any more.
        let _ = self.write(record);
    }

    /// Writes a line about a stranger, unless there were too many such lines lately.
    pub(crate) fn stranger(&self, record: AuditLine) {
        let Some(mut state) = self.lock() else { return };
        let (at, room) = state.room;
        let gained = u32::try_from(at.elapsed().as_millis() / STRANGER_EACH.as_millis()).unwrap_or(u32::MAX);
        let now = if gained > 0 { Instant::now() } else { at };
        let room = room.saturating_add(gained).min(STRANGERS_AT_ONCE);
        state.room = (now, room.saturating_sub(1));
        if room == 0 {
            state.untold += 1;
            return;
        }
        let untold = std::mem::take(&mut state.untold);
        let record = if untold > 0 { record.put("untold", untold) } else { record };
        let _ = self.append(&mut state, record);
    }

    fn append(&self, state: &mut State, record: AuditLine) -> Result<(), &'static str> {
        let mut lines = String::new();
        if state.lost > 0 {
            lines = AuditLine::new("audit", "lost").put("lost", state.lost).line(&[]);
        }
        lines.push_str(&record.line(&self.opts.hide));
        let Err(error) = state.file.append(lines.as_bytes()) else {
            if state.lost > 0 {
                tracing::warn!("the audit log is written again; {} lines were lost", state.lost);
            }
            (state.lost, state.told) = (0, None);
            return Ok(());
        };
        state.lost += 1;
        if state.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            state.told = Some(Instant::now());
            let policy = match self.opts.required {
                true => "what it should have is refused until then (audit_log_required)",
                false => "the master goes on without (audit_log_required is off)",
            };
            let path = state.file.path().display().to_string();
            tracing::error!("the audit log {path} cannot be written: {error}. Make room or mend it; {policy}");
            let data = map([
                ("path", Value::from(path)),
                ("error", error.to_string().into()),
                ("lost", state.lost.into()),
                ("refusing", self.opts.required.into()),
            ]);
            self.bus.fire("brine/audit/lost", data);
        }
        if self.opts.required { Err("The audit log cannot be written, and audit_log_required is set.") } else { Ok(()) }
    }

    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        self.state.as_ref().map(|state| state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes a line for each key that was moved or removed, until `stop`: by the wheel, or by `salt-key`, which changes
/// the folders itself and reports over the bus's socket that only the master's user can open.
pub(crate) async fn watch_keys(audit: Arc<Audit>, stop: CancellationToken) {
    if audit.state.is_none() {
        return;
    }
    let Some(events) = audit.bus.subscribe() else { return };
    loop {
        let next = tokio::select! {
            () = stop.cancelled() => return,
            next = events.next() => next,
        };
        match next {
            None => return,
            Some(Next::Lost(lost)) => audit.note(AuditLine::new("key", "lost").put("lost", lost)),
            Some(Next::Event(event))
                if ["salt/key", NODE_KEY].contains(&event.event.tag.as_str()) && !event.by.is_foreign() =>
            {
                let action = if event.event.tag == NODE_KEY { "node_key" } else { "key" };
                let by = if event.by.is_root() { "salt-key" } else { "master" };
                let data = &event.event.data;
                let field = |name: &str| data.get(name).cloned().unwrap_or(Value::Nil);
                let outcome = if field("result").truthy() { "succeeded" } else { "failed" };
                audit.note(
                    AuditLine::new(action, outcome)
                        .put("method", by)
                        .put("address", "local")
                        .put("act", field("act"))
                        .put("id", field("id")),
                );
            }
            Some(Next::Event(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests;
