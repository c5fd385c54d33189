//! The states: a server answers as it should.

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run, no_changes};
use regex_lite::Regex;

use crate::query::Query;
use crate::wait::Patience;

/// What the answer has to be.
pub(crate) struct Wanted {
    pub(crate) text: Option<Value>,
    pub(crate) text_type: String,
    pub(crate) status: Option<Value>,
    pub(crate) status_type: String,
}

impl Wanted {
    /// Asks once, or for as long as `patience` says, until there is an answer without an error.
    pub(crate) fn ask(&self, query: &Query, patience: Option<Patience>) -> Result<StateResult, String> {
        if self.text.is_none() && self.status.is_none() {
            // Salt's words, and their blank.
            return Ok(StateResult::bad(" Either match text (match) or a status code (status) is required."));
        }
        if is_dry_run() {
            let (_, comment) = self.judge(&Value::Dict(Vec::new()))?;
            return Ok(StateResult::would(format!("{comment} (TEST MODE)"), no_changes()));
        }
        let answer = match patience {
            None => query.send()?,
            Some(patience) => patience.until(|| query.send(), |answer| answer.get("error").is_none())?,
        };
        let (good, comment) = self.judge(&answer)?;
        Ok(StateResult::new(Some(good), comment, no_changes()))
    }

    /// Whether the answer is as it should be, in Salt's words.
    fn judge(&self, answer: &Value) -> Result<(bool, String), String> {
        let of = |name: &str| answer.get(name).map(Value::to_text).unwrap_or_default();
        let (mut good, mut words) = (None, Vec::new());
        if let Some(wanted) = &self.text {
            let (wanted, text) = (wanted.to_text(), of("text"));
            let (what, found) = match self.text_type.as_str() {
                "string" => ("text", text.contains(&wanted)),
                "pcre" => ("pattern", pattern(&wanted)?.is_match(&text)),
                other => return Err(format!("there is no match_type {other}: it is string or pcre")),
            };
            words.push(format!("Match {what} \"{wanted}\" {}.", if found { "was found" } else { "was not found" }));
            good = Some(found);
        }
        if let Some(wanted) = &self.status {
            let status = of("status");
            let found = match (self.status_type.as_str(), wanted) {
                ("list", Value::List(all)) => {
                    let found: Vec<String> = all.iter().map(Value::to_text).filter(|one| *one == status).collect();
                    words.extend(found.iter().map(|one| format!("Status {one} was found.")));
                    // As in Salt, a text that was not found fails the state whatever the status.
                    let good = *good.get_or_insert(!found.is_empty());
                    if !good {
                        words.push(format!("Statuses {} were not found.", wanted.to_text()));
                    }
                    return Ok((good, words.join(" ")));
                }
                ("pcre", _) => {
                    let found = pattern(&wanted.to_text())?.is_match(&status);
                    words.push(told("Status pattern", &format!("\"{}\"", wanted.to_text()), found));
                    found
                }
                ("string", _) => {
                    let found = status == wanted.to_text();
                    words.push(told("Status", &wanted.to_text(), found));
                    found
                }
                (other, _) => {
                    return Err(format!(
                        "there is no status_type {other} for this: it is string, pcre, or list with a list"
                    ));
                }
            };
            good = Some(found && good.unwrap_or(true));
        }
        Ok((good.unwrap_or(false), words.join(" ")))
    }
}

fn told(what: &str, wanted: &str, found: bool) -> String {
    format!("{what} {wanted} {}.", if found { "was found" } else { "was not found" })
}

fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|why| format!("{text} is no pattern: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: Option<(&str, &str)>, status: Option<(Value, &str)>, answer: &Value) -> (bool, String) {
        let wanted = Wanted {
            text: text.map(|(text, _)| text.into()),
            text_type: text.map_or("string", |(_, kind)| kind).to_owned(),
            status_type: status.as_ref().map_or("string", |(_, kind)| *kind).to_owned(),
            status: status.map(|(status, _)| status),
        };
        wanted.judge(answer).unwrap()
    }

    #[test]
    fn answers_are_judged_in_salts_words() {
        let answer = Value::dict([("text", "it works".into()), ("status", Value::Int(200))]);
        let good = |comment: &str| (true, comment.to_owned());
        let bad = |comment: &str| (false, comment.to_owned());
        assert_eq!(judge(Some(("works", "string")), None, &answer), good("Match text \"works\" was found."));
        assert_eq!(judge(Some(("w.rks$", "pcre")), None, &answer), good("Match pattern \"w.rks$\" was found."));
        assert_eq!(judge(None, Some((Value::Int(404), "string")), &answer), bad("Status 404 was not found."));
        assert_eq!(judge(None, Some(("20.".into(), "pcre")), &answer), good("Status pattern \"20.\" was found."));
        let list = Value::List(vec![Value::Int(200), Value::Int(201)]);
        assert_eq!(judge(None, Some((list.clone(), "list")), &answer), good("Status 200 was found."));
        let neither = Value::dict([("status", Value::Int(500))]);
        assert_eq!(judge(None, Some((list, "list")), &neither), bad("Statuses [200, 201] were not found."));
        let both = judge(Some(("works", "string")), Some((Value::Int(200), "string")), &answer);
        assert_eq!(both, good("Match text \"works\" was found. Status 200 was found."));
        let one = judge(Some(("fails", "string")), Some((Value::Int(200), "string")), &answer);
        assert_eq!(one, bad("Match text \"fails\" was not found. Status 200 was found."));
    }
}
