//! Writes the figures into a document and keeps the text around them.

use std::io;
use std::path::Path;

use crate::machine;
use crate::plot;
use crate::table::{self, Row};

/// Markers around the generated part.
const BEGIN: &str = "<!-- figures: written by `make bench` -->";
const END: &str = "<!-- end of figures -->";

/// Writes the figures into `path`, and the plot beside it.
pub(crate) fn write(path: &Path, rows: &[Row], sandbox: &[String], drift: usize) -> io::Result<()> {
    let plot = path.with_extension("svg");
    std::fs::write(&plot, plot::svg(rows))?;
    let name = plot.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let table = table::markdown(rows);
    let machine = machine::describe();
    let mut figures = format!(
        "{BEGIN}\n\n{machine}. Growth of memory over {drift} jobs.\n\n{table}\n![How many times better]({name})\n\n"
    );
    if !sandbox.is_empty() {
        figures +=
            &format!("The sandbox alone, which Python has nothing beside:\n\n```\n{}\n```\n\n", sandbox.join("\n"));
    }
    figures += END;
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let around = before.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = around.unwrap_or(("# Benchmarks\n\n", "\n"));
    std::fs::write(path, format!("{head}{figures}{tail}"))
}
