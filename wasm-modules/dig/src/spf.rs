//! Who may send mail for a domain: SPF records (RFC 7208), which lead to others.

use crate::ask::is_address;

/// Upper bound on the questions for one domain; RFC 7208 (4.6.4) allows a server ten.
const MAX_QUESTIONS: usize = 40;

/// Asks for records of a type: `(type, name)`.
type Ask<'a> = &'a mut dyn FnMut(&str, &str) -> Result<Option<String>, String>;

/// The ranges in a domain's record and in those that it leads to.
pub(crate) fn ranges(domain: &str, record: &str, ask: Ask<'_>) -> Result<Vec<String>, String> {
    let mut asked = 0;
    let mut found = Vec::new();
    // The next one last.
    let mut open = vec![Next::Ask(domain.to_owned(), record.to_owned())];
    while let Some(next) = open.pop() {
        let (domain, record) = match next {
            Next::Range(range) => {
                found.push(range);
                continue;
            }
            Next::Ask(domain, record) => (domain, record),
        };
        asked += 1;
        if asked > MAX_QUESTIONS {
            return Err(format!("the SPF record leads to more than {MAX_QUESTIONS} others"));
        }
        let Some(said) = ask(&record, &domain)? else { continue };
        if said.is_empty() && record == "SPF" {
            open.push(Next::Ask(domain, "TXT".into()));
            continue;
        }
        let said = said.replace('"', "");
        let mut words = said.split_whitespace();
        if words.next() != Some("v=spf1") {
            continue;
        }
        let words: Vec<&str> = words.collect();
        if let Some(other) = words.first().and_then(|word| word.strip_prefix("redirect=")) {
            open.push(Next::Ask(other.to_owned(), "SPF".into()));
            continue;
        }
        open.extend(words.iter().rev().filter_map(|word| mechanism(word)));
    }
    Ok(found)
}

enum Next {
    Range(String),
    Ask(String, String),
}

/// What a word of a record adds.
fn mechanism(word: &str) -> Option<Next> {
    let word = word.strip_prefix(['+', '~']).unwrap_or(word);
    let (kind, value) = word.split_once(':').filter(|(_, value)| !value.is_empty())?;
    match kind {
        "include" => Some(Next::Ask(value.to_owned(), "SPF".into())),
        "ip4" | "ip6" if is_address(value) => Some(Next::Range(value.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_lead_to_others() {
        let mut ask = |kind: &str, name: &str| {
            Ok(match (kind, name) {
                ("SPF", "a") => Some(String::new()),
                ("TXT", "a") => Some("\"v=spf1 ip4:192.0.2.0/24 include:b +ip6:2001:db8::/32 ip4:no ~all\"".into()),
                ("SPF", "b") => Some("v=spf1 redirect=c".into()),
                ("SPF", "c") => Some("v=spf1 ip4:198.51.100.1 -all".into()),
                ("SPF", "loop") => Some("v=spf1 include:loop".into()),
                ("TXT", "other") => Some("x".into()),
                _ => None,
            })
        };
        assert_eq!(
            ranges("a", "SPF", &mut ask),
            Ok(vec!["192.0.2.0/24".into(), "198.51.100.1".into(), "2001:db8::/32".into()])
        );
        assert_eq!(ranges("other", "TXT", &mut ask), Ok(vec![]));
        assert!(ranges("loop", "SPF", &mut ask).unwrap_err().contains("more than"));
    }
}
