//! The functions of the module: each binds its arguments and leaves the rest to the room that does it.

use std::collections::BTreeSet;

use brine_guest::changes;
use brine_guest::host::job;
use brine_guest::states::is_dry_run;
use brine_guest::{Value, path};

use crate::change::owner::Wanted;
use crate::change::permissions::Permissions;
use crate::change::{backups, functions as owners, mode, names, rmdir};
use crate::edit::patch::{self, Options};
use crate::edit::run;
use crate::editing;
use crate::look::fs::Kind;
use crate::look::{find, fs, glob, grep, hash, stats, text};
use crate::manage::functions::{self as managing, Question};
use crate::manage::source;
use crate::states::given;
use crate::wasi::clocks::wall_clock;
use crate::{Data, Guest, Module};

/// Upper bound on the bytes of a returned file; the minion's bound on a job's return is lower.
const MAX_READ: usize = 16 * 1024 * 1024;
/// Upper bound on nested directories.
const MAX_DEPTH: usize = 256;

impl Guest for Module {
    fn read(path: String, binary: Option<bool>) -> Result<Data, String> {
        let content = fs::read(&path, MAX_READ)?;
        if binary == Some(true) {
            return Ok(bytes(content).into());
        }
        let text = String::from_utf8(content).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!(
                "'utf-8' codec can't decode byte 0x{:02x} in position {at}: read it with binary=True",
                error.as_bytes()[at]
            )
        })?;
        Ok(text.into())
    }

    fn seek_read(path: String, size: u64, offset: u64) -> Result<Data, String> {
        let file = fs::open(&path).map_err(|error| error.at(&path))?;
        let mut content = Vec::new();
        while (content.len() as u64) < size {
            let at = content.len() as u64;
            let part = file.read_at(offset.saturating_add(at), size - at).map_err(|error| error.at(&path))?;
            if part.is_empty() {
                break;
            }
            content.extend(part);
            if content.len() > MAX_READ {
                return Err(format!("more than {MAX_READ} bytes were asked for"));
            }
        }
        Ok(bytes(content).into())
    }

    fn stats(path: String, hash_type: Option<String>, follow_symlinks: Option<bool>) -> Result<Data, String> {
        Ok(stats::all(&path, hash_type.as_deref(), follow_symlinks != Some(false))?.into())
    }

    fn lstat(path: String) -> Result<Data, String> {
        absolute(&path, "Path to file must be absolute.")?;
        Ok(maybe(&path, false)?.map_or_else(nothing, |stat| stats::lstat(&stat)).into())
    }

    fn find(path: String, args: Vec<Data>, kwargs: Data) -> Result<Data, String> {
        let Value::Dict(mut options) = kwargs.value()? else { return Err("the options are no dict".into()) };
        for arg in args {
            match arg.value()?.to_text().as_str() {
                "delete" => options.push(("delete".into(), "f".into())),
                "print" => options.push(("print".into(), "path".into())),
                _ => {}
            }
        }
        let now = wall_clock::now();
        let now = now.seconds as f64 + f64::from(now.nanoseconds) / 1e9;
        let finder = match find::Finder::new(&options, now) {
            Ok(finder) => finder,
            // Salt returns the error as a text and does not fail.
            Err(error) => return Ok(format!("error: {error}").into()),
        };
        let mut found = Vec::new();
        for top in glob::expand(&path)? {
            finder.find(&top, &mut found)?;
        }
        found.sort_by(find::order);
        Ok(Value::List(found).into())
    }

    fn grep(path: String, pattern: Data, args: Vec<Data>) -> Result<Data, String> {
        let mut options = Vec::new();
        for arg in args {
            let arg = arg.value()?.to_text();
            if arg.split_whitespace().count() > 1 {
                return Err(format!(
                    "Passing multiple command line arguments in a single string is not supported, please pass the following \
                     arguments separately: {arg}"
                ));
            }
            options.push(arg);
        }
        let (retcode, answer) = grep::grep(&path, &pattern.value()?.to_text(), &options)?;
        job::set_retcode(retcode);
        Ok(answer.into())
    }

    fn get_hash(path: String, form: Option<String>, _chunk_size: Option<u64>) -> Result<String, String> {
        hash::of(&path, form.as_deref().unwrap_or("sha256"))
    }

    fn get_sum(path: String, form: Option<String>) -> Result<String, String> {
        if is(&path, Kind::Regular)? { Self::get_hash(path, form, None) } else { Ok("File not found".into()) }
    }

    fn check_hash(path: String, file_hash: Data) -> Result<bool, String> {
        let Value::Text(file_hash) = file_hash.value()? else { return Err("hash must be a string".into()) };
        let (kind, expected) = hash::parse(&file_hash)?;
        Ok(hash::of(&path, kind)? == expected)
    }

    fn readdir(path: String) -> Result<Vec<String>, String> {
        absolute(&path, "Dir path must be absolute.")?;
        if !is(&path, Kind::Directory)? {
            return Err(format!("A valid directory was not specified: {path}"));
        }
        let entries = fs::read_dir(&path).map_err(|error| error.at(&path))?;
        Ok([".".into(), "..".into()].into_iter().chain(entries.into_iter().map(|(name, _)| name)).collect())
    }

    fn file_exists(path: String) -> Result<bool, String> {
        is(&path, Kind::Regular)
    }

    fn directory_exists(path: String) -> Result<bool, String> {
        is(&path, Kind::Directory)
    }

    fn path_exists_glob(path: String) -> Result<bool, String> {
        Ok(!glob::expand(&path)?.is_empty())
    }

    fn is_link(path: String, _nostat: Option<bool>) -> Result<bool, String> {
        Ok(maybe(&path, false)?.is_some_and(|stat| stat.kind == Kind::Symlink))
    }

    fn is_hardlink(path: String) -> Result<Data, String> {
        Ok(maybe(&path, false)?.map_or_else(nothing, |stat| (stat.nlink > 1).into()).into())
    }

    fn is_chrdev(name: String) -> Result<bool, String> {
        is(&name, Kind::Character)
    }

    fn is_blkdev(name: String) -> Result<bool, String> {
        is(&name, Kind::Block)
    }

    fn is_fifo(name: String) -> Result<bool, String> {
        is(&name, Kind::Fifo)
    }

    fn readlink(path: String, canonicalize: Option<bool>) -> Result<String, String> {
        absolute(&path, &format!("Path to link must be absolute: {path}"))?;
        let target = maybe(&path, false)?.and_then(|stat| stat.target);
        let target = target.ok_or_else(|| format!("A valid link was not specified: {path}"))?;
        if canonicalize == Some(true) { fs::realpath(&path).map_err(|error| error.at(&path)) } else { Ok(target) }
    }

    fn get_mode(path: String, follow_symlinks: Option<bool>) -> Result<String, String> {
        Ok(stats::mode(&stats::of(&path, follow_symlinks != Some(false))?))
    }

    fn get_user(path: String, follow_symlinks: Option<bool>) -> Result<Data, String> {
        Ok(stats::user(stats::of(&path, follow_symlinks != Some(false))?.uid).into())
    }

    fn get_uid(path: String, follow_symlinks: Option<bool>) -> Result<u32, String> {
        Ok(stats::of(&path, follow_symlinks != Some(false))?.uid)
    }

    fn get_group(path: String, follow_symlinks: Option<bool>) -> Result<Data, String> {
        Ok(stats::group(stats::of(&path, follow_symlinks != Some(false))?.gid).into())
    }

    fn get_gid(path: String, follow_symlinks: Option<bool>) -> Result<u32, String> {
        Ok(stats::of(&path, follow_symlinks != Some(false))?.gid)
    }

    fn uid_to_user(uid: u32) -> Data {
        stats::user(uid).into()
    }

    fn gid_to_group(gid: u32) -> Data {
        stats::group(gid).into()
    }

    fn access(path: String, mode: Data) -> Result<bool, String> {
        absolute(&path, "Path to link must be absolute.")?;
        match mode.value()?.to_text().as_str() {
            "f" | "0" => Ok(maybe(&path, true)?.is_some()),
            "r" | "4" if is(&path, Kind::Directory)? => Ok(fs::read_dir(&path).is_ok()),
            "r" | "4" => match fs::open(&path) {
                Ok(_) => Ok(true),
                Err(error @ fs::Error::NotGranted(_)) => Err(error.at(&path)),
                Err(_) => Ok(false),
            },
            mode @ ("w" | "2" | "x" | "1") if let Ok(found) = changes::look(&path, true) => {
                // What the minion may do there, if it is root.
                let executes =
                    |entry: &changes::Entry| entry.kind == changes::Kind::Directory || entry.mode & 0o111 != 0;
                Ok(found.is_some_and(|entry| matches!(mode, "w" | "2") || executes(&entry)))
            }
            "w" | "2" | "x" | "1" => Err("whether it may be written or executed cannot be told here".into()),
            _ => Err("Invalid mode specified.".into()),
        }
    }

    fn contains(path: String, text: Data) -> Result<bool, String> {
        text::contains(&path, &text.value()?.to_text())
    }

    fn contains_regex(path: String, regex: Data, lchar: Option<String>) -> Result<bool, String> {
        text::contains_regex(&path, &regex.value()?.to_text(), lchar.as_deref().unwrap_or_default())
    }

    fn contains_glob(path: String, glob_expr: Data) -> Result<bool, String> {
        text::contains_glob(&path, &glob_expr.value()?.to_text())
    }

    fn search(
        path: String,
        pattern: Data,
        flags: Option<Data>,
        _bufsize: Option<Data>,
        ignore_if_missing: Option<bool>,
        multiline: Option<bool>,
    ) -> Result<bool, String> {
        let flags = flags.map_or(Ok(Value::Int(8)), |flags| flags.value())?;
        let mut flags = text::flags(&flags)?;
        flags.multi_line |= multiline == Some(true);
        text::search(&path, &pattern.value()?.to_text(), flags, ignore_if_missing == Some(true))
    }

    fn diskusage(path: String) -> Result<u64, String> {
        match maybe(&path, true)? {
            None => Ok(0),
            Some(stat) if stat.kind == Kind::Regular => Ok(stat.size),
            Some(_) => diskusage(&path),
        }
    }

    fn pardir() -> String {
        "..".into()
    }

    fn normpath(path: String) -> String {
        path::normpath(&path)
    }

    fn basename(path: String) -> String {
        path::basename(&path).into()
    }

    fn dirname(path: String) -> String {
        path::dirname(&path).into()
    }

    fn join(args: Vec<Data>) -> Result<String, String> {
        let parts: Vec<String> = args.iter().map(|part| part.name("a part of a path")).collect::<Result<_, _>>()?;
        parts.into_iter().reduce(|head, tail| path::join(&head, &tail)).ok_or_else(|| "there is nothing to join".into())
    }

    fn user_to_uid(user: Option<Data>) -> Result<Data, String> {
        Ok(owners::user_to_uid(&managing::value(user)?).into())
    }

    fn group_to_gid(group: Option<Data>) -> Result<Data, String> {
        Ok(owners::group_to_gid(&managing::value(group)?).into())
    }

    fn set_mode(path: String, mode: Data) -> Result<String, String> {
        owners::set_mode(&path, &mode.value()?)
    }

    fn chown(path: String, user: Option<Data>, group: Option<Data>) -> Result<Data, String> {
        Ok(owners::chown(&path, &managing::value(user)?, &managing::value(group)?, true)?.into())
    }

    fn lchown(path: String, user: Option<Data>, group: Option<Data>) -> Result<Data, String> {
        Ok(owners::chown(&path, &managing::value(user)?, &managing::value(group)?, false)?.into())
    }

    fn chgrp(path: String, group: Data) -> Result<Data, String> {
        Ok(owners::chgrp(&path, &group.value()?)?.into())
    }

    fn check_perms(
        name: String,
        ret: Option<Data>,
        user: Option<Data>,
        group: Option<Data>,
        mode: Option<Data>,
        attrs: Option<Data>,
        follow_symlinks: Option<bool>,
    ) -> Result<Data, String> {
        let wanted = Permissions {
            owner: Wanted { user: managing::value(user)?, group: managing::value(group)? },
            mode: mode::normal(&managing::value(mode)?),
        };
        if managing::value(attrs)?.truthy() {
            return Err("attributes cannot be set here".into());
        }
        let ret = managing::value(ret)?;
        Ok(owners::check_perms(&name, &ret, &wanted, follow_symlinks == Some(true), is_dry_run())?.into())
    }

    fn write(path: String, args: Vec<Data>, kwargs: Data) -> Result<String, String> {
        owners::write(&path, args, &kwargs)
    }

    fn replace(
        path: String,
        pattern: Data,
        repl: Data,
        count: Option<Data>,
        flags: Option<Data>,
        _bufsize: Option<Data>,
        append_if_not_found: Option<Data>,
        prepend_if_not_found: Option<Data>,
        not_found_content: Option<Data>,
        backup: Option<Data>,
        dry_run: Option<bool>,
        search_only: Option<bool>,
        show_changes: Option<Data>,
        ignore_if_missing: Option<bool>,
        _preserve_inode: Option<bool>,
        backslash_literal: Option<Data>,
        encoding: Option<Data>,
    ) -> Result<Data, String> {
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
            backslash_literal,
            encoding,
        ];
        let is = |flag: Option<bool>| flag == Some(true);
        editing::replace(&path, &arguments, is(dry_run), is(search_only), is(ignore_if_missing)).map(Into::into)
    }

    fn line(
        path: String,
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
    ) -> Result<Data, String> {
        let mut arguments = given![content, mode, location, before, after, show_changes, backup, quiet, indent];
        if let Some(matching) = match_ {
            arguments.set("match", matching.value()?);
        }
        editing::line(&path, &arguments).map(Into::into)
    }

    fn blockreplace(
        path: String,
        marker_start: Option<Data>,
        marker_end: Option<Data>,
        content: Option<Data>,
        append_if_not_found: Option<Data>,
        prepend_if_not_found: Option<Data>,
        backup: Option<Data>,
        dry_run: Option<bool>,
        show_changes: Option<Data>,
        append_newline: Option<Data>,
        insert_before_match: Option<Data>,
        insert_after_match: Option<Data>,
    ) -> Result<Data, String> {
        let arguments = given![
            marker_start,
            marker_end,
            content,
            append_if_not_found,
            prepend_if_not_found,
            backup,
            show_changes,
            append_newline,
            insert_before_match,
            insert_after_match,
        ];
        editing::blockreplace(&path, &arguments, dry_run == Some(true)).map(Into::into)
    }

    fn comment_line(
        path: String,
        regex: Data,
        char: Option<Data>,
        cmnt: Option<bool>,
        backup: Option<Data>,
    ) -> Result<Data, String> {
        let regex = Some(regex);
        editing::comment_line(&path, &given![regex, char, backup], cmnt != Some(false)).map(Into::into)
    }

    fn comment(path: String, regex: Data, char: Option<Data>, backup: Option<Data>) -> Result<Data, String> {
        Self::comment_line(path, regex, char, Some(true), backup)
    }

    fn uncomment(path: String, regex: Data, char: Option<Data>, backup: Option<Data>) -> Result<Data, String> {
        Self::comment_line(path, regex, char, Some(false), backup)
    }

    fn append(path: String, args: Vec<Data>, kwargs: Data) -> Result<String, String> {
        run::append(&path, &editing::lines(&args, &kwargs)?)
    }

    fn prepend(path: String, args: Vec<Data>, kwargs: Data) -> Result<String, String> {
        run::prepend(&path, &editing::lines(&args, &kwargs)?)
    }

    fn seek_write(path: String, data: Data, offset: u64) -> Result<u64, String> {
        owners::seek_write(&path, &data.value()?, offset)
    }

    fn truncate(path: String, length: u64) -> Result<(), String> {
        owners::truncate(&path, length)
    }

    fn touch(name: String, atime: Option<Data>, mtime: Option<Data>) -> Result<bool, String> {
        names::touch(&name, &managing::value(atime)?, &managing::value(mtime)?)?;
        Ok(true)
    }

    fn link(src: String, path: String) -> Result<bool, String> {
        owners::link(&src, &path)
    }

    fn symlink(
        src: String,
        path: String,
        force: Option<bool>,
        atomic: Option<bool>,
        follow_symlinks: Option<bool>,
    ) -> Result<bool, String> {
        owners::symlink(&src, &path, force == Some(true), atomic == Some(true), follow_symlinks != Some(false))
    }

    fn rename(src: String, dst: String) -> Result<bool, String> {
        owners::rename(&src, &dst)
    }

    fn move_(src: String, dst: String, disallow_copy_and_unlink: Option<bool>) -> Result<Data, String> {
        match disallow_copy_and_unlink {
            Some(true) => owners::rename(&src, &dst).map(Data::from),
            _ => Ok(owners::move_to(&src, &dst)?.into()),
        }
    }

    fn copy(src: String, dst: String, recurse: Option<bool>, remove_existing: Option<bool>) -> Result<bool, String> {
        owners::copy(&src, &dst, recurse == Some(true), remove_existing == Some(true))
    }

    fn remove(path: String, _: Data) -> Result<bool, String> {
        owners::remove(&path)
    }

    fn patch(
        originalfile: String,
        patchfile: String,
        options: Option<String>,
        dry_run: Option<Data>,
    ) -> Result<Data, String> {
        let options = Options::of_line(options.as_deref().unwrap_or_default())?;
        let missing = || format!("patch: **** Can't open patch file {patchfile} : No such file or directory");
        let content = changes::read(&patchfile)?.ok_or_else(missing)?;
        let dry_run = dry_run.map(|dry_run| dry_run.value()).transpose()?.is_some_and(|dry_run| dry_run.truthy());
        Ok(patch::run(&originalfile, &content, &options, dry_run)?.value().into())
    }

    fn rmdir(
        path: String,
        recurse: Option<Data>,
        verbose: Option<Data>,
        older_than: Option<Data>,
    ) -> Result<Data, String> {
        let value = |data: Option<Data>| data.map_or(Ok(Value::None), |data| data.value());
        let removed = rmdir::rmdir(&path, value(recurse)?.truthy(), &value(older_than)?)?;
        if !value(verbose)?.truthy() {
            return Ok(removed.result.into());
        }
        let Value::Dict(mut told) = removed.value() else { unreachable!("it is a dict") };
        told.push(("result".into(), removed.result.into()));
        Ok(Value::Dict(told).into())
    }

    fn mkdir(dir_path: String, user: Option<Data>, group: Option<Data>, mode: Option<Data>) -> Result<bool, String> {
        owners::mkdir(&dir_path, user, group, mode)
    }

    fn makedirs(path: String, user: Option<Data>, group: Option<Data>, mode: Option<Data>) -> Result<Data, String> {
        Ok(owners::makedirs(&path, user, group, mode)?.into())
    }

    fn makedirs_perms(name: String, user: Option<Data>, group: Option<Data>, mode: Option<Data>) -> Result<(), String> {
        owners::makedirs_perms(&name, user, group, mode)
    }

    fn list_backups(path: String, limit: Option<Data>) -> Result<Data, String> {
        let limit = managing::value(limit)?.to_text().parse().ok();
        Ok(backups::list(&path, limit)?.into())
    }

    fn list_backup(path: String, limit: Option<Data>) -> Result<Data, String> {
        Self::list_backups(path, limit)
    }

    fn restore_backup(path: String, backup_id: Data) -> Result<Data, String> {
        Ok(backups::restore(&path, &backup_id.value()?)?.into())
    }

    fn delete_backup(path: String, backup_id: Data) -> Result<Data, String> {
        Ok(backups::delete(&path, &backup_id.value()?)?.into())
    }

    fn remove_backup(path: String, backup_id: Data) -> Result<Data, String> {
        Self::delete_backup(path, backup_id)
    }

    fn source_list(source: Data, source_hash: Option<Data>, saltenv: Option<String>) -> Result<Data, String> {
        let saltenv = saltenv.as_deref().unwrap_or("base");
        let (source, hash) = source::choose(&source.value()?, &managing::value(source_hash)?, saltenv)?;
        Ok(Value::List(vec![source, hash]).into())
    }

    fn get_source_sum(
        file_name: Option<String>,
        source: Option<String>,
        source_hash: Option<Data>,
        source_hash_name: Option<String>,
        saltenv: Option<String>,
        _: Data,
    ) -> Result<Data, String> {
        let text = |text: Option<String>| text.unwrap_or_default();
        let saltenv = saltenv.as_deref().unwrap_or("base");
        let hash = managing::value(source_hash)?;
        Ok(managing::source_sum(&text(file_name), &text(source), &hash, source_hash_name.as_deref(), saltenv)?.into())
    }

    fn extract_hash(
        hash_fn: String,
        hash_type: Option<String>,
        file_name: Option<String>,
        source: Option<String>,
        source_hash_name: Option<String>,
    ) -> Result<Data, String> {
        let text = |text: Option<String>| text.unwrap_or_default();
        let (list, kind) = (fs::read(&hash_fn, MAX_READ)?, hash_type.as_deref().unwrap_or("sha256"));
        Ok(managing::extract_hash(&list, kind, &text(file_name), &text(source), source_hash_name.as_deref()).into())
    }

    fn apply_template_on_contents(
        contents: Data,
        template: String,
        context: Option<Data>,
        defaults: Option<Data>,
        saltenv: Option<String>,
    ) -> Result<Data, String> {
        let saltenv = saltenv.as_deref().unwrap_or("base");
        let (context, defaults) = (managing::value(context)?, managing::value(defaults)?);
        Ok(managing::apply_template(&contents.value()?, &template, &context, &defaults, saltenv)?.into())
    }

    fn get_diff(
        file1: String,
        file2: String,
        saltenv: Option<String>,
        show_filenames: Option<bool>,
        show_changes: Option<bool>,
        _: Data,
    ) -> Result<String, String> {
        let saltenv = saltenv.as_deref().unwrap_or("base");
        managing::get_diff([&file1, &file2], saltenv, show_filenames != Some(false), show_changes != Some(false))
    }

    fn get_managed(args: Vec<Data>, kwargs: Data) -> Result<Data, String> {
        let names = &[
            "name",
            "template",
            "source",
            "source_hash",
            "source_hash_name",
            "user",
            "group",
            "mode",
            "attrs",
            "saltenv",
            "context",
            "defaults",
            "skip_verify",
        ];
        Ok(Question::new(names, args, &kwargs)?.get_managed()?.into())
    }

    fn check_managed(args: Vec<Data>, kwargs: Data) -> Result<Data, String> {
        let names = &[
            "name",
            "source",
            "source_hash",
            "source_hash_name",
            "user",
            "group",
            "mode",
            "attrs",
            "template",
            "context",
            "defaults",
            "saltenv",
            "contents",
            "skip_verify",
        ];
        Ok(Question::new(names, args, &kwargs)?.check_managed()?.into())
    }

    fn check_managed_changes(args: Vec<Data>, kwargs: Data) -> Result<Data, String> {
        let names = &[
            "name",
            "source",
            "source_hash",
            "source_hash_name",
            "user",
            "group",
            "mode",
            "attrs",
            "template",
            "context",
            "defaults",
            "saltenv",
            "contents",
            "skip_verify",
        ];
        Ok(Question::new(names, args, &kwargs)?.check_managed_changes()?.into())
    }

    fn manage_file(args: Vec<Data>, kwargs: Data) -> Result<Data, String> {
        let names = &[
            "name",
            "sfn",
            "ret",
            "source",
            "source_sum",
            "user",
            "group",
            "mode",
            "attrs",
            "saltenv",
            "backup",
            "makedirs",
            "template",
            "show_changes",
            "contents",
            "dir_mode",
            "follow_symlinks",
            "skip_verify",
        ];
        Ok(Question::new(names, args, &kwargs)?.manage_file()?.into())
    }
}

/// Content as a master displays it: text if it is text, else bytes.
fn bytes(content: Vec<u8>) -> Value {
    String::from_utf8(content).map_or_else(|error| Value::Bytes(error.into_bytes()), Value::from)
}

fn absolute(path: &str, error: &str) -> Result<(), String> {
    if path.starts_with('/') { Ok(()) } else { Err(error.into()) }
}

fn nothing() -> Value {
    Value::Dict(Vec::new())
}

/// The metadata of a path; none if it does not exist. A missing grant is an error.
fn maybe(path: &str, follow: bool) -> Result<Option<fs::FileStat>, String> {
    match fs::stat(path, follow) {
        Ok(stat) => Ok(Some(stat)),
        Err(error @ fs::Error::NotGranted(_)) => Err(error.at(path)),
        Err(_) => Ok(None),
    }
}

fn is(path: &str, kind: Kind) -> Result<bool, String> {
    Ok(maybe(path, true)?.is_some_and(|stat| stat.kind == kind))
}

/// The bytes of all files below a directory, with each file counted once.
fn diskusage(top: &str) -> Result<u64, String> {
    let mut seen = BTreeSet::new();
    let mut total = 0_u64;
    let mut directories = vec![(top.to_owned(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        if depth > MAX_DEPTH {
            return Err(format!("'{directory}' is too deep"));
        }
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for (name, kind) in entries {
            let place = path::join(&directory, &name);
            if kind == Kind::Directory {
                directories.push((place, depth + 1));
                continue;
            }
            // As in Salt, the target of a link to a directory does not count.
            if let Ok(stat) = fs::stat(&place, true)
                && stat.kind != Kind::Directory
                && seen.insert(stat.inode)
            {
                total = total.saturating_add(stat.size);
            }
        }
    }
    Ok(total)
}
