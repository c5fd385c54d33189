//! The arguments of the state `installed`.

use brine_apt::arguments::Keywords;
use brine_guest::{Result, Value};

use crate::available;

/// What a state asks for.
pub(super) struct Asked {
    pub pkgs: Value,
    pub sources: Value,
    pub refresh: bool,
    pub fromrepo: Option<String>,
    pub allow_updates: bool,
    pub normalize: bool,
    pub ignore_epoch: Option<bool>,
    pub reinstall: bool,
    pub saltenv: String,
    pub keywords: Keywords,
}

impl Asked {
    pub(super) fn read(name: &str, keywords: &Keywords) -> Result<Self> {
        let given = |key: &str| keywords.get(key).cloned().unwrap_or_default();
        let (mut pkgs, sources) = (given("pkgs"), given("sources"));
        if !name.is_empty() && !pkgs.truthy() && !sources.truthy() {
            let version = keywords.get("version").filter(|version| version.truthy());
            pkgs = Value::List(vec![match version {
                Some(version) => Value::dict([(name, version.to_text().into())]),
                None => name.into(),
            }]);
        }
        Ok(Self {
            pkgs,
            sources,
            refresh: available::is_due(&given("refresh"))?,
            fromrepo: keywords.text("fromrepo").filter(|repo| !repo.is_empty()),
            allow_updates: keywords.truthy("allow_updates"),
            normalize: keywords.get("normalize").is_none_or(Value::truthy),
            ignore_epoch: keywords.get("ignore_epoch").filter(|value| **value != Value::None).map(Value::truthy),
            reinstall: keywords.truthy("reinstall"),
            saltenv: super::saltenv(),
            keywords: keywords.clone(),
        })
    }

    /// Whether packages are to be held back (true), to be held back no longer, or neither.
    pub(super) fn hold(&self) -> Option<bool> {
        self.keywords.get("hold").map(Value::truthy)
    }
}
