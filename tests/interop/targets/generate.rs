//! Targets generated from a seed, mostly from the minions' data, so that about half of them match. Some are invalid.

use brine_protocol::value::{Value, ValueExt};

use super::data::{Minion, Random, word};

/// Returns a shell-style pattern.
pub(super) fn glob(random: &mut Random, minions: &[Minion]) -> String {
    match random.below(6) {
        0 => random.text("ab1[]-!^.*?\\&|~", 0, 7),
        _ => {
            let id = random_id(random, minions);
            globbed(random, &id)
        }
    }
}

fn random_id(random: &mut Random, minions: &[Minion]) -> String {
    random.one(minions).id.clone()
}

/// Replaces some characters of a text by patterns.
fn globbed(random: &mut Random, text: &str) -> String {
    let mut out = String::new();
    let often = 2 + random.below(6);
    for c in text.chars() {
        if !random.once_in(often) {
            out.push(c);
            continue;
        }
        match random.below(8) {
            0 => out.push('?'),
            1 => out.push('*'),
            2 => return out + "*",
            3 => out.push_str(&format!("[{c}]")),
            4 => out.push_str(&format!("[!{c}]")),
            5 => out.push_str(&format!("[{}{c}-{}]", random.text("a]-!", 0, 2), random.text("b1]z", 0, 2))),
            6 => out.push_str(&format!("[^{c}")),
            _ => {}
        }
    }
    out
}

/// Returns a regular expression that should match a text.
pub(super) fn regex(random: &mut Random, text: &str) -> String {
    let mut out = String::new();
    if random.once_in(12) {
        out.push_str(random.pick(&["(?i)", "(?s)", "(?m)", "(?is)", "(?u)", "(?x)"]));
    }
    if random.once_in(10) {
        out.push_str(random.pick(&["^", r"\A", r"\b", r"\B", "(?=a)", "(?!db)", "(?!a|b)", "(?<!x)"]));
    }
    let often = 1 + random.below(4);
    for c in text.chars() {
        if !random.once_in(often) {
            // The character itself, escaped where necessary, and sometimes where it should not be.
            match c {
                c if c.is_alphanumeric() || random.once_in(6) => out.push(c),
                c => out.extend(['\\', c]),
            }
            continue;
        }
        match random.below(22) {
            0 => out.push('.'),
            1 => out.push_str(&format!("[{c}]")),
            2 => out.push_str(&format!("[^{c}]")),
            3 => out.push_str(&format!("[{}{c}{}]", random.text("a]-^[&", 0, 2), random.text("b-1[&~", 0, 3))),
            4 => out.push_str(random.pick(&[r"\d", r"\D", r"\s", r"\S", r"[\w.]", r"[^\W]"])),
            5 => out.push_str(random.pick(&[r"\w", r"\W", r"\w*"])),
            6 => out.push_str(&format!(
                "{}{}",
                letter(c),
                random.pick(&["*", "+", "?", "*?", "+?", "??", "{1}", "{0,2}", "{,3}"])
            )),
            7 => out.push_str(&format!(
                "{}{}",
                letter(c),
                random.pick(&["++", "*+", "?+", "{1,2}?", "{2}", "{1,}+", "{", "{}", "{a}"])
            )),
            8 => out.push_str(&format!("({}|{})", letter(c), random.text("ab1", 0, 2))),
            9 => out.push_str(&format!("(?:{}|{})?", letter(c), random.text("ab1", 0, 2))),
            10 => out.push_str(&format!("(?P<n>{})", letter(c))),
            11 => out.push_str(&format!("({})\\1", letter(c))),
            12 => out.push_str(&format!("(?={})", letter(c))),
            13 => out.push_str(&format!("(?i:{})", letter(c))),
            14 => out.push_str(".*"),
            15 => return out + random.pick(&[".*", ".+", "$", r"\Z", ""]),
            16 => out.push_str(random.pick(&["|", "(", ")", "[", "]", "*", "+", "{", "}", "\\", "^", "$"])),
            17 => out.push_str(
                random.pick(&[r"\<", r"\-", r"\x61", r"\061", r"\e", r"\pL", r"\u0061", r"\141", r"\.", r"\/", r"\0"]),
            ),
            18 => out.push_str(&format!("[{}-{c}]", random.text("a1!", 1, 1))),
            _ => out.push(c),
        }
    }
    if random.once_in(5) {
        out.push_str(random.pick(&["$", r"\Z", ".*$", r"\b", "(?<=1)", "(?<!1)"]));
    }
    out
}

fn letter(c: char) -> String {
    if c.is_alphanumeric() { c.to_string() } else { format!("\\{c}") }
}

/// The form of the value in a grain or pillar target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Glob,
    Regex,
    Exact,
}

/// Returns a path through the data, as a target of this kind.
pub(super) fn subdict(random: &mut Random, data: &Value, delimiter: &str, how: How) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut at = data;
    loop {
        match at {
            Value::Map(entries) if !(entries.is_empty() || parts.len() > 1 && random.once_in(6)) => {
                let (key, value) = random.one(entries);
                parts.push(if random.once_in(12) { "*".to_owned() } else { key.python_str() });
                at = value;
            }
            Value::Array(items) if !items.is_empty() => {
                let index = random.below(items.len());
                match random.below(4) {
                    0 => parts.push(index.to_string()),
                    1 => parts.push(format!("-{}", items.len() - index)),
                    _ => {}
                }
                at = &items[index];
            }
            leaf => {
                parts.push(leaf.python_str());
                break;
            }
        }
    }
    if let Some(last) = parts.last_mut() {
        *last = match how {
            How::Exact => last.clone(),
            How::Glob if random.once_in(2) => globbed(random, last),
            How::Glob => last.clone(),
            How::Regex => regex(random, last),
        };
    }
    match random.below(12) {
        0 => parts.insert(random.below(parts.len() + 1), random.pick(&["*", "", "a", "0", "os"]).to_owned()),
        1 => drop(parts.remove(random.below(parts.len()))),
        2 => parts.push(word(random)),
        3 => parts.insert(0, "*".to_owned()),
        4 => {
            let at = random.below(parts.len());
            parts[at] = word(random);
        }
        _ => {}
    }
    let text = parts.join(delimiter);
    if random.once_in(6) { text.to_uppercase() } else { text }
}

/// Returns ids as a text with commas or as a list.
pub(super) fn list(random: &mut Random, minions: &[Minion]) -> serde_json::Value {
    let mut ids: Vec<String> = (0..random.below(5))
        .map(|_| match random.below(4) {
            0 => random.pick(&["gone", "", " web1", "web*", "other"]).to_owned(),
            _ => random_id(random, minions),
        })
        .collect();
    if random.once_in(3) {
        ids.sort();
        return ids.into();
    }
    ids.join(",").into()
}

/// Returns an address or a network, sometimes an invalid one.
pub(super) fn ipcidr(random: &mut Random) -> String {
    let v4 = |random: &mut Random| {
        let octet = |random: &mut Random| *random.one(&[0_u8, 1, 2, 3, 10, 12, 127, 128, 168, 172, 192, 255]);
        let mut parts = [0; 4].map(|_| octet(random));
        if random.once_in(2) {
            parts = *random.one(&[
                [10, 0, 0, 1],
                [10, 0, 0, 12],
                [10, 0, 0, 0],
                [192, 168, 1, 128],
                [172, 16, 0, 9],
                [127, 0, 0, 1],
            ]);
        }
        std::net::Ipv4Addr::from(parts)
    };
    match random.below(12) {
        0 | 1 => v4(random).to_string(),
        2..=4 => {
            let length = random.below(34);
            let bits = u32::from(v4(random));
            let mask = u32::MAX.checked_shl(32 - length.min(32) as u32).unwrap_or(0);
            let bits = if random.once_in(6) { bits } else { bits & mask };
            format!("{}/{length}", std::net::Ipv4Addr::from(bits))
        }
        5 => {
            let mask = u32::MAX.checked_shl(random.below(33) as u32).unwrap_or(0);
            let mask = if random.once_in(3) { !mask } else { mask };
            let bits = u32::from(v4(random)) & if random.once_in(2) { mask } else { !mask };
            format!("{}/{}", std::net::Ipv4Addr::from(bits), std::net::Ipv4Addr::from(mask))
        }
        6 => random.pick(&["::1", "FE80::1", "fd00::7:1", "2001:db8::5", "2001:0db8:0:0:0:0:0:5", "::"]).to_owned(),
        7 | 8 => {
            let base = random.pick(&["2001:db8::", "fe80::", "::", "fd00::7:0", "2001:db8:1::", "::1", "2001:db8::5"]);
            format!("{base}/{}", *random.one(&[0, 1, 10, 16, 32, 48, 64, 112, 127, 128, 129]))
        }
        9 => random
            .pick(&[
                "",
                "/",
                "10.0.0.0/",
                "10.0.0",
                "10.0.0.01",
                "10.0.0.0/08",
                "10.0.0.0/8/8",
                " 10.0.0.1",
                "10.0.0.1 ",
                "0x0a.0.0.1",
                "::ffff:10.0.0.1",
                "10.0.0.0/-1",
                "10.0.0.0/+8",
                "10.0.0.1/255.255.255.255",
                "0.0.0.0/0.0.0.0",
                "10.0.0.0/255.0.255.0",
                "::/::",
                "1::2::3",
                "10.0.0.256",
                "web1",
                "167772161",
                "::1/128",
                "::1/0128",
            ])
            .to_owned(),
        _ => random.text("10./:f2", 1, 9),
    }
}

/// Joins terms by operators, sometimes in an invalid order.
pub(super) fn compound(random: &mut Random, term: &mut dyn FnMut(&mut Random) -> String) -> String {
    if random.once_in(4) {
        let words = (0..random.below(7)).map(|_| match random.below(3) {
            0 => term(random),
            _ => random.pick(&["and", "or", "not", "(", ")"]).to_owned(),
        });
        return words.collect::<Vec<_>>().join(" ");
    }
    let mut out = Vec::new();
    expression(random, term, 0, &mut out);
    out.join(if random.once_in(20) { "  " } else { " " })
}

fn expression(random: &mut Random, term: &mut dyn FnMut(&mut Random) -> String, depth: usize, out: &mut Vec<String>) {
    for at in 0..=random.below(3) {
        if at > 0 {
            out.push(random.pick(&["and", "or", "and", "or", "not", "and not"]).to_owned());
        } else if random.once_in(5) {
            out.push("not".to_owned());
        }
        if depth < 3 && random.once_in(4) {
            out.push("(".to_owned());
            expression(random, term, depth + 1, out);
            out.push(")".to_owned());
        } else {
            out.push(term(random));
        }
    }
}

/// Returns a word of a compound target, without spaces.
pub(super) fn term(random: &mut Random, minions: &[Minion], has_resources: bool, groups: &[&str]) -> String {
    let known: Vec<&(Value, Value)> = minions.iter().filter_map(|minion| minion.known.as_ref()).collect();
    let (grains, pillar) = known[random.below(known.len())];
    let delimited = |random: &mut Random, engine: &str, data: &Value, how: How| {
        let delimiter = if random.once_in(4) { "|" } else { ":" };
        let text = subdict(random, data, delimiter, how);
        format!("{engine}{}@{text}", if delimiter == ":" { "" } else { delimiter })
    };
    let word = match random.below(16) {
        0..=2 => delimited(random, "G", grains, How::Glob),
        3 => delimited(random, "P", grains, How::Regex),
        4 => delimited(random, "I", pillar, How::Glob),
        5 => delimited(random, "J", pillar, How::Regex),
        6 | 7 => format!("L@{}", list(random, minions).as_str().unwrap_or("gone")),
        8 => {
            format!("S@{}", random.pick(&["10.0.0.0/8", "10.0.0.1", "192.168.0.0/16", "fe80::/10", "::1", "0.0.0.0/0"]))
        }
        9 => {
            let id = random_id(random, minions);
            format!("E@{}", regex(random, &id))
        }
        10 | 11 if !groups.is_empty() => format!("N@{}", random.pick(groups)),
        12 if has_resources => random.pick(&["T@ssh", "T@ssh:gone", "M@web1", "M@a"]).to_owned(),
        13 => {
            random.pick(&["X@a", "G@", "@a", "G@os", "E@", "R@%x", "g@os:a", "L@", "S@x", "N@none", "Ga@os"]).to_owned()
        }
        _ => glob(random, minions),
    };
    let word: String = word.split_whitespace().collect();
    if word.is_empty() { "*".to_owned() } else { word }
}
