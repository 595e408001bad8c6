//! Checks the links of the documentation: the file, heading or test that a relative link names exists, and an index lists the pages in its
//! folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::Result;
use crate::workspace::Workspace;

/// Returns every broken link of the Markdown files, and every page that its index does not list.
pub(crate) fn faults(workspace: &Workspace, files: &[String]) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for file in files.iter().filter(|file| file.ends_with(".md")) {
        if let Some(text) = workspace.text(file)? {
            pages.insert(file.as_str(), Page::read(&text));
        }
    }
    let known: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    let mut faults = unlisted(&pages);
    for (file, page) in &pages {
        for (line, link) in &page.links {
            let mut found = misled(file, &link.target, &pages, &known);
            if found.is_none() {
                found = absent(workspace, file, link)?;
            }
            faults.extend(found.map(|fault| format!("{file}:{line}: ({}): {fault}", link.target)));
        }
    }
    Ok(faults)
}

/// A link: the text that a reader sees, and the target.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    text: String,
    target: String,
}

/// The links of a page with their lines, and the anchors of its headings.
#[derive(Debug, Default)]
struct Page {
    links: Vec<(usize, Link)>,
    anchors: BTreeSet<String>,
}

impl Page {
    fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut in_code = false;
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            } else if !in_code {
                if let Some(heading) = heading(line) {
                    page.anchor(heading);
                }
                let links = links(line).into_iter();
                page.links.extend(links.map(|link| (number + 1, link)));
            }
        }
        page
    }

    /// Adds the anchor of a heading. A repeated heading gets a number, from the second one on.
    fn anchor(&mut self, heading: &str) {
        let anchor = slug(heading);
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone())
            .chain(numbered)
            .find(|anchor| !self.anchors.contains(anchor));
        self.anchors.extend(free);
    }
}

/// Returns the pages of `docs` that the index in their folder does not list. No reader would find them.
fn unlisted(pages: &BTreeMap<&str, Page>) -> Vec<String> {
    let mut faults = Vec::new();
    for file in pages.keys().filter(|file| file.starts_with("docs/")) {
        let (Some(index), Some(name)) = (resolved(file, "README.md"), file.rsplit('/').next())
        else {
            continue;
        };
        let Some(listed) = pages.get(index.as_str()) else {
            continue;
        };
        if name != "README.md" && !listed.links.iter().any(|(_, link)| link.target == name) {
            faults.push(format!("{index}: does not list {name}"));
        }
    }
    faults
}

/// Returns why the target of a link is broken. URLs are not checked.
fn misled(
    file: &str,
    target: &str,
    pages: &BTreeMap<&str, Page>,
    known: &BTreeSet<&str>,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let Some(path) = resolved(file, path) else {
        return Some("leads out of the workspace".to_owned());
    };
    let folder = format!("{path}/");
    let is_folder = known.iter().any(|file| file.starts_with(&folder));
    if !known.contains(path.as_str()) && !is_folder {
        return Some(format!("there is no {path}"));
    }
    if anchor.is_empty() {
        return None;
    }
    match pages.get(path.as_str()) {
        None => Some(format!("{path} is no page with headings")),
        Some(page) if page.anchors.contains(anchor) => None,
        Some(_) => Some(format!("{path} has no heading for #{anchor}")),
    }
}

/// Returns a fault if the text of a link is the name of a function, such as a test, which the linked source file does not have.
fn absent(workspace: &Workspace, file: &str, link: &Link) -> Result<Option<String>> {
    let keyword = match Path::new(&link.target)
        .extension()
        .and_then(|kind| kind.to_str())
    {
        Some("rs") => "fn",
        Some("py") => "def",
        _ => return Ok(None),
    };
    let name = link
        .text
        .strip_prefix('`')
        .and_then(|text| text.strip_suffix('`'));
    let (Some(name), Some(path)) = (name, resolved(file, &link.target)) else {
        return Ok(None);
    };
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if !name.chars().all(is_name) {
        return Ok(None);
    }
    let text = workspace.text(&path)?.unwrap_or_default();
    let defined = text.contains(&format!("{keyword} {name}("));
    Ok((!defined).then(|| format!("{path} has no `{keyword} {name}`")))
}

/// Resolves a path relative to a file. The result is relative to the root. An empty path is the file itself. Returns `None` if the path
/// leaves the workspace.
fn resolved(file: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(file.to_owned());
    }
    let mut whole = PathBuf::new();
    let beside = Path::new(file).parent()?.join(path);
    for part in beside.components() {
        match part {
            Component::Normal(name) => whole.push(name),
            Component::ParentDir if whole.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    whole.to_str().map(str::to_owned)
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6)
        .contains(&level)
        .then(|| text.strip_prefix(' '))
        .flatten()
}

/// The anchor that GitHub gives a heading: words in lower case, joined by hyphens, without punctuation.
fn slug(heading: &str) -> String {
    let text = without_targets(heading);
    let kept = text
        .trim()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.flat_map(char::to_lowercase)
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// The line as a reader sees it, without the targets of its links.
fn without_targets(line: &str) -> String {
    let mut seen = line.to_owned();
    for Link { target, .. } in links(line) {
        seen = seen.replace(&format!("]({target})"), "");
    }
    seen
}

/// The links of a line, without their titles. Brackets in a code span are not links.
fn links(line: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let mut opened = None;
    let mut in_code = false;
    for (place, letter) in line.char_indices() {
        match letter {
            '`' => in_code = !in_code,
            '[' if !in_code => opened = Some(place + 1),
            ']' if !in_code => {
                // The opening bracket may be on the previous line.
                let text = opened.take().and_then(|from| line.get(from..place));
                let behind = line.get(place..).and_then(|rest| rest.strip_prefix("]("));
                let target = behind.and_then(|rest| rest.split_once(')'));
                let target = target.and_then(|(target, _)| target.split_whitespace().next());
                links.extend(target.map(|target| Link {
                    text: text.unwrap_or_default().to_owned(),
                    target: target.to_owned(),
                }));
            }
            _ => {}
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::{Page, faults, slug};
    use crate::workspace::Workspace;

    fn faults_of(pages: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for (file, text) in pages {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            files.push((*file).to_owned());
        }
        faults(&Workspace::at(root.path()), &files).unwrap()
    }

    #[test]
    fn headings_get_the_anchors_of_github() {
        for (heading, anchor) in [
            ("When the disk is full", "when-the-disk-is-full"),
            ("`penstock_quotes_total`", "penstock_quotes_total"),
            ("Files, names & more", "files-names--more"),
            ("See [errors](errors.md#a)", "see-errors"),
            ("PenstockDown", "penstockdown"),
        ] {
            assert_eq!(slug(heading), anchor);
        }
        let twice = Page::read("# One\n## One\n### One\n```\n# Code\n```\n");
        let anchors: Vec<&str> = twice.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["one", "one-1", "one-2"]);
    }

    #[test]
    fn links_that_lead_somewhere_are_no_faults() {
        let page = "# Top\n[a](b/c.md) [d](b/c.md#some-thing) [e](#top) [f](https://x.y/z#w) [g](b)\n\
                    `[no](link)`\n```\n[nor](here)\n```\n| [`h`](b/c.md \"title\") |\n";
        let other = "## Some thing\n[up](../a.md#top) [file](../x.toml)\n";
        let found = faults_of(&[("a.md", page), ("b/c.md", other), ("x.toml", "")]);
        assert_eq!(found, [] as [String; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_named_with_their_line() {
        let found = faults_of(&[
            (
                "a.md",
                "# Top\n[two\nlines](gone.md)\n[y](#bottom) [z](b.toml#top)\n",
            ),
            ("b.toml", ""),
            ("c/d.md", "[out](../../etc/passwd) [w](../a.md#nothing)\n"),
        ]);
        assert_eq!(
            found,
            [
                "a.md:3: (gone.md): there is no gone.md",
                "a.md:4: (#bottom): a.md has no heading for #bottom",
                "a.md:4: (b.toml#top): b.toml is no page with headings",
                "c/d.md:1: (../../etc/passwd): leads out of the workspace",
                "c/d.md:1: (../a.md#nothing): a.md has no heading for #nothing",
            ]
        );
    }

    #[test]
    fn index_lists_every_page_beside_it() {
        let index = ("docs/README.md", "[a](a.md) [more](more/README.md)\n");
        let deeper = ("docs/more/README.md", "nothing\n");
        let pages = [
            ("docs/a.md", ""),
            ("docs/b.md", ""),
            ("docs/more/c.md", ""),
            ("d.md", ""),
        ];
        let found = faults_of(&[&[index, deeper], &pages[..]].concat());
        assert_eq!(
            found,
            [
                "docs/README.md: does not list b.md",
                "docs/more/README.md: does not list c.md",
            ]
        );
    }

    #[test]
    fn named_test_exists() {
        let page = "[`it_holds`](t.rs) [`test_it`](t.py) [the file](t.rs) [`a/t.rs`](t.rs)\n\
                    [`it_hold`](t.rs) [`test_that`](t.py)\n";
        let (rust, python) = ("async fn it_holds() {}\n", "def test_it(world):\n");
        let found = faults_of(&[("a.md", page), ("t.rs", rust), ("t.py", python)]);
        assert_eq!(
            found,
            [
                "a.md:2: (t.rs): t.rs has no `fn it_hold`",
                "a.md:2: (t.py): t.py has no `def test_that`",
            ]
        );
    }
}
