//! `--help`: defaults, headings, and examples that work.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::fixture::{ACME, Installation, POOL};

const WEBHOOK: &str = "[partners.pools.webhook]\nurl = \"http://127.0.0.1:9/hook\"\n";

fn help(installation: &Installation, words: &[&str]) -> String {
    let done = installation.run(words);
    assert_eq!(done.code, 0, "{done:?}");
    done.out
}

// rule: cli.help
#[test]
fn help_separates_global_options_and_prints_defaults() {
    let installation = Installation::in_a_file();
    for words in [
        &["--help"][..],
        &["help", "--help"],
        &["help", "-h"],
        &["verify", "--help"],
    ] {
        let text = help(&installation, words);
        let (_, global) = text
            .split_once("Global options:")
            .expect("global options should have their own heading");
        for default in [
            "[default: sqlite://penstock-data/penstock.db]",
            "[default: the mode of the database; test for a new one]",
            "[default: text]",
        ] {
            assert!(global.contains(default), "{default}: {text}");
        }
    }
}

/// The examples of all commands, in the order of the commands.
fn examples(installation: &Installation) -> Vec<String> {
    let mut found = Vec::new();
    let mut paths = VecDeque::from([Vec::new()]);
    while let Some(path) = paths.pop_front() {
        let words: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let text = help(installation, &words);
        let inner = text.split_once("Commands:\n").map(|(_, rest)| rest.lines());
        for line in inner
            .into_iter()
            .flatten()
            .take_while(|line| line.starts_with("  "))
        {
            let name = line.split_whitespace().next().unwrap();
            if name != "help" {
                paths.push_back([path.clone(), vec![name.to_owned()]].concat());
            }
        }
        let (_, calls) = text.split_once("Examples:\n").unwrap_or_default();
        found.extend(calls.lines().map(|line| line.trim().to_owned()));
    }
    found
}

// rule: cli.help
#[test]
fn examples_of_the_help_work() {
    let installation = Installation::in_a_file();
    let acme = format!("{POOL}{ACME}{WEBHOOK}");
    std::fs::write(installation.folder.path().join("acme.toml"), &acme).unwrap();
    assert_eq!(installation.apply(&acme, &[]).code, 0);
    let calls = examples(&installation);
    assert!(calls.len() >= 15, "{calls:?}");
    let unknown_key = "key_test_01M8A3V0RSE9M6GQF5Z7T2K4XN";
    for call in calls {
        let words: Vec<&str> = call.split(' ').skip(1).collect();
        if words.first() == Some(&"sandbox") && !words.contains(&"--check") {
            serve_briefly(&installation, &words);
            continue;
        }
        let done = installation.run(&words);
        if call.contains(unknown_key) {
            assert_eq!(done.code, 1, "{call}: {done:?}");
        } else {
            assert_eq!(done.code, 0, "{call}: {done:?}");
        }
    }
}

/// Runs `sandbox` until it listens. Uses free ports, because tests run in parallel.
fn serve_briefly(installation: &Installation, words: &[&str]) {
    let mut words: Vec<&str> = words.to_vec();
    if !words.contains(&"--pools-port") {
        words.extend(["--pools-port", "0", "--gate-port", "0"]);
    }
    words.extend(["--widget-port", "0", "--demo-port", "0"]);
    for word in &mut words {
        if word.chars().all(|digit| digit.is_ascii_digit()) {
            *word = "0";
        }
    }
    let mut process = installation
        .program(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let listening = lines
        .map_while(Result::ok)
        .any(|line| line.contains(" listening on "));
    test_support::program::signal(process.id(), "-TERM");
    assert!(listening && process.wait().unwrap().success(), "{words:?}");
}
