//! A signature file: minisign's blocks of four lines, one for each signer.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minisign_verify::Signature;

use crate::failure::Failure;
use crate::file;

/// Upper bound on the signers of one module, as in the minion.
pub(crate) const MAX_SIGNERS: usize = 8;
/// Lines of one signature: a comment, the signature, the trusted comment, the signature over both.
const LINES: usize = 4;
/// Bytes of a signature: the algorithm, the key number, and Ed25519's 64.
const BYTES: usize = 74;

/// Returns the path `NAME.wasm.minisig`.
pub(crate) fn path_of(wasm: &Path) -> PathBuf {
    file::beside(wasm, ".minisig")
}

/// The four lines of one signer.
#[derive(Clone)]
pub(crate) struct Block {
    /// The lines as in the file, with a line break at the end.
    pub(crate) text: String,
    /// The number of the key that the signature names, in minisign's form.
    pub(crate) key: String,
    pub(crate) signature: Signature,
}

/// The fields of the trusted comment: `timestamp:…\tfile:…\tprehashed\tversion:…`. They are true only if the signature
/// is valid.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Seconds since 1970.
    pub(crate) timestamp: Option<i64>,
    pub(crate) file: Option<String>,
    pub(crate) version: Option<String>,
}

impl Block {
    pub(crate) fn said(&self) -> Said {
        let mut said = Said::default();
        for part in self.signature.trusted_comment().split('\t') {
            match part.split_once(':') {
                Some(("timestamp", value)) => said.timestamp = value.parse().ok(),
                Some(("file", value)) => said.file = Some(value.to_owned()),
                Some(("version", value)) => said.version = Some(value.to_owned()),
                _ => {}
            }
        }
        said
    }
}

impl Said {
    /// Formats the time for people, in UTC.
    pub(crate) fn time(&self) -> Option<String> {
        let time = jiff::Timestamp::from_second(self.timestamp?).ok()?;
        Some(time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
    }
}

/// Reads the signatures beside a module. None if there is no such file.
pub(crate) fn read(wasm: &Path) -> Result<Option<Vec<Block>>, Failure> {
    let path = path_of(wasm);
    if !path.exists() {
        return Ok(None);
    }
    let text = file::text(&path, brine_sandbox::MAX_SIGNATURE, "signature of minisign")?;
    parse(&text).map(Some).map_err(|why| {
        Failure::input(format!(
            "{} is no signature of minisign: {why}; sign again with `salt-module sign {} --key KEY`",
            path.display(),
            wasm.display()
        ))
    })
}

fn parse(text: &str) -> Result<Vec<Block>, String> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() || !lines.len().is_multiple_of(LINES) {
        return Err(format!("it has {} lines, and each signer's are {LINES}", lines.len()));
    }
    if lines.len() / LINES > MAX_SIGNERS {
        return Err(format!("it has more than {MAX_SIGNERS} signers"));
    }
    lines
        .chunks(LINES)
        .enumerate()
        .map(|(index, lines)| block(lines).ok_or(format!("signature {}", index + 1)))
        .collect()
}

fn block(lines: &[&str]) -> Option<Block> {
    let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let signature = Signature::decode(&text).ok()?;
    let bytes: [u8; BYTES] = STANDARD.decode(lines.get(1)?.trim()).ok()?.try_into().ok()?;
    Some(Block { text, key: key_number(bytes[2..10].try_into().ok()?), signature })
}

/// Formats a key number in minisign's form.
pub(crate) fn key_number(bytes: [u8; 8]) -> String {
    format!("{:016X}", u64::from_le_bytes(bytes))
}
