//! The runtime with its real store, lanes and sandbox, driven through the use cases.

#[cfg(test)]
mod money;
