//! Checks the variables that libraries read, so that a wrong value stops a program before it starts anything.

use std::ffi::OsStr;
use std::path::Path;

use rustls_native_certs::{CertificateResult, load_certs_from_paths};

use crate::config::ConfigError;
use crate::telemetry;

const FILE: &str = "SSL_CERT_FILE";
const FOLDERS: &str = "SSL_CERT_DIR";

/// Checks the levels of the log, and the trusted certificates.
///
/// # Errors
/// An error for each variable with a wrong value.
pub(crate) fn check() -> Result<(), Vec<ConfigError>> {
    // The library reads both, so the folders may be empty beside a file.
    let certificates = match (std::env::var_os(FILE), std::env::var_os(FOLDERS)) {
        (Some(file), _) => check_file(&file),
        (None, Some(folders)) if !folders.is_empty() => check_folders(&folders),
        (None, _) => Ok(()),
    };
    let checks = [telemetry::check_levels(), certificates];
    let faults: Vec<ConfigError> = checks.into_iter().filter_map(Result::err).collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

fn check_file(file: &OsStr) -> Result<(), ConfigError> {
    let found = load_certs_from_paths(Some(Path::new(file)), None);
    let expected = "expected a file with certificates in PEM form, or no variable";
    required(FILE, expected, found)
}

/// Folders without a certificate are allowed beside one that has some.
fn check_folders(folders: &OsStr) -> Result<(), ConfigError> {
    let mut all = CertificateResult::default();
    for folder in std::env::split_paths(folders) {
        let mut found = load_certs_from_paths(None, Some(&folder));
        all.certs.append(&mut found.certs);
        all.errors.append(&mut found.errors);
    }
    let expected =
        "expected folders of certificates with the names that `openssl rehash` gives them";
    required(FOLDERS, expected, all)
}

fn required(
    variable: &'static str,
    expected: &str,
    found: CertificateResult,
) -> Result<(), ConfigError> {
    if !found.certs.is_empty() {
        return Ok(());
    }
    let why = match found.errors.first() {
        Some(error) => kernel::causes(error),
        None => "it has no certificate".to_owned(),
    };
    Err(ConfigError::new(variable, format!("{expected} ({why})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: config.library-settings
    #[test]
    fn certificates_must_exist() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let why = check_file(file.as_os_str()).unwrap_err().to_string();
        assert!(why.starts_with("SSL_CERT_FILE: expected a file"), "{why}");
        std::fs::write(&file, "no certificate").unwrap();
        check_file(file.as_os_str()).unwrap_err();
        let why = check_folders(folder.path().as_os_str()).unwrap_err();
        assert!(
            why.to_string()
                .starts_with("SSL_CERT_DIR: expected folders"),
            "{why}"
        );
    }
}
