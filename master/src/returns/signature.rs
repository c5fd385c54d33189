//! Signatures of returns (§6.3).

use brine_protocol::keys::SignAlg;
use brine_protocol::request::{Request, verify_load_signature};
use brine_protocol::value::ValueExt as _;

use super::ReturnIntake;
use crate::keys::MinionKey;
use crate::refusals::Who;

impl ReturnIntake {
    /// Checks a return's signature. A signature must be the sender's own, and a return without one may be refused.
    pub(super) fn check_signature(&self, request: &Request, key: &MinionKey) -> Result<(), &'static str> {
        let id = &request.id;
        if !request.load.has("sig") {
            return if self.rules.must_be_signed {
                Err("it is not signed (require_minion_sign_messages)")
            } else {
                Ok(())
            };
        }
        let alg = match request.sig_algo.as_deref().map(str::parse::<SignAlg>) {
            None => SignAlg::default(),
            Some(Ok(alg)) => alg,
            Some(Err(_)) => return Err("it is signed by an unknown algorithm"),
        };
        match key.public.as_ref().and_then(|key| verify_load_signature(&request.load, key, alg)) {
            Some(true) => Ok(()),
            // The channel has proved the sender in any case.
            _ if !self.rules.refuses_bad_signatures => {
                let said = format!("the signature of a return of {id} is not the minion's, and it is taken");
                self.refusals.log(Who::Minion(id), &said);
                Ok(())
            }
            _ => Err("its signature is not the minion's"),
        }
    }
}
