//! A crontab that is a file of the master as a whole.

use brine_guest::host::{functions, job};
use brine_guest::states::{StateResult, is_dry_run, no_changes};
use brine_guest::{Value, diff, template};

use crate::change;

/// The function that renders templates.
const RENDERS: &str = "file.apply_template_on_contents";

/// What a crontab is made of.
pub(crate) struct Source<'a> {
    /// `salt://…`
    pub url: &'a str,
    pub template: Option<String>,
    pub context: Value,
    pub defaults: Value,
}

/// Makes a file of the master a user's crontab.
pub(crate) fn file(source: &Source<'_>, user: &str, replace: bool) -> Result<StateResult, String> {
    let known = functions::call("user.info", &[user.into()], &Value::dict([]).into()).and_then(|info| info.value());
    let group = known.ok().and_then(|info| match info.get("groups") {
        Some(Value::List(groups)) => groups.first().map(Value::to_text),
        _ => None,
    });
    let Some(group) = group else {
        return Ok(StateResult::bad(format!("Could not identify group for user {user}")));
    };
    let mut old = change::raw(user)?;
    if !old.ends_with('\n') {
        old.push('\n');
    }
    if !replace {
        // In Salt too, this is the answer where there is no crontab.
        return Ok(StateResult::good(format!("User {user} already has a crontab. No changes made")));
    }
    let new = match content(source) {
        Ok(new) => new,
        Err(why) => return Ok(StateResult::bad(why)),
    };
    let diff = diff::of_contents(old.as_bytes(), &new);
    let right = format!("Crontab for user {user} is in the correct state");
    if diff.is_empty() {
        return Ok(StateResult::good(right));
    }
    if is_dry_run() {
        let comment = format!("The following values are set to be changed:\ndiff: {diff}\n");
        return Ok(StateResult::would(comment, no_changes()));
    }
    let done = change::write(user, new)?;
    if done.code != 0 {
        return Ok(StateResult::bad(format!("Unable to update user {user} crontab -. Error: {}", done.stderr)));
    }
    let mut changes = vec![("diff", Value::from(diff))];
    if user != "root" {
        // Salt's copy was root's before.
        changes.extend([("user", user.into()), ("group", group.into())]);
    }
    Ok(StateResult::changed(format!("Crontab for user {user} was updated"), Value::dict(changes)))
}

/// The bytes of a file of the master, rendered if it is a template.
fn content(source: &Source<'_>) -> Result<Vec<u8>, String> {
    let own = || job::state().map(|state| state.saltenv).filter(|saltenv| !saltenv.is_empty());
    let url = source.url;
    let Some(path) = url.strip_prefix("salt://") else {
        return Err(format!("Unable to manage file: {url}: a crontab comes from salt://"));
    };
    let (path, saltenv) = match path.split_once("?saltenv=") {
        Some((path, saltenv)) => (path, saltenv.to_owned()),
        None => (path, own().unwrap_or_else(|| "base".into())),
    };
    let Some(bytes) = template::load(path, &saltenv)? else {
        return Err(format!("Source file {url} not found in saltenv '{saltenv}'"));
    };
    let Some(engine) = &source.template else { return Ok(bytes) };
    let text = String::from_utf8(bytes).map_err(|_| format!("Unable to manage file: {url} is no text"))?;
    let dict = |value: &Value| if value.truthy() { value.clone() } else { Value::Dict(Vec::new()) };
    let keywords = Value::dict([
        ("contents", text.into()),
        ("template", engine.as_str().into()),
        ("context", dict(&source.context)),
        ("defaults", dict(&source.defaults)),
        ("saltenv", saltenv.into()),
    ]);
    match functions::call(RENDERS, &[], &keywords.into())?.value()? {
        Value::Text(text) => Ok(text.into_bytes()),
        failed => Err(failed.get("comment").unwrap_or(&failed).to_text()),
    }
}
