//! Targets: the results of Salt's own matchers.

use serde_json::Value as Json;

use super::lines;
use crate::ids::MinionId;
use crate::target::{Facts, Nodegroups, Target, TargetType, Term};
use crate::value::{Value, from_json};

lines! {
    subdict_match: check_subdict;
    parse_target: check_terms;
    nodegroup_comp: check_nodegroups;
}

fn check_subdict(line: &Json) {
    let data = from_json(&line["subdict_match"]["data"]);
    let id = MinionId::new("m").unwrap();
    let facts = Facts { id: &id, grains: Some(&data), pillar: Some(&data) };
    let mut checked = 0;
    for case in line["subdict_match"]["cases"].as_array().unwrap() {
        let (expr, delimiter) = (case["expr"].as_str().unwrap(), case["delimiter"].as_str().unwrap());
        let kinds = [("glob", TargetType::Grain), ("pcre", TargetType::GrainPcre), ("exact", TargetType::PillarExact)];
        for (key, kind) in kinds {
            // The vectors leave out invalid expressions.
            let Some(expected) = case[key].as_bool() else { continue };
            let target = Target::parse(kind, &Value::from(expr), delimiter).unwrap();
            assert_eq!(target.matches(&facts), expected, "{key} {case}");
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

fn check_terms(line: &Json) {
    for (word, expected) in line["parse_target"].as_object().unwrap() {
        // These engines of 3008 are always recognised; older lines read the word as a glob.
        if word.starts_with("T@") || word.starts_with("M@") {
            assert_eq!(
                Some(Term::parse(word).engine.map(String::from)),
                Some(word.get(..1).map(str::to_owned)),
                "{word}"
            );
            continue;
        }
        let text = |key: &str| expected[key].as_str();
        let term = Term::parse(word);
        assert_eq!(term.engine.map(String::from).as_deref(), text("engine"), "{word}");
        assert_eq!(term.delimiter.map(String::from).as_deref(), text("delimiter"), "{word}");
        assert_eq!(Some(term.pattern), text("pattern"), "{word}");
    }
}

fn check_nodegroups(line: &Json) {
    let groups = Nodegroups::new(&from_json(&line["nodegroup_comp"]["nodegroups"]));
    for (name, expected) in line["nodegroup_comp"]["expanded"].as_object().unwrap() {
        let expected: Vec<&str> = expected.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        assert_eq!(groups.expand(name), expected, "{name}");
    }
}
