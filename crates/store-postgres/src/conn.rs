//! A connection on which every exchange has a deadline.
//!
//! The driver waits for a response without a deadline, and a connection whose response was not read to the end is out of step.
//! Therefore an exchange that is dropped, is late or loses the session makes the connection unusable: every later statement
//! fails at once, and the pool closes the connection.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use kernel::{StoreError, StoreResult};
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Connection as _, Either, Execute, Executor, PgConnection, Postgres, SqlStr};
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::errors;
use crate::health::Alarm;

/// How long closing a session may take. The server may be unreachable.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Whether a connection can take another statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// A statement was sent, and its response has not been read to the end.
    Busy,
    /// A response was late or lost, or the session has ended.
    Unusable,
}

/// A connection with a deadline for each exchange.
pub(crate) struct Conn {
    /// `None` after [`Conn::take`].
    link: Option<PgConnection>,
    state: State,
    deadline: Duration,
    alarm: Arc<Alarm>,
}

impl Conn {
    pub(crate) fn new(link: PgConnection, deadline: Duration, alarm: Arc<Alarm>) -> Self {
        Self {
            link: Some(link),
            state: State::Ready,
            deadline,
            alarm,
        }
    }

    /// Sets the deadline of later exchanges.
    pub(crate) fn wait_at_most(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Can the connection take another statement?
    pub(crate) fn is_usable(&self) -> bool {
        self.link.is_some() && self.state == State::Ready
    }

    /// Moves the connection out. The value left behind takes no statement.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            link: self.link.take(),
            state: self.state,
            deadline: self.deadline,
            alarm: Arc::clone(&self.alarm),
        }
    }

    /// Makes the connection unusable, so that the pool closes it.
    pub(crate) fn spoil(&mut self) {
        self.state = State::Unusable;
    }

    /// Runs statements without parameters, in one exchange.
    pub(crate) async fn run(&mut self, statements: &'static str) -> Result<(), sqlx::Error> {
        self.execute(sqlx::raw_sql(statements)).await.map(drop)
    }

    /// The driver's connection, for a caller that sets its own deadline.
    pub(crate) fn link(&mut self) -> StoreResult<&mut PgConnection> {
        let gone = || StoreError::unavailable("the connection is closed");
        self.link.as_mut().ok_or_else(gone)
    }

    /// Ends the session if the connection is usable, and closes the socket.
    pub(crate) async fn close(self) {
        if self.state == State::Ready
            && let Some(link) = self.link
        {
            // The socket is closed in any case.
            drop(timeout(CLOSE_TIMEOUT, link.close()).await);
        }
    }

    fn begin(&mut self) -> Result<Exchange<'_>, sqlx::Error> {
        match &mut self.link {
            Some(link) if self.state == State::Ready => {
                self.state = State::Busy;
                Ok(Exchange {
                    link,
                    state: &mut self.state,
                    deadline: self.deadline,
                    alarm: &self.alarm,
                })
            }
            _ => Err(sqlx::Error::Io(io::ErrorKind::NotConnected.into())),
        }
    }
}

/// A statement that is about to be sent.
struct Exchange<'e> {
    link: &'e mut PgConnection,
    state: &'e mut State,
    deadline: Duration,
    alarm: &'e Alarm,
}

/// Waits for a response that arrives as a whole.
async fn within<T>(
    deadline: Duration,
    state: &mut State,
    alarm: &Alarm,
    response: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let response = timeout(deadline, response).await;
    let response = response.unwrap_or_else(|_| Err(late(alarm, deadline)));
    *state = match &response {
        Ok(_) => State::Ready,
        Err(error) => after(error),
    };
    response
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conn")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// A part of the response to a statement: a row count or a row.
type Item = Either<PgQueryResult, PgRow>;

impl<'c> Executor<'c> for &'c mut Conn {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Item, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let exchange = match self.begin() {
            Ok(exchange) => exchange,
            Err(error) => return futures_util::stream::once(async { Err(error) }).boxed(),
        };
        Box::pin(Response {
            items: exchange.link.fetch_many(query),
            timer: Box::pin(sleep(exchange.deadline)),
            last_part: Instant::now(),
            deadline: exchange.deadline,
            state: exchange.state,
            alarm: exchange.alarm,
        })
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move {
            let at = self.begin()?;
            let response = at.link.fetch_optional(query);
            within(at.deadline, at.state, at.alarm, response).await
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            let at = self.begin()?;
            let response = at.link.prepare_with(sql, parameters);
            within(at.deadline, at.state, at.alarm, response).await
        })
    }
}

/// A response that arrives in parts. The deadline counts from the previous part.
struct Response<'e> {
    items: BoxStream<'e, Result<Item, sqlx::Error>>,
    timer: Pin<Box<Sleep>>,
    last_part: Instant,
    deadline: Duration,
    state: &'e mut State,
    alarm: &'e Alarm,
}

impl Stream for Response<'_> {
    type Item = Result<Item, sqlx::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if *self.state != State::Busy {
            return Poll::Ready(None);
        }
        if let Poll::Ready(item) = self.items.poll_next_unpin(cx) {
            match &item {
                Some(Ok(_)) => self.last_part = Instant::now(),
                Some(Err(error)) => *self.state = after(error),
                None => *self.state = State::Ready,
            }
            return Poll::Ready(item);
        }
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let due = self.last_part + self.deadline;
            if due <= Instant::now() {
                *self.state = State::Unusable;
                return Poll::Ready(Some(Err(late(self.alarm, self.deadline))));
            }
            self.timer.as_mut().reset(due);
        }
    }
}

/// The state after an error. Most errors end only the statement. Some end the session, or mean that this server takes no writes.
fn after(error: &sqlx::Error) -> State {
    if errors::leaves_session(error) {
        State::Ready
    } else {
        State::Unusable
    }
}

fn late(alarm: &Alarm, deadline: Duration) -> sqlx::Error {
    alarm.raise();
    let message = format!(
        "the database did not respond within {} ms",
        deadline.as_millis()
    );
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, message))
}
