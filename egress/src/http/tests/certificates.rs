//! TLS: a server without a certificate for its name is refused.

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::*;

/// An authority and its certificate for good.example, made only for these tests.
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----
MIIBkzCCATmgAwIBAgIUaDFLPOdDd5CGh0GyBjj9FGQPGe4wCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLQnJpbmUgdGVzdHMwIBcNMjYxMTIwMjAwNTM1WhgPMjEyNjEw
MjcyMDA1MzVaMBYxFDASBgNVBAMMC0JyaW5lIHRlc3RzMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEWXsK3H4MmN7Tg8mrM4bL8qcyI7shYnWJy6ORQItz9yOFquHQ
o2sZAHp8wZszFX5sTdEXwXqs03SAL6dsc6yWN6NjMGEwHQYDVR0OBBYEFNY8pS3P
Uo1dCb4YyNiOFZL7ny27MB8GA1UdIwQYMBaAFNY8pS3PUo1dCb4YyNiOFZL7ny27
MA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgIEMAoGCCqGSM49BAMCA0gA
MEUCIAtrh5cUovkeOt0SfhU2+45+ATOqY5C666tfrxJIY5DTAiEAgF9EHf7LSONe
nF2VQaup5hGxSb2ts1lWDUzX97U1TAA=
-----END CERTIFICATE-----
";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBrTCCAVKgAwIBAgIUSa/+ob/7MPmXvryzWxcjjaQU9ckwCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLQnJpbmUgdGVzdHMwIBcNMjYxMTIwMjAwNTM1WhgPMjEyNjEw
MjcyMDA1MzVaMBcxFTATBgNVBAMMDGdvb2QuZXhhbXBsZTBZMBMGByqGSM49AgEG
CCqGSM49AwEHA0IABCALxf8S7iiC/HHMiHQ51yM8pikAJmoN+KWmPwOZkIF65OVR
+Otn26xYIiuClk7zW2oj5zzRgNVsM/ACGy0T+UKjezB5MBcGA1UdEQQQMA6CDGdv
b2QuZXhhbXBsZTAJBgNVHRMEAjAAMBMGA1UdJQQMMAoGCCsGAQUFBwMBMB0GA1Ud
DgQWBBTvBlAmb5HAEv/RT6qnsnzoDWX1PjAfBgNVHSMEGDAWgBTWPKUtz1KNXQm+
GMjYjhWS+58tuzAKBggqhkjOPQQDAgNJADBGAiEA+4tvWOsbq0jphv8cpMndEocv
mbeZyyCFBEFSi71+OuICIQDak3WW6Sm44uYjilv55eysVOAsS8Y2RqA2czBsJzlk
nA==
-----END CERTIFICATE-----
";
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgR/TFR17+nl0se6Y0
KsRWiPXzUjiDEqzK5H48v9880t2hRANCAAQgC8X/Eu4ogvxxzIh0OdcjPKYpACZq
Dfilpj8DmZCBeuTlUfjrZ9usWCIrgpZO81tqI+c80YDVbDPwAhstE/lC
-----END PRIVATE KEY-----
";

/// Answers one request on each connection.
async fn server(answer: String) -> (u16, JoinSet<()>) {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, tasks)
}

fn trusting(names: &[(&'static str, &str)]) -> Http {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY.as_bytes()).unwrap()).unwrap();
    let mut http = http(names).0;
    http.tls = Tls::with_roots(roots);
    http
}

#[tokio::test]
async fn certificates_are_verified() {
    let (port, _tasks) = server(GOOD.to_owned()).await;
    let names = [("good.example", "127.0.0.1"), ("bad.example", "127.0.0.1")];
    let granted = caller(&[("good.example", port), ("bad.example", port), ("127.0.0.1", port)]);
    let url = |host: &str| format!("https://{host}:{port}/");
    let trusting = trusting(&names);
    let answer = send(&trusting, &granted, get(&url("good.example"))).await.unwrap();
    assert_eq!(answer.get_u64("status"), Some(200));
    for host in ["bad.example", "127.0.0.1"] {
        let error = send(&trusting, &granted, get(&url(host))).await.unwrap_err();
        assert!(error.contains("TLS failed") && !error.contains('\n'), "{error}");
    }
    // This host's own roots do not include that authority.
    let error = send(&http(&names).0, &granted, get(&url("good.example"))).await.unwrap_err();
    assert!(error.contains("TLS failed") || error.contains("no root certificates"), "{error}");
}

#[tokio::test]
async fn what_was_encrypted_is_not_redirected_into_the_open() {
    let mut open = Server::says(GOOD).await;
    let (port, _tasks) = server(redirect(302, &open.url("/"))).await;
    let granted = caller(&[("good.example", port), ("127.0.0.1", port), ("127.0.0.1", open.at.port())]);
    let trusting = trusting(&[("good.example", "127.0.0.1")]);
    let error = send(&trusting, &granted, get(&format!("https://good.example:{port}/"))).await.unwrap_err();
    assert!(error.contains("which is not encrypted"), "{error}");
    assert_eq!(open.seen().len(), 0);
}
