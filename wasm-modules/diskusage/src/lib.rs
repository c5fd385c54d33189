//! The beacon `diskusage`: how full file systems are, by expressions of their mount points.
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "diskusage",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
        "brine:host/disks@1.0.0": brine_guest::host::disks,
        "brine:host/log@1.0.0": brine_guest::host::log,
    },
    generate_all,
});

use brine_guest::beacons::{self, Reading};
use brine_guest::host::disks::{self, Space};
use brine_guest::host::log::{self, Level};
use brine_guest::{Data, Value};
use brine_render::regex::{Flags, Regex};

struct Module;

/// Upper bound on the steps of one search. A mount point is short.
const STEPS: usize = 100_000;

impl exports::beacons::Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        match beacons::items("diskusage", &config) {
            Ok(_) => beacons::valid(),
            Err(why) => beacons::invalid(why),
        }
    }

    fn beacon(config: Data, _: Option<Vec<u8>>) -> Result<Reading, String> {
        let mounts: Vec<String> = disks::mounts()?.into_iter().map(|mount| mount.mount_point).collect();
        let mut events = Vec::new();
        for (expression, most) in wanted(&beacons::items("diskusage", &config)?)? {
            for mount in mounts.iter().filter_map(|mount| matches(&expression, mount).transpose()) {
                let mount = mount?;
                let used = match disks::usage(mount) {
                    Ok(space) => used(&space),
                    Err(why) => {
                        log::write(Level::Warning, &format!("{mount} is not a valid mount point: {why}"));
                        continue;
                    }
                };
                if used >= most {
                    events.push(Value::dict([("diskusage", used.into()), ("mount", mount.into())]));
                }
            }
        }
        Ok(Reading::events(events))
    }
}

/// The expressions of mount points, each with its bound.
fn wanted(items: &[Value]) -> Result<Vec<(Mount, f64)>, String> {
    let mut all = Vec::new();
    for item in items {
        // The first key counts, as in Salt.
        let Value::Dict(entries) = item else { continue };
        let Some((Value::Text(mount), most)) = entries.first() else { continue };
        if beacons::is_hidden(mount) {
            continue;
        }
        all.push((Mount::read(mount)?, beacons::percent(most)?));
    }
    Ok(all)
}

/// Which mount points are meant.
enum Mount {
    /// This one. A look each second needs no expressions for it.
    One(String),
    Expression(Regex),
}

impl Mount {
    fn read(text: &str) -> Result<Self, String> {
        let start = text.strip_suffix('$').unwrap_or(text);
        if !start.contains(['.', '^', '$', '*', '+', '?', '{', '}', '[', ']', '\\', '|', '(', ')']) {
            return Ok(Self::One(start.to_owned()));
        }
        let expression = Regex::at_start(&format!("{start}$"), Flags::default(), STEPS);
        expression.map(Self::Expression).map_err(|error| format!("{text}: {}", error.into_text()))
    }
}

fn matches<'a>(wanted: &Mount, mount: &'a str) -> Result<Option<&'a str>, String> {
    let found = match wanted {
        // A `$` is also before a last line feed.
        Mount::One(one) => mount.strip_suffix('\n').unwrap_or(mount) == one || mount == one,
        Mount::Expression(expression) => expression.find(mount).map_err(|error| error.into_text())?.is_some(),
    };
    Ok(found.then_some(mount))
}

/// As `df` counts: what only root may use is not there.
fn used(space: &Space) -> f64 {
    let used = space.blocks.saturating_sub(space.blocks_free);
    beacons::part(used as f64, (used + space.blocks_available) as f64)
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_named_by_expressions() {
        let item = |mount: &'static str, most: &'static str| Value::dict([(mount, most.into())]);
        let items = [item("/", "63%"), item("^\\/(?!home).*$", "90%"), item("_beacon_name", "diskusage")];
        let wanted = wanted(&items).unwrap();
        let bounds: Vec<f64> = wanted.iter().map(|(_, most)| *most).collect();
        assert_eq!(bounds, [63.0, 90.0]);
        let found = |at: usize, mount: &str| matches(&wanted[at].0, mount).unwrap().is_some();
        assert!(found(0, "/") && !found(0, "/srv"));
        assert!(found(1, "/") && found(1, "/srv") && !found(1, "/home"));
        // What is no expression means the same as one.
        let whole = |mount: &str| Regex::at_start(&format!("{mount}$"), Flags::default(), STEPS).unwrap();
        for (text, mount) in
            [("/a", "/a"), ("/a", "/ab"), ("/a", "/x/a"), ("/a", "/a\n"), ("/a\n", "/a"), ("/a\n", "/a\n")]
        {
            let plain = Mount::read(text).unwrap();
            assert!(matches!(plain, Mount::One(_)));
            let same = matches(&Mount::Expression(whole(text)), mount).unwrap();
            assert_eq!(matches(&plain, mount).unwrap(), same, "{text:?} {mount:?}");
        }
        assert!(super::wanted(&[item("(", "1")]).is_err());
        assert!(super::wanted(&[item("/", "much")]).is_err());
    }

    #[test]
    fn roots_reserve_is_not_there() {
        let space =
            Space { block_size: 1, blocks: 100, blocks_free: 60, blocks_available: 40, inodes: 0, inodes_free: 0 };
        assert_eq!(used(&space), 50.0);
        let none = Space { block_size: 1, blocks: 0, blocks_free: 0, blocks_available: 0, inodes: 0, inodes_free: 0 };
        assert_eq!(used(&none), 0.0);
    }
}
