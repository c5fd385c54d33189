//! `state.event`: prints the events of the master's bus, like Salt's runner of that name. It runs in this process and
//! not in the master.

use std::path::PathBuf;

use crate::output::{Indent, Style, render};
use brine_protocol::exit;
use brine_protocol::target::{Regex, fnmatch};
use brine_protocol::value::{Value, ValueExt};

use crate::print::{stderr, stdout};
use crate::{Failure, Outcome};
use brine_client::ClientOpts;
use brine_client::bus::{BusSubscription, LOST};

/// The runner's name.
pub(super) const NAME: &str = "state.event";
/// The runner's documentation, in the same layout as the master's.
pub(super) const DOC: &str = "
    Prints what happens on the master's bus; salt-run watches it itself.

    Usage:

        salt-run state.event [tagmatch='*'] [count=-1] [quiet=False] [sock_dir=None] [pretty=False] [node='master']
    ";

/// The events to print, and the form.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    tagmatch: String,
    /// `tagmatch` as an expression for the whole tag, if it is one.
    whole: Option<Regex>,
    /// The number of events to print; none for no limit.
    count: Option<u64>,
    pretty: bool,
    /// Whether nothing is printed, and the command only waits.
    quiet: bool,
    /// The folder of the bus's socket, if it is not the configuration's.
    sock_dir: Option<PathBuf>,
}

impl Watch {
    /// Parses the runner's arguments: `tagmatch`, `count`, `quiet`, `sock_dir`, `pretty`, `node`, by position or by
    /// name.
    pub(super) fn parse(args: &[Value], kwargs: &[(String, Value)]) -> Result<Self, String> {
        let names = ["tagmatch", "count", "quiet", "sock_dir", "pretty", "node"];
        if let Some((name, _)) = kwargs.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            return Err(format!("state.event has no argument {name}; it has {}", names.join(", ")));
        }
        if args.len() > names.len() {
            return Err(format!("state.event has {} arguments at most: {}", names.len(), names.join(", ")));
        }
        let get = |name: &str| {
            let named = kwargs.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value);
            named.or_else(|| args.get(names.iter().position(|known| *known == name)?))
        };
        let count = match get("count") {
            None => None,
            // A negative number means no limit, as in Salt.
            Some(count) => u64::try_from(count.as_i64().ok_or("count must be a number of events")?).ok(),
        };
        if get("node").is_some_and(|node| node.text() != Some("master")) {
            return Err("state.event watches the master's bus; a minion has none here (node)".to_owned());
        }
        let tagmatch = get("tagmatch").map_or_else(|| "*".to_owned(), ValueExt::python_str);
        let sock_dir = get("sock_dir").filter(|dir| !dir.is_nil()).map(|dir| PathBuf::from(dir.python_str()));
        Ok(Self {
            whole: Regex::new(&format!(r"(?:{tagmatch})\Z")).ok(),
            tagmatch,
            count,
            pretty: get("pretty").is_some_and(ValueExt::truthy),
            quiet: get("quiet").is_some_and(ValueExt::truthy),
            sock_dir,
        })
    }

    /// Whether the event is to be printed. As in Salt's `expr_match`, the tag is compared for equality, by glob, and by
    /// an expression for the whole tag.
    fn matches(&self, tag: &str) -> bool {
        tag == self.tagmatch
            || fnmatch(&self.tagmatch, tag)
            || self.whole.as_ref().is_some_and(|whole| whole.matches(tag))
    }

    /// Prints events until the count is reached; without a count, until the process is ended. If the master goes away,
    /// this waits for its return.
    pub(super) async fn run(self, opts: &ClientOpts, quiet: bool) -> Outcome {
        let socket = match &self.sock_dir {
            Some(dir) => dir.join("master_event_pub.ipc"),
            None => opts.bus_socket(),
        };
        let mut bus = BusSubscription::connect(socket).await.map_err(|error| {
            Failure::new(exit::GENERIC, format!("{error} {}", error.hint().unwrap_or_default()).trim_end())
        })?;
        let style = Style {
            indent: if self.pretty { Indent::Pretty } else { Indent::Null },
            visible: true,
            ..Style::default()
        };
        let mut left = self.count;
        while left != Some(0) {
            let Some(event) = bus.next(|tag| tag == LOST || self.matches(tag)).await else {
                continue;
            };
            if event.tag == LOST {
                // A user that counts events must learn of the loss. Standard output is only for received events.
                let lost = event.data.get("lost").map(ValueExt::python_str).unwrap_or_default();
                let line = format!("state.event was too slow: {lost} events before this were lost");
                stderr(&line);
                if !self.matches(LOST) {
                    continue;
                }
            }
            if !quiet && !self.quiet {
                stdout(&format!("{}\t{}", event.tag, render("json", &event.data, &style)));
            }
            left = left.map(|left| left - 1);
        }
        Ok(exit::OK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[Value], kwargs: &[(&str, Value)]) -> Result<Watch, String> {
        let kwargs: Vec<_> = kwargs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Watch::parse(args, &kwargs)
    }

    #[test]
    fn arguments_by_position_and_by_name() {
        let of = |args: &[Value], kwargs: &[(&str, Value)]| {
            let watch = parse(args, kwargs).unwrap();
            (watch.tagmatch, watch.count, watch.quiet, watch.sock_dir, watch.pretty)
        };
        let star = || "*".to_owned();
        assert_eq!(of(&[], &[]), (star(), None, false, None, false));
        assert_eq!(of(&["a/*".into(), 2.into()], &[]), ("a/*".to_owned(), Some(2), false, None, false));
        let all = ["a".into(), 1.into(), true.into(), "/run/x".into(), true.into(), "master".into()];
        assert_eq!(of(&all, &[]), ("a".to_owned(), Some(1), true, Some("/run/x".into()), true));
        assert_eq!(of(&["a".into()], &[("count", (-1).into())]), ("a".to_owned(), None, false, None, false));
        // The call in the documentation of Salt's runner.
        let documented = parse(&["salt/minion/jerry/start".into()], &[("count", 1.into()), ("quiet", true.into())]);
        assert!(documented.is_ok_and(|watch| watch.quiet && watch.count == Some(1)));
        assert!(of(&[], &[("pretty", true.into())]).4);
        for (name, value) in [("node", "minion"), ("count", "x"), ("tag", "x")] {
            assert!(parse(&[], &[(name, value.into())]).is_err(), "{name}");
        }
        assert!(parse(&vec![Value::Nil; 7], &[]).is_err());
    }

    #[test]
    fn tags_are_matched_as_salt_does() {
        for (tagmatch, tag, yes) in [
            ("*", "salt/auth", true),
            ("salt/job/*/ret/*", "salt/job/1/ret/a", true),
            ("salt/auth", "salt/auth", true),
            ("salt/auth", "salt/authx", false),
            ("salt/(auth|key)", "salt/key", true),
            ("salt/(auth|key)", "salt/keys", false),
            ("salt/(auth|key)", "x/salt/key", false),
            ("auth|key", "keyring", false),
            ("(", "x", false),
        ] {
            assert_eq!(parse(&[tagmatch.into()], &[]).unwrap().matches(tag), yes, "{tagmatch} {tag}");
        }
    }
}
