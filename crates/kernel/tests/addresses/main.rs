//! Addresses of each form, right and with slips, and whether the check of the form accepts them. The widget's check is tested with
//! the same file (`crates/gate-http/web/test/widget/address.test.mjs`), so the page and the service decide alike.

#[cfg(test)]
mod slips;

use slips::FORMS;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/addresses.json");

// rule: gate.payment.address
#[test]
fn recorded_addresses_are_decided_by_the_check_of_their_form() {
    let mut lines = Vec::new();
    for (form, name) in FORMS {
        let mut counts = [0, 0];
        for address in slips::addresses_of(form) {
            let accepted = form.check(&address).is_ok();
            counts[usize::from(accepted)] += 1;
            lines.push(format!(
                r#"{{"form": "{name}", "address": "{address}", "accepted": {accepted}}}"#
            ));
        }
        let [refused, accepted] = counts;
        assert!(refused >= 30 && accepted >= 8, "{name}: {counts:?}");
    }
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    if std::env::var_os("PENSTOCK_RECORD_ADDRESSES").is_some_and(|set| set == "1") {
        std::fs::write(PATH, &text).unwrap();
    }
    let recorded = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(
        recorded == text,
        "tests/addresses.json is out of date: run this test with PENSTOCK_RECORD_ADDRESSES=1"
    );
}
