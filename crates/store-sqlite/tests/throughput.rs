//! How fast the lane is: `cargo test --release -p store-sqlite --test throughput -- --ignored --nocapture`.

#[cfg(test)]
mod fixture;

#[tokio::test]
#[ignore = "measures, and takes a while"]
#[expect(clippy::print_stdout, reason = "the figures are what it is run for")]
async fn commands_a_second() {
    for partners in [1, 1000] {
        for (batch, commands) in [(1, 4_000), (8, 16_000), (32, 64_000), (64, 64_000)] {
            let measured =
                store_contract::throughput::lane(fixture::open().await, batch, partners, commands)
                    .await;
            println!("{measured:?}");
        }
    }
}
