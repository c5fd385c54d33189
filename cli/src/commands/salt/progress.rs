//! `--progress`: a bar on stderr that counts the returns; nothing if stderr is not a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// Salt's format of the bar.
const TEMPLATE: &str = "{percent:>3}% |{wide_bar}| Elapsed Time: {elapsed_precise} Returns: [{pos}/{len}]";

/// The bar. It stays on the terminal when this is dropped.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar for this many minions.
    pub(super) fn new(minions: usize) -> Self {
        let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(minions as u64).with_style(style.progress_chars("##-"));
        bar.tick();
        Self(bar)
    }

    /// Counts a return. Minions behind a syndic may exceed the expected number.
    pub(super) fn returned(&self) {
        if self.0.length().is_some_and(|length| self.0.position() >= length) {
            self.0.inc_length(1);
        }
        self.0.inc(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_expected_may_return() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
        let bar = Bar::new(2);
        let count = |bar: &Bar| (bar.0.position(), bar.0.length());
        bar.returned();
        assert_eq!(count(&bar), (1, Some(2)));
        bar.returned();
        bar.returned();
        assert_eq!(count(&bar), (3, Some(3)));
    }
}
