//! Runs batches of several sizes, for one busy partner and for many, and measures their throughput.
//!
//! By default the test runs few commands. `THROUGHPUT=100 cargo xtask test --release -p store-postgres throughput -- --nocapture`
//! runs a hundred times as many and prints the throughput.

use std::sync::Arc;

use crate::fixture;

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

/// Uses the server's clock. Other tests set the time.
#[tokio::test]
async fn quotes_are_executed_in_time_on_server_clock() {
    let opened = fixture::open_by_server().await;
    let (store, database) = (opened.store.clone(), Arc::clone(&opened.database));
    let mut owner = database.owner().await;
    let read_clock = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let began: i64 = sqlx::query_scalar(read_clock)
        .fetch_one(&mut owner)
        .await
        .unwrap();
    test_support::contract::throughput::run(opened, 8, 2, 32).await;
    let (trades, late): (i64, i64) = sqlx::query_as(
        "SELECT count(*), count(*) FILTER (WHERE created_at NOT BETWEEN $1 AND
                (extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM trades",
    )
    .bind(began)
    .fetch_one(&mut owner)
    .await
    .unwrap();
    assert_eq!((trades, late), (34, 0));
    assert_eq!(store.clock_ahead(), std::time::Duration::ZERO);
    sqlx::Connection::close(owner).await.unwrap();
}
