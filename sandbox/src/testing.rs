//! Helpers shared by the unit tests.

use std::sync::Arc;

use brine_sandbox_wire::{JobContext, Sha256Hex};
use rmpv::Value;

use crate::policy::Subject;
use crate::{Caller, ModuleName, Policy, Settings};

/// Parses YAML as the minion parses its configuration.
pub(crate) fn yaml(text: &str) -> Value {
    brine_protocol::config::yaml::load(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the policy of a `sandbox:` section.
pub(crate) fn policy(text: &str) -> Policy {
    Settings::read(&yaml(text)).unwrap_or_else(|error| panic!("{error}: {text}")).policy
}

pub(crate) fn name(text: &str) -> ModuleName {
    text.parse().unwrap()
}

pub(crate) fn sha(byte: u8) -> Sha256Hex {
    Sha256Hex::from([byte; 32])
}

/// Returns every interface that can be granted.
pub(crate) fn all_imports() -> Vec<String> {
    let interfaces = crate::Capability::ALL.into_iter().flat_map(crate::Capability::interfaces);
    interfaces.map(|interface| format!("{interface}@1.0.0")).collect()
}

/// Returns the caller for a function of a standard module that imports every interface, with the grants of this policy.
pub(crate) fn caller(policy: &Policy, module: &str, function: &str, master: Option<&str>) -> Caller {
    let module = name(module);
    let subject = Subject { name: &module, standard: true, sha256: sha(1), signers: &[] };
    let functions = [function, "other"];
    let may = |import: &String| policy.decide(&subject, std::slice::from_ref(import), &functions).is_ok();
    let imports: Vec<String> = all_imports().into_iter().filter(may).collect();
    let granted = policy.decide(&subject, &imports, &functions).unwrap().of(function, master).unwrap();
    let job = JobContext {
        function: format!("{module}.{function}"),
        minion_id: "web1".into(),
        master: master.map(str::to_owned),
        typed: master.is_none(),
        ..JobContext::default()
    };
    let wall = std::time::Duration::from_secs(1);
    let runs_states = policy.runs_states(&module, true);
    Caller::new(Arc::new(job), module, sha(1), Arc::clone(&granted.grants), wall)
        .with_remedy(granted.remedy())
        .running_states(runs_states)
}
