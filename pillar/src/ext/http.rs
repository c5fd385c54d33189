//! `http_json` and `http_yaml`: a document of a web server.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use brine_protocol::config::settings;
use brine_protocol::value::{Value as Wire, ValueExt as _};
use brine_render::{Key, Value, json, yaml};

use super::{Arguments, Asked, ExternalPillar, Fetch, Get};

/// How the document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Yaml,
}

/// The configured source. It does not print: it may hold credentials.
struct Http {
    form: Form,
    /// With `%s` for the id, and with `<grain>` if `with_grains`.
    url: String,
    with_grains: bool,
    headers: Vec<(String, String)>,
    namespace: Option<String>,
    timeout: Duration,
    max: usize,
}

pub(crate) fn read_json(given: &Arguments<'_>) -> Result<Arc<dyn ExternalPillar>, String> {
    read(given, Form::Json)
}

pub(crate) fn read_yaml(given: &Arguments<'_>) -> Result<Arc<dyn ExternalPillar>, String> {
    read(given, Form::Yaml)
}

fn read(given: &Arguments<'_>, form: Form) -> Result<Arc<dyn ExternalPillar>, String> {
    given.only(&["url", "with_grains", "header_dict", "auth", "username", "password", "namespace"])?;
    let url = given.text(0, "url")?.ok_or("url is missing")?;
    let with_grains = given.is(1, "with_grains");
    let sample = fill(&url, "id", |_| Some("grain".to_owned()), with_grains)?;
    brine_http::Url::parse(&sample).map_err(|why| format!("url: {why}"))?;
    let mut headers = Vec::new();
    for (name, value) in given.get(2, "header_dict").and_then(|headers| headers.entries()).unwrap_or_default() {
        headers.push((name.python_str(), value.python_str()));
    }
    if given.get(3, "auth").is_some() {
        return Err("auth is not there; username and password are".to_owned());
    }
    if let Some(user) = given.text(4, "username")? {
        let password = given.text(5, "password")?.unwrap_or_default();
        let word = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        headers.push(("authorization".to_owned(), format!("Basic {word}")));
    }
    brine_http::headers(&headers)?;
    let setting = |why: brine_protocol::config::ConfigError| why.to_string();
    Ok(Arc::new(Http {
        form,
        url,
        with_grains,
        headers,
        namespace: given.text(6, "namespace")?.filter(|name| !name.is_empty()),
        timeout: given.c.get(settings::EXT_PILLAR_HTTP_TIMEOUT).map_err(setting)?,
        max: given.c.get(settings::EXT_PILLAR_HTTP_MAX_SIZE).map_err(setting)?,
    }))
}

impl ExternalPillar for Http {
    fn name(&self) -> &'static str {
        match self.form {
            Form::Json => "http_json",
            Form::Yaml => "http_yaml",
        }
    }

    fn pillar(&self, asked: &Asked<'_>, fetch: &dyn Fetch) -> Result<Value, String> {
        let grain = |name: &str| asked.grains.traverse(name, ":").map(grain_text);
        let url = fill(&self.url, asked.id.as_str(), grain, self.with_grains)?;
        let ends = asked.files.ends();
        let body = fetch.get(&Get { url: &url, headers: &self.headers, max: self.max, timeout: self.timeout, ends })?;
        let text = String::from_utf8(body).map_err(|_| "the answer is not UTF-8".to_owned())?;
        let limits = yaml::Limits { text: self.max, ..yaml::Limits::default() };
        let value = match self.form {
            Form::Json => json::load(&text, &limits).map_err(|why| format!("the answer is not JSON: {why}"))?,
            Form::Yaml => yaml::load(&text, &limits)
                .map_err(|why| format!("the answer is not YAML: line {}", why.line().unwrap_or_default()))?,
        };
        match (&value, &self.namespace) {
            (Value::Dict(_), None) => Ok(value),
            (Value::Dict(_), Some(name)) => Ok(Value::dict([(Key::from(name.as_str()), value)])),
            _ => Err("the answer is no dict".to_owned()),
        }
    }
}

fn grain_text(grain: &Wire) -> String {
    grain.python_str()
}

/// Puts the id and grains into an address, with all that is no letter or digit written as `%xx`: a minion's word leads
/// to no other path.
fn fill(url: &str, id: &str, grain: impl Fn(&str) -> Option<String>, with_grains: bool) -> Result<String, String> {
    let url = url.replace("%s", &quoted(id)?);
    if !with_grains {
        return Ok(url);
    }
    let mut out = String::new();
    let mut rest = url.as_str();
    while let Some((before, after)) = rest.split_once('<') {
        let Some((name, then)) = after.split_once('>') else { break };
        out.push_str(before);
        let value =
            grain(name).filter(|value| !value.is_empty()).ok_or_else(|| format!("the minion has no grain {name:?}"))?;
        out.push_str(&quoted(&value).map_err(|why| format!("the grain {name:?} {why}"))?);
        rest = then;
    }
    Ok(out + rest)
}

fn quoted(text: &str) -> Result<String, String> {
    // Servers take dots for folders, quoted or not.
    if !text.is_empty() && text.bytes().all(|byte| byte == b'.') {
        return Err("is made of dots".to_owned());
    }
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minions_word_leads_to_no_other_path() {
        let grain = |name: &str| match name {
            "os" => Some("Debian".to_owned()),
            "evil" => Some("../x?y#z&w %2e/<os>".to_owned()),
            "dots" => Some("..".to_owned()),
            _ => None,
        };
        for (url, filled) in [
            ("http://h/%s", "http://h/a%2Fb"),
            ("http://h/<os>/%s", "http://h/Debian/a%2Fb"),
            ("http://h/<evil>", "http://h/..%2Fx%3Fy%23z%26w%20%252e%2F%3Cos%3E"),
        ] {
            assert_eq!(fill(url, "a/b", grain, true).unwrap(), filled);
        }
        assert_eq!(fill("http://h/<os>", "a", grain, false).unwrap(), "http://h/<os>");
        assert!(fill("http://h/<dots>/x", "a", grain, true).unwrap_err().contains("dots"));
        assert!(fill("http://h/<nope>", "a", grain, true).unwrap_err().contains("nope"));
    }
}
