//! Sees through a request that states its length twice.
//!
//! A head with both `Transfer-Encoding` and `Content-Length` is read differently by different
//! servers, which is how one request is smuggled inside another. The HTTP parser drops the
//! `Content-Length` silently, so the bytes of each head are kept until it has been parsed and
//! are looked at again if, and only if, the request is chunked.

use bytes::Buf;
use bytes::BytesMut;

/// How much of unparsed input is kept. More than the largest head that is accepted; a
/// connection that got further ahead is judged on the safe side.
const KEPT: usize = 96 * 1024;

/// Where one connection's input stands: the bytes of the next head, and how much body is
/// still to come before it.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    head: BytesMut,
    body_left: u64,
    lost: bool,
    tail: [u8; 5],
}

/// The end of a chunked body without trailers.
const LAST_CHUNK: &[u8; 5] = b"0\r\n\r\n";

impl Framing {
    /// Bytes have arrived. `idle` says that the connection was waiting for a new request.
    pub(crate) fn received(&mut self, mut bytes: &[u8], idle: bool) {
        if self.lost {
            if idle && &self.tail == LAST_CHUNK {
                self.lost = false;
                self.head.clear();
            } else {
                self.remember_tail(bytes);
                return;
            }
        }
        let body = usize::try_from(self.body_left)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        self.body_left -= body as u64;
        bytes.advance(body);
        if self.head.len() + bytes.len() > KEPT {
            self.lose();
        } else {
            self.head.extend_from_slice(bytes);
        }
    }

    /// A head has been parsed from these bytes. `length` is its `Content-Length`, `chunked`
    /// whether it carried a `Transfer-Encoding`. Returns `false` where it stated its length
    /// twice, or where that can no longer be told.
    pub(crate) fn parsed(&mut self, length: Option<u64>, chunked: bool) -> bool {
        if self.lost {
            return !chunked;
        }
        let Some((end, has_length)) = scan(&self.head) else {
            self.lose();
            return !chunked;
        };
        self.head.advance(end);
        if chunked {
            let rest = self.head.split();
            self.lose();
            self.remember_tail(&rest);
            return !has_length;
        }
        let length = length.unwrap_or(0);
        let here = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(self.head.len());
        self.head.advance(here);
        self.body_left = length - here as u64;
        true
    }

    fn lose(&mut self) {
        self.lost = true;
        self.body_left = 0;
        self.tail = [0; 5];
        self.head.clear();
    }

    fn remember_tail(&mut self, bytes: &[u8]) {
        for byte in bytes
            .iter()
            .skip(bytes.len().saturating_sub(self.tail.len()))
        {
            self.tail.rotate_left(1);
            if let Some(last) = self.tail.last_mut() {
                *last = *byte;
            }
        }
    }
}

/// The length of the first head, and whether one of its lines is a `Content-Length`. Lines end
/// with LF, as the parser accepts them; empty lines before the request line are skipped.
fn scan(bytes: &[u8]) -> Option<(usize, bool)> {
    let mut at = 0;
    let mut started = false;
    let mut has_length = false;
    loop {
        let rest = bytes.get(at..)?;
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = rest.get(..end)?;
        at += end + 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            if started {
                return Some((at, has_length));
            }
            continue;
        }
        started = true;
        has_length |= names_length(line);
    }
}

fn names_length(line: &[u8]) -> bool {
    const NAME: &[u8] = b"content-length";
    line.get(..NAME.len())
        .is_some_and(|name| name.eq_ignore_ascii_case(NAME))
        && line.get(NAME.len()) == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    const BOTH: &[u8] =
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-length: 3\r\n\r\n";

    #[test]
    fn finds_the_second_length_however_it_arrives() {
        for size in 1..BOTH.len() {
            let mut framing = Framing::default();
            for part in BOTH.chunks(size) {
                framing.received(part, true);
            }
            assert!(!framing.parsed(None, true), "{size}");
        }
        let mut framing = Framing::default();
        framing.received(CHUNKED, true);
        assert!(framing.parsed(None, true));
    }

    #[test]
    fn follows_requests_over_one_connection() {
        let mut framing = Framing::default();
        framing.received(b"\r\nPOST / HTTP/1.1\nContent-Length: 4\n\nab", true);
        assert!(framing.parsed(Some(4), false));
        framing.received(b"cdGET / HTTP/1.1\r\n", false);
        framing.received(b"\r\n", false);
        assert!(framing.parsed(None, false));
        framing.received(CHUNKED, true);
        framing.received(b"0\r\n\r\n", false);
        assert!(framing.parsed(None, true));
        // The chunked body is over, so the next head is known from its first byte on.
        framing.received(b"0\r\n\r\n", false);
        framing.received(BOTH, true);
        assert!(!framing.parsed(None, true));
    }

    #[test]
    fn a_chunked_request_that_cannot_be_checked_is_refused() {
        let mut framing = Framing::default();
        framing.received(CHUNKED, true);
        framing.received(b"0\r\nx: y\r\n\r\n", false);
        framing.received(CHUNKED, false);
        assert!(framing.parsed(None, true));
        assert!(!framing.parsed(None, true));
        assert!(
            framing.parsed(Some(1), false),
            "a plain request is not touched"
        );
    }

    #[test]
    fn a_length_in_a_body_is_not_a_header() {
        let mut framing = Framing::default();
        framing.received(CHUNKED, true);
        framing.received(b"10\r\n\nContent-Length: 4", false);
        assert!(framing.parsed(None, true));
    }
}
