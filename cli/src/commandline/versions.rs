//! `--versions-report`: the versions in use, in the form of Salt's report.

use std::fmt::Write as _;

/// The version that `--version` prints.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (Brine)");

/// The release of Python Salt whose options and texts Brine follows.
const FOLLOWS: &str = "3008";

/// The lines of the report, without a newline at the end.
pub(super) fn report() -> String {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let os = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |name: &str| {
        let value = os.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.map_or_else(|| "unknown".to_owned(), |value| value.trim_matches('"').to_owned())
    };
    let sections = [
        ("Salt Version", vec![("Salt", VERSION.to_owned()), ("follows", format!("Python Salt {FOLLOWS}"))]),
        (
            "System Versions",
            vec![
                ("dist", format!("{} {}", field("ID"), field("VERSION_ID"))),
                ("machine", text(system.machine())),
                ("release", text(system.release())),
                ("system", text(system.sysname())),
                ("version", field("PRETTY_NAME")),
            ],
        ),
    ];
    let mut out = String::new();
    for (heading, lines) in sections {
        let _ = writeln!(out, "{heading}:");
        for (name, value) in lines {
            let _ = writeln!(out, "{name:>14}: {value}");
        }
        out.push_str(" \n");
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_report_names_this_version() {
        let report = super::report();
        assert!(report.starts_with("Salt Version:\n") && report.contains(env!("CARGO_PKG_VERSION")), "{report}");
        assert!(report.contains("system: Linux"), "{report}");
    }
}
