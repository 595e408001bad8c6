//! The runtime with its real store, batch queues and sandbox, driven through the use cases.

#[cfg(test)]
mod money;
