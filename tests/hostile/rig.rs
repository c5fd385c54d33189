//! A minion without a master in its own folder, and attacks on it, one after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_kit::files::set_mode;
use brine_kit::process::{children, proc, size};
use brine_kit::programs::{library, sandbox_program};
use brine_kit::wat::add_section;
use brine_minion::config::{MinionOpts, Package};
use brine_minion::minion::{Local, sandbox_with};
use brine_protocol::ids::Jid;
use brine_protocol::value::Value;
use brine_sandbox::{Broker, JobContext, JobOutcome, Preparing, Sandbox};
use brine_tests::{compiled, fits};
use tokio::sync::{Mutex, MutexGuard};

/// The id of the minion that modules attack.
const ID: &str = "hostile-test";

/// Only one test at a time, because the tests measure time and memory.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Pings before each attack, and the minimum beside it: enough for a median.
const PINGS: usize = 15;
const PINGS_BESIDE: usize = 9;
/// A good job may take twice its usual time, or this much longer: its usual time is well below a millisecond, so
/// another process on the machine can matter more than the attack.
const FLOOR: Duration = Duration::from_millis(5);
/// What an attack may take beyond its budget: a fifth, plus the reaction time of a busy machine.
const LATE: f64 = 1.2;
const LATE_FLOOR: Duration = Duration::from_millis(300);
/// Memory that a process may keep after the attacks. Measured: up to 15 MiB in glibc's arenas, which do not grow when
/// the attacks are repeated; 15 for a second executor. An attack's own memory (64 MiB) would exceed this. A bomb's text takes
/// much more in the same process: a test makes it before it starts the rig.
const MARGIN: u64 = 24 << 20;
/// The budget of attacks without a limit of their own: a refusal before anything runs, reading a module.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(2);

/// The limits of every attack, unless it has its own.
pub(crate) const LIMITS: &str = "limits: {wall: 6s, cpu: 500ms, memory: 64MiB}";
pub(crate) const WALL: Duration = Duration::from_secs(6);
/// CPU time. The wall-clock time for it depends on the machine, within the wall-clock limit.
pub(crate) const CPU: Duration = Duration::from_millis(500);

/// The owner's settings that no module may see, among some that it may.
const SECRETS: &str =
    "mysql.pass: hunter2\nthing: {port: 1, password: hunter2, api-key: hunter2, deep: [{token: hunter2}]}\n";

/// The expected result of an attack.
#[derive(Debug, Clone)]
pub(crate) enum Gets {
    /// A failed return with this text. `…` stands for parts that differ from run to run.
    Fails(String),
    /// A return that is harmless, as text.
    Returns(String),
}

pub(crate) fn fails(text: impl Into<String>) -> Gets {
    Gets::Fails(text.into())
}

pub(crate) fn returns(text: impl Into<String>) -> Gets {
    Gets::Returns(text.into())
}

/// A minion, with exclusive use of the machine's measurements.
pub(crate) struct Rig {
    local: Local,
    pub(crate) dir: PathBuf,
    idle: Weight,
    /// All deviations, reported at the end.
    wrong: std::sync::Mutex<Vec<String>>,
    _dir: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// Memory of their own in bytes: code that runs is mapped, and given back when all is quiet.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    minion: u64,
    /// The sum of all executors.
    executors: u64,
}

fn package() -> Package {
    let folder = library();
    let modules = ["modules", "../modules"].map(|name| folder.join(name)).into_iter().find(|path| path.exists());
    let modules = modules.unwrap_or_else(|| panic!("no standard modules: run `make modules` first"));
    Package { executor: sandbox_program("brine-executor"), compiler: sandbox_program("brine-compiler"), modules }
}

/// Returns the module `hostile`, which makes the attacks.
pub(crate) fn hostile() -> Vec<u8> {
    let file = match std::env::var_os("BRINE_LIB") {
        Some(folder) => PathBuf::from(folder).join("testing/hostile.wasm"),
        None => brine_kit::programs::testing("hostile"),
    };
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}; run `make modules` first", file.display()))
}

/// Returns the same module with different content.
pub(crate) fn hostile_as(name: &str) -> Vec<u8> {
    let mut wasm = hostile();
    add_section(&mut wasm, name, &[]);
    wasm
}

impl Rig {
    /// Starts a minion with this under `sandbox:`, indented by two. `{dir}` stands for the test's folder.
    pub(crate) async fn start(sandbox: &str) -> Self {
        // As daemons do: what attacks leave is weighed by the memory that the process keeps.
        brine_trim::keep_large_apart();
        let alone = ALONE.lock().await;
        let dir = tempfile::Builder::new().prefix("brine-hostile").tempdir().unwrap();
        // Executors may run as another user, who must reach the granted directories.
        set_mode(dir.path(), 0o755);
        let path = dir.path().canonicalize().unwrap();
        compiled::lay_out(&path.join(compiled::COMPILED));
        let local = prepare(&path, sandbox).await.unwrap_or_else(|error| panic!("{error}"));
        let mut rig = Self {
            local,
            dir: path,
            idle: Weight::default(),
            wrong: std::sync::Mutex::default(),
            _dir: dir,
            _alone: alone,
        };
        rig.pings(PINGS * 3).await;
        rig.idle = Weight::now();
        rig
    }

    /// Restarts the minion with the same folder.
    pub(crate) async fn restart(&mut self, sandbox: &str) {
        self.try_restart(sandbox).await.unwrap_or_else(|error| panic!("{error}"));
    }

    pub(crate) async fn try_restart(&mut self, sandbox: &str) -> Result<(), String> {
        self.sandbox().shutdown().await;
        self.local = prepare(&self.dir, sandbox).await?;
        Ok(())
    }

    pub(crate) fn sandbox(&self) -> &Arc<Sandbox> {
        self.local.sandbox()
    }

    /// What is told of refusals.
    pub(crate) fn broker(&self) -> Arc<dyn Broker> {
        self.local.broker()
    }

    pub(crate) fn pillar(&self, value: Value) {
        self.local.pillar().replace(value);
    }

    /// Installs a module that must be admitted.
    pub(crate) async fn install(&self, name: &str, wasm: &[u8]) {
        if let Err(why) = self.sandbox().install(name, wasm, None, "base").await {
            panic!("{name} is not let in: {why}");
        }
    }

    pub(crate) async fn run(&self, fun: &str, args: Vec<Value>) -> JobOutcome {
        self.sandbox().run(job(fun), fun, args, Vec::new()).await
    }

    async fn pings(&self, count: usize) -> Vec<Duration> {
        let mut took = Vec::with_capacity(count);
        for _ in 0..count {
            took.push(self.ping().await);
        }
        took
    }

    async fn ping(&self) -> Duration {
        let started = Instant::now();
        let outcome = self.run("test.ping", Vec::new()).await;
        let took = started.elapsed();
        assert_eq!(outcome.value, Value::from(true), "{outcome:?}");
        took
    }

    /// Checks the CPU time of an attack that uses up its limit.
    fn within_cpu(&self, what: &str, outcome: &JobOutcome) {
        let took = Duration::from_micros(outcome.usage.map_or(0, |usage| usage.cpu_us));
        if took > CPU.mul_f64(LATE).max(CPU + LATE_FLOOR) {
            self.wrong(format!("{what} took {took:?} of CPU where {CPU:?} is its budget"));
        }
    }

    /// Runs an attack with good jobs beside it. Returns the attack's result.
    pub(crate) async fn beside<T: Send + 'static>(
        &self,
        what: &str,
        budget: Duration,
        attack: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let before = median(self.pings(PINGS).await);
        let started = Instant::now();
        // A separate task, like each job of a minion.
        let mut attack = tokio::spawn(attack);
        let mut beside = Vec::new();
        let done = loop {
            tokio::select! {
                biased;
                done = &mut attack => break done.unwrap(),
                took = self.ping() => beside.push(took),
            }
        };
        let took = started.elapsed();
        while beside.len() < PINGS_BESIDE {
            beside.push(self.ping().await);
        }
        let during = median(beside);
        let most = |usual: Duration| (usual * 2).max(usual + FLOOR);
        // If the machine itself has become slower, the new time is the usual one.
        if during > most(before) && during > most(median(self.pings(PINGS).await)) {
            self.wrong(format!("beside {what} a good job takes {during:?}, before {before:?}"));
        }
        if took > budget.mul_f64(LATE).max(budget + LATE_FLOOR) {
            self.wrong(format!("{what} took {took:?} where {budget:?} is its budget"));
        }
        done
    }

    pub(crate) fn wrong(&self, what: String) {
        self.wrong.lock().unwrap().push(what);
    }

    /// Checks a whole text; `…` in the expected one stands for anything.
    pub(crate) fn said(&self, what: &str, text: &str, expect: &str) {
        println!("{what}: {text}");
        if !fits(text, expect) {
            self.wrong(format!("{what}:\n     got {text:?}\nexpected {expect:?}"));
        }
        if text.contains(char::is_control) {
            self.wrong(format!("{what} says something with control characters: {text:?}"));
        }
    }

    /// Checks the result of an attack.
    pub(crate) fn got(&self, what: &str, outcome: &JobOutcome, gets: &Gets) {
        let value = shown(&outcome.value);
        match gets {
            Gets::Fails(_) if outcome.success || outcome.retcode == 0 => {
                self.wrong(format!("{what} succeeded: {value}"))
            }
            Gets::Returns(_) if !outcome.success => self.wrong(format!("{what} failed: {value}")),
            Gets::Fails(expect) => self.said(what, &value, expect),
            Gets::Returns(expect) if fits(&value, expect) => println!("{what} returned {value:?}"),
            Gets::Returns(expect) => self.wrong(format!("{what}:\n     got {value:?}\nexpected {expect:?}")),
        }
    }

    /// Calls a function and checks its result.
    pub(crate) async fn attack(&self, fun: &str, args: Vec<Value>, budget: Duration, gets: &Gets) {
        self.attack_with(fun, args, Vec::new(), budget, gets).await;
    }

    pub(crate) async fn attack_with(
        &self,
        fun: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
        budget: Duration,
        gets: &Gets,
    ) {
        let shown_args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let shown_kwargs: Vec<String> = kwargs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let what = format!("{fun} {} {}", shown_args.join(" "), shown_kwargs.join(" "));
        let what: String = what.chars().take(300).collect();
        let (sandbox, name) = (Arc::clone(self.sandbox()), fun.to_owned());
        let call = async move { sandbox.run(job(&name), &name, args, kwargs).await };
        let outcome = self.beside(&what, if budget == CPU { WALL } else { budget }, call).await;
        if budget == CPU {
            self.within_cpu(&what, &outcome);
        }
        self.got(&what, &outcome, gets);
    }

    /// Checks that a module is refused.
    pub(crate) async fn refused(&self, name: &str, wasm: &[u8], budget: Duration, expect: &str) {
        let what = format!("installing {name}");
        let (sandbox, module, wasm) = (Arc::clone(self.sandbox()), name.to_owned(), wasm.to_vec());
        let install = async move { sandbox.install(&module, &wasm, None, "base").await };
        let installed = self.beside(&what, budget, install).await;
        match installed {
            Ok(_) => self.wrong(format!("{name} is let in, and was to be refused: {expect}")),
            Err(why) => self.said(&what, &why.to_string(), expect),
        }
    }

    /// Ends the minion and checks that the attacks have left nothing behind.
    pub(crate) async fn end(self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            self.ping().await;
            // As a minion does when it is quiet.
            tokio::task::spawn_blocking(brine_trim::freed).await.expect("it does not panic");
            let now = Weight::now();
            let fits = |now: u64, idle: u64| now <= idle + MARGIN;
            if fits(now.minion, self.idle.minion) && fits(now.executors, self.idle.executors) {
                println!("idle {:?}, after the attacks {now:?}", self.idle);
                break;
            }
            if Instant::now() > deadline {
                self.wrong(format!("idle {:?}, after the attacks {now:?}", self.idle));
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await; // interval between two checks without an event
        }
        self.sandbox().shutdown().await;
        let wrong = self.wrong.into_inner().unwrap();
        assert!(wrong.is_empty(), "{} went wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
}

async fn prepare(dir: &Path, sandbox: &str) -> Result<Local, String> {
    let conf = dir.join("conf");
    std::fs::create_dir_all(&conf).unwrap();
    let text = format!(
        "id: {ID}\nroot_dir: {0}\ncachedir: {0}/cache\nfile_client: local\n{SECRETS}sandbox:\n{1}\n",
        dir.display(),
        sandbox.replace("{dir}", dir.to_str().unwrap()),
    );
    std::fs::write(conf.join("minion"), text).unwrap();
    let opts = MinionOpts::load(&conf, None).map_err(|error| error.to_string())?;
    let make = sandbox_with(package(), &opts, None, Preparing::OnNeed).map_err(|error| error.to_string())?;
    Local::prepare(opts, make).await.map_err(|error| error.to_string())
}

pub(crate) fn job(fun: &str) -> JobContext {
    JobContext { minion_id: ID.to_owned(), ..brine_kit_sandbox::job(Jid::now().as_str(), fun) }
}

pub(crate) fn text(text: &str) -> Value {
    Value::from(text)
}

pub(crate) fn texts(texts: &[&str]) -> Value {
    Value::Array(texts.iter().map(|text| Value::from(*text)).collect())
}

pub(crate) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

impl Weight {
    fn now() -> Self {
        let own_memory = |pid: u32| size(pid, "RssAnon").unwrap_or(0);
        let own = std::process::id();
        let mut weight = Self { minion: own_memory(own), executors: 0 };
        for child in children(own) {
            if proc(child, "comm").is_some_and(|name| name.starts_with("brine-executor")) {
                weight.executors += own_memory(child);
            }
        }
        weight
    }
}
