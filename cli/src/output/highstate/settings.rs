//! What an operator sets about the output of states.

/// How much of each state is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StateOutput {
    /// Several lines a state.
    #[default]
    Full,
    /// One line a state.
    Terse,
    /// One line a state, several for one that failed.
    Mixed,
    /// One line for a state that changed nothing.
    Changes,
    /// As [`StateSettings::exclude`] and [`StateSettings::terse`] say.
    Filter,
}

/// The settings `state_output` and the like.
#[derive(Debug, Clone)]
pub struct StateSettings {
    /// `state_output`: how much is shown.
    pub output: StateOutput,
    /// `state_output` ends with `_id`: states are named by their id and not by their name.
    pub by_id: bool,
    /// `state_verbose`: states are shown that succeeded and changed nothing.
    pub verbose: bool,
    /// `state_output_diff`: only what changed or failed is shown.
    pub diff: bool,
    /// `state_output_profile`: when a state started and how long it took.
    pub profile: bool,
    /// `state_output_pct`: shares in the summary.
    pub percent: bool,
    /// `state_tabular`: one-line states in columns.
    pub tabular: bool,
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
            exclude: Vec::new(),
            terse: Vec::new(),
        }
    }
}

impl StateSettings {
    /// Takes `state_output`'s text; what is unknown counts as `full`, as in Salt.
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
