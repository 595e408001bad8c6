//! A name server whose responses change between look-ups.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::CNAME;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;

type Lookups = Vec<Vec<&'static str>>;

#[derive(Default)]
struct Zone {
    /// The response of each look-up of a name: addresses or another name. The last one repeats.
    names: BTreeMap<String, Lookups>,
    asked: BTreeMap<(String, RecordType), usize>,
}

/// The server, on its own port. Drop stops it.
pub(crate) struct Dns {
    zone: Arc<Mutex<Zone>>,
    pub(crate) address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Dns {
    pub(crate) async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let zone = Arc::<Mutex<Zone>>::default();
        let serving = zone.clone();
        let task = tokio::spawn(async move {
            let mut buffer = [0; 4096];
            loop {
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                let response = response(&serving, &buffer[..length]);
                socket.send_to(&response, from).await.unwrap();
            }
        });
        Self {
            zone,
            address,
            task,
        }
    }

    pub(crate) fn set(&self, name: &str, lookups: &[&[&'static str]]) {
        let lookups = lookups.iter().map(|lookup| lookup.to_vec()).collect();
        let mut zone = self.zone.lock().unwrap();
        zone.names.insert(name.to_owned(), lookups);
    }

    /// Counts the look-ups of a name.
    pub(crate) fn asked(&self, name: &str) -> usize {
        let asked = &self.zone.lock().unwrap().asked;
        let of = |kind| asked.get(&(name.to_owned(), kind)).copied();
        of(RecordType::A).max(of(RecordType::AAAA)).unwrap_or(0)
    }
}

fn response(zone: &Mutex<Zone>, question: &[u8]) -> Vec<u8> {
    let mut message = Message::from_vec(question).unwrap().into_response();
    message.metadata.recursion_available = true;
    let query = message.queries[0].clone();
    let mut zone = zone.lock().unwrap();
    let mut name = query.name.to_string().to_lowercase();
    message.metadata.response_code = ResponseCode::NXDomain;
    // Follows a chain of aliases to its end, like a recursive server.
    while let Some(found) = zone.look_up(name.trim_end_matches('.'), query.query_type) {
        message.metadata.response_code = ResponseCode::NoError;
        let owner = Name::from_utf8(&name).unwrap();
        let mut next = None;
        for text in found {
            let data = match (text.parse(), query.query_type) {
                (Ok(IpAddr::V4(address)), RecordType::A) => RData::A(address.into()),
                (Ok(IpAddr::V6(address)), RecordType::AAAA) => RData::AAAA(address.into()),
                (Ok(_), _) => continue,
                (Err(_), _) => {
                    next = Some(format!("{text}."));
                    RData::CNAME(CNAME(Name::from_utf8(format!("{text}.")).unwrap()))
                }
            };
            message.add_answer(Record::from_rdata(owner.clone(), 0, data));
        }
        match next {
            Some(next) => name = next,
            None => break,
        }
    }
    message.to_vec().unwrap()
}

impl Zone {
    fn look_up(&mut self, name: &str, kind: RecordType) -> Option<Vec<&'static str>> {
        let lookups = self.names.get(name)?;
        let asked = self.asked.entry((name.to_owned(), kind)).or_default();
        let place = (*asked).min(lookups.len() - 1);
        *asked += 1;
        Some(lookups[place].clone())
    }
}
