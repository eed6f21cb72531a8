//! The methods of the context family.

use super::{edit, files, layers, live, map, query, read, refresh, sets, tree, update};
use crate::agent::items::AnswerShown;
use crate::engine::{Beside, Removed};
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;
use crate::rpc::shapes::Either;
use crate::rpc::version::VersionOwner;
use crate::rpc::{operations, undo};
use crate::store::SetSummary;

/// The methods of the context family, in the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method!("context", "add-item", edit::add_item => AnswerShown<'static>)
        .changes()
        .doc(
            "Adds a text as the newest item of a manager. When the manager is full, its oldest \
              unpinned item is evicted; the result names it.",
        )
        .result(
            "The item, with `:manager`, its `:count` and `:total-tokens`, and `:evicted`; \
                 `:repeat` if a live item was already there (`:same`) or was extended \
                 (`:extended`).",
        ),
    method!("context", "add-file", files::add_file => AnswerShown<'static>)
        .changes_after_work()
        .doc(
            "Reads a file, or some of its lines, and adds it as an item. Ignore rules do not \
              apply to it. A picture or PDF (PNG, JPEG, GIF, WebP) becomes \
             a copy that models see; a model that takes no PDF gets its text.",
        )
        .result("Same as `add-item`.")
        .pace(Pace::InOrder),
    method!("context", "add-tree", tree::add_tree => tree::TreeAdded)
        .changes_after_work()
        .doc(
            "Walks a directory, following its ignore rules, and adds its files as items, or a \
              single item that lists them with their sizes and tokens. Streams `progress`. If the \
              files do not all fit into the manager, none is added.",
        )
        .result(
            "`:root :mode :files :bytes :tokens :ids :evicted`, and `:skipped` with the \
                 `:total` for each reason and the first hundred entries as `:named`.",
        )
        .progress::<tree::Walking>()
        .pace(Pace::Aside),
    method!("context", "update-items", update::update_items => live::UpdatedItems)
        .changes()
        .doc(
            "Changes items: their content, type or metadata, whether they follow their files, and \
             whether they are pinned. Id, time and position stay the same. With `:items`, gives \
             live items the texts that an editor has in its buffers. `undo` does not count that as \
             a step. While the connection lives, an item with `:unsaved` in its metadata does not \
             follow its file.",
        )
        .result("`:updated N`, `:skipped`, and the `:item` if the call has `:id`."),
    method!("context", "remove-items", edit::remove_items => Removed)
        .changes()
        .doc(
            "Removes items, or with `:all` every item of a manager. If one of them does not exist, \
             none is removed. `undo` restores them.",
        )
        .result("`(:removed N)`."),
    method!("context", "move-items", edit::move_items => edit::MovedItems)
        .changes()
        .doc(
            "Moves an item to another position, or items to another manager, where they become \
             the newest. Rendering and eviction follow the order. `undo` in either manager moves \
             them back.",
        )
        .result("The manager that has the items now: `:manager :ids :count :total-tokens :evicted`."),
    method!("context", "list-operations", operations::list_operations => Vec<operations::OperationLine>)
        .about_session(VersionOwner::Either)
        .pages(&Paged {
            page: Some(operations::DEFAULT_OPERATIONS as usize),
            most: Some(operations::MAX_OPERATIONS),
            ..Paged::LIST
        })
        .doc(
            "Lists the operations on a context, or on the view of a session, newest first. Each \
              change of a context is an operation; the last hundred at least are kept, across \
              restarts. Each change of a session's view, such as a pruning, a summary, a pin or a \
              rollback, is one, and all are kept. A checkpoint is an operation with a name.",
        )
        .result("A list of operations."),
    method!("context", "undo", undo::undo => undo::Done)
        .about_session(VersionOwner::Either)
        .changes()
        .doc(
            "Undoes the last operation on a context. In the view of a session, undoes the last \
              pruning, summary, rollback or restoration. Messages added since stay in view. \
              But undoing a rollback restores the view and the items from before the rollback. \
              Further calls go further back.",
        )
        .result("What was undone, and what there is now; the error `nothing-to-undo` when there is none."),
    method!("context", "redo", undo::redo => undo::Done)
        .about_session(VersionOwner::Either)
        .changes()
        .doc(
            "Redoes the operation that was undone last. Further calls redo earlier undone \
              operations. After a new operation, or a new message of the session, nothing can be \
              redone; an update of items from their sources does not count.",
        )
        .result("What was redone, and what there is now; the error `nothing-to-redo` when there is none."),
    method!("context", "restore", undo::restore => undo::Done)
        .about_session(VersionOwner::Either)
        .changes()
        .doc(
            "Goes to an operation that `list-operations` lists. In a context, undoes or redoes \
              all operations in between. In a session, restores the view as it was after the \
              operation, which undoes later prunings and summaries. Messages that have come into \
              view since then stay. `undo` takes the restoration back.",
        )
        .result("The operation, and what there is now."),
    method!("context", "list-items", query::list_items => Either<Vec<query::ItemListed<'static>>, query::ItemsSummary>)
        .shows(Beside::Files)
        .pages(&Paged { newest_last: true, ..Paged::LIST })
        .doc(
            "Returns items, oldest first unless they were moved. The `:state` of each tells whether \
              its file has changed. With `:query`, finds items; with `:count-only`, counts them.",
        )
        .result(
            "A list of items; with `:count-only`, `:count :types :preview :tokens :token-counter`, \
             with a preview such as `3 items: Code, Error`.",
        ),
    method!("context", "render-items", query::render_items => Either<query::Rendered, String>)
        .shows(Beside::Files)
        .doc("Renders items for a model, and reports what happened to each item.")
        .result(
            "`:text :tokens :token-counter`, and `:report`: for each item its `:id`, its \
                 `:fate` (`:kept :cut :dropped`), its `:tokens` and the `:reason`; with `:text-only`, \
                 a string. The error is `budget-too-small` when not even one item can be cut to fit.",
        ),
    method!("context", "read-file", read::read_file => read::FileRead)
        .doc(
            "Reads a file within a folder, or some of its lines, without adding an item. If a live \
              item follows the whole file and its buffer is not saved, returns the text of the \
              buffer.",
        )
        .result("The text, with its lines and tokens.")
        .pace(Pace::InOrder),
    method!("context", "repo-map", map::repo_map => map::MapResult)
        .doc(
            "Makes the map of a project: the files and definitions that matter for a task, within a \
              budget. Ranks files by their words, by references, and by what changed together.",
        )
        .result(
            "The map, its tokens, and what it leaves out.",
        )
        .pace(Pace::Aside),
    method!("context", "refresh-items", refresh::refresh_items => refresh::RefreshResult)
        .changes_after_work()
        .doc(
            "Reads items from their files again. A region that has moved is found by its text. The \
              region of a live item is found even if its text was edited. If it is not certain where \
              a region is now, the item keeps its old text, and its outcome is `:stale`.",
        )
        .result(
            "`:updated N` and `:items`: for each its `:id`, its `:outcome` (`:unchanged \
                 :updated :moved :stale :missing`), the `:reason` when stale, and \
                 the way in which a live item was `:found`.",
        )
        .pace(Pace::AsideAfter),
    method!("context", "list-managers", query::list_managers => Vec<query::ManagerLine>)
        .pages(&Paged::LIST)
        .doc("Lists the managers that hold items or whose capacity is not the default, sorted by name.")
        .result("The managers."),
    method!("context", "configure-manager", edit::configure_manager => edit::ConfiguredContext)
        .changes()
        .doc("Sets a manager's capacity. If it shrinks, the oldest unpinned items are evicted.")
        .result("`:manager :max-items :evicted`."),
    method!("context", "open-layers", layers::open_layers => layers::LayersResult)
        .changes_after_work()
        .doc(
            "Returns the layers of a place, which are the managers whose items are sent from \
              there: everywhere, the project, the file or buffer, and the conversation. The names of \
              managers tell projects apart by folder and Git remote. Takes over items that are \
              stored under former names.",
        )
        .result(
            "`:root`, the project's; and `:layers`, from general to specific. Each layer has its `:layer`, \
                 `:manager`, `:label`, number of `:items`, `:tokens` and `:max-items`. `:taken-over` has the \
                 managers whose items moved into these layers. `:elsewhere` has managers that are no layer \
                 here, but have items that the caller may expect.",
        )
        .pace(Pace::InOrder),
    method!("context", "save-set", sets::save_set => Either<sets::SavedSetResult, sets::Dropped>)
        .changes()
        .doc("Saves a manager's items as a named set, replacing a set with that name. With `:drop`, \
              deletes the set. `undo` in the same manager takes either back.")
        .result("`:name :count :replaced`; with `:drop`, `:name :dropped`."),
    method!("context", "load-set", sets::load_set => sets::LoadedSetResult)
        .changes()
        .doc("Replaces a manager's items with copies of a set's items, or appends the copies.")
        .result("`:name`, the new `:ids`, and in `:left` the ids of the items that left."),
    method!("context", "list-sets", sets::list_sets => Vec<SetSummary>)
        .pages(&Paged::LIST)
        .doc("Lists the sets, sorted by name.")
        .result("The sets."),
];
