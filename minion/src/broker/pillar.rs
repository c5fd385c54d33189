//! `brine:host/pillar`: the granted keys of the pillar with everything below them.

use std::borrow::Cow;

use brine_protocol::msgpack::Limits;
use brine_protocol::value::{Value, ValueExt, empty_map};
use brine_sandbox::{Caller, Capability, HostError, Names, PillarOp};

use super::events::decode;
use super::{MinionBroker, Perform, checked_key};
use crate::pillar::Wanted;

/// Bounds on the values that a job has merged over the pillar.
const OVERRIDES: Limits = Limits { max_bytes: 1 << 20, max_depth: 64, max_items: 100_000 };

impl Perform<PillarOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: PillarOp) -> Result<Value, HostError> {
        let granted = caller.grants.names(Capability::Pillar);
        let config = &self.opts.config;
        let wanted = match op {
            PillarOp::Fetch => Wanted::for_job(config, None, None, None),
            PillarOp::Compile { pillarenv, saltenv, overrides } => {
                let overrides = overrides.map(|overrides| decode(&overrides, &OVERRIDES)).transpose()?;
                if overrides.as_ref().is_some_and(|overrides| overrides.entries().is_none()) {
                    return Err(HostError::Failed("values for the pillar are a dict".to_owned()));
                }
                Wanted::for_job(config, pillarenv, saltenv, overrides)
            }
            op => {
                return match self.runs.pillar(&caller.job) {
                    Some(of_run) => look(&of_run, granted, op),
                    None => look(&self.pillar.now(), granted, op),
                };
            }
        };
        let fresh = self.refresh.pillar_for_job(wanted).await.map_err(|e| HostError::Failed(e.to_string()))?;
        Ok(visible(&fresh, granted).into_owned())
    }
}

/// Performs an operation on a pillar.
fn look(pillar: &Value, granted: &Names, op: PillarOp) -> Result<Value, HostError> {
    match op {
        PillarOp::Items | PillarOp::Fetch | PillarOp::Compile { .. } => Ok(visible(pillar, granted).into_owned()),
        PillarOp::Get { key, delimiter } => {
            let delimiter = checked_key(delimiter.as_deref().unwrap_or(":"))?;
            let key = checked_key(&key)?;
            // The look-up runs on the visible part only, so no key can lead to a value that was not granted.
            let found = crate::grains::lookup(&visible(pillar, granted), key, delimiter);
            Ok(found.unwrap_or(Value::Nil))
        }
    }
}

/// Returns the granted part of the pillar. A granted name is a key, or a path of keys joined by `:` that leads through
/// dicts.
fn visible<'a>(pillar: &'a Value, granted: &Names) -> Cow<'a, Value> {
    let Names::Only(names) = granted else { return Cow::Borrowed(pillar) };
    let mut out = empty_map();
    for name in names {
        let parts: Vec<&str> = name.split(':').collect();
        for path in [&[name.as_str()][..], &parts] {
            if let Some(found) = step_down(pillar, path) {
                put(&mut out, path, found);
                break;
            }
        }
    }
    Cow::Owned(out)
}

fn step_down<'a>(pillar: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(pillar, |at, key| at.entries().and_then(|_| at.get(key)))
}

fn put(out: &mut Value, path: &[&str], value: &Value) {
    match path {
        [] => {}
        [key] => out.insert(key, value.clone()),
        [key, rest @ ..] => {
            if out.get(key).is_none_or(|there| there.entries().is_none()) {
                out.insert(key, empty_map());
            }
            if let Some(below) = out.get_mut(key) {
                put(below, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{list, map, text};

    fn pillar() -> Value {
        map([
            ("deploy", map([("token", text("t")), ("hosts", list([text("a"), text("b")]))])),
            ("db", map([("user", text("u")), ("password", text("secret"))])),
            ("x:y", text("odd")),
            ("x", map([("y", text("nested")), ("z", text("secret"))])),
            ("other", text("secret")),
        ])
    }

    fn only(names: &[&str]) -> Names {
        Names::Only(names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_was_granted_is_all_there_is() {
        let granted = only(&["deploy", "db:user", "absent", "absent:too", "deploy:token", ""]);
        let all = look(&pillar(), &granted, PillarOp::Items).unwrap();
        let expected = map([("deploy", pillar().get("deploy").unwrap().clone()), ("db", map([("user", text("u"))]))]);
        assert_eq!(all, expected);
        let get = |key: &str, delimiter: Option<&str>| {
            let op = PillarOp::Get { key: key.to_owned(), delimiter: delimiter.map(str::to_owned) };
            look(&pillar(), &granted, op).unwrap()
        };
        assert_eq!(get("deploy:hosts:1", None), text("b"));
        assert_eq!(get("deploy/token", Some("/")), text("t"));
        assert_eq!(get("db", None), map([("user", text("u"))]));
        for key in ["db:password", "other", "x", "x:z", "x:y", "", ":", "db::password", "absent"] {
            assert!(!get(key, None).to_string().contains("secret"), "{key}");
        }
        for delimiter in ["/", "b", "", ":p"] {
            let shown = get(&format!("db{delimiter}password"), Some(delimiter)).to_string();
            assert!(!shown.contains("secret"), "{delimiter}");
        }
        assert_eq!(look(&pillar(), &only(&[]), PillarOp::Items).unwrap(), empty_map());
        assert_eq!(look(&pillar(), &Names::Any, PillarOp::Items).unwrap(), pillar());
    }

    /// A key may contain the delimiter, and a granted name does not match as a prefix of text.
    #[test]
    fn names_are_keys_and_not_prefixes() {
        assert_eq!(look(&pillar(), &only(&["x:y"]), PillarOp::Items).unwrap(), map([("x:y", text("odd"))]));
        assert_eq!(look(&pillar(), &only(&["d", "deplo", "other:"]), PillarOp::Items).unwrap(), empty_map());
        let long = "x".repeat(super::super::MAX_KEY_BYTES + 1);
        assert!(look(&pillar(), &Names::Any, PillarOp::Get { key: long, delimiter: None }).is_err());
    }
}
