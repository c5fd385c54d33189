//! Extensions in the words of OpenSSL's `X509V3_EXT_print`: those that most certificates have. The others are their bytes.

use brine_guest::Value;
use x509_cert::der::{Decode, Tagged};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, IssuerAltName, KeyUsage, KeyUsages, SubjectAltName,
    SubjectKeyIdentifier,
};

/// A dict of `ext_name` and `ext_data`.
pub fn value(extension: &Extension) -> Value {
    let bytes = extension.extn_value.as_bytes();
    let (name, words) = match extension.extn_id.to_string().as_str() {
        "2.5.29.14" => {
            ("subjectKeyIdentifier", SubjectKeyIdentifier::from_der(bytes).ok().map(|id| hex(id.0.as_bytes())))
        }
        "2.5.29.15" => ("keyUsage", KeyUsage::from_der(bytes).ok().map(key_usage)),
        "2.5.29.17" => ("subjectAltName", SubjectAltName::from_der(bytes).ok().map(|names| all(&names.0))),
        "2.5.29.18" => ("issuerAltName", IssuerAltName::from_der(bytes).ok().map(|names| all(&names.0))),
        "2.5.29.19" => ("basicConstraints", BasicConstraints::from_der(bytes).ok().map(constraints)),
        "2.5.29.35" => {
            let id = AuthorityKeyIdentifier::from_der(bytes).ok().and_then(|id| id.key_identifier);
            ("authorityKeyIdentifier", id.map(|id| hex(id.as_bytes())))
        }
        "2.5.29.37" => ("extendedKeyUsage", ExtendedKeyUsage::from_der(bytes).ok().map(purposes)),
        "2.5.29.9" => ("subjectDirectoryAttributes", None),
        "2.5.29.30" => ("nameConstraints", None),
        "2.5.29.31" => ("crlDistributionPoints", None),
        "2.5.29.32" => ("certificatePolicies", None),
        "2.5.29.33" => ("policyMappings", None),
        "2.5.29.36" => ("policyConstraints", None),
        "2.5.29.46" => ("freshestCRL", None),
        "2.5.29.54" => ("inhibitAnyPolicy", None),
        "1.3.6.1.5.5.7.1.1" => ("authorityInfoAccess", None),
        "1.3.6.1.5.5.7.1.11" => ("subjectInfoAccess", None),
        "1.3.6.1.5.5.7.1.24" => ("tlsfeature", None),
        "1.3.6.1.4.1.11129.2.4.2" => ("ct_precert_scts", None),
        "2.16.840.1.113730.1.1" => ("nsCertType", None),
        "2.16.840.1.113730.1.13" => ("nsComment", None),
        _ => ("UNDEF", None),
    };
    Value::dict([("ext_name", name.into()), ("ext_data", words.unwrap_or_else(|| hex(bytes)).into())])
}

fn hex(bytes: &[u8]) -> String {
    let parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    parts.join(":")
}

fn constraints(constraints: BasicConstraints) -> String {
    let ca = if constraints.ca { "CA:TRUE" } else { "CA:FALSE" };
    match constraints.path_len_constraint {
        Some(length) => format!("{ca}, pathlen:{length}"),
        None => ca.to_owned(),
    }
}

fn key_usage(usage: KeyUsage) -> String {
    const NAMES: [(KeyUsages, &str); 9] = [
        (KeyUsages::DigitalSignature, "Digital Signature"),
        (KeyUsages::NonRepudiation, "Non Repudiation"),
        (KeyUsages::KeyEncipherment, "Key Encipherment"),
        (KeyUsages::DataEncipherment, "Data Encipherment"),
        (KeyUsages::KeyAgreement, "Key Agreement"),
        (KeyUsages::KeyCertSign, "Certificate Sign"),
        (KeyUsages::CRLSign, "CRL Sign"),
        (KeyUsages::EncipherOnly, "Encipher Only"),
        (KeyUsages::DecipherOnly, "Decipher Only"),
    ];
    let names: Vec<&str> = NAMES.iter().filter(|(bit, _)| usage.0.contains(*bit)).map(|(_, name)| *name).collect();
    names.join(", ")
}

fn purposes(usage: ExtendedKeyUsage) -> String {
    let name = |oid: String| match oid.as_str() {
        "1.3.6.1.5.5.7.3.1" => "TLS Web Server Authentication".to_owned(),
        "1.3.6.1.5.5.7.3.2" => "TLS Web Client Authentication".to_owned(),
        "1.3.6.1.5.5.7.3.3" => "Code Signing".to_owned(),
        "1.3.6.1.5.5.7.3.4" => "E-mail Protection".to_owned(),
        "1.3.6.1.5.5.7.3.8" => "Time Stamping".to_owned(),
        "1.3.6.1.5.5.7.3.9" => "OCSP Signing".to_owned(),
        "2.5.29.37.0" => "Any Extended Key Usage".to_owned(),
        _ => oid,
    };
    let names: Vec<String> = usage.0.iter().map(|oid| name(oid.to_string())).collect();
    names.join(", ")
}

fn all(names: &[GeneralName]) -> String {
    let names: Vec<String> = names.iter().map(general).collect();
    names.join(", ")
}

fn general(name: &GeneralName) -> String {
    match name {
        GeneralName::DnsName(name) => format!("DNS:{name}"),
        GeneralName::Rfc822Name(name) => format!("email:{name}"),
        GeneralName::UniformResourceIdentifier(uri) => format!("URI:{uri}"),
        GeneralName::IpAddress(address) => format!("IP Address:{}", ip(address.as_bytes())),
        GeneralName::RegisteredId(oid) => format!("Registered ID:{oid}"),
        GeneralName::DirectoryName(name) => format!("DirName:{name}"),
        GeneralName::OtherName(other) => format!("othername:{}:<{:?}>", other.type_id, other.value.tag()),
        GeneralName::EdiPartyName(_) => "EdiPartyName:<unsupported>".to_owned(),
    }
}

fn ip(bytes: &[u8]) -> String {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return std::net::Ipv4Addr::from(four).to_string();
    }
    // OpenSSL writes each group, also those of zeros.
    match bytes.len() {
        16 => {
            let groups = bytes.chunks_exact(2).map(|two| format!("{:X}", u16::from_be_bytes([two[0], two[1]])));
            groups.collect::<Vec<_>>().join(":")
        }
        _ => "<invalid>".to_owned(),
    }
}
