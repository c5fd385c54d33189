//! The functions of `pkg` that are called.

use brine_apt::arguments::Keywords;
use brine_guest::host::functions;
use brine_guest::{Result, Value};

fn call(function: &str, repo: Option<&str>, keywords: Value) -> Result<Value> {
    let args: Vec<_> = repo.into_iter().map(Into::into).collect();
    // The host shows the lines of an error as one.
    let called = functions::call(function, &args, &keywords.into());
    called.map_err(|why| why.replace("\\n", "\n"))?.value()
}

/// The source of this name: a dict, empty if there is none.
pub(crate) fn get_repo(repo: &str) -> Result<Value> {
    call("pkg.get_repo", Some(repo), Value::Dict(Vec::new()))
}

pub(crate) fn mod_repo(repo: &str, saltenv: &str, aptkey: bool, keywords: &Keywords) -> Result<Value> {
    let mut keywords = keywords.clone();
    keywords.set("saltenv", saltenv);
    keywords.set("aptkey", aptkey);
    call("pkg.mod_repo", Some(repo), keywords.0)
}

pub(crate) fn del_repo(repo: &str) -> Result<()> {
    call("pkg.del_repo", Some(repo), Value::Dict(Vec::new())).map(drop)
}

pub(crate) fn del_repo_key(repo: &str, keywords: &Keywords) -> Result<Value> {
    let known = ["aptkey", "keydir", "keyid", "keyid_ppa"].map(|key| (key, keywords.get(key)));
    let given = known.into_iter().filter_map(|(key, value)| Some((key, value?.clone())));
    call("pkg.del_repo_key", Some(repo), Value::dict(given.collect::<Vec<_>>()))
}
