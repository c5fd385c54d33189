//! A certificate made by Python's `cryptography`; its words are those of `openssl x509 -text`.

use super::*;

const WEB: &[u8] = include_bytes!("web.pem");
/// 2026-03-01 12:00:00
const END_OF_WEB: i64 = 1_772_366_400;

#[test]
fn a_certificate_is_told_with_salts_fields() {
    let web = Certificate::first_of(WEB).unwrap();
    let value = web.value("/etc/web.pem", END_OF_WEB + 1);
    let text = |key: &str| value.get(key).unwrap().to_text();
    let name = "C=\"DE\",O=\"Example \"Org\" \u{e4}\",CN=\"web.example\",emailAddress=\"a@b.example\"";
    for (key, expected) in [
        ("cert_path", "/etc/web.pem"),
        ("issuer", name),
        ("subject", name),
        ("notBefore", "2026-01-01 00:00:00Z"),
        ("notBefore_raw", "20260101000000Z"),
        ("notAfter", "2026-03-01 12:00:00Z"),
        ("notAfter_raw", "20260301120000Z"),
        ("serial_number", "103929005307927756724354605802047639613112342136"),
        ("signature_algorithm", "ecdsa-with-SHA256"),
        ("version", "2"),
        ("has_expired", "True"),
    ] {
        assert_eq!(text(key), expected, "{key}");
    }
    assert_eq!(value.get("subject_dict").unwrap().get("CN"), Some(&"web.example".into()));
    let extension = |name: &str, data: &str| Value::dict([("ext_name", name.into()), ("ext_data", data.into())]);
    let names = "DNS:web.example, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:1, email:x@y.example, \
                 URI:https://z.example/";
    let expected = [
        extension("basicConstraints", "CA:TRUE, pathlen:0"),
        extension("subjectAltName", names),
        extension("keyUsage", "Digital Signature, Certificate Sign"),
        extension("extendedKeyUsage", "TLS Web Server Authentication, TLS Web Client Authentication, 1.2.3.4"),
        extension("subjectKeyIdentifier", "00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13"),
    ];
    assert_eq!(value.get("extensions"), Some(&Value::List(expected.to_vec())));
}

#[test]
fn days_are_whole_ones() {
    let web = Certificate::first_of(WEB).unwrap();
    for (now, days) in [(END_OF_WEB - DAY, 1), (END_OF_WEB - DAY + 1, 0), (END_OF_WEB, 0), (END_OF_WEB + 1, -1)] {
        assert_eq!(web.days_left(now), days);
    }
}

#[test]
fn what_is_no_certificate_is_refused() {
    let text = String::from_utf8_lossy(WEB).into_owned();
    let cut = |by: &str| text.replace(by, "");
    // Lines of any length.
    let long = text.lines().map(|line| if line.starts_with("--") { format!("\n{line}\n") } else { line.to_owned() });
    let long: String = long.collect();
    assert!(Certificate::first_of(long.as_bytes()).is_ok());
    assert!(Certificate::first_of(format!("{text}{text}garbage").as_bytes()).is_ok());
    let tail = WEB.len() - 200;
    for odd in ["", "\u{0}\u{ff}", BEGIN, &cut(BEGIN), &text[..tail], &format!("{BEGIN}\n####\n{END}")] {
        assert!(Certificate::first_of(odd.as_bytes()).is_err(), "{odd}");
    }
    // Each byte changed: an answer or an error, never a panic.
    let inner: String = text.split(BEGIN).nth(1).unwrap().split(END).next().unwrap().split_whitespace().collect();
    let der = STANDARD.decode(inner).unwrap();
    for at in 0..der.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut der = der.clone();
            der[at] ^= change;
            let pem = format!("{BEGIN}\n{}\n{END}", STANDARD.encode(der));
            if let Ok(certificate) = Certificate::first_of(pem.as_bytes()) {
                certificate.value("/x", 0);
            }
        }
    }
}

#[test]
fn serial_numbers_are_exact() {
    assert_eq!(number(&[]), Value::Int(0));
    assert_eq!(number(&[0, 0xff]), Value::Int(255));
    assert_eq!(number(&[0xff; 8]), Value::Big(u64::MAX));
    assert_eq!(number(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0]), "18446744073709551616".into());
}
