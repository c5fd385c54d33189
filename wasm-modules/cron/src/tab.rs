//! A crontab as Salt reads and writes it: lines of others, then a mark, then variables and jobs that Salt manages.

use brine_guest::Value;

/// The mark. What comes after it is Salt's.
pub(crate) const MARK: &str = "# Lines below here are managed by Salt, do not edit";
const IDENTIFIER: &str = "SALT_CRON_IDENTIFIER";
/// The identifier of a job that has none.
pub(crate) const NO_IDENTIFIER: &str = "NO ID SET";
const DISABLED: &str = "#DISABLED#";
/// The times of a job, by their names in Salt.
pub(crate) const TIMES: [&str; 5] = ["minute", "hour", "daymonth", "month", "dayweek"];

/// When a job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum When {
    /// In the order of [`TIMES`].
    Times([String; 5]),
    /// `@daily` and the like.
    Special(String),
}

/// A line that runs something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub when: When,
    pub cmd: String,
    pub identifier: Option<String>,
    pub comment: Option<String>,
    /// Whether the line is disabled.
    pub commented: bool,
}

/// A crontab.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tab {
    pub before: Vec<String>,
    pub variables: Vec<(String, String)>,
    /// Jobs with times, then those with special times.
    pub jobs: Vec<Job>,
    pub specials: Vec<Job>,
}

impl Tab {
    pub(crate) fn read(text: &str) -> Self {
        let mut tab = Self::default();
        let mut lines = text.lines();
        tab.before.extend(lines.by_ref().take_while(|line| *line != MARK).map(str::to_owned));
        let (mut comment, mut identifier): (Option<String>, Option<String>) = (None, None);
        for line in lines.filter(|line| *line != MARK) {
            let (commented, line) = match line.strip_prefix(DISABLED) {
                Some(line) => (true, line),
                None => (false, line),
            };
            let when = if line.starts_with('@') {
                let mut words = line.split_whitespace();
                let special = words.next().unwrap_or_default().to_owned();
                let cmd = words.collect::<Vec<_>>().join(" ");
                if cmd.is_empty() {
                    continue;
                }
                (When::Special(special), cmd)
            } else if line.starts_with('#') {
                let said = line.trim_start_matches(['#', ' ']);
                let said = match said.split_once(IDENTIFIER) {
                    // The rest of the line is `:` and the identifier, up to where the word is again.
                    Some((before, rest)) => {
                        let rest = rest.split(IDENTIFIER).next().unwrap_or_default();
                        if rest.chars().count() > 1 {
                            identifier = Some(rest.chars().skip(1).collect());
                        }
                        before.trim_end()
                    }
                    None => said,
                };
                comment = Some(match comment {
                    None => said.to_owned(),
                    Some(comment) => format!("{comment}\n{said}"),
                });
                continue;
            } else if line.find('=').is_some_and(|at| at > 0 && line.find(' ').is_none_or(|space| at < space)) {
                let (name, value) = line.split_once('=').unwrap_or_default();
                tab.variables.push((name.into(), value.into()));
                continue;
            } else {
                let words: Vec<&str> = line.split(' ').collect();
                let [minute, hour, daymonth, month, dayweek, cmd @ ..] = &words[..] else { continue };
                if cmd.is_empty() {
                    continue;
                }
                let times = [minute, hour, daymonth, month, dayweek].map(|time| time.to_string());
                (When::Times(times), cmd.join(" "))
            };
            let (when, cmd) = when;
            let job = Job { when, cmd, identifier: identifier.take(), comment: comment.take(), commented };
            match job.when {
                When::Times(_) => tab.jobs.push(job),
                When::Special(_) => tab.specials.push(job),
            }
        }
        tab
    }

    /// Removes the first job that is this one.
    pub(crate) fn remove(&mut self, job: &Job) {
        let jobs = if matches!(job.when, When::Times(_)) { &mut self.jobs } else { &mut self.specials };
        if let Some(at) = jobs.iter().position(|other| other == job) {
            jobs.remove(at);
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut lines: Vec<String> = self.before.clone();
        lines.push(MARK.into());
        lines.extend(self.variables.iter().map(|(name, value)| match value.is_empty() {
            true => format!("{name}=\"\""),
            false => format!("{name}={value}"),
        }));
        for job in self.jobs.iter().chain(&self.specials) {
            if job.comment.is_some() || job.identifier.is_some() {
                let mut line = "#".to_owned();
                if let Some(comment) = job.comment.as_deref().filter(|comment| !comment.is_empty()) {
                    let comment = if matches!(job.when, When::Special(_)) { comment.trim_end() } else { comment };
                    line.push_str(&format!(" {}", comment.replace('\n', "\n# ")));
                }
                if let Some(identifier) = job.identifier.as_deref().filter(|identifier| !identifier.is_empty()) {
                    line.push_str(&format!(" {IDENTIFIER}:{identifier}"));
                }
                lines.push(line);
            }
            let disabled = if job.commented { DISABLED } else { "" };
            let when = match &job.when {
                When::Times(times) => times.join(" "),
                When::Special(special) => special.clone(),
            };
            lines.push(format!("{disabled}{when} {}", job.cmd));
        }
        lines.push(String::new());
        lines.join("\n")
    }

    pub(crate) fn value(&self) -> Value {
        let jobs = |jobs: &[Job]| Value::List(jobs.iter().map(Job::value).collect());
        let variable = |(name, value): &(String, String)| {
            Value::dict([("name", name.clone().into()), ("value", value.clone().into())])
        };
        Value::dict([
            ("pre", self.before.clone().into()),
            ("crons", jobs(&self.jobs)),
            ("special", jobs(&self.specials)),
            ("env", Value::List(self.variables.iter().map(variable).collect())),
        ])
    }
}

impl Job {
    pub(crate) fn value(&self) -> Value {
        let mut entries: Vec<(&str, Value)> = match &self.when {
            When::Times(times) => TIMES.into_iter().zip(times.iter().map(|time| time.clone().into())).collect(),
            When::Special(special) => vec![("spec", special.clone().into())],
        };
        entries.extend([
            ("identifier", self.identifier.clone().into()),
            ("cmd", self.cmd.clone().into()),
            ("comment", self.comment.clone().into()),
            ("commented", self.commented.into()),
        ]);
        Value::dict(entries)
    }

    /// The identifier by which it is found.
    pub(crate) fn id(&self) -> &str {
        self.identifier.as_deref().filter(|id| !id.is_empty()).unwrap_or(NO_IDENTIFIER)
    }

    /// Whether a command with this identifier is this job: by the identifier if the job has one, else by the command.
    pub(crate) fn is(&self, cmd: &str, identifier: &Value) -> bool {
        let wanted = id(identifier);
        match (self.cmd == cmd, self.id() == NO_IDENTIFIER) {
            (false, true) if wanted == NO_IDENTIFIER => false,
            (true, true) => true,
            _ => wanted == self.id(),
        }
    }
}

/// What an identifier is compared by.
fn id(identifier: &Value) -> String {
    if identifier.truthy() { identifier.to_text() } else { NO_IDENTIFIER.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\n0 1 * * * /own\n# Lines below here are managed by Salt, do not edit\nPATH=/bin:/usr/bin\nEMPTY=\"\"\n\
                        # why it runs SALT_CRON_IDENTIFIER:one\n*/5 * * * * echo a b > /tmp/x\n#DISABLED#1 2 3 4 5 off\n\
                        # daily\n# twice\n@daily echo  special\n";

    #[test]
    fn a_tab_comes_back_as_it_was() {
        let tab = Tab::read(TEXT);
        assert_eq!(tab.before, ["# mine", "0 1 * * * /own"]);
        assert_eq!(tab.variables, [("PATH".into(), "/bin:/usr/bin".into()), ("EMPTY".into(), "\"\"".into())]);
        assert_eq!((tab.jobs[0].id(), tab.jobs[0].comment.as_deref()), ("one", Some("why it runs")));
        assert!(tab.jobs[1].commented && tab.jobs[1].id() == NO_IDENTIFIER);
        assert_eq!(tab.specials[0].comment.as_deref(), Some("daily\ntwice"));
        assert_eq!(tab.specials[0].cmd, "echo special");
        assert_eq!(tab.text(), TEXT.replace("echo  special", "echo special"));
        assert_eq!(Tab::read("").text(), format!("{MARK}\n"));
    }

    #[test]
    fn jobs_are_found_as_in_salt() {
        let job = |identifier: Option<&str>| Job {
            when: When::Special("@daily".into()),
            cmd: "x".into(),
            identifier: identifier.map(str::to_owned),
            comment: None,
            commented: false,
        };
        for (own, cmd, id, expect) in [
            (None, "x", None, true),
            (None, "x", Some("a"), true),
            (None, "y", None, false),
            (None, "y", Some("a"), false),
            (Some("a"), "y", Some("a"), true),
            (Some("a"), "x", None, false),
            (Some("a"), "x", Some("b"), false),
        ] {
            assert_eq!(job(own).is(cmd, &Value::from(id)), expect, "{own:?} {cmd} {id:?}");
        }
    }
}
