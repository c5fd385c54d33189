//! Modules are installed, updated, refused and kept.

use brine_kit::files::set_mode;
use brine_kit::wait::{until, within};
use brine_kit::wat::{number, wasm};
use brine_sandbox::{InstallError, Installed, RemoveError, Removed, Settings};
use rmpv::Value;

use crate::components::{ASKS, importing};
use crate::support::{Home, call, failure, files, spawn};

#[tokio::test(flavor = "multi_thread")]
async fn install_run_replace_and_start_again() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    assert_eq!(sandbox.names(), Vec::<String>::new());
    let text = failure(&call(&sandbox, "mine.number").await).to_owned();
    assert!(text.starts_with("'mine.number' is not available. There is no module 'mine'"), "{text}");

    let one = wasm(number(1));
    assert_eq!(sandbox.install("mine", &one, None, "base").await.unwrap(), Installed::New);
    let outcome = call(&sandbox, "mine.number").await;
    assert_eq!((outcome.value, outcome.retcode, outcome.success), (Value::from(1), 0, true));
    assert_eq!(outcome.sha256, Some(sandbox.describe("mine").unwrap().sha256));
    assert!(outcome.usage.unwrap().wall_us > 0);
    assert_eq!(sandbox.install("mine", &one, None, "base").await.unwrap(), Installed::Unchanged);

    assert_eq!(sandbox.install("mine", &wasm(number(2)), None, "dev").await.unwrap(), Installed::Updated);
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(2));
    assert_eq!(sandbox.names(), ["mine"]);
    let text = failure(&call(&sandbox, "mine.numbr").await).to_owned();
    assert_eq!(text, "'mine.numbr' is not available. Did you mean mine.number? Functions of mine: number.");
    let outcome = sandbox.run(Default::default(), "mine.number", vec![Value::from(1)], vec![]).await;
    let text = failure(&outcome);
    assert!(text.starts_with("Passed invalid arguments to mine.number: "), "{text}");
    assert!(text.ends_with("Usage: mine.number() -> u32"), "{text}");
    sandbox.shutdown().await;
    assert_eq!(failure(&call(&sandbox, "mine.number").await), "The minion is stopping.");

    // After a restart an installed module is there, with its code from the cache.
    let compiled = home.compiled();
    let (sandbox, _grip) = home.start().await;
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(2));
    assert_eq!(sandbox.describe("mine").unwrap().origin, "dev");
    assert_eq!(home.compiled(), compiled);
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_is_refused_by_name_and_reason_and_the_last_good_one_stays() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    let good = wasm(number(1));
    sandbox.install("mine", &good, None, "base").await.unwrap();
    let core = wasm("(module)");
    let empty = wasm("(component)");
    let cut = &good[..good.len() - 5];
    let flipped: Vec<u8> = good.iter().enumerate().map(|(n, byte)| if n == 30 { byte ^ 0xff } else { *byte }).collect();
    for (bytes, expect) in [
        (b"".as_slice(), "module mine is not WebAssembly"),
        (b"(component)", "module mine is not WebAssembly"),
        (&core, "module mine is a core WebAssembly module, not a component"),
        (&empty, "module mine exports no function"),
        (cut, "module mine is not a valid component: "),
        (&flipped, "module mine is not a valid component: "),
    ] {
        for again in [false, true] {
            let error = sandbox.install("mine", bytes, None, "base").await.unwrap_err();
            assert!(error.to_string().starts_with(expect), "{error}");
            assert!(!error.to_string().contains('\n'), "{error}");
            assert!(matches!(error, InstallError::Refused { before, .. } if before == again), "{error:?}");
            assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
        }
    }
    for name in ["../mine", "Mine", "", "a.b"] {
        assert!(matches!(sandbox.install(name, &good, None, "base").await, Err(InstallError::Name(_))), "{name}");
    }
    sandbox.shutdown().await;
    // A refused module leaves nothing on the disk.
    assert_eq!(files(&home.config.modules_dir, "wasm").len(), 1);
    assert_eq!(home.compiled().len(), 1);
    assert_eq!(std::fs::read(&files(&home.config.modules_dir, "wasm")[0]).unwrap(), good);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_large_a_file_does_not_reach_the_compiler() {
    let mut home = Home::new();
    home.config.settings.compile.module = 100;
    let (sandbox, _grip) = home.start().await;
    let error = sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap_err();
    assert!(matches!(error, InstallError::TooLarge { limit: 100, .. }), "{error}");
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_modules_are_not_replaced_unless_the_owner_says_so() {
    let mut home =
        Home::new().standard("saltutil", ASKS).standard("test", &number(1)).standard("broken", "(component)");
    let (sandbox, _grip) = home.start().await;
    assert_eq!(sandbox.names(), ["saltutil", "test"]);
    assert_eq!(sandbox.describe("test").unwrap().origin, "standard");
    // The module has the grant that comes with the standard module.
    assert_eq!(call(&sandbox, "saltutil.number").await.value, Value::from(7));
    let text = failure(&call(&sandbox, "broken.number").await).to_owned();
    assert_eq!(text, "'broken.number' is not available. It was left out: module broken exports no function.");
    for name in ["test", "broken"] {
        let error = sandbox.install(name, &wasm(number(2)), None, "base").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "module {name} is a standard module and is not replaced; the owner of this host allows it by \
                 `replace_standard: [{name}]` under `sandbox:` in the minion's configuration"
            )
        );
    }
    // The same content is no replacement.
    assert_eq!(sandbox.install("test", &wasm(number(1)), None, "base").await.unwrap(), Installed::Unchanged);
    assert_eq!(call(&sandbox, "test.number").await.value, Value::from(1));
    sandbox.shutdown().await;

    let allowed = Value::Array(vec!["test".into(), "saltutil".into()]);
    home.config.settings.policy =
        Settings::read(&Value::Map(vec![("replace_standard".into(), allowed)])).unwrap().policy;
    let (sandbox, _grip) = home.start().await;
    assert_eq!(sandbox.install("test", &wasm(number(2)), None, "base").await.unwrap(), Installed::Updated);
    assert_eq!(call(&sandbox, "test.number").await.value, Value::from(2));
    // A module that replaces a standard one does not get its grants.
    let changed = ASKS.replace("i32.const 7", "i32.const 8");
    let error = sandbox.install("saltutil", &wasm(&changed), None, "base").await.unwrap_err();
    assert!(matches!(error, InstallError::Held(_)), "{error}");
    assert_eq!(call(&sandbox, "saltutil.number").await.value, Value::from(7));
    sandbox.shutdown().await;

    // Without the permission, the standard module is used again after the next start.
    home.config.settings.policy = Default::default();
    let (sandbox, _grip) = home.start().await;
    assert_eq!(call(&sandbox, "test.number").await.value, Value::from(1));
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_asks_for_more_waits_for_the_owner() {
    let mut home = Home::new();
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    let error = sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap_err();
    let InstallError::Held(held) = &error else { panic!("{error}") };
    let hash = held.sha256();
    // YAML quotes a hash that could be read as a number.
    assert_eq!(
        error.to_string().replace('"', ""),
        format!(
            "update of module mine is held, the version before it serves on: it asks for what it was not granted: to see and end \
             running jobs (brine:host/jobs@1.0.0); the owner of this host grants it by this line under sandbox: modules: in the \
             minion's configuration: mine: {{sha256: {hash}, jobs: true}}, or lets this content in with `salt-call --local \
             sandbox.approve mine {hash}`; `sandbox.diff mine` shows what it changes"
        )
    );
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    for interface in
        ["wasi:filesystem/types@0.2.0", "wasi:sockets/tcp@0.2.0", "brine:host/process@1.0.0", "acme:x/y@1.0.0"]
    {
        let error = sandbox.install("mine", &wasm(importing(interface)), None, "base").await.unwrap_err();
        assert!(error.to_string().contains(interface), "{error}");
        // A module that no decision of the owner could admit is not held.
        assert_eq!(matches!(error, InstallError::Held(_)), !interface.starts_with("acme"), "{error}");
    }
    sandbox.shutdown().await;

    // The owner adds the lines of the error to the configuration.
    let entry = Value::Map(vec![("sha256".into(), hash.to_string().into()), ("jobs".into(), true.into())]);
    let modules = Value::Map(vec![("mine".into(), entry)]);
    home.config.settings.policy = Settings::read(&Value::Map(vec![("modules".into(), modules)])).unwrap().policy;
    let (sandbox, _grip) = home.start().await;
    assert_eq!(sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap(), Installed::Updated);
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
    sandbox.shutdown().await;

    // A removed grant takes effect at the next start.
    home.config.settings.policy = Default::default();
    let (sandbox, _grip) = home.start().await;
    let text = failure(&call(&sandbox, "mine.number").await).to_owned();
    assert!(
        text.starts_with("'mine.number' is not available. It was left out: module mine imports brine:host/jobs"),
        "{text}"
    );
    sandbox.shutdown().await;
}

/// The module imports a function that the host's interface does not have: the policy admits it, but the executor
/// refuses to load it.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_executor_does_not_take_is_not_switched_in() {
    let home = Home::new().grant("mine", "grains");
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    let error = sandbox.install("mine", &wasm(importing("brine:host/grains@1.0.0")), None, "base").await.unwrap_err();
    let text = error.to_string();
    let expect = "module mine was not installed: module 'mine' imports what this minion has in another form: ";
    assert!(text.starts_with(expect) && text.contains("brine:host/grains"), "{text}");
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_code_in_the_cache_is_noticed_and_never_run() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    let code = home.compiled().remove(0);
    let good = std::fs::read(&code).unwrap();
    let change = || {
        // As by a bad disk, or by an attacker with access to the file but not to its owner's account.
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 0xff;
        std::fs::remove_file(&code).unwrap();
        std::fs::write(&code, bad).unwrap();
        set_mode(&code, 0o600);
    };
    sandbox.shutdown().await;
    change();
    let (sandbox, _grip) = home.start().await;
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    assert_eq!(std::fs::read(&code).unwrap(), good, "it was compiled again");

    // The same while the minion runs, when the next executor loads its modules.
    change();
    let pid = sandbox.executor_pid().unwrap();
    brine_kit::process::kill(pid);
    until("another executor", || sandbox.executor_pid().is_some_and(|other| other != pid)).await;
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    assert_eq!(std::fs::read(&code).unwrap(), good);
    sandbox.shutdown().await;

    // If the component is lost too, there is an error and no module.
    change();
    std::fs::write(home.config.modules_dir.join("mine.wasm"), b"junk").unwrap();
    let (sandbox, _grip) = home.start().await;
    let text = failure(&call(&sandbox, "mine.number").await).to_owned();
    assert_eq!(
        text,
        "'mine.number' is not available. It was left out: module mine is not WebAssembly: it does not begin with \"\\0asm\"."
    );
    sandbox.shutdown().await;
}

/// A running job ends on the old version; later jobs get the new one.
#[tokio::test(flavor = "multi_thread")]
async fn an_update_does_not_touch_jobs_that_run() {
    let home = Home::new().grant("mine", "jobs");
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let old = sandbox.describe("mine").unwrap().sha256;
    let running = spawn(&sandbox, "1", "mine.ask");
    within(grip.arrived.recv()).await.unwrap();
    assert_eq!(sandbox.install("mine", &wasm(number(2)), None, "base").await.unwrap(), Installed::Updated);
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(2));
    grip.gate.send(true).unwrap();
    let outcome = within(running).await.unwrap();
    assert_eq!((outcome.value, outcome.sha256), (Value::from(true), Some(old)));
    // Repeated switches, while the retirement of the first version may still be under way.
    for _ in 0..3 {
        assert_eq!(sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap(), Installed::Updated);
        assert_eq!(call(&sandbox, "mine.ask").await.value, Value::from(true));
        assert_eq!(sandbox.install("mine", &wasm(number(2)), None, "base").await.unwrap(), Installed::Updated);
        assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(2));
    }
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_module_is_gone_for_good_and_jobs_that_run_it_end_as_they_would() {
    let home = Home::new().grant("mine", "jobs").standard("test", &number(1));
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "dev").await.unwrap();
    sandbox.install("other", &wasm(number(2)), None, "base").await.unwrap();
    let installed = |name: &str, origin: &str| (name.to_owned(), origin.to_owned());
    assert_eq!(sandbox.installed(), [installed("mine", "dev"), installed("other", "base")]);
    let running = spawn(&sandbox, "1", "mine.ask");
    within(grip.arrived.recv()).await.unwrap();

    assert_eq!(sandbox.remove("mine").await.unwrap(), Removed::Gone);
    assert_eq!(sandbox.names(), ["other", "test"]);
    let text = failure(&call(&sandbox, "mine.number").await).to_owned();
    assert!(text.starts_with("'mine.number' is not available. There is no module 'mine'"), "{text}");
    grip.gate.send(true).unwrap();
    assert_eq!(within(running).await.unwrap().value, Value::from(true));

    // Only installed modules are removed: not removed ones, standard ones or unknown ones.
    for name in ["mine", "test", "none"] {
        assert_eq!(sandbox.remove(name).await.unwrap(), Removed::Absent, "{name}");
    }
    assert!(matches!(sandbox.remove("../other").await, Err(RemoveError::Name(_))));
    assert_eq!(call(&sandbox, "test.number").await.value, Value::from(1));
    assert_eq!(call(&sandbox, "other.number").await.value, Value::from(2));
    let left: Vec<_> = std::fs::read_dir(&home.config.modules_dir).unwrap().map(|it| it.unwrap().file_name()).collect();
    let left: Vec<_> = left.iter().filter_map(|name| name.to_str()).filter(|name| name.contains("mine")).collect();
    assert!(left.is_empty(), "{left:?}");
    sandbox.shutdown().await;
    let (sandbox, _grip) = home.start().await;
    assert_eq!(sandbox.names(), ["other", "test"]);
    // Modules that were put into the folder by hand are not removed either.
    std::fs::write(home.config.modules_dir.join("hand.wasm"), wasm(number(3))).unwrap();
    sandbox.shutdown().await;
    let (sandbox, _grip) = home.start().await;
    assert_eq!(sandbox.remove("hand").await.unwrap(), Removed::Absent);
    assert_eq!(call(&sandbox, "hand.number").await.value, Value::from(3));
    // A removed module may be installed again.
    assert_eq!(sandbox.install("mine", &wasm(ASKS), None, "dev").await.unwrap(), Installed::New);
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standard_module_comes_back_when_its_replacement_is_removed() {
    let mut home = Home::new().standard("test", &number(1));
    let allowed = Value::Array(vec!["test".into()]);
    home.config.settings.policy =
        Settings::read(&Value::Map(vec![("replace_standard".into(), allowed)])).unwrap().policy;
    let (sandbox, _grip) = home.start().await;
    sandbox.install("test", &wasm(number(2)), None, "base").await.unwrap();
    assert_eq!(call(&sandbox, "test.number").await.value, Value::from(2));
    assert_eq!(sandbox.remove("test").await.unwrap(), Removed::Standard);
    assert_eq!(call(&sandbox, "test.number").await.value, Value::from(1));
    assert_eq!(sandbox.describe("test").unwrap().origin, "standard");
    // If the standard module is unusable, the one that replaced it stays.
    sandbox.install("test", &wasm(number(2)), None, "base").await.unwrap();
    std::fs::write(home.config.standard_dir.join("test.wasm"), b"junk").unwrap();
    let error = sandbox.remove("test").await.unwrap_err();
    assert!(error.to_string().starts_with("module test was not removed: module test is not WebAssembly"), "{error}");
    assert_eq!(call(&sandbox, "test.number").await.value, Value::from(2));
    sandbox.shutdown().await;

    // A module that the owner does not allow any more is still on the disk, and can be removed.
    let mut home = home.standard("test", &number(1));
    home.config.settings.policy = Default::default();
    let (sandbox, _grip) = home.start().await;
    assert_eq!(call(&sandbox, "test.number").await.value, Value::from(1));
    assert_eq!(sandbox.installed(), [("test".to_owned(), "base".to_owned())]);
    assert_eq!(sandbox.remove("test").await.unwrap(), Removed::Standard);
    assert_eq!(call(&sandbox, "test.number").await.value, Value::from(1));
    assert!(files(&home.config.modules_dir, "wasm").is_empty());
    sandbox.shutdown().await;
}

/// Installs are refused when a start would not read the module.
#[tokio::test(flavor = "multi_thread")]
async fn modules_are_counted() {
    let home = Home::new();
    std::fs::create_dir(&home.config.modules_dir).unwrap();
    for n in 0..1_000 {
        let path = home.config.modules_dir.join(format!("m{n}.wasm"));
        std::fs::write(path.with_extension("json"), br#"{"origin": "base"}"#).unwrap();
        std::fs::write(path, b"junk").unwrap();
    }
    let (sandbox, _grip) = home.start().await;
    let error = sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap_err();
    assert_eq!(error.to_string(), "module mine was not installed: there are 1000 modules already");
    assert_eq!(sandbox.install("m7", &wasm(number(7)), None, "base").await.unwrap(), Installed::New);
    assert_eq!(sandbox.remove("m8").await.unwrap(), Removed::Gone);
    assert_eq!(sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap(), Installed::New);
    sandbox.shutdown().await;
}

/// The job that fetches a module may reach its limit during the compilation. The install still completes.
#[tokio::test(flavor = "multi_thread")]
async fn an_install_goes_on_without_who_asked_for_it() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    let component = wasm(number(1));
    // Polled once and dropped.
    tokio::select! {
        biased;
        result = sandbox.install("mine", &component, None, "base") => panic!("{result:?}"),
        () = std::future::ready(()) => {}
    }
    until("the install", || !sandbox.names().is_empty()).await;
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_cannot_start_says_why() {
    let home = Home::new();
    let mut broken = Home::new();
    broken.config.executor = "/nonexistent/brine-executor".into();
    let error = broken.try_start().await.err().unwrap().to_string();
    assert_eq!(error, "/nonexistent/brine-executor cannot be started: No such file or directory (os error 2)");

    broken.config.executor = "/bin/false".into();
    let error = broken.try_start().await.err().unwrap().to_string();
    assert!(error.starts_with("/bin/false ended with code 1 before it was ready"), "{error}");

    broken.config.compiler = "/nonexistent/brine-compiler".into();
    let error = broken.try_start().await.err().unwrap().to_string();
    assert!(error.starts_with("the compiler /nonexistent/brine-compiler cannot be started: "), "{error}");

    std::fs::create_dir(&home.config.cache_dir).unwrap();
    set_mode(&home.config.cache_dir, 0o777);
    let error = home.try_start().await.err().unwrap().to_string();
    assert!(error.contains("cache: its mode is 777"), "{error}");
}
