//! What files were before they were changed: Salt's `file.list_backups` and its relatives.

use brine_guest::Value;
use brine_guest::changes::{self, Backup, Content, Put};

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The time in a backup's name (`hosts_Tue_Nov_24_10:17:24_123456_2026`), as Salt shows it.
fn time(name: &str) -> Option<String> {
    let mut parts: Vec<&str> = name.rsplitn(7, '_').collect();
    parts.reverse();
    let [_, day, month, date, clock, micros, year] = parts[..] else { return None };
    let is = DAYS.contains(&day) && MONTHS.contains(&month) && clock.len() == 8 && micros.len() == 6;
    is.then(|| format!("{day} {month} {date} {year} {clock}.{micros}"))
}

fn all(path: &str) -> Result<Vec<Backup>, String> {
    let mut backups = changes::backups(path)?;
    backups.retain(|backup| time(&backup.name).is_some());
    Ok(backups)
}

/// The backups by number, the newest first.
pub(crate) fn list(path: &str, limit: Option<usize>) -> Result<Value, String> {
    let backups = all(path)?;
    let shown = backups.iter().take(limit.unwrap_or(usize::MAX)).enumerate().map(|(number, backup)| {
        let entry = Value::dict([
            ("Backup Time", time(&backup.name).into()),
            ("Size", backup.size.into()),
            ("Location", backup.location.as_str().into()),
        ]);
        (Value::Int(i64::try_from(number).unwrap_or(i64::MAX)), entry)
    });
    Ok(Value::Dict(shown.collect()))
}

fn ret(result: bool, comment: String) -> Value {
    Value::dict([("result", result.into()), ("comment", comment.into())])
}

/// The backup with a number, or Salt's sentence that there is none.
fn find(path: &str, id: &Value) -> Result<Result<Backup, String>, String> {
    let text = id.to_text();
    let Some(number) = text.parse::<usize>().ok().filter(|number| number.to_string() == text) else {
        return Ok(Err(format!("Invalid backup_id '{text}'")));
    };
    let found = all(path)?.into_iter().nth(number);
    Ok(found.ok_or_else(|| format!("backup_id '{text}' does not exist for {path}")))
}

/// Gives a file the content of a backup, and keeps what it was.
pub(crate) fn restore(path: &str, id: &Value) -> Result<Value, String> {
    let backup = match find(path, id)? {
        Ok(backup) => backup,
        Err(comment) => return Ok(ret(false, comment)),
    };
    let location = &backup.location;
    Ok(match Put::new(path).backup(true).content(&Content::Backup(backup.name.clone())) {
        Ok(_) => ret(true, format!("Successfully restored {location} to {path}")),
        Err(why) => ret(false, format!("Unable to restore {location} to {path}: {why}")),
    })
}

pub(crate) fn delete(path: &str, id: &Value) -> Result<Value, String> {
    let backup = match find(path, id)? {
        Ok(backup) => backup,
        Err(comment) => return Ok(ret(false, comment)),
    };
    let location = &backup.location;
    Ok(match changes::remove_backup(path, &backup.name) {
        Ok(_) => ret(true, format!("Successfully removed {location}")),
        Err(why) => ret(false, format!("Unable to remove {location}: {why}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_backups_have_a_time() {
        let time = |name| time(name);
        assert_eq!(
            time("my_hosts_Tue_Nov_24_10:17:24_123456_2026").as_deref(),
            Some("Tue Nov 24 2026 10:17:24.123456")
        );
        for odd in ["hosts", "hosts_Tue_Nov_24", "a_b_c_d_e_f_g"] {
            assert_eq!(time(odd), None, "{odd}");
        }
    }
}
