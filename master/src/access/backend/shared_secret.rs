//! `sharedsecret`: one password for every user name, for a front end that has authenticated the user itself.

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
    fn check(&self, _username: &str, password: &str) -> Result<Option<Vec<String>>, String> {
        let right = bool::from(self.0.expose().as_bytes().ct_eq(password.as_bytes()));
        Ok(right.then(Vec::new))
    }
}
