//! The state `absent`.

use brine_apt::arguments::Keywords;
use brine_apt::sources::list::Named;
use brine_guest::states::{StateResult, is_dry_run};
use brine_guest::{Result, Value};

use crate::pkg;

/// Addresses without a slash at their end.
fn stripped(repo: &str) -> String {
    let schemes = ["http://", "https://", "ftp://"];
    let word = |word: &str| match schemes.iter().any(|scheme| word.starts_with(scheme)) {
        true => word.trim_end_matches('/').to_owned(),
        false => word.to_owned(),
    };
    repo.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

fn sorted(list: &Value) -> Vec<String> {
    let Value::List(items) = list else { return Vec::new() };
    let mut items: Vec<String> = items.iter().map(Value::to_text).collect();
    items.sort();
    items.dedup();
    items
}

pub(crate) fn run(name: &str, keywords: &Keywords) -> Result<StateResult> {
    let repo = stripped(name);
    let mut found = match pkg::get_repo(&repo) {
        Ok(found) => found,
        Err(why) => return Ok(StateResult::bad(format!("Failed to configure repo '{name}': {why}"))),
    };
    if found.truthy() {
        let asked: Value = Named::read(&repo)?.0.architectures.into();
        if sorted(&asked) != sorted(found.get("architectures").unwrap_or(&Value::None)) {
            found = Value::None;
        }
    }
    if !found.truthy() {
        return Ok(StateResult::good(format!("Package repo {name} is absent")));
    }
    if is_dry_run() {
        let comment = format!(
            "Package repo '{name}' will be removed. This may cause pkg states to behave differently than stated if this action is \
             repeated without test=True, due to the differences in the configured repositories."
        );
        return Ok(StateResult::would(comment, Value::Dict(Vec::new())));
    }
    if let Err(why) = pkg::del_repo(&repo) {
        return Ok(StateResult::bad(why));
    }
    let mut changes = vec![("repo", name.into())];
    let mut comment = format!("Removed repo {name}");
    let with_key =
        ["keyid", "keyid_ppa"].iter().any(|key| keywords.get(key).is_some_and(|value| *value != Value::None));
    let mut result = true;
    if with_key {
        match pkg::del_repo_key(&repo, keywords) {
            Ok(keyid) => {
                comment.push_str(&format!(", and keyid {}", keyid.to_text()));
                changes.push(("keyid", keyid));
            }
            Err(why) => {
                comment.push_str(&format!(", but failed to remove key: {why}"));
                result = false;
            }
        }
    }
    Ok(StateResult::new(Some(result), comment, Value::dict(changes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_at_the_end_of_an_address_does_not_count() {
        assert_eq!(stripped("deb  [arch=amd64] https://x/y/ ./ main"), "deb [arch=amd64] https://x/y ./ main");
        assert_eq!(stripped("deb file:/x/ ./"), "deb file:/x/ ./");
    }
}
