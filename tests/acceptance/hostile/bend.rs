//! Mutations that make a request invalid.

use acceptance::{ACME_PUBLISHABLE, ACME_SECRET, ACME_SECRET_2, RIVAL_PUBLISHABLE, RIVAL_SECRET};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::request::Request;
use crate::schema::Memory;
use crate::values::{self, escaped};

/// Provisioned keys.
pub(crate) const KEYS: [&str; 5] = [
    ACME_SECRET,
    ACME_SECRET_2,
    ACME_PUBLISHABLE,
    RIVAL_SECRET,
    RIVAL_PUBLISHABLE,
];

/// Field names that no request may set: fields of responses and of the operator.
const FIELDS: &str = "status partner_id partnerId mode balance available rate spreadBps feeBps expiresAt \
    consumedAt settledAt transactId kyc_pre_verified client_secret session_id expires_at allowedPools \
    __proto__ constructor object";

/// Applies one mutation.
pub(crate) fn bend(dice: &Dice, memory: &Memory, request: &mut Request) {
    match dice.below(20) {
        0..=7 if request.body.is_some() => body(dice, memory, request),
        0..=3 => path(dice, memory, request),
        4..=7 => query(dice, memory, request),
        8 | 9 => path(dice, memory, request),
        10 | 11 => query(dice, memory, request),
        12..=14 => header(dice, request),
        15..=17 => credential(dice, request),
        18 => method(dice, request),
        _ => drop(request.body.take()),
    }
}

fn method(dice: &Dice, request: &mut Request) {
    request.method = dice.among("GET POST PUT PATCH DELETE OPTIONS TRACE BREW get sk_test_x");
}

fn path(dice: &Dice, memory: &Memory, request: &mut Request) {
    let at = dice.below(request.path.len());
    let old = request.path[at].clone();
    let new = match dice.below(14) {
        0 => String::new(),
        1 => old.to_lowercase(),
        2 => old.to_uppercase(),
        3 => old.replace("_test_", "_live_"),
        4 => old.chars().skip(1).collect(),
        5 => format!("{old}0"),
        6 => format!("{old}%00"),
        7 => format!("{old}%2F.."),
        8 => dice.among(". .. %2e%2e %ff % %zz %C3%A9 é * ;a=b"),
        9 => escaped(&values::text(dice, &old)),
        10 => dice.word(&KEYS),
        11 => {
            let other = dice
                .among("transactId quoteId poolId id engineFillTxId refid event_id client_secret");
            memory.recall(dice, &other).unwrap_or(old)
        }
        12 => {
            request.path.push(dice.word(&["", "x", "capabilities"]));
            old
        }
        _ if request.path.len() > 1 => {
            request.path.remove(at);
            return;
        }
        _ => String::new(),
    };
    request.path[at] = new;
}

fn query(dice: &Dice, memory: &Memory, request: &mut Request) {
    let known = [
        "limit",
        "cursor",
        "side",
        "status",
        "currency",
        "created_after",
        "created_before",
        "starting_after",
        "session_id",
        "skip",
        "publishable_key",
        "x",
        "",
    ];
    let name = dice.word(&known);
    let value = match dice.below(12) {
        0..=2 => escaped(&values::integer(dice)),
        3..=5 => values::instant(dice),
        6 => escaped(&values::text(dice, "EUR")),
        7 => dice.word(&["%", "%zz", "%ff", "%C3", "+", "a=b=c", "%2500"]),
        8 => dice
            .among("on_ramp off_ramp ON_RAMP quoted settled EUR usdt open pending dead_lettered"),
        9 => escaped(&dice.word(&KEYS)),
        10 => {
            let other = dice.word(&["transactId", "quoteId", "id", "cursor of listTrades"]);
            escaped(&memory.recall(dice, &other).unwrap_or_default())
        }
        _ => {
            // Repeats an existing query parameter.
            request.query.extend(request.query.clone());
            return;
        }
    };
    request.query.push((name, value));
    if dice.one_in(50) {
        let many = (0..3_000).map(|at| (format!("q{at}"), "1".to_owned()));
        request.query.extend(many);
    }
}

fn header(dice: &Dice, request: &mut Request) {
    let odd = match dice.below(8) {
        0 => String::new(),
        1 => "a\u{80}\u{ff}".to_owned(),
        2 => "é💰".to_owned(),
        3 => "x".repeat(*dice.pick(&[255, 256, 8_000])),
        4 => "\"quoted\"".to_owned(),
        5 => "{\"level\":\"ERROR\"}".to_owned(),
        6 => "a\tb, c; d=e".to_owned(),
        _ => dice.word(&KEYS),
    };
    match dice.below(7) {
        0 if !request.headers.is_empty() => {
            let once_more = dice.pick(&request.headers).clone();
            request.headers.push(once_more);
        }
        1 => request.remove("idempotency-key"),
        2 => {
            request.remove("idempotency-key");
            request.add("idempotency-key", odd);
        }
        3 => {
            request.remove("content-type");
            let other = [
                "",
                "text/plain",
                "application/json; charset=utf-8",
                "application/json;charset=latin1",
                "APPLICATION/JSON",
                "application/vnd.api+json",
                "application/x-www-form-urlencoded",
                "multipart/form-data; boundary=x",
                "application/json, text/plain",
                "é",
            ];
            if !dice.one_in(4) {
                request.add("content-type", dice.word(&other));
            }
        }
        4 => request.add(
            &dice.among("x-request-id traceparent user-agent cookie x-forwarded-for"),
            odd,
        ),
        _ => {
            let name = dice.among(
                "accept accept-encoding content-encoding content-length expect forwarded host \
                if-none-match origin range referer x-embed-token transfer-encoding upgrade \
                x-http-method-override x-mode x-original-url x-partner-id x-real-ip",
            );
            request.add(&name, odd);
        }
    }
}

fn credential(dice: &Dice, request: &mut Request) {
    let key = *dice.pick(&KEYS);
    let shown = match dice.below(14) {
        0 => {
            request.remove("authorization");
            return;
        }
        1 => format!("bearer   {key}  "),
        2 => format!("Basic {key}"),
        3 => format!("Bearer{key}"),
        4 => format!("Bearer {key}0"),
        5 => format!("Bearer {}", key.replace("_test_", "_live_")),
        6 => format!("Bearer {}", key.to_lowercase()),
        7 => "Bearer sk_test_NobodyNobodyNobodyNobodyNobody99".to_owned(),
        8 => {
            let name = dice.word(&["x-secret-key", "x-publishable-key", "authorization"]);
            request.add(&name, key);
            return;
        }
        9 => {
            request.remove("authorization");
            let name = dice.word(&["x-secret-key", "x-publishable-key"]);
            request.add(&name, key);
            return;
        }
        10 => "Bearer \u{1f511}".to_owned(),
        _ => format!("Bearer {key}"),
    };
    if let Some(header) = request.header("authorization") {
        *header = shown;
    }
    if let Some(token) = request.header("x-embed-token") {
        *token = match dice.below(6) {
            0 => key.to_owned(),
            1 => token.chars().skip(1).collect(),
            2 => format!("{token}0"),
            3 => token.to_lowercase(),
            4 => token
                .rsplit_once('.')
                .map_or("", |(signed, _)| signed)
                .to_owned(),
            _ => "\u{1f511}".to_owned(),
        };
    }
}

fn body(dice: &Dice, memory: &Memory, request: &mut Request) {
    let Some(bytes) = &mut request.body else {
        return;
    };
    match serde_json::from_slice::<Value>(bytes) {
        Ok(mut value) if !dice.one_in(4) => {
            field(dice, memory, &mut value);
            *bytes = value.to_string().into_bytes();
        }
        _ => raw(dice, bytes),
    }
}

/// Mutates a field of the body and keeps the body valid JSON.
fn field(dice: &Dice, memory: &Memory, value: &mut Value) {
    let Some(fields) = value.as_object_mut() else {
        return;
    };
    let names: Vec<String> = fields.keys().cloned().collect();
    let name = match names.is_empty() {
        true => "quoteId".to_owned(),
        false => dice.pick(&names).clone(),
    };
    match dice.below(10) {
        0 => drop(fields.remove(&name)),
        1 => drop(fields.insert(dice.among(FIELDS), json!("mine"))),
        2 => {
            let old = fields.get(&name).cloned().unwrap_or_default();
            fields.insert(name.to_uppercase(), old);
        }
        3 => {
            let new = memory.recall(dice, &name).map_or(Value::Null, Value::from);
            fields.insert(name, new);
        }
        4 => {
            let other = dice.word(&["transactId", "poolId", "id", "createdAt"]);
            let new = memory.recall(dice, &other).map_or(Value::Null, Value::from);
            fields.insert(name, new);
        }
        5 => drop(fields.insert(name, json!(dice.pick(&KEYS)))),
        6 if fields.contains_key("amount") => {
            fields.insert("amount".to_owned(), json!(values::amount(dice)));
        }
        _ => {
            let old = fields.get(&name).cloned().unwrap_or_default();
            fields.insert(name, values::value(dice, &old));
        }
    }
}

/// Mutates the bytes of the body.
fn raw(dice: &Dice, bytes: &mut Vec<u8>) {
    let at = dice.below(bytes.len() + 1);
    match dice.below(14) {
        0 => bytes.truncate(at),
        1 => bytes.extend_from_slice(b" x"),
        2 => drop(bytes.splice(0..0, *b"\xef\xbb\xbf")),
        3 => bytes.insert(at, 0xff),
        4 => bytes.insert(at, 0),
        5 => bytes.clear(),
        6 => *bytes = [b"[", bytes.as_slice(), b"]"].concat(),
        7 => {
            // Repeats a key; the second value comes from another field.
            let inner = bytes.get(1..).unwrap_or_default().to_vec();
            *bytes = [&b"{\"amount\":\"1\",\"quoteId\":\"x\","[..], &inner].concat();
        }
        8 => *bytes = bytes.repeat(2),
        9 => {
            let room = *dice.pick(&[65_535, 65_536, 65_537, 70_000]);
            let pad = room - bytes.len().min(room);
            bytes.extend(std::iter::repeat_n(b' ', pad));
        }
        10 => *bytes = b"[".repeat(*dice.pick(&[33, 1_000, 60_000])),
        11 => *bytes = br#"{"side":"\ud800","quoteId":"\udc00\ud800"}"#.to_vec(),
        12 => *bytes = format!("{{\"amount\":{}}}", "9".repeat(40_000)).into_bytes(),
        _ => {
            let words: [&[u8]; 6] = [b"null", b"1", b"\"x\"", b"{}", b"{\"a\":NaN}", b"{'a':1}"];
            *bytes = dice.pick(&words).to_vec();
        }
    }
}
