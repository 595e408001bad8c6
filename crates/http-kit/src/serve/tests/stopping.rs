//! What happens to connections and requests when a service stops.

use super::*;

#[tokio::test]
async fn shutdown_finishes_requests_in_flight() {
    let server = start(|_| {}).await;
    let idle = connect(&server).await;
    let mut busy = connect(&server).await;
    busy.write_all(b"GET /slow HTTP/1.1\r\n\r\n").await.unwrap();
    let mut gone = connect(&server).await;
    gone.write_all(b"GET /slow HTTP/1.1\r\n\r\n").await.unwrap();
    counted(&server.calls.begun, 2).await;
    drop(gone);
    server.stop.cancel();
    let response = read_to_end(&mut busy).await;
    assert!(response.ends_with("slow"), "{response}");
    server.task.await.unwrap().unwrap();
    assert_eq!(server.calls.done.load(Ordering::SeqCst), 2);
    drop(idle);
    assert!(TcpStream::connect(server.at).await.is_err());
}

#[tokio::test]
async fn shutdown_waits_no_longer_than_its_deadline() {
    let server = start(|options| options.deadlines.shutdown = SHORT).await;
    let mut busy = connect(&server).await;
    busy.write_all(b"GET /stuck HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    counted(&server.calls.begun, 1).await;
    server.stop.cancel();
    let ended = timeout(LONG / 2, server.task).await;
    ended.expect("the server stops").unwrap().unwrap();
}

/// Stops the server, sends a request, and expects the last response of the connection. The server runs on the test's thread,
/// so it stops before it can read the request.
async fn expect_last_response(server: &Server, stream: &mut TcpStream) {
    server.stop.cancel();
    stream
        .write_all(b"GET /fast HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let response = read_to_end(stream).await;
    assert!(response.ends_with("fast"), "{response}");
    assert_closes(&response);
}

/// A connection that the server has accepted, and on which it has read nothing.
async fn accepted(server: &Server) -> TcpStream {
    let stream = connect(server).await;
    // A listener accepts connections in order.
    drop(served(server).await);
    stream
}

// rule: base.stop-loses-nothing
#[tokio::test]
async fn connection_in_the_backlog_is_served_when_the_service_stops() {
    let server = start(|_| {}).await;
    // The server runs on the test's thread, so it has not accepted the connection yet.
    let mut waiting = connect_with(&server, b"GET /fast HTTP/1.1\r\n\r\n");
    server.stop.cancel();
    let response = read_to_end(&mut waiting).await;
    assert!(response.ends_with("fast"), "{response}");
    assert_closes(&response);
    server.task.await.unwrap().unwrap();
}

// rule: base.stop-loses-nothing
#[tokio::test]
async fn silent_connection_is_served_after_the_service_begins_to_stop() {
    let server = start(|_| {}).await;
    let mut silent = accepted(&server).await;
    expect_last_response(&server, &mut silent).await;
    server.task.await.unwrap().unwrap();
}

// rule: base.stop-loses-nothing
#[tokio::test]
async fn idle_connection_is_served_once_after_the_service_begins_to_stop() {
    let server = start(|_| {}).await;
    let mut idle = served(&server).await;
    expect_last_response(&server, &mut idle).await;
    server.task.await.unwrap().unwrap();
}

// rule: base.stop-loses-nothing
#[tokio::test]
async fn incomplete_head_is_completed_after_the_service_begins_to_stop() {
    let server = start(|_| {}).await;
    let mut slow = served(&server).await;
    slow.write_all(b"GET /fast HTTP/1.1\r\nX: ").await.unwrap();
    // The server has read the part when it has read a later request.
    drop(served(&server).await);
    server.stop.cancel();
    sleep(SHORT / 3).await;
    slow.write_all(b"y\r\n\r\n").await.unwrap();
    let response = read_to_end(&mut slow).await;
    assert!(response.ends_with("fast"), "{response}");
    assert_closes(&response);
    server.task.await.unwrap().unwrap();
}

// rule: base.stop-loses-nothing
#[tokio::test]
async fn connections_without_a_request_are_closed_when_the_service_stops() {
    let server = start(|_| {}).await;
    let mut silent = accepted(&server).await;
    let mut idle = served(&server).await;
    server.stop.cancel();
    assert_eq!(read_to_end(&mut silent).await, "");
    assert_eq!(read_to_end(&mut idle).await, "");
    let ended = timeout(LONG / 2, server.task).await;
    ended.expect("the server stops").unwrap().unwrap();
}
