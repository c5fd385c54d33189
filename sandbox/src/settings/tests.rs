use super::*;
use crate::policy::{Capability, Grant, Quorum, Signers};
use crate::testing::yaml;
use brine_capabilities::{Names, ProcessGrant};

fn fails(config: &str, expect: &str) {
    match Settings::read(&yaml(config)) {
        Ok(_) => panic!("{config} is taken"),
        Err(error) => assert_eq!(error.to_string(), expect),
    }
}

fn only(names: &[&str]) -> Names {
    Names::Only(names.iter().map(ToString::to_string).collect())
}

#[test]
fn defaults() {
    let settings = Settings::read(&Value::Nil).unwrap();
    assert_eq!(settings.limits, Limits::default());
    assert_eq!(settings.policy, Policy::default());
    assert_eq!((settings.user, settings.require_second_wall), (None, false));
    assert_eq!(settings.executor_idle, Duration::from_secs(60));
}

#[test]
fn limits() {
    let settings = Settings::read(&yaml(
        "{limits: {memory: 128MiB, wall: 1.5s, cpu: 500ms, output: 2048, log: 1 K, log_lines: 5}, max_running: 3, max_waiting: 9, user: 4711, \
         require_second_wall: true, executor_idle: 5s, total_memory: 1GiB, \
         recordings: {size: 1MiB, total: 2MiB, secrets: ['DB_*']}}",
    ))
    .unwrap();
    let limits = settings.limits;
    assert_eq!((limits.memory, limits.wall_ms, limits.cpu_ms, limits.log_lines), (128 << 20, 1_500, 500, 5));
    assert_eq!((limits.output, limits.log, settings.max_running, settings.max_waiting), (2048, 1024, 3, 9));
    assert_eq!((settings.user.as_deref(), settings.require_second_wall), (Some("4711"), true));
    assert_eq!((settings.executor_idle, settings.total_memory), (Duration::from_secs(5), 1 << 30));
    let recordings = &settings.recordings;
    assert_eq!(
        (recordings.size, recordings.total, &recordings.secrets[..]),
        (1 << 20, 2 << 20, &["db_*".to_owned()][..])
    );
    fails("limits: {memory: \"1\"}", "sandbox:limits:memory: \"1\" is not between 65536 and 4294967296 bytes");
    fails("limits: {memory: lots}", "sandbox:limits:memory: a size as in 64MiB is expected, not \"lots\"");
    fails("limits: {memory: -5}", "sandbox:limits:memory: -5 is not between 65536 and 4294967296 bytes");
    fails("limits: {wall: 0}", "sandbox:limits:wall: 0 is not between 10ms and 24h");
    fails("limits: {wall: .nan}", "sandbox:limits:wall: NaN is not between 10ms and 24h");
    fails(
        "limits: {time: 1}",
        "sandbox:limits:time: there is no such limit; there are memory, wall, cpu, calls_cpu, output, log, log_lines, host_bytes, host_calls, written and new_files",
    );
    fails("limits: 5", "sandbox:limits: a dict is expected, not 5");
    fails("user: \"a b\"", "sandbox:user: \"a b\" cannot be a user's name");
    fails("user: 4294967295", "sandbox:user: 4294967295 is no user's number");
    fails("require_second_wall: 1", "sandbox:require_second_wall: true or false is expected, not 1");
    fails(
        "moduls: {}",
        "sandbox:moduls: there is no such setting; there are user, require_second_wall, executor_idle, max_running, max_waiting, max_queued, \
         total_memory, limits, learn, tell_refusals, recordings, compile, modules, masters, profiles, profiles_dir, replace_standard, keys and revoked",
    );
}

#[test]
fn entries_are_read() {
    let hash = "0a".repeat(32);
    let config = format!(
        "modules:\n  deploy: {{sha256: {hash}, signed_by: [ops.pub], jobs: true, grains: false, process: [/bin/ls, /opt/x], filesystem: \
         {{/srv/app: rw, /etc: ro}}, network: [\"b:1\", \"A:2\"], pillar: [deploy], functions: [\"test.*\"], files: any, events: true, \
         mine: [], user: deploy, limits: {{wall: 5s}}, max_running: 4, max_queued: 0}}\n  cmd.run: {{process: any}}\n  \"*\": {{config: \
         false}}\nreplace_standard: [test]\n"
    );
    let policy = Settings::read(&yaml(&config)).unwrap().policy;
    let entry = &policy.general.modules["deploy"];
    assert_eq!(entry.sha256.unwrap().to_string(), hash);
    assert!(
        matches!(&entry.signed_by, Some(Signers::Needed(Quorum { at_least: 1, of, any: false })) if of[0].written == "ops.pub" && of[0].key.is_none())
    );
    assert_eq!(entry.says[&Capability::Jobs], Grant::Yes);
    assert_eq!(entry.says[&Capability::Grains], Grant::No);
    let process = ProcessGrant { programs: only(&["/bin/ls", "/opt/x"]), ..ProcessGrant::default() };
    assert_eq!(entry.says[&Capability::Process], Grant::Process(process));
    assert_eq!(entry.says[&Capability::Filesystem].to_string(), "{/etc: ro, /srv/app: rw}");
    assert_eq!(entry.says[&Capability::Network].to_string(), "[\"a:2\", \"b:1\"]");
    assert_eq!(entry.says[&Capability::Functions], Grant::Names(only(&["test.*"])));
    assert_eq!(entry.says[&Capability::Files], Grant::Names(Names::Any));
    assert_eq!(entry.says[&Capability::Events], Grant::Names(Names::Any));
    assert_eq!(entry.says[&Capability::Mine], Grant::Names(Names::default()));
    assert_eq!((entry.user.as_deref(), entry.limits.wall_ms), (Some("deploy"), Some(5_000)));
    assert_eq!((entry.max_running, entry.max_queued), (Some(4), Some(0)));
    assert_eq!(policy.general.functions[&("cmd".parse().unwrap(), "run".into())].to_string(), "{process: any}");
    assert_eq!(policy.general.every.to_string(), "{config: false}");
    assert!(policy.replace_standard.contains("test"));
}

#[test]
fn what_an_entry_cannot_be() {
    let bad = |entry: &str, expect: &str| {
        fails(&format!("modules: {{x: {{{entry}}}}}"), &format!("sandbox:modules:x:{expect}"))
    };
    bad("record: sometimes", "record: on, asked or off is expected, not \"sometimes\"");
    bad("jobs: yes please", "jobs: true or false is expected, not \"yes please\"");
    bad(
        "job: true",
        "job: there is no such grant; there are grains, static_grains, config, modules, jobs, disks, policy, process, filesystem, changes, network, pillar, \
         functions, files, events, mine, progress, schedule, states, kernel, beacons, receipts, publish, sha256, signed_by, downgrade, user, limits, max_running, max_queued and record",
    );
    bad("sha256: 12ab", "sha256: 64 hex digits are expected, in quotes if all of them are decimal");
    let form = "any, a list of programs, a dict of programs, lines, looks, users, groups, env, cwd, detach and file_size, or false is expected, not";
    bad("process: true", &format!("process: {form} true"));
    bad("process: ls", &format!("process: {form} \"ls\""));
    bad("process: [ls]", "process: \"ls\" is not an absolute path");
    bad(
        "process: [/bin/../ls]",
        "process: \"/bin/../ls\" has parts that are empty, . or ..; the path is to be written without them",
    );
    bad("process: [/]", "process: \"/\" is not a program");
    bad("process: [1]", "process: text is expected, not 1");
    bad("process: [\"\"]", "process: it is empty");
    bad(
        "process: {program: any}",
        "process:program: there is no such key; there are programs, lines, looks, users, groups, env, cwd, detach and file_size",
    );
    bad(
        "process: {env: [\"A-B\"]}",
        "process:env: \"A-B\" cannot be a variable's name: letters, digits and _, no digit first",
    );
    bad("process: {cwd: [srv]}", "process:cwd: \"srv\" is not an absolute path");
    bad("process: {users: [\"-x\"]}", "process:users: \"-x\" cannot be a user's name");
    bad("filesystem: true", "filesystem: a dict as in {/srv/app: rw, /etc: ro} or false is expected, not true");
    bad("filesystem: [/etc]", "filesystem: a dict as in {/srv/app: rw, /etc: ro} or false is expected, not [\"/etc\"]");
    bad("filesystem: {/etc: w}", "filesystem:/etc: ro or rw is expected, not \"w\"");
    bad("filesystem: {etc: ro}", "filesystem:etc: \"etc\" is not an absolute path");
    bad(
        "filesystem: {/etc/: ro}",
        "filesystem:/etc/: \"/etc/\" has parts that are empty, . or ..; the path is to be written without them",
    );
    bad("network: any", "network: a list of host:port or false is expected, not \"any\"");
    bad(
        "network: [a]",
        "network: \"a\": host:port as in \"repo.example:443\", \"10.0.0.0/8:8000-8010\", \"[::1]:80\" or \"name:*\" is expected",
    );
    bad("pillar: all", "pillar: any or a list is expected, not \"all\"");
    bad("pillar: 5", "pillar: any, a list or false is expected, not 5");
    bad("pillar: [\"a*\"]", "pillar: \"a*\": keys of the pillar are named whole, without * and ?");
    bad("pillar: [\"a::b\"]", "pillar: \"a::b\" has an empty part");
    bad("files: [\"salt://a\"]", "files: \"salt://a\": a path on the file server is relative, as in deploy/**");
    bad("files: [a/../b]", "files: \"a/../b\" has parts that are empty, . or ..");
    let form = "any, a list of public keys, {at_least: 2, of: […]} or false is expected, not";
    bad("signed_by: ops.pub", &format!("signed_by: {form} \"ops.pub\""));
    bad("signed_by: true", &format!("signed_by: {form} true"));
    let needed = "signed_by: both at_least and of are needed, as in {at_least: 2, of: [a.pub, b.pub, c.pub]}";
    bad("signed_by: {at_least: 2}", needed);
    bad("signed_by: {of: any}", needed);
    bad("signed_by: {at_least: 0, of: any}", "signed_by:at_least: a number from 1 to 8 is expected, not 0");
    bad("signed_by: {at_least: 9, of: any}", "signed_by:at_least: a number from 1 to 8 is expected, not 9");
    bad("signed_by: {at_least: 2, of: [a.pub]}", "signed_by:of: 2 signatures are asked for, and there are 1 keys");
    bad("signed_by: {at_least: 2, of: 5}", "signed_by:of: any or a list of public keys is expected, not 5");
    bad("signed_by: {least: 2}", "signed_by:least: there is no such key; there are at_least and of");
    bad("signed_by: []", "signed_by: the list is empty: nothing could be so signed");
    bad("max_running: 0", "max_running: a number from 1 to 1000 is expected, not 0");
    bad(
        "\"a\\nb\": 1",
        "a\\nb: there is no such grant; there are grains, static_grains, config, modules, jobs, disks, policy, process, filesystem, changes, \
         network, pillar, functions, files, events, mine, progress, schedule, states, kernel, beacons, receipts, publish, sha256, signed_by, downgrade, user, limits, max_running, max_queued and record",
    );
    fails(
        "modules: {x.f: {max_running: 1}}",
        "sandbox:modules:x.f: max_running and max_queued are for a module, not for one of its functions",
    );
    fails(
        "modules: {x.F: {}}",
        "sandbox:modules:x.F: a function is named as in cmd.run, a state as in file.states.managed: lower-case letters, \
         digits and _, a letter first",
    );
    let error = Settings::read(&yaml("modules: {../x: {}}")).unwrap_err().to_string();
    assert!(error.starts_with("sandbox:modules:../x:"), "{error}");
}

#[test]
fn what_is_revoked() {
    let hash = "0a".repeat(32);
    let revoked =
        Settings::read(&yaml(&format!("revoked: {{keys: [old.pub], sha256: [{hash}]}}"))).unwrap().policy.revoked;
    assert_eq!(revoked.written[0].written, "old.pub");
    assert_eq!(revoked.sha256.iter().map(ToString::to_string).collect::<Vec<_>>(), [hash]);
    fails("revoked: {keys: old.pub}", "sandbox:revoked:keys: a list is expected, not \"old.pub\"");
    let digits = "64 hex digits are expected, in quotes if all of them are decimal";
    fails("revoked: {sha256: [12ab]}", &format!("sandbox:revoked:sha256: {digits}"));
    fails("revoked: {names: [x]}", "sandbox:revoked:names: there is no such setting; there are keys and sha256");
    fails("keys: ''", "sandbox:keys: it is empty");
}

#[test]
fn masters() {
    let master = ["0A"; 32].join(":");
    let read =
        Settings::read(&yaml(&format!("masters: {{\"{master}\": {{modules: {{x: {{jobs: true}}}}}}}}"))).unwrap();
    assert_eq!(read.policy.masters[&master.to_lowercase()].modules["x"].to_string(), "{jobs: true}");
    for bad in ["0a:0b", "master1"] {
        fails(
            &format!("masters: {{\"{bad}\": {{}}}}"),
            &format!(
                "sandbox:masters:{bad}: a master's fingerprint is expected: 32 pairs of hex digits, as `salt-key -F master` shows it"
            ),
        );
    }
    fails(
        &format!("masters: {{\"{master}\": {{limits: {{}}}}}}"),
        &format!("sandbox:masters:{master}:limits: there is no such setting; there is modules"),
    );
    fails(
        &format!("masters: {{\"{master}\": {{}}, \"{}\": {{}}}}", master.to_lowercase()),
        &format!("sandbox:masters:{}: this master is there twice", master.to_lowercase()),
    );
}
