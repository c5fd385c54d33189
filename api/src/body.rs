//! What comes in: JSON, forms and YAML become a value; bounded in size and time.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use brine_protocol::args::yamlify;
use brine_protocol::config::yaml;
use brine_protocol::value::{self, Value};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use indexmap::IndexMap;
use serde::de::IgnoredAny;

use crate::numbers;
use crate::problem::Problem;
use crate::work;

/// Upper bound on the bytes of a body.
pub const BODY_MAX: usize = 1 << 20;
/// Text, which is JSON where it can be: some large services send it so.
const TEXT: &str = "text/plain";
/// The type of a form.
const FORM: &str = "application/x-www-form-urlencoded";
/// Upper bound on the values of a body: each takes far more memory than its text.
const VALUES_MAX: usize = 65_536;
/// Upper bound on the entries of a map, which are searched one after the other.
const ENTRIES_MAX: usize = 1_024;
/// Upper bound on nesting.
const DEPTH_MAX: usize = 64;
/// Time for a body.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Reads a body, and parses it as `Content-Type` says. No body is an empty map.
///
/// # Errors
/// When it is too long, too slow, malformed, or of another type.
pub async fn read(headers: &HeaderMap, body: Body) -> Result<Value, Problem> {
    let bytes = bytes(headers, body).await?;
    parse(media(headers), &bytes)
}

/// As [`read`], with the text before it, by which a signature can be checked. Plain text need not be JSON here: then it is itself.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub async fn read_both(headers: &HeaderMap, body: Body) -> Result<(String, Value), Problem> {
    let bytes = bytes(headers, body).await?;
    let text = String::from_utf8(bytes.to_vec()).map_err(|_| not_utf8())?;
    let parsed = match parse(media(headers), &bytes) {
        Err(_) if kind(media(headers)) == TEXT && serde_json::from_str::<IgnoredAny>(&text).is_err() => {
            Value::from(text.clone())
        }
        parsed => parsed?,
    };
    Ok((text, parsed))
}

fn not_utf8() -> Problem {
    Problem::bad("The body is not UTF-8")
}

fn media(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).map_or("", |media| media.to_str().unwrap_or("?"))
}

/// A type without its parameters.
fn kind(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

async fn bytes(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let too_large = || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("A body has at most {BODY_MAX} bytes"));
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > BODY_MAX as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIME, Limited::new(body, BODY_MAX).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) if work::is_busy(&*error) => Err(Problem::busy()),
        Ok(Err(_)) => Err(Problem::bad("The body did not come whole")),
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "The body did not come in time")),
    }
}

/// Parses a body of a type.
///
/// # Errors
/// When it is malformed, has too many values, or is of a type that is not read.
pub fn parse(media: &str, bytes: &[u8]) -> Result<Value, Problem> {
    let media = kind(media);
    if bytes.is_empty() && media.is_empty() {
        return Ok(value::empty_map());
    }
    let text = || std::str::from_utf8(bytes).map_err(|_| not_utf8());
    // The errors do not repeat what was read: it may hold a password.
    let parsed = match media.as_str() {
        "application/json" | TEXT => {
            if bytes.is_empty() {
                return Ok(value::empty_map());
            }
            bound_json(bytes)?;
            let json =
                serde_json::from_slice(&numbers::quoted(bytes)).map_err(|_| Problem::bad("Invalid JSON document"))?;
            value::from_json(&json)
        }
        "application/x-yaml" | "text/yaml" => {
            yaml::load_foreign(text()?).map_err(|_| Problem::bad("Invalid YAML document"))?
        }
        "" | FORM => form(bytes)?,
        _ => return Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "Content type not supported")),
    };
    bound(&parsed, &mut 0, 0)?;
    Ok(if parsed.is_nil() { value::empty_map() } else { parsed })
}

/// Refuses JSON that would take much memory, before it takes it.
fn bound_json(bytes: &[u8]) -> Result<(), Problem> {
    let (mut values, mut in_text, mut escaped) = (1, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b':' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    // Each entry of a map counts twice here, by its comma and its colon.
    if values > 2 * VALUES_MAX { Err(too_complex()) } else { Ok(()) }
}

/// Refuses what would take much time or memory later on.
fn bound(value: &Value, values: &mut usize, depth: usize) -> Result<(), Problem> {
    *values += 1;
    if *values > VALUES_MAX || depth > DEPTH_MAX {
        return Err(too_complex());
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| bound(item, values, depth + 1)),
        Value::Map(entries) if entries.len() > ENTRIES_MAX => Err(too_complex()),
        Value::Map(entries) => entries.iter().try_for_each(|(key, value)| {
            bound(key, &mut 0, depth + 1)?;
            bound(value, values, depth + 1)
        }),
        _ => Ok(()),
    }
}

fn too_complex() -> Problem {
    Problem::bad(format!(
        "A body has at most {VALUES_MAX} values, {ENTRIES_MAX} in a map, and {DEPTH_MAX} of them in one another"
    ))
}

/// A form: a key that repeats is a list, and one without a value is not there. `arg` is always a list; it, `kwarg` and `full_return` are
/// YAML, as the rest of a chunk is text.
fn form(bytes: &[u8]) -> Result<Value, Problem> {
    let (mut map, mut values) = (IndexMap::<String, Value>::new(), 0);
    for (key, text) in form_urlencoded::parse(bytes).filter(|(_, text)| !text.is_empty()) {
        let item = match &*key {
            "arg" => yamlify(&text),
            "kwarg" | "full_return" => {
                yaml::load_foreign(&text).map_err(|_| Problem::bad(format!("{key} is not YAML")))?
            }
            _ => Value::from(text.into_owned()),
        };
        // Before there are more.
        bound(&item, &mut values, 1)?;
        let is_full = map.len() == ENTRIES_MAX;
        match map.get_mut(&*key) {
            Some(_) if key == "kwarg" => return Err(Problem::bad("A form has one kwarg")),
            Some(Value::Array(items)) => items.push(item),
            Some(first) => *first = Value::Array(vec![std::mem::replace(first, Value::Nil), item]),
            None if is_full => return Err(too_complex()),
            None => {
                let first = if key == "arg" { Value::Array(vec![item]) } else { item };
                map.insert(key.into_owned(), first);
            }
        }
    }
    Ok(Value::Map(map.into_iter().map(|(key, value)| (Value::from(key), value)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_type_is_read() {
        let read = |media: &str, text: &str| {
            parse(media, text.as_bytes())
                .map(|value| value::to_json(&value))
                .map_err(|problem| problem.status().as_u16())
        };
        let chunk = json!({"client": "local", "tgt": "*", "arg": ["a", "b"]});
        let text = chunk.to_string();
        for media in
            ["application/json", "Application/JSON; charset=utf-8", "text/plain", "text/yaml", "application/x-yaml"]
        {
            assert_eq!(read(media, &text), Ok(chunk.clone()), "{media}");
        }
        let form = "client=local&tgt=%2A&arg=a&arg=b";
        assert_eq!(read("application/x-www-form-urlencoded", form), Ok(chunk));
        assert_eq!(read("", "kwarg=%7Ba%3A+1%7D&x=1"), Ok(json!({"kwarg": {"a": 1}, "x": "1"})));
        // What a form leaves empty is not there; `arg` is YAML in a form alone.
        assert_eq!(read("", "arg=&timeout=&x=1&x=&b=a"), Ok(json!({"x": "1", "b": "a"})));
        assert_eq!(read("", "arg=1"), Ok(json!({"arg": [1]})));
        assert_eq!(
            read("", "arg=1.10&arg=%221.10%22&arg=%5B1%2C+2%5D&arg=a=1"),
            Ok(json!({"arg": [1.1, "1.10", [1, 2], "a=1"]}))
        );
        assert_eq!(read("text/plain", r#"{"arg": ["1.10"]}"#), Ok(json!({"arg": ["1.10"]})));
        for (media, text) in [("", ""), ("application/json", ""), ("text/yaml", ""), ("application/json", "null")] {
            assert_eq!(read(media, text), Ok(json!({})), "{media} {text}");
        }
        for (media, text) in
            [("text/plain", r#"{"jid": 20261124070448670000}"#), ("text/yaml", "jid: 20261124070448670000")]
        {
            assert_eq!(read(media, text), Ok(json!({"jid": "20261124070448670000"})), "{media}");
        }
        for media in ["text/html", "multipart/form-data; boundary=x", "application/msgpack"] {
            assert_eq!(read(media, "{}"), Err(406), "{media}");
        }
        let deep = "[".repeat(100_000);
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        for media in ["application/json", "text/yaml"] {
            assert!(read(media, &nested(DEPTH_MAX)).is_ok(), "{media}");
            assert_eq!(read(media, &nested(DEPTH_MAX + 1)), Err(400), "{media}");
        }
        for (media, text) in
            [("application/json", "{"), ("text/yaml", "{"), ("", "kwarg=%7B"), ("application/json", &deep)]
        {
            assert_eq!(read(media, text), Err(400), "{media}");
        }
    }

    /// A signature is over the text that came.
    #[tokio::test]
    async fn a_body_comes_with_its_text() {
        for (media, text, parsed) in [
            ("application/x-www-form-urlencoded", "a=1", json!({"a": "1"})),
            ("application/json", "[1 ]", json!([1])),
            ("text/plain; charset=utf-8", "[1 ]", json!([1])),
            ("Text/Plain", "build 7 is done", json!("build 7 is done")),
        ] {
            let headers: HeaderMap = [(CONTENT_TYPE, media.parse().unwrap())].into_iter().collect();
            let (raw, value) = read_both(&headers, Body::from(text)).await.unwrap();
            assert_eq!((raw.as_str(), value::to_json(&value)), (text, parsed), "{media}");
        }
        for (media, text) in [("application/json", "build"), ("text/plain", &*format!("[{}0]", "0,".repeat(200_000)))] {
            let headers: HeaderMap = [(CONTENT_TYPE, media.parse().unwrap())].into_iter().collect();
            let read = read_both(&headers, Body::from(text.to_owned())).await;
            assert_eq!(read.err().map(|problem| problem.status().as_u16()), Some(400), "{media}");
        }
    }

    /// Each of these has less than a MiB, and would otherwise take seconds or a hundred times its size.
    #[test]
    fn bombs_are_refused_at_once() {
        let list = |count: usize| format!("[{}]", vec!["0"; count].join(","));
        let keys = |count: usize| (0..count).map(|n| format!("\"{n}\":0")).collect::<Vec<_>>().join(",");
        let form = |count: usize| (0..count).map(|n| format!("{n}=0&")).collect::<String>();
        let alias = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n\
                     d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]";
        let status = |media: &str, text: &str| {
            assert!(text.len() < BODY_MAX, "{} bytes", text.len());
            let began = std::time::Instant::now();
            let status = parse(media, text.as_bytes()).map_err(|problem| problem.status().as_u16()).err();
            assert!(began.elapsed() < Duration::from_secs(5), "{media} takes {:?}", began.elapsed());
            status
        };
        for media in ["application/json", "text/yaml"] {
            assert_eq!(status(media, &list(VALUES_MAX - 1)), None, "{media}");
            assert_eq!(status(media, &list(VALUES_MAX)), Some(400), "{media}");
            assert_eq!(status(media, &list(250_000)), Some(400), "{media}");
            assert_eq!(status(media, &"[".repeat(1_000_000)), Some(400), "{media}");
            assert_eq!(status(media, &"{\"a\":".repeat(200_000)), Some(400), "{media}");
            assert_eq!(status(media, &format!("{{{}}}", keys(ENTRIES_MAX))), None, "{media}");
            assert_eq!(status(media, &format!("{{{}}}", keys(ENTRIES_MAX + 1))), Some(400), "{media}");
            assert_eq!(status(media, &format!("{{{}}}", keys(80_000))), Some(400), "{media}");
        }
        assert_eq!(status("application/json", &format!("[\"{}\"]", ",[{:".repeat(100_000))), None, "one text");
        assert_eq!(status("application/json", &format!("[\"\\\"{}\"]", ",".repeat(200_000))), None, "one text");
        assert_eq!(status("text/yaml", alias), Some(400), "a billion laughs");
        assert_eq!(status("", &form(ENTRIES_MAX)), None);
        assert_eq!(status("", &form(100_000)), Some(400));
        let last = "full_return=1&";
        assert_eq!(status("", &(form(ENTRIES_MAX - 1) + &last.repeat(60_000))), None, "searched for again and again");
        assert_eq!(status("", &"arg=0&".repeat(VALUES_MAX - 2)), None);
        assert_eq!(status("", &"arg=0&".repeat(VALUES_MAX + 1)), Some(400));
        assert_eq!(status("", &"arg=0&".repeat(150_000)), Some(400));
        assert_eq!(status("", &"arg=&".repeat(200_000)), None, "nothing");
        assert_eq!(status("", &format!("kwarg={}", "%5B".repeat(100_000))), Some(400));
        assert_eq!(status("", &"kwarg=1&".repeat(100_000)), Some(400), "one in another");
        let alias =
            "full_return=[%26a+[0,0,0,0,0,0,0,0,0],%26b+[*a,*a,*a,*a,*a,*a,*a,*a,*a],[*b,*b,*b,*b,*b,*b,*b,*b,*b]]&";
        assert_eq!(status("", alias), Some(400));
        assert_eq!(status("", &alias.repeat(1_000)), Some(400));
        assert_eq!(status("", &"full_return=[0,0,0,0]&".repeat(20_000)), Some(400), "more values than fields");
    }
}
