//! `make bench`: Brine beside Python Salt in one run on one machine, with the programs as shipped. Prints one table.
//!
//! Wall times on a shared machine are noisy; the ratio of two figures of one run is less so. [`rows`] lists the
//! measurements, [`measure`] makes them, [`drive`] publishes the jobs, [`api`] calls salt-api, [`values`] renders, [`states`] runs states, [`reactor`] fires events, [`job_options`] what receipts and recordings cost, [`usage`] reads the resource usage; [`executor`]
//! measures the sandbox alone, which Python does not have.

mod api;
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
use rows::Figures;

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
    /// Put the table into this file, and the plot beside it.
    #[arg(long, value_name = "FILE.md")]
    write: Option<PathBuf>,
}

/// Default number of jobs over which memory must not grow.
const DRIFT: usize = 100_000;
const QUICK_DRIFT: usize = 10_000;

fn main() {
    let args = Args::parse();
    let began = Instant::now();
    let drift = args.drift.unwrap_or(if args.quick { QUICK_DRIFT } else { DRIFT });
    let parts = if args.only.is_empty() { measure::PARTS.map(str::to_owned).to_vec() } else { args.only };
    let brine = measure::all(Kind::Brine, &Runs::brine(args.quick, drift), &parts);
    let python =
        if args.no_python { Figures::new() } else { measure::all(Kind::Python, &Runs::python(args.quick), &parts) };
    let rows = rows::rows(&brine, &python);
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
