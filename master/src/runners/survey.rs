//! `survey.*`: groups minions by their returns.

use std::collections::BTreeMap;

use brine_protocol::value::{Value, ValueExt, map};
use similar::TextDiff;

use super::ask::{self, Question};
use super::function::{Failure, Function, Outcome, Run, functions};

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// As survey.hash, and prints how the result of each group differs from the first one's.
    "survey.diff(*args, **kwargs)" => diff,
    /// Runs a function on a compound target (survey.hash [survey_sort=up|down] [tgt_type=pcre] <target> <function>
    /// [arguments]), and groups the minions by what it returned, the largest group first.
    "survey.hash(*args, **kwargs)" => hash,
};

/// Minions with the same result.
struct Pool {
    minions: Vec<String>,
    result: String,
}

/// Returns the groups, sorted by size as requested.
async fn pools(run: &Run) -> Result<Vec<Pool>, Failure> {
    let [tgt, fun, args @ ..] = run.given.args.as_slice() else {
        return Err(run.wrong("a target and a function are needed, such as '*' test.version"));
    };
    let option =
        |name: &str| run.given.kwargs.iter().find(|(known, _)| known == name).map(|(_, value)| value.python_str());
    let kwargs = run
        .given
        .kwargs
        .iter()
        .filter(|(name, _)| !name.starts_with('_') && !matches!(name.as_str(), "survey_sort" | "tgt_type"));
    let question = Question {
        tgt: tgt.clone(),
        tgt_type: option("tgt_type").filter(|kind| kind == "pcre").unwrap_or_else(|| "compound".to_owned()),
        fun: fun.python_str(),
        args: args.to_vec(),
        kwargs: kwargs.cloned().collect(),
        timeout: None,
        gather: None,
    };
    let answers = ask::minions(&run.parts, question).await?;
    let results = answers.results().map(|(id, result)| (id.to_owned(), result.python_str()));
    Ok(sorted(results, option("survey_sort").as_deref() == Some("up")))
}

fn sorted(results: impl Iterator<Item = (String, String)>, up: bool) -> Vec<Pool> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut pools: Vec<Pool> = Vec::new();
    for (id, result) in results {
        let place = *places.entry(result).or_insert_with_key(|result| {
            pools.push(Pool { minions: Vec::new(), result: result.clone() });
            pools.len() - 1
        });
        pools[place].minions.push(id);
    }
    // The sort is stable in both directions, as in Python: groups of one size stay in the order of their first minions.
    pools
        .sort_by(|a, b| if up { a.minions.len().cmp(&b.minions.len()) } else { b.minions.len().cmp(&a.minions.len()) });
    pools
}

fn shown(pools: &[Pool]) -> Value {
    let pool = |pool: &Pool| {
        let minions = Value::Array(pool.minions.iter().map(|id| Value::from(id.as_str())).collect());
        map([("pool", minions), ("result", Value::from(pool.result.as_str()))])
    };
    Value::Array(pools.iter().map(pool).collect())
}

async fn hash(run: Run) -> Outcome {
    Ok(shown(&pools(&run).await?))
}

async fn diff(run: Run) -> Outcome {
    let pools = pools(&run).await?;
    for (place, pool) in pools.iter().enumerate() {
        run.print(part(&pools[0], pool, place == 0));
    }
    Ok(shown(&pools))
}

/// Formats a group as Salt prints it.
fn part(first: &Pool, pool: &Pool, is_first: bool) -> String {
    let ids = Value::Array(pool.minions.iter().map(|id| Value::from(id.as_str())).collect());
    let mut text = format!(
        "minion pool :\n------------\n{}\npool size :\n----------\n    {}\n",
        ids.python_repr(),
        pool.minions.len()
    );
    if is_first {
        text.push_str(&format!("pool result :\n------------\n    {}\n", pool.result));
        return text;
    }
    let heading = format!("differences from \"{}\" results :", first.minions[0]);
    text.push_str(&format!("{heading}\n{}\n", "-".repeat(heading.chars().count() - 1)));
    text.push_str(&unified(first, pool));
    text.push('\n');
    text
}

/// Formats a diff like Python's `difflib.unified_diff` with `n=0`.
fn unified(from: &Pool, to: &Pool) -> String {
    let lines = |text: &str| text.lines().map(|line| format!("{line}\n")).collect::<String>();
    let (a, b) = (lines(&from.result), lines(&to.result));
    let diff = TextDiff::from_lines(a.as_str(), b.as_str());
    diff.unified_diff().context_radius(0).header(&from.minions[0], &to.minions[0]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(results: &[(&str, &str)]) -> Vec<(String, String)> {
        results.iter().map(|(id, result)| ((*id).to_owned(), (*result).to_owned())).collect()
    }

    #[test]
    fn groups_by_size() {
        let all = results(&[("a", "x"), ("b", "y"), ("c", "y"), ("d", "z")]);
        let pools = |up| -> Vec<String> {
            sorted(all.clone().into_iter(), up).iter().map(|pool| pool.minions.join("")).collect()
        };
        assert_eq!(pools(false), ["bc", "a", "d"]);
        assert_eq!(pools(true), ["a", "d", "bc"]);
    }
}
