//! Tests of reading and printing.
