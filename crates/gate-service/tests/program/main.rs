//! Tests of the program as an operator runs it.

#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod sweeping;
