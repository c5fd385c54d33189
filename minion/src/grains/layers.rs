//! The sources of grains, one over the other, in Salt's order: the host, modules, the grains file, the setting `grains`.
//! The minion's own account of its sandbox is above them all, so that nobody can forge it.

use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt};
use tracing::{error, warn};

use super::blacklist::Blacklist;
use super::custom;
use super::from_modules::FromModules;
use super::map::Grains;
use crate::config::MinionOpts;

/// Upper bound on the grains: they travel with every `_pillar` request, so they stay far below a master's bound on requests.
pub const MAX_GRAINS_BYTES: usize = 1024 * 1024;
/// The grain with the walls around modules.
pub(crate) const WALLS: &str = brine_sandbox::WALLS_GRAIN;

/// What was collected by reading and asking. Files of the owner are read when the layers are combined.
pub(super) struct Layers {
    blacklist: Blacklist,
    /// Facts about the host.
    pub(super) host: Grains,
    pub(super) modules: FromModules,
    /// The walls around modules; none before the sandbox runs.
    pub(super) walls: Option<Value>,
}

impl Layers {
    /// Without any source.
    pub(super) fn new(opts: &MinionOpts) -> Self {
        let blacklist = Blacklist::new(&opts.collecting.blacklist);
        Self { blacklist, host: Grains::default(), modules: FromModules::default(), walls: None }
    }

    /// Combines all sources. A broken grains file is logged and left out, so that the minion can still be reached to
    /// repair it. If the result is too large, modules are left out first, then the owner's grains.
    pub(super) fn combine(&self, opts: &MinionOpts) -> Value {
        let choices = [(true, true), (false, true), (false, false)];
        for (modules, owners) in choices {
            let grains = self.combine_some(opts, modules, owners);
            let bytes = msgpack::encode_network(&grains).len();
            if bytes <= MAX_GRAINS_BYTES {
                return grains;
            }
            let left_out = if modules { "of modules" } else { "of the grains file and of the setting `grains`" };
            error!(
                "the grains take {bytes} bytes, more than the {MAX_GRAINS_BYTES} there may be; those {left_out} are left out"
            );
        }
        self.host.clone().into_value()
    }

    fn combine_some(&self, opts: &MinionOpts, modules: bool, owners: bool) -> Value {
        let mut grains = self.host.clone();
        self.blacklist.filter(grains.entries_mut());
        let deep = opts.collecting.deep_merge;
        let add = |grains: &mut Grains, mut entries: Vec<(Value, Value)>| {
            self.blacklist.filter(&mut entries);
            if deep { grains.merge_deep(entries) } else { grains.merge(entries) }
        };
        for entries in self.modules.grains().filter(|_| modules) {
            add(&mut grains, entries.to_vec());
        }
        if owners {
            match custom::load(&opts.grains_file) {
                Ok(Some(entries)) => add(&mut grains, entries),
                Ok(None) => {}
                Err(e) => error!("{e}; the grains of this file are left out"),
            }
            match &opts.grains {
                // In Salt, these are neither filtered nor merged with others.
                Value::Map(entries) => grains.merge(entries.clone()),
                Value::Nil => {}
                _ => warn!("the setting `grains` is not a mapping; it is left out"),
            }
        }
        let mut grains = grains.into_value();
        match &self.walls {
            Some(walls) => grains.insert(WALLS, walls.clone()),
            None => drop(grains.remove(WALLS)),
        }
        grains
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use brine_protocol::config::{Config, Role};
    use brine_protocol::value::{list, map};

    use super::*;

    fn opts(folder: &Path, more: &str) -> MinionOpts {
        let config = Config::from_yaml(&format!("id: m1\n{more}"), &folder.join("minion"), Role::Minion).unwrap();
        MinionOpts::from_config(config, None).unwrap()
    }

    fn layers(opts: &MinionOpts, host: &Value, module: &Value) -> Layers {
        let mut layers = Layers::new(opts);
        for (layer, value) in [(0, host), (1, module)] {
            let entries = value.entries().unwrap().to_vec();
            match layer {
                0 => layers.host.merge(entries),
                _ => layers.modules = FromModules::of([("m", Ok(entries))]),
            }
        }
        layers
    }

    #[test]
    fn sources_come_in_salts_order_and_nobody_forges_the_walls() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("grains"), "role: file\nr2: file\ndeep: {b: 2}\nsandbox: forged\n").unwrap();
        let deep = |key: &str, n: i64| map([(key, n)]);
        let host = map([("role", Value::from("host")), ("os", Value::from("Debian")), ("cpu", Value::from(1))]);
        let module = map([
            ("role", Value::from("module")),
            ("r2", Value::from("module")),
            ("os", Value::from("Other")),
            ("deep", deep("a", 1)),
            ("sandbox", Value::from("forged")),
        ]);
        let set = opts(folder.path(), "grains: {role: setting}\ngrains_blacklist: [cpu*]\n");
        let mut layers = layers(&set, &host, &module);
        let shallow = layers.combine(&set);
        assert!(!shallow.has("cpu"));
        for (key, expected) in [("role", "setting"), ("r2", "file"), ("os", "Other")] {
            assert_eq!(shallow.get_text(key), Some(expected), "{key}");
        }
        assert_eq!(shallow.get("deep"), Some(&deep("b", 2)));
        assert!(!shallow.has("sandbox"), "before the sandbox runs, nothing is said of it");
        layers.walls = Some(list(["seccomp"]));
        let merged =
            layers.combine(&opts(folder.path(), "grains_deep_merge: True\ngrains: {deep: {c: 3}, sandbox: x}\n"));
        assert_eq!(merged.get("deep"), Some(&deep("c", 3)), "the setting replaces, as in Salt");
        assert_eq!(merged.get("sandbox"), Some(&list(["seccomp"])));
        let merged = layers.combine(&opts(folder.path(), "grains_deep_merge: True\n"));
        assert_eq!(merged.get("deep"), Some(&map([("a", 1), ("b", 2)])));
    }

    #[test]
    fn too_many_grains_lose_those_of_modules_first() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("grains"), "mine: yes\n").unwrap();
        let large = map([("large", Value::from("x".repeat(MAX_GRAINS_BYTES)))]);
        let opts = opts(folder.path(), "");
        let grains = layers(&opts, &map([("os", "Debian")]), &large).combine(&opts);
        assert!(grains.has("mine") && grains.has("os") && !grains.has("large"));
    }
}
