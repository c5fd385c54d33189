//! Blackouts: `minion_blackout` in the pillar or the grains refuses all jobs but `saltutil.refresh_pillar` and the functions of
//! `minion_blackout_whitelist` beside it.

use brine_protocol::job::JobLoad;
use brine_protocol::value::{Value, ValueExt};

use super::outcomes::{Called, Outcomes, failed};

/// The one function that works in every blackout, since a new pillar ends it.
const REFRESH: &str = "saltutil.refresh_pillar";
/// Programs read this text, as Salt has it.
const TEXT: &str = "Minion in blackout mode. Set 'minion_blackout' to False in pillar or grains to resume operations. Only \
                    saltutil.refresh_pillar allowed in blackout mode.";

/// Whether a blackout refuses a job: one of its functions is enough, so that no job runs in part.
pub(super) fn refuses(job: &JobLoad, pillar: &Value, grains: &Value) -> bool {
    [pillar, grains].into_iter().filter(|data| data.get("minion_blackout").is_some_and(ValueExt::truthy)).any(|data| {
        let listed = data.get_list("minion_blackout_whitelist").unwrap_or_default();
        job.calls.iter().any(|call| call.fun != REFRESH && !listed.iter().any(|name| name.text() == Some(&call.fun)))
    })
}

/// The outcome of a job that a blackout refuses.
pub(super) fn refused(job: &JobLoad, ordered: bool) -> Outcomes {
    let refuse = |fun: &str| Called::new(fun, failed(&format!("ERROR executing '{fun}': {TEXT}")));
    Outcomes { multi: job.multi, ordered, each: job.calls.iter().map(|call| refuse(&call.fun)).collect() }
}

#[cfg(test)]
mod tests {
    use brine_protocol::job::FunCall;
    use brine_protocol::value::{empty_map, list, map};

    use super::super::source::local_job;
    use super::*;

    #[test]
    fn a_blackout_lets_only_what_is_listed_pass() {
        let job = |fun: &str| local_job("root", FunCall { fun: fun.to_owned(), arg: Vec::new() }, Vec::new());
        let black = map([("minion_blackout", true)]);
        let mut listed = black.clone();
        listed.insert("minion_blackout_whitelist", list(["test.ping"]));
        let odd =
            map([("minion_blackout", Value::from("yes")), ("minion_blackout_whitelist", Value::from("test.ping"))]);
        let none = empty_map();
        for (pillar, grains, ping, echo) in [
            (&none, &none, false, false),
            (&black, &none, true, true),
            (&none, &black, true, true),
            (&listed, &none, false, true),
            (&none, &listed, false, true),
            // Each of the two has to let a function pass.
            (&listed, &black, true, true),
            (&black, &listed, true, true),
            (&odd, &none, true, true),
        ] {
            assert_eq!(refuses(&job("test.ping"), pillar, grains), ping, "{pillar} {grains}");
            assert_eq!(refuses(&job("test.echo"), pillar, grains), echo, "{pillar} {grains}");
            assert!(!refuses(&job(REFRESH), pillar, grains));
        }
        let mut both = job("test.ping");
        both.calls.extend(job("test.echo").calls);
        assert!(refuses(&both, &listed, &none));
        let said = refused(&job("test.ping"), false);
        assert!(
            said.each[0].outcome.value.text().unwrap().starts_with("ERROR executing 'test.ping': Minion in blackout")
        );
        assert_eq!(said.each[0].outcome.retcode, 1);
    }
}
