//! The program as an operator meets it.

#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod sweeping;
