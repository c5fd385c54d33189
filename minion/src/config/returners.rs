//! The names of returners.

/// Upper bound on the returners of one job.
const MAX: usize = 8;
/// Upper bound on the bytes of a name.
const MAX_NAME: usize = 128;

/// The returners that a text names, separated by commas: each once, and no more than a job may have.
pub(crate) fn returner_names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty() && name.len() <= MAX_NAME) {
        if names.len() < MAX && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returners_are_named_once_and_bounded() {
        assert_eq!(returner_names(" one,two, one ,,"), ["one", "two"]);
        assert_eq!(returner_names(&"x".repeat(200)), Vec::<&str>::new());
        assert_eq!(returner_names("a,b,c,d,e,f,g,h,i,j").len(), MAX);
    }
}
