//! Invented minions: ids, grains and pillar generated from a seed, with everything that Python's data can contain.

use brine_protocol::value::{Value, ValueExt, from_json, map};
use serde_json::json;

/// Random numbers that are the same on every machine (splitmix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Returns true once in so many times on average.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    pub(super) fn one<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Returns a text of characters in `from`.
    pub(super) fn text(&mut self, from: &str, least: usize, most: usize) -> String {
        let from: Vec<char> = from.chars().collect();
        (0..least + self.below(most - least + 1)).map(|_| *self.one(&from)).collect()
    }
}

/// A minion. The master may know nothing about it.
#[derive(Debug, Clone)]
pub(super) struct Minion {
    pub(super) id: String,
    pub(super) known: Option<(Value, Value)>,
}

/// The number of minions about which the master has data.
pub(super) const KNOWN: usize = 3;

const ADDRESSES: [&str; 12] = [
    "10.0.0.1",
    "10.0.0.12",
    "10.1.2.3",
    "127.0.0.1",
    "192.168.1.5",
    "192.168.1.130",
    "172.16.0.9",
    "::1",
    "fe80::1",
    "fd00::7:1",
    "2001:db8::5",
    "2001:db8:1::5",
];

/// Returns some minions. The master has no data about the last one.
pub(super) fn minions(random: &mut Random) -> Vec<Minion> {
    let mut minions: Vec<Minion> = Vec::new();
    while minions.len() <= KNOWN {
        // Few different characters, including those of patterns, so that patterns often match.
        let id = match random.below(3) {
            0 => random.pick(&["web1", "web2", "db1.example.com", "DB1", "w", "a-b_c", "ünï"]).to_owned(),
            1 => random.text("ab1-.", 1, 5),
            _ => random.text("ab1[]-!^.", 1, 5),
        };
        // Before 3008, Python's master ignores keys whose names start with a dot.
        let is_id = brine_protocol::ids::MinionId::new(&id).is_ok() && !id.contains(',') && !id.starts_with('.');
        if !is_id || minions.iter().any(|known| known.id == id) {
            continue;
        }
        let mut grains = tree(random, 0);
        for (key, is_own) in [("ipv4", |text: &str| !text.contains(':')), ("ipv6", |text: &str| text.contains(':'))]
            as [(&str, fn(&str) -> bool); 2]
        {
            if !random.once_in(5) {
                let own = ADDRESSES.iter().filter(|text| is_own(text) && random.once_in(2));
                grains.insert(key, brine_protocol::value::list(own.copied()));
            }
        }
        let known = (minions.len() < KNOWN).then(|| (grains, tree(random, 0)));
        minions.push(Minion { id, known });
    }
    minions
}

/// Returns a word for keys and values.
pub(super) fn word(random: &mut Random) -> String {
    match random.below(4) {
        // No bar before a digit: Salt parses keys as YAML, which would read the start of an empty text.
        0 => random.text("ab1:*.", 1, 4),
        _ => random
            .pick(&[
                "os", "Debian", "role", "web", "db", "a", "b", "c", "Ünï", "ΣΑΣ", "v6:", "x y", "True", "None", "1",
                "0", "1.5", "-1", "", "[x]", "a:b", "a|b", "(", "1_0", "null", "yes", "'q'", "line\n",
            ])
            .to_owned(),
    }
}

fn leaf(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Nil,
        1 => Value::from(random.once_in(2)),
        2 => Value::from([0_i64, 1, -1, 7, 10, 1 << 40][random.below(6)]),
        3 => Value::from([0.5, 1.0, 1e16, 1e-5, 2.0][random.below(5)]),
        _ => Value::from(word(random)),
    }
}

/// Returns a map that contains maps and lists.
fn tree(random: &mut Random, depth: usize) -> Value {
    let mut entries: Vec<(Value, Value)> = Vec::new();
    for _ in 0..random.below(4) + usize::from(depth == 0) * 2 {
        // At most one number in a map: 1, 1.0 and True are the same key in Python, and only one of them would arrive.
        let has_number = entries.iter().any(|(key, _)| key.text().is_none() && !matches!(key, Value::Nil));
        let key = match random.below(8) {
            0 if !has_number => [Value::from(1), Value::from(0), Value::from(true), Value::from(1.5), Value::from(-1)]
                [random.below(5)]
            .clone(),
            1 if random.once_in(4) => Value::Nil,
            _ => Value::from(word(random)),
        };
        if !entries.iter().any(|(known, _)| *known == key) {
            entries.push((key, value(random, depth + 1)));
        }
    }
    Value::Map(entries)
}

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(6) {
        0 | 1 if depth < 4 => tree(random, depth),
        2 | 3 if depth < 4 => Value::Array((0..random.below(4)).map(|_| value(random, depth + 1)).collect()),
        _ => leaf(random),
    }
}

/// Returns node groups, some of which refer to others, to themselves or to unknown ones.
pub(super) fn groups(
    random: &mut Random,
    minions: &[Minion],
    term: &mut dyn FnMut(&mut Random) -> String,
) -> serde_json::Value {
    let names = ["g0", "g1", "g2", "g3", "g4"];
    let groups = names.iter().map(|name| {
        let words: Vec<String> = match random.below(4) {
            // Bare names: a list, or an expression if they look like one.
            0 => (0..random.below(4)).map(|_| random.one(minions).id.clone()).collect(),
            _ => (0..=random.below(3))
                .flat_map(|at| {
                    let operator = (at > 0).then(|| random.pick(&["and", "or", "and not"]).to_owned());
                    let word = if random.once_in(2) { format!("N@{}", random.pick(&names)) } else { term(random) };
                    operator.into_iter().chain([word])
                })
                .flat_map(|words| words.split(' ').map(str::to_owned).collect::<Vec<_>>())
                .collect(),
        };
        (name.to_string(), if random.once_in(3) { json!(words) } else { json!(words.join(" ")) })
    });
    serde_json::Value::Object(groups.collect())
}

/// Returns the input about them for `matchers.py`.
pub(super) fn told(minions: &[Minion], groups: &serde_json::Value) -> String {
    let packed = |(grains, pillar): &(Value, Value)| {
        let bytes =
            brine_protocol::msgpack::encode_disk(&map([("grains", grains.clone()), ("pillar", pillar.clone())]));
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let minions: serde_json::Map<_, _> =
        minions.iter().map(|minion| (minion.id.clone(), json!(minion.known.as_ref().map(packed)))).collect();
    json!({"minions": minions, "groups": groups}).to_string()
}

/// Returns the groups in the form of a configuration.
pub(super) fn configured(groups: &serde_json::Value) -> brine_protocol::target::Nodegroups {
    brine_protocol::target::Nodegroups::new(&from_json(groups))
}
