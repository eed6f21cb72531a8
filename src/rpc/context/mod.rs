//! The context family: adds, changes and shows context items.

mod edit;
mod files;
mod layers;
mod live;
mod query;
mod refresh;
mod sets;
mod table;
mod tree;

pub(super) use self::table::METHODS;
