//! Starts that do not wait for the standard modules: a daemon prepares them beside its jobs, a short program only those
//! that it needs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_kit::files::script;
use brine_kit::wait::{until, within};
use brine_kit::wat::{number, wasm};
use brine_sandbox::{Broker, PolicyOp, Preparing, Sandbox};
use rmpv::Value;

use crate::support::{Home, Nesting, call, failure, spawn};

/// More than are kept of modules that nothing uses.
const MANY: usize = 20;

/// A folder whose compiler does its work only while the file `gate` is there, or after a pause.
struct Gated {
    home: Home,
    gate: PathBuf,
}

impl Gated {
    /// `standard` modules `m00`, `m01` and so on, each with a function `number`.
    fn new(standard: usize, pause: &str) -> Self {
        let mut home = Home::new();
        for n in 0..standard {
            home = home.standard(&format!("m{n:02}"), &number(u32::try_from(n).unwrap()));
        }
        let (real, folder) = (home.config.compiler.clone(), home.config.standard_dir.clone());
        let (program, gate) = (folder.join("compiler"), folder.join("gate"));
        let text = format!(
            "#!/bin/sh\nif [ \"$1\" = --socket ]; then\n  while [ ! -e {gate} ]; do /bin/sleep 0.02; done\n  /bin/sleep {pause}\nfi\n\
             exec {real} \"$@\"\n",
            gate = gate.display(),
            real = real.display()
        );
        script(&program, &text);
        home.config.compiler = program;
        // Another user could not look at the gate.
        home.config.settings.user = Some("root".into());
        Self { home, gate }
    }

    fn open(&self) {
        std::fs::write(&self.gate, "").unwrap();
    }

    async fn start(&self, standard: Preparing) -> Arc<Sandbox> {
        let broker: Arc<dyn Broker> = Arc::new(Nesting::default());
        let coming = std::future::ready(Some(broker));
        let started = Sandbox::start_before(self.home.config.clone(), coming, self.home.restarts.clone(), standard);
        within(started).await.unwrap()
    }

    fn stages(&self) -> usize {
        let entries = std::fs::read_dir(&self.home.config.cache_dir).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("compile-")).count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_starts_before_its_modules_are_compiled_and_jobs_wait() {
    let gated = Gated::new(3, "0");
    let home = &gated.home;
    std::fs::write(home.config.standard_dir.join("broken.wasm"), "junk").unwrap();
    let sandbox = gated.start(Preparing::Beside).await;
    assert!(sandbox.names().is_empty() && !sandbox.is_settled() && sandbox.summary().is_none());
    let waits = spawn(&sandbox, "1", "m02.number");
    let gone = spawn(&sandbox, "2", "nothing.number");
    // A module that does not exist is known at once.
    let gone = within(gone).await.unwrap();
    assert!(failure(&gone).contains("There is no module 'nothing'; there are: broken, m00, m01, m02"), "{gone:?}");
    assert!(!waits.is_finished());
    gated.open();
    assert_eq!(within(waits).await.unwrap().value, Value::from(2));
    within(sandbox.settle_all()).await.unwrap();
    assert!(sandbox.is_settled() && sandbox.summary().is_some());
    assert_eq!(sandbox.names(), ["m00", "m01", "m02"]);
    // One that fails is left out, with its reason.
    let broken = call(&sandbox, "broken.number").await;
    assert!(failure(&broken).contains("It was left out: "), "{broken:?}");
    within(sandbox.shutdown()).await;
}

/// A start goes by what the last one wrote down, as long as the very file is there: its size and time of modification prove nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_verified_is_not_read_again_unless_the_file_changed() {
    let home = Home::new().standard("m", &number(1)).standard("n", &number(2));
    let file = home.config.standard_dir.join("m.wasm");
    let settle = || tokio::time::sleep(Duration::from_millis(2_100));
    let answers = async || {
        let (sandbox, _grip) = home.start().await;
        let answers = [call(&sandbox, "m.number").await.value, call(&sandbox, "n.number").await.value];
        within(sandbox.shutdown()).await;
        answers
    };
    let note = |name: &str| home.config.cache_dir.join(format!("{name}.verified"));
    let noted =
        |name: &str| -> serde_json::Value { serde_json::from_slice(&std::fs::read(note(name)).unwrap()).unwrap() };
    // Too young for a record.
    assert_eq!(answers().await, [1, 2].map(Value::from));
    assert!(!note("m").exists());
    settle().await;
    assert_eq!(answers().await, [1, 2].map(Value::from));
    // A record that says something else tells whether it is believed.
    let (mut lies, of_n) = (noted("m"), noted("n"));
    lies["sha256"] = of_n["sha256"].clone();
    std::fs::write(note("m"), lies.to_string()).unwrap();
    assert_eq!(answers().await, [2, 2].map(Value::from));
    // The same size and time, and another content.
    let before = std::fs::metadata(&file).unwrap();
    std::fs::write(&file, wasm(number(3))).unwrap();
    std::fs::File::options().write(true).open(&file).unwrap().set_modified(before.modified().unwrap()).unwrap();
    let after = std::fs::metadata(&file).unwrap();
    assert_eq!((before.len(), before.modified().unwrap()), (after.len(), after.modified().unwrap()));
    assert_eq!(answers().await, [3, 2].map(Value::from));
    // What a crash has torn, and what others may write.
    settle().await;
    assert_eq!(answers().await, [3, 2].map(Value::from));
    let whole = std::fs::read(note("m")).unwrap();
    std::fs::write(note("m"), &whole[..whole.len() / 2]).unwrap();
    assert_eq!(answers().await, [3, 2].map(Value::from));
    std::fs::write(note("m"), lies.to_string().replace(&lies["file"].to_string(), &noted("m")["file"].to_string()))
        .unwrap();
    std::fs::set_permissions(note("m"), std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(answers().await, [3, 2].map(Value::from));
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_can_be_left_until_the_start_is_over() {
    let gated = Gated::new(3, "0");
    let began = Instant::now();
    let sandbox = gated.start(Preparing::Later).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let stages = gated.stages();
    // This thread may have been set aside.
    if began.elapsed() < Duration::from_millis(900) {
        assert_eq!(stages, 0);
    }
    // A job does not wait for that.
    let waits = spawn(&sandbox, "1", "m02.number");
    gated.open();
    assert_eq!(within(waits).await.unwrap().value, Value::from(2));
    within(async {
        while sandbox.names().len() < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    within(sandbox.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_module_of_a_job_passes_the_others() {
    let gated = Gated::new(MANY, "0.5");
    gated.open();
    let sandbox = gated.start(Preparing::Beside).await;
    let last = format!("m{:02}.number", MANY - 1);
    assert_eq!(call(&sandbox, &last).await.value, Value::from(MANY - 1));
    let ready = sandbox.names().len();
    assert!(ready <= MANY / 2, "{ready} modules were ready before the one that was needed");
    within(sandbox.shutdown()).await;
}

/// A program that runs one job looks at the module of that job alone, and throws nothing away that others compiled.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_prepares_what_it_needs() {
    let gated = Gated::new(MANY, "0");
    gated.open();
    let sandbox = gated.start(Preparing::OnNeed).await;
    assert!(sandbox.names().is_empty() && gated.home.compiled().is_empty());
    assert_eq!(call(&sandbox, "m07.number").await.value, Value::from(7));
    assert_eq!((sandbox.names(), gated.home.compiled().len()), (vec!["m07".to_owned()], 1));
    // A question about all modules prepares them all.
    let listed = within(sandbox.report(PolicyOp::List)).await.unwrap();
    assert_eq!((listed.as_map().unwrap().len(), gated.home.compiled().len()), (MANY, MANY));
    within(sandbox.shutdown()).await;

    let sandbox = gated.start(Preparing::OnNeed).await;
    within(sandbox.install("mine", &wasm(number(99)), None, "base")).await.unwrap();
    assert_eq!(gated.home.compiled().len(), MANY + 1, "what is not known to be unused stays");
    within(sandbox.shutdown()).await;
}

/// The end of a daemon ends its compilers; the next start compiles what is missing.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_does_not_wait_for_the_compiler() {
    let gated = Gated::new(3, "0");
    let sandbox = gated.start(Preparing::Beside).await;
    until("it compiles", || gated.stages() > 0).await;
    within(sandbox.shutdown()).await;
    until("nothing is left of it", || gated.stages() == 0).await;
    assert!(gated.home.compiled().is_empty());
    drop(sandbox);
    gated.open();
    let sandbox = gated.start(Preparing::Beside).await;
    assert_eq!(call(&sandbox, "m01.number").await.value, Value::from(1));
    within(sandbox.shutdown()).await;
}

/// Code that was changed in the cache is never run, also if the module's description is as it was.
#[tokio::test(flavor = "multi_thread")]
async fn changed_code_is_found_before_its_first_use() {
    let gated = Gated::new(1, "0");
    gated.open();
    let sandbox = gated.start(Preparing::First).await;
    within(sandbox.shutdown()).await;
    let code = gated.home.compiled().remove(0);
    let good = std::fs::read(&code).unwrap();
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    std::fs::write(&code, &bad).unwrap();
    let sandbox = gated.start(Preparing::Beside).await;
    within(sandbox.settle_all()).await.unwrap();
    assert_eq!(std::fs::read(&code).unwrap(), bad, "it is not read before it is needed");
    assert_eq!(call(&sandbox, "m00.number").await.value, Value::from(0));
    assert_ne!(std::fs::read(&code).unwrap(), bad, "it was compiled again");
    tokio::time::timeout(Duration::from_secs(10), sandbox.shutdown()).await.unwrap();
}
