//! `make bench`: Brine beside Python Salt in one run on one machine, with the programs as shipped. Prints one table.
//!
//! Wall times on a shared machine are noisy; the ratio of two figures of one run is less so. [`rows`] lists the
//! measurements, [`measure`] makes them, [`compare`] has two builds measured, [`drive`] publishes the jobs, [`api`] calls salt-api, [`values`] renders, [`states`] runs states, [`reactor`] fires events, [`job_options`] what receipts and recordings cost, [`usage`] reads the resource usage; [`executor`]
//! measures the sandbox alone, which Python does not have.

mod api;
mod compare;
mod drive;
mod events;
mod executor;
mod idle;
mod job_options;
mod machine;
mod measure;
mod plot;
mod reactor;
mod report;
mod rows;
mod side;
mod states;
mod table;
mod usage;
mod values;

use std::path::PathBuf;
use std::time::Instant;

use brine_tests::salt::Kind;
use clap::Parser;

use measure::Runs;

/// Measures Brine beside Python Salt. BRINE_BIN names the folder of the programs, BRINE_PYTHON the interpreter that has Salt.
#[derive(Debug, Parser)]
struct Args {
    /// Fewer runs of everything.
    #[arg(long)]
    quick: bool,
    /// Leave Python Salt out.
    #[arg(long)]
    no_python: bool,
    /// Leave out what Python Salt has nothing beside: the sandbox alone.
    #[arg(long)]
    no_sandbox: bool,
    /// Only these parts of it, separated by commas.
    #[arg(long, value_name = "PARTS", value_delimiter = ',', value_parser = measure::PARTS)]
    only: Vec<String>,
    /// Jobs over which memory may not grow.
    #[arg(long, value_name = "JOBS")]
    drift: Option<usize>,
    /// How often everything is measured; the table has the medians and says the spread. Default 3, with --quick 1.
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u8).range(1..))]
    repeat: Option<u8>,
    /// Compare two builds of Brine instead: the folders of their programs. Quick runs, alternating; repeated 5 times by default.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["write", "no_python", "no_sandbox", "quick", "drift"])]
    compare: Vec<PathBuf>,
    /// Measure Brine once, with quick runs, and print the figures as JSON.
    #[arg(long, hide = true)]
    figures: bool,
    /// Put the table into this file, and the plot beside it.
    #[arg(long, value_name = "FILE.md")]
    write: Option<PathBuf>,
}

/// Default number of jobs over which memory must not grow.
const DRIFT: usize = 100_000;
const QUICK_DRIFT: usize = 10_000;

/// How often everything is measured by default: the least number of which the median is none of the ends.
const REPEAT: u8 = 3;
/// The same for a comparison, where differences are small.
const REPEAT_COMPARED: u8 = 5;

fn main() {
    // The time of Python's start is among what is measured.
    brine_tests::preloaded::off();
    let args = Args::parse();
    let parts = if args.only.is_empty() { measure::PARTS.map(str::to_owned).to_vec() } else { args.only };
    if args.figures {
        let figures = measure::all(Kind::Brine, &Runs::brine(true, 0), &parts);
        return println!("{}", rows::to_json(&figures));
    }
    println!("{}\n", machine::describe());
    if let [a, b] = &args.compare[..] {
        let repeat = usize::from(args.repeat.unwrap_or(REPEAT_COMPARED));
        return println!("{}", compare::run([a, b], repeat, &["--only".to_owned(), parts.join(",")]));
    }
    let began = Instant::now();
    let drift = args.drift.unwrap_or(if args.quick { QUICK_DRIFT } else { DRIFT });
    let repeat = args.repeat.unwrap_or(if args.quick { 1 } else { REPEAT });
    let (mut brine, mut python) = (Vec::new(), Vec::new());
    for turn in 0..repeat {
        // Memory is not measured over many jobs again and again.
        let drift = if turn == 0 { drift } else { 0 };
        brine.push(measure::all(Kind::Brine, &Runs::brine(args.quick, drift), &parts));
        if !args.no_python {
            python.push(measure::all(Kind::Python, &Runs::python(args.quick), &parts));
        }
    }
    let rows = rows::rows(&rows::repeated(&brine), &rows::repeated(&python));
    println!("{}", table::text(&rows));
    let sandbox = if args.no_sandbox { Vec::new() } else { executor::report() };
    sandbox.iter().for_each(|line| println!("{line}"));
    eprintln!("bench: took {} s", began.elapsed().as_secs());
    if let Some(path) = &args.write {
        report::write(path, &rows, &sandbox, drift).unwrap_or_else(|e| {
            eprintln!("bench: cannot write {}: {e}", path.display());
            std::process::exit(1);
        });
    }
}
