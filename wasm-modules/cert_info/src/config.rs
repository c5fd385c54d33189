//! Which files are looked at.

use brine_guest::Value;
use brine_guest::beacons::float;

/// Salt's default.
const DAYS: f64 = 45.0;

/// A file with a certificate.
#[derive(Debug, PartialEq)]
pub struct File {
    pub path: String,
    /// It is told of a certificate that has as many days left or fewer; negative: of each.
    pub days: f64,
}

/// The files of a configuration: paths, and dicts of a path and what is said of it.
pub fn files(config: &Value) -> Result<Vec<File>, String> {
    let days = |said: &Value, default: f64| match said.get("notify_days") {
        None | Some(Value::None) => Ok(default),
        Some(days) => float(days).map_err(|why| format!("notify_days: {why}")),
    };
    let all = days(config, DAYS)?;
    let Some(Value::List(files)) = config.get("files") else {
        return Err("files is to be a list of paths".into());
    };
    let mut read = Vec::new();
    for file in files {
        match file {
            Value::Text(path) => read.push(File { path: path.clone(), days: all }),
            Value::Dict(entries) => {
                if let Some((path, said)) = entries.first() {
                    read.push(File { path: path.to_text(), days: days(said, all)? });
                }
            }
            _ => return Err("files is to be a list of paths, and of paths with notify_days".into()),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_its_days_or_those_of_all() {
        let own = Value::dict([("/b", Value::dict([("notify_days", 15_i64.into())]))]);
        let plain = Value::dict([("/c", Value::None)]);
        let list = Value::List(vec!["/a".into(), own, plain]);
        let config = Value::dict([("files", list), ("notify_days", (-1_i64).into())]);
        let file = |path: &str, days| File { path: path.into(), days };
        assert_eq!(files(&config).unwrap(), [file("/a", -1.0), file("/b", 15.0), file("/c", -1.0)]);
        let config = Value::dict([("files", Value::List(vec!["/a".into()]))]);
        assert_eq!(files(&config).unwrap(), [file("/a", 45.0)]);
        for odd in [
            Value::dict([("files", "/a".into())]),
            Value::dict([("files", Value::List(vec![5_i64.into()]))]),
            Value::dict([("files", Value::List(Vec::new())), ("notify_days", "soon".into())]),
        ] {
            assert!(files(&odd).is_err(), "{odd:?}");
        }
    }
}
