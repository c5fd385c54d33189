//! The settings of the output of states.

/// The amount of output for each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StateOutput {
    /// Several lines for each state.
    #[default]
    Full,
    /// One line for each state.
    Terse,
    /// One line for a state, several for a failed one.
    Mixed,
    /// One line for a state without changes.
    Changes,
    /// As [`StateSettings::exclude`] and [`StateSettings::terse`] select.
    Filter,
}

/// The settings `state_output` and related ones.
#[derive(Debug, Clone)]
pub struct StateSettings {
    /// `state_output`: the amount of output.
    pub output: StateOutput,
    /// `state_output` ends with `_id`: states are labelled by id and not by name.
    pub by_id: bool,
    /// `state_verbose`: also shows states that succeeded without changes.
    pub verbose: bool,
    /// `state_output_diff`: shows only states that changed something or failed.
    pub diff: bool,
    /// `state_output_profile`: shows the start and the duration of states.
    pub profile: bool,
    /// `state_output_pct`: percentages in the summary.
    pub percent: bool,
    /// `state_tabular`: one-line states in columns.
    pub tabular: bool,
    /// `state_compress_ids`: states of one id and result in one block.
    pub compress_ids: bool,
    /// `state_output_exclude`: results (`True`, `False`, `None`) that `filter` leaves out.
    pub exclude: Vec<String>,
    /// `state_output_terse`: results that `filter` shows in one line.
    pub terse: Vec<String>,
}

impl Default for StateSettings {
    fn default() -> Self {
        Self {
            output: StateOutput::Full,
            by_id: false,
            verbose: true,
            diff: false,
            profile: true,
            percent: false,
            tabular: false,
            compress_ids: false,
            exclude: Vec::new(),
            terse: Vec::new(),
        }
    }
}

impl StateSettings {
    /// Reads the text of `state_output`; an unknown text counts as `full`, as in Salt.
    pub fn set_output(&mut self, text: &str) {
        let text = text.to_lowercase();
        self.by_id = text.ends_with("_id");
        let known = [
            ("terse", StateOutput::Terse),
            ("mixed", StateOutput::Mixed),
            ("changes", StateOutput::Changes),
            ("filter", StateOutput::Filter),
        ];
        self.output = known.into_iter().find(|(name, _)| text.starts_with(name)).map_or(StateOutput::Full, |(_, o)| o);
    }
}
