//! The module `cmd`: runs the programs that the owner of the host granted. The functions and their documentation are in
//! `wit/world.wit`.
//!
//! - [`options`]: the meaning of Salt's arguments
//! - [`words`]: splits a line into words
//! - [`run`]: runs one command
//! - [`script`]: runs a file of the master · [`template`]: both as templates
//! - [`states`]: the states

wit_bindgen::generate!({
    world: "cmd",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/process@1.0.0": brine_guest::host::process,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
    },
    generate_all,
});

mod options;
mod run;
mod script;
mod states;
mod template;
mod words;

use brine_guest::Value;
use brine_guest::host::process;
use options::Call;

struct Module;

/// The type of the argument with this name, the same in every function.
macro_rules! of {
    (cmd) => { Data };
    (cwd) => { Option<String> };
    (runas) => { Option<String> };
    (group) => { Option<String> };
    (shell) => { Option<String> };
    (output_encoding) => { Option<String> };
    (output_loglevel) => { Option<String> };
    (saltenv) => { Option<String> };
    (prepend_path) => { Option<String> };
    (stdin) => { Option<Data> };
    (env) => { Option<Data> };
    (template) => { Option<Data> };
    (umask) => { Option<Data> };
    (log_callback) => { Option<Data> };
    (timeout) => { Option<Data> };
    (password) => { Option<Data> };
    (success_retcodes) => { Option<Data> };
    (success_stdout) => { Option<Data> };
    (success_stderr) => { Option<Data> };
    ($flag:ident) => { Option<bool> };
}

/// Functions with Salt's arguments in Salt's order. Each fills a [`Call`] and computes its result from the call.
macro_rules! functions {
    ($(fn $name:ident($cmd:ident $($param:ident)*) -> $result:ty { |$call:ident| $body:expr })*) => {
        $(fn $name($cmd: of!($cmd), $($param: of!($param)),*) -> Result<$result, String> {
            let $call = Call { $($param,)* ..Call::new($cmd)? };
            $body
        })*
    };
}

#[rustfmt::skip]
impl Guest for Module {
    functions! {
        fn run(
            cmd cwd stdin runas group shell python_shell env clean_env template rstrip umask output_encoding output_loglevel
            log_callback hide_output timeout reset_system_locale ignore_retcode saltenv use_vt redirect_stderr bg password
            encoded_cmd raise_err prepend_path success_retcodes success_stdout success_stderr
        ) -> String {
            |call| run::output(call)
        }

        fn shell(
            cmd cwd stdin runas group shell env clean_env template rstrip umask output_encoding output_loglevel log_callback
            hide_output timeout reset_system_locale ignore_retcode saltenv use_vt bg password prepend_path success_retcodes
            success_stdout success_stderr python_shell
        ) -> String {
            |call| run::output(Call { needs_shell: call.python_shell != Some(false), ..call })
        }

        fn run_stdout(
            cmd cwd stdin runas group shell python_shell env clean_env template rstrip umask output_encoding output_loglevel
            log_callback hide_output timeout reset_system_locale ignore_retcode saltenv use_vt password prepend_path
            success_retcodes success_stdout success_stderr
        ) -> String {
            |call| Ok(run::run(&call, false)?.stdout)
        }

        fn run_stderr(
            cmd cwd stdin runas group shell python_shell env clean_env template rstrip umask output_encoding output_loglevel
            log_callback hide_output timeout reset_system_locale ignore_retcode saltenv use_vt password prepend_path
            success_retcodes success_stdout success_stderr
        ) -> String {
            |call| Ok(run::run(&call, false)?.stderr)
        }

        fn run_all(
            cmd cwd stdin runas group shell python_shell env clean_env template rstrip umask output_encoding output_loglevel
            log_callback hide_output timeout reset_system_locale ignore_retcode saltenv use_vt redirect_stderr password
            encoded_cmd prepend_path success_retcodes success_stdout success_stderr
        ) -> Data {
            |call| Ok(run::run(&call, call.redirect_stderr == Some(true))?.all().into())
        }

        fn retcode(
            cmd cwd stdin runas group shell python_shell env clean_env template umask output_encoding output_loglevel
            log_callback timeout reset_system_locale ignore_retcode saltenv use_vt password success_retcodes success_stdout
            success_stderr
        ) -> i64 {
            |call| Ok(run::run(&call, true)?.retcode)
        }
    }

    fn script(
        source: String, args: Option<Data>, cwd: Option<String>, stdin: Option<Data>, runas: Option<String>,
        group: Option<String>, shell: Option<String>, python_shell: Option<bool>, env: Option<Data>, template: Option<String>,
        umask: Option<Data>, output_encoding: Option<String>, output_loglevel: Option<String>, log_callback: Option<Data>,
        hide_output: Option<bool>, timeout: Option<Data>, reset_system_locale: Option<bool>, saltenv: Option<String>,
        use_vt: Option<bool>, bg: Option<bool>, password: Option<Data>, success_retcodes: Option<Data>,
        success_stdout: Option<Data>, success_stderr: Option<Data>, kwargs: Data,
    ) -> Result<Data, String> {
        let call = Call {
            cwd, stdin, runas, group, shell, python_shell, env, umask, output_encoding, output_loglevel, log_callback,
            hide_output, timeout, reset_system_locale, use_vt, bg, password, success_retcodes, success_stdout, success_stderr,
            ..Call::new(Value::None.into())?
        };
        scripted(source, args, template, saltenv, &kwargs, call).map(Data::from)
    }

    fn script_retcode(
        source: String, args: Option<Data>, cwd: Option<String>, stdin: Option<Data>, runas: Option<String>,
        group: Option<String>, shell: Option<String>, python_shell: Option<bool>, env: Option<Data>, template: Option<String>,
        umask: Option<Data>, timeout: Option<Data>, reset_system_locale: Option<bool>, saltenv: Option<String>,
        output_encoding: Option<String>, output_loglevel: Option<String>, log_callback: Option<Data>, use_vt: Option<bool>,
        password: Option<Data>, success_retcodes: Option<Data>, success_stdout: Option<Data>, success_stderr: Option<Data>,
        kwargs: Data,
    ) -> Result<Data, String> {
        let call = Call {
            cwd, stdin, runas, group, shell, python_shell, env, umask, output_encoding, output_loglevel, log_callback,
            timeout, reset_system_locale, use_vt, password, success_retcodes, success_stdout, success_stderr,
            ..Call::new(Value::None.into())?
        };
        let done = scripted(source, args, template, saltenv, &kwargs, call)?;
        Ok(done.get("retcode").cloned().unwrap_or_default().into())
    }

    fn which(cmd: String) -> Result<Option<String>, String> {
        process::which(&cmd)
    }

    fn which_bin(cmds: Data) -> Result<Option<String>, String> {
        let names = match cmds.value()? {
            Value::List(names) => names.iter().map(Value::to_text).collect(),
            Value::None => Vec::new(),
            name => vec![name.to_text()],
        };
        for name in names {
            if let Some(path) = process::which(&name)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    fn has_exec(cmd: String) -> Result<bool, String> {
        Ok(process::which(&cmd)?.is_some())
    }
}

/// Runs a script for the functions.
fn scripted(
    source: String,
    args: Option<Data>,
    template: Option<String>,
    saltenv: Option<String>,
    kwargs: &Data,
    call: Call,
) -> Result<Value, String> {
    let wanted = script::Wanted {
        source: &source,
        saltenv: saltenv.filter(|saltenv| !saltenv.is_empty()).unwrap_or_else(|| "base".into()),
        args: options::given(args.as_ref())?.filter(Value::truthy),
        template: template.filter(|template| !template.is_empty()),
        context: kwargs.value()?.get("context").cloned().unwrap_or(Value::Dict(Vec::new())),
    };
    Ok(match script::run(&wanted, call)? {
        script::Done::Ran(done) => done.all(),
        script::Done::Missing => script::missing(),
    })
}

export!(Module);
