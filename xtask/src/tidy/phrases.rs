//! The phrases to avoid, with their replacements.

/// A phrase to avoid.
pub(super) struct Phrase {
    /// A regular expression. It reads one passage at a time, with one space between words.
    pub(super) expression: &'static str,
    pub(super) instead: &'static str,
    /// Read doc comments only.
    pub(super) in_docs_only: bool,
}

const fn phrase(expression: &'static str, instead: &'static str) -> Phrase {
    Phrase {
        expression,
        instead,
        in_docs_only: false,
    }
}

pub(super) const PHRASES: [Phrase; 30] = [
    phrase(
        r"\b(whoever|Whoever|whomever|Whomever)\b",
        "anyone who, the caller",
    ),
    phrase(r"\bin vain\b", "failed, without success"),
    phrase(r"\bso many\b", "N, this many"),
    phrase(r"\bbe had\b", "be obtained, is available"),
    phrase(
        r"\b(is|are|has|have) none\b",
        "is not one of, is `None`, is malformed",
    ),
    phrase(r"\bat the moment\b", "currently, now"),
    phrase(r"\b[Ss]omebody\b", "a caller, a worker, another client"),
    phrase(
        r"\b([Nn]obody|[Ee]verybody)\b",
        "the party by its name: no caller, every partner",
    ),
    phrase(
        r"\b(is|are|was|were|be) told\b",
        "receives, is notified, is logged",
    ),
    phrase(r"\bof (theirs|ours|his|hers)\b", "the noun's possessive"),
    Phrase {
        in_docs_only: true,
        ..phrase(r"^(Of|To|And|But|Or) [a-z]+", "the subject first")
    },
    phrase(r"\b(came|comes) of\b", "the result of"),
    phrase(r"\b(became|becomes|become) of\b", "the outcome of"),
    phrase(r"\banew\b", "again, from the start"),
    phrase(
        r"\bas (it|they) stands?\b",
        "unchanged, in its current state",
    ),
    phrase(r"\bstands? (in|at|on|there|open)\b", "is in, is at"),
    phrase(r"\bin hand\b", "in flight"),
    phrase(r"\b[Ff]ar ends?\b", "upstream"),
    phrase(r"\b(of|to|for|with|by) whom\b", "the party by its name"),
    phrase(
        r"\bas (it|they|those|that) (is|are|was|were) (sent|made|given|stored|written|asked)\b",
        "unchanged",
    ),
    phrase(r"\b[Hh]ow [a-z ]{1,30} stands?\b", "the status of"),
    phrase(
        r"\b[Ww]here (there (is|are|was)|it (is|has|was)|none|nothing|nobody|one (is|has))\b",
        "if",
    ),
    phrase(r"\ball the same\b", "anyway, still"),
    phrase(r"\bnothing of\b", "none of, no part of"),
    phrase(r"\bknown of\b", "known about"),
    phrase(r"\b(says?|said|tells?|told) of\b", "reports, describes"),
    phrase(r"\bany more\b", "no longer"),
    phrase(r"\blearnt\b", "recorded at, observed"),
    phrase(
        r"\bgiven (again|out|back)\b",
        "replayed, returned, released",
    ),
    phrase(
        r"\b(is|are) to (be|have|begin|end)\b",
        "must, will, or the plain verb",
    ),
];

/// Text that each phrase matches, in the same order.
#[cfg(test)]
pub(super) const EXAMPLES: [&str; PHRASES.len()] = [
    "whoever asks",
    "asked in vain",
    "so many bytes",
    "what may be had",
    "an id that is none",
    "at the moment",
    "somebody else",
    "nobody else",
    "the partner is told",
    "a key of theirs",
    "Of whose limit",
    "what came of it",
    "what became of it",
    "begins anew",
    "as it stands",
    "what stands there",
    "attempts in hand",
    "a far end",
    "by whom",
    "as it was sent",
    "how the queue stands",
    "where there is one",
    "sent all the same",
    "nothing of it",
    "what is known of it",
    "what it says of a rate",
    "not any more",
    "when it was learnt",
    "given back",
    "what is to be sent",
];

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::{EXAMPLES, PHRASES};

    #[test]
    fn expressions_match_their_examples() {
        for (phrase, example) in PHRASES.iter().zip(EXAMPLES) {
            let expression = phrase.expression;
            assert!(
                Regex::new(expression).unwrap().is_match(example),
                "{expression} does not match {example}"
            );
        }
    }

    #[test]
    fn expressions_match_whole_words_only() {
        let plain = "Meanwhile it handles none of them, in vainglory: a standing order, \
                     the understanding of howling winds, wherever they are.";
        for phrase in &PHRASES {
            let expression = phrase.expression;
            assert!(
                !Regex::new(expression).unwrap().is_match(plain),
                "{expression}"
            );
        }
    }
}
