//! `mod_aggregate`: states that install or remove packages are one where they may run together.

use brine_guest::Value;

const MERGED: [&str; 4] = ["installed", "latest", "removed", "purged"];

/// Packages with the versions, or sources, that are asked for. The same name may be there with different ones, which the
/// state then refuses.
type Wanted = Vec<(String, Value)>;

fn add(wanted: &mut Wanted, name: &str, version: Value) {
    let known = wanted.iter_mut().filter(|(known, _)| known == name);
    for (_, slot) in known {
        if *slot == version || version == Value::None {
            return;
        }
        if *slot == Value::None {
            *slot = version;
            return;
        }
    }
    wanted.push((name.into(), version));
}

/// Adds what a chunk asks for; false if it cannot be merged.
fn add_chunk(wanted: &mut Wanted, chunk: &Value, sources: bool) -> bool {
    match chunk.get(if sources { "sources" } else { "pkgs" }) {
        Some(Value::List(items)) => {
            for item in items {
                match item {
                    Value::Dict(entries) => {
                        entries.iter().for_each(|(name, version)| add(wanted, &name.to_text(), version.clone()))
                    }
                    name => add(wanted, &name.to_text(), Value::None),
                }
            }
            true
        }
        Some(_) => false,
        None if sources || chunk.get("sources").is_some() => false,
        None => match chunk.get("name") {
            Some(name) => {
                let version = chunk.get("version").filter(|version| version.truthy());
                add(wanted, &name.to_text(), version.cloned().unwrap_or_default());
                true
            }
            None => false,
        },
    }
}

fn set(chunk: &mut Value, key: &str, value: Option<Value>) {
    let Value::Dict(entries) = chunk else { return };
    entries.retain(|(known, _)| known.text() != Some(key));
    entries.extend(value.map(|value| (key.into(), value)));
}

/// Merges into `low` those of the other chunks that do the same in the same way. Returns `low` and all the others, marked
/// where they were merged.
pub(super) fn merge(mut low: Value, chunks: Vec<Value>) -> Vec<Value> {
    let same =
        |a: &Value, b: &Value, key: &str| a.get(key).unwrap_or(&Value::None) == b.get(key).unwrap_or(&Value::None);
    let known = low.get("fun").and_then(Value::text).is_some_and(|fun| MERGED.contains(&fun));
    let sources = low.get("sources").is_some();
    let mut wanted = Wanted::new();
    if !known || low.get("hold").is_some() || !add_chunk(&mut wanted, &low, sources) {
        return std::iter::once(low).chain(chunks).collect();
    }
    let mut merged = false;
    let mut others = Vec::new();
    for mut chunk in chunks {
        let is_one = chunk.get("state").and_then(Value::text) == Some("pkg")
            && chunk.get("__agg__").is_none()
            && chunk.get("hold").is_none()
            && same(&chunk, &low, "fun")
            && same(&chunk, &low, "fromrepo");
        if is_one && add_chunk(&mut wanted, &chunk, sources) {
            set(&mut chunk, "__agg__", Some(true.into()));
            merged = true;
        }
        others.push(chunk);
    }
    if merged {
        let one = |(name, version): (String, Value)| match version {
            Value::None => name.into(),
            version => Value::dict([(name.as_str(), version)]),
        };
        let list = Value::List(wanted.into_iter().map(one).collect());
        set(&mut low, "version", None);
        set(&mut low, if sources { "sources" } else { "pkgs" }, Some(list));
    }
    std::iter::once(low).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(entries: &[(&str, Value)]) -> Value {
        let pkg = [("state", Value::from("pkg")), ("fun", "installed".into())];
        Value::dict(pkg.iter().chain(entries).map(|(key, value)| (*key, value.clone())))
    }

    fn is_merged(chunk: &Value) -> bool {
        chunk.get("__agg__").is_some()
    }

    #[test]
    fn chunks_that_do_the_same_are_merged() {
        let low = chunk(&[("name", "a".into()), ("version", "1".into())]);
        let others = vec![
            chunk(&[("name", "b".into())]),
            chunk(&[("name", "x".into()), ("pkgs", vec!["c", "b"].into())]),
            chunk(&[("name", "d".into()), ("fromrepo", "sid".into())]),
            chunk(&[("name", "e".into()), ("hold", true.into())]),
            chunk(&[("name", "f".into()), ("sources", Value::List(Vec::new()))]),
            Value::dict([("state", "pkg".into()), ("fun", "removed".into()), ("name", "g".into())]),
        ];
        let merged = merge(low, others);
        let pkgs = Value::List(vec![Value::dict([("a", "1".into())]), "b".into(), "c".into()]);
        assert_eq!((merged[0].get("pkgs"), merged[0].get("version")), (Some(&pkgs), None));
        assert_eq!(merged[1..].iter().map(is_merged).collect::<Vec<_>>(), [true, true, false, false, false, false]);
    }

    #[test]
    fn a_chunk_alone_stays_as_it_is() {
        let low = chunk(&[("name", "a".into())]);
        assert_eq!(merge(low.clone(), Vec::new()), std::slice::from_ref(&low));
        let held = Value::dict([("state", "pkg".into()), ("fun", "held".into()), ("name", "a".into())]);
        assert_eq!(merge(held.clone(), vec![low.clone()]), [held, low]);
    }
}
