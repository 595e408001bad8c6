//! Notifications of payments by rails: by the rail that holds the payment and by the other one, repeated, late, and of payments that do not
//! exist.

use super::Visitor;
use crate::gate::upstreams::Signer;
use crate::gate::writing::notification;
use crate::history::Kind;

/// Notifications of one payment in a row.
const REPEATED: u32 = 5;
/// The ULID of no payment.
const UNKNOWN: &str = "01KSFVT4Z2V6B9C1D3F5G7H8JK";

impl Visitor<'_, '_, '_> {
    /// Notifies the gate of a payment, as the rail that holds it.
    pub(super) fn notify(&mut self, id: &str) {
        let [holder, _] = self.gate.signers(id);
        self.notify_as(&holder, id);
    }

    /// Notifies the gate of any payment, which mostly has ended.
    pub(super) fn notify_late(&mut self) {
        let ids: Vec<String> = {
            let book = self.shop.book.lock();
            let hosted = book.orders.hosted.values().map(|paid| &paid.rail);
            let ids = hosted.chain(book.orders.rails.keys());
            ids.cloned().collect()
        };
        let Some(id) = self.chance.choice(ids) else {
            return;
        };
        let [holder, other] = self.gate.signers(&id);
        match self.chance.u8(0..100) {
            0..=59 => self.notify_as(&holder, &id),
            60..=74 => {
                for _ in 0..REPEATED {
                    self.notify_as(&holder, &id);
                }
            }
            75..=89 => self.notify_as(&other, &id),
            _ => {
                let id = format!("pi_{}_{UNKNOWN}", self.gate.mode.as_str());
                self.notify_as(&holder, &id);
            }
        }
    }

    /// Notifies the gate. It accepts every notification of a rail that it is configured with, and responds to all of them in the same
    /// way.
    fn notify_as(&mut self, signer: &Signer, id: &str) {
        let Some(bytes) = notification(&signer.secret, id) else {
            return;
        };
        let wanted = if signer.is_configured { 202 } else { 401 };
        let begun = self.begin(Kind::NotifyRail, None);
        let answer = self.caller.one.call(&bytes);
        if let Some(answer) = self.caller.end(begun, answer)
            && answer.status < 500
            && answer.status != wanted
        {
            self.complain(format!(
                "a notification of {id} by {signer:?} received {answer:?}"
            ));
        }
    }
}
