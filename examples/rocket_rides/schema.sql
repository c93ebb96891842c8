-- What happened: the truth that everything else is measured by.
CREATE TABLE rides (
    id         BIGSERIAL        PRIMARY KEY,
    created_at TIMESTAMPTZ      NOT NULL DEFAULT now(),
    -- The client's name for its request: sent again, it finds the ride instead of making another.
    request_id TEXT             UNIQUE,
    distance   DOUBLE PRECISION NOT NULL CHECK (distance > 0 AND distance < 'Infinity')
);

-- What the log has yet to be told. Written in the transaction that makes it true, deleted when the
-- stream has acknowledged it.
CREATE TABLE staged_log_records (
    id      BIGSERIAL PRIMARY KEY,
    -- The ride that the record is about (a correction: the last ride that it covers). Rides and
    -- records draw from two sequences, so only this column tells the order of rides.
    ride_id BIGINT    NOT NULL,
    action  TEXT      NOT NULL,
    object  TEXT      NOT NULL,
    data    JSONB     NOT NULL
);
CREATE INDEX staged_log_records_in_order ON staged_log_records (ride_id, id);

-- How far each consumer has read. A group has one row: everything up to its entry is done.
CREATE TABLE checkpoints (
    name          TEXT   PRIMARY KEY,
    last_entry_id TEXT   NOT NULL DEFAULT '0-0',
    -- The highest ride that was consumed. The classic way skips what is not above it.
    last_ride_id  BIGINT NOT NULL DEFAULT 0,
    -- The last ride that the latest correction covers: the total has it and all before it.
    corrected_to  BIGINT NOT NULL DEFAULT 0,
    -- How many entries the stream had ever been given at last_entry_id, itself included.
    entries_read  BIGINT NOT NULL DEFAULT 0,
    -- Entries that were gone before they could be read. Each find asks for a correction.
    lost_entries  BIGINT NOT NULL DEFAULT 0
);

-- What each consumer made of the log: here, a running total.
CREATE TABLE consumer_states (
    name           TEXT    PRIMARY KEY,
    ride_count     BIGINT  NOT NULL DEFAULT 0,
    skipped_count  BIGINT  NOT NULL DEFAULT 0,
    -- Doubles add up differently in every order, and the members of a group add in any order. So
    -- the digits are added as they stand, and rounded once, for whoever reads the total.
    total_exact    NUMERIC NOT NULL DEFAULT 0,
    total_distance DOUBLE PRECISION GENERATED ALWAYS AS (total_exact::double precision) STORED
);

-- Which rides the members of a group have counted: they work at the same time, in no order, so
-- there is no "last" one to compare with.
CREATE TABLE group_rides (
    group_name TEXT    NOT NULL,
    ride_id    BIGINT  NOT NULL,
    distance   NUMERIC NOT NULL,
    entry_ms   BIGINT  NOT NULL,
    entry_seq  BIGINT  NOT NULL,
    PRIMARY KEY (group_name, ride_id)
);

-- The totals that were staged for consumers to reset from.
CREATE TABLE corrections (
    id           BIGSERIAL   PRIMARY KEY,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    total_exact  NUMERIC     NOT NULL,
    ride_count   BIGINT      NOT NULL,
    last_ride_id BIGINT      NOT NULL
);

-- The name of this log (record ids start at 1 in every database: this keeps them apart), and the
-- one way in which everybody keeps copies from counting twice.
CREATE TABLE log_origin (
    id   UUID    NOT NULL DEFAULT gen_random_uuid(),
    way  TEXT    NOT NULL,
    one  BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one)
);
