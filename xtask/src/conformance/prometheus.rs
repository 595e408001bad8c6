//! Finds a Prometheus that scrapes the programs: an installed one, or Debian's package, which is unpacked under the target folder. The
//! unpacked one starts no service and needs no root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{installed_already, mark_installed, remove_folder};
use crate::{Result, process};

const PACKAGE: &str = "prometheus";
const MISSING: &str = "prometheus and promtool are not installed: install Prometheus 2.42 or newer \
                       (Debian and Ubuntu: `apt install prometheus`)";

/// The two programs of a Prometheus.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prometheus {
    pub(super) server: PathBuf,
    pub(super) tool: PathBuf,
}

/// Finds a Prometheus, or unpacks one in `area`.
pub(super) fn find_or_unpack(area: &Path) -> Result<Prometheus> {
    if process::installed("prometheus") && process::installed("promtool") {
        return Ok(Prometheus {
            server: "prometheus".into(),
            tool: "promtool".into(),
        });
    }
    let home = area.join("prometheus");
    let unpacked = Prometheus {
        server: home.join("usr/bin/prometheus"),
        tool: home.join("usr/bin/promtool"),
    };
    if !installed_already(&home, PACKAGE) {
        remove_folder(&home)?;
        fs::create_dir_all(&home)?;
        unpack(&home).map_err(|error| format!("{MISSING}; {error}"))?;
        mark_installed(&home, PACKAGE)?;
    }
    Ok(unpacked)
}

fn unpack(home: &Path) -> Result<()> {
    if download(home).is_err() {
        // A new machine has no package lists yet.
        process::run(Command::new("apt-get").args(["-qq", "update"]))?;
        download(home)?;
    }
    let package = the_package(home)?;
    process::run(Command::new("dpkg").arg("-x").arg(&package).arg(home))?;
    Ok(fs::remove_file(package)?)
}

fn download(home: &Path) -> Result<()> {
    let mut command = Command::new("apt-get");
    // The download user of apt may have no access to this folder.
    command.args(["-qq", "-o", "APT::Sandbox::User=root", "download", PACKAGE]);
    process::run(command.current_dir(home))
}

/// Returns the package in a folder.
fn the_package(home: &Path) -> Result<PathBuf> {
    for entry in fs::read_dir(home)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "deb") {
            return Ok(path);
        }
    }
    Err("apt-get has downloaded no package".into())
}

#[cfg(test)]
mod tests {
    use super::{PACKAGE, find_or_unpack, mark_installed, the_package};
    use crate::process;

    #[test]
    fn unpacked_package_is_used_again() {
        let area = tempfile::tempdir().unwrap();
        let home = area.path().join("prometheus");
        std::fs::create_dir(&home).unwrap();
        mark_installed(&home, PACKAGE).unwrap();
        let found = find_or_unpack(area.path()).unwrap();
        if process::installed("prometheus") && process::installed("promtool") {
            assert_eq!(found.server.to_str(), Some("prometheus"));
        } else {
            assert_eq!(found.server, home.join("usr/bin/prometheus"));
            assert_eq!(found.tool, home.join("usr/bin/promtool"));
        }
    }

    #[test]
    fn folder_without_a_package_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let error = the_package(home.path()).unwrap_err();
        assert!(error.to_string().contains("no package"));
        std::fs::write(home.path().join("prometheus_2_amd64.deb"), "").unwrap();
        assert!(
            the_package(home.path())
                .unwrap()
                .ends_with("prometheus_2_amd64.deb")
        );
    }
}
