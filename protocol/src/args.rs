//! Arguments on a command line (§11.1): each word is YAML, `name=value` is a keyword.

use crate::value::Value;

/// The `arg` list of a job from the words of a command line; keywords go last as the `__kwarg__` map.
pub fn parse_input(words: &[String]) -> Vec<Value> {
    let (args, kwargs) = split_input(words);
    condition_input(args, kwargs)
}

/// As [`parse_input`], keywords apart.
pub fn split_input(words: &[String]) -> (Vec<Value>, Vec<(String, Value)>) {
    let _ = words;
    todo!()
}

/// The `arg` list of a job from arguments: jids are text, keywords go last as the `__kwarg__` map.
pub fn condition_input(args: Vec<Value>, kwargs: Vec<(String, Value)>) -> Vec<Value> {
    let _ = (args, kwargs);
    todo!()
}

/// Name and value of a word `name=value`; none if it is not one.
pub fn parse_kwarg(word: &str) -> Option<(&str, &str)> {
    let _ = word;
    todo!()
}

/// One word as Salt reads it: YAML with exceptions.
pub fn yamlify(word: &str) -> Value {
    let _ = word;
    todo!()
}
