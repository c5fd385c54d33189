//! Compares two builds in one run: their measurements alternate, so that what the machine does besides meets both.

use std::path::Path;

use brine_kit::process::run_with;

use crate::rows::{self, Figures};
use crate::table;

/// Measures the programs in both folders `repeat` times each and returns the table. `options` are for each measurement.
pub(crate) fn run(folders: [&Path; 2], repeat: usize, options: &[String]) -> String {
    let this = std::env::current_exe().expect("this program has a path");
    let options: Vec<&str> = ["--figures"].into_iter().chain(options.iter().map(String::as_str)).collect();
    let mut all: [Vec<Figures>; 2] = [Vec::new(), Vec::new()];
    for turn in 0..repeat {
        // Each build comes first in every second turn.
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        for at in order {
            let folder = folders[at].to_str().expect("a folder whose name is text");
            eprintln!("bench: {folder}, turn {} of {repeat}", turn + 1);
            // A process of its own: the folder of the programs is what its environment names.
            let output = run_with(&this, &options, &[("BRINE_BIN", folder)]).exits(0);
            all[at].push(rows::from_json(&output.json()));
        }
    }
    let [a, b] = all.map(|figures| rows::repeated(&figures));
    table::comparison(&rows::pairs(&a, &b))
}
