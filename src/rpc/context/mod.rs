//! The context family of methods, which add, change and show context items.

pub(in crate::rpc) mod edit;
pub(in crate::rpc) mod files;
pub(in crate::rpc) mod layers;
mod live;
mod map;
mod query;
mod read;
mod refresh;
mod search;
mod secret;
mod sets;
mod table;
mod tree;
pub(in crate::rpc) mod unsaved;
mod update;

pub(super) use self::table::METHODS;
