//! One request as the caller describes it, and the answer as Salt shows it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_guest::host::http::{self, Request, Response};
use brine_guest::{Value, json};

/// Salt's bounds: `http_request_timeout`, `http_max_body` is larger than an instance may take.
const TIMEOUT_MS: u64 = 3_600_000;
const MAX_BODY: u64 = 16 << 20;
const MAX_REDIRECTS: u32 = 5;
const AGENT: &str = "Brine http.query()";

/// A request, and what of its answer is wanted.
#[derive(Debug, Default, Clone)]
pub(crate) struct Query {
    pub(crate) url: String,
    pub(crate) method: Option<String>,
    pub(crate) params: Value,
    pub(crate) data: Value,
    pub(crate) header_dict: Value,
    pub(crate) header_list: Value,
    pub(crate) username: Value,
    pub(crate) password: Value,
    pub(crate) decode: bool,
    pub(crate) decode_type: Option<String>,
    pub(crate) status: bool,
    pub(crate) headers: bool,
    pub(crate) text: bool,
    pub(crate) keep_errors: bool,
}

/// What Salt has and is not offered here, for an error: its result would be another than the caller expects.
const OTHERS: [&str; 18] = [
    "auth",
    "ca_bundle",
    "cert",
    "cookie_jar",
    "cookies",
    "data_file",
    "data_render",
    "decode_out",
    "formdata",
    "header_file",
    "header_render",
    "headers_out",
    "persist_session",
    "session_cookie_jar",
    "stream",
    "test_url",
    "text_out",
    "verify_ssl",
];

impl Query {
    /// Takes the parameters of a state or of a repeated query from its keywords.
    pub(crate) fn of(url: String, keywords: &Value) -> Result<Self, String> {
        refuse_others(keywords)?;
        let value = |name: &str| keywords.get(name).cloned().unwrap_or_default();
        let flag = |name: &str| value(name).truthy();
        let text = |name: &str| Some(value(name)).filter(|value| *value != Value::None).map(|value| value.to_text());
        Ok(Self {
            url,
            method: text("method"),
            params: value("params"),
            data: value("data"),
            header_dict: value("header_dict"),
            header_list: value("header_list"),
            username: value("username"),
            password: value("password"),
            decode: flag("decode"),
            decode_type: text("decode_type"),
            status: flag("status"),
            headers: flag("headers"),
            text: flag("text"),
            keep_errors: keywords.get("raise_error").is_some_and(|raise| !raise.truthy()),
        })
    }

    fn request(&self) -> Result<Request, String> {
        let method = self.method.as_deref().unwrap_or("GET").to_owned();
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut set = |name: &str, value: String| {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            headers.push((name.to_owned(), value));
        };
        match &self.header_dict {
            Value::Dict(entries) => entries.iter().for_each(|(name, value)| set(&name.to_text(), value.to_text())),
            Value::None => {}
            _ => return Err("header_dict is to be a dict".to_owned()),
        }
        match &self.header_list {
            // As in Salt, a line without a colon is left out.
            Value::List(lines) => lines.iter().map(Value::to_text).for_each(|line| {
                if let Some((name, value)) = line.split_once(':') {
                    set(name.trim(), value.trim().to_owned());
                }
            }),
            Value::None => {}
            _ => return Err("header_list is to be a list".to_owned()),
        }
        set("User-Agent", AGENT.to_owned());
        if self.username.truthy() && self.password.truthy() {
            let both = format!("{}:{}", self.username.to_text(), self.password.to_text());
            set("Authorization", format!("Basic {}", STANDARD.encode(both)));
        }
        let body = match &self.data {
            Value::None => None,
            Value::Dict(entries) => Some(form(entries).into_bytes()),
            Value::Bytes(bytes) => Some(bytes.clone()),
            other => Some(other.to_text().into_bytes()),
        };
        if method == "POST" && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            headers.push(("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
        }
        let mut url = self.url.clone();
        match &self.params {
            Value::Dict(entries) if !entries.is_empty() => {
                url.push(if url.contains('?') { '&' } else { '?' });
                url.push_str(&form(entries));
            }
            Value::Dict(_) | Value::None => {}
            _ => return Err("params is to be a dict".to_owned()),
        }
        let (timeout_ms, max_body) = (Some(TIMEOUT_MS), Some(MAX_BODY));
        Ok(Request { method, url, headers, body, timeout_ms, max_body, max_redirects: MAX_REDIRECTS })
    }

    /// Sends the request.
    ///
    /// # Errors
    /// Where it cannot be one. A server that cannot be reached is an answer with `error`.
    pub(crate) fn send(&self) -> Result<Value, String> {
        let request = self.request()?;
        match http::send(&request) {
            Ok(response) => self.answer(&response),
            Err(why) => {
                let status = self.status.then_some(("status", Value::Int(0)));
                Ok(Value::dict(status.into_iter().chain([("error", why.into())])))
            }
        }
    }

    fn answer(&self, response: &Response) -> Result<Value, String> {
        let body = String::from_utf8_lossy(&response.body).into_owned();
        if response.status >= 400 && !self.keep_errors {
            let error = format!("HTTP {}: {}", response.status, reason(response.status));
            let status = Value::Int(response.status.into());
            return Ok(Value::dict([("status", status), ("error", error.into()), ("body", body.into())]));
        }
        let mut answer = vec![("body", Value::from(body.as_str()))];
        if self.status {
            answer.push(("status", Value::Int(response.status.into())));
        }
        let headers = shown(&response.headers);
        let kind = headers.iter().find(|(name, _)| name == "Content-Type").map(|(_, value)| value.to_ascii_lowercase());
        if self.headers {
            answer.push(("headers", Value::Dict(headers.into_iter().map(|(n, v)| (n.into(), v.into())).collect())));
        }
        let mut text = self.text;
        if self.decode {
            let kind = kind.unwrap_or_else(|| "application/json".to_owned());
            let auto = ["xml", "json", "yaml"].into_iter().find(|known| kind.contains(known)).unwrap_or("plain");
            match self.decode_type.as_deref().filter(|kind| *kind != "auto").unwrap_or(auto) {
                "json" => answer
                    .push(("dict", json::from_text(&body).map_err(|why| format!("the answer is no JSON: {why}"))?)),
                "plain" => text = true,
                other @ ("xml" | "yaml") => {
                    return Err(format!("the decode_type {other} is not offered here: json and plain are"));
                }
                _ => {
                    let words =
                        "Invalid decode_type specified. Valid decode types are: ('json', 'xml', 'yaml', 'plain')";
                    answer.push(("error", words.into()));
                    return Ok(Value::dict(answer));
                }
            }
        }
        if text {
            answer.push(("text", body.into()));
        }
        Ok(Value::dict(answer))
    }
}

/// Refuses keywords of Salt's that are not offered.
///
/// # Errors
/// One line, which names the first of them.
pub(crate) fn refuse_others(keywords: &Value) -> Result<(), String> {
    // That certificates are verified is how it is.
    let harmless = |name: &str| name == "verify_ssl" && keywords.get(name) == Some(&Value::Bool(true));
    match OTHERS
        .into_iter()
        .find(|name| keywords.get(name).is_some_and(|value| *value != Value::None) && !harmless(name))
    {
        Some(name) => Err(format!("{name} is not offered here")),
        None => Ok(()),
    }
}

/// Headers by name, as `Content-Type`; values of one name are joined by commas.
fn shown(headers: &[(String, String)]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, value) in headers {
        let words = name.split('-').map(|word| {
            let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
            first.to_ascii_uppercase() + &rest.to_ascii_lowercase()
        });
        let name = words.collect::<Vec<_>>().join("-");
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => {
                values.push(',');
                values.push_str(value);
            }
            None => all.push((name, value.clone())),
        }
    }
    all
}

/// Names and values as a form or a query has them.
fn form(entries: &[(Value, Value)]) -> String {
    let pair = |(name, value): &(Value, Value)| format!("{}={}", quoted(&name.to_text()), quoted(&value.to_text()));
    entries.iter().map(pair).collect::<Vec<_>>().join("&")
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// The usual phrase of a status (RFC 9110).
fn reason(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, kind: &str, body: &str) -> Response {
        let headers =
            vec![("content-type".to_owned(), kind.to_owned()), ("x-a".into(), "1".into()), ("X-A".into(), "2".into())];
        Response { status, headers, body: body.as_bytes().to_vec(), url: String::new() }
    }

    #[test]
    fn a_request_has_what_the_caller_says() {
        let query = Query {
            url: "http://a/b?c=d".into(),
            method: Some("POST".into()),
            params: Value::dict([("x y", "ü&".into()), ("n", Value::Int(1))]),
            data: Value::dict([("k", "v w".into())]),
            header_dict: Value::dict([("X-One", "1".into()), ("user-agent", "mine".into())]),
            header_list: Value::List(vec!["x-one: 2".into(), "odd".into()]),
            username: "u".into(),
            password: "p".into(),
            ..Query::default()
        };
        let request = query.request().unwrap();
        assert_eq!(request.url, "http://a/b?c=d&x+y=%C3%BC%26&n=1");
        assert_eq!(request.body.as_deref(), Some(&b"k=v+w"[..]));
        let headers: Vec<_> = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expect = [
            ("x-one", "2"),
            ("User-Agent", AGENT),
            ("Authorization", "Basic dTpw"),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        assert_eq!(headers, expect);
        assert!(Query { params: "a=b".into(), ..Query::default() }.request().is_err());
    }

    #[test]
    fn answers_are_as_salt_shows_them() {
        let json = response(200, "application/json; charset=utf-8", r#"{"a": [1, 2.5, null]}"#);
        let all = Query { status: true, headers: true, text: true, decode: true, ..Query::default() };
        let answer = all.answer(&json).unwrap();
        assert_eq!(answer.get("status"), Some(&Value::Int(200)));
        assert_eq!(
            answer.get("dict").and_then(|dict| dict.get("a")),
            Some(&Value::List(vec![Value::Int(1), 2.5.into(), Value::None]))
        );
        assert_eq!(answer.get("headers").and_then(|headers| headers.get("X-A")), Some(&Value::from("1,2")));
        assert_eq!(answer.get("text"), answer.get("body"));
        let plain = Query { decode: true, ..Query::default() }.answer(&response(200, "text/html", "hi")).unwrap();
        assert_eq!(plain, Value::dict([("body", "hi".into()), ("text", "hi".into())]));
        let missing = Query::default().answer(&response(404, "text/plain", "no")).unwrap();
        let expect = [("status", Value::Int(404)), ("error", "HTTP 404: Not Found".into()), ("body", "no".into())];
        assert_eq!(missing, Value::dict(expect));
        let kept = Query { keep_errors: true, status: true, ..Query::default() };
        assert_eq!(kept.answer(&response(404, "text/plain", "no")).unwrap().get("error"), None);
        assert!(all.answer(&response(200, "application/json", "{")).unwrap_err().contains("no JSON"));
    }

    #[test]
    fn what_is_not_offered_is_refused() {
        let refused = |name: &str, value: Value| refuse_others(&Value::dict([(name, value)]));
        assert_eq!(refused("verify_ssl", false.into()), Err("verify_ssl is not offered here".to_owned()));
        assert!(refused("cert", "/x.pem".into()).is_err());
        assert!(refused("verify_ssl", true.into()).is_ok() && refused("cert", Value::None).is_ok());
        assert!(refused("backend", "requests".into()).is_ok());
    }
}
