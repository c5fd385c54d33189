//! Privileges of roles on objects, and members of groups.

use brine_guest::{Result, Value};
use brine_postgresql::given::Given;

use crate::csv::{column, items};
use crate::quote;
use crate::server::Server;

/// The letters of access lists.
const LETTERS: [(char, &str); 13] = [
    ('a', "INSERT"),
    ('C', "CREATE"),
    ('D', "TRUNCATE"),
    ('c', "CONNECT"),
    ('t', "TRIGGER"),
    ('r', "SELECT"),
    ('U', "USAGE"),
    ('T', "TEMPORARY"),
    ('w', "UPDATE"),
    ('X', "EXECUTE"),
    ('x', "REFERENCES"),
    ('d', "DELETE"),
    ('m', "MAINTAIN"),
];

/// The kinds of objects with the letters that each can have: SQL's word is the same in capitals.
const KINDS: [(&str, &str); 7] = [
    ("table", "arwdDxtm"),
    ("tablespace", "C"),
    ("language", "U"),
    ("sequence", "rwU"),
    ("schema", "UC"),
    ("database", "CTc"),
    ("function", "X"),
];
const GROUP: &str = "group";

fn word(letter: char) -> Option<&'static str> {
    LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, word)| *word)
}

/// A privilege and whether the role may grant it.
type Privileges = Vec<(&'static str, bool)>;

/// Who has what on an object.
#[derive(Debug, Default)]
struct Access {
    owner: Option<String>,
    roles: Vec<(String, Privileges)>,
}

/// An object, and what is asked of it.
struct Asked {
    server: Server,
    object: String,
    kind: String,
    schema: String,
}

impl Asked {
    fn new(given: &Given, object: &str) -> Result<Self> {
        let kind = given.name("object_type").to_lowercase();
        if kind != GROUP && !KINDS.iter().any(|(known, _)| *known == kind) {
            return Err(format!("Invalid object_type: {kind} provided"));
        }
        let schema = given.text("prepend").unwrap_or_else(|| "public".into());
        Ok(Self { server: Server::new(given)?, object: given.name(object), kind, schema })
    }

    fn is_group(&self) -> bool {
        self.kind == GROUP
    }

    fn is_in_schema(&self) -> bool {
        matches!(self.kind.as_str(), "table" | "sequence" | "function")
    }

    fn letters(&self) -> &'static str {
        KINDS.iter().find(|(known, _)| *known == self.kind).map_or("", |(_, letters)| letters)
    }

    /// All that objects of this kind can have.
    fn all(&self) -> Vec<&'static str> {
        self.letters().chars().filter_map(word).collect()
    }

    fn access(&self) -> Result<Access> {
        let rows = self.server.look(&format!("acl_{}", self.kind))?.unwrap_or_default();
        let mut access = Access::default();
        let is_it = |row: &&_| {
            column(row, "name") == self.object && (!self.is_in_schema() || column(row, "schema") == self.schema)
        };
        for row in rows.iter().filter(is_it) {
            // As in Salt: partitioned tables have an owner alone, views privileges alone.
            let kind = column(row, "kind");
            if kind != "v" {
                access.owner = Some(column(row, "owner").into()).filter(|owner: &String| !owner.is_empty());
            }
            if kind != "p" {
                access.roles.extend(items(column(row, "acl")).iter().filter_map(|entry| entry_of(entry)));
            }
        }
        Ok(access)
    }

    /// The members of the group, and whether each may add others.
    fn members(&self) -> Result<Vec<(String, bool)>> {
        let rows = self.server.look("members")?.unwrap_or_default();
        let of = rows.iter().filter(|row| column(row, "name") == self.object);
        Ok(of.map(|row| (column(row, "member").to_owned(), column(row, "admin") == "t")).collect())
    }

    /// Checks the privileges that are asked for, and returns them in capitals.
    fn privileges(&self, said: &str) -> Result<Vec<String>> {
        if self.is_group() {
            return match said.is_empty() {
                true => Ok(Vec::new()),
                false => Err("The privileges option should not be set for object_type group".into()),
            };
        }
        let wanted = split(&said.to_uppercase());
        let all = self.all();
        if wanted.iter().any(|word| word != "ALL" && !all.contains(&word.as_str())) {
            return Err(format!("Invalid privilege(s): {said} provided for object {}", self.kind));
        }
        Ok(wanted)
    }

    fn has(&self, role: &str, wanted: &[String], with_grant: bool) -> Result<bool> {
        if self.is_group() {
            let members = self.members()?;
            let found = members.iter().find(|(member, _)| member == role);
            return Ok(found.is_some_and(|(_, admin)| *admin || !with_grant));
        }
        let access = self.access()?;
        if access.owner.as_deref() == Some(role) {
            return Ok(true);
        }
        let Some((_, has)) = access.roles.iter().rfind(|(known, _)| known == role) else { return Ok(false) };
        let has_all = || {
            let all = self.all();
            all.len() == has.len() && all.iter().all(|word| has.iter().any(|(known, _)| known == word))
        };
        Ok(match (with_grant, wanted.iter().any(|word| word == "ALL")) {
            (true, _) => has_all() && has.iter().all(|(_, grant)| *grant),
            (false, true) => has_all(),
            (false, false) => wanted.iter().all(|word| has.iter().any(|(known, _)| known == word)),
        })
    }

    /// The object with its kind.
    fn place(&self) -> Result<String> {
        let kind = self.kind.to_uppercase();
        Ok(match self.is_in_schema() {
            true => format!("{kind} {}", quote::within(&self.schema, &self.object)?),
            false => format!("{kind} {}", quote::name(&self.object)?),
        })
    }
}

/// Words between commas; one blank before and behind a comma does not count.
fn split(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split(',').collect();
    let last = parts.len() - 1;
    let trimmed = parts.iter().enumerate().map(|(at, part)| {
        let blank = |c: char| c.is_whitespace();
        let part = if at > 0 { part.strip_prefix(blank).unwrap_or(part) } else { part };
        if at < last { part.strip_suffix(blank).unwrap_or(part) } else { part }
    });
    trimmed.map(str::to_owned).collect()
}

/// `ROLE=PRIVILEGES/GRANTOR`, with quotes around roles that need them; no role is everybody.
fn entry_of(entry: &str) -> Option<(String, Privileges)> {
    let (role, rest) = match entry.strip_prefix('"') {
        Some(quoted) => {
            let mut role = String::new();
            let mut chars = quoted.char_indices().peekable();
            let end = loop {
                let (at, c) = chars.next()?;
                match (c, chars.peek()) {
                    ('"', Some((_, '"'))) => {
                        chars.next();
                        role.push('"');
                    }
                    ('"', _) => break at + 1,
                    (c, _) => role.push(c),
                }
            };
            (role, quoted[end..].strip_prefix('=')?)
        }
        None => entry.split_once('=').map(|(role, rest)| (role.to_owned(), rest))?,
    };
    let letters = rest.split('/').next().unwrap_or_default();
    let mut privileges: Privileges = Vec::new();
    for letter in letters.chars() {
        match (letter, privileges.last_mut()) {
            ('*', Some((_, grant))) => *grant = true,
            (letter, _) => privileges.extend(word(letter).map(|word| (word, false))),
        }
    }
    Some((if role.is_empty() { "public".into() } else { role }, privileges))
}

pub(crate) fn list(given: &Given) -> Result<Value> {
    let asked = Asked::new(given, "name")?;
    if asked.is_group() {
        return Ok(Value::Dict(
            asked.members()?.into_iter().map(|(role, admin)| (role.into(), admin.into())).collect(),
        ));
    }
    let of = |privileges: Privileges| Value::dict(privileges.into_iter().map(|(word, grant)| (word, grant.into())));
    Ok(Value::Dict(asked.access()?.roles.into_iter().map(|(role, has)| (role.into(), of(has))).collect()))
}

pub(crate) fn has(given: &Given) -> Result<bool> {
    let asked = Asked::new(given, "object_name")?;
    let wanted = asked.privileges(&given.text("privileges").unwrap_or_default())?;
    asked.has(&given.name("name"), &wanted, given.is_set("grant_option"))
}

pub(crate) fn grant(given: &Given) -> Result<bool> {
    let asked = Asked::new(given, "object_name")?;
    let wanted = asked.privileges(&given.text("privileges").unwrap_or_default())?;
    let name = given.name("name");
    if asked.has(&name, &wanted, false)? {
        return Ok(false);
    }
    let role = quote::name(&name)?;
    let with_grant = given.is_set("grant_option");
    let sql = if asked.is_group() {
        let with = if with_grant { " WITH ADMIN OPTION" } else { "" };
        format!("GRANT {} TO {role}{with};\n", quote::name(&asked.object)?)
    } else {
        let with = if with_grant { " WITH GRANT OPTION" } else { "" };
        let place = match asked.is_in_schema() && asked.object.to_uppercase() == "ALL" {
            true => format!("ALL {}S IN SCHEMA {}", asked.kind.to_uppercase(), quote::name(&asked.schema)?),
            false => asked.place()?,
        };
        // Words of the table above.
        format!("GRANT {} ON {place} TO {role}{with};\n", wanted.join(","))
    };
    asked.server.does(&sql)
}

pub(crate) fn revoke(given: &Given) -> Result<bool> {
    let asked = Asked::new(given, "object_name")?;
    let wanted = asked.privileges(&given.text("privileges").unwrap_or_default())?;
    let name = given.name("name");
    if !asked.has(&name, &wanted, false)? {
        return Ok(false);
    }
    let role = quote::name(&name)?;
    asked.server.does(&match asked.is_group() {
        true => format!("REVOKE {} FROM {role};\n", quote::name(&asked.object)?),
        false => format!("REVOKE {} ON {} FROM {role};\n", wanted.join(","), asked.place()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_access_lists() {
        let entry = entry_of;
        assert_eq!(entry("app=r*w/postgres"), Some(("app".into(), vec![("SELECT", true), ("UPDATE", false)])));
        assert_eq!(entry("=U/postgres"), Some(("public".into(), vec![("USAGE", false)])));
        assert_eq!(entry("\"my-\"\"app\"\"\"=C/postgres"), Some(("my-\"app\"".into(), vec![("CREATE", false)])));
        assert_eq!(entry("app=*?/x"), Some(("app".into(), vec![])));
        assert_eq!((entry("nothing"), entry("\"open")), (None, None));
    }

    #[test]
    fn words_of_privileges_are_known_ones() {
        let asked = |kind: &str| Asked {
            server: Server::default(),
            object: "o\"; DROP TABLE x; --".into(),
            kind: kind.into(),
            schema: "s\"t".into(),
        };
        assert_eq!(asked("table").privileges("select , Insert"), Ok(vec!["SELECT".into(), "INSERT".into()]));
        for bad in ["SELECT; DROP TABLE x", "EXECUTE", "", "SELECT,"] {
            assert!(asked("table").privileges(bad).unwrap_err().starts_with("Invalid privilege(s): "), "{bad}");
        }
        assert!(asked("group").privileges("SELECT").is_err());
        assert_eq!(asked("group").privileges(""), Ok(vec![]));
        assert_eq!(asked("sequence").place().as_deref(), Ok("SEQUENCE \"s\"\"t\".\"o\"\"; DROP TABLE x; --\""));
        assert_eq!(asked("schema").place().as_deref(), Ok("SCHEMA \"o\"\"; DROP TABLE x; --\""));
    }
}
