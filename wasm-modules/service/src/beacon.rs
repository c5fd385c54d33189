//! The beacon `service`: whether services run, at each look or when that changes.

use brine_guest::beacons::{self, Reading};
use brine_guest::host::changes;
use brine_guest::{Data, Value};

use crate::Module;
use crate::backend::Backend;
use crate::exports::beacons::Guest;
use crate::wasi::clocks::wall_clock;

impl Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        beacons::judge("service", &config, judge)
    }

    fn beacon(config: Data, state: Option<Vec<u8>>) -> Result<Reading, String> {
        let config = beacons::merged("service", &config)?;
        let now = wall_clock::now();
        let mut last = Last::read(beacons::kept(state)?);
        let mut events = Vec::new();
        let Some(Value::Dict(services)) = config.get("services") else { return Ok(Reading::events(events)) };
        let backend = Backend::of_host()?;
        for (service, wanted) in services {
            let service = service.to_text();
            let mut told = vec![(Value::from("running"), backend.status(&service, None)?)];
            let running = told[0].1.clone();
            if let Some(file) = wanted.get("uncleanshutdown")
                && !running.truthy()
            {
                let left = changes::look(&file.to_text(), true, false)?.is_some();
                told.push(("uncleanshutdown".into(), Value::Bool(left)));
            }
            if let Some(only @ Value::Bool(_)) = wanted.get("is_running_state")
                && *only != running
            {
                continue;
            }
            if last.tells(&service, wanted, &running, now.seconds) {
                events.push(Value::Dict(vec![
                    (service.as_str().into(), Value::Dict(told)),
                    ("service_name".into(), service.as_str().into()),
                    ("tag".into(), service.into()),
                ]));
            }
        }
        Ok(Reading::keeping(events, last.value()))
    }
}

/// Salt's words for what is wrong.
fn judge(config: &Value) -> Result<(), String> {
    match config.get("services") {
        None => Err("Configuration for service beacon requires services.".into()),
        Some(Value::Dict(services)) => match services.iter().all(|(_, wanted)| matches!(wanted, Value::Dict(_))) {
            true => Ok(()),
            false => Err("Configuration for service beacon must be a list of dictionaries.".into()),
        },
        Some(_) => Err("Services configuration item for service beacon must be a dictionary.".into()),
    }
}

/// What was seen last of the services with `onchangeonly`: whether each runs, and since when a change waits for its delay.
struct Last(Vec<(String, Value, Option<u64>)>);

impl Last {
    fn read(value: Option<Value>) -> Self {
        let Some(Value::List(items)) = value else { return Self(Vec::new()) };
        let one = |item: Value| {
            let Value::List(parts) = item else { return None };
            let [name, running, since] = <[Value; 3]>::try_from(parts).ok()?;
            let since = if let Value::Int(since) = since { u64::try_from(since).ok() } else { None };
            Some((name.to_text(), running, since))
        };
        Self(items.into_iter().filter_map(one).collect())
    }

    fn value(self) -> Value {
        let one = |(name, running, since): (String, Value, Option<u64>)| {
            Value::List(vec![name.into(), running, since.map_or(Value::None, Value::from)])
        };
        Value::List(self.0.into_iter().map(one).collect())
    }

    /// Whether a service is told now.
    fn tells(&mut self, service: &str, wanted: &Value, running: &Value, now: u64) -> bool {
        if wanted.get("onchangeonly") != Some(&Value::Bool(true)) {
            return true;
        }
        let at_start = wanted.get("emitatstartup").is_none_or(Value::truthy);
        let delay = wanted.get("delay").map_or(0.0, |delay| beacons::float(delay).unwrap_or_default());
        let known = self.0.iter_mut().find(|(name, ..)| name == service);
        let (changed, known) = match known {
            Some(known) => {
                let changed = known.1 != *running;
                known.1 = running.clone();
                (changed, known)
            }
            None => {
                self.0.push((service.to_owned(), running.clone(), None));
                if !at_start {
                    return false;
                }
                (true, self.0.last_mut().expect("just added"))
            }
        };
        if changed && delay <= 0.0 {
            known.2 = None;
            return true;
        }
        if changed {
            known.2 = Some(now);
        }
        match known.2 {
            Some(since) if now.saturating_sub(since) as f64 > delay => {
                known.2 = None;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tells(wanted: &Value, looks: &[(bool, u64)]) -> Vec<bool> {
        let mut kept = None;
        let mut all = Vec::new();
        for (running, now) in looks {
            let mut last = Last::read(kept);
            all.push(last.tells("ssh", wanted, &Value::Bool(*running), *now));
            kept = Some(last.value());
        }
        all
    }

    #[test]
    fn changes_are_told_at_once_or_after_a_delay() {
        let wanted = |delay: i64, at_start: bool| {
            Value::dict([("onchangeonly", true.into()), ("delay", delay.into()), ("emitatstartup", at_start.into())])
        };
        let looks = [(true, 0), (true, 1), (false, 2), (false, 3), (true, 4)];
        assert_eq!(tells(&Value::dict([]), &looks), [true; 5]);
        assert_eq!(tells(&wanted(0, true), &looks), [true, false, true, false, true]);
        assert_eq!(tells(&wanted(0, false), &looks), [false, false, true, false, true]);
        let looks = [(true, 0), (false, 10), (false, 12), (false, 13), (false, 14)];
        assert_eq!(tells(&wanted(2, false), &looks), [false, false, false, true, false]);
        assert_eq!(tells(&wanted(2, true), &[(true, 0), (true, 2), (true, 3)]), [false, false, true]);
    }

    #[test]
    fn configurations_are_judged_in_salts_words() {
        let services = |wanted: Value| Value::dict([("services", Value::dict([("ssh", wanted)]))]);
        assert_eq!(judge(&services(Value::dict([]))), Ok(()));
        let why = "Configuration for service beacon must be a list of dictionaries.";
        assert_eq!(judge(&services(Value::None)).unwrap_err(), why);
        let why = "Configuration for service beacon requires services.";
        assert_eq!(judge(&Value::dict([])).unwrap_err(), why);
        let why = "Services configuration item for service beacon must be a dictionary.";
        assert_eq!(judge(&Value::dict([("services", Value::List(vec![]))])).unwrap_err(), why);
    }
}
