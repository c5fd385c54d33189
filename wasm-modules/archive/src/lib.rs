//! The module `archive`: what is in archives, and the state `archive.extracted`. The functions and their documentation
//! are in `wit/world.wit`. Archives are read and unpacked here; the functions with programs' names run those programs.
//!
//! - [`format`]: formats, and what is in an archive: [`tarball`] and [`zipfile`] read it into [`members`]
//! - [`host_file`]: a file of the host as a reader
//! - [`unpack`]: puts members into a folder
//! - [`cache`]: archives from elsewhere
//! - [`tar_options`]: options of tar
//! - [`states`]: the state

wit_bindgen::generate!({
    world: "archive",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/http@1.0.0": brine_guest::host::http,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod cache;
mod format;
mod host_file;
mod members;
mod states;
mod tar_options;
mod tarball;
mod unpack;
mod zipfile;

use brine_guest::Value;
use brine_guest::program::Program;

use crate::cache::Place;
use crate::format::Format;
use crate::host_file::HostFile;
use crate::zipfile::Zip;

struct Module;

impl Guest for Module {
    fn list(
        name: String,
        archive_format: Option<String>,
        _options: Option<String>,
        strip_components: Option<Data>,
        clean: Option<bool>,
        verbose: Option<bool>,
        saltenv: Option<String>,
        _source_hash: Option<Data>,
        _use_etag: Option<bool>,
    ) -> Result<Data, String> {
        let strip = match strip_components.map(|strip| strip.value()).transpose()? {
            None | Some(Value::None) => 0,
            Some(strip) => brine_accounts::values::integer(&strip)
                .and_then(|strip| usize::try_from(strip).ok())
                .filter(|strip| *strip > 0)
                .ok_or("'strip_components' must be a positive integer")?,
        };
        let format = match archive_format.filter(|name| !name.is_empty()) {
            Some(name) => Format::named(&name).ok_or_else(|| format!("Unsupported archive format '{name}'"))?,
            None => Format::guess(&name)
                .ok_or("Unable to guess archive format, please pass an 'archive_format' argument.")?,
        };
        let (place, path) = fetched(&name, saltenv)?;
        let contents = format::contents(&format::members(&name, &path, format)?, format, strip);
        if clean == Some(true) {
            cache::forget(&place)?;
        }
        if verbose == Some(true) {
            return Ok(Value::dict([
                ("top_level_dirs", contents.top_level_dirs().into()),
                ("top_level_files", contents.top_level_files().into()),
                ("top_level_links", contents.top_level_links().into()),
                ("dirs", contents.dirs.into()),
                ("files", contents.files.into()),
                ("links", contents.links.into()),
            ])
            .into());
        }
        let mut all = [contents.dirs, contents.files, contents.links].concat();
        all.sort();
        Ok(all.into())
    }

    fn is_encrypted(
        name: String,
        clean: Option<bool>,
        saltenv: Option<String>,
        _source_hash: Option<Data>,
        _use_etag: Option<bool>,
    ) -> Result<bool, String> {
        let (place, path) = fetched(&name, saltenv)?;
        let zip = Zip::open(HostFile::open(&path)?);
        let encrypted =
            zip.map_err(|why| why.unwrap_or_else(|| format!("{name} is not a ZIP file")))?.is_encrypted()?;
        if clean == Some(true) {
            cache::forget(&place)?;
        }
        Ok(encrypted)
    }

    fn unzip(
        zip_file: String,
        dest: String,
        excludes: Option<Data>,
        options: Option<String>,
        template: Option<String>,
        runas: Option<String>,
        trim_output: Option<Data>,
        password: Option<Data>,
        extract_perms: Option<bool>,
    ) -> Result<Vec<String>, String> {
        if [&options, &template, &runas].into_iter().flatten().any(|argument| !argument.is_empty()) {
            return Err("options, template, runas: they are for archive.cmd_unzip".into());
        }
        let password = password.map(|password| password.value()).transpose()?.filter(Value::truthy);
        let password = password.map(|password| password.to_text());
        let excludes = sources(excludes)?;
        let unpacked = states::unzip(&zip_file, &dest, &excludes, password.as_deref(), extract_perms != Some(false))
            .map_err(|why| format!("Exception encountered unpacking zipfile: {why}"))?;
        trimmed(unpacked, trim_output)
    }

    fn tar(
        options: String,
        tarfile: String,
        sources: Option<Data>,
        dest: Option<String>,
        cwd: Option<String>,
        template: Option<String>,
        runas: Option<String>,
    ) -> Result<Vec<String>, String> {
        if options.is_empty() {
            return Err("Tar options can not be empty".into());
        }
        let mut words: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
        words.push(tarfile);
        words.extend(dest.filter(|dest| !dest.is_empty()).map(|dest| ["-C".to_owned(), dest]).into_iter().flatten());
        words.extend(self::sources(sources)?);
        run("tar", words, cwd, template, runas)
    }

    fn gzip(
        sourcefile: String,
        template: Option<String>,
        runas: Option<String>,
        options: Option<String>,
    ) -> Result<Vec<String>, String> {
        run("gzip", options.into_iter().chain([sourcefile]).collect(), None, template, runas)
    }

    fn gunzip(
        gzipfile: String,
        template: Option<String>,
        runas: Option<String>,
        options: Option<String>,
    ) -> Result<Vec<String>, String> {
        run("gunzip", options.into_iter().chain([gzipfile]).collect(), None, template, runas)
    }

    fn cmd_zip(
        zip_file: String,
        sources: Data,
        template: Option<String>,
        cwd: Option<String>,
        runas: Option<String>,
    ) -> Result<Vec<String>, String> {
        let mut words = vec!["-r".to_owned(), zip_file];
        words.extend(self::sources(Some(sources))?);
        run("zip", words, cwd, template, runas)
    }

    fn cmd_unzip(
        zip_file: String,
        dest: String,
        excludes: Option<Data>,
        options: Option<String>,
        template: Option<String>,
        runas: Option<String>,
        trim_output: Option<Data>,
        password: Option<Data>,
    ) -> Result<Vec<String>, String> {
        if password.map(|password| password.value()).transpose()?.is_some_and(|password| password.truthy()) {
            return Err("password: all processes of a host see a program's arguments; archive.unzip takes one".into());
        }
        let mut words: Vec<String> =
            options.iter().flat_map(|options| options.split_whitespace()).map(str::to_owned).collect();
        words.extend([zip_file, "-d".into(), dest]);
        let excludes = sources(excludes)?;
        if !excludes.is_empty() {
            words.push("-x".into());
            words.extend(excludes);
        }
        trimmed(run("unzip", words, None, template, runas)?, trim_output)
    }
}

/// The path of an archive on this host, which may have to be fetched.
fn fetched(name: &str, saltenv: Option<String>) -> Result<(Place, String), String> {
    let saltenv = saltenv.filter(|env| !env.is_empty()).unwrap_or_else(|| "base".into());
    let place = Place::of(name, &saltenv);
    let path = cache::fetch(&place, name, None, true)??;
    if !cache::is_file(&path)? {
        return Err(format!("Failed to cache {name}"));
    }
    Ok((place, path))
}

/// Paths: a list, or names with commas between them.
fn sources(paths: Option<Data>) -> Result<Vec<String>, String> {
    Ok(match paths.map(|paths| paths.value()).transpose()? {
        None | Some(Value::None) => Vec::new(),
        Some(Value::Text(joined)) => joined.split(',').map(|path| path.trim().to_owned()).collect(),
        Some(Value::List(paths)) => paths.iter().map(Value::to_text).collect(),
        Some(other) => vec![other.to_text()],
    })
}

fn run(
    program: &str,
    words: Vec<String>,
    cwd: Option<String>,
    template: Option<String>,
    runas: Option<String>,
) -> Result<Vec<String>, String> {
    if template.is_some_and(|template| !template.is_empty()) {
        return Err("template: a path is not rendered here; render it first".into());
    }
    let mut program = Program::new([program]).args(words).merged();
    if let Some(cwd) = cwd.filter(|cwd| !cwd.is_empty()) {
        program = program.cwd(cwd);
    }
    if let Some(user) = runas.filter(|user| !user.is_empty()) {
        program = program.run_as(user);
    }
    let output = program.run()?;
    brine_guest::host::job::set_retcode(i32::try_from(output.code).unwrap_or(1));
    Ok(output.stdout.lines().map(str::to_owned).collect())
}

/// Salt's `trim_output`: the first so many, and a line that says so.
fn trimmed(mut files: Vec<String>, trim: Option<Data>) -> Result<Vec<String>, String> {
    let count = match trim.map(|trim| trim.value()).transpose()? {
        None | Some(Value::None | Value::Bool(false)) => return Ok(files),
        Some(Value::Bool(true)) => 100,
        Some(count) => brine_accounts::values::integer(&count)
            .and_then(|count| usize::try_from(count).ok())
            .ok_or("trim_output is to be True, False or a number")?,
    };
    if files.len() > count {
        files.truncate(count);
        files.push(format!("List trimmed after {count} files."));
    }
    Ok(files)
}

export!(Module);
