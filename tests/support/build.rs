//! Lists the cases of the store contract, so that a new case is written in one file.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

const FOLDER: &str = "src/contract";
/// Fewer cases mean that [`case`] misses some.
const FEWEST_CASES: usize = 240;

fn main() -> Result<(), Box<dyn Error>> {
    let files = std::fs::read_dir(FOLDER)?.map(|file| Ok(file?.path()));
    let mut files: Vec<PathBuf> = files.collect::<Result<_, std::io::Error>>()?;
    files.sort();
    let (mut lists, mut count) = (String::new(), 0);
    for path in files {
        let text = std::fs::read_to_string(&path)?;
        let functions = || text.split("\npub async fn ").skip(1);
        if let Some(missed) = functions().find(|function| is_missed(function)) {
            let line = missed.lines().next().unwrap_or_default();
            return Err(
                format!("{}: expected `World<impl Fixture>`: {line}", path.display()).into(),
            );
        }
        let cases: Vec<&str> = functions().filter_map(case).collect();
        if !cases.is_empty() {
            let entity = path.file_stem().ok_or("a file without a name")?;
            writeln!(lists, "{}: {};", entity.display(), cases.join(", "))?;
            count += cases.len();
        }
    }
    if count < FEWEST_CASES {
        return Err(format!("only {count} cases in {FOLDER}").into());
    }
    let list = format!(
        "/// One test for every case of the contract, on stores that `$open` opens.
#[macro_export]
macro_rules! store_contract {{
    ($open:path) => {{ $crate::__cases! {{ $open;\n{lists}}} }};
}}\n"
    );
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("store_contract.rs"), list)?;
    writeln!(std::io::stdout(), "cargo::rerun-if-changed={FOLDER}")?;
    Ok(())
}

/// Whether a public function has a store or a world as its only argument, but does not look like a case.
fn is_missed(function: &str) -> bool {
    let Some((head, _)) = function.split_once(')') else {
        return false;
    };
    let is_only_one = !head.trim_end().trim_end_matches(',').contains(',');
    is_only_one && head.contains("Fixture") && case(function).is_none()
}

/// The name of a public function whose only argument is a world. `function` is its text from the name on.
fn case(function: &str) -> Option<&str> {
    let (name, rest) = function.split_once('(')?;
    let (arguments, _) = rest.split_once(')')?;
    let argument = arguments.trim().trim_end_matches(',');
    let is_world = argument.ends_with(": World<impl Fixture>")
        || argument.ends_with(": World<impl GateFixture>");
    (is_world && !argument.contains(',')).then_some(name)
}
