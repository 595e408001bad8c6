//! Operations on customers: concurrent creates for one person, renames, deletions, reads.

use super::Visitor;
use crate::caller::number;
use crate::gate::writing::Writing;
use crate::history::Kind;

impl Visitor<'_, '_, '_> {
    /// Runs an operation on a shared customer.
    pub(super) fn people(&mut self) {
        let picked = {
            let book = self.shop.book.lock();
            let newest = book.people.hot.iter().rev().take(self.caller.front.hot);
            self.chance.choice(newest).cloned()
        };
        let Some(id) = picked.filter(|_| self.chance.u8(0..100) < 70) else {
            return self.enrol();
        };
        match self.chance.u8(0..100) {
            0..=34 => self.write(&Writing::rename(self.shop, &id)),
            35..=49 => self.rename_and_more(&id),
            50..=59 => {
                let writing = Writing::dismiss(self.shop, &id, self.chance);
                self.write(&writing);
            }
            _ => self.read_customer(&id),
        }
    }

    /// Creates a customer, alone or concurrently with others for the same person under other keys.
    fn enrol(&mut self) {
        let (shop, person) = (self.shop, number());
        let mut another = || Writing::enrol(shop, person, self.chance);
        let (one, other) = (another(), another());
        match self.chance.u8(0..100) {
            0..=49 => self.write(&one),
            50..=54 => {
                let all: Vec<_> = self.crowded(|chance| Writing::enrol(shop, person, chance));
                self.crowd(&all);
            }
            55..=69 => {
                self.write(&one);
                self.write(&other);
            }
            _ => self.write_both(&one, &other),
        }
    }

    /// Renames a customer twice concurrently, or renames and deletes it.
    fn rename_and_more(&mut self, id: &str) {
        let one = Writing::rename(self.shop, id);
        let other = match self.chance.u8(0..3) {
            0 => Writing::dismiss(self.shop, id, self.chance),
            _ => Writing::rename(self.shop, id),
        };
        self.write_both(&one, &other);
    }

    fn read_customer(&mut self, id: &str) {
        let gone = self.shop.book.lock().people.gone(id);
        let begun = self.begin(Kind::ReadCustomer, Some(id));
        let path = format!("/customers/{id}");
        let answer = self.caller.ask(begun, &self.shop.key, &path);
        if answer.is_some_and(|answer| gone && answer.status == 200) {
            self.complain(format!("{id} was deleted and can be read"));
        }
    }
}
