//! Files of requirements: of this host, and of the master.

use brine_guest::changes::{self, Owner, Put};
use brine_guest::host::{files, job};
use brine_guest::path::{basename, dirname, join};
use brine_guest::{Result, Value};

/// Upper bound on the bytes of a file of requirements, which people write.
const MAX_FILE: usize = 1 << 20;
/// Upper bound on the files that one names.
const MAX_FILES: usize = 100;

/// Files for one run of pip, some of which go with it.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// The options of pip.
    pub(crate) words: Vec<String>,
    folder: Option<String>,
}

/// What a function returns where the master has no such file.
pub(crate) fn missing(file: &str) -> Value {
    let comment = format!("pip requirements file '{file}' not found");
    Value::dict([("result", false.into()), ("comment", comment.into())])
}

impl Files {
    /// Lays out files. An `Err` within is the name of one that the master does not have.
    pub(crate) fn new(
        names: &[String],
        saltenv: &str,
        user: Option<&str>,
        cwd: Option<&str>,
    ) -> Result<core::result::Result<Self, String>> {
        let mut all = Self::default();
        for name in names {
            let path = match name.strip_prefix("salt://") {
                Some(path) => match all.fetch(path, saltenv, user)? {
                    Some(path) => path,
                    None => {
                        all.remove()?;
                        return Ok(Err(name.clone()));
                    }
                },
                None if user.is_some() => all.copy(&join(cwd.unwrap_or("/"), name), user)?,
                None => name.clone(),
            };
            all.words.extend(["--requirement".to_owned(), path]);
        }
        Ok(Ok(all))
    }

    fn fetch(&mut self, path: &str, saltenv: &str, user: Option<&str>) -> Result<Option<String>> {
        let (path, saltenv) = path.split_once("?saltenv=").unwrap_or((path, saltenv));
        let mut text = Vec::new();
        loop {
            let Some(part) = files::read(path, saltenv, text.len() as u64, MAX_FILE as u32)? else { return Ok(None) };
            if part.is_empty() {
                return self.put(basename(path), text, user).map(Some);
            }
            text.extend(part);
            if text.len() > MAX_FILE {
                return Err(format!("salt://{path} has more than {MAX_FILE} bytes"));
            }
        }
    }

    /// Copies a file and those that it names, so that the user can read them.
    fn copy(&mut self, path: &str, user: Option<&str>) -> Result<String> {
        let mut todo = vec![path.to_owned()];
        let mut done = 0;
        while let Some(next) = todo.pop() {
            done += 1;
            if done > MAX_FILES {
                return Err(format!("{path} names more than {MAX_FILES} files"));
            }
            let text = changes::read_text(&next)?.ok_or_else(|| format!("{next} is not there"))?;
            todo.extend(named(&text).map(|name| join(dirname(&next), name)));
            self.put(basename(&next), text.into_bytes(), user)?;
        }
        Ok(join(self.folder.as_deref().unwrap_or("/"), basename(path)))
    }

    fn put(&mut self, name: &str, text: Vec<u8>, user: Option<&str>) -> Result<String> {
        let owner = || Owner { user: user.map(str::to_owned), group: None };
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => {
                let folder = format!("/tmp/brine-pip-{}", job::current().jid);
                if changes::look(&folder, false)?.is_some() {
                    return Err(format!("{folder} is there already"));
                }
                changes::make_directory(&folder, false, &owner(), Some(0o700))?;
                self.folder.insert(folder).clone()
            }
        };
        let path = join(&folder, name);
        Put::new(&path).owner_of(owner()).mode(Some(0o600)).bytes(text)?;
        Ok(path)
    }

    /// Removes what was laid out.
    pub(crate) fn remove(&self) -> Result<()> {
        self.folder.as_ref().map_or(Ok(()), |folder| changes::remove(folder, true).map(drop))
    }
}

/// The files that a file of requirements names.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
    lines.filter_map(|line| {
        let rest = line.strip_prefix("--requirement").or_else(|| line.strip_prefix("-r"))?;
        let name = rest.strip_prefix(['=', ' ', '\t'])?.trim();
        (!name.is_empty()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_name_others() {
        let text = "a==1\n-r b.txt # more\n--requirement=c.txt\n#-r d.txt\n-rest\n";
        assert_eq!(named(text).collect::<Vec<_>>(), ["b.txt", "c.txt"]);
    }
}
