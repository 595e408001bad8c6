//! TLS with a database server, as the URL asks for it.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use test_support::servers::{Postgres, Stop};

use crate::served::{POOLS, text};
use crate::server::refused;

const NO_SESSION: &str = "no session: check sslmode, sslrootcert, sslcert, sslkey and the characters of the password in PENSTOCK_DATABASE_URL";

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Authority::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate that the authority has signed, and its key.
fn certified(authority: &Authority, name: &str) -> [String; 2] {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    [
        pem("CERTIFICATE", certificate.der()),
        pem("PRIVATE KEY", &key.serialize_der()),
    ]
}

fn pem(kind: &str, bytes: &[u8]) -> String {
    let encoded = STANDARD.encode(bytes);
    let lines = encoded.as_bytes().chunks(64).map(text);
    let lines: Vec<&str> = lines.collect();
    let body = lines.join("\n");
    format!("-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n")
}

/// A server that accepts sessions over TLS alone, with a certificate for 127.0.0.1.
fn server(root: &Authority) -> Postgres {
    let mut server = Postgres::start(&[("fsync", "off")]).unwrap();
    let [certificate, key] = certified(root, "127.0.0.1");
    let settings = "ssl = on\nssl_ca_file = 'root.crt'\n";
    for (name, contents) in [
        ("server.crt", certificate.as_str()),
        ("server.key", key.as_str()),
        ("root.crt", pem("CERTIFICATE", root.der()).as_str()),
        ("postgresql.auto.conf", settings),
    ] {
        server.write(name, contents).unwrap();
    }
    admit(&mut server, "");
    server
}

/// Restarts the server so that it accepts sessions over TLS with these options alone.
fn admit(server: &mut Postgres, options: &str) {
    let rule = format!("hostssl all all 127.0.0.1/32 password {options}\n");
    server.write("pg_hba.conf", &rule).unwrap();
    server.stop(Stop::Fast).unwrap();
    server.start_again().unwrap();
}

/// Writes a file of the client, and returns its path.
fn client_file(folder: &Path, name: &str, contents: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, contents).unwrap();
    file.display().to_string()
}

fn migrates(url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let migrated = POOLS.output(folder.path(), &["migrate"], &variables(url));
    assert_eq!(migrated.status.code(), Some(0), "{url}: {migrated:?}");
}

/// The connect timeout leaves time for a busy machine.
fn variables(url: &str) -> [(&str, &str); 2] {
    [("DATABASE_URL", url), ("DATABASE_CONNECT_TIMEOUT", "30s")]
}

// rule: config.database-tls
#[test]
fn certificate_of_the_server_is_verified_as_the_url_says() {
    let folder = tempfile::tempdir().unwrap();
    let (root, other) = (authority("root of the server"), authority("other root"));
    let server = server(&root);
    let file = |name: &str, authority: &Authority| {
        let contents = pem("CERTIFICATE", authority.der());
        client_file(folder.path(), name, &contents)
    };
    let (root, other) = (file("root.pem", &root), file("other.pem", &other));
    let missing = format!("{}/missing.pem", folder.path().display());
    let by_address = server.url("postgres");
    let by_name = by_address.replace("@127.0.0.1:", "@localhost:");
    for url in [
        format!("{by_address}?sslmode=verify-full&sslrootcert={root}"),
        format!("{by_name}?sslmode=verify-ca&sslrootcert={root}"),
        format!("{by_address}?sslmode=require"),
        by_address.clone(),
    ] {
        migrates(&url);
    }
    let untrusted = [NO_SESSION, "invalid peer certificate"];
    for (url, parts) in [
        (
            format!("{by_address}?sslmode=verify-full&sslrootcert={other}"),
            untrusted,
        ),
        (
            format!("{by_address}?sslmode=verify-ca&sslrootcert={other}"),
            untrusted,
        ),
        (format!("{by_address}?sslmode=verify-full"), untrusted),
        (
            format!("{by_name}?sslmode=verify-full&sslrootcert={root}"),
            [NO_SESSION, "not valid for name"],
        ),
        (
            format!("{by_address}?sslmode=verify-full&sslrootcert={missing}"),
            ["sslrootcert, sslcert or sslkey does not exist", "os error"],
        ),
        (
            format!("{by_address}?sslmode=disable"),
            ["it does not let role `postgres` in", "pg_hba.conf"],
        ),
    ] {
        let line = refused(&["migrate"], &variables(&url), 1);
        for part in parts {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
}

// rule: config.database-tls
#[test]
fn server_that_asks_for_a_certificate_gets_the_one_of_the_url() {
    let folder = tempfile::tempdir().unwrap();
    let (root, other) = (authority("root of the server"), authority("other root"));
    let mut server = server(&root);
    admit(&mut server, "clientcert=verify-ca");
    let pair = |name: &str, authority: &Authority| {
        let [certificate, key] = certified(authority, "penstock.example");
        let certificate = client_file(folder.path(), &format!("{name}.crt"), &certificate);
        let key = client_file(folder.path(), &format!("{name}.key"), &key);
        format!("sslcert={certificate}&sslkey={key}")
    };
    let (own, foreign) = (pair("own", &root), pair("foreign", &other));
    let url = format!("{}?sslmode=require", server.url("postgres"));
    migrates(&format!("{url}&{own}"));

    let line = refused(&["migrate"], &variables(&url), 1);
    assert!(line.contains("client certificate"), "{line}");
    let certificate = own.split('&').next().unwrap();
    let line = refused(&["migrate"], &variables(&format!("{url}&{certificate}")), 1);
    assert!(line.contains(NO_SESSION), "{line}");
    refused(&["migrate"], &variables(&format!("{url}&{foreign}")), 1);
}
