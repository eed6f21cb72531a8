-- The tables of a hub. Whoever runs this owns them, and can read everything.
--
-- The database decides who reads and writes what; a client cannot. Nobody states the author of a
-- row: it is the role that wrote it. No role may change another's rows, or a text once it is there.
-- Roles are known by their numbers: who gets the name of a dropped role gets none of its rows.

CREATE SCHEMA contexture;

CREATE TABLE contexture.hub (version integer NOT NULL);
INSERT INTO contexture.hub VALUES (1);

CREATE FUNCTION contexture.role(called name) RETURNS regrole
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT quote_ident(called)::regrole $$;

-- Who asks, also where something runs as the owner of the tables.
CREATE FUNCTION contexture.caller() RETURNS regrole
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT contexture.role((CASE current_setting('role') WHEN 'none' THEN session_user
        ELSE current_setting('role') END)::name) $$;

-- The groups of a role, with the one that everybody is in, which is 0.
CREATE FUNCTION contexture.groups(who regrole) RETURNS oid[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT ARRAY(SELECT oid FROM pg_roles WHERE pg_has_role(who, oid, 'member')) || 0::oid $$;

CREATE FUNCTION contexture.quoted(word text) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT '''' || replace(replace(word, '\', '\\'), '''', '''''') || '''' $$;

-- The words of a text, also those within the names of files and in identifiers.
CREATE FUNCTION contexture.split(content text) RETURNS tsvector LANGUAGE sql IMMUTABLE
    AS $$ SELECT to_tsvector('english', translate(content, '/._-:=', '      ')) $$;

-- The words of a text, each with the share in front. So a look for words finds the entries of what
-- it may read and touches no others: neither time nor counters tell whether those have the word.
CREATE FUNCTION contexture.words(share bigint, content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT coalesce(string_agg(contexture.quoted(share || '/' || lexeme) || ':' ||
            array_to_string(positions, ','), ' '), '')::tsvector
        FROM unnest(contexture.split(content)) WHERE octet_length(lexeme) < 256
    $$;

-- How far the changes of each machine are here.
CREATE TABLE contexture.machine (
    author regrole NOT NULL DEFAULT contexture.role(current_user),
    id     text NOT NULL,
    seq    bigint NOT NULL,
    PRIMARY KEY (author, id)
);

-- Projects that a machine shares.
CREATE TABLE contexture.share (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    author       regrole NOT NULL DEFAULT contexture.role(current_user),
    machine      text NOT NULL,
    machine_name text NOT NULL,
    project      text NOT NULL,
    readers      regrole NOT NULL,       -- whose members may read; 0: everybody
    UNIQUE (author, machine, project)
);

-- Sessions and memories of them.
CREATE TABLE contexture.source (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    share   bigint NOT NULL REFERENCES contexture.share ON DELETE CASCADE,
    kind    text NOT NULL CHECK (kind IN ('session', 'memory')),
    number  bigint NOT NULL,             -- of the session or memory at its machine
    name    text NOT NULL,
    created bigint NOT NULL,
    gone    bigint,                      -- when its author deleted or forgot it
    UNIQUE (share, kind, number),
    UNIQUE (id, share)
);

-- What was said in them.
CREATE TABLE contexture.said (
    source  bigint NOT NULL,
    share   bigint NOT NULL,
    part    bigint NOT NULL,             -- of a session, the number of the message
    role    text NOT NULL,
    at      bigint NOT NULL,
    content text NOT NULL,
    words   tsvector GENERATED ALWAYS AS (contexture.words(share, content)) STORED,
    PRIMARY KEY (source, share, part),   -- with the share, so that nobody meets another's numbers
    FOREIGN KEY (source, share) REFERENCES contexture.source (id, share) ON DELETE CASCADE
);

CREATE INDEX said_by_words ON contexture.said USING gin (words);

-- What a planner expects is told to everybody, so it knows nothing of what was written.
ALTER TABLE contexture.share ALTER machine_name SET STATISTICS 0, ALTER project SET STATISTICS 0;
ALTER TABLE contexture.source ALTER name SET STATISTICS 0;
ALTER TABLE contexture.said ALTER content SET STATISTICS 0, ALTER words SET STATISTICS 0;

ALTER TABLE contexture.machine ENABLE ROW LEVEL SECURITY;
ALTER TABLE contexture.share ENABLE ROW LEVEL SECURITY;
ALTER TABLE contexture.source ENABLE ROW LEVEL SECURITY;
ALTER TABLE contexture.said ENABLE ROW LEVEL SECURITY;

-- The policies of a table hold for looks at it from those of another, too.
CREATE POLICY own ON contexture.machine USING (author = (SELECT contexture.role(current_user)));
CREATE POLICY own ON contexture.share USING (author = (SELECT contexture.role(current_user)));
CREATE POLICY shared ON contexture.share FOR SELECT USING (
    readers = ANY ((SELECT contexture.groups(contexture.role(current_user)))::oid[]));
CREATE POLICY own ON contexture.source USING (EXISTS (SELECT FROM contexture.share
    WHERE share.id = share AND author = (SELECT contexture.role(current_user))));
CREATE POLICY shared ON contexture.source FOR SELECT
    USING (gone IS NULL AND EXISTS (SELECT FROM contexture.share WHERE share.id = share));
CREATE POLICY own ON contexture.said USING (EXISTS (SELECT FROM contexture.share
    WHERE share.id = share AND author = (SELECT contexture.role(current_user))));
CREATE POLICY shared ON contexture.said FOR SELECT
    USING (EXISTS (SELECT FROM contexture.source WHERE source.id = source));

GRANT USAGE ON SCHEMA contexture TO PUBLIC;
GRANT SELECT ON contexture.hub TO PUBLIC;
GRANT SELECT ON contexture.machine, contexture.share, contexture.source, contexture.said TO PUBLIC;
GRANT INSERT (id, seq), UPDATE (seq) ON contexture.machine TO PUBLIC;
GRANT INSERT (machine, machine_name, project, readers), UPDATE (machine_name, readers)
    ON contexture.share TO PUBLIC;
GRANT INSERT (share, kind, number, name, created), UPDATE (name, gone) ON contexture.source TO PUBLIC;
GRANT INSERT (source, share, part, role, at, content) ON contexture.said TO PUBLIC;

-- Takes back what the caller shared: as these machines or as any, and these projects or all. Whoever
-- may delete rows of a table may lock it against everybody. So nobody may, and the owner does it.
CREATE FUNCTION contexture.take_back(machines text[], projects text[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
        DELETE FROM contexture.share WHERE author = contexture.caller()
            AND (machines IS NULL OR machine = ANY (machines))
            AND (projects IS NULL OR project = ANY (projects));
        DELETE FROM contexture.machine WHERE author = contexture.caller() AND machines IS NULL
    $$;

-- Finds texts that the caller may read, with every word or with any. An index of words serves no
-- query under row-level security, so this runs as the owner of the tables, and says itself what the
-- policies say. Of a share with very many texts that match, it looks at some.
CREATE FUNCTION contexture.search(query text, every boolean, projects text[], here text, most integer)
    RETURNS TABLE (source bigint, author name, machine text, name text, part bigint, role text,
                   at bigint, score real, snippet text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET gin_fuzzy_search_limit = 1000
    AS $$
        WITH me AS MATERIALIZED (
            SELECT id, contexture.groups(id) AS groups FROM contexture.caller() AS id
        ), asked AS MATERIALIZED (
            SELECT lexeme FROM unnest(contexture.split(left(query, 4096)))
            WHERE octet_length(lexeme) < 256 LIMIT 32
        ), mine AS MATERIALIZED (
            SELECT share.*, (
                SELECT string_agg(contexture.quoted(share.id || '/' || lexeme),
                    CASE WHEN every THEN '&' ELSE '|' END)::tsquery FROM asked) AS keys
            FROM contexture.share, me
            WHERE (share.author = me.id OR readers = ANY (me.groups))
                AND (projects IS NULL OR share.project = ANY (projects))
                AND NOT (share.author = me.id AND share.machine = here)
        ), best AS MATERIALIZED (
            SELECT mine.*, it.*, ts_rank(it.words, keys) AS score FROM mine, LATERAL (
                SELECT of.id AS source, of.name, said.part, said.role, said.at,
                    said.content, said.words
                FROM contexture.said JOIN contexture.source AS of ON of.id = said.source
                WHERE said.words @@ keys AND gone IS NULL
                LIMIT 1 + 1000 / (SELECT greatest(count(*), 1) FROM mine)) AS it
            ORDER BY score DESC, at DESC LIMIT most
        )
        SELECT source, pg_get_userbyid(author), machine_name, name, part, role, at, score,
               ts_headline('english', left(content, 65536), (
                   SELECT string_agg(contexture.quoted(lexeme), '|')::tsquery FROM asked),
                   'StartSel="", StopSel="", MaxWords=30, MinWords=12')
        FROM best ORDER BY score DESC, at DESC
    $$;
