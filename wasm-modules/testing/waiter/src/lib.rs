//! For the tests of beacons that wait by themselves, in odd ways.

wit_bindgen::generate!({
    world: "waiter",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
    },
    generate_all,
});

use brine_guest::beacons::{self, Reading};
use brine_guest::host::pillar;
use brine_guest::{Data, Value};
use wasi::clocks::monotonic_clock::subscribe_duration;

struct Module;

impl exports::beacons::Guest for Module {
    fn beacon(_: Data, _: Option<Vec<u8>>) -> Result<Reading, String> {
        Err("it looks, and should watch".into())
    }

    fn watch(config: Data, state: Option<Vec<u8>>, most_ms: u32) -> Result<Reading, String> {
        let config = beacons::merged("waiter", &config)?;
        let watches = match beacons::kept(state)? {
            Some(Value::Int(watches)) => watches + 1,
            _ => 1,
        };
        let told = |events: Vec<Value>| Ok(Reading::keeping(events, Value::Int(watches)));
        let event = || Value::dict([("watches", Value::Int(watches)), ("most_ms", Value::Int(most_ms.into()))]);
        match config.get("do").and_then(Value::text) {
            Some("sleep") => loop {
                subscribe_duration(3_600_000_000_000).block();
            },
            Some("spin") => loop {
                std::hint::black_box(&config);
            },
            Some("trap") => panic!("as told"),
            Some("fail") => Err("it fails as told".into()),
            // As many events as it can, as often as it can.
            Some("flood") => told(vec![Value::dict([("x", "x".repeat(100).into())]); 600]),
            // It returns at once, and something happened each time.
            Some("hasty") => told(vec![event()]),
            // It returns at once, and nothing happened.
            Some("idle") => told(if watches % 10 == 0 { vec![event()] } else { Vec::new() }),
            Some("pillar") => {
                let items = pillar::items()?;
                told(vec![Value::dict([("pillar", items.value()?)])])
            }
            _ => {
                subscribe_duration(300_000_000).block();
                told(vec![event()])
            }
        }
    }
}

export!(Module);
