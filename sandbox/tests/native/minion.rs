//! The minion's side: a real sandbox whose executor is this program.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use brine_kit::files::set_mode;
use brine_kit::process::{lives, proc, resident, status};
use brine_kit::wait::{until, wait_for, within};
use brine_kit::wat::{component, wasm};
use brine_kit_sandbox::job;
use brine_sandbox::{
    Broker, Caller, HostError, HostOp, JobContext, JobOutcome, Limits, LogLevel, Policy, Restarts, Sandbox,
    SandboxConfig, Settings,
};
use brine_sandbox_walls::Cgroup;
use futures_util::future::BoxFuture;
use rmpv::Value;
use serde_json::json;

use crate::attacks::{ALL, Facts};
use crate::{attacker, floods};

/// Memory that the minion may keep after all floods together.
const KEPT: u64 = 64 << 20;

const TESTS: &[(&str, fn())] = &[
    ("without_grants_it_can_do_nothing", without_grants),
    ("with_grants_it_can_do_what_they_say", with_grants),
    ("with_reading_alone_it_has_no_calls_that_write", with_reading_alone),
    ("the_compiler_can_do_less", compiler),
    ("floods_and_malformed_messages_harm_nobody_else", floods),
    ("it_dies_with_the_minion", dies_with_the_minion),
    ("as_root_it_has_no_more_than_its_directories_need", as_root),
    ("it_is_started_from_a_folder_that_its_user_cannot_enter", from_a_private_folder),
    ("a_second_wall_that_is_not_whole_is_refused_where_it_is_required", required),
];

/// A minimal test harness, because this program must have a single thread when it is the executor. It supports the
/// options that cargo and nextest use.
pub(crate) fn main(args: &[String]) -> ExitCode {
    match args {
        [role, folder] if role == "minion" => return be_a_minion(folder),
        [role, facts] if role == "compiler" => return attacker::as_the_compiler(facts),
        _ => {}
    }
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-') && *arg != "terse").collect();
    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
    let list = args.iter().any(|arg| arg == "--list");
    if args.iter().any(|arg| arg == "--ignored") {
        return ExitCode::SUCCESS;
    }
    for (name, test) in TESTS.iter().filter(|(name, _)| chosen(name)) {
        if list {
            println!("{name}: test");
            continue;
        }
        test();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

/// A broker that counts calls and log lines.
#[derive(Default)]
struct Counting {
    lines: AtomicUsize,
    bytes: AtomicUsize,
    calls: AtomicUsize,
}

impl Broker for Counting {
    fn host_call<'a>(&'a self, _caller: &'a Caller, _op: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }

    fn log(&self, _job: &JobContext, _level: LogLevel, message: &str) {
        assert!(!message.contains('\x1b'), "{message}");
        self.lines.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(message.len(), Ordering::Relaxed);
    }
}

fn config(dir: &Path, policy: &serde_json::Value) -> SandboxConfig {
    SandboxConfig {
        executor: std::env::current_exe().unwrap(),
        settings: Settings {
            limits: Limits { wall_ms: 20_000, ..Limits::default() },
            policy: brine_kit_sandbox::policy(policy),
            ..brine_kit_sandbox::settings()
        },
        ..brine_kit_sandbox::config(dir)
    }
}

async fn start(config: SandboxConfig, broker: Arc<Counting>) -> Arc<Sandbox> {
    // Each flood costs an executor, and the bound on restarts is not under test.
    let restarts = Restarts { deaths: 1_000, backoff: Duration::from_millis(1), ..Restarts::default() };
    Sandbox::start_with(config, broker, restarts).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a component with one function and these imports.
fn module(function: &str, imports: &str) -> Vec<u8> {
    let name = function.replace('_', "-");
    wasm(component(
        imports,
        &format!(r#"(func (export "{name}") (result i32) i32.const 1)"#),
        &[(&name, "(result bool)")],
    ))
}

async fn run(sandbox: &Sandbox, fun: &str, facts: &str) -> JobOutcome {
    let job = JobContext { user: facts.to_owned(), ..job("20261120000000000001", fun) };
    within(sandbox.run(job, fun, vec![], vec![])).await
}

/// The targets of the attacks. They exist while this value lives.
struct Targets {
    dir: tempfile::TempDir,
    facts: Facts,
    _tcp: [TcpListener; 2],
    _unix: UnixListener,
    _inherited: OwnedFd,
}

/// Makes targets that every user may access, so that only the walls deny access.
fn targets() -> Targets {
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &Path, mode| set_mode(path, mode);
    open(dir.path(), 0o777);
    let root = dir.path().canonicalize().unwrap();
    for name in ["outside", "ro", "rw"] {
        std::fs::create_dir(root.join(name)).unwrap();
        open(&root.join(name), 0o777);
        std::fs::write(root.join(name).join("file"), "content").unwrap();
        open(&root.join(name).join("file"), 0o666);
    }
    let unix = UnixListener::bind(root.join("socket")).unwrap();
    open(&root.join("socket"), 0o777);
    let tcp = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [port, other_port] = [0, 1].map(|n: usize| tcp[n].local_addr().unwrap().port());
    // A descriptor without close-on-exec, as a careless library leaves it.
    let inherited = std::fs::File::open(root.join("outside/file")).unwrap();
    let inherited = rustix::io::fcntl_dupfd_cloexec(&inherited, 500).unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let facts = Facts {
        minion: i32::try_from(std::process::id()).unwrap(),
        outside: text("outside/file"),
        ro: text("ro"),
        rw: text("rw"),
        port,
        other_port,
        socket: text("socket"),
        inherited: inherited.as_raw_fd(),
    };
    Targets { dir, facts, _tcp: tcp, _unix: unix, _inherited: inherited }
}

/// Runs all attacks in an executor with these grants.
fn attack(targets: &Targets, grants: &serde_json::Value, imports: &str) -> BTreeMap<String, String> {
    block_on(async {
        let home = tempfile::tempdir().unwrap();
        let policy = json!({ "modules": { "probe": grants } });
        let sandbox = start(config(home.path(), &policy), Arc::default()).await;
        sandbox.install("probe", &module("attacks", imports), None, "base").await.unwrap();
        let outcome = run(&sandbox, "probe.attacks", &serde_json::to_string(&targets.facts).unwrap()).await;
        assert!(outcome.success, "{outcome:?}");
        for (pid, direct, walls) in sandbox.walls() {
            assert_eq!(walls.lacking(), [""; 0], "{pid} {walls:?}");
            assert!(matches!(walls.cgroup, Cgroup::In(..) | Cgroup::NotAvailable(_)), "{walls:?}");
            let me = rustix::process::geteuid();
            assert_eq!(walls.uid, if me.is_root() { 61_166 } else { me.as_raw() });
            as_the_kernel_says(pid, direct.directories.iter().any(|directory| directory.writable));
        }
        sandbox.shutdown().await;
        let entries = outcome.value.as_map().unwrap().iter();
        let results: BTreeMap<String, String> =
            entries.map(|(name, result)| (name.as_str().unwrap().into(), result.as_str().unwrap().into())).collect();
        assert_eq!(results.len(), ALL.len());
        results
    })
}

/// Checks the walls that are visible from outside.
fn as_the_kernel_says(pid: u32, writes: bool) {
    let read = |name: &str| proc(pid, name).unwrap();
    let field = |name: &str| status(pid, name).unwrap();
    assert_eq!(
        (field("NoNewPrivs").as_str(), field("Seccomp").as_str(), field("Seccomp_filters").as_str()),
        ("1", "2", "2")
    );
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!(read("oom_score_adj").trim(), "500");
    // Processes of the same user must not read its memory: the files in its /proc folder belong to root.
    assert_eq!(std::fs::metadata(format!("/proc/{pid}/mem")).unwrap().uid(), 0);
    let limits = read("limits");
    let hard = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    for name in ["Max core file size", "Max locked memory", "Max msgqueue size"] {
        assert_eq!(hard(name), "0", "{name}");
    }
    assert!(hard("Max open files").parse::<u64>().unwrap() <= 16_384);
    // 4 GiB for instances, and the executor's own needs.
    assert!((4 << 30..8 << 30).contains(&hard("Max data size").parse::<u64>().unwrap()));
    // An executor with a writable directory has no limit on file sizes.
    assert_eq!(hard("Max file size"), if writes { "unlimited" } else { "268435456" });
    if rustix::process::geteuid().is_root() {
        assert_eq!((field("Groups").as_str(), hard("Max processes").as_str()), ("", "4096"));
        assert_eq!(field("Gid"), ["61166"; 4].join("\t"));
    }
}

fn expect(results: &BTreeMap<String, String>, exceptions: &[(&str, &str)]) {
    for (name, _) in exceptions {
        assert!(results.contains_key(*name), "there is no attack '{name}'");
    }
    let wrong: Vec<String> = results
        .iter()
        .filter_map(|(name, result)| {
            let expected = exceptions.iter().find(|it| it.0 == name).map_or("EPERM", |it| it.1);
            (result != expected).then(|| format!("{name}: {result}, not {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn without_grants() {
    let targets = targets();
    let results = attack(&targets, &json!({}), "");
    expect(&results, &[("fork by clone3", "ENOSYS"), ("use what the minion had open", "EBADF")]);
    assert!(!targets.dir.path().join("rw/new").exists());
}

fn with_grants() {
    let targets = targets();
    let Facts { ro, rw, port, .. } = &targets.facts;
    let grants = json!({ "filesystem": { ro: "ro", rw: "rw" }, "network": [format!("127.0.0.1:{port}")] });
    let imports = r#"
        (import "brine:host/metadata@1.0.0" (instance (export "f" (func))))
        (import "brine:host/http@1.0.0" (instance (export "f" (func))))
        (import "wasi:sockets/tcp@0.2.6" (instance (export "f" (func))))"#;
    let results = attack(&targets, &grants, imports);
    let landlock = "EACCES";
    expect(
        &results,
        &[
            ("fork by clone3", "ENOSYS"),
            ("use what the minion had open", "EBADF"),
            // Granted operations.
            ("read in the read-only one", "done"),
            ("write in the read-write one", "done"),
            ("make in the read-write one", "done"),
            ("connect to the granted port", "done"),
            // Landlock does not hide the existence of a file.
            ("look at a path", "done"),
            ("look at a path as if at an open file", "done"),
            ("open outside", landlock),
            ("read what was opened as a path", landlock),
            ("open its own program", landlock),
            ("open its own memory", landlock),
            ("open the minion's memory", landlock),
            ("list the root", landlock),
            ("write outside", landlock),
            ("write in /tmp", landlock),
            ("leave a directory upwards", landlock),
            ("openat2 outside", landlock),
            ("write in the read-only one", landlock),
            ("empty in the read-only one", landlock),
            ("make in the read-only one", landlock),
            ("remove in the read-only one", landlock),
            ("move out of the read-only one", landlock),
            ("link from outside", "EXDEV"),
            ("read through a symbolic link of its own", landlock),
            ("connect to another port", landlock),
        ],
    );
    let (ro, rw) = (Path::new(ro), Path::new(rw));
    assert_eq!(std::fs::read_to_string(ro.join("file")).unwrap(), "content");
    assert!(!ro.join("new").exists() && rw.join("new").exists() && !rw.join("linked").exists());
}

fn with_reading_alone() {
    let targets = targets();
    let grants = json!({ "filesystem": { targets.facts.ro.as_str(): "ro" } });
    let results = attack(&targets, &grants, r#"(import "brine:host/metadata@1.0.0" (instance (export "f" (func))))"#);
    // EACCES is landlock's error. A system call with EPERM is not in the seccomp filter at all.
    for (name, expected) in [
        ("read in the read-only one", "done"),
        ("write in the read-only one", "EACCES"),
        ("remove in the read-only one", "EPERM"),
        ("move out of the read-only one", "EPERM"),
        ("link from outside", "EPERM"),
        ("read through a symbolic link of its own", "EPERM"),
        ("openat2 outside", "EACCES"),
        ("connect to the granted port", "EPERM"),
    ] {
        assert_eq!(results[name], expected, "{name}");
    }
}

/// Makes the attacks behind the compiler's walls.
fn compiler() {
    let targets = targets();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["compiler", &serde_json::to_string(&targets.facts).unwrap()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let results = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    expect(&results, &[("use what the minion had open", "EBADF")]);
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn floods() {
    block_on(async {
        let (home, good) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let good_dir = good.path().canonicalize().unwrap();
        let policy = json!({ "modules": {
            "*": { "grains": true },
            "good": { "filesystem": { good_dir.to_str().unwrap(): "ro" } },
        } });
        set_mode(&good_dir, 0o755);
        let mut config = config(home.path(), &policy);
        config.settings.limits.wall_ms = 5_000;
        let broker = Arc::new(Counting::default());
        let sandbox = start(config, broker.clone()).await;
        let reaches = r#"(import "brine:host/metadata@1.0.0" (instance (export "f" (func))))"#;
        sandbox.install("good", &module("ping", reaches), None, "base").await.unwrap();
        let grains = r#"(import "brine:host/grains@1.0.0" (instance (export "f" (func))))"#;
        for (name, _) in floods::ALL {
            // Each flood has its own module, because a module that kills executors is soon refused.
            sandbox.install(&format!("m_{name}"), &module(name, grains), None, "base").await.unwrap();
        }
        assert!(run(&sandbox, "good.ping", "").await.success);
        let (memory, files) = (resident(std::process::id()), open_files());
        for (name, breaks) in floods::ALL {
            let (flood, pids) = (format!("m_{name}.{name}"), sandbox.executor_pids());
            let flooding = {
                let (sandbox, flood) = (Arc::clone(&sandbox), flood.clone());
                tokio::spawn(async move { run(&sandbox, &flood, "").await })
            };
            // A job in another executor with other grants. Only the minion is shared.
            let mut slowest = Duration::ZERO;
            loop {
                let began = Instant::now();
                let outcome = run(&sandbox, "good.ping", "").await;
                assert!(outcome.success, "beside {flood}: {outcome:?}");
                slowest = slowest.max(began.elapsed());
                if flooding.is_finished() {
                    break;
                }
            }
            assert!(slowest < Duration::from_secs(2), "beside {flood} a good job took {slowest:?}");
            let outcome = flooding.await.unwrap();
            let text = outcome.value.as_str().unwrap_or_default().to_owned();
            let died = text.contains("the executor it ran in");
            println!("  {name}: {text:.150}; the slowest good job beside it {slowest:?}");
            assert!(text.lines().count() <= 1 && text.len() < 1_000 && !text.contains('\x1b'), "{flood}: {text}");
            if *breaks {
                let stopped = text.contains("did not end within its wall clock limit");
                assert!(!outcome.success && (died || stopped), "{flood}: {outcome:?}");
                // A new executor replaces the broken one.
                until(&format!("an executor after {flood}"), || {
                    sandbox.executor_pids().len() >= 2 && sandbox.executor_pids() != pids
                })
                .await;
            } else {
                assert!(!died, "{flood}: {outcome:?}");
                assert_eq!(sandbox.executor_pids(), pids, "{flood}");
            }
        }
        let limits = Limits::default();
        let lines = broker.lines.load(Ordering::Relaxed);
        // One additional line reports that lines were dropped.
        assert!(lines <= limits.log_lines as usize + 1, "{lines} log lines");
        assert!(broker.bytes.load(Ordering::Relaxed) as u64 <= limits.log + 1_000);
        assert!(broker.calls.load(Ordering::Relaxed) <= limits.host_calls as usize);
        sandbox.shutdown().await;
        let (kept, left) = (resident(std::process::id()).saturating_sub(memory), open_files());
        let asked = broker.calls.load(Ordering::Relaxed);
        println!("  the minion kept {} KiB and {left} of {files} files; it was asked {asked} times", kept >> 10);
        assert!(kept < KEPT, "the minion kept {kept} bytes");
        assert!(left <= files, "{left} files are open, before there were {files}");
    });
}

/// Runs this program as a minion that waits to be killed.
fn be_a_minion(folder: &str) -> ExitCode {
    block_on(async {
        let broker = Arc::new(Counting::default());
        let sandbox = start(config(Path::new(folder), &json!({})), broker.clone()).await;
        sandbox.install("deaf", &module("deaf", ""), None, "base").await.unwrap();
        let job = {
            let sandbox = Arc::clone(&sandbox);
            tokio::spawn(async move { run(&sandbox, "deaf.deaf", "").await })
        };
        // After its last message the executor ignores the socket.
        while broker.lines.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        println!("{}", sandbox.executor_pid().unwrap());
        let _ = job.await;
    });
    ExitCode::SUCCESS
}

/// An executor with an escaped guest ignores the closed socket. The kernel still ends it with the minion.
fn dies_with_the_minion() {
    let home = tempfile::tempdir().unwrap();
    let mut minion = Command::new(std::env::current_exe().unwrap())
        .args(["minion", home.path().to_str().unwrap()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(minion.stdout.take().unwrap()), &mut line).unwrap();
    let executor = line.trim();
    let parent = proc(executor, "stat").unwrap();
    assert!(parent.contains(&format!(" {} ", minion.id())), "{parent}");
    minion.kill().unwrap();
    minion.wait().unwrap();
    // The process is gone, or a zombie that its new parent has not reaped.
    wait_for("the executor's end", || (!lives(executor)).then_some(()));
}

fn required() {
    block_on(async {
        let home = tempfile::tempdir().unwrap();
        let mut config = config(home.path(), &json!({}));
        config.settings.policy = Policy::default();
        config.settings.require_second_wall = true;
        let sandbox = start(config.clone(), Arc::default()).await;
        sandbox.shutdown().await;
        if rustix::process::geteuid().is_root() {
            let policy = json!({ "modules": { "probe": { "user": "root", "filesystem": { "/etc": "ro" } } } });
            config.settings.policy = brine_kit_sandbox::policy(&policy);
            let sandbox = Sandbox::start(config.clone(), Arc::new(Counting::default())).await.unwrap();
            let reaches = r#"(import "brine:host/metadata@1.0.0" (instance (export "f" (func))))"#;
            sandbox.install("probe", &module("ping", reaches), None, "base").await.unwrap();
            let outcome = run(&sandbox, "probe.ping", "").await;
            let expect = "the second wall is not whole, and sandbox: require_second_wall is set: it runs as root";
            assert!(!outcome.success && outcome.value.as_str().unwrap().contains(expect), "{outcome:?}");
            sandbox.shutdown().await;
            config.settings.user = Some("root".into());
            let refused = Sandbox::start(config, Arc::new(Counting::default())).await.err().unwrap().to_string();
            assert_eq!(
                refused,
                "the second wall around the compiler is not whole, and sandbox: require_second_wall is set: it runs as root"
            );
        }
    });
}

/// The owner may choose root as the user. The executor is then root without root's privileges, except those on files if
/// it has directories.
fn as_root() {
    if !brine_kit::is_root() {
        return;
    }
    block_on(async {
        let home = tempfile::tempdir().unwrap();
        let (ro, rw) = (home.path().join("ro"), home.path().join("rw"));
        for dir in [&ro, &rw] {
            std::fs::create_dir(dir).unwrap();
        }
        let modules = json!({
            "reads": { "filesystem": { ro.to_str().unwrap(): "ro" } },
            "writes": { "filesystem": { rw.to_str().unwrap(): "rw" } },
        });
        let mut config = config(home.path(), &json!({ "modules": modules }));
        config.settings.user = Some("root".into());
        let sandbox = start(config, Arc::default()).await;
        let reaches = r#"(import "brine:host/metadata@1.0.0" (instance (export "f" (func))))"#;
        for module_name in ["reads", "writes"] {
            // The modules have different content.
            let extra =
                format!("(import \"brine:host/log@1.0.0\" (instance (export \"{module_name}\" (func)))) {reaches}");
            sandbox.install(module_name, &module("ping", &extra), None, "base").await.unwrap();
            assert!(run(&sandbox, &format!("{module_name}.ping"), "").await.success);
        }
        let mut seen = Vec::new();
        for (pid, direct, walls) in sandbox.walls() {
            assert_eq!(walls.lacking(), ["it runs as root"]);
            let rights = status(pid, "CapPrm").unwrap();
            seen.push((direct.directories.first().map(|directory| directory.writable), rights));
        }
        seen.sort();
        let (override_, search) = (1u64 << 1, 1u64 << 2);
        assert_eq!(
            seen,
            [
                (None, format!("{:016x}", 0)),
                (Some(false), format!("{search:016x}")),
                (Some(true), format!("{:016x}", override_ | search)),
            ]
        );
        sandbox.shutdown().await;
    });
}

/// A program in a private home directory: the sandbox's user can run it although it cannot reach its path. A program
/// without permission to execute does not run.
fn from_a_private_folder() {
    if !brine_kit::is_root() {
        return;
    }
    block_on(async {
        let home = tempfile::tempdir().unwrap();
        let mut config = config(home.path(), &json!({}));
        let private = home.path().join("private");
        std::fs::create_dir(&private).unwrap();
        set_mode(&private, 0o700);
        let program = private.join("executor");
        std::fs::copy(&config.executor, &program).unwrap();
        config.executor = program.clone();
        let sandbox = start(config.clone(), Arc::default()).await;
        sandbox.install("probe", &module("ping", ""), None, "base").await.unwrap();
        assert!(run(&sandbox, "probe.ping", "").await.success);
        assert_eq!(sandbox.walls()[0].2.lacking(), [""; 0]);
        sandbox.shutdown().await;
        set_mode(&program, 0o700);
        let refused = Sandbox::start(config, Arc::new(Counting::default())).await.err().unwrap().to_string();
        let program = program.display();
        let expect = format!(
            "{program} cannot be run by the sandbox's user 61166: chmod a+rx it, or set another `sandbox: user:`"
        );
        assert_eq!(refused, expect);
    });
}
