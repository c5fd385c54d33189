//! `http://` and `https://` addresses. The parser is strict: it rejects a malformed URL and does not repair it.

use std::fmt;
use std::net::IpAddr;

use hyper::Uri;

/// Upper bound on the bytes of a URL.
const MAX_URL: usize = 8 << 10;

/// A URL with everything that a connection needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether the connection is encrypted.
    pub https: bool,
    /// A host name in lower case without a trailing dot, or an address without brackets.
    pub host: String,
    /// The port, also where the scheme implies it.
    pub port: u16,
    /// The path from the first slash, with the query and without the fragment.
    pub path: String,
}

/// Scheme, host and port. Credentials belong to one origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    https: bool,
    host: String,
    port: u16,
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// One line, which does not repeat the URL: it may hold credentials.
    pub fn parse(text: &str) -> Result<Self, String> {
        let no = |why: &str| format!("the URL {why}");
        if text.len() > MAX_URL {
            return Err(no("is too long"));
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) || text.contains('\\') {
            return Err(no("has characters that have to be written as %xx, or a host's name as xn--…"));
        }
        let uri: Uri = text.split('#').next().unwrap_or_default().parse().map_err(|_| no("is malformed"))?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(no("begins neither with http:// nor with https://")),
        };
        let authority = uri.authority().ok_or_else(|| no("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(no("has a user in it; credentials go into a header"));
        }
        let host = host(authority.host()).ok_or_else(|| no("has no valid host"))?;
        let port = match authority.as_str().strip_prefix(authority.host()).unwrap_or(":") {
            "" if https => 443,
            "" => 80,
            port => {
                let number = port.strip_prefix(':').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
                number.and_then(|n| n.parse().ok()).filter(|port| *port != 0).ok_or_else(|| no("has no valid port"))?
            }
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { https, host, port, path })
    }

    /// Resolves a `Location` header against this URL (RFC 3986, 5.2).
    ///
    /// # Errors
    /// As [`Url::parse`].
    pub fn join(&self, location: &str) -> Result<Self, String> {
        let location = location.split('#').next().unwrap_or_default();
        let scheme_end = location.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
        if scheme_end.is_some_and(|at| at > 0 && location[at..].starts_with(':')) {
            return Self::parse(location);
        }
        if location.starts_with("//") {
            return Self::parse(&format!("{}:{location}", self.scheme()));
        }
        let own_path = self.path.split('?').next().unwrap_or_default();
        let path = match location.chars().next() {
            None => self.path.clone(),
            Some('?') => format!("{own_path}{location}"),
            Some('/') => without_dots(location),
            Some(_) => {
                let folder = own_path.rsplit_once('/').map_or("", |(folder, _)| folder);
                without_dots(&format!("{folder}/{location}"))
            }
        };
        Self::parse(&format!("{}{path}", self.origin()))
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> Origin {
        Origin { https: self.https, host: self.host.clone(), port: self.port }
    }

    /// The value of the `Host` header.
    pub fn authority(&self) -> String {
        self.origin().authority()
    }

    fn scheme(&self) -> &'static str {
        if self.https { "https" } else { "http" }
    }
}

impl Origin {
    fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        if self.port == if self.https { 443 } else { 80 } { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.https { "https" } else { "http" }, self.authority())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

fn host(text: &str) -> Option<String> {
    if let Some(inner) = text.strip_prefix('[') {
        let address: IpAddr = inner.strip_suffix(']')?.parse().ok()?;
        return address.is_ipv6().then(|| address.to_string());
    }
    let name = text.to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    let fits = !name.is_empty()
        && name.len() <= 253
        && name.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        });
    fits.then(|| name.to_owned())
}

/// Removes dot segments from the path (RFC 3986, 5.2.4); the query stays.
fn without_dots(text: &str) -> String {
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    let mut out: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        match *part {
            "." | ".." => {
                if *part == ".." {
                    out.pop();
                }
                if last {
                    out.push("");
                }
            }
            part => out.push(part),
        }
    }
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("/{}{query}", out.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_strictly() {
        for (text, shown) in [
            ("http://A.example", "http://a.example/"),
            ("https://a.example.:443/x?y#z", "https://a.example/x?y"),
            ("http://a.example:8080?q=1", "http://a.example:8080/?q=1"),
            ("http://127.0.0.1:80/", "http://127.0.0.1/"),
            ("https://[::1]:8443/a/../b", "https://[::1]:8443/a/../b"),
            ("http://[::FFFF:1.2.3.4]/", "http://[::ffff:1.2.3.4]/"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), shown, "{text}");
        }
        for text in [
            "",
            "a.example",
            "//a.example/",
            "/x",
            "ftp://a.example/",
            "file:///etc/passwd",
            "http://",
            "http:///x",
            "http://user@a.example/",
            "http://user:pw@a.example/",
            "http://a.example@b.example/",
            "http://a.example:0/",
            "http://a.example:99999/",
            "http://a.example:/",
            "http://a.example:8080@b.example/",
            "http://a example/",
            "http://a.example/\r\nX: y",
            "http://a.example\\@b.example/",
            "http://é.example/",
            "http://a.example/é",
            "http://[fe80::1%25eth0]/",
            "http://[::1",
            "http://[1.2.3.4]/",
            "http://a..example/",
            "http://.a/",
            "http://a/ b",
            "http://%31%32%37.0.0.1/",
            "javascript:alert(1)",
        ] {
            assert!(Url::parse(text).is_err(), "{text}: {:?}", Url::parse(text));
        }
        assert!(Url::parse(&format!("http://a.example/{}", "x".repeat(MAX_URL))).is_err());
    }

    #[test]
    fn locations_are_resolved() {
        let base = Url::parse("https://a.example:444/b/c/d?q").unwrap();
        for (location, shown) in [
            ("g", "https://a.example:444/b/c/g"),
            ("./g", "https://a.example:444/b/c/g"),
            ("g/", "https://a.example:444/b/c/g/"),
            ("/g", "https://a.example:444/g"),
            ("//g.example", "https://g.example/"),
            ("?y", "https://a.example:444/b/c/d?y"),
            ("g?y/../x", "https://a.example:444/b/c/g?y/../x"),
            ("", "https://a.example:444/b/c/d?q"),
            ("#s", "https://a.example:444/b/c/d?q"),
            (".", "https://a.example:444/b/c/"),
            ("..", "https://a.example:444/b/"),
            ("../g", "https://a.example:444/b/g"),
            ("../../../../g", "https://a.example:444/g"),
            ("/./g/../h", "https://a.example:444/h"),
            ("http://h.example/x", "http://h.example/x"),
            ("HTTP://h.example/x", "http://h.example/x"),
        ] {
            assert_eq!(base.join(location).unwrap().to_string(), shown, "{location}");
        }
        for location in ["ftp://a/", "data:text/html,x", "//user@b.example/", "http:g", "x y", "//"] {
            assert!(base.join(location).is_err(), "{location}: {:?}", base.join(location));
        }
    }
}
