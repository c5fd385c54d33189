//! Appends to a file that others append to at the same time: each piece is written behind what is there when it is written, by one
//! operation of the host's kernel. [`brine_guest::fs::append`] tells where a file ended, and what somebody writes meanwhile is lost.

#![warn(missing_docs)]

#[allow(missing_docs, clippy::all, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({ world: "imports", path: "wit", generate_all });
}

use bindings::wasi::filesystem::preopens::get_directories;
use bindings::wasi::filesystem::types::{
    Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags, filesystem_error_code,
};
use bindings::wasi::io::streams::StreamError;
use brine_guest::fs::{self, Error, Result};
use brine_guest::path::below;

/// Appends bytes to a file, which is made if it is missing. They stay together if the host takes them at once: it takes up to 16 MiB.
///
/// # Errors
/// As [`brine_guest::fs::append`]; when writing fails.
pub fn append(path: &str, mut bytes: &[u8]) -> Result<()> {
    // The kit makes the file, and has a word for all that is wrong with a path.
    fs::append(path)?;
    // As the kit does: the path itself, which a file that was granted alone has; then where its links lead.
    let file = match open(path) {
        Ok(file) => file,
        Err(_) => open(&fs::realpath(path)?)?,
    };
    let stream = file.append_via_stream().map_err(of_code)?;
    loop {
        // What was written has to be over before its error is known.
        let room = loop {
            match stream.check_write().map_err(of_stream)? {
                0 => stream.subscribe().block(),
                room => break usize::try_from(room).unwrap_or(usize::MAX),
            }
        };
        if bytes.is_empty() {
            return Ok(());
        }
        let (piece, rest) = bytes.split_at(bytes.len().min(room));
        stream.write(piece).map_err(of_stream)?;
        stream.flush().map_err(of_stream)?;
        bytes = rest;
    }
}

/// Opens a file in the granted directory that contains it, with this crate's binding of the interface.
fn open(path: &str) -> Result<Descriptor> {
    let roots = get_directories();
    let covering = roots.iter().filter_map(|(dir, root)| below(path, root).map(|rest| (root.len(), dir, rest)));
    let (_, dir, rest) = covering.max_by_key(|(length, ..)| *length).ok_or_else(|| of_code(ErrorCode::NotPermitted))?;
    dir.open_at(PathFlags::SYMLINK_FOLLOW, &rest, OpenFlags::empty(), DescriptorFlags::WRITE).map_err(of_code)
}

fn of_stream(error: StreamError) -> Error {
    match error {
        StreamError::LastOperationFailed(error) => of_code(filesystem_error_code(&error).unwrap_or(ErrorCode::Io)),
        StreamError::Closed => of_code(ErrorCode::Io),
    }
}

fn of_code(code: ErrorCode) -> Error {
    use brine_guest::wasi::filesystem::types::ErrorCode as Of;
    Error::from(match code {
        ErrorCode::Access => Of::Access,
        ErrorCode::NotPermitted => Of::NotPermitted,
        ErrorCode::IsDirectory => Of::IsDirectory,
        ErrorCode::InsufficientSpace => Of::InsufficientSpace,
        ErrorCode::Quota => Of::Quota,
        ErrorCode::FileTooLarge => Of::FileTooLarge,
        ErrorCode::ReadOnly => Of::ReadOnly,
        _ => Of::Io,
    })
}
