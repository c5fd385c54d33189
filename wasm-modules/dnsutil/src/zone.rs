//! Zone files, as `dnsutil.parse_zone` reads them.

use brine_guest::Value;

/// RFC 1035 has a week as the longest time.
const WEEK: i64 = 604_800;

type Entries = Vec<(Value, Value)>;

fn put(dict: &mut Entries, key: &str, value: Value) {
    match dict.iter_mut().find(|(known, _)| known.text() == Some(key)) {
        Some((_, known)) => *known = value,
        None => dict.push((key.into(), value)),
    }
}

fn origin(zone: &Entries) -> Option<String> {
    zone.iter().find(|(key, _)| key.text() == Some("ORIGIN")).map(|(_, value)| value.to_text())
}

/// The dict of a kind of record.
fn below(zone: &mut Entries, kind: &str, name: &str, value: Value) {
    let place = zone.iter().position(|(key, _)| key.text() == Some(kind));
    let place = place.unwrap_or_else(|| {
        zone.push((kind.into(), Value::Dict(Vec::new())));
        zone.len() - 1
    });
    if let Value::Dict(records) = &mut zone[place].1 {
        put(records, name, value);
    }
}

fn word(words: &[String], at: usize) -> Result<&str, String> {
    words.get(at).map(String::as_str).ok_or_else(|| "list index out of range".to_owned())
}

fn seconds(text: &str) -> Result<Value, String> {
    let text = text.to_uppercase();
    let number = |text: String| {
        let read = text.trim().parse::<i64>();
        read.map_err(|_| format!("invalid literal for int() with base 10: '{text}'"))
    };
    let seconds = if text.contains('H') {
        number(text.replace('H', ""))?.saturating_mul(3_600)
    } else if text.contains('D') {
        number(text.replace('D', ""))?.saturating_mul(86_400)
    } else if text.contains('W') {
        WEEK
    } else {
        text.trim().parse().unwrap_or(WEEK)
    };
    Ok(seconds.min(WEEK).into())
}

/// The records of a zone by their kinds.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let mut zone: Entries = Vec::new();
    let mut several: Option<String> = None;
    for line in text.lines() {
        let line = line.split(';').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if line.starts_with('$') {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            put(&mut zone, &words[0].replace('$', ""), word(&words, 1)?.into());
            continue;
        }
        if line.contains('(') && !line.contains(')') {
            several = Some(String::new());
        }
        let line = match several.take() {
            None => line.to_owned(),
            Some(before) => {
                let all = format!("{before} {line}");
                if !line.contains(')') {
                    several = Some(all);
                    continue;
                }
                all.replace(['(', ')'], "")
            }
        };
        record(&mut zone, &line)?;
    }
    Ok(Value::Dict(zone))
}

fn record(zone: &mut Entries, line: &str) -> Result<(), String> {
    let known = origin(zone);
    let whole = known.as_ref().map_or_else(|| line.to_owned(), |origin| line.replace('@', origin));
    let mut words: Vec<String> = whole.split_whitespace().map(str::to_owned).collect();
    if line.contains("SOA") {
        if word(&words, 1)? != "IN" {
            words.remove(1);
        }
        for (key, at) in [("ORIGIN", 0), ("NETWORK", 1), ("SOURCE", 3)] {
            put(zone, key, word(&words, at)?.into());
        }
        put(zone, "CONTACT", word(&words, 4)?.replacen('.', "@", 1).into());
        put(zone, "SERIAL", word(&words, 5)?.into());
        for (key, at) in [("REFRESH", 6), ("RETRY", 7), ("EXPIRE", 8), ("MINTTL", 9)] {
            put(zone, key, seconds(word(&words, at)?)?);
        }
        return Ok(());
    }
    let need = || known.clone().ok_or_else(|| "'ORIGIN'".to_owned());
    if word(&words, 0)? == "IN" {
        words.insert(0, need()?);
    }
    if !words[0].ends_with('.') && !line.contains("NS") {
        words[0] = format!("{}.{}", words[0], need()?);
    }
    match word(&words, 2)? {
        "NS" => {
            let server = Value::from(word(&words, 3)?);
            match zone.iter_mut().find(|(key, _)| key.text() == Some("NS")) {
                Some((_, Value::List(servers))) => servers.push(server),
                _ => put(zone, "NS", Value::List(vec![server])),
            }
        }
        // As Salt: the first one alone.
        "MX" if zone.iter().any(|(key, _)| key.text() == Some("MX")) => {}
        "MX" => {
            let server = [("priority", word(&words, 3)?.into()), ("host", word(&words, 4)?.into())];
            put(zone, "MX", Value::List(vec![Value::dict(server)]));
        }
        kind => match word(&words, 3)? {
            address @ ("A" | "AAAA") => {
                let record = [("TARGET", word(&words, 4)?.into()), ("TTL", word(&words, 1)?.into())];
                below(zone, address, &words[0], Value::dict(record));
            }
            value => below(zone, kind, &words[0], value.into()),
        },
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_a_week_at_most() {
        for (text, expected) in
            [("2H", 7_200), ("3d", 259_200), ("1W", WEEK), ("900", 900), ("9999999", WEEK), ("x", WEEK)]
        {
            assert_eq!(seconds(text), Ok(Value::Int(expected)), "{text}");
        }
        assert!(seconds("1H30M").is_err());
    }

    #[test]
    fn what_is_no_zone_is_an_error() {
        for text in ["x", "$TTL", "a IN", "SOA", "IN A 1", "( )", "a b c d", ") ("] {
            let _ = parse(text);
        }
        assert!(parse("x").is_err() && parse("$TTL").is_err());
    }
}
