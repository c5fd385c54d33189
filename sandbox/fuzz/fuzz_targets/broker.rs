//! What an escaped guest could send through the executor's socket, up to the one check that stands before the host.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use brine_protocol::config::yaml;
use brine_sandbox::{
    Caller, Capability, ChangesOp, Granted, Grants, HostError, HostOp, HttpOp, JobContext, Names, NetworkOp, Planned, Policy, ProcessOp, Settings,
    Sha256Hex, Subject, check,
};
use brine_sandbox_wire::{FromExecutor, frame};
use rmpv::Value;

/// Owners from the stingy to the generous.
const SETTINGS: &str = r#"
modules:
  nothing: {grains: false, config: false}
  some:
    process: {programs: [/usr/bin/uptime, /bin/ls], looks: ["/bin/ls **"], users: [deploy], env: [APP_*], cwd: [/srv/app]}
    filesystem: {/srv/app: rw, /etc: ro}
    changes: {/srv/app: rw, /srv/app/keys: ro, /opt/x: rw+setid}
    network: ["repo.example:443", "10.0.0.0/8:8000-8010", "[::1]:80"]
    pillar: [deploy, "web:tls"]
    functions: ["test.*", cmd.run]
    files: ["deploy/**"]
    events: ["deploy/*"]
    mine: [load]
    jobs: true
    modules: true
  lined:
    process: {lines: ["/usr/bin/systemctl restart web.service", "/bin/ls -l *"], env: [APP_*]}
  everything:
    process: any
    network: ["name:*", "0.0.0.0/0:*"]
    pillar: any
    functions: any
    files: any
    events: any
    mine: any
    disks: true
    policy: true
    jobs: true
    modules: true
    filesystem: {/: ro}
    changes: {/: rw+setid}
"#;
const MODULES: [&str; 5] = ["nothing", "some", "everything", "unknown", "lined"];
const MARK: &str = "in the minion's configuration: ";

fn settings() -> Policy {
    let value = yaml::load(SETTINGS).expect("it is YAML");
    Settings::read(&value).expect("they are settings").policy
}

fn granted(policy: &Policy, module: &str) -> Granted {
    let name = module.parse().expect("it is a name");
    let subject = Subject { name: &name, standard: false, sha256: Sha256Hex::from([7; 32]), signers: &[] };
    let interfaces = Capability::ALL.iter().flat_map(|capability| capability.interfaces());
    // What is refused at load is not there to ask.
    let granted: Vec<String> = interfaces
        .map(|interface| (*interface).to_owned())
        .filter(|interface| policy.decide(&subject, std::slice::from_ref(interface), &["run"]).is_ok())
        .collect();
    let granted = policy.decide(&subject, &granted, &["run"]).expect("each was granted");
    granted.of("run", None).expect("no signature is asked for")
}

fn caller(module: &str, granted: &Granted) -> Caller {
    let job = JobContext { jid: "20260101000000000000".into(), function: format!("{module}.run"), ..JobContext::default() };
    let name = module.parse().expect("it is a name");
    let grants = Arc::clone(&granted.grants);
    Caller::new(Arc::new(job), name, Sha256Hex::from([7; 32]), grants, Duration::from_secs(60)).with_remedy(granted.remedy())
}

static CALLERS: LazyLock<Vec<Caller>> = LazyLock::new(|| {
    let policy = settings();
    MODULES.iter().map(|module| caller(module, &granted(&policy, module))).collect()
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&who, body)) = data.split_first() else { return };
    if let Some((header, _)) = body.split_first_chunk() {
        let _ = frame::body_length(*header);
    }
    let Ok(message) = frame::decode::<FromExecutor>(body) else { return };
    let mut again = Vec::new();
    frame::encode(&message, &mut again).expect("what was read can be written");
    let FromExecutor::HostCall { op, .. } = message else { return };
    let caller = &CALLERS[usize::from(who) % MODULES.len()];
    match check(caller, op.clone()) {
        Ok(allowed) => {
            assert!(caller.grants.allows(op.interface()));
            assert_eq!(allowed.interface(), op.interface());
            within(&caller.grants, &allowed);
            assert_eq!(check(caller, allowed.clone()), Ok(allowed.clone()));
            planned(&caller.grants, allowed);
        }
        Err(HostError::Denied(why)) => {
            assert!(!why.contains(char::is_control), "{why:?}");
            let Some((_, entry)) = why.split_once(MARK) else { return };
            // The owner does as it says, and it is not what stands in the way any more.
            let value = yaml::load(entry).unwrap_or_else(|error| panic!("{why}: {error}"));
            let settings_value = Value::Map(vec![("modules".into(), value)]);
            let added = Settings::read(&settings_value).unwrap_or_else(|error| panic!("{why}: {error}"));
            let mut policy = settings();
            policy.general.modules.extend(added.policy.general.modules);
            policy.general.functions.extend(added.policy.general.functions);
            let name = caller.module.as_str();
            let after = check(&self::caller(name, &granted(&policy, name)), op);
            assert!(after != Err(HostError::Denied(why.clone())), "{why}");
        }
        Err(HostError::Failed(why)) => assert!(!why.contains(char::is_control), "{why:?}"),
        // What a dry run would have done comes after the check.
        Err(HostError::Planned(what)) => panic!("the check plans nothing: {what}"),
    }
});

/// What reaches the host is what was granted, said in other words than the check's own.
fn within(grants: &Grants, op: &HostOp) {
    match op {
        HostOp::Process(ProcessOp::Look(_)) | HostOp::Changes(ChangesOp::Plan(_)) => panic!("only the minion makes it"),
        HostOp::Changes(ChangesOp::Do(change)) => {
            let path = change.path();
            assert!(path.starts_with('/') && !path.contains("/..") && !path.contains('\0'), "{path:?}");
            let under = |of: &str| of == "/" || path == of || path.starts_with(&format!("{of}/"));
            let writable = ["/", "/srv/app", "/opt/x"].into_iter().any(under) && !under("/srv/app/keys");
            let all = grants.changes.iter().any(|tree| tree.path == "/");
            assert!(all || writable && !under("/srv/app/keys"), "{path:?}");
        }
        HostOp::Process(ProcessOp::Run(run) | ProcessOp::Probe(run)) => {
            let texts = run.argv.iter().chain(&run.cwd).chain(run.env.iter().flat_map(|(name, value)| [name, value]));
            assert!(texts.clone().all(|text| !text.contains('\0')));
            assert!(run.cwd.as_ref().is_none_or(|cwd| cwd.starts_with('/') && !cwd.contains("/..")));
            if grants.process.lines.is_some() {
                // A word that stands for another stands for no option, path or assignment.
                let words: Vec<&str> = run.argv.iter().map(String::as_str).collect();
                let plain = |word: &str| !word.is_empty() && !word.starts_with('-') && !word.contains(['/', '=']);
                let is_granted = match words[..] {
                    ["/usr/bin/systemctl", "restart", "web.service"] => true,
                    ["/bin/ls", "-l", word] => plain(word),
                    _ => false,
                };
                assert!(is_granted, "{words:?}");
                // The words alone count.
                assert!(run.stdin.as_ref().is_none_or(|stdin| stdin.is_empty()) && run.run_as.is_none(), "{run:?}");
                assert!(run.cwd.as_deref().is_none_or(|cwd| cwd == "/"), "{run:?}");
                assert!(run.env.iter().all(|(name, _)| !name.starts_with("APP_") && !name.starts_with("LD_")), "{run:?}");
            } else if let Names::Only(programs) = &grants.process.programs {
                assert!(programs.contains(&run.argv[0]), "{:?}", run.argv);
                for (name, _) in &run.env {
                    let harmless = ["LANG", "TZ"].contains(&name.as_str()) || name.starts_with("LC_");
                    assert!(harmless || name.starts_with("APP_"), "{name}");
                }
                assert!(run.run_as.as_deref().is_none_or(|user| user == "deploy"), "{:?}", run.run_as);
                let under = |cwd: &str| cwd == "/" || cwd == "/srv/app" || cwd.starts_with("/srv/app/");
                assert!(run.cwd.as_deref().is_none_or(under), "{:?}", run.cwd);
            }
        }
        HostOp::Network(NetworkOp::Resolve { name }) => assert!(grants.allows_name(name), "{name}"),
        HostOp::Http(HttpOp::Request(request)) => {
            assert!(request.url.starts_with("http://") || request.url.starts_with("https://"), "{}", request.url);
            let plain = |text: &str| !text.contains(['\r', '\n', '\0']);
            assert!(plain(&request.url) && plain(&request.method));
            assert!(request.headers.iter().all(|(name, value)| plain(name) && plain(value)));
        }
        _ => {}
    }
}

/// In plan mode, what reaches the host only looks, said in other words than the plan's own.
fn planned(grants: &Grants, op: HostOp) {
    match op.planned(&grants.planned()) {
        Planned::Look(op) | Planned::Instead(_, op) => match op {
            HostOp::Process(ProcessOp::Run(_)) | HostOp::Changes(ChangesOp::Do(_)) => panic!("it changes something"),
            HostOp::Events(_) | HostOp::Mine(_) | HostOp::Http(_) => panic!("it tells somebody"),
            _ => {}
        },
        Planned::Done(what, _) | Planned::Stop(what) => assert!(!what.is_empty()),
    }
}
