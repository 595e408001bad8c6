//! Rust source as code only, for checks that search for words.

/// The source with comments and the contents of strings blanked out; lines keep their numbers.
pub fn code_only(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let chars: Vec<char> = source.chars().collect();
    let mut at = 0;
    while let Some(&here) = chars.get(at) {
        let rest = chars.get(at..).unwrap_or_default();
        let skipped = comment(rest)
            .or_else(|| raw_string(rest, out.chars().next_back()))
            .or_else(|| quoted(rest))
            .or_else(|| char_literal(rest));
        match skipped {
            Some(length) => {
                out.extend(rest.iter().take(length).filter(|c| **c == '\n'));
                out.push(' ');
                at += length;
            }
            None => {
                out.push(here);
                at += 1;
            }
        }
    }
    out
}

/// The code before the file's unit tests, which stand last: tests may use what the product may not.
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

/// Whether `word` stands in the code, not as a part of a longer name.
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

fn starts(rest: &[char], text: &str) -> bool {
    text.chars()
        .enumerate()
        .all(|(n, c)| rest.get(n) == Some(&c))
}

fn comment(rest: &[char]) -> Option<usize> {
    if starts(rest, "//") {
        return Some(rest.iter().take_while(|c| **c != '\n').count());
    }
    if !starts(rest, "/*") {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let tail = rest.get(at..).unwrap_or_default();
        if starts(tail, "/*") {
            depth += 1;
            at += 2;
        } else if starts(tail, "*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    Some(at)
}

fn raw_string(rest: &[char], before: Option<char>) -> Option<usize> {
    if rest.first() != Some(&'r')
        || before.is_some_and(|c| c.is_alphanumeric() && c != 'b' || c == '_')
    {
        return None;
    }
    let hashes = rest.iter().skip(1).take_while(|c| **c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return None;
    }
    let closing: String = std::iter::once('"')
        .chain(std::iter::repeat_n('#', hashes))
        .collect();
    let mut at = hashes + 2;
    while at < rest.len() {
        if starts(rest.get(at..).unwrap_or_default(), &closing) {
            return Some(at + closing.len());
        }
        at += 1;
    }
    Some(at)
}

fn quoted(rest: &[char]) -> Option<usize> {
    if rest.first() != Some(&'"') {
        return None;
    }
    let mut at = 1;
    while let Some(&c) = rest.get(at) {
        match c {
            '\\' => at += 2,
            '"' => return Some(at + 1),
            _ => at += 1,
        }
    }
    Some(rest.len())
}

/// `'"'` would otherwise open a string; a lifetime has no closing quote and stays.
fn char_literal(rest: &[char]) -> Option<usize> {
    if rest.first() != Some(&'\'') {
        return None;
    }
    if rest.get(1) == Some(&'\\') {
        let length = rest.iter().skip(3).take_while(|c| **c != '\'').count();
        return Some((length + 4).min(rest.len()));
    }
    (rest.get(2) == Some(&'\'')).then_some(3)
}

#[cfg(test)]
mod tests {
    use super::{code_only, has_word, product_code};

    #[test]
    fn comments_and_strings_are_blanked() {
        let source = "let a = \"tokio // \\\" x\"; // tokio\nb /* rand:: /* nested */ */ c\n";
        assert_eq!(code_only(source), "let a =  ;  \nb   c\n");
    }

    #[test]
    fn raw_strings_are_blanked_and_names_ending_in_r_are_not() {
        assert_eq!(code_only("x(r#\"a\" tokio\"#, y)"), "x( , y)");
        assert_eq!(code_only("var\"s\""), "var ");
        assert_eq!(code_only("br\"tokio\" z"), "b  z");
    }

    #[test]
    fn char_literals_open_no_string_and_lifetimes_stay() {
        assert_eq!(code_only("('\"', '\\'', '\\\\') tokio"), "( ,  ,  ) tokio");
        assert_eq!(code_only("fn f<'a>(x: &'a str)"), "fn f<'a>(x: &'a str)");
    }

    #[test]
    fn lines_keep_their_numbers() {
        let code = code_only("/* 1\n2 */\n\"3\n4\"\nfive");
        assert_eq!(code.lines().nth(4), Some("five"));
    }

    #[test]
    fn words_match_whole_names_only() {
        assert!(has_word("use tokio::time;", "tokio"));
        assert!(!has_word("tokio_util::x", "tokio"));
        assert!(has_word("rand::rng()", "rand::"));
        assert!(!has_word("operand::x", "rand::"));
        assert!(has_word("std::time::Instant::now()", "Instant::now"));
    }

    #[test]
    fn unit_tests_are_left_out() {
        let source = "a\n#[cfg(test)]\nuse b;\n#[cfg(test)]\nmod tests {\n tokio }\n";
        assert_eq!(product_code(source), "a\n#[cfg(test)]\nuse b;\n");
    }
}
