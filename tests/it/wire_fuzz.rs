//! Inputs that no client should send.
