//! `cargo xtask openapi`: writes the contracts that the services print, the pages about errors and metrics, and the reference pages, or
//! compares them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::programs::{self, PLAIN};
use crate::workspace::Workspace;
use crate::{Result, process};

/// A published document and the program that prints it.
struct Document {
    name: &'static str,
    program: &'static str,
}

const DOCUMENTS: [Document; 7] = [
    Document {
        name: "pools-v1",
        program: "pools-service",
    },
    Document {
        name: "engine-v1",
        program: "pools-service",
    },
    Document {
        name: "gate-v1",
        program: "gate-service",
    },
    Document {
        name: "gate-test-helpers-v1",
        program: "gate-service",
    },
    Document {
        name: "gate-embed-v1",
        program: "gate-service",
    },
    Document {
        name: "rail-v1",
        program: "gate-service",
    },
    Document {
        name: "verifier-v1",
        program: "gate-service",
    },
];

const SHOWN_LINES: usize = 12;

pub(crate) fn run(workspace: &Workspace, check: bool) -> Result<()> {
    let programs = programs::build(workspace, PLAIN, &["pools-service", "gate-service"])?;
    DOCUMENTS
        .iter()
        .try_for_each(|document| publish(workspace, &programs, document, check))?;
    pages(workspace, check)
}

/// Runs the tests that compare or rewrite the pages.
fn pages(workspace: &Workspace, check: bool) -> Result<()> {
    let mut command = workspace.cargo();
    command.args(["test", "--locked", "--workspace", "--quiet"]);
    command.args(["--test", "errors_doc", "--test", "metrics_doc"]);
    command.args(["--test", "reference_pages"]);
    if !check {
        command.env("UPDATE_DOCS", "1");
    }
    process::run(&mut command)
}

fn publish(workspace: &Workspace, programs: &Path, document: &Document, check: bool) -> Result<()> {
    let generated = generate(workspace, programs, document)?;
    let published = format!("docs/openapi/{}.yaml", document.name);
    let path = workspace.path(&published);
    let committed = if path.is_file() {
        fs::read_to_string(&path)?
    } else {
        String::new()
    };
    if committed == generated {
        println!("{published} is up to date");
        return Ok(());
    }
    if check {
        return Err(format!(
            "{published} differs from what the service prints; run `cargo xtask openapi` and commit the result\n{}",
            short_diff(&committed, &generated)
        )
        .into());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&path, generated)?;
    println!("{published} rewritten");
    Ok(())
}

fn generate(workspace: &Workspace, programs: &Path, document: &Document) -> Result<String> {
    let Document { name, program } = document;
    let mut command = Command::new(programs.join(program));
    command
        .current_dir(workspace.root())
        .args(["openapi", name]);
    let text = process::capture(&mut command)?;
    if text.trim().is_empty() {
        return Err(format!("`{program} openapi {name}` printed nothing").into());
    }
    Ok(text)
}

/// Prints the first lines of the region in which the two texts differ.
fn short_diff(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    let region = |lines: &[&str], sign: char| -> String {
        let changed = lines.len() - head - tail;
        let mut shown: String = lines
            .iter()
            .skip(head)
            .take(changed.min(SHOWN_LINES))
            .map(|line| format!("{sign} {line}\n"))
            .collect();
        if changed > SHOWN_LINES {
            shown.push_str(&format!(
                "{sign} ... and {} lines more\n",
                changed - SHOWN_LINES
            ));
        }
        shown
    };
    format!(
        "from line {}:\n{}{}",
        head + 1,
        region(&old, '-'),
        region(&new, '+')
    )
}

#[cfg(test)]
mod tests {
    use super::short_diff;

    #[test]
    fn only_the_changed_region_is_shown() {
        let diff = short_diff("a\nb\nc\nd\n", "a\nB\nc2\nd\n");
        assert_eq!(diff, "from line 2:\n- b\n- c\n+ B\n+ c2\n");
    }

    #[test]
    fn insertion_removes_nothing() {
        assert_eq!(short_diff("a\nb\n", "a\nx\nb\n"), "from line 2:\n+ x\n");
        assert_eq!(short_diff("a\na\n", "a\na\na\n"), "from line 3:\n+ a\n");
    }

    #[test]
    fn long_region_is_cut() {
        let long: String = (0..20).map(|n| format!("{n}\n")).collect();
        let diff = short_diff("", &long);
        assert_eq!(diff.lines().count(), 14);
        assert!(diff.ends_with("+ ... and 8 lines more\n"));
    }
}
