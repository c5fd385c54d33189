use super::*;

fn map(entries: &[(&str, Value)]) -> Value {
    Value::Map(entries.iter().map(|(key, value)| (Value::from(*key), value.clone())).collect())
}

fn fails(value: &Value, expect: &str) {
    assert_eq!(Settings::read(value).unwrap_err().to_string(), expect);
}

#[test]
fn defaults() {
    let settings = Settings::read(&Value::Nil).unwrap();
    assert_eq!(settings.limits, Limits::default());
    assert_eq!(settings.policy, Policy::default());
}

#[test]
fn limits() {
    let limits = map(&[
        ("memory", "128MiB".into()),
        ("wall", "1.5s".into()),
        ("output", Value::from(2048)),
        ("log", "1 K".into()),
    ]);
    let settings = Settings::read(&map(&[("limits", limits), ("max_running", 3.into())])).unwrap();
    assert_eq!((settings.limits.memory, settings.limits.wall_ms), (128 << 20, 1_500));
    assert_eq!((settings.limits.output, settings.limits.log, settings.max_running), (2048, 1024, 3));
    let bad = |key: &str, value: Value| map(&[("limits", map(&[(key, value)]))]);
    fails(&bad("memory", "1".into()), "sandbox:limits:memory: \"1\" is not between 65536 and 4294967296 bytes");
    fails(&bad("memory", "lots".into()), "sandbox:limits:memory: a size as in 64MiB is expected, not \"lots\"");
    fails(&bad("memory", (-5).into()), "sandbox:limits:memory: -5 is not between 65536 and 4294967296 bytes");
    fails(&bad("wall", 0.into()), "sandbox:limits:wall: 0 is not between 10ms and 24h");
    fails(&bad("wall", f64::NAN.into()), "sandbox:limits:wall: NaN is not between 10ms and 24h");
    fails(
        &bad("time", 1.into()),
        "sandbox:limits:time: there is no such limit; there are memory, wall, output, log, host_bytes and host_calls",
    );
    fails(&map(&[("limits", 5.into())]), "sandbox:limits: a dict is expected, not 5");
}

#[test]
fn grants() {
    let hash = "0a".repeat(32);
    let deploy = map(&[("sha256", hash.as_str().into()), ("jobs", true.into()), ("grains", false.into())]);
    let settings = Settings::read(&map(&[
        ("modules", map(&[("deploy", deploy), ("*", map(&[("config", false.into())]))])),
        ("replace_standard", Value::Array(vec!["test".into()])),
    ]))
    .unwrap();
    let entry = &settings.policy.modules["deploy"];
    assert_eq!(entry.sha256.unwrap().to_string(), hash);
    assert_eq!(entry.says, [(Capability::Grains, false), (Capability::Jobs, true)].into());
    assert_eq!(settings.policy.every.says, [(Capability::Config, false)].into());
    assert!(settings.policy.replace_standard.contains("test"));
    let bad = |key: &str, value: Value| map(&[("modules", map(&[("x", map(&[(key, value)]))]))]);
    for (key, value) in [("filesystem", Value::Nil), ("process", "any".into()), ("signed_by", Value::Nil)] {
        fails(
            &bad(key, value),
            &format!("sandbox:modules:x:{key}: this version of Brine does not know this grant yet"),
        );
    }
    fails(&bad("jobs", "yes".into()), "sandbox:modules:x:jobs: true or false is expected");
    fails(
        &bad("job", true.into()),
        "sandbox:modules:x:job: there is no such grant; there are grains, config, modules, jobs and sha256",
    );
    fails(
        &bad("sha256", "1234".into()),
        "sandbox:modules:x:sha256: 64 hex digits are expected, in quotes if all of them are decimal",
    );
    let bad = map(&[("modules", map(&[("../x", Value::Nil)]))]);
    assert!(Settings::read(&bad).unwrap_err().to_string().starts_with("sandbox:modules:../x: \"../x\" cannot be"));
    fails(
        &map(&[("moduls", Value::Nil)]),
        "sandbox:moduls: there is no such setting; there are limits, compile, modules, replace_standard, max_running, max_queued, \
         total_memory and executor_idle",
    );
}
