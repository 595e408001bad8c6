//! Detects a request whose length is ambiguous.
//!
//! A head with both `Transfer-Encoding` and `Content-Length`, or with two `Content-Length` headers,
//! is read differently by different servers. This allows request smuggling. The HTTP parser drops
//! the second header silently. This module counts the length headers of each head as its bytes
//! arrive, and compares the count with the parser's result. It follows bodies to their end to find
//! the next head; chunked bodies by the exact grammar of RFC 9112, section 7.1.

#[cfg(test)]
mod fuzz;

use bytes::BytesMut;

/// Why a request is refused although its head was parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AmbiguousLength {
    /// The length is declared twice or is unknown.
    Length,
    /// The body has a transfer coding other than chunked.
    Coding,
}

/// The body length that the parser found in a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeclaredLength {
    /// Neither `Content-Length` nor `Transfer-Encoding`.
    Nothing,
    /// A `Content-Length`.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// Another `Transfer-Encoding`.
    Coded,
}

/// The position in the input of one connection: in a head, or in a body.
///
/// The bytes of a head are not kept. Bytes after a head are kept until the parser reports the head,
/// at most as many as the parser reads at once.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    head: Head,
    unread: BytesMut,
    body: Body,
}

impl Framing {
    /// Follows bytes as they arrive.
    pub(crate) fn received(&mut self, bytes: &[u8]) {
        let rest = self.body.pass(bytes);
        let rest = self.head.pass(rest);
        self.unread.extend_from_slice(rest);
    }

    /// Records that the parser has parsed a head from these bytes.
    pub(crate) fn parsed(&mut self, stated: DeclaredLength) -> Result<(), AmbiguousLength> {
        // The parser closes a connection on invalid chunks. It did not, so the two readers
        // disagree.
        if self.body != Body::Over || self.head.line != Line::Ended {
            return Err(AmbiguousLength::Length);
        }
        let lengths = std::mem::take(&mut self.head).lengths;
        let due = match stated {
            DeclaredLength::Nothing | DeclaredLength::Coded => 0,
            DeclaredLength::Length(length) => {
                self.body = Body::Sized(length);
                1
            }
            DeclaredLength::Chunked => {
                self.body = Body::Chunked(Chunks::Size(None));
                0
            }
        };
        let unread = std::mem::take(&mut self.unread);
        self.received(&unread);
        match stated {
            DeclaredLength::Coded => Err(AmbiguousLength::Coding),
            DeclaredLength::Nothing => Ok(()),
            DeclaredLength::Length(_) | DeclaredLength::Chunked if lengths != due => {
                Err(AmbiguousLength::Length)
            }
            DeclaredLength::Length(_) | DeclaredLength::Chunked => Ok(()),
        }
    }
}

const LENGTH: &[u8] = b"content-length:";

/// The part of a head that has arrived. Lines end with LF, as the parser accepts them. Empty lines
/// before the request line are skipped.
#[derive(Debug, Default)]
struct Head {
    /// Whether the request line has begun.
    started: bool,
    /// The number of `Content-Length` lines.
    lengths: usize,
    line: Line,
}

/// The part of the current line that has arrived.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// No byte.
    #[default]
    Empty,
    /// A CR at the start of the line.
    Cr,
    /// This many letters of [`LENGTH`].
    Length(usize),
    /// Any other text.
    Other,
    /// The head has ended.
    Ended,
}

impl Head {
    /// Consumes bytes of the head and returns the bytes after it.
    fn pass<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        while self.line != Line::Ended {
            let Some((byte, rest)) = bytes.split_first() else {
                break;
            };
            self.step(*byte);
            bytes = rest;
        }
        bytes
    }

    fn step(&mut self, byte: u8) {
        if byte == b'\n' {
            return self.end_line();
        }
        let letter = |at: usize| {
            let known = LENGTH.get(at);
            known.is_some_and(|known| known.eq_ignore_ascii_case(&byte))
        };
        self.line = match self.line {
            Line::Empty if byte == b'\r' => Line::Cr,
            Line::Empty if letter(0) => Line::Length(1),
            Line::Length(at) if at == LENGTH.len() => Line::Length(at),
            Line::Length(at) if letter(at) => Line::Length(at + 1),
            Line::Ended => Line::Ended,
            Line::Empty | Line::Cr | Line::Length(_) | Line::Other => Line::Other,
        };
    }

    fn end_line(&mut self) {
        let is_blank = matches!(self.line, Line::Empty | Line::Cr);
        self.lengths += usize::from(self.line == Line::Length(LENGTH.len()));
        self.line = if is_blank && self.started {
            Line::Ended
        } else {
            Line::Empty
        };
        self.started |= !is_blank;
    }
}

/// The part of a body that is still to come.
#[derive(Debug, Default, PartialEq, Eq)]
enum Body {
    #[default]
    Over,
    Sized(u64),
    Chunked(Chunks),
}

impl Body {
    /// Consumes bytes of the body and returns the bytes after it.
    fn pass<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        loop {
            match self {
                Self::Over => return bytes,
                Self::Chunked(Chunks::End) => *self = Self::Over,
                Self::Sized(left) | Self::Chunked(Chunks::Data(left)) if *left > 0 => {
                    let (passed, rest) = split(bytes, *left);
                    *left -= passed;
                    bytes = rest;
                    if *left > 0 {
                        return bytes;
                    }
                }
                Self::Chunked(chunks) => {
                    let Some((byte, rest)) = bytes.split_first() else {
                        return bytes;
                    };
                    *chunks = chunks.step(*byte);
                    bytes = rest;
                }
                Self::Sized(_) => *self = Self::Over,
            }
        }
    }
}

/// Splits off at most this many bytes; returns their count and the rest.
fn split(bytes: &[u8], most: u64) -> (u64, &[u8]) {
    let here = usize::try_from(most).map_or(bytes.len(), |most| most.min(bytes.len()));
    (here as u64, bytes.get(here..).unwrap_or_default())
}

/// The state of a chunked body, named after the expected next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunks {
    /// A digit of a chunk's size; `None` before the first.
    Size(Option<u64>),
    /// An extension, or white space before it.
    Extension(u64),
    /// The LF after a chunk's size.
    SizeLf(u64),
    /// The data of a chunk, and then its CR.
    Data(u64),
    /// The LF after a chunk's data.
    DataLf,
    /// A trailer line, or the empty last line.
    Line,
    /// The rest of a trailer line.
    Trailer,
    /// The LF after a trailer.
    TrailerLf,
    LastLf,
    /// The body is complete.
    End,
    /// The body is not validly chunked. This state has no end.
    Broken,
}

impl Chunks {
    fn step(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Size(size), digit) if digit.is_ascii_hexdigit() => longer(size, digit),
            (Self::Size(Some(size)), b'\r') | (Self::Extension(size), b'\r') => Self::SizeLf(size),
            (Self::Size(Some(size)), b';' | b' ' | b'\t') => Self::Extension(size),
            (Self::Extension(size), other) if other != b'\n' => Self::Extension(size),
            (Self::SizeLf(0), b'\n') | (Self::TrailerLf, b'\n') => Self::Line,
            (Self::SizeLf(size), b'\n') => Self::Data(size),
            (Self::Data(_), b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::Size(None),
            (Self::Line, b'\r') => Self::LastLf,
            (Self::Trailer, b'\r') => Self::TrailerLf,
            (Self::Line | Self::Trailer, other) if other != b'\n' => Self::Trailer,
            (Self::LastLf, b'\n') => Self::End,
            _ => Self::Broken,
        }
    }
}

/// Appends a digit to a chunk's size.
fn longer(size: Option<u64>, digit: u8) -> Chunks {
    let digit = (digit as char).to_digit(16).map(u64::from);
    let longer = || size.unwrap_or(0).checked_mul(16)?.checked_add(digit?);
    longer().map_or(Chunks::Broken, |size| Chunks::Size(Some(size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    const SIZED: &[u8] = b"\r\nPOST / HTTP/1.1\nContent-Length: 4\n\nabcd";
    /// A chunked body with every construct that RFC 9112 allows.
    const CHUNKED: &[u8] =
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
          0A;name=value;flag\r\n0123\r\n\r\n89\r\n1 ; quoted=\"a;b\"\r\nx\r\n00\r\nTrailer: one\r\nContent-Length: 9\r\n\r\n";

    /// The declared length, and the bytes of head and body.
    type Case = (DeclaredLength, &'static [u8]);
    const SOUND: [Case; 3] = [
        (DeclaredLength::Nothing, PLAIN),
        (DeclaredLength::Length(4), SIZED),
        (DeclaredLength::Chunked, CHUNKED),
    ];

    fn unclear(stated: DeclaredLength, head: &[u8]) -> Option<AmbiguousLength> {
        let mut framing = Framing::default();
        framing.received(head);
        framing.parsed(stated).err()
    }

    /// Feeds requests in pieces. A head counts as parsed once it and all bytes before it have
    /// arrived.
    fn follow(requests: &[Case], size: usize) -> Result<(), AmbiguousLength> {
        let bytes: Vec<u8> = requests
            .iter()
            .flat_map(|(_, bytes)| bytes.to_vec())
            .collect();
        let mut framing = Framing::default();
        let mut due = requests.iter();
        let mut next = due.next();
        for piece in bytes.chunks(size) {
            framing.received(piece);
            while let Some((stated, _)) = next
                && framing.body == Body::Over
                && framing.head.line == Line::Ended
            {
                framing.parsed(*stated)?;
                next = due.next();
            }
        }
        assert!(next.is_none() && !framing.head.started && framing.body == Body::Over);
        assert!(framing.unread.is_empty());
        Ok(())
    }

    #[test]
    fn framing_follows_valid_requests_in_pieces_of_any_size() {
        for first in SOUND {
            for second in SOUND {
                let requests = [first, second, first];
                for size in 1..200 {
                    assert_eq!(follow(&requests, size), Ok(()), "{size} {requests:?}");
                }
            }
        }
    }

    #[test]
    fn framing_finds_second_length_after_any_valid_request() {
        const BOTH: &[u8] =
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\ncontent-lengTH: 3\r\n\r\n";
        const TWICE: &[u8] = b"POST / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n";
        for before in SOUND {
            for after in [
                (DeclaredLength::Chunked, BOTH),
                (DeclaredLength::Length(0), TWICE),
            ] {
                for size in 1..200 {
                    let found = follow(&[before, after], size);
                    assert_eq!(found, Err(AmbiguousLength::Length), "{size} {before:?}");
                }
            }
        }
    }

    #[test]
    fn framing_refuses_other_codings() {
        let head = b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
        assert_eq!(
            unclear(DeclaredLength::Coded, head),
            Some(AmbiguousLength::Coding)
        );
    }

    #[test]
    fn length_outside_its_header_is_ignored() {
        for line in [
            "X-Content-Length: 4",
            "Content-Length-X: 4",
            "X: Content-Length: 4",
            "\rContent-Length: 4",
            "Content-Length 4",
            "Content-Len",
        ] {
            let head = format!("POST / HTTP/1.1\r\n{line}\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(
                unclear(DeclaredLength::Length(0), head.as_bytes()),
                None,
                "{line}"
            );
        }
    }

    #[test]
    fn head_is_not_kept() {
        let mut framing = Framing::default();
        framing.received(b"GET / HTTP/1.1\r\nX: ");
        framing.received(&[b'y'; 16 * 1024]);
        assert_eq!(framing.unread.capacity(), 0);
    }

    #[test]
    fn framing_refuses_every_request_after_invalid_body() {
        const HEAD: &[u8] = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        for body in [
            &b"\r\n0\r\n\r\n"[..],
            b"zz\r\n0\r\n\r\n",
            b";\r\n0\r\n\r\n",
            b"0x1\r\na\r\n0\r\n\r\n",
            b"1\na\r\n0\r\n\r\n",
            b"1;a\nb\r\na\r\n0\r\n\r\n",
            b"1\r\na\n0\r\n\r\n",
            b"1\r\nab\r\n0\r\n\r\n",
            b"0\r\n\n",
            b"0\r\na: b\n\r\n",
            b"0\r\na: b\r\r\n\r\n",
            b"0\r\n\r\r\n",
            b"11111111111111111\r\na\r\n0\r\n\r\n",
        ] {
            let mut framing = Framing::default();
            framing.received(HEAD);
            assert_eq!(framing.parsed(DeclaredLength::Chunked), Ok(()));
            framing.received(body);
            framing.received(PLAIN);
            let found = framing.parsed(DeclaredLength::Nothing);
            assert_eq!(
                found,
                Err(AmbiguousLength::Length),
                "{}",
                body.escape_ascii()
            );
        }
    }
}
