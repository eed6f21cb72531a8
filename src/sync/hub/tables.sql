-- The tables of a hub. Whoever runs this owns them, and can read everything.
--
-- The database decides who reads and writes what; a client cannot. Nobody states the author of a
-- row: it is the role that wrote it. No role may change another's rows, or a text once it is there.

CREATE SCHEMA contexture;

CREATE TABLE contexture.hub (version integer NOT NULL);
INSERT INTO contexture.hub VALUES (1);

-- How far the changes of each machine are here.
CREATE TABLE contexture.machine (
    author name NOT NULL DEFAULT current_user,
    id     text NOT NULL,
    seq    bigint NOT NULL,
    PRIMARY KEY (author, id)
);

-- Sessions and memories that are shared.
CREATE TABLE contexture.source (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    author       name NOT NULL DEFAULT current_user,
    machine      text NOT NULL,
    machine_name text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('session', 'memory')),
    number       bigint NOT NULL,        -- of the session or memory at its machine
    project      text NOT NULL,
    readers      name NOT NULL,          -- a role, whose members may read; public: everybody
    name         text NOT NULL,
    created      bigint NOT NULL,
    gone         bigint,                 -- when its author deleted or forgot it
    came         timestamptz NOT NULL DEFAULT now(),
    UNIQUE (author, machine, kind, number)
);

-- What was said in them.
CREATE TABLE contexture.said (
    source  bigint NOT NULL REFERENCES contexture.source ON DELETE CASCADE,
    part    bigint NOT NULL,             -- of a session, the number of the message
    role    text NOT NULL,
    at      bigint NOT NULL,
    content text NOT NULL,
    words   tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED,
    PRIMARY KEY (source, part)
);

CREATE INDEX said_by_words ON contexture.said USING gin (words);
CREATE INDEX source_by_project ON contexture.source (project);

-- The groups of a role, with the one that everybody is in.
CREATE FUNCTION contexture.groups(who name) RETURNS name[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT ARRAY(SELECT rolname FROM pg_roles WHERE pg_has_role(who, oid, 'member'))
                 || 'public'::name $$;

ALTER TABLE contexture.machine ENABLE ROW LEVEL SECURITY;
ALTER TABLE contexture.source ENABLE ROW LEVEL SECURITY;
ALTER TABLE contexture.said ENABLE ROW LEVEL SECURITY;

CREATE POLICY own ON contexture.machine USING (author = current_user);
CREATE POLICY own ON contexture.source USING (author = current_user);
CREATE POLICY shared ON contexture.source FOR SELECT
    USING (gone IS NULL AND readers = ANY ((SELECT contexture.groups(current_user))::name[]));
CREATE POLICY own ON contexture.said USING (EXISTS (
    SELECT FROM contexture.source WHERE id = source AND author = current_user));
-- The policies of the source hold for this look at it, too.
CREATE POLICY shared ON contexture.said FOR SELECT
    USING (EXISTS (SELECT FROM contexture.source WHERE id = source));

GRANT USAGE ON SCHEMA contexture TO PUBLIC;
GRANT SELECT ON contexture.hub TO PUBLIC;
GRANT SELECT, DELETE ON contexture.machine, contexture.source, contexture.said TO PUBLIC;
GRANT INSERT (id, seq), UPDATE (seq) ON contexture.machine TO PUBLIC;
GRANT INSERT (machine, machine_name, kind, number, project, readers, name, created),
      UPDATE (readers, name, gone) ON contexture.source TO PUBLIC;
GRANT INSERT (source, part, role, at, content) ON contexture.said TO PUBLIC;

-- Finds texts that the caller may read. An index of words serves no query under row-level security,
-- so this runs as the owner of the tables, and says itself what the policies say.
CREATE FUNCTION contexture.search(query tsquery, projects text[], here text, most integer)
    RETURNS TABLE (source bigint, author name, machine text, kind text, project text, name text,
                   part bigint, role text, at bigint, score real, snippet text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
        WITH me AS MATERIALIZED (
            SELECT role AS name, contexture.groups(role) AS groups FROM (
                SELECT CASE current_setting('role') WHEN 'none' THEN session_user
                       ELSE current_setting('role') END::name AS role) AS one
        ), found AS MATERIALIZED (
            SELECT it.*, said.part, said.role, said.at, said.content, said.words
            FROM contexture.said AS said JOIN contexture.source AS it ON it.id = said.source, me
            WHERE said.words @@ query
                AND (projects IS NULL OR it.project = ANY (projects))
                AND gone IS NULL AND (it.author = me.name OR it.readers = ANY (me.groups))
                AND NOT (it.author = me.name AND it.machine = here)
            LIMIT 1000
        ), best AS MATERIALIZED (
            SELECT *, ts_rank(words, query) AS score FROM found
            ORDER BY score DESC, at DESC LIMIT most
        )
        SELECT id, author, machine_name, kind, project, name, part, role, at, score,
               ts_headline('english', left(content, 65536), query,
                           'StartSel="", StopSel="", MaxWords=30, MinWords=12')
        FROM best ORDER BY score DESC, at DESC
    $$;
