//! The levels of the log, from `RUST_LOG`.
//!
//! The library that reads them takes a word that it does not know for the name of a module. So a mistyped level would enable the lines of
//! a module that does not exist, and silence all others. Therefore each directive is checked before.

use instruments::trace;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::EnvFilter;

use crate::config::{ConfigError, nearest_of};

/// The variable for log levels, common to Rust programs.
const LEVELS: &str = "RUST_LOG";
/// Letters by which a mistyped name of a module differs from the right one.
const MAX_SLIPS: usize = 2;
const NAMES: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The crates whose lines the programs write. A test compares them with the workspace.
const MODULES: [&str; 18] = [
    "coordination",
    "gate_core",
    "gate_http",
    "gate_service",
    "http_kit",
    "instruments",
    "kernel",
    "partner_core",
    "penstock",
    "pools_core",
    "pools_http",
    "pools_service",
    "providers",
    "runtime",
    "store_postgres",
    "store_sql",
    "store_sqlite",
    "webhooks",
];

/// The levels of this process. The span with a request's id is always enabled, and the spans of traces are never logged.
pub(super) fn levels() -> Result<EnvFilter, ConfigError> {
    let given = match std::env::var(LEVELS) {
        Ok(given) if !given.trim().is_empty() => given,
        Ok(_) | Err(std::env::VarError::NotPresent) => "info".to_owned(),
        Err(unread @ std::env::VarError::NotUnicode(_)) => {
            return Err(refused(&unread.to_string()));
        }
    };
    check(&given).map_err(|why| refused(&why))?;
    let parse = |text: &str| {
        let builder = EnvFilter::builder().with_default_directive(LevelFilter::OFF.into());
        let parsed = builder.parse(text);
        parsed.map_err(|unread| refused(&unread.to_string()))
    };
    let asked = parse(&given)?;
    if asked.max_level_hint() == Some(LevelFilter::OFF) {
        return Ok(asked);
    }
    let (request, spans) = (trace::REQUEST_TARGET, trace::TARGET);
    parse(&format!("{given},{request}=error,{spans}=off"))
}

fn refused(why: &str) -> ConfigError {
    let expected = format!("expected levels such as info or warn,pools_http=debug ({why})");
    ConfigError::new(LEVELS, expected)
}

/// Checks each directive: a level, a module, or a module with a level. A directive about a span is left to the library.
fn check(given: &str) -> Result<(), String> {
    let mut depth = 0_u32;
    let is_between = |letter: char| {
        match letter {
            '[' | '{' => depth = depth.saturating_add(1),
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    };
    let directives = given.split(is_between).map(str::trim);
    let directives = directives.filter(|directive| !directive.contains(['[', '{']));
    directives
        .filter(|it| !it.is_empty())
        .try_for_each(check_directive)
}

fn check_directive(directive: &str) -> Result<(), String> {
    match directive.split_once('=') {
        None if is_level(directive) => Ok(()),
        None => check_module(directive, true),
        Some((module, level)) => {
            check_module(module.trim(), false)?;
            if is_level(level.trim()) {
                return Ok(());
            }
            let nearest = nearest_of(level, NAMES).map(|near| format!("; the nearest is {near}"));
            let nearest = nearest.unwrap_or_default();
            Err(format!("{level:?} is not a level{nearest}"))
        }
    }
}

fn is_level(word: &str) -> bool {
    matches!(word, "0" | "1" | "2" | "3" | "4" | "5")
        || NAMES.iter().any(|name| name.eq_ignore_ascii_case(word))
}

/// Checks the name of a module. A library's module may have a level, but the name alone is more often a mistyped level.
fn check_module(name: &str, is_alone: bool) -> Result<(), String> {
    let is_word = |part: &str| {
        let is_letter =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        !part.is_empty() && part.chars().all(is_letter)
    };
    if !name.split("::").all(is_word) {
        return Err(format!("{name:?} is not the name of a module"));
    }
    let krate = name.split("::").next().unwrap_or_default();
    if MODULES.contains(&krate) {
        return Ok(());
    }
    // With a level it may be a library of a similar name, so it must differ from a module by a slip.
    let is_slip = |known: &&str| is_alone || strsim::levenshtein(krate, known) <= MAX_SLIPS;
    let known = NAMES.into_iter().filter(|_| is_alone).chain(MODULES);
    match nearest_of(krate, known.filter(is_slip)) {
        Some(near) => Err(format!("{krate:?} is unknown; the nearest is {near}")),
        None if is_alone => Err(format!(
            "{krate:?} is neither a level nor a module of Penstock"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    // rule: config.library-settings
    #[test]
    fn directives_are_checked_before_the_library_reads_them() {
        for good in [
            "info",
            "WARN",
            " off ",
            "warn,pools_http=debug",
            "debug,hyper=info,sqlx::query=off",
            "runtime::service=info",
            "store_postgres",
            "info,,",
            "info,[request{id=7,x=8}]=debug",
            "debug,sqlx_postgres=info,tower_http=info,http=off,http_body=3",
            "2",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, shown) in [
            ("warning", "\"warning\" is unknown; the nearest is warn"),
            ("information", "the nearest is info"),
            ("verbose", "neither a level nor a module"),
            ("warning,[x]=info", "the nearest is warn"),
            ("hyper", "neither a level nor a module"),
            ("pools_http:debug", "is not the name of a module"),
            ("pool_http=debug", "the nearest is pools_http"),
            ("info;debug", "is not the name of a module"),
            ("info pools_http=debug", "is not the name of a module"),
            (
                "pools_http=warning",
                "\"warning\" is not a level; the nearest is warn",
            ),
            ("=debug", "is not the name of a module"),
        ] {
            let why = check(bad).unwrap_err();
            assert!(why.contains(shown), "{bad}: {why}");
        }
    }

    #[test]
    fn modules_are_the_crates_of_the_workspace() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let crates = std::fs::read_dir(folder).unwrap().map(|entry| {
            let name = entry.unwrap().file_name();
            name.into_string().unwrap().replace('-', "_")
        });
        let mut modules: BTreeSet<String> = MODULES.map(str::to_owned).into();
        // Writes no line.
        modules.insert("provisioning".to_owned());
        assert_eq!(crates.collect::<BTreeSet<_>>(), modules);
    }
}
