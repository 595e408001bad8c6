//! Checks of all crash points: no shipped build contains them, and each is in the code exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use xtask::Result;
use xtask::source::product_code;
use xtask::workspace::Workspace;

const FOLDER: &str = "crates/instruments/src/failpoint";

/// The file that lists the steps and how the crash tests reach them.
const LIST: &str = "tests/crash/src/points/paths.rs";

/// Returns the product code, without tests, of the files below `crates/` that a filter accepts.
fn product_texts(accepts: impl Fn(&str) -> bool) -> Result<Vec<(String, String)>> {
    let workspace = Workspace::find()?;
    let files = workspace.files()?.into_iter().filter(|file| {
        let is_product = file.starts_with("crates/") && file.contains("/src/");
        is_product && file.ends_with(".rs") && accepts(file)
    });
    files
        .map(|file| {
            let text = workspace.text(&file)?.unwrap_or_default();
            let lines = product_code(&text).lines().count();
            let text: Vec<&str> = text.lines().take(lines).collect();
            Ok((file, text.join("\n")))
        })
        .collect()
}

/// Returns the quoted texts after a word.
fn quoted_after<'t>(text: &'t str, word: &str) -> impl Iterator<Item = &'t str> {
    let rests = text.split(word).skip(1);
    rests.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
}

/// Returns the steps that adapters run, except commits, with the crates that run each step.
fn steps() -> Result<BTreeMap<String, Vec<String>>> {
    let mut steps: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in product_texts(|file| !file.starts_with(FOLDER))? {
        let of = file.split("/src/").next().unwrap_or_default();
        for step in quoted_after(&text, "around(") {
            steps
                .entry(step.to_owned())
                .or_default()
                .push(of.to_owned());
        }
    }
    Ok(steps)
}

/// Returns the names of the transactions whose commit may be a step.
fn transactions(accepts: impl Fn(&str) -> bool) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for (_, text) in product_texts(accepts)? {
        for word in ["begin(", "begin_tx(", "begin(self,", "around_commit("] {
            names.extend(quoted_after(&text, word).map(str::to_owned));
        }
        // The writes of the idempotent frame.
        let writes = text.split("fn name(&self)").skip(1);
        let writes = writes.filter_map(|rest| rest.split("\n    }").next());
        let writes = writes.flat_map(|names| names.split('"').skip(1).step_by(2));
        names.extend(writes.map(str::to_owned));
    }
    Ok(names)
}

/// Returns the steps that the crash tests reach.
fn listed() -> Result<BTreeSet<String>> {
    let text = Workspace::find()?.text(LIST)?.unwrap_or_default();
    let (_, list) = text.split_once("const STEPS").ok_or("no `STEPS`")?;
    let (list, rest) = list.split_once("];").ok_or("no end of `STEPS`")?;
    let named = list.split('"').skip(1).step_by(2).map(str::to_owned);
    let start = quoted_after(rest, "START_COMMIT: &str =").map(str::to_owned);
    Ok(named.chain(start).collect())
}

/// Both stores may run the same step, but each of them only once.
#[test]
fn each_step_is_in_the_code_of_an_adapter_exactly_once() {
    let steps = steps().unwrap();
    assert!(steps.len() > 30, "{steps:?}");
    for (step, places) in steps {
        let crates: BTreeSet<_> = places.iter().collect();
        assert_eq!(crates.len(), places.len(), "{step}: {places:?}");
    }
}

#[test]
fn crash_tests_reach_every_step_and_no_other() {
    let listed = listed().unwrap();
    let (commits, steps): (BTreeSet<_>, BTreeSet<_>) = listed
        .into_iter()
        .partition(|step| step.ends_with(".commit"));
    let run: BTreeSet<String> = self::steps().unwrap().into_keys().collect();
    assert_eq!(steps, run, "{LIST} and the adapters");
    let begun = transactions(|_| true).unwrap();
    for commit in &commits {
        let name = commit.trim_end_matches(".commit");
        assert!(begun.contains(name), "no transaction is called {name}");
    }
    let of_use_cases = transactions(|file| {
        let cores = ["gate-core", "pools-core"].map(|core| format!("crates/{core}/src/usecases/"));
        cores.iter().any(|core| file.starts_with(core))
    });
    let of_use_cases = of_use_cases.unwrap();
    for known in ["customer_delete", "rail_create", "trade_apply"] {
        assert!(of_use_cases.contains(known), "{known}: {of_use_cases:?}");
    }
    let unlisted = of_use_cases
        .iter()
        .filter(|name| !commits.contains(&format!("{name}.commit")));
    // Steps of a walk and a count that may be repeated, a read, and a sweep whose commit the tests reach as the commit of an expiry.
    let unlisted: Vec<&String> = unlisted.collect();
    assert_eq!(
        unlisted,
        [
            "customer_forms",
            "recount",
            "sessions_expire",
            "signed_quote_read",
            "velocity_step"
        ]
    );
}

/// Calls the compiler with the setting that distinguishes the profiles.
#[test]
fn without_debug_assertions_crash_points_do_not_compile() {
    let workspace = Workspace::find().unwrap();
    let compile = |assertions: &str| {
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
    assert!(compile("off").contains(refusal));
    assert!(!compile("on").contains(refusal));
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

/// The manifests of the programs that can have crash points, and of the crate that forwards their feature.
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
