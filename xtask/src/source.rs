//! Reads Rust source with the lexer of the compiler, for checks that must distinguish code from comments and strings.

use std::ops::Range;

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

/// A token of a source file.
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// The bytes of the token in the source.
    pub(crate) range: Range<usize>,
}

/// Returns every token of a source, including white space and comments.
pub(crate) fn tokens(source: &str) -> impl Iterator<Item = Token> {
    let mut end = 0;
    tokenize(source, FrontmatterAllowed::No).map(move |token| {
        let start = end;
        end += usize::try_from(token.len).unwrap_or(usize::MAX);
        Token {
            kind: token.kind,
            range: start..end,
        }
    })
}

/// Returns the source without comments and literals. Lines keep their numbers.
pub fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    for token in tokens(source) {
        let text = source.get(token.range).unwrap_or_default();
        if is_code(token.kind) {
            code.push_str(text);
        } else {
            code.extend(text.chars().filter(|letter| *letter == '\n'));
            code.push(' ');
        }
    }
    code
}

fn is_code(kind: TokenKind) -> bool {
    match kind {
        TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => false,
        TokenKind::Literal { kind, .. } => {
            matches!(kind, LiteralKind::Int { .. } | LiteralKind::Float { .. })
        }
        _ => true,
    }
}

/// Returns the code before the unit tests of a file. Unit tests come last, and may use what the product may not.
pub fn product_code(source: &str) -> String {
    let code = code_only(source);
    let mut kept = String::with_capacity(code.len());
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        let gate = line.trim() == "#[cfg(test)]";
        if gate
            && lines
                .peek()
                .is_some_and(|next| next.trim_start().starts_with("mod "))
        {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

/// Returns whether `word` occurs in the code as a whole name.
pub fn has_word(code: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(start, _)| {
        let before = code.get(..start).and_then(|head| head.chars().next_back());
        let after = code
            .get(start + word.len()..)
            .and_then(|tail| tail.chars().next());
        let open_end = word.ends_with(':');
        !before.is_some_and(inside) && (open_end || !after.is_some_and(inside))
    })
}

#[cfg(test)]
mod tests {
    use super::{code_only, has_word, product_code};

    #[test]
    fn code_only_blanks_comments_and_strings() {
        let source = "let a = \"tokio // \\\" x\"; // tokio\nb /* rand:: /* nested */ */ c\n";
        assert_eq!(code_only(source), "let a =  ;  \nb   c\n");
    }

    #[test]
    fn code_only_blanks_raw_strings_and_keeps_names_that_end_in_r() {
        assert_eq!(code_only("x(r#\"a\" tokio\"#, y)"), "x( , y)");
        assert_eq!(code_only("var + \"s\""), "var +  ");
        assert_eq!(code_only("br\"tokio\" z"), "  z");
    }

    #[test]
    fn code_only_blanks_char_literals_and_keeps_lifetimes_and_numbers() {
        assert_eq!(code_only("('\"', '\\'', '\\\\') tokio"), "( ,  ,  ) tokio");
        assert_eq!(code_only("fn f<'a>(x: &'a str)"), "fn f<'a>(x: &'a str)");
        assert_eq!(code_only("1_000 + 0.5"), "1_000 + 0.5");
    }

    #[test]
    fn code_only_keeps_line_numbers() {
        let code = code_only("/* 1\n2 */\n\"3\n4\"\nfive");
        assert_eq!(code.lines().nth(4), Some("five"));
    }

    #[test]
    fn has_word_matches_whole_names_only() {
        assert!(has_word("use tokio::time;", "tokio"));
        assert!(!has_word("tokio_util::x", "tokio"));
        assert!(has_word("rand::rng()", "rand::"));
        assert!(!has_word("operand::x", "rand::"));
        assert!(has_word("std::time::Instant::now()", "Instant::now"));
    }

    #[test]
    fn product_code_ends_before_unit_tests() {
        let source = "a\n#[cfg(test)]\nuse b;\n#[cfg(test)]\nmod tests {\n tokio }\n";
        assert_eq!(product_code(source), "a\n#[cfg(test)]\nuse b;\n");
    }
}
