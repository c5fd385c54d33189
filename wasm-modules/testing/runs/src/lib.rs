//! `runs`: runs states and ends in odd ways, and has odd states. Only tests use it.

wit_bindgen::generate!({
    world: "runs",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
        "brine:host/states@1.0.0": brine_guest::host::states,
    },
});

use brine_guest::Value;
use brine_guest::host::state_types::StateResult;
use brine_guest::host::states::{self, Chunk};
use brine_guest::host::{job, log, pillar};

struct Module;

fn chunk(state: &str, number: u32) -> Chunk {
    let name = format!("n{number}");
    Chunk {
        state: state.into(),
        tag: format!("{}_|-{name}_|-{name}_|-x", state.replace('.', "_")),
        arguments: Value::dict([("name", name.as_str().into())]).into(),
        id: name,
        sls: "tests".into(),
        saltenv: "base".into(),
        run_number: number,
        changed: vec!["test: other".into()],
        test: false,
    }
}

impl Guest for Module {
    fn several(state: String, times: u32, then: String) -> Result<Data, String> {
        let results = (0..times).map(|number| states::run(&chunk(&state, number))).collect::<Vec<_>>();
        match then.as_str() {
            "fail" => Err("as it was told".into()),
            "trap" => panic!("as it was told"),
            "spin" => loop {
                std::hint::spin_loop();
            },
            "wait" => loop {
                states::wait(60_000);
            },
            _ => Ok(Data::list(results)),
        }
    }

    fn together(state: String, times: u32) -> Result<Vec<u32>, String> {
        let started = (0..times).map(|number| states::start(&chunk(&state, number))).collect::<Result<Vec<_>, _>>()?;
        let ended = started.iter().filter_map(|_| states::wait(60_000)).map(|ended| ended.number);
        Ok(ended.collect())
    }

    fn leave() -> Result<u32, String> {
        states::start(&chunk("runs.spin", 0))
    }

    fn exists(state: String) -> bool {
        states::exists(&state)
    }

    fn keep(tag: String, result: Data) -> Result<bool, String> {
        states::keep(&tag, &result);
        Err("as it was told".into())
    }

    fn secret() -> Result<Data, String> {
        pillar::items()
    }
}

impl exports::states::Guest for Module {
    fn odd(_: String, return_: Data) -> Data {
        return_
    }

    fn nothing(_: String) {}

    fn huge(_: String, mib: u32) -> Data {
        "x".repeat((mib as usize) << 20).into()
    }

    fn joined(name: String, names: Option<Data>, _: Data) -> Result<StateResult, String> {
        let names = names.map(|names| names.value()).transpose()?.unwrap_or_else(|| vec![name].into());
        let changes = Value::dict([("names", names)]);
        Ok(StateResult { result: Some(true), comment: String::new(), changes: changes.into(), warnings: Vec::new() })
    }

    fn mod_init(low: Data) -> Result<bool, String> {
        let id = low.value()?.get("__id__").map(Value::to_text).unwrap_or_default();
        log::write(log::Level::Warning, &format!("runs is ready before {id}"));
        Ok(true)
    }

    fn mod_aggregate(low: Data, chunks: Data) -> Result<Data, String> {
        let (Value::Dict(mut low), Value::List(mut chunks)) = (low.value()?, chunks.value()?) else {
            return Err("these are no chunks".into());
        };
        let mut names = Vec::new();
        for chunk in &mut chunks {
            if chunk.get("fun").is_some_and(|fun| fun.to_text() == "joined") && chunk.get("__agg__").is_none() {
                names.extend(chunk.get("name").cloned());
                if let Value::Dict(entries) = chunk {
                    entries.push(("__agg__".into(), true.into()));
                }
            }
        }
        let own = low.iter().find(|(key, _)| key.to_text() == "name").map(|(_, name)| name.clone());
        low.push(("names".into(), own.into_iter().chain(names).collect::<Vec<_>>().into()));
        Ok(Value::List([vec![Value::Dict(low)], chunks].concat()).into())
    }

    fn trap(_: String) {
        panic!("as it was told")
    }

    fn spin(_: String) {
        loop {
            std::hint::spin_loop();
        }
    }

    fn told(name: String) -> StateResult {
        let job = job::current();
        let state = job::state();
        let told = state.map(|state| {
            Value::dict([
                ("id", state.id.into()),
                ("sls", state.sls.into()),
                ("saltenv", state.saltenv.into()),
                ("number", u64::from(state.run_number).into()),
                ("changed", state.changed.into()),
            ])
        });
        let changes = Value::dict([
            ("state", told.unwrap_or_default()),
            ("function", job.function.into()),
            ("called_by", job::called_by().into()),
            ("test", job.test.into()),
        ]);
        StateResult { result: Some(true), comment: name, changes: changes.into(), warnings: Vec::new() }
    }

    fn secret(_: String) -> Result<StateResult, String> {
        let changes = pillar::items()?;
        Ok(StateResult { result: Some(true), comment: String::new(), changes, warnings: Vec::new() })
    }
}

export!(Module);
