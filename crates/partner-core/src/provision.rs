//! The declarative file and what makes the database agree with it.
