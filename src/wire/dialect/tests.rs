//! Tests of the dialects.
