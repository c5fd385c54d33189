//! `retry`: a state is called again until its result is the one that is waited for.

use brine_render::{Dict, Value};

use super::result;
use crate::limits::Limits;
use crate::python;

/// What `retry` says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Retry {
    pub(super) until: bool,
    pub(super) attempts: u64,
    interval: i128,
    pub(super) splay: u64,
    /// Upper bound on the seconds of one interval.
    longest: u64,
}

impl Retry {
    /// Reads `retry`; what is wrong in it has its default.
    pub(super) fn new(value: &Value, limits: &Limits) -> Self {
        let mut retry = Self { until: true, attempts: 2, interval: 30, splay: 0, longest: limits.interval };
        let number = |value: Option<Value>| match value {
            Some(Value::Int(n)) => Some(n),
            Some(Value::Bool(b)) => Some(i128::from(b)),
            _ => None,
        };
        let positive = |n: i128| u64::try_from(n.max(0)).unwrap_or(u64::MAX);
        match value {
            Value::Dict(dict) => {
                if let Some(Value::Bool(until)) = dict.get("until") {
                    retry.until = until;
                }
                retry.attempts = number(dict.get("attempts")).map_or(2, positive);
                retry.interval = number(dict.get("interval")).unwrap_or(30);
                retry.splay = number(dict.get("splay")).map_or(0, positive);
            }
            Value::Bool(false) => retry.attempts = 0,
            _ => {}
        }
        retry.attempts = retry.attempts.min(limits.attempts);
        retry.splay = retry.splay.min(limits.interval);
        retry
    }

    /// Whether a result is the one that is waited for.
    pub(super) fn is_met(&self, result: &Dict) -> bool {
        result.get("result") == Some(self.until.into())
    }

    /// Seconds until the next attempt.
    pub(super) fn interval(&self) -> u64 {
        u64::try_from(self.interval.max(0)).unwrap_or(u64::MAX).min(self.longest)
    }

    /// Seconds that an attempt of so many milliseconds and the wait after it take at most.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
    pub(super) fn wait(&self, milliseconds: f64) -> u64 {
        let took = (milliseconds / 1000.0) as u64;
        took.saturating_add(self.interval()).saturating_add(self.splay)
    }

    #[expect(clippy::cast_precision_loss, reason = "bounded")]
    pub(super) fn interval_milliseconds(&self) -> f64 {
        self.interval() as f64 * 1000.0
    }

    /// What a dry run says of it.
    pub(super) fn would_be(&self) -> String {
        let until = if self.until { "True" } else { "False" };
        format!(
            "The state would be retried every {} seconds (with a splay of up to {} seconds) a maximum of {} times or \
             until a result of {until} is returned",
            self.interval, self.splay, self.attempts
        )
    }

    /// What is said where a run has waited so many seconds, and waits no more.
    pub(super) fn given_up(patience: u64) -> String {
        format!("It is not tried again: the retries of a run take {patience} seconds, in all")
    }

    /// What is said of an attempt.
    pub(super) fn attempt(number: u64, result: &Dict) -> String {
        format!(
            "Attempt {number}: Returned a result of \"{}\", with the following comment: \"{}\"",
            python::name(&result.get("result").unwrap_or_default()),
            result::comment(result)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_has_its_default_and_a_million_is_cut() {
        let limits = Limits { attempts: 100, ..Limits::default() };
        let read = |entries: &[(&str, Value)]| {
            Retry::new(&Value::dict(entries.iter().map(|(name, value)| ((*name).into(), value.clone()))), &limits)
        };
        let default = Retry::new(&true.into(), &limits);
        assert_eq!((default.until, default.attempts, default.interval(), default.splay), (true, 2, 30, 0));
        assert_eq!(Retry::new(&"x".into(), &limits), default);
        assert_eq!(read(&[("attempts", "5".into()), ("until", 1.into()), ("interval", Value::None)]), default);
        assert_eq!(Retry::new(&false.into(), &limits).attempts, 0);
        assert_eq!(read(&[("attempts", 1_000_000.into())]).attempts, 100);
        assert_eq!(read(&[("interval", i128::MAX.into())]).interval(), limits.interval);
    }
}
