//! Verifies standard modules. The package's build signs them with a key made for that build, whose public half is
//! beside them. Altered or added modules are left out.

use std::io;
use std::path::Path;

use super::{SignatureError, SigningKey, verify};
use crate::ModuleName;

/// The file of the key in the folder of standard modules.
const FILE: &str = "standard.pub";
/// Upper bound on its bytes: a comment and a line.
const MAX_FILE: u64 = 4_096;

/// The key of the build. An unsigned package has none.
#[derive(Debug)]
pub(crate) enum StandardKey {
    /// The package has none.
    None,
    /// The package's key.
    Key(SigningKey),
    /// The key is unusable, and so are all standard modules.
    Broken(String),
}

impl StandardKey {
    /// Reads the key from the folder of standard modules.
    pub(crate) fn look(folder: &Path) -> Self {
        match brine_files::read_named_text(&folder.join(FILE), MAX_FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::None,
            Err(error) => Self::Broken(format!("cannot be verified, because {FILE} cannot be read: {error}")),
            Ok(text) => match SigningKey::file(&text, FILE) {
                Some(key) => Self::Key(key),
                None => Self::Broken(format!("cannot be verified, because {FILE} has no key of minisign in it")),
            },
        }
    }

    /// Returns what stands for the key in records of what it verified. The inner one is none where the package has no key, the outer one
    /// where nothing can be verified.
    pub(crate) fn mark(&self) -> Option<Option<String>> {
        match self {
            Self::None => Some(None),
            Self::Key(key) => Some(Some(key.id.to_string())),
            Self::Broken(_) => None,
        }
    }

    /// Checks that a module is as the build made it.
    pub(crate) fn check(&self, name: &ModuleName, wasm: &[u8], signature: Option<&[u8]>) -> Result<(), SignatureError> {
        let error = |why: &str| SignatureError::Standard { name: name.clone(), why: why.to_owned() };
        let refuse = |why: &str| Err(error(why));
        let key = match self {
            Self::None => return Ok(()),
            Self::Key(key) => key,
            Self::Broken(why) => return refuse(why),
        };
        let Some(signature) = signature else { return refuse("is not signed, as all of the package are") };
        for signature in verify::read(name, signature).map_err(|_| error("has a signature that cannot be read"))? {
            match verify::verify(name, wasm, &signature, key) {
                Ok(None) => {}
                Ok(Some(_)) => return Ok(()),
                Err(SignatureError::OtherName { file, .. }) => return refuse(&format!("was signed as {file}")),
                Err(_) => return refuse("is not what was signed when the package was built"),
            }
        }
        refuse("is not signed with the package's key")
    }
}
