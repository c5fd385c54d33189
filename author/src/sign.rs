//! `salt-module sign`

use std::io::Cursor;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use minisign::{PublicKey, SecretKey};

use crate::cli::Sign;
use crate::failure::Failure;
use crate::signatures::{self, MAX_SIGNERS};
use crate::{file, keys};

pub(crate) fn run(options: &Sign) -> Result<(), Failure> {
    // Checked before the password is asked for: either all modules are signed or none.
    for path in &options.files {
        file::module_name(path)?;
        content(path)?;
    }
    let key = keys::secret(&options.key, &options.password)?;
    options.files.iter().try_for_each(|path| sign(path, &key, options.add))
}

/// Signs one module.
pub(crate) fn sign(path: &Path, key: &SecretKey, add: bool) -> Result<(), Failure> {
    let name = file::module_name(path)?;
    let (wasm, version) = content(path)?;
    let failed = |error: minisign::PError| Failure::failed(format!("{} was not signed: {error}", path.display()));
    let public = PublicKey::from_secret_key(key).map_err(failed)?;
    let number = keys::number(&public);

    let before = match (add, signatures::read(path)) {
        (true, before) => before?.unwrap_or_default(),
        (false, before) => before.ok().flatten().unwrap_or_default(),
    };
    // A new signature replaces the same key's earlier one.
    let (own, others): (Vec<_>, Vec<_>) = before.into_iter().partition(|block| block.key == number);
    if add && others.len() >= MAX_SIGNERS {
        return Err(Failure::input(format!("{} has {MAX_SIGNERS} signers, and no minion reads more", path.display())));
    }

    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(|time| time.as_secs()).unwrap_or_default();
    let mut comment = format!("timestamp:{now}\tfile:{name}.wasm\tprehashed");
    if let Some(version) = &version {
        comment.push_str(&format!("\tversion:{version}"));
    }
    let untrusted = "signature from minisign secret key";
    let signature =
        minisign::sign(Some(&public), key, Cursor::new(&wasm), Some(&comment), Some(untrusted)).map_err(failed)?;
    let mut text: String = if add { others.iter().map(|block| block.text.as_str()).collect() } else { String::new() };
    text.push_str(&signature.into_string());
    file::write(&signatures::path_of(path), text.as_bytes())?;

    let version = version.map(|version| format!(" version {version}")).unwrap_or_default();
    let beside = match (add, others.len()) {
        (_, 0) => String::new(),
        (true, n) => format!(", beside {n} other{}", if n == 1 { "" } else { "s" }),
        (false, n) => format!(", in place of {n} other signer{} (--add keeps them)", if n == 1 { "" } else { "s" }),
    };
    let again = if own.is_empty() { "" } else { " again" };
    say!("{}: {name}{version} signed{again} by key {number}{beside}", signatures::path_of(path).display());
    Ok(())
}

/// Returns the module and its version, or why it is not a module.
fn content(path: &Path) -> Result<(Vec<u8>, Option<String>), Failure> {
    let wasm = file::read(path)?;
    let version = brine_component::version(&wasm)
        .map_err(|error| Failure::input(format!("{} {error}; only modules are signed", path.display())))?;
    Ok((wasm, version))
}
