//! `file.comment` and `file.uncomment`

use brine_guest::diff;
use brine_guest::states::is_dry_run;

use super::Ret;
use super::arguments::Arguments;
use crate::edit::comment::known;
use crate::edit::{lines, place, run};

pub(crate) fn comment(name: &str, arguments: &Arguments) -> Result<Ret, String> {
    let (regex, mark) = (arguments.text("regex").unwrap_or_default(), mark(arguments));
    let known = known(&regex, &mark);
    let content = match open(name, "file.comment")? {
        Ok(content) => content,
        Err(why) => return Ok(Ret::bad(why)),
    };
    if !run::is_in(name, &content, &known.open)? {
        return Ok(if run::is_in(name, &content, &known.commented)? {
            Ret::good("Pattern already commented")
        } else if arguments.flag("ignore_missing", false) {
            Ret::good("Pattern not found and ignore_missing set to True")
        } else {
            Ret::bad(format!("{}: Pattern not found", known.plain))
        });
    }
    edit(name, &content, &regex, &mark, arguments, &Wanted { commenting: true, afterwards: known.commented })
}

pub(crate) fn uncomment(name: &str, arguments: &Arguments) -> Result<Ret, String> {
    let (regex, mark) = (arguments.text("regex").unwrap_or_default(), mark(arguments));
    let inside = regex.trim_start_matches('^');
    let content = match open(name, "file.uncomment")? {
        Ok(content) => content,
        Err(why) => return Ok(Ret::bad(why)),
    };
    let open = format!("^[ \t]*{inside}");
    if !run::is_in(name, &content, &format!("{mark}[ \t]*{inside}"))? {
        return Ok(if run::is_in(name, &content, &open)? {
            Ret::good("Pattern already uncommented")
        } else {
            Ret::bad(format!("{regex}: Pattern not found"))
        });
    }
    edit(name, &content, &regex, &mark, arguments, &Wanted { commenting: false, afterwards: open })
}

fn mark(arguments: &Arguments) -> String {
    arguments.text("char").unwrap_or_else(|| "#".into())
}

/// The content of the file; the inner error is the comment of a failed state.
fn open(name: &str, state: &str) -> Result<Result<Vec<u8>, String>, String> {
    if name.is_empty() {
        return Ok(Err(format!("Must provide name to {state}")));
    }
    if let Err(why) = place::check(name) {
        return Ok(Err(why));
    }
    place::read(name)?.ok_or_else(|| format!("{name}: file not found")).map(Ok)
}

struct Wanted {
    commenting: bool,
    /// The expression that has to be found afterwards.
    afterwards: String,
}

fn edit(
    name: &str,
    content: &[u8],
    regex: &str,
    mark: &str,
    arguments: &Arguments,
    wanted: &Wanted,
) -> Result<Ret, String> {
    if is_dry_run() {
        let mut ret = Ret { result: None, ..Ret::good(format!("File {name} is set to be updated")) };
        ret.change(name, "updated");
        return Ok(ret);
    }
    let old = lines::text(content)?;
    run::comment_line(name, regex, mark, wanted.commenting, arguments.ending("backup").as_deref())?;
    let new = place::read(name)?.unwrap_or_default();
    let (done, what) = if wanted.commenting { ("Commented", "commented") } else { ("Uncommented", "uncommented") };
    let mut ret = match run::is_in(name, &new, &wanted.afterwards)? {
        true => Ret::good(format!("{done} lines successfully")),
        false => Ret::bad(format!("Expected {what} lines not found")),
    };
    let new = lines::text(&new)?;
    if old != new {
        let split = |text| match wanted.commenting {
            true => lines::of_text(text),
            false => text.split_inclusive('\n').collect(),
        };
        ret.change("diff", diff::unified(&split(old), &split(new), "", ""));
    }
    Ok(ret)
}
