//! Names of locales: `LANGUAGE[_TERRITORY][.CODESET][@MODIFIER] [CHARMAP]`.

/// The parts of a name; empty where it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub language: String,
    pub territory: String,
    pub codeset: String,
    pub modifier: String,
    pub charmap: String,
}

impl Name {
    pub(crate) fn read(text: &str) -> Self {
        let split = |text: &str, at: char| match text.split_once(at) {
            Some((before, after)) => (before.to_owned(), after.to_owned()),
            None => (text.to_owned(), String::new()),
        };
        let (text, charmap) = split(text, ' ');
        let (text, modifier) = split(&text, '@');
        let (text, codeset) = split(&text, '.');
        let (language, territory) = split(&text, '_');
        Self { language, territory, codeset, modifier, charmap }
    }

    pub(crate) fn text(&self) -> String {
        let Self { language, territory, codeset, modifier, charmap } = self;
        let mut text = language.clone();
        for (sign, part) in [('_', territory), ('.', codeset), ('@', modifier), (' ', charmap)] {
            if !part.is_empty() {
                text.push(sign);
                text.push_str(part);
            }
        }
        text
    }
}

/// A name as `locale -a` prints it.
pub(crate) fn normal(text: &str) -> String {
    let mut name = Name::read(text);
    name.territory = name.territory.to_uppercase();
    name.codeset = name.codeset.to_lowercase().replace('-', "");
    name.charmap = String::new();
    name.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_locale() {
        for (text, expect) in [
            ("en_US.UTF-8 UTF-8", "en_US.utf8"),
            ("de_de@euro ISO-8859-15", "de_DE@euro"),
            ("ca_ES.UTF-8@valencia UTF-8", "ca_ES.utf8@valencia"),
            ("C", "C"),
        ] {
            assert_eq!(normal(text), expect);
            assert_eq!(Name::read(text).text(), text);
        }
    }
}
