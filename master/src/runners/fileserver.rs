//! `fileserver.*`: the content of the file server. Its only backend is `roots`, which reads the folders for each
//! request. There is nothing to update, clear or lock, and the answers are those of a Salt master with only this
//! backend.

use brine_protocol::value::{Value, ValueExt, empty_map, list, map};

use super::function::{Function, Outcome, Run, functions};
use crate::fileserver::FileRequest;

/// The only backend.
const BACKEND: &str = "roots";

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Clears the caches of backends that have one; the backend roots has none.
    "fileserver.clear_cache(backend=None)" => |_| async { Ok(Value::from("No cache was cleared")) },
    /// Forgets the lists of files that were made, and returns their environments. They are made anew for each question
    /// anyway.
    "fileserver.clear_file_list_cache(saltenv=None, backend=None)"
        => |run| async move { Ok(clear_file_list_cache(&run)) },
    /// Removes the update locks of backends that have them; the backend roots has none.
    "fileserver.clear_lock(backend=None, remote=None)" => |_| async { Ok(Value::from("No locks were removed")) },
    /// Lists the folders of an environment.
    "fileserver.dir_list(saltenv='base', backend=None)" => |run| ask(run, FileRequest::DirList),
    /// Lists the empty folders of an environment.
    "fileserver.empty_dir_list(saltenv='base', backend=None)" => |run| ask(run, FileRequest::EmptyDirs),
    /// Lists the environments of the file server.
    "fileserver.envs(backend=None, sources=False)" => envs,
    /// Lists the files of an environment.
    "fileserver.file_list(saltenv='base', backend=None)" => |run| ask(run, FileRequest::List),
    /// Sets the update locks of backends that have them; the backend roots has none.
    "fileserver.lock(backend=None, remote=None)" => |_| async { Ok(Value::from("No locks were set")) },
    /// Lists the symbolic links of an environment, and where they lead.
    "fileserver.symlink_list(saltenv='base', backend=None)" => |run| ask(run, FileRequest::Symlinks),
    /// Updates the caches of backends that have one; the backend roots is always as its folders are.
    "fileserver.update(backend=None, **kwargs)" => |_| async { Ok(Value::from(true)) },
};

/// Returns whether `backend` selects `roots`: a list or comma-separated text of backends, or of backends to exclude
/// (`-roots`).
fn meant(backend: Option<&Value>) -> bool {
    let names: Vec<String> = match backend.filter(|backend| backend.truthy()) {
        None => return true,
        Some(Value::Array(names)) => names.iter().map(ValueExt::python_str).collect(),
        Some(text) => text.python_str().split(',').map(str::to_owned).collect(),
    };
    if names.iter().all(|name| name.starts_with('-')) {
        return !names.iter().any(|name| &name[1..] == BACKEND);
    }
    names.iter().any(|name| name == BACKEND)
}

/// Answers like a request of a minion.
async fn ask(run: Run, what: FileRequest) -> Outcome {
    if !meant(run.get("backend")) {
        return Ok(if what == FileRequest::Symlinks { empty_map() } else { Value::Array(Vec::new()) });
    }
    let saltenv = run.text("saltenv");
    let load = map([("saltenv", saltenv.as_str()), ("prefix", "")]);
    Ok(run.parts.files.answer(what, load).await)
}

fn clear_file_list_cache(run: &Run) -> Value {
    if !meant(run.get("backend")) {
        return empty_map();
    }
    let wanted = run.get("saltenv").map(|given| match given.list() {
        Some(names) => names.iter().map(ValueExt::python_str).collect(),
        None => given.python_str().split(',').map(str::to_owned).collect::<Vec<_>>(),
    });
    let forgotten =
        run.parts.files.forget_lists(|name| wanted.as_ref().is_none_or(|wanted| wanted.iter().any(|one| one == name)));
    if forgotten.is_empty() { empty_map() } else { map([(BACKEND, list(forgotten))]) }
}

async fn envs(run: Run) -> Outcome {
    if !meant(run.get("backend")) {
        return Ok(Value::Array(Vec::new()));
    }
    // Salt sorts a map of backends, which leaves only their names.
    if run.is("sources") {
        return Ok(list([BACKEND]));
    }
    Ok(run.parts.files.answer(FileRequest::Envs, Value::Nil).await)
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::text;

    use super::*;

    #[test]
    fn backends() {
        for yes in ["roots", "git,roots", "-git", ""] {
            assert!(meant(Some(&text(yes))), "{yes}");
        }
        for no in ["git", "-roots", "-git,-roots", "-roots,git"] {
            assert!(!meant(Some(&text(no))), "{no}");
        }
        assert!(meant(None) && meant(Some(&list(["roots"]))) && !meant(Some(&list(["hg"]))));
    }
}
