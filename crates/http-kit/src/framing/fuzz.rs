//! Byte fuzzing of request heads and bodies, against `httparse` and against other cuts of the same
//! bytes.

use bolero::check;

use super::{DeclaredLength, Framing, Line};
use crate::bent::bent;

const PARTS: [&str; 28] = [
    "GET / HTTP/1.1\r\n",
    "POST / HTTP/1.1\n",
    "Host: x\r\n",
    "Content-Length: 3\r\n",
    "content-length:3\n",
    "Content-Length : 3\r\n",
    "X-Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "X: Content-Length: 3\r\n",
    "Content-Length:",
    "Content-",
    "\r\n\r\n",
    "\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    ":",
    "abc",
    "3\r\nabc\r\n",
    "0\r\n\r\n",
    "0\r\nX: y\r\n\r\n",
    "ffffffffffffffff\r\n",
    "3;a=b\r\n",
    "A",
    "0",
    "\0",
    "é",
];

/// Finds a head that ends elsewhere for the HTTP parser, or has another number of lengths: a
/// smuggled request.
#[test]
fn head_end_and_lengths_agree_with_parser() {
    const SOUND: [&str; 5] = [
        "POST / HTTP/1.1\n",
        "Host: x\r\n",
        "content-length:3\n",
        "\r\n",
        "abc",
    ];
    check!().with_iterations(50_000).for_each(|bytes: &[u8]| {
        let bytes = bent(bytes, &SOUND, &PARTS).concat().into_bytes();
        let mut framing = Framing::default();
        framing.received(&bytes);
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Complete(end)) => {
                assert_eq!(framing.head.line, Line::Ended);
                assert_eq!(framing.unread, &bytes[end..]);
                let is_length = |name: &str| name.eq_ignore_ascii_case("content-length");
                let names = request.headers.iter().map(|header| header.name);
                assert_eq!(
                    framing.head.lengths,
                    names.filter(|name| is_length(name)).count()
                );
            }
            Ok(httparse::Status::Partial) => assert_ne!(framing.head.line, Line::Ended),
            // The parser closes the connection.
            Err(_) => {}
        }
    });
}

/// Finds a result that depends on how the network splits the bytes. An attacker chooses the splits.
#[test]
fn framing_is_independent_of_splits() {
    const SOUND: [&str; 7] = [
        "3\r\nabc\r\n",
        "3;a=b\r\n",
        "abc",
        "\r\n",
        "0\r\nX: y\r\n\r\n",
        "GET / HTTP/1.1\r\n",
        "\r\n",
    ];
    let follow = |pieces: &[&[u8]]| {
        let mut framing = Framing::default();
        framing.received(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(framing.parsed(DeclaredLength::Chunked), Ok(()));
        for piece in pieces {
            framing.received(piece);
        }
        format!("{framing:?} {:?}", framing.unread)
    };
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let bytes = bent(bytes, &SOUND, &PARTS).concat().into_bytes();
        let whole = follow(&[&bytes]);
        let each: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(follow(&each), whole);
        let threes: Vec<&[u8]> = bytes.chunks(3).collect();
        assert_eq!(follow(&threes), whole);
    });
}
