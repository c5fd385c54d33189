//! The states of the module: `cmd.run` and `cmd.script`, at once or when a watch fires.
//!
//! - [`arguments`]: what a state is given
//! - [`stateful`]: results that a command reports itself

mod arguments;
mod stateful;

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run, no_changes};

use crate::exports::states::Guest;
use crate::options::Call;
use crate::{Data, Module, run, script};
use arguments::Arguments;

type Done = Result<StateResult, String>;

/// What a state came to, before a stateful command had its say.
pub(crate) struct Came {
    pub result: Option<bool>,
    pub comment: String,
    pub changes: Value,
}

impl Came {
    fn failed(comment: impl Into<String>) -> Self {
        Self { result: Some(false), comment: comment.into(), changes: no_changes() }
    }
}

impl From<Came> for StateResult {
    fn from(came: Came) -> Self {
        StateResult::new(came.result, came.comment, came.changes)
    }
}

/// Puts the parameters of a state, which have the names of its keywords, beside its further keywords.
macro_rules! arguments {
    ($kwargs:ident, $($name:ident)*) => {
        Arguments::new(&$kwargs, [$((stringify!($name), $name)),*])?
    };
}

#[rustfmt::skip]
impl Guest for Module {
    fn run(
        name: String, cwd: Option<Data>, root: Option<Data>, runas: Option<Data>, password: Option<Data>, shell: Option<Data>,
        env: Option<Data>, prepend_path: Option<Data>, stateful: Option<Data>, output_loglevel: Option<Data>,
        hide_output: Option<Data>, timeout: Option<Data>, ignore_timeout: Option<Data>, use_vt: Option<Data>,
        success_retcodes: Option<Data>, success_stdout: Option<Data>, success_stderr: Option<Data>, umask: Option<Data>,
        kwargs: Data,
    ) -> Done {
        let arguments = arguments!(
            kwargs, cwd root runas password shell env prepend_path stateful output_loglevel hide_output timeout
            ignore_timeout use_vt success_retcodes success_stdout success_stderr umask
        );
        command(&name, &arguments)
    }

    fn wait(_: String, _: Data) -> StateResult {
        StateResult::good("")
    }

    fn watch(_: String, _: Data) -> StateResult {
        StateResult::good("")
    }

    fn script(
        name: String, source: Option<Data>, template: Option<Data>, cwd: Option<Data>, runas: Option<Data>,
        password: Option<Data>, shell: Option<Data>, env: Option<Data>, stateful: Option<Data>, timeout: Option<Data>,
        use_vt: Option<Data>, output_loglevel: Option<Data>, hide_output: Option<Data>, defaults: Option<Data>,
        context: Option<Data>, success_retcodes: Option<Data>, success_stdout: Option<Data>, success_stderr: Option<Data>,
        umask: Option<Data>, kwargs: Data,
    ) -> Done {
        let arguments = arguments!(
            kwargs, source template cwd runas password shell env stateful timeout use_vt output_loglevel hide_output
            defaults context success_retcodes success_stdout success_stderr umask
        );
        scripted(&name, &arguments)
    }

    fn wait_script(_: String, _: Data) -> StateResult {
        StateResult::good("")
    }

    fn mod_watch(name: String, sfun: String, umask: Option<Data>, kwargs: Data) -> Done {
        let mut arguments = arguments!(kwargs, umask);
        // Salt's run tells nothing of being stateful here, and the watch reads its output.
        let is_stateful = arguments.take("stateful").is_some_and(|stateful| stateful.truthy());
        let result = match sfun.as_str() {
            "wait" | "run" | "watch" => came_of_command(&name, &arguments)?,
            "wait_script" | "script" => came_of_script(&name, &arguments)?,
            other => {
                return Ok(StateResult::bad(format!(
                    "cmd.{other} does not work with the watch requisite, please use cmd.wait or cmd.wait_script"
                )));
            }
        };
        Ok(if is_stateful { stateful::reported(result)? } else { result }.into())
    }
}

fn command(name: &str, arguments: &Arguments) -> Done {
    let is_stateful = arguments.is_stateful();
    Ok(finish(came_of_command(name, arguments)?, is_stateful)?.into())
}

fn scripted(name: &str, arguments: &Arguments) -> Done {
    let is_stateful = arguments.is_stateful();
    Ok(finish(came_of_script(name, arguments)?, is_stateful)?.into())
}

/// What a stateful command reports counts, unless it failed before it ran; in a dry run, a command that ran well shows what would change.
fn finish(came: Came, is_stateful: bool) -> Result<Came, String> {
    let code = came.changes.get("retcode").cloned();
    let mut came = match is_stateful && (code.is_some() || came.result.is_none()) {
        true => stateful::reported(came)?,
        false => came,
    };
    if is_dry_run() && code == Some(Value::Int(0)) && came.changes.truthy() {
        came.result = None;
    }
    Ok(came)
}

fn came_of_command(name: &str, arguments: &Arguments) -> Result<Came, String> {
    let dry = is_dry_run();
    let test_name = arguments.test_name().filter(|_| dry);
    if arguments.has_odd_env() {
        return Ok(Came::failed("Invalidly-formatted 'env' parameter. See documentation."));
    }
    if dry && test_name.is_none() {
        let changes = Value::dict([("cmd", name.into())]);
        let comment = format!("Command \"{name}\" would have been executed");
        return Ok(Came { result: None, comment, changes });
    }
    if arguments.is_set("root") {
        return Ok(Came::failed("root: a command runs in the root of this host"));
    }
    let name = test_name.as_deref().unwrap_or(name);
    let call = Call { needs_shell: true, ..arguments.call(name.into())? };
    let done = match run::run(&call, arguments.is_set("redirect_stderr")) {
        Ok(done) => done,
        Err(why) => return Ok(Came::failed(arguments.explained(why))),
    };
    let is_overdue = done.retcode == 1 && done.stdout.contains("Timed out after");
    let retcode = if is_overdue && arguments.is_set("ignore_timeout") { 0 } else { done.retcode };
    let comment = format!("Command \"{name}\" run");
    Ok(Came { result: Some(retcode == 0), comment, changes: run::Done { retcode, ..done }.all() })
}

fn came_of_script(name: &str, arguments: &Arguments) -> Result<Came, String> {
    let dry = is_dry_run();
    let test_name = arguments.test_name().filter(|_| dry);
    let shown = test_name.as_deref().unwrap_or(name);
    if arguments.has_odd_env() {
        return Ok(Came::failed("Invalidly-formatted 'env' parameter. See documentation."));
    }
    for name in ["context", "defaults"] {
        if arguments.get(name).is_some_and(|value| value.truthy() && !matches!(value, Value::Dict(_))) {
            return Ok(Came::failed(format!("Invalidly-formatted '{name}' parameter. Must be formed as a dict.")));
        }
    }
    if dry {
        // A dry run writes no script, so none of its own runs either.
        let comment = format!("Command '{shown}' would have been executed");
        return Ok(Came { result: None, comment, changes: no_changes() });
    }
    let source = arguments.text("source").unwrap_or_else(|| shown.to_owned());
    let words = arguments.get("args").filter(|args| args.truthy()).cloned();
    let words = words.or_else(|| {
        shown.split_once(' ').filter(|_| shown.split_whitespace().count() > 1).map(|(_, args)| args.into())
    });
    let wanted = script::Wanted {
        // As in Salt, a name with arguments is the source with them.
        source: &source,
        saltenv: arguments.saltenv(),
        args: words,
        template: arguments.text("template").filter(|template| !template.is_empty()),
        context: arguments.context(),
    };
    // The template is the script's.
    let call = Call { template: None, ..arguments.call(Value::None)? };
    let done = match script::run(&wanted, call) {
        Ok(script::Done::Ran(done)) => done,
        Ok(script::Done::Missing) => {
            let comment = format!("Unable to cache script {source} from saltenv '{}'", wanted.saltenv);
            return Ok(Came { result: Some(false), comment, changes: script::missing() });
        }
        Err(why) => return Ok(Came::failed(arguments.explained(why))),
    };
    Ok(Came { result: Some(done.retcode == 0), comment: format!("Command '{shown}' run"), changes: done.all() })
}
