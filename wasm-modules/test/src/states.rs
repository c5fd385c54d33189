//! The states of the module: none of them does anything.

use brine_guest::Value;
use brine_guest::host::{functions, job};
use brine_guest::states::{StateResult, is_dry_run, no_changes};

use crate::exports::states::Guest;
use crate::pillar;
use crate::wasi::random::random::get_random_u64;
use crate::{Data, Module};

/// What `pillar.get` returns in place of what is not there: a text that no file has.
const ABSENT: &str = "\0absent";

impl Guest for Module {
    fn nop(_: String, _: Data) -> StateResult {
        StateResult::good("Success!")
    }

    fn succeed_without_changes(_: String, kwargs: Data) -> StateResult {
        StateResult::good(comment(&kwargs, "Success!"))
    }

    fn fail_without_changes(_: String, kwargs: Data) -> StateResult {
        let said = match is_dry_run() {
            true => "If we weren't testing, this would be a failure!".into(),
            false => comment(&kwargs, "Failure!"),
        };
        StateResult::bad(said)
    }

    fn succeed_with_changes(_: String, kwargs: Data) -> StateResult {
        changed(true, &kwargs, "Success!", "If we weren't testing, this would be successful with changes")
    }

    fn fail_with_changes(_: String, kwargs: Data) -> StateResult {
        changed(false, &kwargs, "Failure!", "If we weren't testing, this would be failed with changes")
    }

    fn configurable_test_state(
        _: String,
        changes: Option<Data>,
        result: Option<Data>,
        comment: Option<Data>,
        warnings: Option<Data>,
        allow_test_mode_failure: Option<bool>,
    ) -> Result<StateResult, String> {
        let value = |data: Option<Data>| data.map_or(Ok(Value::Bool(true)), |data| data.value());
        let (changes, result) = (value(changes)?, value(result)?);
        let is_random = |value: &Value| value.to_text().eq_ignore_ascii_case("random");
        let changes_made = match &changes {
            Value::Bool(changes) => *changes,
            other if is_random(other) => either(),
            _ => return Err(invalid("changes", "either True, False, or 'Random'")),
        };
        let mut came_to = Some(match &result {
            Value::Bool(result) => *result,
            other if is_random(other) => either(),
            _ => return Err(invalid("result", "either True, False, or 'Random'")),
        });
        let warnings = match warnings.map(|data| data.value()).transpose()? {
            None | Some(Value::None) => Vec::new(),
            Some(Value::Text(text)) => vec![text],
            Some(Value::List(lines)) => lines.iter().map(Value::to_text).collect(),
            Some(_) => return Err(invalid("warnings", "a string or a list of strings")),
        };
        let comment = comment.map(|data| data.value()).transpose()?;
        let mut comment =
            comment.filter(|comment| *comment != Value::None).map(|comment| comment.to_text()).unwrap_or_default();
        if is_dry_run() {
            let may_fail = allow_test_mode_failure.unwrap_or(false) && result == Value::Bool(false);
            came_to = match (may_fail, &changes) {
                (true, _) => Some(false),
                (false, Value::Bool(false)) => Some(true),
                _ => None,
            };
            if comment.is_empty() {
                comment = "This is a test".into();
            }
        }
        let changes = if changes_made { pretended() } else { no_changes() };
        Ok(StateResult { warnings, ..StateResult::new(came_to, comment, changes) })
    }

    fn show_notification(_: String, text: Option<Data>, _: Data) -> Result<StateResult, String> {
        match text.map(|text| text.value()).transpose()?.filter(Value::truthy) {
            Some(text) => Ok(StateResult::good(text.to_text())),
            None => Err("Missing required argument text.".into()),
        }
    }

    fn check_pillar(
        _: String,
        present: Option<Data>,
        boolean: Option<Data>,
        integer: Option<Data>,
        string: Option<Data>,
        listing: Option<Data>,
        dictionary: Option<Data>,
        verbose: Option<bool>,
    ) -> Result<StateResult, String> {
        let asked = [present, boolean, integer, string, listing, dictionary];
        let keys: Vec<Vec<String>> = asked.into_iter().map(pillar::keys).collect::<Result<_, _>>()?;
        if keys.iter().all(Vec::is_empty) {
            return Err("Missing required argument text.".into());
        }
        let checked = pillar::check(&keys, verbose == Some(true), &|key| {
            // Without a default, what is not there would be an empty text; what is masked has no type but that of a text.
            let args = [key.into(), ABSENT.into()];
            let value =
                functions::call("pillar.get", &args, &Value::dict([("unmask", true.into())]).into())?.value()?;
            Ok(if value.text() == Some(ABSENT) { Value::None } else { value })
        })?;
        Ok(StateResult::new(Some(checked.is_right), checked.comment, no_changes()))
    }

    fn mod_watch(_: String, _: Option<String>, kwargs: Data) -> Result<StateResult, String> {
        let kwargs = kwargs.value()?;
        let result = match kwargs.get("result") {
            None => Some(true),
            Some(Value::None) => None,
            Some(value) => Some(value.truthy()),
        };
        let comment = kwargs.get("comment").map_or_else(|| "Watch statement fired.".into(), Value::to_text);
        let changes = match kwargs.get("changes") {
            Some(changes) => changes.clone(),
            None => {
                let changed = job::state().map(|state| state.changed).unwrap_or_default();
                Value::dict([("Requisites with changes", changed.into())])
            }
        };
        Ok(StateResult::new(result, comment, changes))
    }
}

fn changed(result: bool, kwargs: &Data, otherwise: &str, would: &str) -> StateResult {
    let (result, comment) = match is_dry_run() {
        true => (None, would.into()),
        false => (Some(result), comment(kwargs, otherwise)),
    };
    StateResult::new(result, comment, pretended())
}

/// The keyword `comment`, if there is one.
fn comment(kwargs: &Data, otherwise: &str) -> String {
    let kwargs = kwargs.value().unwrap_or_default();
    kwargs.get("comment").map_or_else(|| otherwise.into(), Value::to_text)
}

fn pretended() -> Value {
    let testing = Value::dict([("old", "Unchanged".into()), ("new", "Something pretended to change".into())]);
    Value::dict([("testing", testing)])
}

fn either() -> bool {
    get_random_u64().is_multiple_of(2)
}

fn invalid(option: &str, expected: &str) -> String {
    format!("You have specified the state option '{option}' with invalid arguments. It must be {expected}")
}
