//! The runtime with its real store, batch queues and sandbox, called through the use cases.

#[cfg(test)]
mod money;
