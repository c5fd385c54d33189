//! What `peer` and `peer_run` let which minions ask for.
//!
//! ```yaml
//! peer:
//!   web.*:                          # minions, a regular expression
//!     - test.*                      # functions, on any minion
//!     - G@role:db:                  # functions on the minions of a compound target only
//!       - pkg.version
//!       - file.read: [{args: [/etc/motd]}]
//! ```
//!
//! Expressions are matched from the start of a text, as Python's `re.match` does: `test.ping` lets `test.ping_all` through too.

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, ValueExt};
use regex::{Regex, RegexBuilder};

/// Bytes that a compiled expression may take.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// An expression that is matched from the start.
#[derive(Debug, Clone)]
pub(super) struct Pattern(Regex);

impl Pattern {
    fn read(value: &Value) -> Result<Self, String> {
        let text = value.text().ok_or_else(|| format!("{} is no regular expression", value.python_str()))?;
        let regex = RegexBuilder::new(&format!("^(?:{text})")).size_limit(REGEX_BYTES_MAX).build();
        regex.map(Self).map_err(|e| format!("{text:?} is no regular expression: {e}"))
    }

    fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Who may ask for what.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Vec<(Pattern, Vec<Rule>)>);

/// One thing that is permitted.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    /// A function, on any minion.
    Function(Pattern),
    /// Functions on the minions of this compound target.
    On { target: String, functions: Vec<Condition> },
}

/// A function, and what its arguments have to be; none: whatever they are.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    function: Pattern,
    arguments: Option<Vec<Arguments>>,
}

/// The first positional arguments, and keywords that have to be there. What has no pattern may be anything.
#[derive(Debug, Clone, Default)]
struct Arguments {
    args: Vec<Option<Pattern>>,
    kwargs: Vec<(String, Option<Pattern>)>,
}

/// A function that is asked for, with its arguments as minions read them.
#[derive(Debug, Clone)]
pub(super) struct Call<'a> {
    pub(super) fun: &'a str,
    pub(super) args: Vec<Value>,
    pub(super) kwargs: Vec<(String, Value)>,
}

impl Rules {
    /// Reads a setting; none permits nothing. The error is for the operator, without the setting's name.
    pub(crate) fn read(setting: Option<&Value>) -> Result<Self, String> {
        let Some(setting) = setting.filter(|setting| !setting.is_nil()) else { return Ok(Self::default()) };
        let minions = setting.entries().ok_or("it must be a map of minions to lists of functions")?;
        let read = |(who, what): &(Value, Value)| {
            let what = what.list().ok_or_else(|| format!("{} has no list of functions", who.python_str()))?;
            Ok((Pattern::read(who)?, what.iter().map(Rule::read).collect::<Result<_, String>>()?))
        };
        minions.iter().map(read).collect::<Result<_, String>>().map(Self)
    }

    /// What this minion may ask for.
    pub(super) fn of<'a>(&'a self, id: &'a MinionId) -> impl Iterator<Item = &'a Rule> {
        self.0.iter().filter(|(who, _)| who.matches(id.as_str())).flat_map(|(_, what)| what)
    }

    /// Whether targets stand in it, which `peer_run` has no use for.
    pub(crate) fn has_targets(&self) -> bool {
        self.0.iter().flat_map(|(_, what)| what).any(|rule| matches!(rule, Rule::On { .. }))
    }
}

impl Rule {
    fn read(value: &Value) -> Result<Self, String> {
        let Some(entries) = value.entries() else { return Pattern::read(value).map(Self::Function) };
        let wrong = || format!("{} is neither a function nor a target with functions", value.python_str());
        let [(target, functions)] = entries else { return Err(wrong()) };
        let target = target.text().ok_or_else(wrong)?.to_owned();
        let functions = match functions.list() {
            Some(functions) => functions.iter().map(Condition::read).collect::<Result<_, _>>()?,
            None => vec![Condition::read(functions)?],
        };
        Ok(Self::On { target, functions })
    }

    /// The target that decides about this call, if this rule has one and permits its function.
    pub(super) fn target_for(&self, call: &Call<'_>) -> Option<&str> {
        match self {
            Self::On { target, functions } if functions.iter().any(|f| f.permits(call)) => Some(target),
            _ => None,
        }
    }

    /// Whether this call is permitted, given whether all the minions it is for are among those of a target.
    pub(super) fn permits(&self, call: &Call<'_>, all_in: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Function(function) => function.matches(call.fun),
            Self::On { .. } => self.target_for(call).is_some_and(all_in),
        }
    }
}

impl Condition {
    fn read(value: &Value) -> Result<Self, String> {
        let Some(entries) = value.entries() else {
            return Ok(Self { function: Pattern::read(value)?, arguments: None });
        };
        let wrong = || format!("{} is neither a function nor one with arguments", value.python_str());
        let [(function, arguments)] = entries else { return Err(wrong()) };
        let arguments = match arguments.list() {
            Some(several) => several.iter().map(Arguments::read).collect::<Result<_, _>>()?,
            None => vec![Arguments::read(arguments)?],
        };
        Ok(Self { function: Pattern::read(function)?, arguments: Some(arguments) })
    }

    fn permits(&self, call: &Call<'_>) -> bool {
        let arguments = self.arguments.as_ref();
        self.function.matches(call.fun) && arguments.is_none_or(|any_of| any_of.iter().any(|one| one.fit(call)))
    }
}

impl Arguments {
    fn read(value: &Value) -> Result<Self, String> {
        let wrong = || format!("{} is not a map of args and kwargs", value.python_str());
        let entries = value.entries().ok_or_else(wrong)?;
        let pattern = |value: &Value| if value.is_nil() { Ok(None) } else { Pattern::read(value).map(Some) };
        let mut read = Self::default();
        for (key, what) in entries {
            match key.text() {
                Some("args") => {
                    read.args = what.list().ok_or_else(wrong)?.iter().map(pattern).collect::<Result<_, _>>()?;
                }
                Some("kwargs") => {
                    let named = |(name, value): &(Value, Value)| {
                        Ok((name.text().ok_or_else(wrong)?.to_owned(), pattern(value)?))
                    };
                    read.kwargs = what.entries().ok_or_else(wrong)?.iter().map(named).collect::<Result<_, String>>()?;
                }
                _ => return Err(wrong()),
            }
        }
        Ok(read)
    }

    fn fit(&self, call: &Call<'_>) -> bool {
        let fits = |pattern: &Option<Pattern>, value: Option<&Value>| match (pattern, value) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(pattern), Some(value)) => pattern.matches(&value.python_str()),
        };
        let named = |name: &str| call.kwargs.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        self.args.iter().enumerate().all(|(place, pattern)| fits(pattern, call.args.get(place)))
            && self.kwargs.iter().all(|(name, pattern)| fits(pattern, named(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::config::yaml;

    fn rules(text: &str) -> Result<Rules, String> {
        Rules::read(Some(&yaml::load(text).unwrap()))
    }

    fn may(rules: &Rules, id: &str, fun: &str, args: &[&str], kwargs: &[(&str, &str)]) -> bool {
        let args = args.iter().map(|arg| Value::from(*arg)).collect();
        let kwargs = kwargs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
        let call = Call { fun, args, kwargs };
        // The call is for minions that are all in the target `web*`, and in no other.
        rules.of(&id.parse().unwrap()).any(|rule| rule.permits(&call, |target| target == "web*"))
    }

    #[test]
    fn functions_are_permitted_by_minion() {
        let rules = rules("{web.*: [test.ping, 'grains\\.'], db1: [.*]}").unwrap();
        for (id, fun, expect) in [
            ("web1", "test.ping", true),
            ("web1", "test.ping_all", true),
            ("web1", "xtest.ping", false),
            ("web1", "grains.items", true),
            ("web1", "cmd.run", false),
            ("aweb1", "test.ping", false),
            ("db1", "cmd.run", true),
            ("db2", "cmd.run", false),
        ] {
            assert_eq!(may(&rules, id, fun, &[], &[]), expect, "{id} {fun}");
        }
        assert!(!may(&Rules::read(None).unwrap(), "web1", "test.ping", &[], &[]));
    }

    #[test]
    fn targets_and_arguments_narrow() {
        let text = "
            m:
              - web*: [test.*, {file.read: {args: [/etc/motd$], kwargs: {binary: null}}}]
              - db*: test.ping
              - web*:
                - cmd.run: [{args: [uptime$]}, {args: [null, /tmp]}]
        ";
        let rules = rules(text).unwrap();
        for (fun, args, kwargs, expect) in [
            ("test.ping", &[][..], &[][..], true),
            ("file.read", &["/etc/motd"], &[("binary", "x")], true),
            ("file.read", &["/etc/motd"], &[], false),
            ("file.read", &["/etc/motd2"], &[("binary", "x")], false),
            ("file.read", &[], &[("binary", "x")], false),
            ("cmd.run", &["uptime"], &[], true),
            ("cmd.run", &["uptime; id"], &[], false),
            ("cmd.run", &["anything", "/tmp/x"], &[], true),
            ("cmd.run", &[], &[("cmd", "uptime")], false),
        ] {
            assert_eq!(may(&rules, "m", fun, args, kwargs), expect, "{fun} {args:?} {kwargs:?}");
        }
    }

    /// Salt goes on without what it does not understand; here the operator is told.
    #[test]
    fn mistakes_are_told() {
        for (text, said) in [
            ("[a]", "map of minions"),
            ("{a: test.ping}", "list of functions"),
            ("{'(': []}", "no regular expression"),
            ("{a: ['(']}", "no regular expression"),
            ("{a: [1]}", "no regular expression"),
            ("{a: ['(?=x)']}", "no regular expression"),
            ("{a: ['(x{1000}){1000}']}", "no regular expression"),
            ("{a: [{b: [c], d: [e]}]}", "neither a function"),
            ("{a: [{b: [{c: 1}]}]}", "map of args"),
            ("{a: [{b: [{c: {arg: []}}]}]}", "map of args"),
        ] {
            let error = rules(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
