//! Salt's `file.get_managed`: the content that a source has, and its hash.

use brine_guest::Value;
use brine_guest::changes::{self, Kind};
use brine_guest::hash::sha256;
use brine_guest::url::redacted;

use super::Trouble;
use super::body::{self, Body};
use super::source::{Place, digest};
use super::sums::{self, Sum};
use super::template::{self, Names};

/// What is asked for.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) source: Option<String>,
    pub(crate) source_hash: Value,
    pub(crate) source_hash_name: Option<String>,
    pub(crate) skip_verify: bool,
    pub(crate) use_etag: bool,
    pub(crate) template: Option<String>,
    pub(crate) saltenv: String,
    /// The template's variables.
    pub(crate) names: Names,
}

/// The content, and the hash that it has or must have.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) body: Body,
    pub(crate) sum: Option<Sum>,
}

impl Asked {
    fn sum(&self, source: &str) -> Result<Sum, Trouble> {
        let hash_name = self.source_hash_name.as_deref();
        sums::of(&self.name, source, &self.source_hash, hash_name, &self.saltenv).map_err(|trouble| match trouble {
            Trouble::Raised(why) => Trouble::Raised(why),
            other => Trouble::Said(format!("Unable to manage file: {}", other.text())),
        })
    }

    /// Finds the content; none without a source.
    pub(crate) fn get(&self) -> Result<Option<Got>, Trouble> {
        let Some(source) = self.source.as_deref() else { return Ok(None) };
        let place = Place::of(source, &self.saltenv);
        let hash_is_said = self.source_hash.truthy();
        let got = match place {
            Place::Master { path, saltenv } => {
                let Some(said) = digest(&path, &saltenv).map_err(Trouble::Failed)? else {
                    let text = format!("Source file {source} not found in saltenv '{}'", self.saltenv);
                    return Err(Trouble::Said(text));
                };
                let sum = Sum { kind: said.hash_type, hex: said.hsum.to_ascii_lowercase() };
                Got { body: Body::Master { path, saltenv, size: said.size }, sum: Some(sum) }
            }
            Place::Local(path) => {
                let missing = || Trouble::Said(format!("Local file source {path} does not exist"));
                if !path.starts_with('/') {
                    return Err(missing());
                }
                let entry = changes::look_with_hash(&path, true).map_err(Trouble::Failed)?.ok_or_else(missing)?;
                if entry.kind != Kind::Regular {
                    return Err(Trouble::Raised(format!("[Errno 21] Is a directory: '{path}'")));
                }
                let sum = match hash_is_said && !self.skip_verify {
                    true => Some(self.sum(source)?),
                    false => entry.sha256.map(Sum::sha256),
                };
                Got { body: Body::Local { path, size: entry.size }, sum }
            }
            Place::Web(url) => {
                let sum = match (self.skip_verify, hash_is_said) {
                    (false, true) => Some(self.sum(source)?),
                    (false, false) if !self.use_etag => {
                        return Err(Trouble::Said(format!(
                            "Unable to verify upstream hash of source file {}, please set source_hash or set skip_verify to \
                             True",
                            redacted(source)
                        )));
                    }
                    _ => None,
                };
                Got { body: Body::Web(url), sum }
            }
            Place::Other(url) => {
                let why = "salt, http, https and files of this host are fetched";
                return Err(Trouble::Said(format!("Failed to cache {}: {why}", redacted(&url))));
            }
        };
        match self.template.as_deref() {
            None => Ok(Some(got)),
            Some(engine) => self.render(engine, source, &got).map(Some),
        }
    }

    fn render(&self, engine: &str, source: &str, got: &Got) -> Result<Got, Trouble> {
        let web = matches!(got.body, Body::Web(_));
        let loaded = match &got.sum {
            // What is rendered is what has the hash.
            Some(sum) => got.body.load_checked(sum),
            None => got.body.load(),
        };
        let text = loaded.map_err(|why| match web {
            true => Trouble::Said(format!("Failed to cache {}: {why}", redacted(source))),
            false => Trouble::Failed(why),
        })?;
        let rendered = template::render(engine, &text, &self.saltenv, &self.names)?;
        let sum = Some(Sum::sha256(sha256(&rendered)));
        Ok(Got { body: Body::Bytes(rendered), sum })
    }
}

impl Got {
    /// Fetches what is on the web, so that it is fetched once.
    pub(crate) fn fetched(self) -> Result<Self, Trouble> {
        let Body::Web(url) = &self.body else { return Ok(self) };
        let failed = |why| Trouble::Said(format!("Failed to cache {}: {why}", redacted(url)));
        let bytes = body::fetch(url).map_err(failed)?;
        let sum = self.sum.or_else(|| Some(Sum::sha256(sha256(&bytes))));
        Ok(Self { body: Body::Bytes(bytes), sum })
    }
}
