//! The module `git`: repositories of this host, by the program git. The functions, the states and their documentation are
//! in `wit/world.wit`.
//!
//! - [`given`]: the arguments of functions · [`arguments`]: how each is read
//! - [`functions`]: what functions do that is more than one command
//! - [`run`]: runs git · [`repository`], [`config`]: what is asked of it · [`url`]: addresses
//! - [`states`]: the states

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "git",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod arguments;
mod config;
mod functions;
mod given;
mod repository;
mod run;
mod states;
mod url;

use brine_guest::Value;

use arguments::{flag, full, text, texts};
use given::Given;
use run::Command;

struct Module;

/// The type of a required argument and of one that may be missing.
macro_rules! functions {
    ($(fn $name:ident($($required:ident)*; $($param:ident)*) -> $result:ty { |$given:ident| $body:expr })*) => {
        $(fn $name($($required: String,)* $($param: Option<Data>),*) -> Result<$result, String> {
            let $given = Given { $($required: Some($required.into()),)* $($param,)* ..Given::default() };
            $body
        })*
    };
}

// Salt's arguments in Salt's order.
#[rustfmt::skip]
impl Guest for Module {
    functions! {
        fn add(cwd filename; opts git_opts user password ignore_retcode output_encoding) -> String {
            |given| given.run(given.command("add")?.arg("--verbose").args(given.options_but(&["-v", "--verbose"])?)
                .arg("--").args(text(given.filename.as_ref())?))
        }
        fn archive(cwd output; rev prefix git_opts user password ignore_retcode output_encoding format) -> bool {
            |given| functions::archive(&given)
        }
        fn branch(cwd; name opts git_opts user password ignore_retcode output_encoding) -> bool {
            |given| given.run(given.command("branch")?.args(given.options()?).args(text(given.name.as_ref())?)).map(|_| true)
        }
        fn checkout(cwd; rev force opts git_opts user password ignore_retcode output_encoding) -> String {
            |given| functions::checkout(&given)
        }
        fn clone(cwd; url name opts git_opts user password identity https_user https_pass ignore_retcode saltenv
            output_encoding) -> bool {
            |given| functions::clone(&given).map(|()| true)
        }
        fn commit(cwd message; opts git_opts user password filename ignore_retcode output_encoding) -> String {
            |given| {
                let file = full(given.filename.as_ref())?;
                given.run(given.command("commit")?.arg("-m").args(text(given.message.as_ref())?).args(given.options()?)
                    .args(file.as_ref().map(|_| "--")).args(file.clone()))
            }
        }
        fn config_get(key; cwd user password ignore_retcode output_encoding all global) -> Data {
            |given| {
                let values = given.git()?.config_get(&given.scope()?, &given.key()?)?;
                Ok(match (values, flag(given.all.as_ref(), false)?) {
                    (None, _) => Value::None,
                    (Some(values), true) => values.into(),
                    (Some(values), false) => values.last().map_or("", String::as_str).into(),
                }.into())
            }
        }
        fn config_get_regexp(key; value_regex cwd user password ignore_retcode output_encoding global) -> Data {
            |given| functions::config_get_regexp(&given)
        }
        fn config_get_regex(key; value_regex cwd user password ignore_retcode output_encoding global) -> Data {
            |given| functions::config_get_regexp(&given)
        }
        fn config_set(key; value multivar cwd user password ignore_retcode output_encoding add global) -> Data {
            |given| functions::config_set(&given)
        }
        fn config_unset(key; value_regex cwd user password ignore_retcode output_encoding all global) -> bool {
            |given| {
                let value = text(given.value_regex.as_ref())?;
                let all = flag(given.all.as_ref(), false)?;
                given.git()?.config_unset(&given.scope()?, &given.key()?, value.as_deref(), all).map(|()| true)
            }
        }
        fn current_branch(cwd; user password ignore_retcode output_encoding) -> String {
            |given| given.git()?.current_branch(&given.cwd()?)
        }
        fn describe(cwd; rev user password ignore_retcode output_encoding) -> String {
            |given| given.git()?.describe(&given.cwd()?, &given.rev("HEAD")?)
        }
        fn diff(cwd; item1 item2 opts git_opts user password no_index cached paths output_encoding) -> String {
            |given| functions::diff(&given)
        }
        fn discard_local_changes(cwd; path user password ignore_retcode output_encoding) -> String {
            |given| {
                let path = text(given.path.as_ref())?.unwrap_or_else(|| ".".into());
                given.run(Command::new(["checkout", "--"]).arg(path).at(&given.cwd()?).merged())
            }
        }
        fn fetch(cwd; remote force refspecs opts git_opts user password identity ignore_retcode saltenv
            output_encoding) -> Data {
            |given| {
                let refspecs = texts(given.refspecs.as_ref())?.unwrap_or_default();
                let remote = full(given.remote.as_ref())?;
                let more = (given.git_options()?, given.options()?);
                let force = flag(given.force.as_ref(), false)?;
                Ok(given.git()?.fetch(&given.cwd()?, remote.as_deref(), force, &refspecs, more)?.into())
            }
        }
        fn init(cwd; bare template separate_git_dir shared opts git_opts user password ignore_retcode
            output_encoding) -> String {
            |given| functions::init(&given)
        }
        fn is_worktree(cwd; user password output_encoding) -> bool {
            |given| Ok(given.git()?.is_worktree(&given.cwd()?))
        }
        fn list_branches(cwd; remote user password ignore_retcode output_encoding) -> Vec<String> {
            |given| {
                let below = if flag(given.remote.as_ref(), false)? { "refs/remotes/" } else { "refs/heads/" };
                given.git()?.refs(&given.cwd()?, below)
            }
        }
        fn list_tags(cwd; user password ignore_retcode output_encoding) -> Vec<String> {
            |given| given.git()?.tags(&given.cwd()?)
        }
        fn list_worktrees(cwd; stale user password output_encoding all) -> Data {
            |given| functions::list_worktrees(&given).map(Data::from)
        }
        fn ls_remote(; cwd remote ref_ opts git_opts user password identity https_user https_pass ignore_retcode
            output_encoding saltenv) -> Data {
            |given| functions::ls_remote(&given)
        }
        fn merge(cwd; rev opts git_opts user password identity ignore_retcode output_encoding) -> String {
            |given| given.run(given.command("merge")?.args(given.options()?).args(full(given.rev.as_ref())?))
        }
        fn merge_base(cwd; refs octopus is_ancestor independent fork_point opts git_opts user password ignore_retcode
            output_encoding all) -> Data {
            |given| functions::merge_base(&given).map(Data::from)
        }
        fn merge_tree(cwd ref1 ref2; base user password ignore_retcode output_encoding) -> String {
            |given| functions::merge_tree(&given)
        }
        fn pull(cwd; opts git_opts user password identity ignore_retcode saltenv output_encoding) -> String {
            |given| given.run(given.command("pull")?.args(given.options()?))
        }
        fn push(cwd; remote ref_ opts git_opts user password identity ignore_retcode saltenv output_encoding) -> String {
            |given| given.run(given.command("push")?.args(given.options()?).args(text(given.remote.as_ref())?)
                .args(text(given.ref_.as_ref())?))
        }
        fn rebase(cwd; rev opts git_opts user password ignore_retcode output_encoding) -> String {
            |given| functions::rebase(&given)
        }
        fn remote_get(cwd; remote user password redact_auth ignore_retcode output_encoding) -> Data {
            |given| functions::remote_get(&given, flag(given.redact_auth.as_ref(), true)?)
        }
        fn remote_refs(url; heads tags user password identity https_user https_pass ignore_retcode output_encoding saltenv
            filter) -> Data {
            |given| functions::remote_refs(&given)
        }
        fn remote_set(cwd url; remote user password https_user https_pass push_url push_https_user push_https_pass
            ignore_retcode output_encoding) -> Data {
            |given| functions::remote_set(&given)
        }
        fn remotes(cwd; user password redact_auth ignore_retcode output_encoding) -> Data {
            |given| {
                let remotes = given.git()?.remotes(&given.cwd()?, flag(given.redact_auth.as_ref(), true)?)?;
                Ok(Value::dict(remotes.iter().map(|remote| (remote.name.as_str(), remote.value()))).into())
            }
        }
        fn reset(cwd; opts git_opts user password identity ignore_retcode output_encoding) -> String {
            |given| given.run(given.command("reset")?.args(given.options()?))
        }
        fn rev_parse(cwd; rev opts git_opts user password ignore_retcode output_encoding) -> String {
            |given| given.run(given.command("rev-parse")?.args(given.options()?).args(text(given.rev.as_ref())?))
        }
        fn revision(cwd; rev short user password ignore_retcode output_encoding) -> String {
            |given| {
                let short = flag(given.short.as_ref(), false)?.then_some("--short");
                given.git()?.rev_parse(&given.cwd()?, short.as_slice(), &given.rev("HEAD")?)
            }
        }
        fn rm(cwd filename; opts git_opts user password ignore_retcode output_encoding) -> String {
            |given| given.run(given.command("rm")?.args(given.options()?).arg("--").args(text(given.filename.as_ref())?))
        }
        fn stash(cwd; action opts git_opts user password ignore_retcode output_encoding) -> String {
            |given| {
                let action = text(given.action.as_ref())?.unwrap_or_else(|| "save".into());
                given.run(given.command("stash")?.arg(action).args(given.options()?))
            }
        }
        fn status(cwd; user password ignore_retcode output_encoding) -> Data {
            |given| functions::status(&given)
        }
        fn submodule(cwd command; opts git_opts user password identity ignore_retcode saltenv output_encoding) -> String {
            |given| given.run(given.command("submodule")?.args(text(given.command.as_ref())?).args(given.options()?))
        }
        fn symbolic_ref(cwd ref_; value opts git_opts user password ignore_retcode output_encoding) -> String {
            |given| functions::symbolic_ref(&given)
        }
        fn tag(cwd name; ref_ message opts git_opts user password ignore_retcode output_encoding) -> String {
            |given| functions::tag(&given)
        }
        fn version(; versioninfo) -> Data {
            |given| functions::version(flag(given.versioninfo.as_ref(), false)?)
        }
        fn worktree_add(cwd worktree_path; ref_ reset_branch force detach opts git_opts user password ignore_retcode
            output_encoding branch) -> String {
            |given| functions::worktree_add(&given)
        }
        fn worktree_prune(cwd; dry_run verbose expire opts git_opts user password ignore_retcode output_encoding) -> String {
            |given| functions::worktree_prune(&given)
        }
        fn worktree_rm(cwd; user output_encoding) -> bool {
            |given| functions::worktree_rm(&given).map(|()| true)
        }
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
