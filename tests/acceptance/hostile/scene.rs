//! One world and the requests to it.

use acceptance::{ACME, Answer, Call, Contract, Gate, Logs, RIVAL, Reply, SHOP, World};
use gate_core::profile::GateProfile;
use partner_core::PartnerStatus;
use partner_core::events::Service;
use partner_core::origin::AllowedDomain;
use partner_core::webhooks::delivery::AttemptOutcome;
use pools_core::ports::Hold;
use pools_core::profile::{Kyc, PoolsAccess, PoolsProfile};
use serde_json::{Value, json};

use crate::bend::{KEYS, bend};
use crate::dice::Dice;
use crate::request::Request;
use crate::schema::{Memory, Operation, QUOTE_OF_WIDGET, operations};
use crate::tally::{NOWHERE, Tally};

/// The log is checked for one request in this many.
const LISTENED: usize = 16;
/// Secrets that no response and no log line may contain.
const CANARIES: [&str; 3] = ["AcmeAcmeAcme", "RivalRivalRival", "whsec_"];
/// An address of the catalogue's default network.
const WALLET: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
/// The header with the token of a widget, and the path of its calls.
const TOKEN: &str = "x-embed-token";
const OF_WIDGET: &str = "/v1/embed/";
/// A widget is opened before one request in this many, because tokens end early here.
const OPENED: usize = 10;
/// Secrets that no request carries.
const WRITTEN_BY_US: &[&str] = &["whsec_"];

/// Sends the given number of requests to a new world.
pub(crate) async fn play(seed: u64, cases: u64) -> Tally {
    let gate = Gate::new().await;
    let scene = Scene {
        world: gate.world().clone(),
        gate,
        dice: Dice::new(seed),
        operations: operations(),
    };
    // Any partner may use the document's example sessions.
    let shop =
        |profile: &mut GateProfile| profile.allowed_domains.extend(AllowedDomain::stored(SHOP));
    scene.world.operator().change_gate(RIVAL, shop).await;
    for partner in [ACME, RIVAL] {
        for asset in ["EUR", "USDT"] {
            scene
                .world
                .operator()
                .credit(partner, "3000.00", asset)
                .await;
        }
    }
    let mut memory = Memory::default();
    let mut tally = Tally::default();
    for case in 0..cases {
        scene.time_passes().await;
        if scene.dice.one_in(OPENED) {
            scene.open_widget(case, &mut memory).await;
        }
        let (service, request, sound, call) = scene.next(&memory);
        let witness = Witness {
            seed,
            case,
            service,
            request: &request,
        };
        let answer = scene.send(service, call.clone()).await;
        let operation = scene.check(service, &request, sound, &answer);
        drop(witness);
        let id = operation.map_or(NOWHERE, |operation| operation.id.as_str());
        tally.count(
            id,
            answer.status,
            answer["code"].as_str().unwrap_or_default(),
        );
        if answer.status < 300 {
            memory.learn(&scene.dice, id, &answer.body);
        }
    }
    scene.world.notice_all().await;
    scene.gate.finish().await;
    tally
}

struct Scene {
    world: World,
    gate: Gate,
    dice: Dice,
    operations: Vec<Operation>,
}

impl Scene {
    /// Events between requests: time passes, and the upstreams and the operator change their behaviour.
    async fn time_passes(&self) {
        let (dice, operator) = (&self.dice, self.world.operator());
        match dice.below(400) {
            0..=100 => self.world.after(dice.below(1_000) as u64),
            101 => self.world.after(20_000),
            102 => self.world.after(3_600_000),
            103 => self.world.engine().hold(Reply::Silent),
            104 => self.world.engine().hold(Reply::Says(Hold::Refused)),
            105..=110 => self.world.engine().hold(Reply::Sandbox),
            111 => self.world.engine().report(Reply::Silent),
            112..=114 => self.world.engine().report(Reply::Sandbox),
            115 => operator.set_available("EUR-USDC", dice.one_in(2)).await,
            116 => operator.credit(ACME, "500.00", "EUR").await,
            117 => operator.credit(ACME, "500.00", "USDT").await,
            119 => {
                let cap = dice.one_in(2).then_some(100_000_000_000);
                let change = |profile: &mut PoolsProfile| profile.velocity_cap = cap;
                operator.change(ACME, change).await;
            }
            120 => {
                let change = |profile: &mut PoolsProfile| {
                    profile.access = *dice.pick(&[PoolsAccess::Active, PoolsAccess::Suspended]);
                    profile.kyc = *dice.pick(&[Kyc::Approved, Kyc::Approved, Kyc::Pending]);
                    profile.balance_gate = dice.one_in(2);
                };
                operator.change(RIVAL, change).await;
            }
            121 => {
                let status = [PartnerStatus::Active, PartnerStatus::Suspended];
                operator.put_partner(RIVAL, *dice.pick(&status)).await;
            }
            122..=127 => {
                self.gate
                    .conclude(AttemptOutcome::GivenUp, Some(500), None)
                    .await
            }
            128 => {
                self.gate
                    .conclude(AttemptOutcome::Delivered, Some(200), None)
                    .await
            }
            129 => {
                let change = |profile: &mut GateProfile| {
                    profile.enabled = !dice.one_in(4);
                    profile.flow_sessions = dice.one_in(2);
                    profile.kyc_trusted = dice.one_in(2);
                    profile.preview_locks = dice.one_in(2);
                };
                operator.change_gate(RIVAL, change).await;
            }
            _ => {}
        }
    }

    /// Opens a widget of a new session, half of the time with a quote, and half of those with a payment that can be cancelled.
    async fn open_widget(&self, case: u64, memory: &mut Memory) {
        let dice = &self.dice;
        let amount = *dice.pick(&["100.00", "100.33", "100.61"]);
        let body =
            json!({ "amount": amount, "currency": "EUR", "return_url": format!("{SHOP}/done") });
        let made = self
            .gate
            .acme()
            .create(&body, &format!("widget-{case}"))
            .await;
        let start = json!({ "clientSecret": made["client_secret"] });
        let page = Call::post("/v1/embed/bootstrap").header("origin", SHOP);
        let started = self.gate.send(page.bearer(KEYS[2]).json(&start)).await;
        let Some(token) = started["embed_token"].as_str() else {
            return;
        };
        memory.keep_only("embed_token", token);
        if dice.one_in(2) {
            return;
        }
        let orders = [
            json!({ "side": "on_ramp", "asset": "USDT", "network": "tron", "payment_method": "sepa" }),
            json!({
                "side": "swap", "source_asset": "ETH", "source_network": "ethereum", "asset": "USDT", "network": "tron",
            }),
        ];
        let order = dice.pick(&orders);
        let call = |path: &str, body: &Value| Call::post(path).json(body).header(TOKEN, token);
        let quote = self.gate.send(call("/v1/embed/quotes", order)).await;
        if let Some(id) = quote["id"].as_str() {
            memory.keep_only(QUOTE_OF_WIDGET, id);
        }
        if amount == "100.33" && dice.one_in(2) {
            let bought = json!({ "quote_id": quote["id"], "wallet_address": WALLET });
            let paid = call("/v1/embed/payments", &bought).key("payment");
            let paid = self.gate.send(paid).await;
            memory.keep_only(
                "id of embed_payment",
                paid["id"].as_str().unwrap_or_default(),
            );
        }
    }

    /// The next request that HTTP can carry, and whether it is valid.
    fn next(&self, memory: &Memory) -> (Service, Request, bool, Call) {
        loop {
            let dice = &self.dice;
            // Writes are chosen more often, so that reads find objects.
            let writes = dice.one_in(3);
            let fits = |operation: &&Operation| !writes || operation.body.is_some();
            let fitting: Vec<&Operation> = self.operations.iter().filter(fits).collect();
            let operation = *dice.pick(&fitting);
            let mut request = operation.request(dice, memory);
            let key = match dice.below(10) {
                0 if operation.secret => KEYS[1],
                1 | 2 if operation.secret => KEYS[3],
                3 if operation.publishable => KEYS[2],
                _ if operation.secret => KEYS[0],
                1 | 2 => KEYS[4],
                _ => KEYS[2],
            };
            if operation.widget {
                let Some(token) = memory.recall(dice, "embed_token") else {
                    continue;
                };
                request.add(TOKEN, token);
            } else {
                request.add("authorization", format!("Bearer {key}"));
            }
            let bends = [0, 0, 0, 1, 1, 1, 1, 2, 2, 4][dice.below(10)];
            for _ in 0..bends {
                bend(dice, memory, &mut request);
            }
            if let Some(call) = request.call() {
                return (operation.service, request, bends == 0, call);
            }
        }
    }

    /// Sends the request. The client checks the response against the contract.
    async fn send(&self, service: Service, call: Call) -> Answer {
        if !self.dice.one_in(LISTENED) {
            return self.answer(service, call).await;
        }
        let (logs, _caught) = Logs::catch();
        let answer = self.answer(service, call).await;
        let log = logs.text();
        let told = CANARIES.iter().find(|canary| log.contains(**canary));
        assert_eq!(told, None, "a secret is logged: {log}");
        // A replayed response of the gate has the request id of the first response.
        let again = matches!(service, Service::Gate) && answer.status < 300;
        assert!(again || log.contains(answer.header("x-request-id").unwrap()));
        answer
    }

    async fn answer(&self, service: Service, call: Call) -> Answer {
        match service {
            Service::Pools => self.world.send(call).await,
            Service::Gate => self.gate.send(call).await,
        }
    }

    /// Checks that apply to every response of this suite, in addition to the contract.
    fn check(
        &self,
        service: Service,
        request: &Request,
        sound: bool,
        answer: &Answer,
    ) -> Option<&'static acceptance::Operation> {
        let code = answer["code"].as_str().unwrap_or_default();
        let method = request.method.parse().unwrap();
        let contract = match service {
            Service::Pools => Contract::published(),
            Service::Gate => Contract::gate(),
        };
        let operation = contract.operation(&method, &request.target());
        let preflight = request.method == "OPTIONS" && answer.status == 204;
        match operation {
            Some(operation) => assert!(
                operation.statuses.contains_key(&answer.status.to_string()),
                "{} documents no {}",
                operation.id,
                answer.status
            ),
            None => assert!(
                preflight || is_entrance(answer) || matches!(answer.status, 404 | 405),
                "{answer:?}"
            ),
        }
        assert_eq!(answer.status == 405, answer.header("allow").is_some());
        let meant = matches!(code, "engine_unavailable" | "side_not_enabled");
        assert!(answer.status < 500 || meant, "a fault");
        let text = String::from_utf8_lossy(&answer.bytes);
        let headers = format!("{:?}", answer.headers);
        // A partner reads back what it wrote into a record of the gate, including its own key.
        let own_records = matches!(service, Service::Gate) && answer.status < 400;
        let canaries = if own_records {
            WRITTEN_BY_US
        } else {
            &CANARIES[..]
        };
        let told = canaries
            .iter()
            .find(|canary| text.contains(**canary) || headers.contains(**canary));
        assert_eq!(told, None, "a response contains a secret");
        if sound {
            // The tokens of earlier bootstraps end.
            let ended = answer.status == 401
                && operation.is_some_and(|it| it.template.starts_with(OF_WIDGET))
                && code == "unauthorized";
            let refused = matches!(answer.status, 401 | 405 | 408 | 413 | 415 | 431) && !ended;
            let misread = matches!(
                code,
                "invalid_request"
                    | "invalid_json"
                    | "route_not_found"
                    | "key_mode_mismatch"
                    | "key_kind_not_allowed"
                    | "live_key_on_sandbox"
            );
            assert!(!refused && !misread, "a valid request is refused: {text}");
        }
        operation
    }
}

/// Whether the root redirects a browser to the reference page or the contract.
fn is_entrance(answer: &Answer) -> bool {
    let leads_on = |to: &str| to == "/docs" || to.starts_with("/openapi/");
    answer.status == 307 && answer.header("location").is_some_and(leads_on)
}

/// Prints the request if the thread panics.
struct Witness<'r> {
    seed: u64,
    case: u64,
    service: Service,
    request: &'r Request,
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "\nHOSTILE_SEED={} HOSTILE_CASES={} ends with\n{}\n",
                self.seed,
                self.case + 1,
                self.request.curl(self.service)
            );
        }
    }
}
