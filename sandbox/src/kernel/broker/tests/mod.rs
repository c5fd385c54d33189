//! Checks the exact text of each refusal. With the refusal's line in the configuration, the same call is allowed.

mod http;
mod process;

use brine_sandbox_wire::{
    ByteBuf, ChangesOp, ConfigOp, DirectoriesOp, DisksOp, EventsOp, FilesOp, FunctionsOp, GrainsOp, HttpOp,
    HttpRequest, JobsOp, ListKind, MineOp, ModulesOp, NetworkOp, PillarOp, PolicyOp, ProcessOp, ProcessRun, ProgressOp,
    ReceiptsOp, ScheduleOp, StatesOp, UsersOp,
};
use rmpv::Value;

use super::*;
use crate::testing::{caller, policy, sha};
use crate::{Grants, Policy};

const GRANTS_IT: &str =
    "; the owner of this host grants it by this line under sandbox: modules: in the minion's configuration: ";
/// Grants every interface, but nothing within it.
const LINKED: &str = "modules:\n  mine: {grains: true, config: true, modules: true, jobs: true, disks: true, policy: true, process: \
                      [], filesystem: {}, network: [], pillar: [], functions: [], files: [], events: [], mine: []}\n";
const ANY: &str = "modules:\n  mine: {grains: true, config: true, modules: true, jobs: true, disks: true, policy: true, schedule: true, process: \
                   any, filesystem: {/: rw}, network: [\"0.0.0.0/0:*\", \"[::/0]:*\", \"a.example:*\"], pillar: any, functions: any, \
                   files: any, events: any, mine: any}\n";

fn data(bytes: usize) -> ByteBuf {
    ByteBuf::from(vec![0; bytes])
}

fn run(argv: &[&str]) -> ProcessRun {
    ProcessRun { argv: argv.iter().map(ToString::to_string).collect(), ..ProcessRun::default() }
}

fn process(run: ProcessRun) -> HostOp {
    HostOp::Process(ProcessOp::Run(Box::new(run)))
}

fn get(url: &str) -> HostOp {
    http(HttpRequest { method: "GET".into(), url: url.into(), ..HttpRequest::default() })
}

fn http(request: HttpRequest) -> HostOp {
    HostOp::Http(HttpOp::Request(Box::new(request)))
}

fn read(path: &str) -> HostOp {
    HostOp::Files(FilesOp::Read { path: path.into(), saltenv: "base".into(), offset: 0, length: 1 })
}

fn call(function: &str) -> HostOp {
    HostOp::Functions(FunctionsOp::Call {
        function: function.into(),
        args: data(1),
        kwargs: data(1),
        written_left: 0,
        new_files_left: 0,
    })
}

fn pillar(key: &str, delimiter: Option<&str>) -> HostOp {
    HostOp::Pillar(PillarOp::Get { key: key.into(), delimiter: delimiter.map(str::to_owned) })
}

fn fire(tag: &str) -> HostOp {
    HostOp::Events(EventsOp::Fire { tag: tag.into(), data: data(1) })
}

fn progress(bytes: usize) -> HostOp {
    HostOp::Progress(ProgressOp::Report { value: data(bytes) })
}

fn resolve(name: &str) -> HostOp {
    HostOp::Network(NetworkOp::Resolve { name: name.into() })
}

fn one_of_each() -> Vec<HostOp> {
    vec![
        HostOp::Grains(GrainsOp::Items),
        HostOp::Grains(GrainsOp::Get { key: "os".into(), delimiter: None }),
        HostOp::Config(ConfigOp::Get { key: "id".into() }),
        HostOp::Modules(ModulesOp::Names),
        HostOp::Modules(ModulesOp::Describe { name: "test".into() }),
        HostOp::Modules(ModulesOp::Sync { saltenv: Some(vec!["base".into()]) }),
        HostOp::Modules(ModulesOp::RefreshFacts { grains: true, pillar: true }),
        HostOp::Jobs(JobsOp::Running),
        HostOp::Jobs(JobsOp::Find { jid: "1".into() }),
        HostOp::Jobs(JobsOp::Kill { jid: "1".into() }),
        process(run(&["/bin/true"])),
        HostOp::Process(ProcessOp::Which { name: "true".into() }),
        HostOp::Process(ProcessOp::Shell { path: None }),
        call("test.ping"),
        HostOp::Files(FilesOp::Envs),
        HostOp::Files(FilesOp::List { saltenv: "base".into(), prefix: String::new(), kind: ListKind::Files }),
        HostOp::Files(FilesOp::Hash { path: "a".into(), saltenv: "base".into() }),
        read("a/b"),
        HostOp::Files(FilesOp::Cache { path: "a".into(), saltenv: "base".into() }),
        HostOp::Files(FilesOp::CacheAll { paths: vec!["a".into()], saltenv: "base".into() }),
        HostOp::Files(FilesOp::Push { path: vec!["a".into()], offset: 0, data: data(1), size: 1 }),
        get("https://a.example/"),
        resolve("a.example"),
        HostOp::Pillar(PillarOp::Items),
        HostOp::Pillar(PillarOp::Fetch),
        pillar("a", None),
        fire("a/b"),
        HostOp::Mine(MineOp::Publish { name: "a".into(), data: data(1) }),
        HostOp::Mine(MineOp::Delete { name: "a".into() }),
        progress(1),
        HostOp::Schedule(ScheduleOp::Saved),
        HostOp::Users(UsersOp::UserName { uid: 0 }),
        HostOp::Users(UsersOp::GroupName { gid: 0 }),
        HostOp::Directories(DirectoriesOp::Line { path: "/etc".into(), wanted: "/etc/x".into() }),
        HostOp::Disks(DisksOp::Mounts),
        HostOp::Disks(DisksOp::Usage { mount_point: "/".into() }),
        HostOp::Disks(DisksOp::FileSystems),
        HostOp::Disks(DisksOp::FileSystemAt { mount_point: "/".into() }),
        HostOp::Policy(PolicyOp::List),
        HostOp::Policy(PolicyOp::Show { name: "test".into() }),
        HostOp::Policy(PolicyOp::Check),
        HostOp::Policy(PolicyOp::Diff { name: "test".into() }),
        HostOp::Policy(PolicyOp::Refusals),
        HostOp::Policy(PolicyOp::Running),
        HostOp::Policy(PolicyOp::Suggest { since_s: Some(60), module: Some("test".into()) }),
    ]
}

/// What one master had run here is nothing for another, nor for whoever chose what a nested call does.
#[test]
fn receipts_are_shown_to_who_calls_on_this_host_alone() {
    let at = |module: &str, function: &str, master: Option<&str>| {
        caller(&policy("modules:\n  receipts: {receipts: true}\n"), module, function, master)
    };
    let ops = || {
        let page = ReceiptsOp::Page { place: String::new(), jid: String::new(), evidence: true };
        [HostOp::Receipts(page), HostOp::Receipts(ReceiptsOp::Verify)]
    };
    let mut nested = at("receipts", "list", None);
    nested.chain = ["mine.update".to_owned(), "receipts.list".to_owned()].into();
    for op in ops() {
        assert!(check(&at("receipts", "list", None), op).is_ok());
    }
    let of_master = at("receipts", "list", Some("aa:bb"));
    for who in [of_master.clone(), typed(of_master), nested, not_typed(at("receipts", "list", None))] {
        for op in ops() {
            let Err(HostError::Denied(why)) = check(&who, op) else { panic!("it is shown") };
            assert!(why.contains("salt-call --local receipts.list"), "{why}");
        }
    }
}

/// The owner's decisions need more than a grant: they depend on the caller and on the way of the call.
#[test]
fn modules_are_approved_by_who_types_it_on_this_host_alone() {
    let at = |module: &str, function: &str, master: Option<&str>| caller(&policy(ANY), module, function, master);
    let approve = || HostOp::Policy(PolicyOp::Approve { name: "mine".into(), sha256: "ab".repeat(32) });
    let denied = |caller: &Caller, op: HostOp| match check(caller, op) {
        Err(HostError::Denied(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(check(&at("sandbox", "approve", None), approve()).is_ok());
    let mut nested = at("sandbox", "approve", None);
    nested.chain = ["mine.update".to_owned(), "sandbox.approve".to_owned()].into();
    // In turn: a master's job that the policy knows, a nested call, a job of the owner's schedule, another function, and
    // another module with the grant `policy`.
    for caller in [
        at("sandbox", "approve", Some("aa:bb")),
        typed(at("sandbox", "approve", Some("aa:bb"))),
        nested,
        not_typed(at("sandbox", "approve", None)),
        at("sandbox", "list", None),
        at("mine", "approve", None),
    ] {
        let why = denied(&caller, approve());
        assert!(
            why.contains("approved on the host itself") && why.contains("salt-call --local sandbox.approve mine abab"),
            "{why}"
        );
    }
    let line = || "cmd: {process: [/bin/x]}".to_owned();
    for (function, op) in [
        ("grant", HostOp::Policy(PolicyOp::Grant { line: line() })),
        ("revoke", HostOp::Policy(PolicyOp::Revoke { line: line() })),
    ] {
        assert!(check(&at("sandbox", function, None), op.clone()).is_ok());
        let mut nested = at("sandbox", function, None);
        nested.chain = ["state.apply".to_owned(), format!("sandbox.{function}")].into();
        for caller in [
            at("sandbox", function, Some("aa:bb")),
            typed(at("sandbox", function, Some("aa:bb"))),
            nested,
            not_typed(at("sandbox", function, None)),
            at("sandbox", "list", None),
            at("mine", function, None),
        ] {
            let why = denied(&caller, op.clone());
            assert!(why.contains("changed on the host itself"), "{why}");
        }
    }
    // A line is one line of text, of a size that is read.
    for line in ["a: {b: true}\nc: {d: true}".to_owned(), "a: {b: [\u{1b}]}".to_owned(), "a".repeat(17 << 10)] {
        for (function, op) in
            [("grant", PolicyOp::Grant { line: line.clone() }), ("revoke", PolicyOp::Revoke { line: line.clone() })]
        {
            let refused = check(&at("sandbox", function, None), HostOp::Policy(op));
            assert!(matches!(refused, Err(HostError::Failed(_) | HostError::Denied(_))), "{refused:?}");
        }
    }
    let rollback = || HostOp::Policy(PolicyOp::Rollback { name: "mine".into() });
    for master in [None, Some("aa:bb")] {
        assert!(check(&at("sandbox", "rollback", master), rollback()).is_ok());
        let why = denied(&at("mine", "f", master), rollback());
        assert_eq!(why, "module mine may not change other modules; `sandbox.rollback` does");
    }
}

/// The grant to run states, however wide, steers no runs.
#[test]
fn only_the_module_that_runs_states_steers_runs() {
    let keep = || HostOp::States(StatesOp::Keep { tag: "a".into(), result: data(1) });
    let state = caller(&policy("{}"), "state", "apply", Some("aa:bb"));
    assert!(check(&state, keep()).is_ok());
    for (who, name) in [
        (caller(&policy("modules: {mine: {states: any}}"), "mine", "f", None), "mine"),
        (state.running_states(false), "state"),
    ] {
        let why = check(&who, keep()).unwrap_err();
        let expect = format!("module {name} may not say what a state came to; the module `state` of this host does");
        assert_eq!(why, HostError::Denied(expect));
    }
}

/// As a job that claims to have been typed here, whoever asked for it.
fn typed(mut caller: Caller) -> Caller {
    Arc::make_mut(&mut caller.job).typed = true;
    caller
}

/// As a job of this host that nobody typed: of its schedule, at its start.
fn not_typed(mut caller: Caller) -> Caller {
    Arc::make_mut(&mut caller.job).typed = false;
    caller
}

/// Keeps the lines of refusals, as the owner finds them later.
#[derive(Default)]
struct Lines(std::sync::Mutex<Vec<(String, Option<String>)>>);

impl Broker for Lines {
    fn host_call<'a>(&'a self, _: &'a Caller, _: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        unreachable!("only refusals are tried")
    }

    fn log(&self, _: &JobContext, _: LogLevel, _: &str) {}

    fn refused(&self, refused: &RefusedCall<'_>) {
        self.0.lock().unwrap().push((refused.what.to_owned(), (refused.line)()));
    }
}

/// A line that is made of a refusal grants what was wanted, and nothing beside it: neither the folder around it, nor what a
/// name with wildcards would match.
#[test]
fn a_line_of_a_refusal_grants_no_more_than_was_wanted() {
    let look = |path: &str| HostOp::Changes(ChangesOp::Look { path: path.to_owned(), follow: false, hash: false });
    let long = format!("/srv/{}", "a".repeat(4_000));
    let allows = |line: &str, op: &HostOp| {
        let policy = policy(&format!("modules:\n  {line}\n"));
        check(&caller(&policy, "mine", "f", None), op.clone()).is_ok()
    };
    let lines = |op: &HostOp| {
        let lines = Lines::default();
        let who = caller(&policy(&LINKED.replace("mine: {", "mine: {changes: {}, ")), "mine", "f", None);
        check_and_tell(&lines, &who, op.clone()).unwrap_err();
        let all = lines.0.into_inner().unwrap();
        assert!(all.len() <= 1, "{all:?}");
        all.into_iter().next().map(|(_, line)| line)
    };
    for (op, beside) in [
        (look("/etc/motd"), vec![look("/etc/passwd"), look("/etc")]),
        (look("/srv/a b: {c}, [\"d\"] # e"), vec![look("/srv/a b"), look("/srv")]),
        (look("/srv/*"), vec![look("/srv/x"), look("/srv")]),
        (look("/srv/[a-z]?"), vec![look("/srv/ab"), look("/srv/[a-z]b")]),
        (look(&long), vec![look(&long[..long.len() - 1]), look("/srv")]),
        (process(run(&["/opt/*"])), vec![process(run(&["/opt/x"]))]),
        (process(run(&["/opt/a, /bin/sh"])), vec![process(run(&["/bin/sh"])), process(run(&["/opt/a"]))]),
        (read("a/b.conf"), vec![read("a/c.conf"), read("a/b")]),
        (call("cmd.run"), vec![call("cmd.run_all"), call("cmd.rum")]),
    ] {
        let line = lines(&op).flatten().unwrap_or_else(|| panic!("no line: {op:?}"));
        assert!(!line.contains('\n'), "{line}");
        assert!(allows(&line, &op), "{line} does not grant {op:?}");
        for other in beside {
            assert!(!allows(&line, &other), "{line} grants {other:?}");
        }
    }
    // What no line can name alone has none, and what is malformed is not even listed.
    for op in [read("a/*.conf"), read("a/?.conf"), call("cmd.*"), look("/srv/x\ny: {process: any}")] {
        assert!(lines(&op).flatten().is_none(), "{op:?}");
    }
    for op in [look("/srv/../etc/shadow"), look("srv"), process(run(&["/bin/../bin/sh"])), process(run(&["/bin/\nx"]))]
    {
        assert!(lines(&op).is_none(), "{op:?}");
    }
}

/// Checks the refusal of a call with nothing granted within its interface, and that the refusal's line allows the call.
fn refusal(config: &str, op: &HostOp, expect: &str) {
    let before = caller(&policy(config), "mine", "f", None);
    let error = check(&before, op.clone()).unwrap_err();
    let expect = expect.replace("LINE", GRANTS_IT);
    assert_eq!(error.to_string(), expect);
    assert!(matches!(error, HostError::Denied(_)));
    let line = expect.split(GRANTS_IT).nth(1).unwrap();
    let after = caller(&policy(&format!("modules:\n  {line}\n")), "mine", "f", None);
    check(&after, op.clone()).unwrap_or_else(|error| panic!("{line} does not grant {op:?}: {error}"));
}

/// Checks a call that is refused whatever was granted.
fn never(op: HostOp, expect: &str) {
    let error = check(&caller(&policy(ANY), "mine", "f", None), op).unwrap_err();
    assert_eq!(error.to_string(), expect);
}

#[test]
fn each_interface_opens_its_own_calls_and_no_others() {
    let nothing = Caller { grants: Arc::default(), ..caller(&Policy::default(), "mine", "f", None) };
    for op in one_of_each() {
        let any = caller(&policy(ANY), "mine", "f", None);
        assert!(check(&any, op.clone()).is_ok(), "{op:?}");
        assert!(matches!(check(&nothing, op.clone()), Err(HostError::Denied(_))), "{op:?}");
        for interface in any.grants.interfaces() {
            let grants = Grants::clone(&any.grants).only([interface]);
            let only = Caller { grants: Arc::new(grants), ..any.clone() };
            assert_eq!(check(&only, op.clone()).is_ok(), op.interface() == interface, "{op:?} with {interface}");
        }
    }
}

#[test]
fn interfaces_that_a_function_does_not_have() {
    let config = "modules:\n  mine.g: {jobs: true, process: any, filesystem: {/: rw}, network: [\"a:1\"]}\n";
    refused_for(config, HostOp::Jobs(JobsOp::Running), "see and end running jobs", "jobs: true");
    refused_for(config, process(run(&["ls"])), "run programs", "process: []");
    refused_for(config, HostOp::Users(UsersOp::UserName { uid: 0 }), "see directories of this host", "filesystem: {}");
    refused_for(config, get("http://a/"), "reach other hosts", "network: []");
}

fn refused_for(config: &str, op: HostOp, what: &str, line: &str) {
    let who = caller(&policy(&config.replace("mine.g", "mine.other")), "mine", "f", None);
    let error = check(&who, op).unwrap_err();
    assert_eq!(error.to_string(), format!("module mine may not {what}{GRANTS_IT}mine: {{{line}}}"));
}

#[test]
fn the_line_that_grants_a_directory() {
    let who = caller(&policy("modules:\n  mine: {filesystem: {/etc: ro, /srv: rw}}\n"), "mine", "f", None);
    let line = who.directory_line("/srv/a b", false);
    assert_eq!(line, format!("{GRANTS_IT}mine: {{filesystem: {{/etc: ro, /srv: rw, \"/srv/a b\": ro}}}}"));
    let granted = caller(&policy(&format!("modules:\n  {}\n", &line[GRANTS_IT.len()..])), "mine", "f", None).grants;
    assert_eq!(granted.direct.directories.len(), 3);
    // No configuration line can name these paths.
    for path in ["", "srv", "/srv/..", "/srv/./a", "/srv//a", "/srv/"] {
        assert_eq!(who.directory_line(path, false), "", "{path}");
    }
}

/// Expands a shortened entry with the unchanged grants.
fn linked(rest: &str) -> String {
    let all = [
        ("process", "[]"),
        ("filesystem", "{}"),
        ("network", "[]"),
        ("pillar", "[]"),
        ("functions", "[]"),
        ("files", "[]"),
        ("events", "[]"),
        ("mine", "[]"),
    ];
    let (key, _) = rest.split_once(':').unwrap();
    let flags = "grains: true, config: true, modules: true, jobs: true, disks: true, policy: true";
    let entry = |(name, least): (&str, &str)| if name == key { rest.to_owned() } else { format!("{name}: {least}") };
    format!("mine: {{{flags}, {}}}", all.map(entry).join(", "))
}

#[test]
fn names_are_refused_with_the_line_that_grants_them() {
    let check =
        |op, what: &str, rest: &str| refusal(LINKED, &op, &format!("module mine may not {what}LINE{}", linked(rest)));
    check(process(run(&["/opt/x/tool", "-v"])), "run /opt/x/tool", "process: [/opt/x/tool]");
    check(process(run(&["no-such-tool"])), "run /usr/bin/no-such-tool", "process: [/usr/bin/no-such-tool]");
    check(HostOp::Process(ProcessOp::Which { name: "/a b".into() }), "run /a b", "process: [\"/a b\"]");
    check(call("test.ping"), "call test.ping", "functions: [test.ping]");
    check(read("deploy/a.conf"), "read salt://deploy/a.conf", "files: [deploy/a.conf]");
    check(read("a b: {c}"), "read salt://a b: {c}", "files: [\"a b: {c}\"]");
    check(pillar("deploy", None), "read the pillar's deploy", "pillar: [deploy]");
    check(pillar("web|tls", Some("|")), "read the pillar's web:tls", "pillar: [\"web:tls\"]");
    check(fire("deploy/done"), "fire the event deploy/done", "events: [deploy/done]");
    check(HostOp::Mine(MineOp::Delete { name: "yes".into() }), "publish yes to the mine", "mine: [\"yes\"]");
    check(get("https://repo.example/x"), "reach repo.example:443", "network: [\"repo.example:443\"]");
    check(get("http://[::1]:8080/x"), "reach [::1]:8080", "network: [\"[::1]:8080\"]");
    check(resolve("Repo.Example."), "look up repo.example", "network: [\"repo.example:443\"]");
    let push = FilesOp::Push { path: vec!["etc".into(), "hosts".into()], offset: 0, data: data(1), size: 1 };
    check(HostOp::Files(push), "send the master a file as etc/hosts", "files: [etc/hosts]");
    let all = FilesOp::CacheAll { paths: vec!["deploy/x".into()], saltenv: "base".into() };
    check(HostOp::Files(all), "read salt://deploy/x", "files: [deploy/x]");
    let named = ProcessRun {
        cwd: Some("/srv/app".into()),
        env: vec![("PATH".into(), "/x".into()), ("LANG".into(), "C".into())],
        run_as: Some("deploy".into()),
        group: Some("www".into()),
        ..run(&["/bin/x"])
    };
    check(
        process(named),
        "run /bin/x and not run programs in /srv/app and not set the variable PATH and not run programs as user deploy and not \
         run programs as group www",
        "process: {programs: [/bin/x], users: [deploy], groups: [www], env: [PATH], cwd: [/srv/app]}",
    );
    // The short form, if the owner has no other entry.
    refusal(
        "modules:\n  mine: {process: [/usr/bin/uptime]}\n",
        &process(run(&["/bin/x"])),
        "module mine may not run /bin/xLINEmine: {process: [/usr/bin/uptime, /bin/x]}",
    );
}

/// The line grants the requested name literally and nothing else.
#[test]
fn a_line_grants_no_more_than_the_name() {
    let config = |files: &str| format!("modules:\n  mine: {{files: [\"{files}\"]}}\n");
    let error = check(&caller(&policy(&config("x")), "mine", "f", None), read("a*b")).unwrap_err().to_string();
    assert!(error.ends_with("mine: {files: [x, \"a?b\"]}"), "{error}");
    let who = caller(&policy(&config("a?b")), "mine", "f", None);
    assert!(check(&who, read("a*b")).is_ok() && check(&who, read("axxb")).is_err());
}

#[test]
fn the_line_is_of_the_entry_that_counts() {
    let master = ["aa"; 32].join(":");
    let config = format!(
        "modules:\n  mine: {{functions: any}}\n  mine.f: {{functions: [test.ping], limits: {{wall: 5s}}, user: deploy}}\nmasters:\n  \
         \"{master}\":\n    modules:\n      mine.f: {{functions: false}}\n"
    );
    let policy = policy(&config);
    let error = check(&caller(&policy, "mine", "f", None), call("test.echo")).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "module mine may not call test.echo{GRANTS_IT}mine.f: {{functions: [test.ping, test.echo], user: deploy, limits: {{wall: \
             5000ms}}}}"
        )
    );
    let error = check(&caller(&policy, "mine", "f", Some(&master)), call("test.echo")).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "module mine may not call functions of other modules; the owner of this host grants it by this line under sandbox: masters: \
             \"{master}\": modules: in the minion's configuration: mine.f: {{functions: []}}"
        )
    );
    // Other functions keep the module's grants.
    assert!(check(&caller(&policy, "mine", "other", Some(&master)), call("test.echo")).is_ok());
}

/// An entry for a module that is not standard names its content.
#[test]
fn a_new_entry_is_bound_to_the_content() {
    let name = "mine".parse().unwrap();
    let subject = crate::Subject { name: &name, standard: false, sha256: sha(0xab), signers: &[] };
    let every = policy("modules:\n  \"*\": {pillar: []}\n");
    let granted = every.decide(&subject, &["brine:host/pillar@1.0.0".into()], &["f"]).unwrap().of("f", None).unwrap();
    let who = caller(&every, "mine", "f", None);
    let who = Caller { grants: Arc::clone(&granted.grants), ..who }.with_remedy(granted.remedy());
    let error = check(&who, pillar("a", None)).unwrap_err().to_string();
    let hash = "ab".repeat(32);
    assert_eq!(
        error,
        format!("module mine may not read the pillar's a{GRANTS_IT}mine: {{sha256: {hash}, pillar: [a]}}")
    );
}

#[test]
fn other_arguments_have_a_form() {
    let long = "x".repeat(1_025);
    never(HostOp::Grains(GrainsOp::Get { key: long, delimiter: None }), "the key has 1025 bytes; the most is 1024");
    never(HostOp::Grains(GrainsOp::Get { key: "a".into(), delimiter: Some(String::new()) }), "the delimiter is empty");
    never(
        HostOp::Grains(GrainsOp::Get { key: "a".into(), delimiter: Some("x".repeat(17)) }),
        "the delimiter has 17 bytes; the most is 16",
    );
    never(HostOp::Config(ConfigOp::Get { key: "a\u{1b}[31m".into() }), "the key has control characters");
    never(
        HostOp::Modules(ModulesOp::Describe { name: "x".repeat(65) }),
        "the name of a module has 65 bytes; the most is 64",
    );
    never(HostOp::Modules(ModulesOp::Sync { saltenv: Some(vec!["../x".into()]) }), "the environment is not one name");
    never(
        HostOp::Modules(ModulesOp::Sync { saltenv: Some(vec!["a".into(); 33]) }),
        "the list of environments has more than 32 items",
    );
    never(HostOp::Jobs(JobsOp::Kill { jid: "1\n2".into() }), "the id of a job has control characters");
    never(HostOp::Disks(DisksOp::Usage { mount_point: "/a\0".into() }), "the mount point has a NUL byte");
    never(HostOp::Disks(DisksOp::FileSystemAt { mount_point: "/a\0".into() }), "the mount point has a NUL byte");
    never(HostOp::Policy(PolicyOp::Show { name: String::new() }), "the name of a module is empty");
    for name in ["ping", "test.", ".ping", "test.ping.x", "te st.ping", "test.ping;x"] {
        never(call(name), "the name of a function is to be as in test.ping");
    }
    never(
        HostOp::Functions(FunctionsOp::Call {
            function: "test.ping".into(),
            args: data(16 << 20),
            kwargs: data(1),
            written_left: 0,
            new_files_left: 0,
        }),
        "the arguments: 16777217 bytes; the most is 16777216",
    );
    for (path, why) in [
        ("", "is empty"),
        ("/etc/passwd", "has parts that are empty, . or .."),
        ("a/../b", "has parts that are empty, . or .."),
        ("a//b", "has parts that are empty, . or .."),
        ("a/", "has parts that are empty, . or .."),
        ("a\\b", "has a backslash"),
        ("a\rb", "has control characters"),
        ("a\u{202e}b", "has control characters"),
    ] {
        never(read(path), &format!("the path {why}"));
    }
    never(HostOp::Files(FilesOp::Cache { path: "a".into(), saltenv: "a/b".into() }), "the environment is not one name");
    let cache_all = |paths: &[&str]| {
        let paths = paths.iter().map(ToString::to_string).collect();
        HostOp::Files(FilesOp::CacheAll { paths, saltenv: "base".into() })
    };
    never(cache_all(&["a", "../b"]), "the path has parts that are empty, . or ..");
    never(cache_all(&["a"; 257]), "the list of paths has more than 256");
    let hash_all = |paths: &[&str]| {
        let paths = paths.iter().map(ToString::to_string).collect();
        HostOp::Files(FilesOp::HashAll { paths, saltenv: "base".into() })
    };
    never(hash_all(&["a", "../b"]), "the path has parts that are empty, . or ..");
    never(hash_all(&["a"; 257]), "the list of paths has more than 256");
    let push = |path: &[&str], offset, size| {
        HostOp::Files(FilesOp::Push {
            path: path.iter().map(ToString::to_string).collect(),
            offset,
            data: data(2),
            size,
        })
    };
    never(push(&[], 0, 2), "the path has none or more than 128 parts");
    never(push(&["a", ".."], 0, 2), "the path has parts that are empty, . or ..");
    never(push(&["a/b"], 0, 2), "a part of the path has a slash");
    never(push(&["a"], 1, 2), "the data goes beyond the size of the file");
    never(push(&["a"], u64::MAX, 2), "the data goes beyond the size of the file");
    never(
        HostOp::Events(EventsOp::Fire { tag: "a".into(), data: data((1 << 20) + 1) }),
        "the event's data: 1048577 bytes; the most is 1048576",
    );
    never(progress((16 << 10) + 1), "the progress: 16385 bytes; the most is 16384");
    never(
        HostOp::Mine(MineOp::Publish { name: "a\n".into(), data: data(1) }),
        "the name in the mine has control characters",
    );
    for name in ["", "a b", "127.1", "0x7f000001", "2130706433", "a..b", &"x".repeat(300)] {
        never(resolve(name), "the name of a host is neither a name nor an address");
    }
    // A request for more than the limit of one read is refused.
    let all = caller(&policy(ANY), "mine", "f", None);
    let op = FilesOp::Read { path: "a".into(), saltenv: "base".into(), offset: 0, length: u32::MAX };
    assert!(matches!(check(&all, HostOp::Files(op)), Ok(HostOp::Files(FilesOp::Read { length: 4_194_304, .. }))));
}

#[test]
fn tags_are_the_modules_own() {
    let who = caller(&policy(ANY), "mine", "f", None);
    for tag in ["deploy/done", "myapp", "salty/x", "salt/beacon/web1/load/x", "salt/minion/web1/deployed"] {
        assert!(check(&who, fire(tag)).is_ok(), "{tag}");
    }
    for tag in [
        "salt/auth",
        "salt/key",
        "salt/job/20261120134740245008/ret/web1",
        "salt/job/20261120134740245008/ret/web2",
        "salt/minion/web1/start",
        "salt/minion/web2/x",
        "salt/minion/web1",
        "salt/beacon/web2/x",
        "salt/run/x/ret",
        "salt//x",
        "salt",
        "minion_start",
        "minion/refresh/web1",
        "key",
        "brine/x",
        "20261120134740245008",
        "20261120134740245008_12/x",
        "fire_master",
    ] {
        let error = check(&who, fire(tag)).unwrap_err().to_string();
        let expect = "is not one that a module may fire: it begins with a word of the master's own; there are words of one's own, and \
                      salt/beacon/web1/ and salt/minion/web1/";
        assert_eq!(error, format!("the tag {tag} {expect}"));
    }
    never(fire("/salt/auth"), "the tag starts with a slash");
    never(fire("a\nb"), "the tag has control characters");
    never(fire(""), "the tag is empty");
}

#[test]
fn pillar_keys_are_held_by_their_parts() {
    let who = caller(&policy("modules:\n  mine: {pillar: [deploy, \"web:tls\"]}\n"), "mine", "f", None);
    for (key, delimiter, may) in [
        ("deploy", None, true),
        ("deploy:a:b", None, true),
        ("deploy|a", Some("|"), true),
        ("web:tls:key", None, true),
        ("web", None, false),
        ("web:other", None, false),
        ("deployx", None, false),
        ("other", None, false),
        ("deploy|a", None, false),
        // With another delimiter the text is a single key of that very name.
        ("deploy:a", Some("|"), false),
        ("web:tls", Some("|"), false),
        (":deploy", None, false),
    ] {
        assert_eq!(check(&who, pillar(key, delimiter)).is_ok(), may, "{key} {delimiter:?}");
    }
}

#[test]
fn lists_show_what_was_granted() {
    let config =
        "modules:\n  mine: {pillar: [deploy, \"web:tls\", \"no:such\"], files: [\"deploy/*.conf\", \"a/**\"]}\n";
    let who = caller(&policy(config), "mine", "f", None);
    let shown = |op: HostOp, answer: Value| cut_down(op.shown(), &who.grants, answer);
    let map =
        |entries: Vec<(&str, Value)>| Value::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect());
    let pillar = map(vec![
        ("deploy", map(vec![("a", 1.into())])),
        ("web", map(vec![("tls", 2.into()), ("secret", 3.into())])),
        ("no", map(vec![("other", 4.into())])),
        ("other", 5.into()),
    ]);
    let expect = map(vec![("deploy", map(vec![("a", 1.into())])), ("web", map(vec![("tls", 2.into())]))]);
    assert_eq!(shown(HostOp::Pillar(PillarOp::Items), pillar.clone()), expect);
    assert_eq!(shown(HostOp::Pillar(PillarOp::Fetch), pillar), expect);
    let list = |kind| HostOp::Files(FilesOp::List { saltenv: "base".into(), prefix: String::new(), kind });
    let array = |items: &[&str]| Value::Array(items.iter().map(|item| Value::from(*item)).collect());
    let files = array(&["deploy/x.conf", "deploy/x", "deploy/y/z.conf", "a/b/c", "b", "a"]);
    assert_eq!(shown(list(ListKind::Files), files), array(&["deploy/x.conf", "a/b/c"]));
    // Of files that are cached together, each has to be granted.
    let all = |paths: &[&str]| {
        let paths = paths.iter().map(ToString::to_string).collect();
        check(&who, HostOp::Files(FilesOp::CacheAll { paths, saltenv: "base".into() }))
    };
    assert!(all(&["deploy/x.conf", "a/b/c"]).is_ok());
    assert!(all(&["deploy/x.conf", "deploy/x"]).unwrap_err().to_string().contains("may not read salt://deploy/x;"));
    let folders = array(&["deploy", "deploy/y", "a", "a/b", "b", "dep"]);
    assert_eq!(shown(list(ListKind::Dirs), folders), array(&["deploy", "a", "a/b"]));
    assert_eq!(shown(HostOp::Grains(GrainsOp::Items), array(&["x"])), array(&["x"]));
}
