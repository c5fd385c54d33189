//! The database of answers.

use brine_guest::Result;
use brine_guest::host::{changes, files};
use brine_guest::program::Program;

/// Question, type and answer.
pub(crate) type Answer = Vec<String>;

/// Upper bound on the bytes of a file of answers.
const MAX_FILE: usize = 4 << 20;
const PIECE: u32 = 1 << 20;

/// All answers by package.
pub(crate) fn all(with_empty: bool) -> Result<Vec<(String, Vec<Answer>)>> {
    Ok(read(&Program::new(["debconf-get-selections"]).run()?.stdout, with_empty))
}

/// The answers for a package; none if there are none.
pub(crate) fn of(package: &str) -> Result<Option<Vec<Answer>>> {
    Ok(all(true)?.into_iter().find(|(name, _)| name == package).map(|(_, answers)| answers))
}

/// Reads lines of package, question, type and answer.
fn read(output: &str, with_empty: bool) -> Vec<(String, Vec<Answer>)> {
    let mut found: Vec<(String, Vec<Answer>)> = Vec::new();
    let blank = [' ', '\t'];
    for line in output.lines().filter(|line| !line.starts_with('#')) {
        let mut rest = line;
        let mut word = || {
            let (word, after) = rest.split_once(blank)?;
            rest = after.trim_start_matches(blank);
            (!word.is_empty()).then(|| word.to_owned())
        };
        let (Some(package), Some(question)) = (word(), word()) else { continue };
        // The end of the output was cut off at the last answer if that is empty.
        let kind = word().unwrap_or_else(|| std::mem::take(&mut rest).to_owned());
        if kind.is_empty() || rest.is_empty() && !with_empty {
            continue;
        }
        let answer = vec![question, kind, rest.to_owned()];
        match found.iter_mut().find(|(name, _)| *name == package) {
            Some((_, answers)) => answers.push(answer),
            None => found.push((package, vec![answer])),
        }
    }
    found
}

fn take(lines: Vec<u8>) -> Result<()> {
    Program::new(["debconf-set-selections"]).stdin(lines).run().map(drop)
}

/// Sets an answer.
pub(crate) fn set(package: &str, question: &str, kind: &str, value: &str) -> Result<()> {
    let line = format!("{package} {question} {kind} {value}");
    if line.contains(['\n', '\r']) {
        return Err(format!("an answer is one line, and that to {question} has more"));
    }
    take(line.into_bytes())
}

/// Sets the answers of a file; false if it is not there.
pub(crate) fn set_file(path: &str, saltenv: &str) -> Result<bool> {
    let mut content: Vec<u8> = Vec::new();
    loop {
        let offset = content.len() as u64;
        let part = match path.strip_prefix("salt://") {
            Some(path) => {
                let (path, env) = path.split_once("?saltenv=").unwrap_or((path, saltenv));
                files::read(path.trim_start_matches('/'), if env.is_empty() { saltenv } else { env }, offset, PIECE)?
            }
            None if path.starts_with('/') => changes::read(path, offset, PIECE)?,
            None => return Err(format!("{path} is no path and no address on the master (salt://)")),
        };
        match part {
            None if content.is_empty() => return Ok(false),
            Some(part) if !part.is_empty() => content.extend(part),
            _ => break,
        }
        if content.len() > MAX_FILE {
            return Err(format!("{path} has more than {MAX_FILE} bytes"));
        }
    }
    take(content).map(|()| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_by_package() {
        let output = "# a comment\ntzdata\ttzdata/Areas\tselect\tEurope\ntzdata\ttzdata/Zones\tselect\t\n\
                      other\tother/q \tstring\ta b\t c\nrubbish\nlast\tlast/q\tnote";
        let answer = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let all = vec![
            (
                "tzdata".to_owned(),
                vec![answer(&["tzdata/Areas", "select", "Europe"]), answer(&["tzdata/Zones", "select", ""])],
            ),
            ("other".to_owned(), vec![answer(&["other/q", "string", "a b\t c"])]),
            ("last".to_owned(), vec![answer(&["last/q", "note", ""])]),
        ];
        assert_eq!(read(output, true), all);
        assert_eq!(read(output, false).iter().map(|(_, answers)| answers.len()).collect::<Vec<_>>(), [1, 1]);
    }
}
