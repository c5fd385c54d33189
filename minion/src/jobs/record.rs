//! Whether a job asks for recordings of its calls: `executor_opts: {record: true}` of the publication
//! (`salt --executor-opts`). The owner's configuration decides whether it may.

use brine_protocol::value::{Value, ValueExt};

const KEY: &str = "executor_opts";

/// Whether the job's load asks for recordings.
///
/// # Errors
/// A sentence for the job's return when that cannot be read.
pub(crate) fn parse(load: &Value) -> Result<bool, String> {
    let said = load.get(KEY).and_then(|opts| opts.get("record")).filter(|said| !said.is_nil());
    match said.map(|said| (said, said.as_bool(), said.text())) {
        None | Some((_, Some(false), _)) | Some((_, _, Some("off"))) => Ok(false),
        Some((_, Some(true), _)) | Some((_, _, Some("on"))) => Ok(true),
        Some((said, ..)) => {
            let shown: String = said.python_repr().chars().take(40).collect();
            Err(format!("The job's {KEY} say record: {shown}; write true or false."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{map, text};

    #[test]
    fn a_job_asks_in_words_that_people_write() {
        let said = |record: Value| parse(&map([(KEY, map([("record", record)]))]));
        for (record, asks) in [
            (Value::from(true), true),
            (text("on"), true),
            (Value::from(false), false),
            (text("off"), false),
            (Value::Nil, false),
        ] {
            assert_eq!(said(record.clone()), Ok(asks), "{record}");
        }
        assert_eq!(parse(&map([("a", 1)])), Ok(false));
        for wrong in [Value::from(1), text("yes please"), Value::Array(vec![])] {
            let error = said(wrong.clone()).unwrap_err();
            assert!(error.contains("write true or false") && !error.contains('\n'), "{wrong}");
        }
    }
}
