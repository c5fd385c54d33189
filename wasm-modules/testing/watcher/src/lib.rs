//! For the tests of beacons: sees what it is told to see, in odd ways.

wit_bindgen::generate!({
    world: "watcher",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
    },
    generate_all,
});

use brine_guest::beacons::{self, Reading};
use brine_guest::host::{job, pillar};
use brine_guest::{Data, Value};

struct Module;

const MIB: usize = 1 << 20;

impl exports::beacons::Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        beacons::judge("watcher", &config, |config| match config.get("refuse") {
            Some(why) => Err(why.to_text()),
            None => Ok(()),
        })
    }

    fn beacon(config: Data, state: Option<Vec<u8>>) -> Result<Reading, String> {
        let config = beacons::merged("watcher", &config)?;
        let job = job::current();
        match config.get("do").and_then(Value::text) {
            Some("spin") => loop {
                std::hint::black_box(&job);
            },
            Some("trap") => panic!("as told"),
            Some("fail") => Err("it fails as told".into()),
            // 100 MiB at once, and more events than one look may have.
            Some("large") => Ok(Reading::events(vec![Value::dict([("x", "x".repeat(100 * MIB).into())])])),
            Some("many") => Ok(Reading::events(vec![Value::dict([("x", "x".repeat(1000).into())]); 3_000])),
            Some("state") => Ok(Reading { state: Some(vec![0; 100_000]), ..Reading::events(Vec::new()) }),
            Some("tag") => {
                let tags = ["ok", "../../../job/20260101000000000000/ret/web1", "a\nb"];
                let events = tags.map(|tag| Value::dict([("tag", tag.into()), ("id", "another".into())]));
                Ok(Reading::events(events.into()))
            }
            Some("pillar") => {
                let items = pillar::items()?;
                Ok(Reading::events(vec![Value::dict([("pillar", items.value()?)])]))
            }
            // How often it has looked.
            _ => {
                let looks = match beacons::kept(state)? {
                    Some(Value::Int(looks)) => looks + 1,
                    _ => 1,
                };
                let told = [("looks", Value::Int(looks)), ("function", job.function.into()), ("user", job.user.into())];
                Ok(Reading::keeping(vec![Value::dict(told)], Value::Int(looks)))
            }
        }
    }
}

export!(Module);
