//! The states: a file each, or a family. What they need of the host is `brine:host/changes` alone, for looking too.
//!
//! - `arguments.rs` the arguments of a state
//! - `managed.rs`, `directory.rs`, `recurse.rs`; `clean.rs` what they remove
//! - `presence.rs` absent, exists, missing; `links.rs` symlink, hardlink; `names.rs` touch, rename, copy; `tidied.rs`; `pruned.rs`
//! - `replace.rs`, `line.rs`, `blockreplace.rs`, `comment.rs`, `append.rs`, `keyvalue.rs` edits of text; `texts.rs` the texts
//!   that they add; `accumulated.rs` text for later states
//! - `patch.rs` patches; `serialize.rs`, `decode.rs` files from values; `cached.rs` copies of files from elsewhere

mod accumulated;
mod append;
mod arguments;
pub(crate) mod blockreplace;
mod cached;
mod clean;
mod comment;
mod decode;
mod directory;
mod keyvalue;
pub(crate) mod line;
mod links;
mod managed;
mod names;
mod patch;
mod presence;
mod pruned;
mod recurse;
pub(crate) mod replace;
mod serialize;
mod texts;
mod tidied;

pub(crate) use arguments::{Arguments, given};
use brine_guest::Value;
use brine_guest::states::StateResult;

use crate::exports::states::Guest;
use crate::manage::command;
pub(crate) use crate::ret::Ret;
use crate::{Data, Module};

/// The result of a state, or an exception in it.
type Done = Result<StateResult, String>;

/// Runs a state with its arguments.
fn with(kwargs: &Data, state: impl FnOnce(&Arguments) -> Result<Ret, String>) -> Done {
    state(&Arguments::new(kwargs)?).told()
}

trait Told {
    /// The result of a state. What went wrong may be a template, whose error shows lines of it: the host would put an
    /// error on one line, so it becomes a result.
    fn told(self) -> Done;
}

impl Told for Result<Ret, String> {
    fn told(self) -> Done {
        self.or_else(|why| match why.contains('\n') {
            true => Ok(Ret::bad(format!("An exception occurred in this state: {why}"))),
            false => Err(why),
        })
        .map(Into::into)
    }
}

impl Guest for Module {
    fn absent(name: String, _: Data) -> Done {
        presence::absent(&name).told()
    }

    fn cached(
        name: String,
        source_hash: Option<Data>,
        source_hash_name: Option<Data>,
        skip_verify: Option<Data>,
        saltenv: Option<String>,
        use_etag: Option<Data>,
    ) -> Done {
        let arguments = given![source_hash, source_hash_name, skip_verify, use_etag];
        cached::cached(&name, saltenv.as_deref(), &arguments).told()
    }

    fn not_cached(name: String, saltenv: Option<String>) -> Done {
        cached::not_cached(&name, saltenv.as_deref()).told()
    }

    fn copy(name: String, source: String, kwargs: Data) -> Done {
        with(&kwargs, |args| names::copy(&name, &source, args))
    }

    fn directory(name: String, require: Option<Data>, kwargs: Data) -> Done {
        let mut arguments = Arguments::new(&kwargs)?;
        if let Some(require) = require {
            arguments.set("require", require.value()?);
        }
        directory::directory(&name, &arguments).told()
    }

    fn exists(name: String, _: Data) -> Done {
        presence::exists(&name).told()
    }

    fn hardlink(name: String, target: String, kwargs: Data) -> Done {
        with(&kwargs, |args| links::hardlink(&name, &target, args))
    }

    fn managed(name: String, check_cmd: Option<Data>, kwargs: Data) -> Done {
        let mut arguments = Arguments::new(&kwargs)?;
        if let Some(check_cmd) = check_cmd {
            arguments.set("check_cmd", check_cmd.value()?);
        }
        managed::managed(&name, &arguments).told()
    }

    fn mod_run_check_cmd(cmd: String, filename: String, _: Data) -> Result<Data, String> {
        Ok(match command::run(&cmd, &filename)? {
            None => true.into(),
            Some(comment) => {
                let failed = [("comment", comment.into()), ("result", false.into()), ("skip_watch", true.into())];
                Value::dict(failed).into()
            }
        })
    }

    fn missing(name: String, _: Data) -> Done {
        presence::missing(&name).told()
    }

    fn recurse(name: String, source: Data, require: Option<Data>, kwargs: Data) -> Done {
        let mut arguments = Arguments::new(&kwargs)?;
        arguments.set("source", source.value()?);
        if let Some(require) = require {
            arguments.set("require", require.value()?);
        }
        recurse::recurse(&name, &arguments).told()
    }

    fn rename(name: String, source: String, kwargs: Data) -> Done {
        with(&kwargs, |args| names::rename(&name, &source, args))
    }

    fn symlink(name: String, target: String, kwargs: Data) -> Done {
        with(&kwargs, |args| links::symlink(&name, &target, args))
    }

    fn tidied(name: String, kwargs: Data) -> Done {
        with(&kwargs, |args| tidied::tidied(&name, args))
    }

    fn patch(name: String, source: Option<Data>, kwargs: Data) -> Done {
        let mut arguments = Arguments::new(&kwargs)?;
        if let Some(source) = source {
            arguments.set("source", source.value()?);
        }
        patch::patch(&name, &arguments).told()
    }

    fn pruned(name: String, recurse: Option<Data>, ignore_errors: Option<Data>, older_than: Option<Data>) -> Done {
        pruned::pruned(&name, &given![recurse, ignore_errors, older_than]).told()
    }

    fn touch(name: String, atime: Option<Data>, mtime: Option<Data>, makedirs: Option<bool>) -> Done {
        let value = |data: Option<Data>| data.map_or(Ok(Default::default()), |data| data.value());
        names::touch(&name, &value(atime)?, &value(mtime)?, makedirs.unwrap_or(false)).told()
    }

    fn replace(
        name: String,
        pattern: Data,
        repl: Data,
        count: Option<Data>,
        flags: Option<Data>,
        bufsize: Option<Data>,
        append_if_not_found: Option<Data>,
        prepend_if_not_found: Option<Data>,
        not_found_content: Option<Data>,
        backup: Option<Data>,
        show_changes: Option<Data>,
        ignore_if_missing: Option<Data>,
        backslash_literal: Option<Data>,
        encoding: Option<Data>,
    ) -> Done {
        // A file is always read whole.
        let _ = bufsize;
        let (pattern, repl) = (Some(pattern), Some(repl));
        let arguments = given![
            pattern,
            repl,
            count,
            flags,
            append_if_not_found,
            prepend_if_not_found,
            not_found_content,
            backup,
            show_changes,
            ignore_if_missing,
            backslash_literal,
            encoding,
        ];
        replace::run(&name, &arguments).told()
    }

    fn line(
        name: String,
        content: Option<Data>,
        match_: Option<Data>,
        mode: Option<Data>,
        location: Option<Data>,
        before: Option<Data>,
        after: Option<Data>,
        show_changes: Option<Data>,
        backup: Option<Data>,
        quiet: Option<Data>,
        indent: Option<Data>,
        create: Option<Data>,
        user: Option<Data>,
        group: Option<Data>,
        file_mode: Option<Data>,
    ) -> Done {
        let mut arguments = given![
            content,
            mode,
            location,
            before,
            after,
            show_changes,
            backup,
            quiet,
            indent,
            create,
            user,
            group,
            file_mode,
        ];
        if let Some(matching) = match_ {
            arguments.set("match", matching.value()?);
        }
        line::run(&name, &arguments).told()
    }

    fn blockreplace(
        name: String,
        marker_start: Option<Data>,
        marker_end: Option<Data>,
        source: Option<Data>,
        source_hash: Option<Data>,
        template: Option<Data>,
        sources: Option<Data>,
        source_hashes: Option<Data>,
        defaults: Option<Data>,
        context: Option<Data>,
        content: Option<Data>,
        append_if_not_found: Option<Data>,
        prepend_if_not_found: Option<Data>,
        backup: Option<Data>,
        show_changes: Option<Data>,
        append_newline: Option<Data>,
        insert_before_match: Option<Data>,
        insert_after_match: Option<Data>,
        accumulator: Option<Data>,
    ) -> Done {
        let arguments = given![
            marker_start,
            marker_end,
            source,
            source_hash,
            template,
            sources,
            source_hashes,
            defaults,
            context,
            content,
            append_if_not_found,
            prepend_if_not_found,
            backup,
            show_changes,
            append_newline,
            insert_before_match,
            insert_after_match,
            accumulator,
        ];
        blockreplace::run(&name, &arguments).told()
    }

    fn comment(
        name: String,
        regex: Data,
        char: Option<Data>,
        backup: Option<Data>,
        ignore_missing: Option<Data>,
    ) -> Done {
        let regex = Some(regex);
        comment::comment(&name, &given![regex, char, backup, ignore_missing]).told()
    }

    fn uncomment(name: String, regex: Data, char: Option<Data>, backup: Option<Data>) -> Done {
        let regex = Some(regex);
        comment::uncomment(&name, &given![regex, char, backup]).told()
    }

    fn append(
        name: String,
        text: Option<Data>,
        makedirs: Option<Data>,
        source: Option<Data>,
        source_hash: Option<Data>,
        template: Option<Data>,
        sources: Option<Data>,
        source_hashes: Option<Data>,
        defaults: Option<Data>,
        context: Option<Data>,
        ignore_whitespace: Option<Data>,
        show_changes: Option<Data>,
    ) -> Done {
        let arguments = given![
            text,
            makedirs,
            source,
            source_hash,
            template,
            sources,
            source_hashes,
            defaults,
            context,
            ignore_whitespace,
            show_changes,
        ];
        append::append(&name, &arguments).told()
    }

    fn prepend(
        name: String,
        text: Option<Data>,
        makedirs: Option<Data>,
        source: Option<Data>,
        source_hash: Option<Data>,
        template: Option<Data>,
        sources: Option<Data>,
        source_hashes: Option<Data>,
        defaults: Option<Data>,
        context: Option<Data>,
        header: Option<Data>,
        show_changes: Option<Data>,
    ) -> Done {
        let arguments = given![
            text,
            makedirs,
            source,
            source_hash,
            template,
            sources,
            source_hashes,
            defaults,
            context,
            header,
            show_changes,
        ];
        append::prepend(&name, &arguments).told()
    }

    fn keyvalue(
        name: String,
        key: Option<Data>,
        value: Option<Data>,
        key_values: Option<Data>,
        separator: Option<Data>,
        append_if_not_found: Option<Data>,
        prepend_if_not_found: Option<Data>,
        search_only: Option<Data>,
        show_changes: Option<Data>,
        ignore_if_missing: Option<Data>,
        count: Option<Data>,
        uncomment: Option<Data>,
        key_ignore_case: Option<Data>,
        value_ignore_case: Option<Data>,
        create_if_missing: Option<Data>,
        prune: Option<Data>,
    ) -> Done {
        // As in Salt, where it does nothing.
        let _ = search_only;
        let arguments = given![
            key,
            value,
            key_values,
            separator,
            append_if_not_found,
            prepend_if_not_found,
            show_changes,
            ignore_if_missing,
            count,
            uncomment,
            key_ignore_case,
            value_ignore_case,
            create_if_missing,
            prune,
        ];
        keyvalue::run(&name, &arguments).told()
    }

    fn accumulated(
        name: String,
        filename: Data,
        text: Data,
        require_in: Option<Data>,
        watch_in: Option<Data>,
        accumulator: Option<Data>,
        _: Data,
    ) -> Done {
        let (filename, text) = (Some(filename), Some(text));
        accumulated::run(&name, &given![filename, text, require_in, watch_in, accumulator]).told()
    }

    fn serialize(name: String, kwargs: Data) -> Done {
        with(&kwargs, |arguments| serialize::run(&name, arguments))
    }

    fn decode(
        name: String,
        encoded_data: Option<Data>,
        contents_pillar: Option<Data>,
        encoding_type: Option<Data>,
        checksum: Option<Data>,
    ) -> Done {
        // As in Salt, where there is only base64.
        let _ = encoding_type;
        decode::run(&name, &given![encoded_data, contents_pillar, checksum]).told()
    }
}
