//! A signature's file: minisign's blocks of four lines, one for each signer.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minisign_verify::Signature;

use crate::failure::Failure;
use crate::file;

/// Signers of one module, as the minion reads them.
pub(crate) const MAX_SIGNERS: usize = 8;
/// Lines of one signature: a comment, the signature, the trusted comment, the signature of both.
const LINES: usize = 4;
/// Bytes of a signature: algorithm, number of the key, Ed25519's 64.
const BYTES: usize = 74;

/// `NAME.wasm.minisig`
pub(crate) fn path_of(wasm: &Path) -> PathBuf {
    file::beside(wasm, ".minisig")
}

/// One signer's four lines.
#[derive(Clone)]
pub(crate) struct Block {
    /// As they are in the file, with a line break at the end.
    pub(crate) text: String,
    /// The number of the key that it says it is by, as minisign writes it.
    pub(crate) key: String,
    pub(crate) signature: Signature,
}

/// What a signer said beside the content: `timestamp:…\tfile:…\tprehashed\tversion:…`. Only true where the signature holds.
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
    /// The time in UTC, as people read it.
    pub(crate) fn time(&self) -> Option<String> {
        let time = jiff::Timestamp::from_second(self.timestamp?).ok()?;
        Some(time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
    }
}

/// The signatures beside a module; none where there is no such file.
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

/// As minisign shows it.
pub(crate) fn key_number(bytes: [u8; 8]) -> String {
    format!("{:016X}", u64::from_le_bytes(bytes))
}
