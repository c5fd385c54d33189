//! How `salt` and `salt-call` show what a function returned: Salt's `__outputter__`.

/// Functions that ask for an outputter: its name, their module, and their names in it.
const ASKED: [(&str, &str, &[&str]); 5] = [
    (
        "highstate",
        "state",
        &[
            "apply",
            "check_request",
            "highstate",
            "pkg",
            "request",
            "run_request",
            "single",
            "sls",
            "sls_id",
            "template",
            "template_str",
            "test",
            "top",
        ],
    ),
    ("nested", "grains", &["item", "items", "setval"]),
    ("txt", "aliases", &["get_target", "has_target", "rm_alias", "set_target"]),
    ("yaml", "aliases", &["list_aliases"]),
    ("txt", "alternatives", &["display", "install", "remove"]),
];

/// The outputter that a return asks for. None: whoever shows it decides.
pub(crate) fn outputter(fun: &str) -> Option<&'static str> {
    let (module, name) = fun.split_once('.')?;
    ASKED.iter().find(|(_, of, names)| *of == module && names.contains(&name)).map(|(out, ..)| *out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_ask_for_salts_outputters() {
        for run in ["state.apply", "state.sls_id", "state.test", "state.top", "state.request"] {
            assert_eq!(outputter(run), Some("highstate"), "{run}");
        }
        assert_eq!(outputter("grains.items"), Some("nested"));
        assert_eq!((outputter("aliases.get_target"), outputter("aliases.list_aliases")), (Some("txt"), Some("yaml")));
        for other in ["state.show_sls", "state.low", "state.high", "state.running", "grains.get", "test.ping", "apply"]
        {
            assert_eq!(outputter(other), None, "{other}");
        }
    }
}
