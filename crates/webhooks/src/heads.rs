//! Shortens the head of a response before the HTTP client reads it.
//!
//! Only the status counts, but the client refuses a head of more than 100 lines, or one that is longer than its buffer. A longer head
//! is therefore replaced by its status. The connection is then closed after the response, because the length of the body is skipped
//! too. A short head is passed on unchanged.

use std::mem;

use bytes::BytesMut;
use tokio::io::ReadBuf;

/// A head with at most this many bytes and lines is passed on unchanged.
const MAX_SHORT_BYTES: usize = 8 * 1024;
const MAX_SHORT_LINES: usize = 64;
/// The start of a response.
const PROTOCOL: &[u8] = b"HTTP/1.";

/// Holds the bytes of a head until the head is complete.
#[derive(Debug, Default)]
pub(crate) struct HeadFilter {
    is_in_head: bool,
    held: BytesMut,
    /// The bytes of `held` in which no end of a head was found.
    searched: usize,
    /// Bytes for the client.
    ready: BytesMut,
}

impl HeadFilter {
    /// A response begins with the next byte.
    pub(crate) fn begin(&mut self) {
        self.is_in_head = true;
    }

    /// Whether more bytes are needed before the client can read.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_in_head && self.ready.is_empty()
    }

    /// Takes the next bytes of a head; none if the stream has ended.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            // The client reports an incomplete head.
            return self.pass_on();
        }
        self.held.extend_from_slice(bytes);
        while let Some(end) = end_of_head(&self.held, self.searched) {
            let head = self.held.split_to(end);
            self.searched = 0;
            match status(&head) {
                Some(status) if is_interim(status) => continue,
                Some(status) if !is_short(&head) => {
                    self.ready.extend_from_slice(b"HTTP/1.1 ");
                    self.ready.extend_from_slice(status);
                    self.ready
                        .extend_from_slice(b"\r\nconnection: close\r\n\r\n");
                }
                Some(_) | None => self.ready.extend_from_slice(&head),
            }
            return self.pass_on();
        }
        self.searched = self.held.len();
        if !self.held.starts_with(PROTOCOL) && !PROTOCOL.starts_with(&self.held) {
            // The client reports that this is no response.
            self.pass_on();
        }
    }

    /// Passes on what is held, and all bytes until the next response.
    fn pass_on(&mut self) {
        self.is_in_head = false;
        self.searched = 0;
        self.ready.extend_from_slice(&mem::take(&mut self.held));
    }

    /// Moves bytes to the client. Returns whether there were any.
    pub(crate) fn move_to(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        if self.ready.is_empty() {
            return false;
        }
        let length = self.ready.len().min(buffer.remaining());
        buffer.put_slice(&self.ready.split_to(length));
        true
    }
}

/// The length of the first head. `searched` bytes have no end of a head.
fn end_of_head(held: &[u8], searched: usize) -> Option<usize> {
    // The line end that completes a head may follow a line end that was searched already.
    let from = searched.saturating_sub(2);
    let mut ends = held.iter().enumerate().skip(from);
    ends.find_map(|(at, byte)| match (byte, held.get(at + 1..)?) {
        (b'\n', [b'\n', ..]) => Some(at + 2),
        (b'\n', [b'\r', b'\n', ..]) => Some(at + 3),
        _ => None,
    })
}

/// The three digits of a head's status, or `None` if the head has no valid status line.
fn status(head: &[u8]) -> Option<&[u8]> {
    let [b'0' | b'1', b' ', rest @ ..] = head.strip_prefix(PROTOCOL)? else {
        return None;
    };
    let (status, after) = rest.split_at_checked(3)?;
    let is_whole = matches!(after, [b' ' | b'\r' | b'\n', ..]);
    (is_whole && status.iter().all(u8::is_ascii_digit)).then_some(status)
}

/// Whether another head follows, of the same response.
fn is_interim(status: &[u8]) -> bool {
    status.starts_with(b"1") && status != b"101"
}

fn is_short(head: &[u8]) -> bool {
    let lines = head.iter().filter(|byte| **byte == b'\n').count();
    head.len() <= MAX_SHORT_BYTES && lines <= MAX_SHORT_LINES
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    /// What the client reads of a response that arrives in pieces of this length.
    fn filtered(response: &str, piece: usize) -> String {
        let mut filter = HeadFilter::default();
        filter.begin();
        let mut read = Vec::new();
        // After the last piece the stream ends.
        let pieces = response.as_bytes().chunks(piece);
        let mut pieces = pieces.chain(iter::once(&b""[..]));
        loop {
            if filter.is_waiting() {
                filter.take(pieces.next().unwrap());
                continue;
            }
            let mut space = [0; 7];
            let mut buffer = ReadBuf::new(&mut space);
            if !filter.move_to(&mut buffer) {
                break;
            }
            read.extend_from_slice(buffer.filled());
        }
        // The client reads the rest of the body from the stream.
        read.extend(pieces.flatten());
        String::from_utf8(read).unwrap()
    }

    #[track_caller]
    fn assert_filtered(response: &str, expected: &str) {
        for piece in [1, 2, 3, 5, 4096, usize::MAX] {
            assert_eq!(filtered(response, piece), expected, "{piece}");
        }
    }

    // rule: webhook.answer-head
    #[test]
    fn long_head_is_replaced_by_its_status() {
        let replaced = "HTTP/1.1 202\r\nconnection: close\r\n\r\nok";
        for headers in [
            "a:\r\n".repeat(100),
            "a:\n".repeat(10_000),
            format!("content-length: 2\r\nx: {}\r\n", "y".repeat(9_000)),
        ] {
            assert_filtered(&format!("HTTP/1.1 202 So\r\n{headers}\r\nok"), replaced);
            assert_filtered(&format!("HTTP/1.0 202\n{headers}\nok"), replaced);
        }
        let reason = "o".repeat(9_000);
        assert_filtered(&format!("HTTP/1.1 202 {reason}\r\n\r\nok"), replaced);
    }

    // rule: webhook.answer-head
    #[test]
    fn interim_heads_are_skipped() {
        let last = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        let links = "link: </a>\r\n".repeat(500);
        let hints = format!("HTTP/1.1 103 Early\r\n{links}\r\nHTTP/1.1 100\r\n\r\n{last}");
        assert_filtered(&hints, last);
    }

    #[test]
    fn other_bytes_are_passed_on_unchanged() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "HTTP/1.1 101 So\r\nupgrade: x\r\n\r\n",
            "HTTP/1.1 204\n\n",
            "HTTP/1.1 200 OK\r\nconte",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "220 mail.example ESMTP\r\n\r\n",
            "\r\nHTTP/1.1 200 OK\r\n\r\n",
            "hello",
            "",
        ] {
            assert_filtered(text, text);
        }
        let long = format!("HTTP/1.1 2x0 OK\r\n{}\r\n", "a:\r\n".repeat(100));
        assert_filtered(&long, &long);
    }
}
