-- Each table also gets the columns `hash` and `sound`; see sqlite/hashes.rs. Each column stands on
-- a line of its own for that.

-- The context family: managers, the versions of their items, and the journal that undo walks back.

-- The numbers that never repeat; one row.
CREATE TABLE counter (
    only           INTEGER PRIMARY KEY CHECK (only = 1),
    next_item      INTEGER NOT NULL,
    next_version   INTEGER NOT NULL,
    last_timestamp INTEGER NOT NULL,
    changes        INTEGER NOT NULL     -- requests that changed something
);

INSERT INTO counter VALUES (1, 1, 1, 0, 0);

CREATE TABLE manager (
    id        INTEGER PRIMARY KEY,
    name      TEXT NOT NULL UNIQUE,
    max_items INTEGER,              -- NULL: never configured
    version   INTEGER NOT NULL DEFAULT 0    -- from the same numbers as those of items
);

-- One content of one item; never updated.
CREATE TABLE version (
    version    INTEGER PRIMARY KEY,
    item       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    content    TEXT NOT NULL,
    metadata   TEXT NOT NULL,       -- an s-expression
    timestamp  INTEGER NOT NULL,
    taken_ms   INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    counted_by TEXT NOT NULL,
    live       INTEGER NOT NULL
);

-- What a manager holds now.
CREATE TABLE slot (
    manager INTEGER NOT NULL,
    item    INTEGER NOT NULL,
    version INTEGER NOT NULL,
    rank    INTEGER NOT NULL,
    pinned  INTEGER NOT NULL,
    PRIMARY KEY (manager, item)
) WITHOUT ROWID;

-- The last changes of each manager, newest last; `change` is the JSON of sqlite/journal.rs. Changes
-- of one request share a step, in all managers; step 0 is none.
CREATE TABLE journal (
    manager INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    step    INTEGER NOT NULL,
    change  TEXT NOT NULL,
    PRIMARY KEY (manager, seq)
) WITHOUT ROWID;

CREATE INDEX journal_by_step ON journal (step);

-- The changes of each manager that were undone, which `redo` makes again, newest last; like the
-- table journal.
CREATE TABLE undone (
    manager INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    step    INTEGER NOT NULL,
    change  TEXT NOT NULL,
    PRIMARY KEY (manager, seq)
) WITHOUT ROWID;

CREATE INDEX undone_by_step ON undone (step);

-- A saved set and its items, copied so that nothing else keeps or loses them.
CREATE TABLE item_set (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    created INTEGER NOT NULL
);

CREATE TABLE set_item (
    item_set   INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    pinned     INTEGER NOT NULL,
    item       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    content    TEXT NOT NULL,
    metadata   TEXT NOT NULL,
    timestamp  INTEGER NOT NULL,
    taken_ms   INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    counted_by TEXT NOT NULL,
    live       INTEGER NOT NULL,
    PRIMARY KEY (item_set, position)
);

-- Which set a name stands for.
CREATE TABLE set_name (
    name     TEXT PRIMARY KEY,
    item_set INTEGER NOT NULL
) WITHOUT ROWID;

-- What was answered to calls that carried a request key, so that a repeated call is not applied
-- twice. `seq` only tells the old from the new.
CREATE TABLE request (
    key     TEXT PRIMARY KEY,
    seq     INTEGER NOT NULL,
    outcome TEXT NOT NULL
) WITHOUT ROWID;

-- Sessions, what was said in them, and what is remembered beyond them.

-- A conversation. `messages`, `turns`, `tokens` and `updated` are kept as messages are appended, so
-- that a list reads nothing else.
CREATE TABLE session (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    name            TEXT NOT NULL,
    manager         TEXT NOT NULL,      -- of its context items
    project         TEXT,               -- that a client named
    told            TEXT,               -- that only a file, a recording or another machine names
    parent          INTEGER,            -- the session it was forked from
    parent_messages INTEGER,            -- and how many messages it shares with that
    created         INTEGER NOT NULL,
    updated         INTEGER NOT NULL,
    deleted         INTEGER,            -- when; NULL: live
    messages        INTEGER NOT NULL,
    turns           INTEGER NOT NULL,
    tokens          INTEGER NOT NULL,
    settings        TEXT NOT NULL,      -- JSON of the engine's
    learned         TEXT NOT NULL,      -- what turns found out, JSON; empty: as in its newest state
    version         INTEGER NOT NULL,   -- from the same numbers as those of items
    source          TEXT,               -- the file that it was imported from; NULL: none
    last_role       TEXT,               -- of the last message; NULL: none
    last_words      TEXT NOT NULL DEFAULT '',   -- the beginning of the last text
    agent           TEXT,               -- that recorded it; NULL: none
    agent_session   TEXT,               -- the id that it has there
    agent_parent    TEXT,               -- and that of the session whose agent began it
    folder          TEXT,               -- in which the agent worked
    branch          TEXT,               -- of Git, there
    remote          TEXT,               -- of Git, there
    open_since      INTEGER,            -- when a call without a result was made
    is_stopped      INTEGER NOT NULL DEFAULT 0  -- 1: the user stopped the agent after the last message
);

CREATE INDEX session_by_agent ON session (agent, agent_session) WHERE agent IS NOT NULL;

CREATE UNIQUE INDEX session_by_live_name ON session (name) WHERE deleted IS NULL;

-- What was said; never updated. The id is session * 2^32 + number, so that a session's messages lie
-- together in their order, and the words of one are found by the same number.
CREATE TABLE message (
    id           INTEGER PRIMARY KEY,
    role         TEXT NOT NULL,
    phase        TEXT,
    timestamp    INTEGER NOT NULL,
    pinned       INTEGER NOT NULL,
    tokens       INTEGER NOT NULL,
    counted_by   TEXT NOT NULL,
    signals      INTEGER NOT NULL,      -- bits; see sqlite/message.rs
    tool_call_id TEXT,
    tool_calls   TEXT,                  -- JSON; NULL: none
    content      TEXT NOT NULL,
    opaque       TEXT                   -- JSON that the model's server wants back; NULL: none
);

-- Pictures and PDFs of items, once for each content.
CREATE TABLE picture (
    name TEXT PRIMARY KEY,      -- the hash of the content
    data BLOB NOT NULL
);

-- Words are split by retrieval/words.rs before they come here.
CREATE VIRTUAL TABLE message_words USING fts5 (
    words, content = '', tokenize = 'porter unicode61'
);

CREATE VIRTUAL TABLE session_words USING fts5 (
    words, content = '', contentless_delete = 1, tokenize = 'porter unicode61'
);

-- Files from which sessions were imported, and the place up to which each was read.
CREATE TABLE recording (
    path    TEXT PRIMARY KEY,
    session INTEGER NOT NULL,
    mark    TEXT NOT NULL       -- JSON of the importer's
);

CREATE INDEX recording_by_session ON recording (session);

-- Every state that a session's view of its messages ever had; never updated. A rollback is one more.
CREATE TABLE session_state (
    session INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    kind    TEXT NOT NULL,              -- what made it
    base    INTEGER NOT NULL,           -- messages in the log then
    created INTEGER NOT NULL,
    state   TEXT NOT NULL,              -- JSON of the engine's
    PRIMARY KEY (session, number)
);

-- A state that can be gone back to by its id.
CREATE TABLE checkpoint (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    session   INTEGER NOT NULL,
    state     INTEGER NOT NULL,
    position  INTEGER NOT NULL,         -- messages in the log then
    turn      INTEGER NOT NULL,
    message   TEXT NOT NULL,
    automatic INTEGER NOT NULL,
    created   INTEGER NOT NULL,
    items     INTEGER                   -- an item_set
);

CREATE INDEX checkpoint_by_session ON checkpoint (session, id);

-- What each window was made of, in tokens: the last ones, and sums of all of them. Session 0 is
-- none, the phase '' too. When a model was asked with a window, the row says which and what its
-- provider counted; what is NULL there is not known.
CREATE TABLE usage (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    session  INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    phase    TEXT NOT NULL,
    strategy TEXT NOT NULL,
    system   INTEGER NOT NULL,
    design   INTEGER NOT NULL,
    types    INTEGER NOT NULL,
    current  INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    total    INTEGER NOT NULL,
    budget   INTEGER NOT NULL,
    provider TEXT,                      -- NULL: no model was asked
    model    TEXT,
    input    INTEGER,
    output   INTEGER,
    cached   INTEGER,                   -- of the input
    cost     REAL
);

CREATE INDEX usage_by_session ON usage (session, id);

CREATE TABLE usage_sum (
    session  INTEGER NOT NULL,
    phase    TEXT NOT NULL,
    windows  INTEGER NOT NULL,
    system   INTEGER NOT NULL,
    design   INTEGER NOT NULL,
    types    INTEGER NOT NULL,
    current  INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    total    INTEGER NOT NULL,
    budget   INTEGER NOT NULL,
    reported INTEGER NOT NULL DEFAULT 0,    -- windows of which a provider counted something
    input    INTEGER NOT NULL DEFAULT 0,
    output   INTEGER NOT NULL DEFAULT 0,
    cached   INTEGER NOT NULL DEFAULT 0,
    priced   INTEGER NOT NULL DEFAULT 0,    -- windows of which the cost is known
    cost     REAL    NOT NULL DEFAULT 0,
    PRIMARY KEY (session, phase)
) WITHOUT ROWID;

-- What providers' reports have shown of a model's counts; JSON of the engine's.
CREATE TABLE calibration (
    model TEXT PRIMARY KEY,
    text  TEXT NOT NULL
) WITHOUT ROWID;

-- What became of the managing of each turn that was to be managed: the last ones.
CREATE TABLE managed_view (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    session       INTEGER NOT NULL,
    message       INTEGER NOT NULL,     -- the user's that began the turn
    turn          INTEGER NOT NULL,
    created       INTEGER NOT NULL,
    status        TEXT NOT NULL,
    step          TEXT,                 -- where it failed
    reason        TEXT,                 -- and why
    template      TEXT NOT NULL,
    source        TEXT,                 -- where the template was found; NULL: it was not
    path          TEXT,                 -- its file, if it is one
    sha256        TEXT,
    provider      TEXT,
    model         TEXT,
    recent_runs      INTEGER,           -- the settings in effect
    passthrough_runs INTEGER,
    token_threshold  INTEGER,
    runs_shown       INTEGER,           -- how many runs the prompt had room for
    sections      TEXT NOT NULL,        -- of the prompt: names, with spaces between
    budget        INTEGER,              -- how many tokens the prompt might have
    prompt_tokens INTEGER,              -- and how many it has
    prompt        TEXT NOT NULL,
    payload       TEXT NOT NULL,        -- what was sent for it
    output        TEXT NOT NULL,
    input_tokens  INTEGER,              -- what the provider counted
    output_tokens INTEGER,
    tokens_before INTEGER NOT NULL,     -- of the history
    tokens_after  INTEGER NOT NULL      -- of the view; of the history when there is none
);

CREATE INDEX managed_view_by_session ON managed_view (session, id);
CREATE INDEX managed_view_by_message ON managed_view (session, message);

-- What is remembered. The scope is 'everywhere', 'session N' or 'project PATH'.
CREATE TABLE memory (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    scope         TEXT NOT NULL,
    kind          TEXT NOT NULL,
    session       INTEGER,              -- where it was said
    first_message INTEGER,
    last_message  INTEGER,
    created       INTEGER NOT NULL,
    accessed      INTEGER NOT NULL,
    accesses      INTEGER NOT NULL,
    forgotten     INTEGER,              -- when; NULL: known
    content       TEXT NOT NULL
);

CREATE INDEX memory_by_scope ON memory (scope, id);
CREATE INDEX memory_by_origin ON memory (session, kind, first_message);

CREATE VIRTUAL TABLE memory_words USING fts5 (
    words, content = '', tokenize = 'porter unicode61'
);

-- What a model of embeddings made of a memory: little-endian 32-bit floats.
CREATE TABLE memory_vector (
    model  TEXT NOT NULL,
    memory INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (model, memory)
);

-- What a model of embeddings made of a message: little-endian 32-bit floats.
CREATE TABLE message_vector (
    model   TEXT NOT NULL,
    message INTEGER NOT NULL,
    vector  BLOB NOT NULL,
    PRIMARY KEY (model, message)
);

-- Messages that left the view of their session and are to become memories of the kind 'archived'.
-- Long work is done in steps, first come, first served.
CREATE TABLE to_archive (
    id       INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL,
    messages TEXT NOT NULL,             -- JSON: first and last number of each run
    done     INTEGER NOT NULL,          -- the last number that is a memory already
    created  INTEGER NOT NULL           -- of the memories
);

-- What agents were given.

-- Items that a session of an agent was given, and those that it was given before its latest push:
-- the answer to a push may be lost.
CREATE TABLE push (
    agent          TEXT NOT NULL,
    session        TEXT NOT NULL,
    number         INTEGER NOT NULL,
    items          TEXT NOT NULL,      -- JSON
    earlier_number INTEGER NOT NULL,
    earlier_items  TEXT NOT NULL,      -- JSON
    at             INTEGER NOT NULL,   -- Unix seconds of the latest push; 0 if unknown
    project        TEXT NOT NULL,
    tokens         INTEGER NOT NULL,
    PRIMARY KEY (agent, session)
);

-- Items that go with the next prompt of a session of an agent, once. Who took one keeps it.
CREATE TABLE next_push (
    number        INTEGER PRIMARY KEY,
    manager       TEXT NOT NULL,
    item          INTEGER NOT NULL,
    agent         TEXT NOT NULL,       -- empty for any
    session       TEXT NOT NULL,       -- empty for any
    project       TEXT NOT NULL,       -- empty for any
    at            INTEGER NOT NULL,    -- Unix seconds
    change        INTEGER NOT NULL,    -- mark of the newest change of the manager then
    taker         TEXT,                -- agent that took it; null while it waits
    taker_session TEXT,
    taken         INTEGER,             -- number of the push
    taken_at      INTEGER              -- Unix seconds
);

-- What is exchanged with other machines.

-- This machine and the others whose changes are known. The id is the key with which the machine's
-- changes are checked.
CREATE TABLE machine (
    id    TEXT PRIMARY KEY,
    name  TEXT NOT NULL UNIQUE,     -- as shown here
    place TEXT,                     -- of the file with the secret key; empty: this machine's before
                                    -- it got another key; NULL: another machine's
    seq   INTEGER NOT NULL,         -- of its last change that is known here
    sum   BLOB NOT NULL             -- over all its changes up to that one
) WITHOUT ROWID;

-- The changes of all machines, in the order in which they came here; see sync/mod.rs.
CREATE TABLE change (
    id      INTEGER PRIMARY KEY,
    machine TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    about   TEXT,                   -- what a later change with the same text replaces
    body    TEXT,                   -- JSON; NULL: messages, or replaced
    digest  BLOB NOT NULL,          -- of the body
    sum     BLOB NOT NULL,
    sign    BLOB NOT NULL,
    session INTEGER,                -- number of the session at its machine, if the body is messages
    first   INTEGER,
    last    INTEGER,
    UNIQUE (machine, seq)
);

CREATE INDEX change_by_about ON change (machine, about, seq) WHERE about IS NOT NULL;

-- Sessions, memories and managers as all machines name them, with what was last exchanged of them.
CREATE TABLE known (
    kind    TEXT NOT NULL,          -- session, memory, manager or set
    row     INTEGER NOT NULL,
    machine TEXT NOT NULL,          -- where it was made
    number  INTEGER NOT NULL,       -- its row there
    name    TEXT NOT NULL,
    gone    INTEGER,                -- when it was deleted or forgotten
    count   INTEGER NOT NULL,       -- of messages; of a manager, its version
    name_at INTEGER NOT NULL,       -- when the name was given
    name_by TEXT NOT NULL,          -- and at which machine
    gone_at INTEGER NOT NULL,
    gone_by TEXT NOT NULL,
    PRIMARY KEY (kind, row)
) WITHOUT ROWID;

CREATE UNIQUE INDEX known_by_number ON known (machine, kind, number);

-- What a project's folder is called on all machines.
CREATE TABLE project (
    path     TEXT PRIMARY KEY,
    identity TEXT NOT NULL,
    given    INTEGER NOT NULL       -- whether by the user
) WITHOUT ROWID;
