//! Keys that sign modules: minisign's key files and their passwords.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minisign::{KeyPair, PublicKey, SecretKey, SecretKeyBox};
use zeroize::Zeroizing;

use crate::cli::{Keygen, Password};
use crate::failure::Failure;
use crate::file;
use crate::signatures::key_number;

/// Upper bound on the bytes of a key file. Those of minisign have a comment and 212 characters.
const MAX_KEY: usize = 4 * 1024;
/// Upper bound on the bytes of a password, as in minisign.
const MAX_PASSWORD: usize = 1024;

/// `salt-module keygen`
pub(crate) fn generate(options: &Keygen) -> Result<(), Failure> {
    let (secret, public) = (file::beside(&options.output, ".key"), file::beside(&options.output, ".pub"));
    for path in [&secret, &public] {
        if path.exists() {
            return Err(Failure::unwritable(
                path,
                "it is there already, and keys are never overwritten; choose another -o PREFIX",
            ));
        }
    }
    let failed = |error: minisign::PError| Failure::failed(format!("no keys: {error}"));
    let pair = if options.no_password {
        KeyPair::generate_unencrypted_keypair()
    } else {
        let password = options.password.read(Ask::New)?;
        KeyPair::generate_encrypted_keypair(Some(password.to_string()))
    };
    let pair = pair.map_err(failed)?;
    let comment = if options.no_password { "minisign secret key" } else { "minisign encrypted secret key" };
    let boxed = Zeroizing::new(pair.sk.to_box(Some(comment)).map_err(failed)?.into_string());
    create(&secret, boxed.as_bytes(), 0o600)?;
    let line = pair.pk.to_base64();
    let text = format!("untrusted comment: minisign public key {}\n{line}\n", number(&pair.pk));
    if let Err(failure) = create(&public, text.as_bytes(), 0o644) {
        // Without its public half, the secret key is useless.
        let _ = std::fs::remove_file(&secret);
        return Err(failure);
    }
    let (secret, public) = (secret.display(), public.display());
    say!("{secret}  the secret key: signs modules, stays with you");
    say!("{public}  the public key: {line}");
    say!("Sign with `salt-module sign NAME.wasm --key {secret}`; give {public} to the owners of minions.");
    Ok(())
}

/// Returns the number of a key in minisign's form.
pub(crate) fn number(key: &PublicKey) -> String {
    key.keynum().try_into().map(key_number).unwrap_or_default()
}

fn create(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = opened.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(|error| Failure::unwritable(path, error))
}

/// Reads a secret key, and asks for its password if it has one.
pub(crate) fn secret(path: &Path, password: &Password) -> Result<SecretKey, Failure> {
    const WHAT: &str = "secret key; `salt-module keygen` and `minisign -G` make them";
    let text = Zeroizing::new(file::text(path, MAX_KEY, WHAT)?);
    let bad = || Failure::input(format!("{} is no {WHAT}", path.display()));
    if text.lines().nth(1).is_some_and(|line| line.trim().len() == PUBLIC_LINE) {
        return Err(Failure::input(format!(
            "{} is a public key; modules are signed with the secret one, which `salt-module keygen` named PREFIX.key",
            path.display()
        )));
    }
    let mode = std::fs::metadata(path).map(|metadata| metadata.permissions().mode()).unwrap_or_default();
    if mode & 0o077 != 0 {
        let path = path.display();
        brine_cli::print::stderr(&format!(
            "salt-module: warning: others may read {path} (mode {:o}): chmod 600 {path}",
            mode & 0o777
        ));
    }
    let line = text.lines().nth(1).unwrap_or_default().trim();
    let bytes = Zeroizing::new(STANDARD.decode(line).unwrap_or_default());
    match bytes.get(..4) {
        // Without a password minisign leaves the checksum empty too, so the crate's parser for boxes does not fit.
        Some(b"Ed\0\0") => SecretKey::from_bytes(&bytes).map_err(|_| bad()),
        Some(b"EdSc") => {
            let password = password.read(Ask::Known)?;
            let boxed = SecretKeyBox::from_string(&text).map_err(|_| bad())?;
            boxed.into_secret_key(Some(password.to_string())).map_err(|_| {
                let path = path.display();
                Failure::failed(format!("{path} cannot be used: the password is not the one it was made with"))
            })
        }
        _ => Err(bad()),
    }
}

/// Length of a public key's line.
const PUBLIC_LINE: usize = 56;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// For a new key, so the password is asked for twice.
    New,
    Known,
}

impl Password {
    fn read(&self, ask: Ask) -> Result<Zeroizing<String>, Failure> {
        let password = match (&self.password_file, &self.password_env) {
            (Some(path), _) if path.as_os_str() == "-" => {
                let mut line = Zeroizing::new(String::new());
                let read = std::io::stdin().read_line(&mut line);
                read.map_err(|error| Failure::unreadable(Path::new("standard input"), error))?;
                first_line(&line)
            }
            (Some(path), _) => first_line(&Zeroizing::new(file::text(path, MAX_KEY, "file with a password")?)),
            (None, Some(variable)) => match std::env::var(variable) {
                Ok(value) => Zeroizing::new(value),
                Err(_) => {
                    return Err(Failure::usage(format!("--password-env: the environment has no variable {variable}")));
                }
            },
            (None, None) => prompt(ask)?,
        };
        match password.len() {
            0 if ask == Ask::New => Err(Failure::usage("the password is empty; --no-password makes a key without one")),
            1..=MAX_PASSWORD | 0 => Ok(password),
            _ => Err(Failure::usage(format!("the password is longer than {MAX_PASSWORD} bytes"))),
        }
    }
}

fn first_line(text: &str) -> Zeroizing<String> {
    Zeroizing::new(text.lines().next().unwrap_or_default().to_owned())
}

fn prompt(ask: Ask) -> Result<Zeroizing<String>, Failure> {
    let read = |text: &str| {
        rpassword::prompt_password(text).map(Zeroizing::new).map_err(|error| {
            let or = if ask == Ask::New { ", --no-password" } else { "" };
            Failure::usage(format!(
                "there is no terminal to ask for the password on ({error}): use --password-file, --password-env{or}"
            ))
        })
    };
    let password = read("Password of the secret key: ")?;
    if ask == Ask::New && !password.is_empty() && *password != *read("Once more: ")? {
        return Err(Failure::usage("the two passwords are not the same; no key was made"));
    }
    Ok(password)
}
