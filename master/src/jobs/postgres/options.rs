//! `returner.postgres.*` and `returner.pgjsonb.*`: the address of a server and the master's credentials, with the names
//! and defaults of Salt's returners.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::config::settings::{self, Row, Typed as _};
use brine_protocol::config::{Config, ConfigError};
use brine_protocol::secret::Secret;
use brine_protocol::value::ValueExt;

use crate::jobs::returner::{ReturnerKind, ReturnerName};

/// The settings of one server and database.
#[derive(Debug, Clone)]
pub struct PostgresOpts {
    /// `host`: a name, an address, or the folder of a unix socket.
    pub host: String,
    /// `port`.
    pub port: u16,
    /// `user`.
    pub user: String,
    /// `passwd`; for pgjsonb `pass`.
    pub password: Secret<String>,
    /// `db`.
    pub db: String,
    /// `connect_timeout`.
    pub connect_timeout: Duration,
    /// `sslmode`.
    pub ssl: SslMode,
    /// `sslrootcert`: the certificates that may sign the server's.
    pub ssl_root: Option<PathBuf>,
    /// `sslcert` and `sslkey`: the master's own certificate and key.
    pub ssl_own: Option<(PathBuf, PathBuf)>,
}

/// libpq's `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// Without TLS.
    Disable,
    /// With TLS if the server offers it, without checking its certificate. libpq's default.
    Prefer,
    /// With TLS, without checking the certificate unless `sslrootcert` is set.
    Require,
    /// With TLS, and the certificate must have a known signer.
    VerifyCa,
    /// As `VerifyCa`, and the certificate must be for this host.
    VerifyFull,
}

impl PostgresOpts {
    /// Reads the settings of every server that the configuration mentions, and of the returners `named`, whose settings
    /// may all be defaults.
    ///
    /// # Errors
    /// If a setting has a wrong type or value, or if the configuration names a server and this build has no PostgreSQL.
    pub(crate) fn all(c: &Config, named: &[ReturnerName]) -> Result<HashMap<ReturnerName, Self>, ConfigError> {
        let mut names = named.to_vec();
        for key in c.keys() {
            // The forms `returner.postgres.host`, `returner.postgres: {host: …}` and `NAME.returner.postgres.host`.
            let parts: Vec<&str> = key.split('.').collect();
            let (config, kind) = match parts.as_slice() {
                ["returner", kind] | ["returner", kind, _] => (None, kind),
                [config, "returner", kind] | [config, "returner", kind, _] => (Some(*config), kind),
                _ => continue,
            };
            let Some(kind) = ReturnerKind::parse(kind) else { continue };
            let name = ReturnerName { kind, config: config.map(str::to_owned) };
            // Parsed from its text, which is its name in the outbox.
            match ReturnerName::parse(&name.to_string()) {
                Some(name) if !names.contains(&name) => names.push(name),
                Some(_) => {}
                None => tracing::warn!("the setting {key} is ignored: a name has letters, digits, _ and -"),
            }
        }
        if let Some(name) = names.first().filter(|_| !cfg!(feature = "postgres")) {
            let part = format!("the returner {name}");
            return Err(ConfigError::NotBuilt { file: c.path().to_owned(), part, feature: "postgres" });
        }
        names.into_iter().map(|name| Ok((name.clone(), Self::read(c, &name)?))).collect()
    }

    fn read(c: &Config, name: &ReturnerName) -> Result<Self, ConfigError> {
        let plain = format!("returner.{}", name.kind.name());
        let places: Vec<String> = match &name.config {
            Some(config) => vec![format!("{config}.{plain}"), plain],
            None => vec![plain],
        };
        let wrong = |key: &str, expected: String| Err(c.wrong(&format!("{}.{key}", places[0]), expected));
        // An empty setting counts as unset, as in Salt.
        let find = |key: &str| {
            let found = places.iter().find_map(|place| {
                let own = c.value(place).and_then(|all| all.get(key)).filter(|value| value.truthy());
                own.or_else(|| c.value(&format!("{place}.{key}")).filter(|value| value.truthy()))
            });
            // The YAML in Salt's documentation writes None, which YAML reads as text.
            found.map(ValueExt::python_str).filter(|text| text != "None")
        };
        let or_default = |found: Option<String>, row: Row| {
            found.unwrap_or_else(|| row.master.map_or("", |side| side.default).to_owned())
        };
        let text = |row: Row| or_default(find(row.name.rsplit('.').next().unwrap_or_default()), row);
        let password = match name.kind {
            ReturnerKind::Postgres => find("passwd"),
            ReturnerKind::Pgjsonb => find("pass"),
        };
        let port = settings::POSTGRES_PORT.row;
        let Ok(port) = text(port).parse() else { return wrong("port", port.kind.to_string()) };
        let timeout = settings::POSTGRES_CONNECT_TIMEOUT.row;
        let seconds = text(timeout).parse::<u64>().ok().and_then(|n| u64::read(&n.into(), timeout.kind, c.dir()));
        let Some(seconds) = seconds else { return wrong("connect_timeout", timeout.kind.to_string()) };
        let sslmode = settings::POSTGRES_SSLMODE.row;
        let ssl = match text(sslmode).as_str() {
            "prefer" | "allow" => SslMode::Prefer,
            "disable" => SslMode::Disable,
            "require" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" => SslMode::VerifyFull,
            _ => return wrong("sslmode", sslmode.kind.to_string()),
        };
        if find("sslcrl").is_some() {
            return wrong("sslcrl", "nothing: revocation lists are not read; leave it out".to_owned());
        }
        let ssl_own = match (find("sslcert"), find("sslkey")) {
            (Some(cert), Some(key)) => Some((cert.into(), key.into())),
            (None, None) => None,
            _ => return wrong("sslcert", "a file, together with sslkey".to_owned()),
        };
        Ok(Self {
            host: text(settings::POSTGRES_HOST.row),
            port,
            user: text(settings::POSTGRES_USER.row),
            password: Secret::new(or_default(password, settings::POSTGRES_PASSWD.row)),
            db: text(settings::POSTGRES_DB.row),
            connect_timeout: Duration::from_secs(seconds),
            ssl,
            ssl_root: find("sslrootcert").map(PathBuf::from),
            ssl_own,
        })
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::Role;

    use super::*;

    fn all(yaml: &str, named: &[&str]) -> Result<HashMap<String, PostgresOpts>, ConfigError> {
        let config = Config::from_yaml(yaml, std::path::Path::new("/x/master"), Role::Master).unwrap();
        let named: Vec<_> = named.iter().map(|name| ReturnerName::parse(name).unwrap()).collect();
        Ok(PostgresOpts::all(&config, &named)?.into_iter().map(|(name, opts)| (name.to_string(), opts)).collect())
    }

    #[cfg(not(feature = "postgres"))]
    #[test]
    fn a_build_without_postgresql_refuses_its_settings() {
        assert!(all("id: m", &[]).unwrap().is_empty());
        let error = all("returner.pgjsonb.host: x", &[]).unwrap_err().to_string();
        assert!(
            error.contains("/x/master names the returner pgjsonb") && error.contains("feature postgres"),
            "{error}"
        );
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn settings_are_salts() {
        assert!(all("id: m", &[]).unwrap().is_empty());
        let found = all("id: m", &["postgres"]).unwrap();
        let opts = &found["postgres"];
        assert_eq!(
            (&*opts.host, opts.port, &*opts.user, &*opts.db, opts.password.expose().as_str(), opts.ssl),
            ("localhost", 5432, "salt", "salt", "salt", SslMode::Prefer)
        );
        let yaml = "returner.postgres.host: a\nreturner.postgres.port: '5433'\nother.returner.postgres.host: b\nreturner.postgres.passwd: \
                    geheim\nreturner.pgjsonb: {host: c, pass: d, sslmode: None}\nother.returner.postgres.db: ''\n";
        let found = all(yaml, &[]).unwrap();
        let told = |name: &str| (found[name].host.clone(), found[name].port, found[name].password.expose().clone());
        assert_eq!(told("postgres"), ("a".to_owned(), 5433, "geheim".to_owned()));
        assert_eq!(told("other.postgres"), ("b".to_owned(), 5433, "geheim".to_owned()));
        assert_eq!(told("pgjsonb"), ("c".to_owned(), 5432, "d".to_owned()));
        assert_eq!(found.len(), 3);
        assert!(!format!("{found:?}").contains("geheim"), "passwords are never printed");
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn mistakes_are_named() {
        for (line, words) in [
            ("port: 70000", "returner.pgjsonb.port"),
            ("sslmode: yes please", "verify-full"),
            ("sslcert: /a", "sslkey"),
            ("connect_timeout: 0.5", "connect_timeout"),
        ] {
            let error = all(&format!("returner.pgjsonb.{line}"), &[]).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
