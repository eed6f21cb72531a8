//! What is kept for the model, and how it is rendered. Pure: no files, no clock, no wire.

pub mod item;
