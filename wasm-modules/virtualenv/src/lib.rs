//! The module `virtualenv`: virtual environments of Python. The functions, the state and their documentation are in
//! `wit/world.wit`.
//!
//! - [`create`] makes an environment · [`states`] the state, which has the functions of `pip` install packages

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "virtualenv",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod create;
mod states;

use brine_guest::changes;
use brine_guest::keywords::Keywords;
use brine_guest::program::Program;

use create::Wanted;

struct Module;

impl Guest for Module {
    fn create(
        path: String,
        venv_bin: Option<Data>,
        system_site_packages: Option<Data>,
        distribute: Option<Data>,
        clear: Option<Data>,
        python: Option<Data>,
        extra_search_dir: Option<Data>,
        never_download: Option<Data>,
        prompt: Option<Data>,
        pip: Option<Data>,
        symlinks: Option<Data>,
        upgrade: Option<Data>,
        user: Option<Data>,
        _use_vt: Option<Data>,
        _saltenv: Option<Data>,
        kwargs: Data,
    ) -> Result<Data, String> {
        let named = [
            ("venv_bin", venv_bin),
            ("system_site_packages", system_site_packages),
            ("distribute", distribute),
            ("clear", clear),
            ("python", python),
            ("extra_search_dir", extra_search_dir),
            ("never_download", never_download),
            ("prompt", prompt),
            ("pip", pip),
            ("symlinks", symlinks),
            ("upgrade", upgrade),
            ("user", user),
        ];
        let done = create::create(&path, &Wanted::of(&Keywords::new(&kwargs, named)?)?)?;
        Ok(create::value(&done).into())
    }

    fn get_site_packages(venv: String) -> Result<String, String> {
        let python = format!("{venv}/bin/python");
        if changes::look(&python, true)?.is_none() {
            return Err(format!("Path '{venv}' does not appear to be a virtualenv: '{python}' not found."));
        }
        let code = "import sysconfig; print(sysconfig.get_path(\"purelib\"))";
        let done = Program::new([python.as_str(), "-c", code]).run()?;
        if done.succeeded() { Ok(done.stdout) } else { Err(format!("{}\n{}", done.stdout, done.stderr)) }
    }

    fn virtualenv_ver(venv_bin: String, user: Option<Data>, _: Data) -> Result<Vec<i64>, String> {
        let user = user.map(|user| user.value()).transpose()?.filter(|user| user.truthy());
        create::version(&venv_bin, user.map(|user| user.to_text()).as_deref())
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
