//! Lists of names in messages.

/// Joins names for a sentence, with a bound: a module may import hundreds.
pub(crate) fn join_names<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 8;
    let mut text: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let more = format!("{} more", names.len().saturating_sub(SHOWN));
    if names.len() > SHOWN {
        text.push(&more);
    }
    match text.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}
