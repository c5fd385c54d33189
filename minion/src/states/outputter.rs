//! How `salt` and `salt-call` show a run of states.

/// Functions of the module `state` whose return is a run: Salt's `__outputter__`.
const RUNS: [&str; 6] =
    ["state.apply", "state.highstate", "state.single", "state.sls", "state.sls_id", "state.template_str"];

/// The outputter that a return asks for. None: whoever shows it decides.
pub(crate) fn outputter(fun: &str) -> Option<&'static str> {
    RUNS.contains(&fun).then_some("highstate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_ask_for_the_outputter_highstate() {
        assert_eq!(outputter("state.apply"), Some("highstate"));
        for other in ["state.show_sls", "state.low", "state.high", "state.running", "test.ping", "apply"] {
            assert_eq!(outputter(other), None, "{other}");
        }
    }
}
