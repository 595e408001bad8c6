//! Byte fuzzing of the tokens that browsers present.

use bolero::check;
use gate_core::embed::{Claims, Scopes, SessionToken, TokenId};
use gate_core::secret::PresentedSecret;
use gate_core::session::SessionId;
use gate_core::token::TokenKey;
use kernel::{Mode, Timestamp};
use partner_core::key::KeyId;
use partner_core::sealing::{DerivedKeys, MasterKey};
use partner_core::{PartnerId, Tenant};

/// Finds a token that is accepted although its header, claims or signature changed, or their encoding did.
#[test]
fn embed_token_is_accepted_only_as_signed() {
    let key = TokenKey::new(&DerivedKeys::of(&MasterKey::new([1; 32])));
    let at = |seconds: i64| Timestamp::from_millis(seconds * 1000).unwrap();
    let claims = Claims {
        id: TokenId::parse("token_test_01HF7YAT00408104G208104081").unwrap(),
        key: KeyId::parse("key_test_01HF7YAT00408104G208104082").unwrap(),
        tenant: Tenant {
            partner: PartnerId::parse("acme").unwrap(),
            mode: Mode::Test,
        },
        session: Some(SessionToken {
            session: SessionId::parse("gs_test_01HF7YAT00408104G208104081").unwrap(),
            number: 1,
        }),
        scopes: Scopes::requested(None).unwrap(),
        issued_at: at(1),
        expires_at: at(3_601),
    };
    let signed = claims.sign(&key).unwrap();
    let open = |token: &str| Claims::open(token, &key, Mode::Test, at(2));
    assert_eq!(open(&signed), Some(claims));
    check!()
        .with_iterations(20_000)
        .with_type::<Vec<(u16, u8)>>()
        .for_each(|changes| {
            let mut token = signed.clone().into_bytes();
            for (place, byte) in changes.iter().take(4) {
                let place = usize::from(*place) % token.len();
                // Every fourth change removes a byte, the others replace one.
                if byte % 4 == 0 && token.len() > 1 {
                    token.remove(place);
                } else {
                    token[place] = byte % 0x80;
                }
            }
            let token = String::from_utf8(token).unwrap();
            assert_eq!(open(&token).is_some(), token == signed, "{token}");
        });
}

/// Finds a client secret that parses to another session than its text names.
#[test]
fn client_secret_names_the_session_in_its_text() {
    const VALID: [&str; 5] = [
        "gsec",
        "_",
        "gs_test_01HF7YAT00408104G208104081",
        "_",
        "abcdefghijklmnopqrstuvwxyz012345",
    ];
    const PARTS: [&str; 12] = [
        "gsec",
        "_",
        "gs",
        "test",
        "live",
        "gs_test_01HF7YAT00408104G208104081",
        "01HF7YAT00408104G208104081",
        "x",
        "0",
        "é",
        "\0",
        "-",
    ];
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let text = mutated(bytes, &VALID, &PARTS);
        if let Some(secret) = PresentedSecret::parse(&text) {
            let expected = format!("gsec_{}_", secret.session);
            assert!(text.starts_with(&expected), "{text}");
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
