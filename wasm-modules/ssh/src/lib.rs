//! The module `ssh`: public keys of users, and keys of known hosts. The functions and their documentation are in
//! `wit/world.wit`, the files in [`brine_formats`]; the states are in the modules `ssh_auth` and `ssh_known_hosts`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "ssh",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

use brine_formats::accounts::Account;
use brine_formats::authorized_keys::{self, File, Key, Wanted};
use brine_formats::keyscan::{self, Asked};
use brine_formats::{key_file, known_hosts};
use brine_guest::Value;
use wasi::random::random::get_random_u64;

struct Module;

impl Guest for Module {
    fn auth_keys(user: Option<Data>, config: Option<String>, kind: Option<String>) -> Result<Data, String> {
        let of = |user: &str| -> Result<Option<Value>, String> {
            let keys = match File::open(user, config.as_deref(), kind.as_deref()) {
                Ok(file) => file.keys()?,
                Err(_) => return Ok(None),
            };
            let entries = keys.iter().map(|key| (key.key.as_str().into(), key.value())).collect();
            Ok(Some(Value::Dict(entries)))
        };
        let users = match user.map(|user| user.value()).transpose()?.filter(Value::truthy) {
            None => Account::names()?,
            Some(Value::List(users)) => users.iter().map(Value::to_text).collect(),
            Some(user) => return Ok(of(&user.to_text())?.unwrap_or_else(|| Value::dict([])).into()),
        };
        let mut all = Vec::new();
        for user in users {
            if let Some(keys) = of(&user)?.filter(Value::truthy) {
                all.push((user.into(), keys));
            }
        }
        Ok(Value::Dict(all).into())
    }

    fn check_key(
        user: String,
        key: String,
        enc: String,
        comment: Data,
        options: Data,
        config: Option<String>,
        _cache_keys: Option<Data>,
        kind: Option<String>,
    ) -> Result<String, String> {
        let (comment, options) = (comment.value()?.to_text(), texts(Some(&options))?);
        let wanted = Wanted { key: &key, enc: &enc, comment: &comment, options: &options };
        Ok(File::open(&user, config.as_deref(), kind.as_deref())?.check(&wanted)?.text().into())
    }

    fn check_key_file(
        user: String,
        source: String,
        config: Option<String>,
        saltenv: Option<String>,
        kind: Option<String>,
    ) -> Result<Data, String> {
        let Some(text) = key_file::load(&source, saltenv.as_deref().unwrap_or("base"))? else {
            return Ok(Value::dict([]).into());
        };
        let file = File::open(&user, config.as_deref(), kind.as_deref())?;
        let status = |key: &Key| Ok::<_, String>((key.key.as_str().into(), file.check(&wanted(key))?.text().into()));
        let keys = authorized_keys::keys(&text, kind.as_deref())?;
        Ok(Value::Dict(keys.iter().map(status).collect::<Result<_, _>>()?).into())
    }

    fn set_auth_key(
        user: String,
        key: String,
        enc: Option<String>,
        comment: Option<String>,
        options: Option<Data>,
        config: Option<String>,
        _cache_keys: Option<Data>,
        kind: Option<String>,
    ) -> Result<String, String> {
        let options = texts(options.as_ref())?;
        let wanted = Wanted {
            key: &key,
            enc: enc.as_deref().unwrap_or("ssh-rsa"),
            comment: comment.as_deref().unwrap_or_default(),
            options: &options,
        };
        let mut file = File::open(&user, config.as_deref(), kind.as_deref())?;
        let done = file.set(&wanted)?;
        file.save()?;
        Ok(done.text().into())
    }

    fn set_auth_key_from_file(
        user: String,
        source: String,
        config: Option<String>,
        saltenv: Option<String>,
        kind: Option<String>,
        options: Option<Data>,
    ) -> Result<String, String> {
        let text = key_file::load(&source, saltenv.as_deref().unwrap_or("base"))?;
        let text = text.ok_or("Failed to pull key file from salt file server")?;
        let options = texts(options.as_ref())?;
        let mut file = File::open(&user, config.as_deref(), kind.as_deref())?;
        let done = file.set_all(&text, &options)?;
        file.save()?;
        Ok(done.into())
    }

    fn rm_auth_key(user: String, key: String, config: Option<String>, kind: Option<String>) -> Result<String, String> {
        let mut file = File::open(&user, config.as_deref(), kind.as_deref())?;
        let gone = file.remove(&key)?;
        file.save()?;
        Ok(authorized_keys::removed(gone).into())
    }

    fn rm_auth_key_from_file(
        user: String,
        source: String,
        config: Option<String>,
        saltenv: Option<String>,
        kind: Option<String>,
    ) -> Result<String, String> {
        let text = key_file::load(&source, saltenv.as_deref().unwrap_or("base"))?;
        let text = text.ok_or("Failed to pull key file from salt file server")?;
        let mut file = File::open(&user, config.as_deref(), kind.as_deref())?;
        let done = file.remove_all(&text)?;
        file.save()?;
        Ok(done.into())
    }

    fn get_known_host_entries(
        user: Option<String>,
        hostname: String,
        config: Option<String>,
        port: Option<i64>,
        kind: Option<String>,
    ) -> Result<Data, String> {
        let file = match known_hosts::File::open(user.as_deref(), config.as_deref()) {
            Ok(file) => file,
            Err(why) => return Ok(failed(&why)),
        };
        let found = file.entries(&known_hosts::name(&hostname, port)?, kind.as_deref())?;
        Ok(known_hosts::value(&found).into())
    }

    fn recv_known_host_entries(
        hostname: String,
        enc: Option<String>,
        port: Option<i64>,
        hash_known_hosts: Option<bool>,
        timeout: Option<u64>,
        kind: Option<String>,
    ) -> Result<Data, String> {
        let asked = Asked {
            hostname: &hostname,
            enc: enc.as_deref(),
            port,
            hash: hash_known_hosts != Some(false),
            timeout: timeout.unwrap_or(5),
            fingerprint_hash_type: kind.as_deref(),
        };
        Ok(known_hosts::value(&asked.keys()?).into())
    }

    fn check_known_host(
        user: Option<String>,
        hostname: Option<String>,
        key: Option<String>,
        fingerprint: Option<String>,
        config: Option<String>,
        port: Option<i64>,
        kind: Option<String>,
    ) -> Result<Data, String> {
        let Some(hostname) = hostname.filter(|hostname| !hostname.is_empty()) else {
            return Ok(failed("hostname argument required"));
        };
        let file = match known_hosts::File::open(user.as_deref(), config.as_deref()) {
            Ok(file) => file,
            Err(why) => return Ok(failed(&why)),
        };
        let known = file.entries(&known_hosts::name(&hostname, port)?, kind.as_deref())?;
        Ok(known_hosts::check(&known, key.as_deref(), fingerprint.as_deref()).into())
    }

    fn set_known_host(
        user: Option<String>,
        hostname: Option<String>,
        fingerprint: Option<String>,
        key: Option<String>,
        port: Option<i64>,
        enc: Option<String>,
        config: Option<String>,
        hash_known_hosts: Option<bool>,
        timeout: Option<u64>,
        kind: Option<String>,
    ) -> Result<Data, String> {
        let Some(hostname) = hostname.filter(|hostname| !hostname.is_empty()) else {
            return Ok(failed("hostname argument required"));
        };
        let file = match known_hosts::File::open(user.as_deref(), config.as_deref()) {
            Ok(file) => file,
            Err(why) => return Ok(failed(&why)),
        };
        let wanted = keyscan::Wanted {
            asked: Asked {
                hostname: &hostname,
                enc: enc.as_deref(),
                port,
                hash: hash_known_hosts != Some(false),
                timeout: timeout.unwrap_or(5),
                fingerprint_hash_type: kind.as_deref(),
            },
            key: key.as_deref(),
            fingerprint: fingerprint.as_deref(),
        };
        Ok(wanted.set(file, salt)?.value().into())
    }

    fn rm_known_host(
        user: Option<String>,
        hostname: Option<String>,
        config: Option<String>,
        port: Option<i64>,
    ) -> Result<Data, String> {
        let Some(hostname) = hostname.filter(|hostname| !hostname.is_empty()) else {
            return Ok(failed("hostname argument required"));
        };
        let file = match known_hosts::File::open(user.as_deref(), config.as_deref()) {
            Ok(file) => file,
            Err(why) => return Ok(failed(&why)),
        };
        if !file.is_there() {
            return Ok(failed(&format!("Known hosts file {} does not exist", file.path)));
        }
        let comment = file.forget(&known_hosts::name(&hostname, port)?)?;
        Ok(Value::dict([("status", "removed".into()), ("comment", comment.into())]).into())
    }

    fn hash_known_hosts(user: Option<String>, config: Option<String>) -> Result<Data, String> {
        let mut file = match known_hosts::File::open(user.as_deref(), config.as_deref()) {
            Ok(file) => file,
            Err(why) => return Ok(failed(&why)),
        };
        if !file.is_there() {
            return Ok(failed(&format!("Known hosts file {} does not exist", file.path)));
        }
        let path = file.path.clone();
        file.hash(salt);
        file.save(true)?;
        let comment = format!("{path} updated.\nOriginal contents retained as {path}.old");
        Ok(Value::dict([("status", "updated".into()), ("comment", comment.into())]).into())
    }
}

fn wanted(key: &Key) -> Wanted<'_> {
    Wanted { key: &key.key, enc: &key.enc, comment: &key.comment, options: &key.options }
}

fn failed(why: &str) -> Data {
    Value::dict([("status", "error".into()), ("error", why.into())]).into()
}

fn salt() -> [u8; 20] {
    known_hosts::salt(get_random_u64)
}

/// A list of texts, or one; none of what is not given.
fn texts(value: Option<&Data>) -> Result<Vec<String>, String> {
    Ok(match value.map(Data::value).transpose()?.unwrap_or_default() {
        Value::List(items) => items.iter().map(Value::to_text).collect(),
        value if !value.truthy() => Vec::new(),
        one => vec![one.to_text()],
    })
}

#[cfg(target_family = "wasm")]
export!(Module);
