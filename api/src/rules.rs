//! Who may speak to salt-api at all, by address and by origin: settings of `rest_cherrypy`, read and judged. What a
//! caller may do in the master, the master judges.

use std::net::IpAddr;

use axum::http::{StatusCode, Uri};
use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::value::{Value, ValueExt as _};

use crate::address::{ClientAddress, Networks};
use crate::problem::Problem;

/// Stands for all users, all addresses, or all origins.
const ALL: &str = "*";

/// The settings.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Who names callers' addresses.
    pub trusted_proxies: Networks,
    /// Whether there are log-in and log-out, and a session's cookie counts.
    pub sessions: bool,
    /// Other sites whose pages may use salt-api.
    pub origins: Origins,
    authorized_ips: Networks,
    acl: Option<Acl>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            trusted_proxies: Networks::default(),
            sessions: true,
            origins: Origins::default(),
            authorized_ips: Networks::default(),
            acl: None,
        }
    }
}

impl Rules {
    /// Reads the settings.
    ///
    /// # Errors
    /// When one has a wrong value.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let wrong = |row: &settings::Row, why: String| config.wrong(row.name, why);
        let networks = |setting: settings::Setting<Vec<String>>| {
            let texts = config.get(setting)?;
            Networks::parse(texts.iter().map(String::as_str))
                .map_err(|text| wrong(&setting.row, format!("addresses and networks; {text:?} is neither")))
        };
        let origins = Origins::parse(&config.get(settings::API_CORS_ORIGINS)?)
            .map_err(|why| wrong(&settings::API_CORS_ORIGINS.row, why))?;
        // An empty mapping is as none, as in Salt.
        let acl = config.value(settings::API_ACL.row.name).filter(|acl| acl.truthy()).map(Acl::parse).transpose();
        Ok(Self {
            trusted_proxies: networks(settings::API_TRUSTED_PROXIES)?,
            sessions: config.get(settings::API_ENABLE_SESSIONS)?,
            origins,
            authorized_ips: networks(settings::API_AUTHORIZED_IPS)?,
            acl: acl.map_err(|why| wrong(&settings::API_ACL.row, why))?,
        })
    }

    /// Judges an address.
    ///
    /// # Errors
    /// 403 with Salt's words, when `authorized_ips` is set and does not have it.
    pub fn check_address(&self, address: ClientAddress) -> Result<(), Problem> {
        if self.authorized_ips.is_empty() || self.authorized_ips.contains(address.0) {
            return Ok(());
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "Bad IP"))
    }

    /// Judges a user at an address, before a password is checked and after a token is.
    ///
    /// # Errors
    /// 401, when `api_acl` is set and does not allow the pair.
    pub fn check_user(&self, user: &str, address: ClientAddress) -> Result<(), Problem> {
        match &self.acl {
            Some(acl) if !acl.allows(user, address.0) => Err(Problem::unauthorized()),
            _ => Ok(()),
        }
    }
}

/// `api_acl`: the addresses of each user.
#[derive(Debug, Clone, Default)]
struct Acl {
    users: Vec<(String, Addresses)>,
}

/// The addresses of a user.
#[derive(Debug, Clone)]
struct Addresses {
    all: bool,
    listed: Networks,
}

impl Acl {
    /// Reads `users: {NAME: [ADDRESS, …]}`. As in Salt, without users nobody is allowed.
    fn parse(value: &Value) -> Result<Self, String> {
        let form = || "a mapping as in users: {ann: [192.0.2.7], '*': ['*']}".to_owned();
        let entries = value.entries().ok_or_else(form)?;
        if entries.iter().any(|(key, _)| key.text() != Some("users")) {
            return Err(form());
        }
        let users = match value.get("users") {
            None | Some(Value::Nil) => return Ok(Self::default()),
            Some(users) => users.entries().ok_or_else(form)?,
        };
        let user = |(name, addresses): &(Value, Value)| {
            let name = name.text().ok_or_else(form)?;
            let texts = match addresses {
                Value::Array(items) => items.iter().map(|item| item.text().ok_or_else(form)).collect(),
                one => one.text().ok_or_else(form).map(|one| vec![one]),
            };
            let texts: Vec<&str> = texts?;
            let listed = Networks::parse(texts.iter().copied().filter(|text| *text != ALL))
                .map_err(|text| format!("addresses and networks of {name}; {text:?} is neither"))?;
            Ok((name.to_owned(), Addresses { all: texts.contains(&ALL), listed }))
        };
        users.iter().map(user).collect::<Result<_, String>>().map(|users| Self { users })
    }

    /// A user that is named has only the entry of that name; `*` is for the others.
    fn allows(&self, user: &str, address: IpAddr) -> bool {
        let entry = |name: &str| self.users.iter().find(|(known, _)| known == name);
        entry(user)
            .or_else(|| entry(ALL))
            .is_some_and(|(_, addresses)| addresses.all || addresses.listed.contains(address))
    }
}

/// `cors_origins`: other sites whose pages may read answers.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    all: bool,
    /// In the form that browsers send.
    listed: Vec<String>,
}

/// What `cors_origins` says about an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Nothing: its pages read no answer.
    None,
    /// Its pages may call with a token in a header, never with the cookie.
    WithoutCookie,
    /// It is named: its pages may use the cookie too.
    Full,
}

impl Origins {
    /// Reads origins: scheme, host, and a port that is not the scheme's own.
    fn parse(texts: &[String]) -> Result<Self, String> {
        let mut origins = Self::default();
        for text in texts {
            if text == ALL {
                origins.all = true;
                continue;
            }
            let origin =
                origin(text).ok_or_else(|| format!("origins as in https://console.example; {text:?} is none"))?;
            origins.listed.push(origin);
        }
        Ok(origins)
    }

    /// Judges the header `Origin` of a request.
    pub fn trust(&self, header: &str) -> Trust {
        let named = origin(header).is_some_and(|origin| self.listed.contains(&origin));
        match (named, self.all) {
            (true, _) => Trust::Full,
            (false, true) => Trust::WithoutCookie,
            (false, false) => Trust::None,
        }
    }
}

/// Returns an origin in one form: lower case, without the scheme's own port. None, if the text is anything else, such as
/// `null`, or has a path.
pub fn origin(text: &str) -> Option<String> {
    let uri: Uri = text.parse().ok()?;
    let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"))?;
    let authority = uri.authority()?;
    let is_bare = text.len() == scheme.len() + "://".len() + authority.as_str().len();
    let host = host(authority.as_str(), scheme)?;
    is_bare.then(|| format!("{scheme}://{host}"))
}

/// Returns host and port of an authority in one form: lower case, without the scheme's own port. None, if it has a user
/// or no host.
pub fn host(authority: &str, scheme: &str) -> Option<String> {
    let authority: axum::http::uri::Authority = authority.parse().ok()?;
    if authority.as_str().contains('@') || authority.host().is_empty() {
        return None;
    }
    let host = authority.host().to_ascii_lowercase();
    let own = if scheme == "https" { 443 } else { 80 };
    let after = &authority.as_str()[authority.host().len()..];
    match after.strip_prefix(':').map(str::parse::<u16>) {
        None if after.is_empty() => Some(host),
        Some(Ok(port)) if port == own => Some(host),
        Some(Ok(port)) => Some(format!("{host}:{port}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use brine_protocol::config::Role;

    use super::*;

    fn rules(yaml: &str) -> Result<Rules, String> {
        let yaml = format!("rest_cherrypy: {{{yaml}}}");
        let config = Config::from_yaml(&yaml, Path::new("/etc/salt/master"), Role::Master).unwrap();
        Rules::from_config(&config).map_err(|error| error.to_string())
    }

    fn at(address: &str) -> ClientAddress {
        ClientAddress(address.parse().unwrap())
    }

    #[test]
    fn authorized_ips_are_the_only_ones() {
        assert_eq!(rules("").unwrap().check_address(at("192.0.2.1")), Ok(()));
        let rules = rules("authorized_ips: [127.0.0.1, 10.0.0.0/8]").unwrap();
        assert_eq!(rules.check_address(at("10.1.2.3")), Ok(()));
        assert_eq!(rules.check_address(at("192.0.2.1")).unwrap_err().status(), StatusCode::FORBIDDEN);
    }

    /// As Salt's documentation of `salt_api_acl_tool` says.
    #[test]
    fn api_acl_pairs_users_and_addresses() {
        let allowed =
            |yaml: &str, user: &str, address: &str| rules(yaml).unwrap().check_user(user, at(address)).is_ok();
        assert!(allowed("", "ann", "192.0.2.1"));
        let acl = "api_acl: {users: {'*': [1.1.1.1, 1.1.1.2], foo: [8.8.4.4], bar: ['*'], net: 10.0.0.0/8}}";
        for (user, address, is_allowed) in [
            ("ann", "1.1.1.2", true),
            ("ann", "8.8.4.4", false),
            ("foo", "8.8.4.4", true),
            ("foo", "1.1.1.1", false),
            ("bar", "192.0.2.1", true),
            ("net", "10.9.9.9", true),
            ("FOO", "8.8.4.4", false),
        ] {
            assert_eq!(allowed(acl, user, address), is_allowed, "{user} at {address}");
        }
        assert!(!allowed("api_acl: {users: {foo: ['*']}}", "ann", "1.1.1.1"), "without *, others are refused");
        assert!(allowed("api_acl: {}", "foo", "1.1.1.1") && !allowed("api_acl: {users: {}}", "foo", "1.1.1.1"));
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_name() {
        for (yaml, name) in [
            ("trusted_proxies: [proxy]", "rest_cherrypy:trusted_proxies"),
            ("authorized_ips: ['*']", "rest_cherrypy:authorized_ips"),
            ("api_acl: [foo]", "rest_cherrypy:api_acl"),
            ("api_acl: {foo: ['*']}", "rest_cherrypy:api_acl"),
            ("api_acl: {users: {foo: [host]}}", "rest_cherrypy:api_acl"),
            ("api_acl: {users: {foo: [1]}}", "rest_cherrypy:api_acl"),
            ("cors_origins: [console.example]", "rest_cherrypy:cors_origins"),
            ("cors_origins: ['https://console.example/']", "rest_cherrypy:cors_origins"),
            ("cors_origins: ['null']", "rest_cherrypy:cors_origins"),
        ] {
            let why = rules(yaml).unwrap_err();
            assert!(why.contains(name), "{yaml}: {why}");
        }
    }

    #[test]
    fn an_origin_has_one_form() {
        for (text, form) in [
            ("https://Console.Example", Some("https://console.example")),
            ("https://console.example:443", Some("https://console.example")),
            ("http://console.example:443", Some("http://console.example:443")),
            ("http://[2001:DB8::1]:80", Some("http://[2001:db8::1]")),
            ("http://[::1]:8000", Some("http://[::1]:8000")),
            ("null", None),
            ("", None),
            ("*", None),
            ("console.example", None),
            ("file://x", None),
            ("https://console.example/", None),
            ("https://console.example?x", None),
            ("https://ann@console.example", None),
            ("https://console.example:", None),
            ("https://console.example:99999", None),
            ("https://console.example, https://evil.example", None),
        ] {
            assert_eq!(origin(text).as_deref(), form, "{text}");
        }
    }

    #[test]
    fn a_star_never_has_the_cookie() {
        let trust = |yaml: &str, origin: &str| rules(yaml).unwrap().origins.trust(origin);
        assert_eq!(trust("", "https://console.example"), Trust::None);
        let both = "cors_origins: ['*', 'https://console.example']";
        assert_eq!(trust(both, "https://CONSOLE.example:443"), Trust::Full);
        assert_eq!(trust(both, "https://evil.example"), Trust::WithoutCookie);
        assert_eq!(trust(both, "null"), Trust::WithoutCookie);
        assert_eq!(trust("cors_origins: 'https://console.example'", "http://console.example"), Trust::None);
    }
}
