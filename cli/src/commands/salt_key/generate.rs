//! `--gen-keys` and `--gen-signature`: generates key pairs, and the signature by which minions trust a new key of the
//! master.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use brine_protocol::config::{ConfigError, settings};
use brine_protocol::exit;
use brine_protocol::files;
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{PrivateKey, PrivateOps as _, PublicKey, SignAlg};
use brine_protocol::value::{self, Value};

use super::{Command, SaltKeyArgs};
use crate::commandline::misuse;
use crate::{Failure, Outcome};

impl Command<'_> {
    /// `--gen-keys`: writes a key pair into files of its own; an existing pair stays.
    pub(super) fn generate(&mut self, name: &str) -> Outcome {
        if name.parse::<MinionId>().is_err() {
            return Err(misuse::<SaltKeyArgs>(&format!("'{name}' is not a valid name for a key")));
        }
        let folder: &Path = &self.args.gen_keys_dir;
        let cannot = |error: &dyn std::fmt::Display| {
            let text = format!("salt-key: cannot make the key pair {name} in {}: {error}", folder.display());
            Failure::new(exit::CANT_CREATE, text)
        };
        std::fs::create_dir_all(folder).map_err(|error| cannot(&error))?;
        let key = self.key_pair(folder, name).map_err(|error| cannot(&error))?;
        self.print_return(key.public().fingerprint().into());
        Ok(exit::OK)
    }

    /// The key pair with this name; generates it if it is missing.
    fn key_pair(&self, folder: &Path, name: &str) -> Result<PrivateKey, String> {
        let (private, public) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.pub")));
        let key = if private.exists() {
            PrivateKey::load(&private).map_err(|error| error.to_string())?
        } else {
            let key = PrivateKey::generate(self.args.keysize).map_err(|error| error.to_string())?;
            key.write_private(&private).map_err(|error| error.to_string())?;
            self.give(&private).map_err(|error| error.to_string())?;
            key
        };
        key.public().write_public(&public).map_err(|error| error.to_string())?;
        self.give(&public).map_err(|error| error.to_string())?;
        Ok(key)
    }

    /// `--gen-signature`: signs the master's public key or that of `--pub`, with the key of `--priv` or the master's
    /// signing key.
    pub(super) fn sign(&mut self) -> Outcome {
        match self.signature() {
            Ok(()) => {
                self.print_return(true.into());
                Ok(exit::OK)
            }
            Err(why) => {
                self.print_return(why.as_str().into());
                Ok(exit::GENERIC)
            }
        }
    }

    fn signature(&self) -> Result<(), String> {
        let (args, pki) = (self.args, &self.opts.pki_dir);
        let given = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        let public = match given(&args.public) {
            Some(path) if !path.is_file() => return Err(format!("Public-key {} does not exist", path.display())),
            Some(path) => Some(path),
            None => Some(pki.join("master.pub")).filter(|path| path.is_file()),
        };
        let wrong = |error: ConfigError| error.to_string();
        let own = self.config.get(settings::MASTER_SIGN_KEY_NAME).map_err(wrong)?;
        let private = match given(&args.private) {
            Some(path) if !path.is_file() => return Err(format!("Private-key {} does not exist", path.display())),
            Some(path) => Some(path),
            None => Some(pki.join(format!("{own}.pem"))).filter(|path| path.is_file()),
        };
        let public = public.ok_or("No usable public-key found");
        let key = match private {
            Some(path) => PrivateKey::load(&path).map_err(|error| error.to_string())?,
            None if !args.auto_create => return Err("No usable private-key found".to_owned()),
            None if own.parse::<MinionId>().is_err() => {
                return Err(format!("master_sign_key_name: '{own}' is not a valid name for a key"));
            }
            // Without a public key to sign, no signing key is generated.
            None if public.is_err() => return Err("No usable public-key found".to_owned()),
            None => self.key_pair(pki, &own)?,
        };
        let public = PublicKey::load(&public?).map_err(|error| error.to_string())?;

        let id = self.config.get(settings::ID).map_err(wrong)?;
        let name = self.config.find(settings::MASTER_PUBKEY_SIGNATURE).map_err(wrong)?;
        let name = name.unwrap_or_else(|| format!("{id}_pubkey_signature"));
        let path = given(&args.signature_path).unwrap_or_else(|| pki.clone()).join(name);
        if path.exists() {
            return Err(format!("{} already exists: remove it to make a new one", path.display()));
        }
        let algorithm: SignAlg = self.config.get_parsed(settings::PUBLISH_SIGNING_ALGORITHM).map_err(wrong)?;
        let signature = key.sign(algorithm, public.clean_pem().as_bytes()).map_err(|error| error.to_string())?;
        let text = format!("{}\n", base64::engine::general_purpose::STANDARD.encode(signature));
        let written = files::write_synced(&path, text.as_bytes(), 0o644).and_then(|()| self.give(&path));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Prints the result of an action that lists no keys, in Salt's form.
    fn print_return(&mut self, ret: Value) {
        self.printer.show(&value::map([("return", ret)]), "key", 0);
    }
}
