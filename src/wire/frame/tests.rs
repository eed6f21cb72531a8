//! Tests of the line decoder.
