//! `hostile`: tries operations that are not granted, with one function for each interface, and returns the results.
//! Only the sandbox's tests use it; the arguments select the attack.

wit_bindgen::generate!({
    world: "hostile",
    path: "wit",
    with: { "brine:host/types@1.0.0": brine_guest::host::types },
    generate_all,
});

mod changes;
mod files;
mod sockets;

use brine::host::http::Request;
use brine::host::process::Command;
use brine::host::state_types::StateResult;
use brine::host::{
    config, disks, events, files as salt_files, functions, grains, http, job, jobs, log, metadata, mine, modules,
    pillar, process, static_grains,
};
use brine_guest::Value;
use wasi::clocks::monotonic_clock::subscribe_duration;

type Done = Result<String, String>;

struct Module;

fn data(value: Value) -> Data {
    value.into()
}

#[allow(clippy::too_many_arguments, reason = "one for each field of a command")]
impl Guest for Module {
    fn run(
        argv: Vec<String>,
        cwd: Option<String>,
        env: Option<Vec<(String, String)>>,
        clean_env: Option<bool>,
        run_as: Option<String>,
        group: Option<String>,
        umask: Option<u32>,
        timeout_ms: Option<u64>,
        max_output: Option<u64>,
        stdin: Option<String>,
    ) -> Done {
        let done = process::run(&Command {
            argv,
            cwd,
            env: env.unwrap_or_default(),
            clean_env: clean_env.unwrap_or_default(),
            stdin: stdin.map(String::into_bytes),
            timeout_ms,
            run_as,
            group,
            umask,
            max_output,
            merge_stderr: true,
        })?;
        let out = String::from_utf8_lossy(&done.stdout);
        Ok(match (done.code, done.signal) {
            _ if done.timed_out => format!("timed out: {out}"),
            (Some(code), _) if done.stdout_dropped > 0 => format!("{code}: {} and {}", out.len(), done.stdout_dropped),
            (Some(code), _) => format!("{code}: {out}"),
            (None, signal) => format!("signal {}: {out}", signal.unwrap_or_default()),
        })
    }

    fn probe(script: String) -> Done {
        let done = process::probe(&command(vec!["/bin/sh".to_owned(), "-c".to_owned(), script]));
        match done {
            Ok(done) => Ok(format!("{:?}: {}", done.code, String::from_utf8_lossy(&done.stdout))),
            Err(process::Unprobed::Unable(why)) => Ok(format!("unable: {why}")),
            Err(process::Unprobed::Failed(why)) => Err(why),
        }
    }

    fn change(op: String, path: String, other: Option<String>, mode: Option<u32>) -> Done {
        changes::act(&op, &path, &other.unwrap_or_default(), mode)
    }

    fn sly(path: String) -> Result<Vec<String>, String> {
        let nothing = data(Value::Dict(Vec::new()));
        let said = |what: &str, done: Result<String, String>| format!("{what}: {}", done.unwrap_or_else(|why| why));
        Ok(vec![
            said("put", changes::act("put", &format!("{path}/put"), "x", None)),
            said("remove", changes::act("remove", &format!("{path}/file"), "", None)),
            said("chmod", changes::act("chmod", &format!("{path}/file"), "", Some(0o777))),
            said("fire", events::fire("sly/tag", &nothing).map(|()| "fired".to_owned())),
            said("mine", mine::publish("sly", &nothing).map(|()| "published".to_owned())),
            said("push", salt_files::push(&["sly".to_owned()], 0, b"x", 1).map(|took| took.to_string())),
            said("kill", Ok(jobs::kill("20260101000000000000").to_string())),
            said(
                "call",
                functions::call(
                    "other.run",
                    &[data(Value::List(vec!["/bin/rm".into(), path.as_str().into()]))],
                    &nothing,
                )
                .map(|_| "called".to_owned()),
            ),
        ])
    }

    fn which(name: String) -> Done {
        process::which(&name).map(|path| path.unwrap_or_else(|| "none".to_owned()))
    }

    fn shell(path: Option<String>) -> Done {
        process::shell(path.as_deref()).map(|path| path.unwrap_or_else(|| "none".to_owned()))
    }

    fn file(op: String, root: String, path: String, other: Option<String>) -> Done {
        files::act(&op, &root, &path, other.as_deref().unwrap_or_default())
    }

    fn race(root: String, path: String, times: u32) -> Done {
        files::race(&root, &path, times)
    }

    fn handles(root: String, path: String, most: u32) -> Done {
        files::handles(&root, &path, most)
    }

    fn roots() -> Vec<String> {
        files::roots()
    }

    fn stat(path: String, follow: bool) -> Done {
        match metadata::stat(&path, follow) {
            Ok(stat) => Ok(format!("{:?} {:o} {}", stat.kind, stat.mode, stat.size)),
            Err(metadata::Error::NotGranted(why)) => Err(why),
            Err(error) => Err(format!("{error:?}")),
        }
    }

    fn socket(op: String, address: String, port: u16) -> Done {
        sockets::act(&op, &address, port)
    }

    fn resolve(name: String) -> Result<Vec<String>, String> {
        sockets::resolve(&name).map(|found| found.into_iter().map(|address| format!("{address:?}")).collect())
    }

    fn reach(name: String, port: u16) -> Done {
        sockets::reach(&name, port)
    }

    fn http(
        url: String,
        method: Option<String>,
        headers: Option<Vec<(String, String)>>,
        redirects: Option<u32>,
        max_body: Option<u64>,
    ) -> Done {
        let request = Request {
            method: method.unwrap_or_else(|| "GET".to_owned()),
            url,
            headers: headers.unwrap_or_default(),
            body: None,
            timeout_ms: None,
            max_body,
            max_redirects: redirects.unwrap_or(5),
        };
        let response = http::send(&request)?;
        Ok(format!("{}: {}", response.status, String::from_utf8_lossy(&response.body)))
    }

    fn call(function: String, arg: Option<String>) -> Result<Data, String> {
        let number = |arg: String| arg.parse().map_or(Value::Text(arg), Value::Int);
        let args: Vec<Data> = arg.into_iter().map(|arg| data(number(arg))).collect();
        functions::call(&function, &args, &data(Value::Dict(Vec::new())))
    }

    fn chain(modules: Vec<String>) -> Done {
        let Some((first, rest)) = modules.split_first() else { return Ok("the end".to_owned()) };
        let rest = Value::List(rest.iter().map(|name| Value::Text(name.clone())).collect());
        let done = functions::call(&format!("{first}.chain"), &[data(rest)], &data(Value::Dict(Vec::new())))?;
        done.value().map(|value| value.to_text())
    }

    fn files(op: String, path: String, saltenv: String) -> Done {
        let none = || "none".to_owned();
        match op.as_str() {
            "hash" => salt_files::hash(&path, &saltenv).map(|found| found.map_or_else(none, |digest| digest.hsum)),
            "read" => {
                let read = salt_files::read(&path, &saltenv, 0, u32::MAX)?;
                Ok(read.map_or_else(none, |bytes| String::from_utf8_lossy(&bytes).into_owned()))
            }
            "cache" => salt_files::cache(&path, &saltenv).map(|found| found.unwrap_or_else(none)),
            _ => salt_files::list(&saltenv, Some(&path), salt_files::Kind::Files).map(|all| all.join(" ")),
        }
    }

    fn push(path: Vec<String>) -> Done {
        salt_files::push(&path, 0, b"x", 1).map(|took| took.to_string())
    }

    fn pillar(key: Option<String>, delimiter: Option<String>) -> Result<Data, String> {
        match key {
            Some(key) => Ok(pillar::get(&key, delimiter.as_deref())?.unwrap_or_else(|| data(Value::None))),
            None => pillar::items(),
        }
    }

    fn grains(grains: Option<Data>) -> Result<Data, String> {
        let host = grains.map(|grains| grains.value()).transpose()?.unwrap_or_default();
        let attack = grains::get("attack", None).map(|attack| attack.value()).transpose()?.unwrap_or_default();
        let one = |name: &str, value: Value| Ok(data(Value::dict([(name, value)])));
        match attack.text().unwrap_or_default() {
            "" => one("found", host.get("id").cloned().unwrap_or_default()),
            "large" => one("large", "x".repeat(3 << 20).into()),
            "huge" => one("huge", "x".repeat(4 << 20).into()),
            "deep" => Ok(Data { msgpack: [vec![0x81, 0xa1, b'a'], vec![0x91; 10_000], vec![1]].concat() }),
            "deeper" => one("deeper", (0..20).fold(Value::Int(1), |inner, _| vec![inner].into())),
            "forever" => loop {
                core::hint::spin_loop();
            },
            "asleep" => {
                subscribe_duration(3_600_000_000_000).block();
                one("asleep", Value::None)
            }
            "names" => one("a\nb", 1_i64.into()),
            "forged" => one("sandbox", "none".into()),
            "list" => Ok(data(vec!["os"].into())),
            "again" => {
                modules::refresh_facts(true, false)?;
                one("again", true.into())
            }
            "os" => one("os", "Hostile".into()),
            "trap" => panic!("as it was told"),
            other => Err(format!("no attack {other}")),
        }
    }

    fn set_grain(name: String, value: Option<String>) -> Done {
        let value = value.map(|value| data(value.into()));
        static_grains::write(&[(name, value)], true).map(|()| "written".into())
    }

    fn fire(tag: String) -> Done {
        events::fire(&tag, &data(Value::Dict(Vec::new()))).map(|()| "fired".to_owned())
    }

    fn mine(name: String) -> Done {
        mine::publish(&name, &data(Value::None)).map(|()| "published".to_owned())
    }

    fn config(key: String) -> Option<Data> {
        config::get(&key)
    }

    fn kill(jid: String) -> bool {
        jobs::kill(&jid)
    }

    fn describe(name: String) -> bool {
        modules::describe(&name).is_some()
    }

    fn disk(path: String) -> Done {
        disks::usage(&path).map(|space| format!("{}", space.block_size))
    }

    fn log(text: String, times: u32) {
        for _ in 0..times {
            log::write(log::Level::Error, &text);
        }
    }

    fn say(text: String, fails: bool) -> Done {
        if fails { Err(text) } else { Ok(text) }
    }

    fn trap(text: String) {
        panic!("{text}");
    }

    fn spin() {
        loop {
            core::hint::black_box(());
        }
    }

    fn pester(times: u32) -> u32 {
        let mut answered = 0;
        for _ in 0..times {
            answered += u32::from(grains::get("os", None).is_some());
        }
        answered
    }

    fn grow() -> Done {
        let mut all: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut more = Vec::new();
            if more.try_reserve_exact(1 << 20).is_err() {
                return Ok(format!("{} MiB", all.len()));
            }
            more.resize(1 << 20, 1);
            all.push(more);
        }
    }

    fn flood(size: u32) -> String {
        "x".repeat(size as usize)
    }

    fn nap(ms: u64, times: u32) {
        for _ in 0..times {
            subscribe_duration(ms * 1_000_000).block();
        }
    }

    fn wait(times: u32) -> u32 {
        let waits: Vec<_> = (0..times).map(|_| subscribe_duration(3_600_000_000_000)).collect();
        u32::try_from(waits.len()).unwrap_or(u32::MAX)
    }

    fn shout(size: u32, times: u32) {
        let line = "x".repeat(size as usize);
        for _ in 0..times {
            log::write(log::Level::Error, &line);
        }
    }

    fn dive(depth: u32) -> u32 {
        let here = [depth; 64];
        let below = if depth == u32::MAX { 0 } else { Self::dive(depth + 1) };
        core::hint::black_box(here)[below as usize % 64]
    }

    fn retcode(code: i32) {
        job::set_retcode(code);
    }
}

impl exports::states::Guest for Module {
    fn sly(name: String) -> Result<StateResult, String> {
        let said = <Self as Guest>::sly(name.clone())?;
        let run = Command {
            argv: vec!["/bin/touch".into(), format!("{name}/touched")],
            cwd: None,
            env: Vec::new(),
            clean_env: false,
            stdin: None,
            timeout_ms: None,
            run_as: None,
            group: None,
            umask: None,
            max_output: None,
            merge_stderr: false,
        };
        process::run(&run)?;
        let changes = Value::Dict(vec![("said".into(), Value::List(said.into_iter().map(Value::from).collect()))]);
        Ok(StateResult { result: Some(true), comment: String::new(), changes: data(changes), warnings: Vec::new() })
    }
}

export!(Module);

fn command(argv: Vec<String>) -> Command {
    Command {
        argv,
        cwd: None,
        env: Vec::new(),
        clean_env: false,
        stdin: None,
        timeout_ms: None,
        run_as: None,
        group: None,
        umask: None,
        max_output: None,
        merge_stderr: true,
    }
}
