//! The module `cp`: files of the master's file server. The functions and their documentation are in `wit/world.wit`.
//!
//! - [`url`]: `salt://` URLs
//! - [`fetch`]: fetches files from the master
//! - [`push`]: sends files of this host to the master
//! - [`recv`]: receives files from salt-cp

wit_bindgen::generate!({
    world: "cp",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/metadata@1.0.0": brine_guest::host::metadata,
        "wasi:filesystem/types@0.2.0": brine_guest::wasi::filesystem::types,
        "wasi:filesystem/preopens@0.2.0": brine_guest::wasi::filesystem::preopens,
    },
});

use std::collections::BTreeMap;

mod fetch;
mod push;
mod recv;
mod url;

use brine_guest::host::config;
use brine_guest::host::files::{self, Kind};
use brine_guest::{Value, fnmatch, fs, path, salt_files};

struct Module;

/// The name of an SLS file: `web.nginx` of `web/nginx.sls`, `web` of `web/init.sls`. None for other files.
fn sls_name(path: &str) -> Option<String> {
    let name = path.strip_suffix(".sls")?;
    Some(name.strip_suffix("/init").unwrap_or(name).replace('/', "."))
}

impl Guest for Module {
    fn get_file(
        path: String,
        dest: String,
        saltenv: Option<String>,
        makedirs: Option<bool>,
        template: Option<Data>,
        _gzip: Option<Data>,
    ) -> Result<Data, String> {
        not_rendered(template)?;
        let source = url::salt(&path, &environment(saltenv))?;
        Ok(fetch::file(&source, &dest, makedirs == Some(true))?.into())
    }

    fn get_dir(
        path: String,
        dest: String,
        saltenv: Option<String>,
        template: Option<Data>,
        _gzip: Option<Data>,
    ) -> Result<Vec<String>, String> {
        not_rendered(template)?;
        fetch::dir(&url::salt(&path, &environment(saltenv))?, &dest)
    }

    fn get_file_str(path: String, saltenv: Option<String>) -> Result<Data, String> {
        Ok(fetch::text(&url::salt(&path, &environment(saltenv))?)?.into())
    }

    fn get_url(
        path: String,
        dest: Data,
        saltenv: Option<String>,
        makedirs: Option<bool>,
        source_hash: Option<Data>,
    ) -> Result<Data, String> {
        no_source_hash(source_hash)?;
        let source = url::salt(&path, &environment(saltenv))?;
        Ok(match dest.value()? {
            Value::Text(dest) => fetch::file(&source, &dest, makedirs == Some(true))?,
            _ => fetch::text(&source)?,
        }
        .into())
    }

    fn cache_file(
        path: String,
        saltenv: Option<String>,
        source_hash: Option<Data>,
        _verify_ssl: Option<bool>,
        _use_etag: Option<bool>,
    ) -> Result<Data, String> {
        no_source_hash(source_hash)?;
        cache(&path, &environment(saltenv))
    }

    fn cache_files(paths: Data, saltenv: Option<String>) -> Result<Vec<Data>, String> {
        let saltenv = environment(saltenv);
        let paths = match paths.value()? {
            Value::List(paths) => paths.iter().map(Value::to_text).collect(),
            paths => paths.to_text().split(',').map(|path| path.trim().to_owned()).collect::<Vec<_>>(),
        };
        cache_each(&paths, &saltenv)
    }

    fn cache_dir(
        path: String,
        saltenv: Option<String>,
        include_empty: Option<bool>,
        include_pat: Option<String>,
        exclude_pat: Option<String>,
    ) -> Result<Vec<String>, String> {
        if include_empty == Some(true) {
            return Err("include_empty: the minion's cache has files only".into());
        }
        for pattern in [&include_pat, &exclude_pat].into_iter().flatten() {
            if pattern.starts_with("E@") {
                return Err(format!("{pattern}: patterns are globs here, not regular expressions"));
            }
        }
        let source = url::salt(&path, &environment(saltenv))?;
        let dir = format!("{}/", source.path.trim_end_matches('/'));
        let wanted = |path: &&String| {
            path.starts_with(&dir)
                && include_pat.as_ref().is_none_or(|pattern| fnmatch(pattern, path))
                && !exclude_pat.as_ref().is_some_and(|pattern| fnmatch(pattern, path))
        };
        let mut paths = files::list(&source.saltenv, None, Kind::Files)?;
        paths.retain(|path| wanted(&path));
        Ok(salt_files::cache_all(&paths, &source.saltenv)?.into_iter().flatten().collect())
    }

    fn cache_master(saltenv: Option<String>) -> Result<Vec<Data>, String> {
        let saltenv = environment(saltenv);
        let paths = files::list(&saltenv, None, Kind::Files)?;
        Ok(salt_files::cache_all(&paths, &saltenv)?.into_iter().map(found).collect())
    }

    fn cache_dest(url: String, saltenv: Option<String>) -> Result<String, String> {
        match url::parse(&url, &environment(saltenv)) {
            Some(source) => cache_path(&source),
            None if url.contains("://") => Err(format!("Unsupported path: {url}")),
            None => Ok(url),
        }
    }

    fn is_cached(path: String, saltenv: Option<String>) -> Result<String, String> {
        let saltenv = environment(saltenv);
        let source =
            url::parse(&path, &saltenv).unwrap_or(url::Source { path: path.trim_start_matches('/').into(), saltenv });
        let path = cache_path(&source)?;
        match fs::stat(&path, true) {
            Ok(_) => Ok(path),
            Err(fs::Error::NotFound) => Ok(String::new()),
            Err(error) => Err(error.at(&path)),
        }
    }

    fn envs() -> Result<Vec<String>, String> {
        files::envs()
    }

    fn list_master(saltenv: Option<String>, prefix: Option<String>) -> Result<Vec<String>, String> {
        files::list(&environment(saltenv), prefix.as_deref(), Kind::Files)
    }

    fn list_master_dirs(saltenv: Option<String>, prefix: Option<String>) -> Result<Vec<String>, String> {
        files::list(&environment(saltenv), prefix.as_deref(), Kind::Dirs)
    }

    fn list_states(saltenv: Option<String>) -> Result<Vec<String>, String> {
        let all = files::list(&environment(saltenv), None, Kind::Files)?;
        let mut names: Vec<String> = all.iter().filter_map(|path| sls_name(path)).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn hash_file(path: String, saltenv: Option<String>) -> Result<Data, String> {
        let hash =
            |hash_type: &str, hsum: String| Value::dict([("hsum", hsum.into()), ("hash_type", hash_type.into())]);
        if let Some(source) = url::parse(&path, &environment(saltenv)) {
            let digest = files::hash(&source.path, &source.saltenv)?;
            return Ok(digest.map_or_else(|| "".into(), |digest| hash(&digest.hash_type, digest.hsum)).into());
        }
        match fs::stat(&path, true) {
            Ok(stat) if stat.kind == fs::Kind::Regular => {}
            Ok(_) | Err(fs::Error::NotFound) => return Ok(Value::Dict(Vec::new()).into()),
            Err(error) => return Err(error.at(&path)),
        }
        Ok(hash("sha256", fetch::sha256(&path)?).into())
    }

    fn stat_file(path: String, _saltenv: Option<String>, octal: Option<bool>) -> Result<Data, String> {
        if path.starts_with("salt://") {
            return Err(format!("{path}: the permissions of the master's files stay with the master"));
        }
        match fs::stat(&path, true) {
            Ok(stat) if octal == Some(false) => Ok(Value::Int((stat.mode | 0o100_000).into()).into()),
            Ok(stat) => Ok(format!("{:04o}", stat.mode & 0o7777).into()),
            Err(fs::Error::NotFound) => Ok(Value::None.into()),
            Err(error) => Err(error.at(&path)),
        }
    }

    fn push(
        path: String,
        keep_symlinks: Option<bool>,
        upload_path: Option<String>,
        remove_source: Option<bool>,
    ) -> Result<bool, String> {
        push::file(&path, keep_symlinks == Some(true), upload_path.as_deref(), remove_source == Some(true))
    }

    fn push_dir(path: String, glob: Option<String>, upload_path: Option<String>) -> Result<bool, String> {
        push::dir(&path, glob.as_deref(), upload_path.as_deref())
    }

    fn recv(files: Data, dest: String) -> Result<Data, String> {
        match files.value()? {
            Value::Dict(files) => Ok(recv::whole(&files, &dest)?.into()),
            _ => Err("files: it is no dict of names and contents".into()),
        }
    }

    fn recv_chunked(
        dest: String,
        chunk: Data,
        append: Option<bool>,
        compressed: Option<bool>,
        mode: Option<Data>,
    ) -> Result<Data, String> {
        let mode = match mode.map(|mode| mode.value()).transpose()? {
            None | Some(Value::None) => None,
            Some(Value::Int(mode)) => Some(u32::try_from(mode).map_err(|_| "mode: it is no mode of a file")?),
            Some(_) => return Err("mode: it is no number".into()),
        };
        let packed = match chunk.value()? {
            Value::None => return Ok(recv::dir(&dest)?.into()),
            Value::Text(text) => text.into_bytes(),
            Value::Bytes(bytes) => bytes,
            _ => return Err("chunk: it is no text".into()),
        };
        Ok(recv::chunk(&dest, &packed, append == Some(true), compressed != Some(false), mode)?.into())
    }
}

/// The named environment, or the minion's own.
fn environment(saltenv: Option<String>) -> String {
    let named = saltenv.filter(|name| !name.is_empty());
    let own = || config::get("saltenv").and_then(|own| own.value().ok()).and_then(|own| own.text().map(str::to_owned));
    named.or_else(|| own().filter(|name| !name.is_empty())).unwrap_or_else(|| "base".into())
}

fn not_rendered(template: Option<Data>) -> Result<(), String> {
    match template.map(|template| template.value()).transpose()? {
        Some(template) if template.truthy() => Err("template: a path is not rendered here; render it first".into()),
        _ => Ok(()),
    }
}

fn no_source_hash(hash: Option<Data>) -> Result<(), String> {
    match hash.map(|hash| hash.value()).transpose()? {
        Some(hash) if hash.truthy() => {
            Err("source_hash: what the master serves is checked by the master's own hash".into())
        }
        _ => Ok(()),
    }
}

/// A path, or Salt's value for a missing file.
fn found(path: Option<String>) -> Data {
    path.map_or_else(|| false.into(), Data::from)
}

/// Fetches a file into the minion's cache. A path on this host is returned unchanged.
fn cache(url: &str, saltenv: &str) -> Result<Data, String> {
    if url.starts_with('/') {
        return Ok(url.into());
    }
    let source = url::salt(url, saltenv)?;
    Ok(found(files::cache(&source.path, &source.saltenv)?))
}

/// As [`cache`] for each, with those of an environment together.
fn cache_each(urls: &[String], saltenv: &str) -> Result<Vec<Data>, String> {
    let mut cached: Vec<Option<Data>> = Vec::with_capacity(urls.len());
    let mut by_environment: BTreeMap<String, (Vec<usize>, Vec<String>)> = BTreeMap::new();
    for (at, url) in urls.iter().enumerate() {
        if url.starts_with('/') {
            cached.push(Some(url.as_str().into()));
            continue;
        }
        let source = url::salt(url, saltenv)?;
        let (places, paths) = by_environment.entry(source.saltenv).or_default();
        places.push(at);
        paths.push(source.path);
        cached.push(None);
    }
    for (saltenv, (places, paths)) in by_environment {
        for (at, path) in places.into_iter().zip(salt_files::cache_all(&paths, &saltenv)?) {
            cached[at] = Some(found(path));
        }
    }
    Ok(cached.into_iter().map(|one| one.unwrap_or_else(|| false.into())).collect())
}

/// The path of a master's file in the minion's cache.
fn cache_path(source: &url::Source) -> Result<String, String> {
    let cachedir = config::get("cachedir").map(|cachedir| cachedir.value()).transpose()?;
    let cachedir = cachedir.as_ref().and_then(Value::text).ok_or("the minion tells no cachedir")?;
    let below = path::normpath(&format!("{}/{}", source.saltenv, source.path.trim_start_matches('|')));
    if below.starts_with("..") || below.starts_with('/') {
        return Err(format!("{} leads out of the cache", source.path));
    }
    Ok(path::join(&path::join(cachedir, "files"), &below))
}

export!(Module);
