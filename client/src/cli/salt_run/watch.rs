//! `state.event`: prints what happens on the master's bus, as Salt's runner of that name. It runs here and not in the master.

use std::io::IsTerminal as _;

use brine_protocol::exit;
use brine_protocol::output::{Indent, Style, render, visible};
use brine_protocol::target::fnmatch;
use brine_protocol::value::{Value, ValueExt};

use super::super::print::stdout;
use super::super::{Failure, Outcome};
use crate::ClientOpts;
use crate::bus::Bus;

/// What to print, and how much.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Watch {
    tagmatch: String,
    /// So many events and no more.
    count: Option<u64>,
    pretty: bool,
}

impl Watch {
    /// From the runner's arguments: `tagmatch`, `count`, `quiet`, `sock_dir`, `pretty`, by position or by name.
    pub(super) fn parse(args: &[Value], kwargs: &[(String, Value)]) -> Result<Self, String> {
        let names = ["tagmatch", "count", "quiet", "sock_dir", "pretty"];
        if let Some((name, _)) =
            kwargs.iter().find(|(name, _)| !matches!(name.as_str(), "tagmatch" | "count" | "pretty"))
        {
            return Err(format!("state.event has no argument {name}; it has tagmatch (a glob), count and pretty"));
        }
        let get = |name: &str| {
            let named = kwargs.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value);
            named.or_else(|| args.get(names.iter().position(|known| *known == name)?))
        };
        let count = match get("count") {
            None => None,
            // Negative is for ever, as in Salt.
            Some(count) => u64::try_from(count.as_i64().ok_or("count must be a number of events")?).ok(),
        };
        Ok(Self {
            tagmatch: get("tagmatch").map_or_else(|| "*".to_owned(), ValueExt::python_str),
            count,
            pretty: get("pretty").is_some_and(ValueExt::truthy),
        })
    }

    /// Prints until enough was seen; without a count, until it is ended. A master that goes away is waited for.
    pub(super) async fn run(self, opts: &ClientOpts, quiet: bool) -> Outcome {
        let mut bus = Bus::connect(opts.bus_socket()).await.map_err(|error| {
            Failure::new(exit::GENERIC, format!("{error} {}", error.hint().unwrap_or_default()).trim_end())
        })?;
        let terminal = std::io::stdout().is_terminal();
        let style = Style {
            indent: if self.pretty { Indent::Pretty } else { Indent::Null },
            visible: terminal,
            ..Style::default()
        };
        let mut left = self.count;
        while left != Some(0) {
            let Some(event) = bus.next(|tag| tag == self.tagmatch || fnmatch(&self.tagmatch, tag)).await else {
                continue;
            };
            if !quiet {
                let tag = if terminal { visible(&event.tag) } else { event.tag.as_str().into() };
                stdout(&format!("{tag}\t{}", render("json", &event.data, &style)));
            }
            left = left.map(|left| left - 1);
        }
        Ok(exit::OK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_by_position_and_by_name() {
        let watch = |tagmatch: &str, count, pretty| Watch { tagmatch: tagmatch.to_owned(), count, pretty };
        let named = |name: &str, value: Value| vec![(name.to_owned(), value)];
        assert_eq!(Watch::parse(&[], &[]), Ok(watch("*", None, false)));
        assert_eq!(Watch::parse(&["a/*".into(), 2.into()], &[]), Ok(watch("a/*", Some(2), false)));
        assert_eq!(Watch::parse(&["a".into()], &named("count", (-1).into())), Ok(watch("a", None, false)));
        assert_eq!(Watch::parse(&[], &named("pretty", true.into())), Ok(watch("*", None, true)));
        assert!(Watch::parse(&[], &named("node", "minion".into())).is_err());
        assert!(Watch::parse(&[], &named("count", "x".into())).is_err());
    }
}
