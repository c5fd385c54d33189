//! The module `saltutil`: control of the minion itself, its modules and its jobs. The functions and their documentation
//! are in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "saltutil",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/modules@1.0.0": brine_guest::host::modules,
        "brine:host/jobs@1.0.0": brine_guest::host::jobs,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
    },
    generate_all,
});

mod shapes;
mod states;

use brine_guest::host::{jobs, log, modules};
use brine_guest::{Value, fnmatch};
use shapes::{KILL, TERM};

/// Defines the functions that sync a kind of module that a Brine minion does not have.
macro_rules! sync_nothing {
    ($($name:ident),* $(,)?) => {
        $(fn $name(
            _saltenv: Option<Data>,
            _refresh: Option<bool>,
            _extmod_whitelist: Option<Data>,
            _extmod_blacklist: Option<Data>,
        ) -> Vec<String> {
            Vec::new()
        })*
    };
}

/// How long `wait=True` waits if the caller says nothing.
const WAIT_SECONDS: f64 = 30.0;

struct Module;

impl Guest for Module {
    fn sync_modules(
        saltenv: Option<Data>,
        _refresh: Option<bool>,
        extmod_whitelist: Option<Data>,
        extmod_blacklist: Option<Data>,
    ) -> Result<Vec<String>, String> {
        let saltenv = saltenv.map(|data| shapes::saltenv(&data)).transpose()?.flatten();
        let white = extmod_whitelist.map(|data| shapes::listed(&data, "extmod_whitelist")).transpose()?.flatten();
        let black = extmod_blacklist.map(|data| shapes::listed(&data, "extmod_blacklist")).transpose()?.flatten();
        if shapes::syncs_nothing(white, black)? { Ok(Vec::new()) } else { modules::sync(saltenv.as_deref()) }
    }

    fn sync_all(
        saltenv: Option<Data>,
        refresh: Option<bool>,
        extmod_whitelist: Option<Data>,
        extmod_blacklist: Option<Data>,
        _clean_pillar_cache: Option<bool>,
    ) -> Result<Vec<(String, Vec<String>)>, String> {
        let modules = Self::sync_modules(saltenv, refresh, extmod_whitelist, extmod_blacklist)?;
        Ok(shapes::sync_all(modules))
    }

    sync_nothing!(
        sync_beacons,
        sync_clouds,
        sync_engines,
        sync_executors,
        sync_log_handlers,
        sync_matchers,
        sync_output,
        sync_proxymodules,
        sync_renderers,
        sync_resources,
        sync_returners,
        sync_serializers,
        sync_states,
        sync_thorium,
        sync_tops,
        sync_utils,
        sync_wrapper,
    );

    fn sync_grains(
        _saltenv: Option<Data>,
        refresh: Option<bool>,
        _extmod_whitelist: Option<Data>,
        _extmod_blacklist: Option<Data>,
        clean_pillar_cache: Option<bool>,
    ) -> Result<Vec<String>, String> {
        if refresh != Some(false) {
            modules::refresh_facts(true, false)?;
            if let Err(why) = modules::refresh_pillar(clean_pillar_cache == Some(true), None) {
                log::write(log::Level::Warning, &why);
            }
        }
        Ok(Vec::new())
    }

    fn sync_pillar(
        _saltenv: Option<Data>,
        _refresh: Option<bool>,
        _extmod_whitelist: Option<Data>,
        _extmod_blacklist: Option<Data>,
        _clean_pillar_cache: Option<bool>,
    ) -> Vec<String> {
        Vec::new()
    }

    fn sync_sdb(
        _saltenv: Option<Data>,
        _extmod_whitelist: Option<Data>,
        _extmod_blacklist: Option<Data>,
    ) -> Vec<String> {
        Vec::new()
    }

    fn list_extmods() -> Vec<(String, Vec<String>)> {
        let synced = |name: &String| modules::describe(name).is_some_and(|module| module.origin != "standard");
        vec![("modules".into(), modules::names().into_iter().filter(synced).collect())]
    }

    fn refresh_grains(refresh_pillar: Option<bool>, _clean_pillar_cache: Option<bool>) -> Result<bool, String> {
        modules::refresh_facts(true, refresh_pillar.unwrap_or(true)).map(|()| true)
    }

    fn refresh_pillar(wait: Option<bool>, timeout: Option<f64>, clean_cache: Option<bool>) -> Result<bool, String> {
        let timeout_ms = (wait == Some(true)).then(|| shapes::milliseconds(timeout.unwrap_or(WAIT_SECONDS)));
        if !modules::refresh_pillar(clean_cache != Some(false), timeout_ms)? {
            log::write(log::Level::Warning, "the pillar is not refreshed in time; it will be when the master answers");
        }
        Ok(true)
    }

    fn pillar_refresh(wait: Option<bool>, timeout: Option<f64>, clean_cache: Option<bool>) -> Result<bool, String> {
        Self::refresh_pillar(wait, timeout, clean_cache)
    }

    fn refresh_modules(_async: Option<bool>) -> Result<bool, String> {
        modules::refresh_facts(true, false).map(|()| true)
    }

    fn running() -> Data {
        jobs::running()
    }

    fn is_running(fun: String) -> Result<Data, String> {
        let running = shapes::jobs(&jobs::running())?;
        let named = |job: &Value| shapes::texts(job.get("fun")).iter().any(|name| fnmatch(&fun, name));
        Ok(Value::List(running.into_iter().filter(named).collect()).into())
    }

    fn find_job(jid: Data) -> Result<Data, String> {
        Ok(jobs::find(&jid.name("jid")?))
    }

    fn kill_job(jid: Data) -> Result<String, String> {
        Ok(end(&jid.name("jid")?, KILL))
    }

    fn kill_all_jobs() -> Result<Vec<String>, String> {
        end_all(KILL)
    }

    fn term_job(jid: Data) -> Result<String, String> {
        Ok(end(&jid.name("jid")?, TERM))
    }

    fn term_all_jobs() -> Result<Vec<String>, String> {
        end_all(TERM)
    }

    fn signal_job(jid: Data, sig: Data) -> Result<String, String> {
        Ok(end(&jid.name("jid")?, shapes::signal(&sig.name("sig")?)?))
    }
}

fn end(jid: &str, signal: u8) -> String {
    // The pid of the job as `running` returns it. It is unknown once the job has ended.
    let pid = jobs::find(jid).value().ok().and_then(|job| shapes::pid(&job));
    if jobs::kill(jid) { shapes::ended(jid, pid, signal) } else { String::new() }
}

fn end_all(signal: u8) -> Result<Vec<String>, String> {
    let running = shapes::jobs(&jobs::running())?;
    let jids = running.iter().flat_map(|job| shapes::texts(job.get("jid")));
    Ok(jids.map(|jid| end(jid, signal)).filter(|ended| !ended.is_empty()).collect())
}

#[cfg(target_family = "wasm")]
export!(Module);
