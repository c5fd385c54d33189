//! Permissions: the lists of `external_auth` and `publisher_acl`, matched as in Salt's `auth_check` and `spec_check`.
//!
//! An entry is a function pattern (`test.*`), valid for all minions; a map of one target to functions (`{'web*':
//! [test.*]}`); or a word for functions that run in the master (`@runner`, `@wheel`, `@jobs`), alone or as a map to
//! functions. A function in a map may restrict its arguments: `{cp.push: {args: [/srv/.*], kwargs: {keep_symlinks:
//! .*}}}`.

use brine_protocol::args::parse_kwarg;
use brine_protocol::job::are_keywords;
use brine_protocol::target::{Regex as PythonRegex, fnmatch};
use brine_protocol::value::{Value, ValueExt};
use regex::Regex;

/// A regular expression that matches from the start of a text, like Python's `re.match`.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(PythonRegex);

impl Pattern {
    pub(crate) fn new(expression: &str) -> Result<Self, String> {
        let error = |why| format!("{expression:?} is not an expression that Brine matches: {why}");
        PythonRegex::new(expression).map(Self).map_err(error)
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.0.matches(text)
    }
}

/// Salt's `expr_match`: equality, a glob, or a regular expression for the whole text. Blacklists consist of these, so
/// matching must never give up; only expressions that match in linear time are accepted.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    text: String,
    whole: Option<Regex>,
}

impl Name {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let whole = Regex::new(text).and_then(|_| Regex::new(&format!("^(?:{text})$"))).ok();
        // Globs such as `*` and `web*` are no regular expressions. A text that is neither is an error of the operator.
        if whole.is_none() && !text.contains(['*', '?', '[']) || text.contains("(?!") || text.contains("(?<") {
            return Err(format!("{text:?} is neither a name, a glob nor an expression that Brine matches"));
        }
        Ok(Self { text: text.to_owned(), whole })
    }

    /// Returns the text, if it can only be a name.
    pub(super) fn plain(&self) -> Option<&str> {
        let plain = self.text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '@' | '\\'));
        plain.then_some(self.text.as_str())
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        self.text == name || fnmatch(&self.text, name) || self.whole.as_ref().is_some_and(|whole| whole.is_match(name))
    }
}

/// One entry of a user's list.
#[derive(Debug, Clone)]
pub(crate) enum Permission {
    /// A function, on all minions.
    Function(Pattern),
    /// Functions, on the minions that match a compound target.
    On(String, Vec<Rule>),
    /// `@runner`, `@wheel`, or a module of either such as `@jobs`; `None` allows all of its functions.
    Master(String, Option<Vec<Rule>>),
}

/// A function with restrictions on its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    fun: Pattern,
    /// Any one of these must fit; `None` allows all arguments.
    arguments: Option<Vec<Arguments>>,
}

/// Restrictions on arguments; `None` allows any value, like `.*`. Arguments that are not listed are free.
#[derive(Debug, Clone, Default)]
struct Arguments {
    args: Vec<Option<Pattern>>,
    kwargs: Vec<(String, Option<Pattern>)>,
}

/// Parses the list of one user.
pub(crate) fn parse(list: &Value) -> Result<Vec<Permission>, String> {
    let list = list.list().ok_or("a user's permissions must be a list")?;
    list.iter().map(permission).collect()
}

fn permission(entry: &Value) -> Result<Permission, String> {
    if let Some(text) = entry.text() {
        return Ok(match text.strip_prefix('@') {
            Some(word) => Permission::Master(word.to_owned(), None),
            None => Permission::Function(Pattern::new(text)?),
        });
    }
    let (target, functions) = only(entry)?;
    let rules = one_or_more(functions).iter().map(rule).collect::<Result<Vec<_>, _>>()?;
    Ok(match target.strip_prefix('@') {
        Some(word) => Permission::Master(word.to_owned(), Some(rules)),
        None => Permission::On(target, rules),
    })
}

fn rule(entry: &Value) -> Result<Rule, String> {
    if let Some(fun) = entry.text() {
        return Ok(Rule { fun: Pattern::new(fun)?, arguments: None });
    }
    let (fun, arguments) = only(entry)?;
    let arguments = one_or_more(arguments).iter().map(restriction).collect::<Result<Vec<_>, _>>()?;
    Ok(Rule { fun: Pattern::new(&fun)?, arguments: Some(arguments) })
}

fn restriction(entry: &Value) -> Result<Arguments, String> {
    let entries = entry.entries().ok_or("the arguments of a function must be a map with args and kwargs")?;
    let pattern = |value: &Value| match value {
        Value::Nil => Ok(None),
        value => Pattern::new(&value.python_str()).map(Some),
    };
    let mut out = Arguments::default();
    for (key, value) in entries {
        match (key.text(), value) {
            (Some("args"), Value::Array(items)) => out.args = items.iter().map(pattern).collect::<Result<_, _>>()?,
            (Some("kwargs"), Value::Map(items)) => {
                let each = items.iter().map(|(name, value)| Ok((name.python_str(), pattern(value)?)));
                out.kwargs = each.collect::<Result<_, String>>()?;
            }
            _ => {
                return Err(
                    "the arguments of a function must be a map with the list args and the map kwargs".to_owned()
                );
            }
        }
    }
    Ok(out)
}

fn only(entry: &Value) -> Result<(String, &Value), String> {
    match entry.entries() {
        Some([(key, value)]) => Ok((key.python_str(), value)),
        _ => Err(format!("{} is neither a function nor a map of one target", entry.python_repr())),
    }
}

fn one_or_more(value: &Value) -> &[Value] {
    value.list().unwrap_or(std::slice::from_ref(value))
}

/// Returns whether a list has `@events`: all events, whatever its other entries allow.
pub(super) fn all_events<'a>(list: impl IntoIterator<Item = &'a Permission>) -> bool {
    list.into_iter().any(|permission| matches!(permission, Permission::Master(word, None) if word == "events"))
}

/// The minions on which one function of a job is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// All minions.
    Everywhere,
    /// The minions that match any of these targets; an empty list allows none.
    On(Vec<String>),
}

/// Returns where `fun` with the arguments `arg` is allowed.
pub(crate) fn job<'a>(list: impl IntoIterator<Item = &'a Permission>, fun: &str, arg: &[Value]) -> Allowed {
    let mut targets = Vec::new();
    for permission in list {
        match permission {
            Permission::Function(pattern) if pattern.matches(fun) => return Allowed::Everywhere,
            Permission::On(target, rules) if rules.iter().any(|rule| rule.allows_job(fun, arg)) => {
                if target == "*" {
                    return Allowed::Everywhere;
                }
                targets.push(target.clone());
            }
            _ => {}
        }
    }
    Allowed::On(targets)
}

/// Returns where some function is allowed.
pub(super) fn any_job(list: &[Permission]) -> Allowed {
    let targets = job_targets(list);
    let everywhere = list.iter().any(|permission| matches!(permission, Permission::Function(_)));
    if everywhere || targets.iter().any(|target| target == "*") { Allowed::Everywhere } else { Allowed::On(targets) }
}

/// Returns the targets on which some function is allowed.
pub(super) fn job_targets(list: &[Permission]) -> Vec<String> {
    let targets = list.iter().filter_map(|permission| match permission {
        Permission::On(target, rules) if !rules.is_empty() => Some(target.clone()),
        _ => None,
    });
    targets.collect()
}

/// Returns whether a runner or wheel function (`form`) is allowed with these arguments.
pub(super) fn in_master<'a>(
    list: impl IntoIterator<Item = &'a Permission>,
    form: &str,
    module: &str,
    fun: &str,
    args: &[Value],
    kwargs: &[(String, Value)],
) -> bool {
    let whole = format!("{module}.{fun}");
    list.into_iter().any(|permission| {
        let Permission::Master(word, rules) = permission else { return false };
        let of_form = word == form || word.strip_suffix('s') == Some(form);
        match rules {
            None => of_form || word == module,
            Some(rules) => {
                let allows = |fun: &str| rules.iter().any(|rule| rule.allows(fun, args, kwargs));
                word == module && allows(fun) || of_form && allows(&whole)
            }
        }
    })
}

impl Rule {
    fn allows(&self, fun: &str, args: &[Value], kwargs: &[(String, Value)]) -> bool {
        let fits = |arguments: &Vec<Arguments>| arguments.iter().any(|allowed| allowed.fit(args, kwargs));
        self.fun.matches(fun) && self.arguments.as_ref().is_none_or(fits)
    }

    fn allows_job(&self, fun: &str, arg: &[Value]) -> bool {
        if self.arguments.is_none() {
            return self.fun.matches(fun);
        }
        // The checked arguments must be those that the function gets. A minion takes `name=value` for a keyword
        // argument if the function has a parameter of that name, and the later arguments then move up. Ambiguous
        // arguments are therefore not allowed.
        let (args, kwargs) = match arg.split_last() {
            Some((last @ Value::Map(entries), args)) if are_keywords(last) => {
                let named = |(name, value): &(Value, Value)| Some((name.text()?.to_owned(), value.clone()));
                (args, entries.iter().filter_map(named).collect())
            }
            _ => (arg, Vec::new()),
        };
        let ambiguous =
            |arg: &Value| arg.has("__kwarg__") || arg.text().is_some_and(|text| parse_kwarg(text).is_some());
        !args.iter().any(ambiguous) && self.allows(fun, args, &kwargs)
    }
}

impl Arguments {
    fn fit(&self, args: &[Value], kwargs: &[(String, Value)]) -> bool {
        let fits = |pattern: &Option<Pattern>, value: &Value| {
            pattern.as_ref().is_none_or(|pattern| pattern.matches(&value.python_str()))
        };
        let positional =
            self.args.iter().enumerate().all(|(at, pattern)| args.get(at).is_some_and(|arg| fits(pattern, arg)));
        let named = |(name, pattern): &(String, Option<Pattern>)| {
            let mut given = kwargs.iter().filter(|(known, _)| known == name).peekable();
            given.peek().is_some() && given.all(|(_, value)| fits(pattern, value))
        };
        positional && self.kwargs.iter().all(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::config::yaml;
    use brine_protocol::value::{list, map};

    fn permissions(text: &str) -> Vec<Permission> {
        parse(&yaml::load(text).unwrap()).unwrap()
    }

    #[test]
    fn functions_match_from_the_start() {
        let list = permissions("['test.*', 'grains.get']");
        for (fun, yes) in
            [("test.ping", true), ("grains.get", true), ("grains.get_or_set", true), ("xtest.ping", false)]
        {
            assert_eq!(job(&list, fun, &[]) == Allowed::Everywhere, yes, "{fun}");
        }
        assert_eq!(job(&permissions("['@runner']"), "@runner", &[]), Allowed::On(vec![]));
        // Python's lookaround works, unbalanced brackets are refused, and a match that exceeds its limit permits
        // nothing.
        let all_but = permissions(r"['(?!cmd\.).*\..*']");
        assert_eq!(job(&all_but, "test.ping", &[]), Allowed::Everywhere);
        assert_eq!(job(&all_but, "cmd.run", &[]), Allowed::On(vec![]));
        let tiring = permissions("['(?=(a+)+$)b?(a|a)*c']");
        assert_eq!(job(&tiring, &"a".repeat(200), &[]), Allowed::On(vec![]));
        assert!(Pattern::new("a)|(b").is_err());
    }

    #[test]
    fn arguments_are_those_that_the_function_gets() {
        let allowed = permissions("[{a: [{x.y: [{args: ['ok.*', ~], kwargs: {k: 'v.*'}}, {args: [only]}]}]}]");
        let kwargs = |k: &str, v: &str| map([("__kwarg__", Value::from(true)), (k, Value::from(v))]);
        let text = |t: &str| Value::from(t);
        let marked = |marks: &[Value]| {
            let marks = marks.iter().map(|mark| (text("__kwarg__"), mark.clone()));
            Value::Map(marks.chain([(text("k"), text("v1"))]).collect())
        };
        for (arg, yes) in [
            (vec![text("ok1"), text("any"), kwargs("k", "v1")], true),
            (vec![text("only")], true),
            (vec![text("only"), text("more")], true),
            (vec![], false),
            (vec![text("ok1"), kwargs("k", "v1")], false),
            (vec![text("ok1"), text("any"), kwargs("k", "w")], false),
            (vec![text("ok1"), text("any"), kwargs("j", "v1")], false),
            // Arguments that could be keywords and move the next one into their place.
            (vec![text("only=1"), text("evil")], false),
            (vec![kwargs("k", "v1"), text("only")], false),
            (vec![kwargs("k", "w"), text("ok1"), text("any"), kwargs("k", "v1")], false),
            // A map that the minion takes for an argument by position.
            (vec![text("ok1"), text("any"), marked(&[Value::from(false)])], false),
            (vec![text("ok1"), text("any"), marked(&[Value::from(1)])], false),
            (vec![text("ok1"), text("any"), marked(&[Value::Nil])], false),
            (vec![text("ok1"), text("any"), marked(&[Value::from(true), Value::from(false)])], false),
            (vec![text("ok1"), text("any"), marked(&[Value::from(false), Value::from(true)])], false),
            (vec![text("ok1"), text("any"), marked(&[Value::from(true)])], true),
        ] {
            assert_eq!(
                job(&allowed, "x.y", &arg),
                Allowed::On(if yes { vec!["a".to_owned()] } else { vec![] }),
                "{arg:?}"
            );
        }
    }

    #[test]
    fn what_runs_in_the_master() {
        let may = |text: &str, form: &str, module: &str, fun: &str| {
            in_master(&permissions(text), form, module, fun, &[], &[])
        };
        for (text, form, module, fun, yes) in [
            ("['@runner']", "runner", "jobs", "active", true),
            ("['@runners']", "runner", "jobs", "active", true),
            ("['@runner']", "wheel", "key", "accept", false),
            ("['@jobs']", "runner", "jobs", "active", true),
            ("['@jobs']", "runner", "manage", "up", false),
            ("['.*']", "runner", "jobs", "active", false),
            ("[{'@jobs': [active]}]", "runner", "jobs", "active", true),
            ("[{'@jobs': [active]}]", "runner", "jobs", "list_jobs", false),
            ("[{'@wheel': [key.list.*]}]", "wheel", "key", "list_all", true),
            ("[{'@wheel': [key.list.*]}]", "wheel", "key", "delete", false),
            ("[{'*': ['.*']}]", "wheel", "key", "delete", false),
        ] {
            assert_eq!(may(text, form, module, fun), yes, "{text} {form} {module}.{fun}");
        }
        let restricted = permissions("[{'@wheel': [{key.accept: {kwargs: {match: 'web.*'}}}]}]");
        let named = |id: &str| [("match".to_owned(), Value::from(id))];
        assert!(in_master(&restricted, "wheel", "key", "accept", &[], &named("web1")));
        assert!(!in_master(&restricted, "wheel", "key", "accept", &[], &named("db1")));
        assert!(!in_master(&restricted, "wheel", "key", "accept", &[], &[named("web1"), named("db1")].concat()));
        assert!(!in_master(&restricted, "wheel", "key", "accept", list(["web1"]).list().unwrap(), &[]));
    }

    #[test]
    fn names_match_whole() {
        for (pattern, name, yes) in [
            ("joe", "joe", true),
            ("joe", "joey", false),
            ("web*", "web1", true),
            ("a.c", "abc", true),
            ("a|b", "bx", false),
            ("*", "x", true),
        ] {
            assert_eq!(Name::new(pattern).unwrap().matches(name), yes, "{pattern} {name}");
        }
        assert!(Name::new("(").is_err() && Name::new("^(?!sudo_).*$").is_err());
    }
}
