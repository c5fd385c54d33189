//! A value that does not print and is wiped when dropped.

use std::fmt;

use zeroize::Zeroize;

/// Holds keys, tokens and passwords: formatting it prints `<secret>`, and dropping it overwrites the content.
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Wraps a value that must not be displayed.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Do not log what this returns.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

impl<T: Zeroize> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

impl<T: Zeroize + Clone> Clone for Secret<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Zeroize> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize + AsRef<[u8]>> PartialEq for Secret<T> {
    /// Compares contents of equal length in constant time.
    fn eq(&self, other: &Self) -> bool {
        subtle::ConstantTimeEq::ct_eq(self.0.as_ref(), other.0.as_ref()).into()
    }
}

impl<T: Zeroize + AsRef<[u8]>> Eq for Secret<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "<secret> <secret> Some(<secret>)");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn secrets_compare_by_content() {
        assert_eq!(Secret::new("a".to_owned()), Secret::new("a".to_owned()));
        assert_ne!(Secret::new("a".to_owned()), Secret::new("ab".to_owned()));
    }
}
