//! What functions and states ask a repository, and do to it.

use brine_guest::Value;
use brine_guest::changes;
use brine_guest::path;

use crate::run::{Command, Git, halves};
use crate::url;

/// Names with what they point to, in git's order.
pub(crate) type Refs = Vec<(String, String)>;

/// Who logs in to a server for HTTPS.
#[derive(Debug, Default)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

impl Login {
    /// An address with this log-in.
    ///
    /// # Errors
    /// As of [`url::with_auth`].
    pub(crate) fn at(&self, url: &str) -> Result<String, String> {
        url::with_auth(url, self.user.as_deref(), self.password.as_deref())
    }
}

/// A remote repository of a clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) name: String,
    pub(crate) fetch: Option<String>,
    pub(crate) push: Option<String>,
}

impl Remote {
    pub(crate) fn value(&self) -> Value {
        let urls = [("fetch", &self.fetch), ("push", &self.push)];
        Value::dict(urls.into_iter().filter_map(|(name, url)| Some((name, Value::from(url.clone()?)))))
    }
}

impl Git {
    pub(crate) fn rev_parse(&self, cwd: &str, options: &[&str], rev: &str) -> Result<String, String> {
        self.run(&Command::new(["rev-parse"]).args(options.iter().copied()).arg(rev).at(cwd).probing())
    }

    pub(crate) fn current_branch(&self, cwd: &str) -> Result<String, String> {
        self.rev_parse(cwd, &["--abbrev-ref"], "HEAD")
    }

    /// The short names of what is below `refs/heads/`, `refs/remotes/` or `refs/tags/`.
    pub(crate) fn refs(&self, cwd: &str, below: &str) -> Result<Vec<String>, String> {
        let command = Command::new(["for-each-ref", "--format", "%(refname:short)", below]).at(cwd).probing();
        let listed = self.run(&command)?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    pub(crate) fn branches(&self, cwd: &str) -> Result<Vec<String>, String> {
        self.refs(cwd, "refs/heads/")
    }

    pub(crate) fn tags(&self, cwd: &str) -> Result<Vec<String>, String> {
        self.refs(cwd, "refs/tags/")
    }

    pub(crate) fn remotes(&self, cwd: &str, redacted: bool) -> Result<Vec<Remote>, String> {
        let listed = self.run(&Command::new(["remote", "--verbose"]).at(cwd).probing())?;
        Ok(remotes(&listed, redacted))
    }

    /// What a remote repository has.
    pub(crate) fn remote_refs(
        &self,
        url: &str,
        login: &Login,
        options: &[&str],
        filter: Option<String>,
    ) -> Result<Refs, String> {
        let command =
            Command::new(["ls-remote"]).args(options.iter().copied()).plain().arg(login.at(url)?).args(filter);
        Ok(refs(&self.run(&command)?))
    }

    /// Makes a remote what it is to be; one of the name that is there goes first.
    pub(crate) fn remote_set(&self, cwd: &str, name: &str, url: &str, push: Option<&str>) -> Result<(), String> {
        if self.remotes(cwd, true)?.iter().any(|remote| remote.name == name) {
            self.run(&Command::new(["remote", "rm", name]).at(cwd))?;
        }
        self.run(&Command::new(["remote", "add", name, url]).at(cwd))?;
        if let Some(push) = push {
            self.run(&Command::new(["remote", "set-url", "--push", name, push]).at(cwd))?;
        }
        Ok(())
    }

    /// Fetches, and returns what became new, as a dict.
    pub(crate) fn fetch(
        &self,
        cwd: &str,
        remote: Option<&str>,
        force: bool,
        refspecs: &[String],
        more: (Vec<String>, Vec<String>),
    ) -> Result<Value, String> {
        let (before, options) = more;
        let command = Command::new(before)
            .arg("fetch")
            .args(force.then_some("--force"))
            .args(options.into_iter().filter(|option| option != "-f" && option != "--force"))
            .args(remote)
            .args(refspecs.iter().map(String::as_str))
            .at(cwd)
            .merged();
        Ok(fetched(&self.run(&command)?))
    }

    /// Whether a commit is reached from another.
    pub(crate) fn is_ancestor(&self, cwd: &str, ancestor: &str, of: &str) -> Result<bool, String> {
        let command = Command::new(["merge-base", "--is-ancestor", ancestor, of]).at(cwd).probing();
        Ok(self.output(&command)?.succeeded())
    }

    /// Whether a directory is in a worktree that another repository has.
    pub(crate) fn is_worktree(&self, cwd: &str) -> bool {
        let command = Command::new(["rev-parse", "--show-toplevel"]).at(cwd).probing();
        let Ok(top) = self.run(&command) else { return false };
        let Ok(Some(text)) = changes::read_text(&path::join(&top, ".git")) else { return false };
        let first = text.lines().next().and_then(halves);
        first.is_some_and(|(label, place)| label == "gitdir:" && place.starts_with('/'))
    }

    pub(crate) fn submodules(&self, cwd: &str) -> Result<(), String> {
        self.run(&Command::new(["submodule", "update", "--init", "--recursive"]).at(cwd)).map(drop)
    }
}

/// What `git remote --verbose` lists.
fn remotes(listed: &str, redacted: bool) -> Vec<Remote> {
    let mut found: Vec<Remote> = Vec::new();
    for line in listed.lines() {
        let Some((name, rest)) = halves(line) else { continue };
        let Some((url, action)) = rest.trim_end().rsplit_once(char::is_whitespace) else { continue };
        let url = url.trim_end();
        let url = if redacted { url::redacted(url) } else { url.into() };
        let at = found.iter().position(|remote| remote.name == name).unwrap_or_else(|| {
            found.push(Remote { name: name.into(), ..Remote::default() });
            found.len() - 1
        });
        match action.trim_start_matches('(').trim_end_matches(')').to_lowercase().as_str() {
            "fetch" => found[at].fetch = Some(url),
            "push" => found[at].push = Some(url),
            _ => {}
        }
    }
    found
}

/// What `git ls-remote` lists: names with their hashes.
pub(crate) fn refs(listed: &str) -> Refs {
    let mut found = Refs::new();
    for line in listed.lines() {
        if let Some((hash, name)) = halves(line) {
            match found.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known = hash.into(),
                None => found.push((name.into(), hash.into())),
            }
        }
    }
    found
}

/// The hash of a name.
pub(crate) fn hash_of<'a>(refs: &'a Refs, name: &str) -> Option<&'a str> {
    refs.iter().find(|(known, _)| known == name).map(|(_, hash)| hash.as_str())
}

/// What a fetch says became new.
fn fetched(said: &str) -> Value {
    let mut groups: Vec<(&str, Value)> = Vec::new();
    let mut keep = |group: &'static str, empty: Value| {
        groups.iter().position(|(known, _)| *known == group).unwrap_or_else(|| {
            groups.push((group, empty));
            groups.len() - 1
        })
    };
    let mut kept: Vec<(usize, Value, Option<Value>)> = Vec::new();
    for line in said.lines() {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || c == '*');
        let of = |tag: &str| line.strip_prefix(tag).and_then(name_before_arrow);
        if let Some(name) = of("[new tag]") {
            kept.push((keep("new tags", Value::List(Vec::new())), name.into(), None));
        } else if let Some(name) = of("[new branch]") {
            kept.push((keep("new branches", Value::List(Vec::new())), name.into(), None));
        } else if let Some(name) = of("[tag update]") {
            kept.push((keep("updated tags", Value::List(Vec::new())), name.into(), None));
        } else if let Some((old, new, name)) = updated(line) {
            let change = Value::dict([("old", old.into()), ("new", new.into())]);
            kept.push((keep("updated branches", Value::Dict(Vec::new())), name.into(), Some(change)));
        }
    }
    for (at, name, change) in kept {
        match (&mut groups[at].1, change) {
            (Value::List(names), _) => names.push(name),
            (Value::Dict(entries), Some(change)) => {
                entries.retain(|(known, _)| *known != name);
                entries.push((name, change));
            }
            _ => {}
        }
    }
    Value::dict(groups)
}

/// `  NAME  -> …`
fn name_before_arrow(rest: &str) -> Option<&str> {
    let name = rest.strip_prefix(char::is_whitespace)?;
    Some(name[..name.rfind("->")?].trim())
}

/// `OLD..NEW  NAME  -> …`
fn updated(line: &str) -> Option<(&str, &str, &str)> {
    let is_hash = |text: &str| !text.is_empty() && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    let (old, rest) = line.split_once("..")?;
    let end = rest.find(char::is_whitespace)?;
    let (new, rest) = rest.split_at(end);
    (is_hash(old) && is_hash(new)).then_some(())?;
    Some((old, new, name_before_arrow(rest)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from git 2.39 and `git.fetch` of Salt 3008.
    #[test]
    fn a_fetch_says_what_became_new() {
        let said = "From /srv/a\n * [new branch]      dev        -> origin/dev\n   1a2b..3c4d  main       -> origin/main\n \
                    + 1a2b...9f9f odd        -> origin/odd  (forced update)\n * [new tag]         v1         -> v1\n \
                    t [tag update]      v0         -> v0";
        let expect = Value::dict([
            ("new branches", vec!["dev"].into()),
            (
                "updated branches",
                Value::dict([("main", Value::dict([("old", "1a2b".into()), ("new", "3c4d".into())]))]),
            ),
            ("new tags", vec!["v1"].into()),
        ]);
        assert_eq!(fetched(said), expect);
        assert_eq!(
            fetched("   [tag update]      v0         -> v0"),
            Value::dict([("updated tags", vec!["v0"].into())])
        );
        assert_eq!(fetched(""), Value::Dict(Vec::new()));
    }

    #[test]
    fn remotes_have_two_addresses() {
        let listed = "origin\thttps://a:b@h/x (fetch)\norigin\t/srv/a b (push)\n";
        let of = |redacted| remotes(listed, redacted);
        let remote =
            |fetch: &str| Remote { name: "origin".into(), fetch: Some(fetch.into()), push: Some("/srv/a b".into()) };
        assert_eq!(of(true), [remote("https://<redacted>@h/x")]);
        assert_eq!(of(false), [remote("https://a:b@h/x")]);
        assert_eq!(
            refs("1a\tHEAD\n2b\trefs/tags/v1^{}\n"),
            [("HEAD".into(), "1a".into()), ("refs/tags/v1^{}".into(), "2b".into())]
        );
    }
}
