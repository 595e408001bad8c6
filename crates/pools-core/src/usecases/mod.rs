//! Use cases: what a partner or the operator can do with pools.
