use std::sync::LazyLock;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::sign::SigningKey;

use super::*;

static KEYS: LazyLock<[PrivateKey; 3]> =
    LazyLock::new(|| brine_kit::keys::PEM.map(|pem| PrivateKey::from_pem(pem).expect("a key")));

fn identity(n: usize) -> Identity {
    Identity::new(&KEYS[n]).expect("2,048 bits")
}

fn master() -> (Acceptor, DuplexStream, DuplexStream) {
    let (here, there) = duplex(1 << 16);
    (Acceptor::new(identity(0)), here, there)
}

/// A client that does what a test says.
fn odd(
    versions: &[&'static rustls::SupportedProtocolVersion],
    client: impl FnOnce(&mut ClientConfig),
    judge: Arc<dyn ServerCertVerifier>,
) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(judge)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    client(&mut config);
    config
}

fn any() -> Arc<dyn ServerCertVerifier> {
    Arc::new(OfMaster::new(|_: &PublicKey| true))
}

/// Returns what the master says to such a client.
async fn refused(config: ClientConfig) -> String {
    let (acceptor, here, there) = master();
    let client = async {
        let stream = TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(NOBODY).unwrap(), there).await;
        // In TLS 1.3 a client learns of a refusal only when it reads.
        if let Ok(mut stream) = stream {
            let _ = stream.read(&mut [0; 1]).await;
        }
    };
    let (accepted, ()) = tokio::join!(acceptor.accept(here), client);
    accepted.expect_err("a stranger").to_string()
}

#[tokio::test]
async fn both_prove_their_keys() {
    let (acceptor, here, there) = master();
    let masters = KEYS[0].public().clone();
    let node = identity(1);
    let (accepted, connected) = tokio::join!(acceptor.accept(here), connect(there, &node, move |key| *key == masters));
    let ((mut here, nodes), (mut there, masters)) = (accepted.unwrap(), connected.unwrap());
    assert_eq!((&nodes, &masters), (KEYS[1].public(), KEYS[0].public()));
    there.write_all(b"hello").await.unwrap();
    there.flush().await.unwrap();
    let mut said = [0; 5];
    here.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"hello");
}

#[tokio::test]
async fn another_masters_key_is_refused_and_told() {
    let (acceptor, here, there) = master();
    let expected = KEYS[2].public().clone();
    let node = identity(1);
    let (accepted, connected) = tokio::join!(acceptor.accept(here), connect(there, &node, move |key| *key == expected));
    let Err(ConnectError::OtherKey(found)) = connected else { panic!("it is not the master") };
    assert_eq!(&*found, KEYS[0].public());
    assert!(accepted.is_err(), "the node went no further");
}

/// A public key is no secret: what counts is the private half.
#[tokio::test]
async fn a_key_of_somebody_else_is_refused() {
    let stolen = |n: usize| {
        let public = identity(n).0.cert.clone();
        let own: Arc<dyn SigningKey> = Arc::clone(&identity(2).0.key);
        Identity(Arc::new(CertifiedKey::new(public, own)))
    };
    let (acceptor, here, there) = master();
    let thief = stolen(1);
    let client = async {
        let mut stream = connect(there, &thief, |_| true).await?.0;
        Ok::<_, ConnectError>(stream.read(&mut [0; 1]).await?)
    };
    let (accepted, client) = tokio::join!(acceptor.accept(here), client);
    assert!(accepted.unwrap_err().to_string().contains("BadSignature"));
    assert!(client.is_err());
    let (_, here, there) = master();
    let (acceptor, node, masters) = (Acceptor::new(stolen(0)), identity(1), KEYS[0].public().clone());
    let (accepted, connected) = tokio::join!(acceptor.accept(here), connect(there, &node, move |key| *key == masters));
    assert!(matches!(connected, Err(ConnectError::Io(error)) if error.to_string().contains("BadSignature")));
    assert!(accepted.is_err());
}

#[tokio::test]
async fn other_clients_are_refused() {
    // What a browser or a scanner offers.
    #[derive(Debug)]
    struct Browser;
    impl ServerCertVerifier for Browser {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: tokio_rustls::rustls::pki_types::UnixTime,
        ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
            Ok(rustls::client::danger::ServerCertVerified::assertion())
        }
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
        }
        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
        }
        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            vec![rustls::SignatureScheme::RSA_PSS_SHA256, rustls::SignatureScheme::RSA_PKCS1_SHA256]
        }
    }
    let tls13: &[_] = &[&version::TLS13];
    let said = refused(odd(&[&version::TLS12], |_| (), Arc::new(Browser))).await;
    assert!(said.contains("Tls12NotOffered"), "{said}");
    let said = refused(odd(tls13, |_| (), Arc::new(Browser))).await;
    assert!(said.contains("IncorrectCertificateTypeExtension"), "it offers no raw keys: {said}");
    // It takes raw keys, and has none itself.
    #[derive(Debug)]
    struct Nothing;
    impl rustls::client::ResolvesClientCert for Nothing {
        fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
            None
        }
        fn only_raw_public_keys(&self) -> bool {
            true
        }
        fn has_certs(&self) -> bool {
            false
        }
    }
    let said = refused(odd(tls13, |config| config.client_auth_cert_resolver = Arc::new(Nothing), any())).await;
    assert!(said.contains("peer sent no certificates"), "{said}");
    let resolver = Arc::new(AlwaysResolvesClientRawPublicKeys::new(identity(1).0));
    let other = |config: &mut ClientConfig| {
        config.client_auth_cert_resolver = resolver;
        config.alpn_protocols.clear();
    };
    let said = refused(odd(tls13, other, any())).await;
    assert!(said.contains("it speaks something else"), "{said}");
}

#[test]
fn short_keys_are_refused() {
    let short = PrivateKey::generate(1_024).unwrap();
    assert!(Identity::new(&short).unwrap_err().to_string().starts_with("the key of 1024 bits"));
    let der = identity(1).0.cert[0].clone();
    assert_eq!(&verify::read(&der).unwrap(), KEYS[1].public());
    assert!(verify::read(&CertificateDer::from(vec![0x30, 0])).is_err());
}
