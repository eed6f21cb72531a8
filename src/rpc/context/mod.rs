//! The context family: what is kept, how it is changed and how it is shown.

pub(super) mod edit;
pub(super) mod files;
pub(super) mod query;
mod refresh;
mod sets;
mod shown;
mod table;
mod tree;

pub(super) use self::table::METHODS;
