//! Jinja's filters on lists and dicts.

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed, check, hashed};
use super::super::methods::list::sort_by;
use super::super::object::{Group, Iter, Undefined, cast, object};
use super::super::{attribute, ops, tests};
use crate::value::{Dict, Value};

pub(super) const NAMES: [&str; 25] = [
    "length",
    "count",
    "first",
    "last",
    "join",
    "list",
    "sort",
    "reverse",
    "unique",
    "map",
    "select",
    "reject",
    "selectattr",
    "rejectattr",
    "sum",
    "min",
    "max",
    "dictsort",
    "items",
    "attr",
    "batch",
    "slice",
    "groupby",
    "sequence",
    "zip",
];

fn folded(value: Value, sensitive: bool) -> Value {
    match &value {
        Value::Str(text) if !sensitive => Value::from(text.to_lowercase()),
        _ => value,
    }
}

/// A value, or the attribute of it that the filter was told.
fn part(interp: &mut Interp, item: &Value, path: Option<&Value>) -> Res<Value> {
    match path {
        None | Some(Value::None) => Ok(item.clone()),
        Some(path) => attribute::get_path(interp, item, path, None),
    }
}

pub(super) fn apply(interp: &mut Interp, name: &str, value: &Value, mut passed: Passed) -> Res<Value> {
    let flag = |passed: &Passed, at, name| passed.get(at, name).is_some_and(|v| v.truthy());
    match name {
        "length" | "count" => return ops::length(value).map(|n| Value::from(n as u64)),
        "attr" => {
            let key = passed.need(0, "name", "do_attr")?;
            let key = interp.text(&key)?;
            return attribute::get_attribute(interp, value, &key);
        }
        "sequence" => {
            let is = matches!(value, Value::List(_) | Value::Tuple(_) | Value::Set(_) | Value::Dict(_));
            return Ok(if is { value.clone() } else { Value::list([value.clone()]) });
        }
        "items" => {
            if cast::<Undefined>(value).is_some() {
                return Ok(Iter::generator(Vec::new()));
            }
            let Value::Dict(dict) = value else {
                return Err(JinjaError::python("Can only get item pairs from a mapping."));
            };
            let pairs = dict.borrow().iter().map(|(k, v)| Value::tuple([k.value().clone(), v.clone()])).collect();
            return Ok(Iter::generator(pairs));
        }
        "reverse" if matches!(value, Value::Str(_)) => {
            return Ok(value.as_str().unwrap_or_default().chars().rev().collect::<String>().into());
        }
        "dictsort" => return dictsort(interp, value, &passed),
        "select" | "reject" | "selectattr" | "rejectattr" | "map" if matches!(value, Value::None) => {
            return Ok(Iter::generator(Vec::new()));
        }
        "select" | "reject" | "selectattr" | "rejectattr" => return select(interp, name, value, passed),
        "map" => return map(interp, value, passed),
        _ => {}
    }
    let mut items = ops::iterate(interp, value).map_err(|error| match name {
        _ if !error.message.ends_with("is not iterable") => error,
        "last" => JinjaError::python(format!("'{}' object is not reversible", value.type_name())),
        "reverse" => JinjaError::template("argument must be iterable"),
        _ => error,
    })?;
    interp.charge_values(items.len())?;
    Ok(match name {
        "list" => Value::list(items),
        "first" if items.is_empty() => Undefined::value("No first item, sequence was empty."),
        "first" => items.swap_remove(0),
        "last" => items.pop().unwrap_or_else(|| Undefined::value("No last item, sequence was empty.")),
        "reverse" => {
            items.reverse();
            Iter::generator(items)
        }
        "join" => {
            let separator = passed.get(0, "d").unwrap_or_else(|| Value::str(""));
            let separator = interp.text(&separator)?;
            let path = passed.get(1, "attribute");
            let mut out = String::new();
            for (at, item) in items.iter().enumerate() {
                let item = part(interp, item, path.as_ref())?;
                let text = interp.text(&item)?;
                interp.charge(text.len() + separator.len())?;
                out.push_str(if at > 0 { &separator } else { "" });
                out.push_str(&text);
            }
            out.into()
        }
        "sort" => {
            passed.at_most(&["reverse", "case_sensitive", "attribute"], "do_sort")?;
            let sensitive = flag(&passed, 1, "case_sensitive");
            let path = passed.get(2, "attribute");
            let mut keys = Vec::new();
            for item in &items {
                keys.push(match path.as_ref().and_then(Value::as_str).filter(|p| p.contains(',')) {
                    Some(paths) => {
                        let all =
                            paths.split(',').map(|p| part(interp, item, Some(&p.into())).map(|v| folded(v, sensitive)));
                        Value::list(all.collect::<Res<Vec<_>>>()?)
                    }
                    None => folded(part(interp, item, path.as_ref())?, sensitive),
                });
            }
            Value::list(sort_by(interp, &items, &keys, flag(&passed, 0, "reverse"))?)
        }
        "min" | "max" => {
            // Salt's own, in place of Jinja's
            let mut best: Option<Value> = None;
            let symbol = if name == "min" { "<" } else { ">" };
            for item in items {
                let better = match &best {
                    None => true,
                    Some(best) => {
                        let order = ops::order(interp, &item, best, symbol, 0)?;
                        order
                            == Some(if name == "min" { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater })
                    }
                };
                if better {
                    best = Some(item);
                }
            }
            return best.ok_or_else(|| JinjaError::python(format!("{name}() arg is an empty sequence")));
        }
        "sum" => {
            let mut total = passed.get(1, "start").unwrap_or(Value::Int(0));
            let path = passed.get(0, "attribute");
            for item in &items {
                let item = part(interp, item, path.as_ref())?;
                total = ops::binary(interp, super::super::ast::Operator::Add, &total, &item)?;
            }
            total
        }
        "unique" => {
            let hashable = matches!(value, Value::Str(_) | Value::Tuple(_));
            let mut kept: Vec<Value> = Vec::new();
            for item in items {
                if !ops::contains(interp, &Value::list(kept.iter().cloned()), &item)? {
                    kept.push(item);
                }
            }
            if hashable { Value::Set(ops::set_of(kept)?) } else { Value::list(kept) }
        }
        "batch" | "slice" => {
            let count = passed.get(0, "linecount").or(passed.named("slices").cloned()).as_ref().and_then(ops::integer);
            let count = count.and_then(|n| usize::try_from(n).ok()).filter(|n| (1..100_000).contains(n));
            let Some(count) = count else { return Err(JinjaError::python("a count of 1 or more is needed")) };
            let fill = passed.get(1, "fill_with").filter(|v| !matches!(v, Value::None));
            let mut rows: Vec<Vec<Value>> = Vec::new();
            if name == "batch" {
                rows = items.chunks(count).map(<[Value]>::to_vec).collect();
                if let (Some(fill), Some(last)) = (fill, rows.last_mut()) {
                    last.resize(count, fill);
                }
            } else {
                let (per, extra) = (items.len() / count, items.len() % count);
                let mut rest = items.into_iter();
                for at in 0..count {
                    let mut row: Vec<Value> = rest.by_ref().take(per + usize::from(at < extra)).collect();
                    if let Some(fill) = fill.as_ref().filter(|_| at >= extra && extra > 0) {
                        row.push(fill.clone());
                    }
                    rows.push(row);
                }
            }
            Iter::generator(rows.into_iter().map(Value::list).collect())
        }
        "groupby" => {
            let path = passed.need(0, "attribute", "do_groupby")?;
            let default = passed.get(1, "default").filter(|default| !matches!(default, Value::None));
            let sensitive = flag(&passed, 2, "case_sensitive");
            let (mut shown, mut keys) = (Vec::new(), Vec::new());
            for item in &items {
                let key = attribute::get_path(interp, item, &path, default.as_ref())?;
                keys.push(folded(key.clone(), sensitive));
                shown.push(key);
            }
            let places: Vec<Value> = (0..items.len()).map(|n| Value::from(n as u64)).collect();
            let mut groups: Vec<(usize, Vec<Value>)> = Vec::new();
            for at in sort_by(interp, &places, &keys, false)? {
                let at = ops::integer(&at).unwrap_or_default() as usize;
                match groups.last_mut() {
                    Some((first, group)) if keys[at].equals(&keys[*first]) == Some(true) => {
                        group.push(items[at].clone())
                    }
                    _ => groups.push((at, vec![items[at].clone()])),
                }
            }
            // A group has the name of its first value, as it is written.
            Value::list(groups.into_iter().map(|(first, list)| {
                let grouper = shown[first].clone();
                object(Group { grouper, list: Value::list(list) })
            }))
        }
        "zip" => {
            let mut columns = vec![items];
            for other in std::mem::take(&mut passed.positional) {
                columns.push(ops::iterate(interp, &other)?);
            }
            let count = columns.iter().map(Vec::len).min().unwrap_or(0);
            interp.charge_values(count * columns.len())?;
            Iter::generator((0..count).map(|at| Value::tuple(columns.iter().map(|c| c[at].clone()))).collect())
        }
        other => return Err(JinjaError::python(format!("the filter {other} is not there"))),
    })
}

fn dictsort(interp: &mut Interp, value: &Value, passed: &Passed) -> Res<Value> {
    check(value)?;
    let Value::Dict(dict) = value else {
        let name = value.type_name();
        return Err(JinjaError::python(format!("'{name}' object has no attribute 'items'")));
    };
    let by = passed.get(1, "by").unwrap_or_else(|| "key".into());
    let at = match by.as_str() {
        Some("key") => 0,
        Some("value") => 1,
        _ => return Err(JinjaError::template("You can only sort by either \"key\" or \"value\"")),
    };
    let sensitive = passed.get(0, "case_sensitive").is_some_and(|v| v.truthy());
    let dict: Dict = dict.clone();
    let pairs: Vec<[Value; 2]> = dict.borrow().iter().map(|(k, v)| [k.value().clone(), v.clone()]).collect();
    interp.charge_values(pairs.len() * 3)?;
    let keys: Vec<Value> = pairs.iter().map(|pair| folded(pair[at].clone(), sensitive)).collect();
    let items: Vec<Value> = pairs.into_iter().map(Value::tuple).collect();
    let reverse = passed.get(2, "reverse").is_some_and(|v| v.truthy());
    Ok(Value::list(sort_by(interp, &items, &keys, reverse)?))
}

fn select(interp: &mut Interp, name: &str, value: &Value, mut passed: Passed) -> Res<Value> {
    let wanted = name.starts_with("select");
    let path = if name.ends_with("attr") {
        if passed.positional.is_empty() {
            return Err(JinjaError::template("Missing parameter for attribute name"));
        }
        Some(passed.positional.remove(0))
    } else {
        None
    };
    let test = if passed.positional.is_empty() { None } else { Some(passed.positional.remove(0)) };
    let mut kept = Vec::new();
    for item in ops::iterate(interp, value)? {
        let tested = part(interp, &item, path.as_ref())?;
        let is = match &test {
            Some(test) => {
                let test = interp.text(test)?;
                if !tests::exists(&test) {
                    return Err(JinjaError::template(format!("No test named '{test}'.")));
                }
                let args = Passed { positional: passed.positional.clone(), keyword: passed.keyword.clone() };
                tests::apply(interp, &test, &tested, &args)?
            }
            None => interp.truthy(&tested)?,
        };
        if is == wanted {
            kept.push(item);
        }
    }
    Ok(Iter::generator(kept))
}

fn map(interp: &mut Interp, value: &Value, mut passed: Passed) -> Res<Value> {
    let mut made = Vec::new();
    let path = passed.named("attribute").cloned().filter(|_| passed.positional.is_empty());
    let default = passed.named("default").filter(|default| !matches!(default, Value::None)).cloned();
    let filter = if passed.positional.is_empty() { None } else { Some(passed.positional.remove(0)) };
    if path.is_none() && filter.is_none() {
        return Err(JinjaError::template("map requires a filter argument"));
    }
    for item in ops::iterate(interp, value)? {
        made.push(match (&path, &filter) {
            (Some(path), _) => attribute::get_path(interp, &item, path, default.as_ref())?,
            (None, Some(filter)) => {
                let name = interp.text(filter)?;
                if !super::exists(&name) {
                    return Err(JinjaError::template(format!("No filter named '{name}'.")));
                }
                let args = Passed { positional: passed.positional.clone(), keyword: passed.keyword.clone() };
                super::apply(interp, &name, &item, args, None)?
            }
            (None, None) => item,
        });
    }
    interp.charge_values(made.len())?;
    let _ = hashed;
    Ok(Iter::generator(made))
}
