//! `cargo xtask commit-msg FILE`: the form of a commit's subject. The hook `.githooks/commit-msg` runs it, and CI checks `HEAD`.

use std::fs;

use crate::workspace::Workspace;
use crate::{Result, process};

const MAX_SUBJECT: usize = 72;

/// Subjects that git writes itself.
const WRITTEN_BY_GIT: [&str; 5] = ["Merge ", "Revert ", "amend! ", "fixup! ", "squash! "];

/// The line below which `git commit --verbose` shows the change.
const BELOW_THE_MESSAGE: &str = "# ------------------------ >8 ------------------------";

/// Checks the message that an editor has left in a file.
pub(crate) fn check_file(file: &str) -> Result<()> {
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let message = text.split(BELOW_THE_MESSAGE).next().unwrap_or_default();
    let lines = message.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<&str> = lines.collect();
    check(&lines.join("\n"))
}

/// Checks the message of the last commit.
pub(crate) fn check_head(workspace: &Workspace) -> Result<()> {
    check(&process::capture(workspace.git().args([
        "log",
        "-1",
        "--format=%B",
    ]))?)
}

fn check(message: &str) -> Result<()> {
    let faults = faults(message);
    if faults.is_empty() {
        return Ok(());
    }
    Err(faults.join("\n").into())
}

fn faults(message: &str) -> Vec<String> {
    let mut lines = message.trim_start().lines();
    let subject = lines.next().unwrap_or_default().trim_end();
    if subject.is_empty() {
        return vec!["the commit message is empty".to_owned()];
    }
    if WRITTEN_BY_GIT
        .iter()
        .any(|start| subject.starts_with(start))
    {
        return Vec::new();
    }
    let mut faults = Vec::new();
    let length = subject.chars().count();
    if length > MAX_SUBJECT {
        faults.push(format!(
            "the subject has {length} characters, at most {MAX_SUBJECT} fit"
        ));
    }
    if subject.ends_with('.') {
        faults.push("the subject ends with a full stop".to_owned());
    }
    if lines.next().is_some_and(|line| !line.trim().is_empty()) {
        faults.push("the line after the subject is not empty".to_owned());
    }
    let (area, rest) = match subject.split_once(": ") {
        Some((area, rest)) => (Some(area), rest),
        None => (None, subject),
    };
    if area.is_some_and(|area| !is_area(area)) {
        faults.push(
            "the area before `: ` is not one lower-case word, as in `webhooks: stop prefetching`"
                .to_owned(),
        );
    }
    let first = rest.chars().next().unwrap_or_default();
    if area.is_some() && !first.is_lowercase() {
        faults.push("after an area the verb starts with a lower-case letter".to_owned());
    }
    if area.is_none() && !first.is_uppercase() {
        faults.push("without an area the verb starts with a capital letter".to_owned());
    }
    faults
}

fn is_area(area: &str) -> bool {
    let letters = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_/".contains(letter)
    };
    !area.is_empty() && area.chars().all(letters)
}

#[cfg(test)]
mod tests {
    use super::{BELOW_THE_MESSAGE, MAX_SUBJECT, check_file, faults};

    #[test]
    fn subjects_in_the_agreed_form_are_accepted() {
        for message in [
            "webhooks: stop prefetching for endpoints that have a backlog",
            "store-sqlite: open the file once",
            "Record the commit of each benchmark\n\nThe figures were measured on two commits.\n",
            "docs: explain `GET`: what it reads\n",
            "Merge branch 'cli': references, suspension, pages and messages, and much more than fits into a line",
            "Revert \"webhooks: stop prefetching\"",
            "fixup! webhooks: stop prefetching",
        ] {
            assert_eq!(faults(message), [] as [String; 0], "{message}");
        }
        assert_eq!(faults(&"A".repeat(MAX_SUBJECT)), [] as [String; 0]);
        assert_eq!(faults(&"É".repeat(MAX_SUBJECT)), [] as [String; 0]);
    }

    #[test]
    fn subjects_in_another_form_are_refused() {
        for (message, fault) in [
            ("", "the commit message is empty"),
            ("\n \n", "the commit message is empty"),
            ("Stop prefetching.", "the subject ends with a full stop"),
            (
                "Stop\nprefetching",
                "the line after the subject is not empty",
            ),
            (
                "stop prefetching",
                "without an area the verb starts with a capital letter",
            ),
            (
                "webhooks: Stop prefetching",
                "after an area the verb starts with a lower-case letter",
            ),
            (
                "Webhooks: stop prefetching",
                "the area before `: ` is not one lower-case word, as in `webhooks: stop prefetching`",
            ),
            (
                "the worker: stop prefetching",
                "the area before `: ` is not one lower-case word, as in `webhooks: stop prefetching`",
            ),
        ] {
            assert_eq!(faults(message), [fault], "{message}");
        }
        let long = faults(&"A".repeat(MAX_SUBJECT + 1));
        assert_eq!(long, ["the subject has 73 characters, at most 72 fit"]);
    }

    #[test]
    fn comments_of_the_editor_are_not_part_of_the_message() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("COMMIT_EDITMSG");
        let file = file.to_str().unwrap();
        assert!(check_file(file).is_err());
        std::fs::write(
            file,
            "# Please enter the message.\nStop prefetching\n# On branch main\n",
        )
        .unwrap();
        assert!(check_file(file).is_ok());
        let verbose = format!("Stop prefetching\n{BELOW_THE_MESSAGE}\ndiff --git a b\n");
        std::fs::write(file, verbose).unwrap();
        assert!(check_file(file).is_ok());
        std::fs::write(file, "# Please enter the message.\n").unwrap();
        assert!(check_file(file).is_err());
    }
}
