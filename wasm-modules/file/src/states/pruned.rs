//! `file.pruned`: removes a directory that is empty, with `recurse` empty ones below it first.

use brine_guest::Value;
use brine_guest::changes::{self, Kind};
use brine_guest::states::is_dry_run;

use super::{Arguments, Ret};
use crate::change::rmdir;

pub(crate) fn pruned(name: &str, args: &Arguments) -> Result<Ret, String> {
    let ignores = args.flag("ignore_errors", false);
    let recurse = ignores || args.flag("recurse", false);
    if !changes::is(name, Kind::Directory)? {
        return Ok(Ret::good(format!("Directory {name} is not present")));
    }
    let mut ret = Ret::new();
    if is_dry_run() {
        ret.result = None;
        ret.change("deleted", name);
        ret.comment = format!("Directory {name} is set for removal");
        return Ok(ret);
    }
    let mut removed = rmdir::rmdir(name, recurse, &args.value("older_than"))?;
    removed.deleted.sort();
    let some = !removed.deleted.is_empty();
    if removed.result && !recurse {
        ret.comment = format!("Removed directory {name}");
        ret.change("deleted", name);
    } else if some && (removed.result || ignores) {
        ret.comment = format!("Recursively removed empty directories under {name}");
        ret.change("deleted", removed.deleted);
    } else if !removed.result {
        if let Value::Dict(changes) = removed.value() {
            ret.changes = changes;
        }
        return Ok(ret.failed(format!("Failed to remove directory {name}")));
    }
    Ok(ret)
}
