//! What holds of the crash points wherever they stand: no build that ships has them, and each is in the code once.

use std::collections::BTreeSet;
use std::process::Command;

use xtask::Result;
use xtask::source::product_code;
use xtask::workspace::Workspace;

const FOLDER: &str = "crates/instruments/src/failpoint";

/// A file of an adapter: its name, its code, and the same with its strings, which are blanked out of the code.
struct Adapter {
    file: String,
    code: String,
    text: String,
}

fn adapters() -> Result<Vec<Adapter>> {
    let workspace = Workspace::find()?;
    let product = workspace.files()?.into_iter().filter(|file| {
        file.starts_with("crates/")
            && file.contains("/src/")
            && file.ends_with(".rs")
            && !file.starts_with(FOLDER)
    });
    product
        .map(|file| {
            let text = workspace.text(&file)?.unwrap_or_default();
            let code = product_code(&text);
            let lines: Vec<&str> = text.lines().take(code.lines().count()).collect();
            let text = lines.join("\n");
            Ok(Adapter { file, code, text })
        })
        .collect()
}

/// The part of the list's file between two words.
fn between(start: &str, end: &str) -> Result<String> {
    let workspace = Workspace::find()?;
    let text = workspace
        .text(&format!("{FOLDER}/step.rs"))?
        .unwrap_or_default();
    let (_, rest) = text.split_once(start).ok_or(format!("no `{start}`"))?;
    let (part, _) = rest.split_once(end).ok_or(format!("no `{end}`"))?;
    Ok(part.to_owned())
}

/// The steps as the crate lists them.
fn steps() -> Result<Vec<String>> {
    let list = between("pub const ALL", "];")?;
    let names = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Self::"));
    Ok(names
        .map(|name| name.trim_end_matches(',').to_owned())
        .collect())
}

/// Which transaction's commit is which step.
fn commits() -> Result<Vec<(String, String)>> {
    let arms = between("match transaction {", "}")?;
    let named = arms.lines().filter_map(|line| {
        let (name, step) = line.trim().split_once(" => Self::")?;
        let name = name.strip_prefix('"')?.strip_suffix('"')?;
        Some((name.to_owned(), step.trim_end_matches(',').to_owned()))
    });
    Ok(named.collect())
}

/// The code that runs a step.
fn words_of(step: &str) -> Vec<String> {
    match step {
        "OtherCommit" => vec!["Step::commit_of(".to_owned()],
        "AnswerWrite" => vec!["instruments::failpoint::torn(".to_owned()],
        _ => vec![format!("(Step::{step},"), format!("(Failpoint::{step},")],
    }
}

fn places<'a>(adapters: &'a [Adapter], words: &[String]) -> Vec<&'a str> {
    let times = |adapter: &Adapter| {
        let found = words.iter().map(|word| adapter.text.matches(word.as_str()));
        found.map(Iterator::count).sum()
    };
    adapters
        .iter()
        .flat_map(|adapter| std::iter::repeat_n(adapter.file.as_str(), times(adapter)))
        .collect()
}

/// Both stores may run the same step, each of them once.
#[test]
fn each_step_is_in_the_code_of_an_adapter_exactly_once() {
    let (steps, commits, adapters) = (steps().unwrap(), commits().unwrap(), adapters().unwrap());
    assert!(steps.len() > 30 && commits.len() > 5);
    for step in &steps {
        // A commit that goes by its transaction's name is where `OtherCommit` is.
        if let Some((name, _)) = commits.iter().find(|(_, of)| of == step) {
            let begun = [
                format!("begin(\"{name}\")"),
                format!("begin(self, \"{name}\")"),
                // A deed names its own.
                format!("=> \"{name}\""),
            ];
            assert!(
                !places(&adapters, &begun).is_empty(),
                "{name} is never begun"
            );
            continue;
        }
        let places = places(&adapters, &words_of(step));
        let crates: BTreeSet<_> = places
            .iter()
            .map(|file| file.split("/src/").next())
            .collect();
        let once = !places.is_empty() && places.len() == crates.len();
        assert!(once, "{step}: {places:?}");
    }
}

/// Names of transactions in a use case: given as they begin, or by the deed that is done in them.
fn begun_in(text: &str) -> BTreeSet<String> {
    let begun = text.split("begin(\"").skip(1);
    let begun = begun.filter_map(|rest| rest.split('"').next());
    let deeds = text.split("fn name(&self)").skip(1);
    let deeds = deeds.filter_map(|rest| rest.split("\n    }").next());
    let deeds = deeds.flat_map(|names| names.split('"').skip(1).step_by(2));
    begun.chain(deeds).map(str::to_owned).collect()
}

#[test]
fn commit_of_each_request_has_its_own_crash_point() {
    let workspace = Workspace::find().unwrap();
    let of_cores = |file: &String| {
        let cores = ["gate-core", "pools-core"].map(|core| format!("crates/{core}/src/usecases/"));
        cores.iter().any(|core| file.starts_with(core))
    };
    let mut begun = BTreeSet::new();
    for file in workspace.files().unwrap().into_iter().filter(of_cores) {
        begun.extend(begun_in(&product_text(&workspace, &file).unwrap()));
    }
    for known in ["customer_delete", "rail_create", "trade_apply"] {
        assert!(begun.contains(known), "{known}: {begun:?}");
    }
    let named: BTreeSet<String> = commits()
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let nameless: Vec<&String> = begun.difference(&named).collect();
    // Steps of a count that may be repeated, and a read.
    assert_eq!(nameless, ["recount", "signed_quote_read", "velocity_step"]);
}

/// A file without its tests.
fn product_text(workspace: &Workspace, file: &str) -> Result<String> {
    let text = workspace.text(file)?.unwrap_or_default();
    let lines = product_code(&text).lines().count();
    Ok(text.lines().take(lines).collect::<Vec<_>>().join("\n"))
}

#[test]
fn adapters_run_no_step_that_is_not_listed() {
    let steps = steps().unwrap();
    for Adapter { file, code, .. } in adapters().unwrap() {
        for word in ["Step::", "Failpoint::"] {
            for rest in code.split(&format!("around({word}")).skip(1) {
                let step = rest.split([',', '(']).next().unwrap();
                let known = step == "commit_of" || steps.iter().any(|known| known == step);
                assert!(known, "{file}: {step}");
            }
        }
    }
}

/// The compiler itself is asked, with the one setting that tells the profiles apart.
#[test]
fn without_debug_assertions_crash_points_do_not_compile() {
    let workspace = Workspace::find().unwrap();
    let asked = |assertions: &str| {
        let mut rustc = Command::new("rustc");
        rustc
            .args([
                "--edition",
                "2024",
                "--crate-type",
                "lib",
                "--emit",
                "metadata",
                "-o",
            ])
            .arg(std::env::temp_dir().join("never-made.rmeta"))
            .args([
                "--cfg",
                "feature=\"failpoints\"",
                "-C",
                &format!("debug-assertions={assertions}"),
            ])
            .arg(workspace.path(&format!("{FOLDER}.rs")));
        String::from_utf8(rustc.output().unwrap().stderr).unwrap()
    };
    let refusal = "a profile without debug assertions is not built with them";
    assert!(asked("off").contains(refusal));
    assert!(!asked("on").contains(refusal));
}

#[test]
fn shipped_profiles_have_no_debug_assertions() {
    let workspace = Workspace::find().unwrap();
    let manifest = workspace.text("Cargo.toml").unwrap().unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let profiles = manifest["profile"].as_table().unwrap();
    let mut ships = 0;
    for name in profiles.keys() {
        let mut chain = vec![name.as_str()];
        while let Some(parent) = profiles
            .get(*chain.last().unwrap())
            .and_then(|profile| profile.get("inherits"))
        {
            chain.push(parent.as_str().unwrap());
        }
        if chain.last() != Some(&"release") && name != "bench" {
            continue;
        }
        ships += 1;
        for of in chain {
            let turned_on = profiles.get(of).and_then(|it| it.get("debug-assertions"));
            assert!(turned_on.is_none(), "{name} from {of}");
        }
    }
    assert!(ships >= 3, "release, dist and bench at least");
}

/// The programs that can be built with crash points, and the crate that passes their feature on.
const ARMABLE: [&str; 3] = [
    "crates/gate-service/Cargo.toml",
    "crates/pools-service/Cargo.toml",
    "crates/runtime/Cargo.toml",
];

#[test]
fn default_features_arm_no_crash_points() {
    let workspace = Workspace::find().unwrap();
    for file in workspace.files().unwrap() {
        if !file.ends_with("Cargo.toml") {
            continue;
        }
        let manifest: toml::Table = workspace.text(&file).unwrap().unwrap().parse().unwrap();
        let text = manifest
            .get("features")
            .map(toml::Value::to_string)
            .unwrap_or_default();
        assert!(!text.contains("default"), "{file}: {text}");
        let arms = text.contains("/failpoints");
        assert!(!arms || ARMABLE.contains(&&*file), "{file}");
    }
}
