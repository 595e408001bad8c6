//! Lists the built files of the browser side, so that the program contains them. It needs no Node.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const BUILT: &str = "web/dist";

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join(BUILT);
    let mut names = Vec::new();
    collect(&root, &root, &mut names)?;
    names.sort();
    let mut table = String::from("&[\n");
    for name in &names {
        let path = root.join(name);
        writeln!(table, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    table.push_str("]\n");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("files.rs"), table)?;
    writeln!(std::io::stdout(), "cargo::rerun-if-changed={BUILT}")?;
    Ok(())
}

/// Adds the names of all files in a folder and its folders, relative to the root.
fn collect(root: &Path, folder: &Path, names: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, names)?;
        } else {
            let name = path.strip_prefix(root)?.to_str();
            names.push(
                name.ok_or("a file has a name that is not UTF-8")?
                    .to_owned(),
            );
        }
    }
    Ok(())
}
