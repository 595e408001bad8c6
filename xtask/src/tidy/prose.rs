//! Reads the prose of a file: comments and string literals of Rust, and the text of Markdown.
//!
//! Wrapped lines are one passage, so that the line breaks do not change the matches.

use pulldown_cmark::{Event, Options, Parser, Tag};
use ra_ap_rustc_lexer::{DocStyle, LiteralKind, TokenKind};

use crate::source::{Token, tokens};

/// A string literal that starts with one of these words is an SQL text.
const SQL: &str = "ALTER ANALYZE AND BEGIN COMMIT CREATE DELETE DROP EXPLAIN FOR FROM GRANT GROUP INSERT JOIN \
     LEFT LIMIT ON OR ORDER PRAGMA RETURNING SELECT SET UPDATE WHERE WITH";

/// The character that replaces inline code, which is not prose.
const CODE: char = '`';

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Text,
    DocComment,
    Literal,
}

/// A paragraph, a table cell, a heading or a string literal.
#[derive(Debug, Default)]
pub(super) struct Passage {
    pub(super) kind: Kind,
    /// Wrapped lines are joined by one space.
    pub(super) text: String,
    /// The start of each piece of the text, and its line in the file.
    pieces: Vec<(usize, usize)>,
}

impl Passage {
    /// The line of the file that holds the byte at `offset` of the text.
    pub(super) fn line(&self, offset: usize) -> usize {
        let after = self.pieces.partition_point(|(start, _)| *start <= offset);
        let piece = after.checked_sub(1).and_then(|last| self.pieces.get(last));
        piece.map_or(0, |(_, line)| *line)
    }

    /// The last line of the file that the passage reaches.
    pub(super) fn last_line(&self) -> usize {
        self.line(self.text.len())
    }

    fn push(&mut self, text: &str, line: usize) {
        self.pieces.push((self.text.len(), line));
        self.text.push_str(text);
    }
}

/// The passages of a Markdown file.
pub(super) fn markdown(text: &str) -> Vec<Passage> {
    passages(text, 1, Kind::Text)
}

/// The passages of a Rust file.
pub(super) fn rust(source: &str) -> Vec<Passage> {
    let mut found = Vec::new();
    let mut open: Option<Comment> = None;
    let mut line = 1;
    for Token { kind, range } in tokens(source) {
        let column = column(source, range.start);
        let text = source.get(range).unwrap_or_default();
        let comment = Comment::of(kind, text, line, column);
        match (&mut open, comment, kind) {
            (Some(above), Some(below), _) if above.continues(&below) => above.append(&below),
            (open, Some(below), _) => {
                found.extend(open.replace(below).iter().flat_map(Comment::passages))
            }
            (_, None, TokenKind::Whitespace) => {}
            (open, None, _) => found.extend(open.take().iter().flat_map(Comment::passages)),
        }
        if let TokenKind::Literal { kind, .. } = kind {
            found.extend(literal(kind, text, line));
        }
        line += text.matches('\n').count();
    }
    found.extend(open.iter().flat_map(Comment::passages));
    found
}

fn column(source: &str, start: usize) -> usize {
    let before = source.get(..start).unwrap_or_default();
    before.len() - before.rfind('\n').map_or(0, |newline| newline + 1)
}

/// Comments of one style, on consecutive lines, that start in the same column.
struct Comment {
    style: Option<DocStyle>,
    /// The text without the comment markers. It has the same lines as the comment in the file.
    text: String,
    first_line: usize,
    column: usize,
}

impl Comment {
    fn of(kind: TokenKind, text: &str, first_line: usize, column: usize) -> Option<Self> {
        let (style, text) = match kind {
            TokenKind::LineComment { doc_style } => {
                let text = text.trim_start_matches('/');
                let text = text.strip_prefix('!').unwrap_or(text);
                (doc_style, text.strip_prefix(' ').unwrap_or(text).to_owned())
            }
            TokenKind::BlockComment { doc_style, .. } => {
                let text = text.trim_start_matches('/').trim_end_matches('/');
                let lines = text
                    .lines()
                    .map(|line| line.trim().trim_matches('*').trim_start_matches('!'));
                (
                    doc_style,
                    lines.map(str::trim).collect::<Vec<_>>().join("\n"),
                )
            }
            _ => return None,
        };
        Some(Self {
            style,
            text,
            first_line,
            column,
        })
    }

    fn continues(&self, below: &Self) -> bool {
        let next = self.first_line + self.text.matches('\n').count() + 1;
        (self.style, self.column, next) == (below.style, below.column, below.first_line)
    }

    fn append(&mut self, below: &Self) {
        self.text.push('\n');
        self.text.push_str(&below.text);
    }

    fn passages(&self) -> Vec<Passage> {
        let kind = if self.style.is_some() {
            Kind::DocComment
        } else {
            Kind::Text
        };
        passages(&self.text, self.first_line, kind)
    }
}

/// Reads Markdown, whose first line is `first_line` of the file.
fn passages(text: &str, first_line: usize, kind: Kind) -> Vec<Passage> {
    let newlines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let mut found = Vec::new();
    let mut open = Passage::default();
    let mut in_code = false;
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    for (event, range) in events {
        let line = first_line + newlines.partition_point(|newline| *newline < range.start);
        match event {
            Event::Text(text) if !in_code => open.push(&text, line),
            Event::Code(_) => open.push(&CODE.to_string(), line),
            Event::SoftBreak | Event::HardBreak => open.push(" ", line),
            Event::Start(tag) if !is_inline(&tag) => {
                in_code = matches!(tag, Tag::CodeBlock(_));
                found.push(std::mem::take(&mut open));
            }
            Event::End(_) if in_code => in_code = false,
            _ => {}
        }
    }
    found.push(open);
    found.retain(|passage| !passage.text.is_empty());
    for passage in &mut found {
        passage.kind = kind;
    }
    found
}

fn is_inline(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. }
    )
}

/// Returns the text of a string literal, unless it is SQL or a single word.
fn literal(kind: LiteralKind, text: &str, first_line: usize) -> Option<Passage> {
    let is_raw = match kind {
        LiteralKind::Str { .. } | LiteralKind::ByteStr { .. } | LiteralKind::CStr { .. } => false,
        LiteralKind::RawStr { .. }
        | LiteralKind::RawByteStr { .. }
        | LiteralKind::RawCStr { .. } => true,
        _ => return None,
    };
    let (_, text) = text.split_once('"')?;
    let (text, _) = text.rsplit_once('"')?;
    let mut passage = Passage {
        kind: Kind::Literal,
        ..Passage::default()
    };
    for (number, line) in text.split('\n').enumerate() {
        let wrapped = if number == 0 { line } else { line.trim_start() };
        let joined = if is_raw {
            None
        } else {
            wrapped.strip_suffix('\\')
        };
        let written = if is_raw {
            wrapped.to_owned()
        } else {
            unescaped(joined.unwrap_or(wrapped))
        };
        passage.push(&written, first_line + number);
        if joined.is_none() {
            passage.text.push(' ');
        }
    }
    let mut words = passage.text.split_whitespace();
    let first = words.next()?;
    let is_sql = SQL.split(' ').any(|word| word == first);
    let is_prose = !is_sql && words.next().is_some();
    is_prose.then_some(passage)
}

/// Replaces the escapes that separate words. Other escapes stay as they are.
fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n")
        .replace("\\t", " ")
        .replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::{Kind, Passage, markdown, rust};

    fn texts(passages: &[Passage]) -> Vec<&str> {
        passages
            .iter()
            .map(|passage| passage.text.trim_end())
            .collect()
    }

    #[test]
    fn markdown_yields_paragraphs_headings_cells_and_items() {
        let page = "# A *title*\n\nOne\ntwo [three](four.md).\n\n| a | b `c` |\n| --- | --- |\n| d | e |\n\n- f\n- g\n";
        let found = markdown(page);
        assert_eq!(
            texts(&found),
            ["A title", "One two three.", "a", "b `", "d", "e", "f", "g"]
        );
        let lines: Vec<usize> = found.iter().map(|passage| passage.line(0)).collect();
        assert_eq!(lines, [1, 3, 6, 6, 8, 8, 10, 11]);
        assert_eq!(found.get(1).map(|passage| passage.line(4)), Some(4));
    }

    #[test]
    fn fenced_and_indented_code_is_skipped() {
        let page = "One\n\n```rust\ntwo\n```\n\n    three\n\nfour\n";
        assert_eq!(texts(&markdown(page)), ["One", "four"]);
    }

    #[test]
    fn comments_of_one_style_and_column_are_one_passage() {
        let source = "//! One\n//! two.\n\n/// Three.\n// Four.\nlet a = 1; // Five.\n// Six.\n\n/* Seven\n * eight. */\n";
        let found = rust(source);
        assert_eq!(
            texts(&found),
            [
                "One two.",
                "Three.",
                "Four.",
                "Five.",
                "Six.",
                "Seven eight."
            ]
        );
        let kinds: Vec<bool> = found
            .iter()
            .map(|passage| passage.kind == Kind::DocComment)
            .collect();
        assert_eq!(kinds, [true, true, false, false, false, false]);
        let lines: Vec<usize> = found.iter().map(Passage::last_line).collect();
        assert_eq!(lines, [2, 4, 5, 6, 7, 10]);
    }

    #[test]
    fn literals_are_joined_where_the_compiler_joins_them() {
        let source = "f(\"one \\\n   two\\nthree\", b'x', br#\"four\n  five\"#, 'y')";
        assert_eq!(texts(&rust(source)), ["one two\nthree", "four five"]);
    }

    #[test]
    fn sql_and_single_words_are_not_prose() {
        let source =
            "f(\"SELECT a\", \"Select one\", \"SELECTED two\", \"three\", \"^(four|five)$\", \"\")";
        assert_eq!(texts(&rust(source)), ["Select one", "SELECTED two"]);
    }
}
