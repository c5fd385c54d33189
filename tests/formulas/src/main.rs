//! `brine-formulas`: compiles the cases of public formulas, and writes what came of each for `compare.py`.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::{fs, io};

use brine_formulas::case::{Formula, Setting};
use brine_formulas::json;
use brine_render::Value;
use clap::Parser;

/// Compiles formulas with stock Salt's answers beside them.
#[derive(Parser)]
struct Arguments {
    /// Stock Salt's answers: NAME.json, unpacked.
    #[arg(long)]
    answers: PathBuf,
    /// The formulas, a folder each.
    #[arg(long)]
    formulas: PathBuf,
    /// A file of grains by names of sets.
    #[arg(long)]
    grains: PathBuf,
    /// The set of grains.
    #[arg(long, default_value = "debian12")]
    set: String,
    /// The folder of settings and of the names of state functions.
    #[arg(long)]
    data: PathBuf,
    /// Where NAME.json is written.
    #[arg(long)]
    out: PathBuf,
    /// Only formulas whose name has this.
    #[arg(long, default_value = "")]
    only: String,
    /// Only cases whose name has this.
    #[arg(long, default_value = "")]
    case: String,
}

fn read(path: &std::path::Path) -> io::Result<Value> {
    Ok(json::read(&fs::read_to_string(path)?))
}

fn field(value: &Value, name: &str) -> Value {
    match value {
        Value::Dict(dict) => dict.get(name).unwrap_or_default(),
        _ => Value::None,
    }
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let names = |file: &str| -> io::Result<Rc<HashSet<String>>> {
        Ok(Rc::new(match field(&read(&arguments.data.join(file))?, &arguments.set) {
            Value::List(list) => list.borrow().iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
            _ => HashSet::new(),
        }))
    };
    let setting = Setting {
        formulas: arguments.formulas.clone(),
        grains: field(&read(&arguments.grains)?, &arguments.set),
        opts: read(&arguments.data.join("opts.json"))?,
        states: names("states.json")?,
        functions: names("functions.json")?,
    };
    fs::create_dir_all(&arguments.out)?;
    let mut paths: Vec<PathBuf> = fs::read_dir(&arguments.answers)?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut unanswered: BTreeMap<String, usize> = BTreeMap::new();
    let (mut computed, mut taped) = (0, 0);
    let mut slowest = (Duration::ZERO, String::new());
    let mut total = Duration::ZERO;
    for path in paths {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !name.contains(&arguments.only) {
            continue;
        }
        let Value::Dict(answers) = read(&path)? else { continue };
        let formula = Formula { name: name.clone(), answers };
        let mut out = Vec::new();
        for case in formula.cases() {
            let case_name = field(&case.clone().into(), "case");
            let case_name = case_name.as_str().unwrap_or_default();
            if !case_name.contains(&arguments.case) {
                continue;
            }
            let start = Instant::now();
            let Some(outcome) = formula.compile(&setting, &case) else { continue };
            let took = start.elapsed();
            total += took;
            if took > slowest.0 {
                slowest = (took, format!("{name} {case_name}"));
            }
            for (function, count) in outcome.unanswered {
                *unanswered.entry(function).or_default() += count;
            }
            computed += outcome.counts.0;
            taped += outcome.counts.1;
            out.push(outcome.answer);
        }
        fs::write(arguments.out.join(format!("{name}.json")), serde_json::to_string(&out)?)?;
    }
    let report = serde_json::json!({
        "computed": computed, "from the tape": taped, "unanswered": unanswered,
        "seconds": total.as_secs_f64(), "slowest": slowest.1, "slowest_seconds": slowest.0.as_secs_f64(),
    });
    fs::write(arguments.out.join("report"), format!("{report:#}\n"))
}
