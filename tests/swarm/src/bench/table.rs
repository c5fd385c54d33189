//! A table with one row for each measurement and one column for each number of minions.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Row>,
    notes: Vec<String>,
}

#[derive(Debug)]
struct Row {
    what: String,
    goal: Option<&'static str>,
    values: BTreeMap<usize, f64>,
}

impl Table {
    /// Sets a value. Rows keep the order in which they were first set. `goal` is for the largest number of minions.
    pub(super) fn put(&mut self, what: &str, minions: usize, value: f64, goal: Option<&'static str>) {
        let row = match self.rows.iter().position(|row| row.what == what) {
            Some(at) => &mut self.rows[at],
            None => {
                self.rows.push(Row { what: what.to_owned(), goal, values: BTreeMap::new() });
                let last = self.rows.len() - 1;
                &mut self.rows[last]
            }
        };
        row.values.insert(minions, value);
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn json(&self) -> serde_json::Value {
        let rows = self.rows.iter().map(|row| {
            let values: BTreeMap<String, f64> = row.values.iter().map(|(n, value)| (n.to_string(), *value)).collect();
            serde_json::json!({"what": row.what, "goal": row.goal, "values": values})
        });
        serde_json::json!({"rows": rows.collect::<Vec<_>>(), "notes": self.notes})
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sizes: Vec<usize> = self.rows.iter().flat_map(|row| row.values.keys().copied()).collect();
        sizes.sort_unstable();
        sizes.dedup();
        write!(f, "| minions |")?;
        sizes.iter().try_for_each(|size| write!(f, " {size} |"))?;
        write!(f, " goal |\n|---|")?;
        sizes.iter().try_for_each(|_| write!(f, "---|"))?;
        writeln!(f, "---|")?;
        for row in &self.rows {
            write!(f, "| {} |", row.what)?;
            for size in &sizes {
                match row.values.get(size) {
                    Some(value) if value.fract() == 0.0 => write!(f, " {value:.0} |")?,
                    Some(value) if value.abs() < 10.0 => write!(f, " {value:.2} |")?,
                    Some(value) => write!(f, " {value:.1} |")?,
                    None => write!(f, " |")?,
                }
            }
            writeln!(f, " {} |", row.goal.unwrap_or_default())?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "\n{note}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_order_and_gaps_stay_empty() {
        let mut table = Table::default();
        table.put("b", 100, 1.5, Some("≤ 2"));
        table.put("a", 1000, 3.0, None);
        table.put("b", 1000, 12.34, None);
        let text = table.to_string();
        assert_eq!(
            text,
            "| minions | 100 | 1000 | goal |\n|---|---|---|---|\n| b | 1.50 | 12.3 | ≤ 2 |\n| a | | 3 |  |\n"
        );
        assert_eq!(table.json()["rows"][0]["values"]["1000"], 12.34);
    }
}
