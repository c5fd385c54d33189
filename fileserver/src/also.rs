//! Several small files in one answer (PROTOCOL §6.5.1). A request about one file may name further ones in the field `also`; a master that
//! does not know the field answers about the one file alone. Each further file is answered by the code for a single request, so what that
//! refuses is refused here.

use brine_protocol::value::{Value, ValueExt, map};

use crate::tree::{FileRequest, FileTree};

/// The field with the further paths in the request. `_serve_file` answers in a field of this name, `_file_hash_and_stat` in a third entry.
pub const ALSO: &str = "also";
/// Upper bound on the further paths of a request. The others are not answered.
pub const MAX_ALSO: usize = 255;
/// Upper bound on the bytes of the further files in one answer.
pub const MAX_ALSO_BYTES: usize = 1 << 20;
/// Upper bound on the bytes of all further files that are hashed for one answer, so that it does not take longer than a client waits.
const MAX_HASHED: u64 = 64 << 20;

impl FileTree {
    /// Adds the answers about the further files of a request: an array with one entry a path, nil where the file has to be asked for alone.
    pub(crate) fn answer_also(&self, what: FileRequest, load: &Value, answer: Value) -> Value {
        let Some(paths) = load.get(ALSO).and_then(ValueExt::list) else { return answer };
        match (what, answer) {
            (FileRequest::HashAndStat, Value::Array(mut parts)) => {
                let mut left = MAX_HASHED;
                parts.push(self.each(load, paths, |load| {
                    let size = self.find(load).map_or(0, |found| found.metadata.len());
                    left = left.checked_sub(size)?;
                    Some(self.answer_one(what, load))
                }));
                Value::Array(parts)
            }
            (FileRequest::Serve, mut answer @ Value::Map(_)) => {
                let mut left = MAX_ALSO_BYTES;
                let further = self.each(load, paths, |load| {
                    let size = self.find(load).map_or(0, |found| found.metadata.len());
                    usize::try_from(size).ok().filter(|size| *size <= left)?;
                    let one = self.answer_one(what, load);
                    // The file may have grown since its size was read.
                    left = left.checked_sub(one.get_bytes("data").map_or(0, <[u8]>::len))?;
                    Some(one)
                });
                answer.insert(ALSO, further);
                answer
            }
            (_, answer) => answer,
        }
    }

    fn each(&self, load: &Value, paths: &[Value], mut answer: impl FnMut(&Value) -> Option<Value>) -> Value {
        let saltenv = load.get("saltenv").unwrap_or(&Value::Nil);
        let about = |path: &Value| {
            let load = map([("path", path.clone()), ("saltenv", saltenv.clone()), ("loc", Value::from(0))]);
            answer(&load).unwrap_or(Value::Nil)
        };
        Value::Array(paths.iter().take(MAX_ALSO).map(about).collect())
    }
}
