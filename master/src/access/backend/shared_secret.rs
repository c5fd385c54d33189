//! `sharedsecret`: one password for whoever says a name, for a front end that has checked the name itself.

use brine_protocol::secret::Secret;
use subtle::ConstantTimeEq;

use super::Backend;

pub(super) struct SharedSecret(Secret<String>);

impl SharedSecret {
    pub(super) fn new(secret: Option<Secret<String>>) -> Result<Self, String> {
        secret.map(Self).ok_or_else(|| "sharedsecret is not set".to_owned())
    }
}

impl Backend for SharedSecret {
    fn accepts(&self, _username: &str, password: &str) -> Result<bool, String> {
        Ok(self.0.expose().as_bytes().ct_eq(password.as_bytes()).into())
    }

    fn groups(&self, _username: &str) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
}
