//! The gate's catalogue, from the operator's file or built in.

use std::path::Path;

use gate_core::catalogue::Catalogue;

use crate::config::ConfigError;

/// Reads the operator's catalogue, or returns the built-in one.
///
/// # Errors
/// Every error of the file, each with its line.
pub(crate) fn read(file: Option<&Path>) -> Result<Catalogue, Vec<ConfigError>> {
    let Some(file) = file else {
        let faulty = |error| vec![named(format!("the built-in catalogue: {error}"))];
        return Catalogue::built_in().map_err(faulty);
    };
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| {
        vec![named(format!(
            "{name}: expected a readable TOML file ({error})"
        ))]
    })?;
    Catalogue::parse(&text).map_err(|faults| {
        let line = |error: &partner_core::tables::TableError| {
            let colon = if error.key.is_empty() { "" } else { ": " };
            let (line, key, problem) = (error.line, &error.key, &error.problem);
            named(format!("{name}:{line}: {key}{colon}{problem}"))
        };
        faults.0.iter().map(line).collect()
    })
}

fn named(expected: String) -> ConfigError {
    ConfigError::new("PENSTOCK_CATALOGUE", expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(file: &Path) -> Vec<String> {
        let faults = read(Some(file)).unwrap_err();
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn missing_file_selects_built_in_catalogue() {
        assert!(!read(None).unwrap().assets().is_empty());
    }

    // rule: gate.catalogue.faults
    #[test]
    fn every_error_of_catalogue_file_names_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("catalogue.toml");
        std::fs::write(&file, "[[countries]]\ncode = \"XX\"\n[[currencies]\n").unwrap();
        let broken = faults(&file);
        assert_eq!(broken.len(), 1, "{broken:?}");
        assert!(broken[0].contains("catalogue.toml:3: "), "{broken:?}");
        std::fs::write(&file, "[[countries]]\ncode = \"XX\"\ncolor = 1\n").unwrap();
        let told = format!("PENSTOCK_CATALOGUE: {}:2: countries.code: ", file.display());
        let wrong = faults(&file);
        assert!(
            wrong.iter().any(|line| line.starts_with(&told)),
            "{wrong:#?}"
        );
        assert!(
            wrong
                .iter()
                .any(|line| line.contains(":3: countries.color: unknown key"))
        );
        let gone = faults(&folder.path().join("none.toml"));
        assert!(gone[0].contains("none.toml: expected a readable TOML file"));
    }
}
