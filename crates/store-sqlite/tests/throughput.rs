//! Runs batches of several sizes, for one busy partner and for many, and measures their throughput.
//!
//! By default the test runs few commands. `THROUGHPUT=1000 cargo test --release -p store-sqlite --test throughput -- --nocapture`
//! runs a thousand times as many and prints the throughput.

#[cfg(test)]
mod fixture;

#[tokio::test]
#[expect(
    clippy::print_stdout,
    reason = "prints the measured throughput with --nocapture"
)]
async fn batches_of_every_size_decide_every_command() {
    let times = std::env::var("THROUGHPUT").map_or(1, |text| text.parse().unwrap());
    for partners in [1, 5 * times.min(200)] {
        for (batch, commands) in [(1, 4), (8, 16), (32, 64), (64, 64)] {
            let store = fixture::open().await;
            let measured =
                test_support::contract::throughput::run(store, batch, partners, commands * times)
                    .await;
            assert_eq!((measured.batch, measured.partners), (batch, partners));
            println!("{measured:?}");
        }
    }
}
