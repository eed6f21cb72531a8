//! The context family: what is kept, how it is changed and how it is shown.

mod edit;
mod files;
mod query;
mod refresh;
mod sets;
mod table;
mod tree;

pub(super) use self::table::METHODS;
