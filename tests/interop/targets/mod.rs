//! Compares Python Salt's matchers with ours: a thousand targets of each type or more, the decision of each minion, and the
//! minions from which a master expects returns.
//!
//! [`Difference`] lists the intended differences with their reasons.

mod data;
mod generate;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::str::FromStr as _;

use brine_protocol::ids::MinionId;
use brine_protocol::target::{Facts, Nodegroups, Target, TargetError, TargetType};
use brine_protocol::value::{from_json, to_json};
use brine_tests::salt::{line, python};
use data::{Minion, Random};
use generate::How;
use serde_json::{Value, json};

/// Returns the number of targets of each type: five times as many with `BRINE_LONG`, which `make interop` sets.
fn cases_of_each_type() -> usize {
    if brine_tests::long() { 5_000 } else { 1_000 }
}

/// Number of targets with the same minions.
const OF_ONE_FLEET: usize = 25;
/// Types of targets that have their own matcher on either side.
const TYPES: [&str; 13] = [
    "glob",
    "pcre",
    "list",
    "grain",
    "grain_pcre",
    "pillar",
    "pillar_pcre",
    "pillar_exact",
    "ipcidr",
    "compound",
    "compound_pillar_exact",
    "nodegroup",
    "odd",
];

/// The intended differences. In all of them our matcher selects no minion, while Salt accepts an invalid target.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Difference {
    /// A term of a compound target that is no valid expression or address: ours refuses the whole target. For Salt the
    /// term matches no minion, and with `not` before it all minions (its minion reads some as the word "[]", which is
    /// false).
    BadTerm,
    /// `os:*b` as a regular expression, which is invalid: Salt also looks for a key of exactly that name.
    KeyThatIsNoExpression,
    /// `( )`: Python's minion evaluates the empty pair as false, which with `or` and `not` around it is a valid
    /// expression.
    EmptyParentheses,
    /// `( a`: Python's master closes the parenthesis. Its minions do not, so none returns.
    OpenParenthesis,
    /// Limits of our engines: repeated look-around (`(?=a)+`), or an expression of more than a mebibyte when compiled.
    NotInOurEngine,
    /// `not ( L@a )`: a master expects no return from excluded minions. Salt's master recognises the exclusion only
    /// without the parentheses, which a node group adds too.
    ExcludedInParentheses,
}

/// A target.
struct Case {
    kind: &'static str,
    tgt: Value,
    delimiter: &'static str,
}

/// Some minions, and targets for them.
struct Fleet {
    minions: Vec<Minion>,
    groups: Value,
    cases: Vec<Case>,
}

#[test]
fn targets_mean_the_minions_that_salt_says() {
    let started = std::time::Instant::now();
    let fleets: Vec<Fleet> = TYPES.into_iter().flat_map(fleets).collect();
    let answers = ask(&fleets);
    eprintln!("Python's answers after {:?}", started.elapsed());
    let mut answers = answers.iter();
    let mut wrong = String::new();
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut named: BTreeMap<Difference, usize> = BTreeMap::new();
    for fleet in &fleets {
        let groups = data::configured(&fleet.groups);
        for case in &fleet.cases {
            let answer = answers.next().expect("an answer to each question");
            let count = counts.entry(case.kind).or_default();
            count[0] += 1;
            count[1] += usize::from(answer["master"].as_array().is_some_and(|found| !found.is_empty()));
            for (side, ours, theirs) in compare(fleet, case, &groups, answer) {
                match difference(case, &ours, side) {
                    Some(difference) => *named.entry(difference).or_default() += 1,
                    None => {
                        count[2] += 1;
                        if count[2] <= 5 {
                            let Case { kind, tgt, delimiter } = case;
                            let _ = writeln!(
                                wrong,
                                "{kind} {tgt} {delimiter:?} ({side}): ours {ours:?}, Salt's {theirs:?}"
                            );
                            for Minion { id, known } in &fleet.minions {
                                let known = known.as_ref().map(|(grains, pillar)| (to_json(grains), to_json(pillar)));
                                let _ = writeln!(wrong, "    {id:?} {known:?}");
                            }
                            let _ = writeln!(wrong, "    {}", fleet.groups);
                        }
                    }
                }
            }
        }
    }
    eprintln!("type: targets, those that mean somebody, wrong ones: {counts:?}\nnamed differences: {named:?}");
    eprintln!("{:?}", started.elapsed());
    assert!(wrong.is_empty(), "{wrong}");
    for kind in TYPES.iter().filter(|kind| **kind != "odd") {
        let [cases, found, _] = counts[kind];
        assert!(cases >= cases_of_each_type() && found * 10 >= cases, "{kind}: {counts:?}");
    }
    let named: usize = named.values().sum();
    assert!(named * 50 < cases_of_each_type() * TYPES.len(), "{named} targets are answered in another way");
}

/// Returns both results if they differ.
fn compare(
    fleet: &Fleet,
    case: &Case,
    groups: &Nodegroups,
    answer: &Value,
) -> Vec<(&'static str, Result<Value, String>, Value)> {
    let target = parse(case, groups);
    let ids: Vec<MinionId> = fleet.minions.iter().map(|minion| MinionId::new(&minion.id).expect("an id")).collect();
    let facts = |at: usize| {
        let known = fleet.minions[at].known.as_ref();
        Facts { id: &ids[at], grains: known.map(|known| &known.0), pillar: known.map(|known| &known.1) }
    };
    let mut found = Vec::new();
    let mut check = |side, ours: Result<Value, String>, theirs: Value| {
        if ours.clone().unwrap_or_else(|_| nothing(&theirs)) != theirs {
            found.push((side, ours, theirs));
        }
    };
    let said = |error: &TargetError| error.to_string();
    let on_minions = answer["minion"].as_object().expect("a dict");
    if !on_minions.is_empty() {
        let each = |target: &Target| {
            let ours = (0..ids.len()).filter(|at| fleet.minions[*at].known.is_some());
            ours.map(|at| (fleet.minions[at].id.clone(), json!(target.matches(&facts(at))))).collect::<Value>()
        };
        check("minion", target.as_ref().map(each).map_err(said), answer["minion"].clone());
    }
    let resolved = target.as_ref().map(|target| target.resolve((0..ids.len()).map(facts))).map_err(said);
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        json!(ids)
    };
    let mut expected = answer["master"].clone();
    // Salt also expects unknown resources; those are not minions.
    expected.as_array_mut().expect("a list").retain(|id| ids.iter().any(|known| id == known.as_str()));
    let matched =
        resolved.clone().map(|resolved| sorted(resolved.matched.into_iter().map(MinionId::into_string).collect()));
    check("master", matched, expected);
    check("missing", resolved.map(|resolved| sorted(resolved.missing)), answer["missing"].clone());
    if let Some(theirs) = answer["groups"].as_array() {
        check("groups", Ok(json!(groups.expand(case.tgt.as_str().expect("a name")))), json!(theirs));
    }
    found
}

/// Returns the form of "no minion" in a result of this kind.
fn nothing(theirs: &Value) -> Value {
    match theirs {
        Value::Object(minions) => minions.keys().map(|id| (id.clone(), json!(false))).collect(),
        _ => json!([]),
    }
}

fn parse(case: &Case, groups: &Nodegroups) -> Result<Target, TargetError> {
    Target::parse_with(TargetType::from_str(case.kind)?, &from_json(&case.tgt), case.delimiter, groups)
}

/// Returns the intended difference, if this is one.
fn difference(case: &Case, ours: &Result<Value, String>, side: &str) -> Option<Difference> {
    let Err(why) = ours else {
        let text = case.tgt.to_string().replace(['"', ','], " ").split_whitespace().collect::<Vec<_>>().join(" ");
        let has_parentheses = text.contains("not (") || text.contains("N@") || case.kind == "nodegroup";
        let is_excluded = side == "missing" && has_parentheses;
        return is_excluded.then_some(Difference::ExcludedInParentheses);
    };
    if why.contains("size limit") || why.contains("Target of repeat operator is invalid") {
        return Some(Difference::NotInOurEngine);
    }
    if matches!(case.kind, "grain_pcre" | "pillar_pcre") {
        return Some(Difference::KeyThatIsNoExpression);
    }
    if !matches!(case.kind, "compound" | "compound_pillar_exact" | "nodegroup") {
        return None;
    }
    let inner =
        ["grain_pcre", "pillar_pcre", "ipcidr"].iter().any(|kind| why.contains(&format!(" is not a {kind} target: ")));
    if inner || why.contains("not a range target") || (why.contains("not a pcre target") && side == "missing") {
        return Some(Difference::BadTerm);
    }
    if why.contains("a parenthesis is not closed") && side != "minion" {
        return Some(Difference::OpenParenthesis);
    }
    (why.contains(r#"")" is not expected"#) && side == "minion").then_some(Difference::EmptyParentheses)
}

/// Returns minions and targets of one type.
fn fleets(kind: &'static str) -> Vec<Fleet> {
    let seed = kind.bytes().fold(17, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let random = &mut Random::new(seed);
    let cases = if kind == "odd" { 50 } else { cases_of_each_type() };
    let has_resources = line() >= 3008;
    let fleet = |_| {
        let minions = data::minions(random);
        let names = ["g0", "g1", "g2", "g3", "g4", "none"];
        let in_group = &mut |random: &mut Random| generate::term(random, &minions, false, &[]);
        let groups = data::groups(random, &minions, in_group);
        let cases = (0..OF_ONE_FLEET)
            .map(|_| {
                let delimiter = if random.once_in(4) { random.pick(&["|", "::", "=", "@"]) } else { ":" };
                let (grains, pillar) = minions[random.below(data::KNOWN)].known.as_ref().expect("all but the last one");
                let mut text = |data, how| json!(generate::subdict(random, data, delimiter, how));
                let tgt = match kind {
                    "grain" => text(grains, How::Glob),
                    "grain_pcre" => text(grains, How::Regex),
                    "pillar" => text(pillar, How::Glob),
                    "pillar_pcre" => text(pillar, How::Regex),
                    "pillar_exact" => text(pillar, How::Exact),
                    "glob" => json!(generate::glob(random, &minions)),
                    "pcre" => {
                        let id = random.one(&minions).id.clone();
                        json!(generate::regex(random, &id))
                    }
                    "list" => generate::list(random, &minions),
                    "ipcidr" => json!(generate::ipcidr(random)),
                    "nodegroup" => json!(random.pick(&names)),
                    "odd" => json!("*"),
                    _ => {
                        let term = &mut |random: &mut Random| generate::term(random, &minions, has_resources, &names);
                        let text = generate::compound(random, term);
                        if random.once_in(8) { json!(text.split(' ').collect::<Vec<_>>()) } else { json!(text) }
                    }
                };
                // An unknown type matches no minion on both sides.
                let kind = if kind == "odd" { random.pick(&["range", "data", "hostname", "", "Glob"]) } else { kind };
                Case { kind, tgt, delimiter }
            })
            .collect();
        Fleet { minions, groups, cases }
    };
    (0..cases.div_ceil(OF_ONE_FLEET)).map(fleet).collect()
}

/// Returns Python's results in the order of the cases.
#[allow(clippy::disallowed_methods, reason = "the program that is compared with")]
fn ask(fleets: &[Fleet]) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/python/matchers.py");
    let mut command = std::process::Command::new(python());
    let mut child =
        command.args(["-Wignore", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
    let mut lines = String::new();
    for fleet in fleets {
        let _ = writeln!(lines, "{}", data::told(&fleet.minions, &fleet.groups));
        for Case { kind, tgt, delimiter } in &fleet.cases {
            let _ = writeln!(lines, "{}", json!({"type": kind, "tgt": tgt, "delimiter": delimiter}));
        }
    }
    let mut stdin = child.stdin.take().expect("it is piped");
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    let answers = stdout.lines().map(|line| serde_json::from_str(&line.expect("text")).expect("JSON")).collect();
    writer.join().expect("it does not panic").expect("Python reads all questions");
    assert!(child.wait().expect("our own child").success());
    answers
}
