//! Everything between a module's bytes and an entry that can be switched in: check, compile, describe, grant.

use std::collections::BTreeMap;
use std::sync::Arc;

use brine_component::ModuleInfo;
use brine_sandbox_wire::Sha256Hex;
use bytes::Bytes;

use super::decisions::Seen;
use super::held::Why;
use super::{Decided, Entry, Files, Held, InstallError, Module, Store, hash, off_thread};
use crate::ModuleName;
use crate::kernel::loadable::Loadable;
use crate::policy::{Policy, Subject};
use crate::signature::{self, KeyId, Signed};

/// Requirements on a module beside signature and grants.
pub(crate) struct Rules<'a> {
    standard: bool,
    /// The version that it replaces automatically, and whose permissions it may not exceed.
    before: Option<&'a Entry>,
    /// Whether it came from a master. Then it may not be older than the newest version seen, nor a version that was
    /// rolled back.
    fresh: bool,
}

impl<'a> Rules<'a> {
    /// Returns the rules for standard modules.
    pub(crate) fn standard() -> Self {
        Self { standard: true, before: None, fresh: false }
    }

    /// Returns the rules for modules that were admitted before or that the owner admits.
    pub(crate) fn known() -> Self {
        Self { standard: false, before: None, fresh: false }
    }

    /// Returns the rules for modules that a master sends or asks to restore.
    pub(crate) fn fresh(before: Option<&'a Entry>) -> Self {
        Self { standard: false, before, fresh: true }
    }
}

/// What is known of a content before the policy decides on it.
pub(super) struct Examined {
    pub(super) size: u64,
    pub(super) sha256: Sha256Hex,
    /// The signature as it came with the component.
    pub(super) signature: Option<Bytes>,
    pub(super) signed: Signed,
    pub(super) info: ModuleInfo,
}

/// A module that may be switched in.
pub(crate) struct Prepared {
    pub(crate) entry: Entry,
    /// What to remember of it, if a key of the policy signed it.
    pub(crate) seen: Option<Seen>,
    /// Whether it has grants only because the approved version before it had them.
    pub(crate) carried: bool,
}

impl Store {
    /// Checks a module from its size to its grants.
    pub(crate) async fn prepare(
        &self,
        name: &ModuleName,
        files: &Files,
        origin: &str,
        rules: &Rules<'_>,
        decided: &Decided,
    ) -> Result<Prepared, InstallError> {
        // One policy for all checks, even if a reload happens meanwhile.
        let policy = self.policy();
        let examined = self.examine(&policy, name, files, rules.standard).await?;
        self.admit(&policy, name, examined, origin, rules, decided)
    }

    /// Looks at a module's content: its size, hash and signatures, and what the compiler says of it.
    async fn examine(
        &self,
        policy: &Policy,
        name: &ModuleName,
        files: &Files,
        standard: bool,
    ) -> Result<Examined, InstallError> {
        let size = files.wasm.len() as u64;
        let limit = self.compiler.limits.module;
        if size > limit {
            return Err(InstallError::TooLarge { name: name.clone(), size, limit });
        }
        let sha256 = hash(&files.wasm).await;
        if standard {
            self.standard_key.check(name, &files.wasm, files.signature.as_deref())?;
        }
        let signed = signed(policy, name, &files.wasm, files.signature.as_ref()).await?;
        // A module without a required signature is not even compiled.
        policy.decide::<&str>(&Subject { name, standard, sha256, signers: &signed.keys }, &[], &[])?;
        let info = self.described(name, sha256, &files.wasm, standard).await?;
        Ok(Examined { size, sha256, signature: files.signature.clone(), signed, info })
    }

    /// Decides whether a module may be switched in, and with which grants.
    pub(super) fn admit(
        &self,
        policy: &Policy,
        name: &ModuleName,
        examined: Examined,
        origin: &str,
        rules: &Rules<'_>,
        decided: &Decided,
    ) -> Result<Prepared, InstallError> {
        let Examined { size, sha256, signature, signed, info } = examined;
        let subject = Subject { name, standard: rules.standard, sha256, signers: &signed.keys };
        let module = Module { name: name.to_string(), sha256, size, origin: origin.to_owned(), info };
        let seen = is_signed(&signed.keys).then(|| Seen::new(&module.info, signed.time, sha256));

        let approved = decided.approves(sha256);
        let mut why = match rules.fresh && !approved {
            true => not_newer(policy, &subject, decided, seen.as_ref()),
            false => Why::default(),
        };
        // A replaced standard module does not count as the version before.
        let before = rules.before.filter(|before| !before.is_standard());
        if let (Some(before), false) = (before, approved) {
            why.more = policy.newly_asked(&subject, &before.module.info.imports, &module.info.imports);
        }
        // An update of an approved version that asks for no more is approved with it.
        let carried =
            !approved && why.more.is_empty() && before.is_some_and(|before| decided.approves(before.module.sha256));
        let functions: Vec<&str> = module.info.all().map(|function| function.name.as_str()).collect();
        let decide = |approved| policy.decide_on(&subject, &module.info.imports, &functions, approved);
        let (grants, carried) = match decide(approved) {
            Ok(grants) => (Ok(grants), false),
            Err(_) if carried => (decide(true), true),
            Err(refused) => (Err(refused), false),
        };
        match grants {
            Ok(grants) if why.is_empty() => {
                let interfaces = grants.interfaces().map(str::to_owned).collect();
                let functions = module.info.all().count();
                let entry = Entry {
                    loadable: Arc::new(Loadable::new(name.clone(), sha256, rules.standard, interfaces, functions)),
                    module: Arc::new(module),
                    grants,
                    signers: signed.keys,
                    signed_time: signed.time,
                    signature,
                };
                return Ok(Prepared { entry, seen, carried });
            }
            Ok(_) => {}
            // A module that no approval would admit is refused and not held.
            Err(refused) if !rules.fresh || decide(true).is_err() => return Err(refused.into()),
            Err(refused) => why.more.extend(refused.missing),
        }
        let lines = granting(policy, &subject, &why);
        Err(InstallError::Held(Box::new(Held {
            module: Arc::new(module),
            name: name.clone(),
            time: signed.time,
            lines,
            signature,
            is_update: before.is_some(),
            why,
            signers: signed.keys,
        })))
    }

    /// Returns the held version as it is to be reported now. None if it cannot be approved.
    pub(super) async fn held_as(&self, name: &ModuleName, files: &Files) -> Option<Held> {
        let before = self.get(name.as_str());
        let decided = self.decided(name).unwrap_or_default();
        let rules = Rules::fresh(before.as_deref());
        match self.prepare(name, files, &files.origin(), &rules, &decided).await {
            Err(InstallError::Held(held)) => Some(*held),
            // The configuration admits it by now. The next sync installs it if the master still has it.
            Ok(prepared) => {
                let Entry { loadable, module, signers, signed_time: time, signature, .. } = prepared.entry;
                let name = loadable.name.clone();
                let is_update = before.is_some_and(|before| !before.is_standard());
                let why = Why { more: BTreeMap::new(), older: None, rolled_back: false };
                Some(Held { module, name, signers, time, signature, is_update, why, lines: Vec::new() })
            }
            Err(error) => {
                tracing::warn!(module = %name, "what is held of it cannot be let in: {error}");
                None
            }
        }
    }
}

async fn signed(
    policy: &Policy,
    name: &ModuleName,
    wasm: &Bytes,
    signature: Option<&Bytes>,
) -> Result<Signed, InstallError> {
    let (Some(signature), false) = (signature, policy.keys.is_empty()) else { return Ok(Signed::default()) };
    let (name, wasm, signature) = (name.clone(), wasm.clone(), signature.clone());
    let (keys, revoked) = (policy.keys.clone(), policy.revoked.keys.clone());
    Ok(off_thread(move || signature::signed(&name, &wasm, Some(&signature), &keys, &revoked)).await?)
}

/// Checks whether a key of the policy is among the signers.
pub(super) fn is_signed(signers: &[KeyId]) -> bool {
    signers.iter().any(|key| *key != KeyId::UNKNOWN)
}

/// Checks whether a rollback left this content, and whether the same signers have signed a newer version.
fn not_newer(policy: &Policy, subject: &Subject<'_>, decided: &Decided, seen: Option<&Seen>) -> Why {
    let older = seen.zip(decided.newest()).filter(|(seen, newest)| seen.is_older_than(newest));
    Why {
        rolled_back: decided.was_rolled_back(subject.sha256),
        older: older.map(|(_, newest)| newest.clone()).filter(|_| !policy.may_be_older(subject)),
        ..Why::default()
    }
}

fn granting(policy: &Policy, subject: &Subject<'_>, why: &Why) -> Vec<crate::policy::Line> {
    policy.granting(subject, &why.capabilities())
}
