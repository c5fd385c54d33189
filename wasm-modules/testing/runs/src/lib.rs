//! `runs`: runs states and ends in odd ways, and has odd states. Only tests use it.

wit_bindgen::generate!({
    world: "runs",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
        "brine:host/states@1.0.0": brine_guest::host::states,
    },
});

use brine_guest::Value;
use brine_guest::host::state_types::StateResult;
use brine_guest::host::states::{self, Chunk};
use brine_guest::host::{job, pillar};

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
