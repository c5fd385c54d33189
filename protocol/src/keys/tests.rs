//! Generating, reading and writing keys, and wrong uses of them.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::LazyLock;

use super::*;

static KEY: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(1024).unwrap());

#[test]
fn x931_comes_back_and_only_from_the_right_key() {
    let other = PrivateKey::generate(1024).unwrap();
    for message in [&b"salt"[..], b"", &[0xbb; 5], &[0xba; 126], &[0; 125], &[1; 126]] {
        let signature = KEY.x931_sign(message).unwrap();
        assert_eq!(signature.len(), 128);
        assert_eq!(KEY.public().x931_recover(&signature).as_deref(), Some(message));
        assert_ne!(other.public().x931_recover(&signature).as_deref(), Some(message));
    }
    assert!(KEY.x931_sign(&[0; 127]).is_err());
}

#[test]
fn x931_of_wrong_shape_is_nothing() {
    let signature = KEY.x931_sign(b"salt").unwrap();
    let public = KEY.public();
    assert_eq!(public.x931_recover(&[]), None);
    assert_eq!(public.x931_recover(&signature[1..]), None);
    assert_eq!(public.x931_recover(&[0; 128]), None);
    assert_eq!(public.x931_recover(&[0xff; 128]), None, "not below the modulus");
    for bad in
        [&[0x6b, 0xbb, 0xcc][..], &[0x6b, 0xcc], &[0xcc], &[], &[0x6a, 0x00], &[0x00, 0xcc], &[0x6b, 0xbb, 1, 0xcc]]
    {
        assert_eq!(x931::unpad(bad), None, "{bad:x?}");
    }
}

#[test]
fn signatures_and_encryption() {
    for alg in [SignAlg::Pkcs1v15Sha1, SignAlg::Pkcs1v15Sha224] {
        let signature = KEY.sign(alg, b"m").unwrap();
        assert!(KEY.public().verify(alg, b"m", &signature));
        assert!(!KEY.public().verify(alg, b"n", &signature));
        assert!(!KEY.public().verify(alg, b"m", b""));
    }
    for alg in [EncAlg::OaepSha1, EncAlg::OaepSha224] {
        let sealed = KEY.public().encrypt(alg, b"m").unwrap();
        assert_eq!(KEY.decrypt(alg, &sealed).unwrap(), b"m");
        assert!(KEY.decrypt(alg, &sealed[1..]).is_err());
    }
    let sealed = KEY.public().encrypt(EncAlg::OaepSha1, b"m").unwrap();
    let (a, b) =
        (KEY.decrypt(EncAlg::OaepSha224, &sealed).unwrap_err(), KEY.decrypt(EncAlg::OaepSha1, &[0; 128]).unwrap_err());
    assert_eq!(a.to_string(), b.to_string(), "decryption failures are alike");
}

#[test]
fn private_keys_do_not_print_and_files_are_not_readable_by_others() {
    let dir = tempfile::tempdir().unwrap();
    let (private, public) = (dir.path().join("k.pem"), dir.path().join("k.pub"));
    KEY.write_private(&private).unwrap();
    KEY.write_private(&private).unwrap();
    KEY.public().write_public(&public).unwrap();
    assert_eq!(std::fs::metadata(&private).unwrap().permissions().mode() & 0o7777, 0o400);
    assert_eq!(std::fs::metadata(&public).unwrap().permissions().mode() & 0o7777, 0o644);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
    let loaded = PrivateKey::load(&private).unwrap();
    assert_eq!(loaded.public(), KEY.public());
    assert_eq!(&PublicKey::load(&public).unwrap(), KEY.public());
    assert_eq!(format!("{loaded:?} {:?}", loaded.to_pem()), "PrivateKey(<secret>) <secret>");
}

#[test]
fn what_is_no_key_says_so() {
    let error = PublicKey::from_pem("garbage").unwrap_err().to_string();
    assert!(error.starts_with("not an RSA public key in PEM form: "), "{error}");
    assert!(PublicKey::from_pem("").is_err());
    assert!(PrivateKey::from_pem(KEY.public().clean_pem()).is_err());
    assert!(matches!(PrivateKey::generate(512), Err(KeyError::Size(512))));
    let missing = PrivateKey::load(Path::new("/nonexistent/k.pem")).unwrap_err().to_string();
    assert!(missing.starts_with("key file /nonexistent/k.pem: "), "{missing}");
}

#[test]
fn line_ends_and_blanks_do_not_matter() {
    let pem = KEY.public().to_pem();
    let dos = format!("  \r\n{}\r\n", pem.replace('\n', "\r\n"));
    assert_eq!(PublicKey::from_pem(&dos).unwrap().clean_pem(), KEY.public().clean_pem());
    assert_eq!(clean_pem(&dos), KEY.public().clean_pem());
    assert_eq!(fingerprint(&dos), KEY.public().fingerprint());
}
