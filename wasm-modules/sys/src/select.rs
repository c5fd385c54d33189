//! Selects functions by name with Salt's rules, which differ slightly between functions.

use std::collections::BTreeSet;

use brine_guest::fnmatch;

/// For `sys.doc`: a glob, a function, or a module with or without a trailing dot.
pub(crate) fn doc(name: &str, function: &str) -> bool {
    if name.contains('*') {
        return fnmatch(name, function);
    }
    function == name || name.is_empty() || in_module(name.strip_suffix('.').unwrap_or(name), function)
}

/// For `sys.list_functions` and `sys.argspec`: a glob, a function, or a module.
pub(crate) fn functions(name: &str, function: &str) -> bool {
    if name.contains(['*', '.']) { fnmatch(name, function) } else { in_module(name, function) }
}

/// The modules that names without wildcards are of; none if a name can be of any.
pub(crate) fn modules(names: &BTreeSet<String>) -> Option<Vec<String>> {
    let is_plain = |name: &String| !name.is_empty() && !name.contains(['*', '?', '[']);
    if names.is_empty() || !names.iter().all(is_plain) {
        return None;
    }
    let modules: BTreeSet<&str> = names.iter().filter_map(|name| name.split('.').next()).collect();
    Some(modules.into_iter().map(str::to_owned).collect())
}

/// Whether the name can select functions of this module, so that other modules need not be described.
pub(crate) fn module(name: &str, module: &str) -> bool {
    name.is_empty() || name.contains(['*', '?', '[']) || name.split('.').next() == Some(module)
}

/// `sys` selects the functions of sys and not those of sysctl.
fn in_module(module: &str, function: &str) -> bool {
    function.strip_prefix(module).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_module(name: &str, function: &str, selected: bool) {
        let of = function.split('.').next().unwrap();
        assert!(module(name, of) || !selected, "{name} {function}");
    }

    #[test]
    fn doc_takes_modules_functions_and_globs() {
        let table = [
            ("sys", "sys.doc", true),
            ("sys.", "sys.doc", true),
            ("sys", "sysctl.get", false),
            ("sys.doc", "sys.doc", true),
            ("sys.do", "sys.doc", false),
            ("sys.*", "sys.doc", true),
            ("*.ping", "test.ping", true),
            ("", "test.ping", true),
        ];
        for (name, function, expected) in table {
            assert_eq!(doc(name, function), expected, "{name} {function}");
            check_module(name, function, expected);
        }
    }

    #[test]
    fn plain_names_say_their_modules() {
        let modules = |names: &[&str]| super::modules(&names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(modules(&["test.ping", "sys", "test.echo"]), Some(vec!["sys".to_owned(), "test".to_owned()]));
        for any in [&[][..], &[""], &["test.ping", "s*"], &["[st]ys.doc"]] {
            assert_eq!(modules(any), None, "{any:?}");
        }
    }

    #[test]
    fn functions_take_modules_functions_and_globs() {
        let table = [
            ("sys", "sys.doc", true),
            ("sys", "sysctl.get", false),
            ("sys.doc", "sys.doc", true),
            ("sys.do", "sys.doc", false),
            ("sys.d?c", "sys.doc", true),
            ("s*", "sysctl.get", true),
        ];
        for (name, function, expected) in table {
            assert_eq!(functions(name, function), expected, "{name} {function}");
            check_module(name, function, expected);
        }
    }
}
