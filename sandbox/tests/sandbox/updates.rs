//! Updates that are installed automatically, updates that wait for the owner, and the owner's decisions.

use brine_kit::wait::{until, within};
use brine_kit::wat::{number, number_with, wasm};
use brine_kit_sandbox::{caller, job, policy};
use brine_sandbox::{Grants, InstallError, Installed, JobContext, Limits, PolicyOp, Sandbox, Sha256Hex};
use rmpv::Value;
use serde_json::json;

use crate::components::{ASKS, importing};
use crate::support::{Home, call, failure, spawn};

/// Adds an import of `brine:host/modules` to a component.
fn lists(wat: &str) -> String {
    const NAMES: &str = r#"(component
        (import "brine:host/modules@1.0.0" (instance (export "names" (func (result (list string))))))"#;
    wat.replacen("(component", NAMES, 1)
}

/// Adds an import of directories to a component.
fn sees(wat: &str) -> String {
    const METADATA: &str = r#"(component
        (import "brine:host/metadata@1.0.0" (instance
            (export "user-name" (func (param "uid" u32) (result (option string))))))"#;
    wat.replacen("(component", METADATA, 1)
}

/// Returns [`ASKS`] with another number.
fn asks(number: u32) -> String {
    ASKS.replace("i32.const 7", &format!("i32.const {number}"))
}

async fn install(sandbox: &Sandbox, wat: &str) -> Result<Installed, InstallError> {
    sandbox.install("mine", &wasm(wat), None, "base").await
}

fn held(result: Result<Installed, InstallError>) -> Sha256Hex {
    match result {
        Err(InstallError::Held(held)) => held.sha256(),
        other => panic!("not held: {other:?}"),
    }
}

/// Makes a request like a job of `sandbox.FUNCTION`, typed on this host or sent by a master.
async fn decide(sandbox: &Sandbox, function: &str, master: Option<&str>, op: PolicyOp) -> Result<Value, String> {
    let function = format!("sandbox.{function}");
    let context = JobContext { master: master.map(str::to_owned), typed: master.is_none(), ..job("1", &function) };
    sandbox.policy(&caller(context, "sandbox", Grants::default()), op).await
}

async fn approve(sandbox: &Sandbox, sha256: Sha256Hex) -> Result<Value, String> {
    let op = PolicyOp::Approve { name: "mine".into(), sha256: sha256.to_string() };
    decide(sandbox, "approve", None, op).await
}

async fn roll_back(sandbox: &Sandbox, master: Option<&str>) -> Result<Value, String> {
    decide(sandbox, "rollback", master, PolicyOp::Rollback { name: "mine".into() }).await
}

async fn answers(sandbox: &Sandbox, number: u32) {
    assert_eq!(call(sandbox, "mine.number").await.value, Value::from(number));
}

fn field<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |value, key| {
        let entry = value.as_map().and_then(|map| map.iter().find(|(name, _)| name.as_str() == Some(key)));
        entry.map_or(&Value::Nil, |(_, value)| value)
    })
}

async fn listed(sandbox: &Sandbox) -> Value {
    field(&sandbox.report(PolicyOp::List).await.unwrap(), &["mine"]).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn less_switches_by_itself_more_waits_and_its_difference_is_shown() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    assert_eq!(install(&sandbox, &number(1)).await.unwrap(), Installed::New);
    assert_eq!(install(&sandbox, &number(2)).await.unwrap(), Installed::Updated);
    // A default grant does not count as the owner's.
    held(install(&sandbox, &importing("brine:host/grains@1.0.0")).await);
    answers(&sandbox, 2).await;
    let hash = held(install(&sandbox, ASKS).await);
    answers(&sandbox, 2).await;
    let diff = sandbox.report(PolicyOp::Diff { name: "mine".into() }).await.unwrap();
    assert_eq!(field(&diff, &["held", "sha256"]).as_str().unwrap(), hash.to_string());
    let functions = field(&diff, &["functions", "added"]).to_string();
    assert_eq!(functions, r#"["mine.ask() -> bool", "mine.spin()"]"#);
    let permissions = field(&diff, &["permissions", "added", "brine:host/jobs"]);
    assert_eq!(permissions.as_str(), Some("see and end running jobs"));
    let lines = field(&diff, &["lines"]).as_str().unwrap();
    assert!(lines.starts_with("sandbox:\n  modules:\n    mine: {sha256: ") && lines.contains("jobs: true"), "{lines}");
    let command = format!("salt-call --local sandbox.approve mine {hash}");
    assert_eq!(field(&diff, &["approve"]).as_str(), Some(command.as_str()));
    let entry = listed(&sandbox).await;
    assert_eq!((field(&entry, &["held"]), field(&entry, &["usable"])), (&Value::from(true), &Value::from(true)));
    sandbox.shutdown().await;

    // A held update survives a restart. The version in use continues to serve when an update with fewer imports
    // arrives.
    let (sandbox, _grip) = home.start().await;
    assert_eq!(sandbox.held("mine").unwrap().sha256(), hash);
    answers(&sandbox, 2).await;
    assert_eq!(install(&sandbox, &number(4)).await.unwrap(), Installed::Updated);
    answers(&sandbox, 4).await;
    assert!(sandbox.held("mine").is_none());
    let error = sandbox.report(PolicyOp::Diff { name: "mine".into() }).await.unwrap_err();
    assert!(error.starts_with("nothing is held of module mine: is in use"), "{error}");
    sandbox.shutdown().await;
}

/// A minion makes the summary for its master only when its basis has changed.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_changes_the_summary_changes_its_basis() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    let mut before = (sandbox.summary_basis(), sandbox.summary());
    let mut changed = || {
        let now = (sandbox.summary_basis(), sandbox.summary());
        let changed = (before.0 != now.0, before.1 != now.1);
        before = now;
        changed
    };
    install(&sandbox, &number(1)).await.unwrap();
    assert_eq!(changed(), (true, true), "a new module");
    answers(&sandbox, 1).await;
    assert_eq!(changed(), (false, false), "a call");
    held(install(&sandbox, ASKS).await);
    assert_eq!(changed(), (true, true), "a module that is held");
    held(install(&sandbox, &asks(5)).await);
    assert_eq!(changed(), (true, true), "another one that is held");
    sandbox.reload(policy(&json!({ "modules": { "mine": { "grains": true } } })), Limits::default()).await;
    assert!(changed().0, "a policy");
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_approved_is_in_use_and_stays_so_for_what_asks_no_more() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    install(&sandbox, &number(1)).await.unwrap();
    let hash = held(install(&sandbox, &asks(5)).await);
    let answer = approve(&sandbox, hash).await.unwrap();
    assert_eq!(field(&answer, &["state"]).as_str(), Some("in use"));
    assert_eq!(field(&answer, &["has", "jobs"]).as_str(), Some("see and end running jobs"));
    answers(&sandbox, 5).await;
    // The next version asks for the same; the one after that for more.
    assert_eq!(install(&sandbox, &asks(6)).await.unwrap(), Installed::Updated);
    answers(&sandbox, 6).await;
    // An automatic approval is not recorded as the owner's.
    let text = std::fs::read_to_string(home.config.modules_dir.join("decisions.json")).unwrap();
    let mine = serde_json::from_str::<serde_json::Value>(&text).unwrap()["modules"]["mine"].clone();
    assert_eq!(mine["approved"].as_array().unwrap().len(), 1, "{text}");
    assert_eq!(mine["approved"][0]["sha256"].as_str().unwrap(), hash.to_string());
    assert_eq!(mine["followed"][0]["after"].as_str().unwrap(), hash.to_string());
    held(install(&sandbox, &lists(&asks(8))).await);
    answers(&sandbox, 6).await;
    sandbox.shutdown().await;
    let (sandbox, _grip) = home.start().await;
    answers(&sandbox, 6).await;
    let shown = sandbox.report(PolicyOp::Show { name: "mine".into() }).await.unwrap();
    assert!(field(&shown, &["approved"]).as_str().unwrap().contains("with the version before it"), "{shown}");
    sandbox.shutdown().await;

    // The owner's refusal overrides an approval. Without readable decisions nothing is granted.
    let refusing = policy(&json!({ "modules": { "mine": { "jobs": false } } }));
    let mut other = home;
    other.config.settings.policy = refusing;
    let (sandbox, _grip) = other.start().await;
    assert!(!call(&sandbox, "mine.number").await.success);
    sandbox.shutdown().await;
    other.config.settings.policy = Default::default();
    std::fs::remove_file(other.config.modules_dir.join("decisions.json")).unwrap();
    let (sandbox, _grip) = other.start().await;
    let text = failure(&call(&sandbox, "mine.number").await).to_owned();
    assert!(text.contains("imports brine:host/jobs@1.0.0, which is not granted to it"), "{text}");
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_values_is_linked_with_nothing_in_it_until_the_owner_names_them() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    // A first install waits too, and callers get that as the error.
    let hash = held(install(&sandbox, &sees(&number(1))).await);
    let text = failure(&call(&sandbox, "mine.number").await).to_owned();
    assert!(text.contains("It waits for the owner of this host: module mine is held"), "{text}");
    assert!(text.contains("sandbox.approve mine"), "{text}");
    let answer = approve(&sandbox, hash).await.unwrap();
    assert_eq!(field(&answer, &["to_be_named", "filesystem"]).as_str(), Some("see directories of this host"));
    let lines = field(&answer, &["lines"]).as_str().unwrap();
    assert!(lines.contains("filesystem: {}"), "{lines}");
    answers(&sandbox, 1).await;
    // An invalid hash is an error. A content that is not here is approved in advance.
    let op = |sha256: &str| PolicyOp::Approve { name: "mine".into(), sha256: sha256.into() };
    assert!(decide(&sandbox, "approve", None, op("00")).await.unwrap_err().contains("64 hex digits"));
    let answer = approve(&sandbox, Sha256Hex::from([9; 32])).await.unwrap();
    assert!(field(&answer, &["state"]).as_str().unwrap().starts_with("approved in advance"));
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_does_not_lift_what_the_owner_refuses() {
    let home = Home::new().policy(&json!({ "modules": { "mine": { "jobs": false } } }));
    let (sandbox, _grip) = home.start().await;
    install(&sandbox, &number(1)).await.unwrap();
    let error = install(&sandbox, ASKS).await.unwrap_err();
    assert!(matches!(error, InstallError::Policy(_)), "{error}");
    assert!(sandbox.held("mine").is_none());
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_by_a_rollback_does_not_come_back_by_itself() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    let error = roll_back(&sandbox, None).await.unwrap_err();
    assert_eq!(error, "there is no version of module mine to go back to on this minion");
    install(&sandbox, &number(1)).await.unwrap();
    install(&sandbox, &number(2)).await.unwrap();
    let left = sandbox.describe("mine").unwrap().sha256;
    assert!(!field(&listed(&sandbox).await, &["previous"]).is_nil());
    let answer = roll_back(&sandbox, None).await.unwrap();
    assert_eq!(field(&answer, &["left", "sha256"]).as_str().unwrap(), left.to_string());
    answers(&sandbox, 1).await;
    assert!(field(&listed(&sandbox).await, &["previous"]).is_nil());
    // The master still has the version that was rolled back, also after a restart.
    assert_eq!(held(install(&sandbox, &number(2)).await), left);
    sandbox.shutdown().await;
    let (sandbox, _grip) = home.start().await;
    answers(&sandbox, 1).await;
    let why = held(install(&sandbox, &number(2)).await);
    assert_eq!(sandbox.held("mine").unwrap().sha256(), why);
    // After another version was installed, the rolled-back one is admitted again.
    assert_eq!(install(&sandbox, &number(3)).await.unwrap(), Installed::Updated);
    assert_eq!(install(&sandbox, &number(2)).await.unwrap(), Installed::Updated);
    // The owner may also admit it again.
    roll_back(&sandbox, None).await.unwrap();
    answers(&sandbox, 3).await;
    approve(&sandbox, left).await.unwrap();
    answers(&sandbox, 2).await;
    sandbox.shutdown().await;
}

/// Two sandboxes with the same folder, like a minion and a `salt-call` beside it.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_program_decides_is_taken_up_and_running_jobs_end_on_the_old_one() {
    let home = Home::new().grant("other", "jobs").grant("mine", "jobs");
    let (minion, mut grip) = home.start().await;
    install(&minion, ASKS).await.unwrap();
    install(&minion, &number(2)).await.unwrap();
    let more = lists(&number(3));
    let hash = held(install(&minion, &more).await);
    let (beside, _other_grip) = home.start().await;
    approve(&beside, hash).await.unwrap();
    until("the approved version", || minion.describe("mine").unwrap().sha256 == hash).await;
    answers(&minion, 3).await;
    until("nothing to be held", || minion.held("mine").is_none()).await;
    roll_back(&beside, None).await.unwrap();
    until("the version before", || minion.describe("mine").unwrap().sha256 != hash).await;
    answers(&minion, 2).await;
    until("what was left to be held", || minion.held("mine").is_some()).await;
    assert_eq!(held(install(&minion, &more).await), hash);
    // A running job ends on the version with which it began.
    install(&minion, ASKS).await.unwrap();
    let running = spawn(&minion, "1", "mine.ask");
    within(grip.arrived.recv()).await.unwrap();
    roll_back(&beside, None).await.unwrap();
    until("the version before", || minion.describe("mine").unwrap().info.functions.len() == 1).await;
    answers(&minion, 2).await;
    grip.gate.send(true).unwrap();
    assert_eq!(within(running).await.unwrap().value, Value::from(true));
    beside.shutdown().await;
    minion.shutdown().await;
}

/// Simultaneous decisions, like several `salt-call`s at the same moment: each is a sandbox of its own with the same
/// folder.
#[tokio::test(flavor = "multi_thread")]
async fn decisions_at_the_same_moment_are_all_made() {
    let home = Home::new();
    let (minion, _grip) = home.start().await;
    install(&minion, &number(2)).await.unwrap();
    let hash = held(install(&minion, ASKS).await);
    let mut beside = Vec::new();
    for _ in 0..5 {
        beside.push(home.start().await);
    }
    // Decisions about the same content and about contents that are not here yet: none fails, and none is lost.
    let others: Vec<Sha256Hex> = (0..15).map(|n| Sha256Hex::from([n; 32])).collect();
    let asked = (0..20).map(|n| {
        let (sandbox, _) = &beside[n % beside.len()];
        approve(sandbox, if n % 4 == 0 { hash } else { others[n - n / 4 - 1] })
    });
    for (n, answer) in futures_util::future::join_all(asked).await.into_iter().enumerate() {
        let answer = answer.unwrap_or_else(|error| panic!("{n}: {error}"));
        let state = field(&answer, &["state"]).as_str().unwrap().to_owned();
        assert_eq!(state == "in use", n % 4 == 0, "{n}: {answer}");
    }
    let text = std::fs::read_to_string(home.config.modules_dir.join("decisions.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let approved = file["modules"]["mine"]["approved"].as_array().unwrap();
    let approved: Vec<&str> = approved.iter().map(|item| item["sha256"].as_str().unwrap()).collect();
    for sha256 in others.iter().chain([&hash]) {
        let times = approved.iter().filter(|approved| **approved == sha256.to_string()).count();
        assert_eq!(times, 1, "{sha256} in {text}");
    }
    until("the approved version", || minion.describe("mine").unwrap().sha256 == hash).await;
    answers(&minion, 7).await;
    for (sandbox, _) in beside {
        sandbox.shutdown().await;
    }
    minion.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_let_in_while_decisions_cannot_be_read() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    install(&sandbox, &number(1)).await.unwrap();
    sandbox.shutdown().await;
    std::fs::write(home.config.modules_dir.join("decisions.json"), "{").unwrap();
    let (sandbox, _grip) = home.start().await;
    answers(&sandbox, 1).await;
    let error = install(&sandbox, &number(2)).await.unwrap_err().to_string();
    assert!(error.contains("decisions.json"), "{error}");
    answers(&sandbox, 1).await;
    let findings = sandbox.report(PolicyOp::Check).await.unwrap();
    assert!(field(&findings, &["findings"]).to_string().contains("decisions.json"));
    sandbox.shutdown().await;
}

/// A signed component with this version.
struct Signed {
    wasm: Vec<u8>,
    signature: String,
}

impl Signed {
    fn new(keys: &minisign::KeyPair, version: &str, content: u32, time: u64) -> Self {
        let section = format!("(@custom \"version\" \"{version}\")");
        let wasm = wasm(number_with(&section, content));
        let comment = format!("timestamp:{time}\tfile:mine.wasm\tprehashed");
        let signature = minisign::sign(Some(&keys.pk), &keys.sk, wasm.as_slice(), Some(&comment), None).unwrap();
        Self { wasm, signature: signature.to_string() }
    }

    async fn install(&self, sandbox: &Sandbox) -> Result<Installed, InstallError> {
        sandbox.install("mine", &self.wasm, Some(self.signature.as_bytes()), "base").await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_signed_version_is_for_the_owner_to_let_in() {
    let keys = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
    let key = keys.pk.to_base64();
    let mut home = Home::new().policy(&json!({ "modules": { "mine": { "signed_by": [key] } } }));
    let (sandbox, _grip) = home.start().await;
    let (one, two) = (Signed::new(&keys, "1.9.0", 1, 100), Signed::new(&keys, "1.10.0", 2, 200));
    assert_eq!(one.install(&sandbox).await.unwrap(), Installed::New);
    assert_eq!(two.install(&sandbox).await.unwrap(), Installed::Updated);
    let hash = held(one.install(&sandbox).await);
    let why = sandbox.held("mine").unwrap().to_string();
    assert!(
        why.contains("it is older than the newest that was seen here (1.10.0, signed 1970-01-01 00:03:20 UTC)"),
        "{why}"
    );
    // The same version with another content, signed earlier and later.
    held(Signed::new(&keys, "1.10.0", 3, 199).install(&sandbox).await);
    answers(&sandbox, 2).await;
    assert_eq!(Signed::new(&keys, "1.10.0", 4, 201).install(&sandbox).await.unwrap(), Installed::Updated);
    // The record of the newest version survives the module's removal and a restart.
    sandbox.remove("mine").await.unwrap();
    sandbox.shutdown().await;
    let (sandbox, _grip) = home.start().await;
    held(one.install(&sandbox).await);
    held(two.install(&sandbox).await);
    // The owner may admit it, and so may an entry in the configuration.
    approve(&sandbox, hash).await.unwrap();
    answers(&sandbox, 1).await;
    assert_eq!(Signed::new(&keys, "1.11.0", 5, 300).install(&sandbox).await.unwrap(), Installed::Updated);
    // A master's rollback is bound by the rule about older versions; the owner's is not.
    let error = roll_back(&sandbox, Some("aa:bb")).await;
    // The version to restore was approved, so it is admitted.
    assert!(error.is_ok(), "{error:?}");
    assert_eq!(Signed::new(&keys, "1.12.0", 6, 400).install(&sandbox).await.unwrap(), Installed::Updated);
    assert_eq!(Signed::new(&keys, "1.13.0", 7, 500).install(&sandbox).await.unwrap(), Installed::Updated);
    let error = roll_back(&sandbox, Some("aa:bb")).await.unwrap_err();
    assert!(
        error.contains("older than the newest that was seen here (1.13.0") && error.contains("downgrade: true"),
        "{error}"
    );
    answers(&sandbox, 7).await;
    roll_back(&sandbox, None).await.unwrap();
    answers(&sandbox, 6).await;
    sandbox.shutdown().await;
    home = home.policy(&json!({ "modules": { "mine": { "signed_by": [key], "downgrade": true } } }));
    let (sandbox, _grip) = home.start().await;
    assert_eq!(two.install(&sandbox).await.unwrap(), Installed::Updated);
    answers(&sandbox, 2).await;
    sandbox.shutdown().await;
}
