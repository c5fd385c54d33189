//! The call that the arguments of the command line describe: a target, one function or several (`test.ping,test.echo ,
//! hi`), and their arguments.

use brine_protocol::args::parse_input_but;
use brine_protocol::exit;
use brine_protocol::value::{self, Value};

use super::args::{SaltArgs, incomplete};
use crate::Failure;
use crate::commandline::misuse;
use crate::output::Outputter;

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) tgt: Value,
    pub(super) fun: Value,
    pub(super) arg: Vec<Value>,
}

impl Call {
    pub(super) fn new(args: &SaltArgs) -> Result<Self, Failure> {
        let mut words = args.words.clone();
        if args.preview_target {
            // There is no function to call.
            words.truncate(1);
            words.extend(words.first().map(|_| String::new()));
        }
        if args.doc {
            if words.is_empty() {
                words.push("*".to_owned());
            }
            if words.get(1).is_none_or(|word| word != "sys.doc") {
                words.insert(1, "sys.doc".to_owned());
            }
            if words.len() > 3 {
                return Err(misuse::<SaltArgs>("You can only get documentation for one method at one time."));
            }
        }
        let (tgt, fun, rest) = match words.as_slice() {
            [] => return Err(incomplete("Cannot execute command without defining a target.\n")),
            [_] => return Err(incomplete("Incomplete options passed.\n")),
            [tgt, fun, rest @ ..] => (tgt, fun, rest),
        };
        let tgt = args.target.target(tgt);
        if !fun.contains(',') {
            return Ok(Self { tgt, fun: Value::from(fun.as_str()), arg: parse_input_but(rest, &args.no_parse) });
        }
        let funs: Vec<&str> = fun.split(',').collect();
        let groups = split_arguments(rest, &args.args_separator, funs.len())?;
        let arg = groups.iter().map(|words| Value::Array(parse_input_but(words, &args.no_parse))).collect();
        Ok(Self { tgt, fun: value::list(funs), arg })
    }

    /// The outputter of its returns that name none, unless the operator names one.
    pub(super) fn outputter(&self) -> &str {
        Outputter::of_function(self.fun.as_str().unwrap_or_default())
    }

    /// Whether the call requests documentation, which is printed in another form.
    pub(super) fn is_doc(&self) -> bool {
        self.fun.as_str() == Some("sys.doc")
    }
}

/// Splits the arguments of several functions. A separator is an argument of its own; if there are not enough of those,
/// separators within arguments (`,hi`) count too.
fn split_arguments(words: &[String], separator: &str, functions: usize) -> Result<Vec<Vec<String>>, Failure> {
    let mut groups: Vec<Vec<String>> = vec![Vec::new()];
    let push = |groups: &mut Vec<Vec<String>>, word: &str| {
        if let Some(group) = groups.last_mut() {
            group.push(word.to_owned());
        }
    };
    if words.iter().filter(|word| *word == separator).count() == functions - 1 {
        for word in words {
            if word == separator { groups.push(Vec::new()) } else { push(&mut groups, word) }
        }
        return Ok(groups);
    }
    for word in words {
        if separator.is_empty() || !word.contains(separator) {
            push(&mut groups, word);
            continue;
        }
        for (at, part) in word.split(separator).enumerate() {
            if at > 0 {
                groups.push(Vec::new());
            }
            if !part.is_empty() {
                push(&mut groups, part);
            }
        }
    }
    match groups.len().cmp(&functions) {
        std::cmp::Ordering::Equal => Ok(groups),
        std::cmp::Ordering::Less => {
            Err(Failure::new(exit::OPTION, "Cannot execute compound command without defining all arguments."))
        }
        std::cmp::Ordering::Greater => {
            Err(Failure::new(exit::OPTION, "Cannot execute compound command with more arguments than commands."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commandline::parse as parse_args;

    fn call(line: &[&str]) -> Result<Call, Failure> {
        let argv = std::iter::once("salt").chain(line.iter().copied()).map(Into::into);
        Call::new(&parse_args::<SaltArgs>(argv)?)
    }

    fn json(line: &[&str]) -> serde_json::Value {
        let call = call(line).unwrap();
        let json = value::to_json;
        serde_json::json!([json(&call.tgt), json(&call.fun), json(&Value::Array(call.arg))])
    }

    #[test]
    fn words_become_calls() {
        for (line, expect) in [
            (&["*", "test.ping"][..], r#"["*", "test.ping", []]"#),
            (&["*", "test.arg", "1", "a=b", "x"], r#"["*", "test.arg", [1, "x", {"__kwarg__": true, "a": "b"}]]"#),
            (&["-L", "a,b, c", "test.ping"], r#"[["a", "b", "c"], "test.ping", []]"#),
            (&["-L", "a b", "test.ping"], r#"[["a", "b"], "test.ping", []]"#),
            (&["test.*", "test.fib", "-1"], r#"["test.*", "test.fib", [-1]]"#),
            (&["*", "test.ping", "-t", "3", "x"], r#"["*", "test.ping", ["x"]]"#),
            (&["-d"], r#"["*", "sys.doc", []]"#),
            (&["-d", "web*"], r#"["web*", "sys.doc", []]"#),
            (&["-d", "*", "test.ping"], r#"["*", "sys.doc", ["test.ping"]]"#),
            (&["-d", "*", "sys.doc", "test"], r#"["*", "sys.doc", ["test"]]"#),
            (&["--no-parse=a", "*", "f.x", "a=1", "b=1"], r#"["*", "f.x", [{"__kwarg__": true, "b": 1, "a": "1"}]]"#),
            (&["*", "test.ping,test.echo", ",hi"], r#"["*", ["test.ping", "test.echo"], [[], ["hi"]]]"#),
            (&["*", "test.ping,test.echo", ",", "hi"], r#"["*", ["test.ping", "test.echo"], [[], ["hi"]]]"#),
            (&["*", "a.b,c.d", "1,2"], r#"["*", ["a.b", "c.d"], [[1], [2]]]"#),
            (&["*", "a.b,c.d", "1", ",", "x,y"], r#"["*", ["a.b", "c.d"], [[1], ["x,y"]]]"#),
            (&["--args-separator=::", "*", "a.b,c.d", "x,y", "::", "z"], r#"["*", ["a.b", "c.d"], [["x,y"], ["z"]]]"#),
            (&["*", "a.b,c.d,e.f", ",", ","], r#"["*", ["a.b", "c.d", "e.f"], [[], [], []]]"#),
        ] {
            assert_eq!(json(line), serde_json::from_str::<serde_json::Value>(expect).unwrap(), "{line:?}");
        }
    }

    #[test]
    fn wrong_words() {
        for (line, code, text) in [
            (&["*", "a.b,c.d", "hi"][..], 42, "without defining all arguments"),
            (&["*", "a.b,c.d", "a,b,c"], 42, "with more arguments than commands"),
            (&["-d", "*", "a", "b"], 64, "You can only get documentation for one method"),
            (&["--bogus"], 64, "salt: error: no such option: --bogus"),
            (&["-t", "x", "*", "test.ping"], 64, "invalid integer value: 'x'"),
            (&["-l", "bogus", "*", "test.ping"], 64, "invalid choice: 'bogus' (choose from 'all', "),
            (&["--out"], 64, "--out option requires 1 argument"),
        ] {
            let failure = call(line).unwrap_err();
            let message = failure.message.unwrap();
            assert!(failure.code == code && message.contains(text), "{line:?}: {} {message}", failure.code);
        }
    }
}
