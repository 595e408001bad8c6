//! Byte fuzzing of what partners send in headers and what operators write in tables.

use bolero::check;
use partner_core::idempotency::IdempotencyKey;
use partner_core::key::PresentedKey;
use partner_core::tables::{self, Shape};

static PARTNER: Shape = Shape {
    name: "partners",
    keys: &["name", "tags", "limit", "is_active"],
};
static ROOT: Shape = Shape {
    name: "",
    keys: &["mode", "partners"],
};
static SHAPES: [&Shape; 2] = [&ROOT, &PARTNER];

/// Finds a key that the database cannot store or a log line cannot show, and two keys for one header.
#[test]
fn idempotency_key_is_visible_ascii_and_equals_its_quoted_form() {
    const VALID: [&str; 4] = ["\"", "a", "!", "\""];
    const LONG: &str = "0123456789abcdefghijklmnopqrstuvwxyz-0123456789abcdefghijklmnopqrstuvwxyz";
    const PARTS: [&str; 12] = [
        "a", "~", "!", "\"", "\"\"", "\\", " ", "\t", "\u{7f}", "é", "\0", LONG,
    ];
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let sent = mutated(bytes, &VALID, &PARTS);
        for sent in [sent.as_bytes(), bytes] {
            let Ok(key) = IdempotencyKey::parse(sent) else {
                continue;
            };
            let text = key.as_str();
            assert!(
                (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
            );
            let quoted = format!("\"{text}\"");
            assert_eq!(IdempotencyKey::parse(quoted.as_bytes()), Ok(key.clone()));
            assert!(sent == text.as_bytes() || sent == quoted.as_bytes());
        }
    });
}

/// Finds two spellings of one API key: the second would not match the stored hash, or would be accepted in the wrong
/// mode.
#[test]
fn api_key_has_the_documented_form() {
    const VALID: [&str; 5] = ["sk", "_", "test", "_", "0123456789ABCDEFGHIJKLMNOPQRSTUV"];
    const PARTS: [&str; 12] = [
        "sk",
        "pk",
        "SK",
        "_",
        "test",
        "live",
        "0123456789ABCDEFGHIJKLMNOPQRSTUV",
        "abcdefghijklmnopqrstuvwxyz",
        "012345",
        "-",
        "é",
        "\0",
    ];
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let text = mutated(bytes, &VALID, &PARTS);
        let Some(key) = PresentedKey::parse(&text) else {
            return;
        };
        let mode = key.mode.as_str();
        assert!(
            text.get(3..).unwrap().starts_with(&format!("{mode}_")),
            "{text}"
        );
        assert!(text.is_ascii(), "{text}");
    });
}

/// Finds a table file that is accepted with an unknown key, an error with a line that does not exist, and a panic on
/// a text that a message quotes.
#[test]
fn operator_tables_are_read_or_refused_with_a_line() {
    const VALID: [&str; 25] = [
        "mode",
        " = ",
        "\"a\"",
        "\n",
        "[[partners]]",
        "\n",
        "name",
        " = ",
        "\"a\"",
        "\n",
        "is_active",
        " = ",
        "true",
        "\n",
        "tags",
        " = ",
        "[",
        "\"a\"",
        ", ",
        "\"é\"",
        "]",
        "\n",
        "limit",
        " = ",
        "1",
    ];
    const PARTS: [&str; 32] = [
        "mode",
        "name",
        "tags",
        "limit",
        "is_active",
        "partners",
        "names",
        "\"",
        "'",
        " = ",
        "\"a\"",
        "\"é\"",
        "true",
        "True",
        "1",
        "-1",
        "1.5",
        "1_0",
        "0x1",
        "[",
        "]",
        "[[partners]]",
        "[partners]",
        "{",
        "}",
        ", ",
        "\n",
        "\r\n",
        "# é\n",
        ".",
        "sk_live_",
        "\0",
    ];
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let text = mutated(bytes, &VALID, &PARTS);
        let read = tables::read(&text, &ROOT, &SHAPES, |sink, root| {
            if let Some(mode) = root.field("mode") {
                mode.read(sink, "a mode", Some);
            }
            for partner in root.sections(sink, "partners", &PARTNER) {
                partner.flag(sink, "is_active");
                if let Some(name) = partner.field("name") {
                    name.label(sink, 8);
                }
                if let Some(tags) = partner.field("tags") {
                    tags.list(sink, "a word", |word| Some(word.to_owned()));
                }
                if let Some(limit) = partner.field("limit") {
                    limit.whole(sink, 100_u8);
                }
            }
        });
        match read {
            Ok(()) => {
                let table: toml::Table = text.parse().unwrap();
                let known = |key: &String| ROOT.keys.contains(&key.as_str());
                assert!(table.keys().all(known), "{text}");
            }
            Err(errors) => {
                let lines = text.matches('\n').count() + 1;
                assert!(!errors.0.is_empty());
                assert!(
                    errors
                        .0
                        .iter()
                        .all(|error| (1..=lines).contains(&error.line))
                );
                assert!(!errors.to_string().is_empty());
            }
        }
    });
}

/// A valid text with up to four mutations chosen by bytes. Each mutation adds, replaces or removes a piece.
fn mutated(bytes: &[u8], valid: &[&str], pieces: &[&str]) -> String {
    let mut text = valid.to_vec();
    let (count, changes) = bytes.split_first().unwrap_or((&0, &[]));
    for change in changes.chunks_exact(3).take(usize::from(*count) % 5) {
        let &[action, place, piece] = change else {
            break;
        };
        let start = usize::from(place) % (text.len() + 1);
        let end = (start + usize::from(action % 3 != 0)).min(text.len());
        let added = pieces.get(usize::from(piece) % pieces.len());
        text.splice(start..end, added.filter(|_| action % 3 != 2).copied());
    }
    text.concat()
}
