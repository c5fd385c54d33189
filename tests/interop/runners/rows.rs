//! The commands, each with a comparison of Brine's and Salt's output.

/// Compares the outputs: Brine's text first.
type Compare = fn(&str, &str) -> bool;

/// One command.
pub(super) struct Row {
    /// The words after `salt-run`; `ECHO` and similar ones are jids.
    pub(super) words: &'static [&'static str],
    /// Compares the texts.
    compare: Compare,
    /// The exit codes of Brine and of Salt.
    codes: (i32, i32),
}

impl Row {
    /// Returns why the outputs do not match.
    pub(super) fn compare(&self, brine: (&str, i32), salt: (&str, i32)) -> Result<(), String> {
        if (brine.1, salt.1) != self.codes {
            return Err(format!("exit codes {} and {}\n{}\n{}", brine.1, salt.1, brine.0, salt.0));
        }
        if !(self.compare)(brine.0, salt.0) {
            return Err(format!("differs\nBrine:\n{}\nSalt:\n{}\n", brine.0, salt.0));
        }
        Ok(())
    }
}

/// A row with exactly the same output.
const fn same(words: &'static [&'static str]) -> Row {
    Row { words, compare: |brine, salt| brine == salt, codes: (0, 0) }
}

/// A row with the same error text. Salt's exit code does not show the failure.
const fn failed(words: &'static [&'static str]) -> Row {
    Row { words, compare: |brine, salt| brine == salt, codes: (1, 0) }
}

/// A row with wrong arguments: the errors agree, but the documentation after them differs.
const fn misused(words: &'static [&'static str]) -> Row {
    let compare: Compare = |brine, salt| {
        let until = |text: &str| text.split("Usage:").next().map(str::to_owned).filter(|_| text.contains("Usage:"));
        until(brine).is_some() && until(brine) == until(salt)
    };
    Row { words, compare, codes: (1, 0) }
}

/// A row with an exception: Salt also prints its traceback.
const fn raised(words: &'static [&'static str]) -> Row {
    let compare: Compare = |brine, salt| {
        let last = |text: &str| text.trim_end().lines().last().unwrap_or_default().to_owned();
        brine.trim_end() == format!("Exception occurred in runner error.error: {}", last(salt))
    };
    Row { words, compare, codes: (1, 1) }
}

/// A row with a job and its returns: Brine's returns also have their usage.
const fn job(words: &'static [&'static str]) -> Row {
    Row { words, compare: |brine, salt| without_usage(brine) == without_usage(salt), codes: (0, 0) }
}

/// Removes the lines of `usage`, in JSON or nested.
fn without_usage(text: &str) -> String {
    if let Ok(mut json) = serde_json::from_str::<serde_json::Value>(text) {
        for result in json["Result"].as_object_mut().into_iter().flatten() {
            result.1.as_object_mut().and_then(|fields| fields.remove("usage"));
        }
        return json.to_string();
    }
    let columns = |line: &str| line.len() - line.trim_start().len();
    let mut inside = None;
    let kept = text.lines().filter(|line| {
        inside = inside.filter(|outer| columns(line) > *outer);
        if line.trim() == "usage:" {
            inside = Some(columns(line));
        }
        inside.is_none()
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// Checks that all names of functions exist in Salt, which has more.
fn all_known(brine: &str, salt: &str) -> bool {
    let names = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with(' ') && line.ends_with(':')).map(str::to_owned).collect()
    };
    let (own, theirs) = (names(brine), names(salt));
    !own.is_empty() && own.iter().all(|name| theirs.contains(name))
}

/// Compares only the keys, for data about the process or its version.
fn same_keys(brine: &str, salt: &str) -> bool {
    let keys = |text: &str| -> Vec<String> {
        let keys = text.lines().filter_map(|line| line.trim().split_once("\": ").map(|(key, _)| key.to_owned()));
        keys.collect()
    };
    !keys(brine).is_empty() && keys(brine) == keys(salt)
}

/// Compares texts in which the name of the store differs.
fn same_but_store(brine: &str, salt: &str) -> bool {
    brine.replace("returner: brine", "returner: local_cache") == salt
}

/// Compares the keys of a minion's grains, which were read at different times.
fn same_grains(brine: &str, salt: &str) -> bool {
    let keys = |text: &str| -> Option<Vec<String>> {
        let grains: serde_json::Value = serde_json::from_str(text).ok()?;
        Some(grains.get("one")?.as_object()?.keys().cloned().collect())
    };
    keys(brine).is_some() && keys(brine) == keys(salt)
}

/// Compares lists regardless of their order.
fn same_list(brine: &str, salt: &str) -> bool {
    let sorted = |text: &str| {
        let mut all: Vec<String> = serde_json::from_str(text).ok()?;
        all.sort();
        Some(all)
    };
    sorted(brine).is_some() && sorted(brine) == sorted(salt)
}

/// Returns all rows in their order.
pub(super) fn rows() -> Vec<Row> {
    let other = |words, compare, codes| Row { words, compare, codes };
    vec![
        same(&["jobs.lookup_jid", "ECHO"]),
        same(&["jobs.lookup_jid", "PING", "--out=json"]),
        same(&["jobs.lookup_jid", "ECHO", "missing=True", "returned=False"]),
        other(&["jobs.lookup_jid", "ECHO", "display_progress=True"], same_but_store, (0, 0)),
        same(&["jobs.lookup_jid", "20200101000000000000"]),
        job(&["jobs.list_job", "ECHO"]),
        job(&["jobs.list_job", "ARG", "--out=json"]),
        job(&["jobs.list_job", "NOPE", "--out=json"]),
        same(&["jobs.list_job", "20200101000000000000"]),
        same(&["jobs.list_job", "abc"]),
        job(&["jobs.print_job", "ECHO"]),
        same(&["jobs.exit_success", "PING"]),
        same(&["jobs.list_jobs", "search_function=test.ar*,none", "search_target=on*,tw*"]),
        same(&["jobs.list_jobs", "search_metadata={ticket: 7}", "--out=json"]),
        same(&["jobs.list_jobs", "search_function=runner.jobs.ex*"]),
        same(&["jobs.list_jobs_filter", "2", "--out=json"]),
        job(&["jobs.last_run", "function=test.echo"]),
        same(&["jobs.active"]),
        other(&["jobs.master", "--out=json"], same_keys, (0, 0)),
        misused(&["jobs.list_job"]),
        failed(&["jobs.nope"]),
        other(&["jobs.list"], all_known, (1, 0)),
        same(&["manage.status"]),
        same(&["manage.up", "tgt=web", "tgt_type=nodegroup"]),
        same(&["manage.present"]),
        same(&["manage.alived", "show_ip=True"]),
        same(&["manage.not_present", "subset=[one]"]),
        other(&["cache.grains", "one", "--out=json"], same_grains, (0, 0)),
        misused(&["cache.grains"]),
        same(&["cache.pillar"]),
        same(&["cache.mine", "*"]),
        same(&["cache.clear_mine"]),
        same(&["cache.clear_grains", "one"]),
        same(&["cache.clear_all", "tgt=two"]),
        same(&["cache.grains", "*"]),
        same(&["cache.store", "mine-not/sub", "web1:base", "{a: [1, ž], b: null}"]),
        same(&["cache.store", "mine-not", "other", "The time has come"]),
        same(&["cache.fetch", "mine-not/sub", "web1:base", "--out=json"]),
        same(&["cache.fetch", "mine-not", "nosuch"]),
        other(&["cache.list", "mine-not", "--out=json"], same_list, (0, 0)),
        same(&["cache.list", "nosuch"]),
        same(&["cache.flush", "mine-not", "other"]),
        same(&["cache.flush", "mine-not", "other"]),
        same(&["cache.list", "mine-not"]),
        same(&["cache.flush", "mine-not"]),
        same(&["cache.fetch", "mine-not/sub", "web1:base"]),
        same(&["cache.flush", "nosuch"]),
        misused(&["cache.store", "bank", "key"]),
        same(&["fileserver.file_list"]),
        same(&["fileserver.dir_list"]),
        same(&["fileserver.empty_dir_list"]),
        same(&["fileserver.symlink_list"]),
        same(&["fileserver.envs", "sources=True"]),
        same(&["fileserver.clear_cache"]),
        same(&["fileserver.clear_file_list_cache"]),
        same(&["fileserver.lock"]),
        same(&["event.send", "deploy/done", "{version: 1}"]),
        same(&["config.get", "file_roots:base"]),
        same(&["config.get", "nope", "default=7"]),
        same(&["config.get", "nodegroups,web", "delimiter=,"]),
        same(&["survey.diff", "*", "grains.get", "role"]),
        raised(&["error.error", "name=Exception", "message=hello"]),
        misused(&["error.error", "name=SaltInvocationError", "message=hello"]),
        same(&["test.arg", "1", "x", "a=b", "__c=2"]),
        same(&["test.stdout_print"]),
        same(&["salt.cmd", "test.arg", "1", "a b", "c=[1, x]"]),
        same(&["salt.cmd", "nope.nope"]),
        same(&["salt.execute", "one", "test.arg", "[1, 2]", "kwarg={a: 1}"]),
    ]
}
