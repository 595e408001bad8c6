//! One world under attack.

use acceptance::{ACME, Answer, Call, Contract, Logs, RIVAL, Reply, World};
use partner_core::PartnerStatus;
use partner_core::pools::{Kyc, PoolsAccess, PoolsProfile};
use pools_core::ports::Hold;

use crate::bend::{KEYS, bend};
use crate::dice::Dice;
use crate::request::Request;
use crate::schema::{Memory, Operation, operations};
use crate::tally::{NOWHERE, Tally};

/// Requests whose log is read: one in so many.
const LISTENED: usize = 16;
/// What no answer and no line of the log may hold.
const CANARIES: [&str; 3] = ["AcmeAcmeAcme", "RivalRivalRival", "whsec_"];

/// Sends so many requests to a world of its own.
pub(crate) async fn play(seed: u64, cases: u64) -> Tally {
    let scene = Scene {
        world: World::new().await,
        dice: Dice::new(seed),
        operations: operations(),
    };
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
        let (request, sound, call) = scene.next(&memory);
        let witness = Witness {
            seed,
            case,
            request: &request,
        };
        let answer = scene.send(call.clone()).await;
        let operation = scene.judge(&request, sound, &answer);
        drop(witness);
        let id = operation.map_or(NOWHERE, |operation| operation.id.as_str());
        tally.count(
            id,
            answer.status,
            answer["code"].as_str().unwrap_or_default(),
        );
        if answer.status == 200 {
            memory.learn(&scene.dice, id, &answer.body);
        }
    }
    scene.world.notice_all().await;
    scene.world.finish().await;
    tally
}

struct Scene {
    world: World,
    dice: Dice,
    operations: Vec<Operation>,
}

impl Scene {
    /// What happens between requests: time, mostly, and the moods of the far end and the operator.
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
            _ => {}
        }
    }

    /// The next request that HTTP can carry, and whether nothing is wrong with it.
    fn next(&self, memory: &Memory) -> (Request, bool, Call) {
        loop {
            let dice = &self.dice;
            // What writes is asked for more often, so that there is something to be read.
            let writes = dice.one_in(3);
            let fits = |operation: &&Operation| !writes || operation.body.is_some();
            let fitting: Vec<&Operation> = self.operations.iter().filter(fits).collect();
            let operation = *dice.pick(&fitting);
            let mut request = operation.request(dice, memory);
            let key = match dice.below(10) {
                0 => KEYS[1],
                1 | 2 => KEYS[3],
                3 if operation.any_key => KEYS[2],
                _ => KEYS[0],
            };
            request.add("authorization", format!("Bearer {key}"));
            let bends = [0, 0, 0, 1, 1, 1, 1, 2, 2, 4][dice.below(10)];
            for _ in 0..bends {
                bend(dice, memory, &mut request);
            }
            if let Some(call) = request.call() {
                return (request, bends == 0, call);
            }
        }
    }

    /// Sends it. The answer has been held against the contract when it is here.
    async fn send(&self, call: Call) -> Answer {
        if !self.dice.one_in(LISTENED) {
            return self.world.send(call).await;
        }
        let (logs, _caught) = Logs::catch();
        let answer = self.world.send(call).await;
        let log = logs.text();
        let told = CANARIES.iter().find(|canary| log.contains(**canary));
        assert_eq!(told, None, "a secret is logged: {log}");
        assert!(log.contains(answer.header("x-request-id").unwrap()));
        answer
    }

    /// What holds of every answer here, beside the contract.
    fn judge(
        &self,
        request: &Request,
        sound: bool,
        answer: &Answer,
    ) -> Option<&'static acceptance::Operation> {
        let code = answer["code"].as_str().unwrap_or_default();
        let method = request.method.parse().unwrap();
        let operation = Contract::published().operation(&method, &request.target());
        match operation {
            Some(operation) => assert!(
                operation.statuses.contains_key(&answer.status.to_string()),
                "{} documents no {}",
                operation.id,
                answer.status
            ),
            None => assert!(matches!(answer.status, 404 | 405), "{answer:?}"),
        }
        assert_eq!(answer.status == 405, answer.header("allow").is_some());
        let meant = matches!(code, "engine_unavailable" | "side_not_enabled");
        assert!(answer.status < 500 || meant, "a fault");
        let text = String::from_utf8_lossy(&answer.bytes);
        let headers = format!("{:?}", answer.headers);
        let told = CANARIES
            .iter()
            .find(|canary| text.contains(**canary) || headers.contains(**canary));
        assert_eq!(told, None, "a secret is told");
        if sound {
            let refused = matches!(answer.status, 401 | 405 | 408 | 413 | 415 | 431);
            let misread = matches!(
                code,
                "invalid_request" | "invalid_json" | "route_not_found" | "key_mode_mismatch"
            );
            assert!(!refused && !misread, "a sound request is refused: {text}");
        }
        operation
    }
}

/// Says what was sent, should that be the end of it.
struct Witness<'r> {
    seed: u64,
    case: u64,
    request: &'r Request,
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "\nHOSTILE_SEED={} HOSTILE_CASES={} ends with\n{}\n",
                self.seed,
                self.case + 1,
                self.request.curl()
            );
        }
    }
}
