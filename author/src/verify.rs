//! `salt-module verify`

use std::path::Path;

use brine_sandbox::ModuleName;
use minisign_verify::{Error, PublicKey};
use sha2::{Digest, Sha256};

use crate::cli::Verify;
use crate::failure::Failure;
use crate::signatures::{self, Block, Said};
use crate::{file, keys};

/// A key given on the command line.
struct Key {
    /// The key as written on the command line.
    written: String,
    number: String,
    key: PublicKey,
}

pub(crate) fn run(options: &Verify) -> Result<(), Failure> {
    let keys = options.keys.iter().map(|written| key(written)).collect::<Result<Vec<Key>, Failure>>()?;
    if options.at_least == 0 || options.at_least > keys.len() {
        return Err(Failure::usage(format!("--at-least {}: there are {} keys", options.at_least, keys.len())));
    }
    let path = &options.file;
    let name = file::module_name(path)?;
    let wasm = file::read(path)?;
    let shown = path.display();
    let Some(blocks) = signatures::read(path)? else {
        return Err(Failure::failed(format!(
            "{shown} is not signed: there is no {}; sign it with `salt-module sign {shown} --key KEY`, or fetch both files",
            signatures::path_of(path).display()
        )));
    };
    let mut signed = 0;
    let mut lines = vec![format!("{shown}: sha256 {}", hex::encode(Sha256::digest(&wasm)))];
    for block in &blocks {
        match keys.iter().find(|key| key.number == block.key) {
            Some(key) => {
                let said = check(path, &name, &wasm, block, key)?;
                let time = said.time().map(|time| format!(" on {time}")).unwrap_or_default();
                let version = said.version.map(|version| format!(", version {version}")).unwrap_or_default();
                lines.push(format!("  signed by {} (key {}){time}{version}", key.written, key.number));
                signed += 1;
            }
            None => lines.push(format!("  signed, as it says, by key {}, which was not given: not checked", block.key)),
        }
    }
    if signed < options.at_least {
        let by: Vec<&str> = blocks.iter().map(|block| block.key.as_str()).collect();
        let given: Vec<&str> = keys.iter().map(|key| key.number.as_str()).collect();
        let (by, given) = (by.join(", "), given.join(", "));
        return Err(Failure::failed(if signed == 0 {
            format!("{shown} is signed by another key: by {by}, and the given one is {given}")
        } else {
            format!(
                "{shown} is signed by {signed} of the given keys, and {} are asked for: it is signed by {by}, and given are {given}",
                options.at_least
            )
        }));
    }
    say!("{}", lines.join("\n"));
    Ok(())
}

/// Returns the signer's statements, if the signature is valid for this content and this name.
fn check(path: &Path, name: &ModuleName, wasm: &[u8], block: &Block, key: &Key) -> Result<Said, Failure> {
    let shown = path.display();
    key.key.verify(wasm, &block.signature, false).map_err(|error| {
        Failure::failed(match error {
            Error::UnexpectedAlgorithm => format!(
                "{shown} is signed in the old way (minisign -l), which minions do not take; sign again with `salt-module sign {shown} --key KEY`"
            ),
            _ => format!(
                "{shown} is not what {} signed: it was altered, or {} belongs to another content; fetch both again",
                key.written,
                signatures::path_of(path).display()
            ),
        })
    })?;
    let said = block.said();
    match &said.file {
        Some(file) if *file != format!("{name}.wasm") => Err(Failure::failed(format!(
            "{shown} was signed under another name, {}: rename it back, or sign it as {name} if it is yours",
            file.escape_debug()
        ))),
        _ => Ok(said),
    }
}

/// Reads a key from a line or a file.
fn key(written: &str) -> Result<Key, Failure> {
    let path = Path::new(written);
    let line = if path.exists() {
        let text = file::text(path, 4096, "public key")?;
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.find(|line| !line.starts_with("untrusted comment:")).unwrap_or_default().to_owned()
    } else {
        written.to_owned()
    };
    let parsed = minisign::PublicKey::from_base64(&line).ok().zip(PublicKey::from_base64(&line).ok());
    let (number, key) = parsed.ok_or_else(|| {
        Failure::input(if path.exists() {
            format!("{written} is no public key of minisign; `salt-module keygen` makes PREFIX.pub")
        } else {
            format!("{written}: there is no such file, and it is no line of a public key (RWQ…)")
        })
    })?;
    Ok(Key { written: written.to_owned(), number: keys::number(&number), key })
}
