//! What a path takes in its query or as its last part: Salt's handlers take either by the same name.

use axum::extract::Path;
use axum::http::StatusCode;

use crate::problem::Problem;

/// Returns the parameter of this name, of the path or of the query. An empty one is none. `ignored` may be in the query, and do not
/// count.
///
/// # Errors
/// As in Salt, when the query has others: whoever filters by a name that is not known here, would get everything.
pub fn parameter(
    path: Option<Path<String>>,
    query: Option<&str>,
    name: &str,
    ignored: &[&str],
) -> Result<Option<String>, Problem> {
    let mut found = path.map(|Path(part)| part);
    for (key, text) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if key == name && found.is_none() {
            found = Some(text.into_owned());
        } else if !ignored.contains(&&*key) {
            return Err(Problem::new(StatusCode::NOT_FOUND, "Nothing matches the given URI"));
        }
    }
    Ok(found.filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_the_path_or_in_the_query() {
        let read = |path: Option<&str>, query: &str| {
            parameter(path.map(|part| Path(part.to_owned())), Some(query), "mid", &["timeout"])
                .map_err(|problem| problem.status().as_u16())
        };
        let some = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(read(None, ""), Ok(None));
        assert_eq!(read(None, "mid="), Ok(None));
        assert_eq!(read(None, "timeout=5"), Ok(None));
        assert_eq!(read(None, "mid=a%2Ab&timeout=5"), some("a*b"));
        assert_eq!(read(Some("m1"), "timeout="), some("m1"));
        for other in ["x=1", "mid=a&x=1", "mid=a&mid=b", "MID=a"] {
            assert_eq!(read(None, other), Err(404), "{other}");
        }
        assert_eq!(read(Some("m1"), "mid=m2"), Err(404));
    }
}
