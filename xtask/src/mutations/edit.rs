//! A replacement of a mutation. It ignores white space, so a mutation still applies after formatting.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::workspace::Workspace;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    pub(super) file: String,
    /// Text that must occur exactly once in the file.
    find: String,
    replace: String,
}

/// Returns the mutated text of each file that the edits name. The error names the file and the text that does not occur exactly once.
pub(super) fn mutated(
    workspace: &Workspace,
    edits: &[Edit],
) -> Result<BTreeMap<String, String>, String> {
    let mut texts = BTreeMap::new();
    for Edit {
        file,
        find,
        replace,
    } in edits
    {
        let text = match texts.remove(file) {
            Some(text) => text,
            None => std::fs::read_to_string(workspace.path(file))
                .map_err(|error| format!("{file} cannot be read: {error}"))?,
        };
        let text = replaced(&text, find, replace).map_err(|times| {
            let find = find.trim();
            format!("{file}: the text must occur once and occurs {times} times: {find}")
        })?;
        texts.insert(file.clone(), text);
    }
    Ok(texts)
}

/// Replaces the only occurrence of a text. The error is the number of occurrences.
fn replaced(text: &str, find: &str, replace: &str) -> Result<String, usize> {
    let wanted: Vec<char> = find.chars().filter(|char| !char.is_whitespace()).collect();
    let chars = text
        .char_indices()
        .filter(|(_, char)| !char.is_whitespace());
    let chars: Vec<(usize, char)> = chars.collect();
    let found: Vec<&[(usize, char)]> = chars
        .windows(wanted.len().max(1))
        .filter(|window| window.iter().map(|(_, char)| char).eq(&wanted))
        .collect();
    let &[&[(start, _), .., (last, char)]] = found.as_slice() else {
        return Err(found.len());
    };
    let (before, rest) = text.split_at(start);
    let after = rest.split_at(last - start + char.len_utf8()).1;
    Ok([before, replace, after].concat())
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn text_is_replaced_if_it_occurs_once_whatever_the_white_space() {
        let code = "fn a() {\n    x\n        .b(c)\n}\n";
        let mutated = replaced(code, "x.b(c)", "y").unwrap();
        assert_eq!(mutated, "fn a() {\n    y\n}\n");
        assert_eq!(replaced(code, "x.b(d)", "y"), Err(0));
        assert_eq!(replaced("a.b; a\n.b", "a.b", "y"), Err(2));
        assert_eq!(replaced("a", "", "y"), Err(0));
    }
}
