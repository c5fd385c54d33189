//! One certificate, and what is told of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_guest::Value;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Any, DateTime, Decode, Tag, Tagged};
use x509_cert::name::Name;

use crate::extensions;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
const DAY: i64 = 24 * 3600;

/// A certificate.
pub struct Certificate(x509_cert::Certificate);

impl Certificate {
    /// The first certificate in a file of PEM.
    ///
    /// # Errors
    /// One line.
    pub fn first_of(file: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(file);
        let inner = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).map(|(inner, _)| inner);
        let inner = inner.ok_or("there is no certificate in it")?;
        let plain: String = inner.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        let der = STANDARD.decode(plain).map_err(|error| format!("its certificate is no base64: {error}"))?;
        Ok(Self(x509_cert::Certificate::from_der(&der).map_err(|error| format!("its certificate is none: {error}"))?))
    }

    /// Whole days until it expires, as Python counts: a day that began counts as gone.
    pub fn days_left(&self, now: i64) -> i64 {
        (self.expires() - now).div_euclid(DAY)
    }

    /// Seconds since 1970.
    fn expires(&self) -> i64 {
        let at = self.0.tbs_certificate().validity().not_after.to_unix_duration();
        i64::try_from(at.as_secs()).unwrap_or(i64::MAX)
    }

    /// Salt's fields.
    pub fn value(&self, path: &str, now: i64) -> Value {
        let of = self.0.tbs_certificate();
        let (issuer, subject) = (components(of.issuer()), components(of.subject()));
        let (from, to) = (of.validity().not_before.to_date_time(), of.validity().not_after.to_date_time());
        let extensions = of.extensions().map(|all| all.iter().map(extensions::value).collect()).unwrap_or_default();
        Value::dict([
            ("cert_path", path.into()),
            ("issuer", line(&issuer).into()),
            ("issuer_dict", dict(issuer)),
            ("notAfter_raw", raw(&to).into()),
            ("notAfter", shown(&to).into()),
            ("notBefore_raw", raw(&from).into()),
            ("notBefore", shown(&from).into()),
            ("serial_number", number(of.serial_number().as_bytes())),
            ("signature_algorithm", algorithm(&self.0.signature_algorithm().oid).into()),
            ("subject", line(&subject).into()),
            ("subject_dict", dict(subject)),
            ("version", i64::from(of.version() as u8).into()),
            ("extensions", Value::List(extensions)),
            ("has_expired", (self.expires() < now).into()),
        ])
    }
}

fn raw(at: &DateTime) -> String {
    let (y, m, d, h, min, s) = (at.year(), at.month(), at.day(), at.hour(), at.minutes(), at.seconds());
    format!("{y:04}{m:02}{d:02}{h:02}{min:02}{s:02}Z")
}

fn shown(at: &DateTime) -> String {
    let (y, m, d, h, min, s) = (at.year(), at.month(), at.day(), at.hour(), at.minutes(), at.seconds());
    format!("{y:04}-{m:02}-{d:02} {h:02}:{min:02}:{s:02}Z")
}

/// The parts of a name, by OpenSSL's short names.
fn components(name: &Name) -> Vec<(String, String)> {
    name.iter().map(|part| (short_name(&part.oid).to_owned(), text(&part.value))).collect()
}

fn line(components: &[(String, String)]) -> String {
    let parts: Vec<String> = components.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    parts.join(",")
}

/// The last one of equal names counts, as in Python.
fn dict(components: Vec<(String, String)>) -> Value {
    let mut entries: Vec<(Value, Value)> = Vec::new();
    for (name, value) in components {
        let name = Value::Text(name);
        entries.retain(|(other, _)| *other != name);
        entries.push((name, value.into()));
    }
    Value::Dict(entries)
}

fn text(value: &Any) -> String {
    let bytes = value.value();
    match value.tag() {
        Tag::BmpString => {
            let units = bytes.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]]));
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        // What is no UTF-8 there is Latin-1, mostly.
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().copied().map(char::from).collect(),
        },
    }
}

/// A serial number: in digits where MessagePack has no number so large, as Salt sends it.
fn number(bytes: &[u8]) -> Value {
    let bytes = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    if bytes.len() <= 8 {
        return bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)).into();
    }
    // Groups of nine digits, the last ones first.
    let mut groups: Vec<u64> = vec![0];
    for byte in bytes {
        let mut carry = u64::from(*byte);
        for group in &mut groups {
            let all = *group * 256 + carry;
            (*group, carry) = (all % 1_000_000_000, all / 1_000_000_000);
        }
        if carry > 0 {
            groups.push(carry);
        }
    }
    let mut digits = groups.pop().unwrap_or_default().to_string();
    groups.iter().rev().for_each(|group| digits.push_str(&format!("{group:09}")));
    digits.into()
}

fn short_name(oid: &ObjectIdentifier) -> &'static str {
    match oid.to_string().as_str() {
        "2.5.4.3" => "CN",
        "2.5.4.4" => "SN",
        "2.5.4.5" => "serialNumber",
        "2.5.4.6" => "C",
        "2.5.4.7" => "L",
        "2.5.4.8" => "ST",
        "2.5.4.9" => "street",
        "2.5.4.10" => "O",
        "2.5.4.11" => "OU",
        "2.5.4.12" => "title",
        "2.5.4.13" => "description",
        "2.5.4.15" => "businessCategory",
        "2.5.4.17" => "postalCode",
        "2.5.4.41" => "name",
        "2.5.4.42" => "GN",
        "2.5.4.43" => "initials",
        "2.5.4.44" => "generationQualifier",
        "2.5.4.45" => "x500UniqueIdentifier",
        "2.5.4.46" => "dnQualifier",
        "2.5.4.65" => "pseudonym",
        "2.5.4.97" => "organizationIdentifier",
        "1.2.840.113549.1.9.1" => "emailAddress",
        "1.2.840.113549.1.9.2" => "unstructuredName",
        "0.9.2342.19200300.100.1.1" => "UID",
        "0.9.2342.19200300.100.1.25" => "DC",
        "1.3.6.1.4.1.311.60.2.1.1" => "jurisdictionL",
        "1.3.6.1.4.1.311.60.2.1.2" => "jurisdictionST",
        "1.3.6.1.4.1.311.60.2.1.3" => "jurisdictionC",
        _ => "UNDEF",
    }
}

/// OpenSSL's long name.
fn algorithm(oid: &ObjectIdentifier) -> &'static str {
    match oid.to_string().as_str() {
        "1.2.840.113549.1.1.4" => "md5WithRSAEncryption",
        "1.2.840.113549.1.1.5" => "sha1WithRSAEncryption",
        "1.2.840.113549.1.1.10" => "rsassaPss",
        "1.2.840.113549.1.1.11" => "sha256WithRSAEncryption",
        "1.2.840.113549.1.1.12" => "sha384WithRSAEncryption",
        "1.2.840.113549.1.1.13" => "sha512WithRSAEncryption",
        "1.2.840.113549.1.1.14" => "sha224WithRSAEncryption",
        "1.2.840.10040.4.3" => "dsaWithSHA1",
        "2.16.840.1.101.3.4.3.2" => "dsa_with_SHA256",
        "1.2.840.10045.4.1" => "ecdsa-with-SHA1",
        "1.2.840.10045.4.3.1" => "ecdsa-with-SHA224",
        "1.2.840.10045.4.3.2" => "ecdsa-with-SHA256",
        "1.2.840.10045.4.3.3" => "ecdsa-with-SHA384",
        "1.2.840.10045.4.3.4" => "ecdsa-with-SHA512",
        "1.3.101.112" => "ED25519",
        "1.3.101.113" => "ED448",
        _ => "undefined",
    }
}

#[cfg(test)]
mod tests;
