// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace once::testing {

// The schemas of older versions as they were released; they never change. Statements end with
// ";\n".
inline constexpr const char* postgres_schema_1 =
    R"(CREATE TABLE once_schema (version INTEGER NOT NULL);
INSERT INTO once_schema VALUES (1);

CREATE TABLE once_name (
  number INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name BYTEA NOT NULL UNIQUE
);

CREATE TABLE once_ledger (
  scope INTEGER NOT NULL,
  id BYTEA NOT NULL,
  born_ms BIGINT NOT NULL,
  recorded_ms BIGINT NOT NULL,
  at_offset BIGINT NOT NULL,
  source_partition INTEGER NOT NULL,
  outcome SMALLINT NOT NULL,
  fingerprint BYTEA,
  result BYTEA,
  PRIMARY KEY (scope, id)
);

CREATE TABLE once_position (
  scope INTEGER NOT NULL,
  source_partition INTEGER NOT NULL,
  at_offset BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  PRIMARY KEY (scope, source_partition)
) WITH (fillfactor = 50);

CREATE TABLE once_horizon (
  scope INTEGER PRIMARY KEY,
  horizon_ms BIGINT NOT NULL
);

CREATE TABLE once_outbox (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  destination INTEGER NOT NULL,
  id BYTEA NOT NULL,
  message_key BYTEA NOT NULL,
  body BYTEA NOT NULL,
  headers BYTEA NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  target_partition BIGINT,
  target_sequence BIGINT
);
CREATE INDEX once_outbox_destination ON once_outbox (destination, number);

CREATE TABLE once_route (
  destination INTEGER NOT NULL,
  target_partition BIGINT NOT NULL,
  next_sequence BIGINT NOT NULL,
  PRIMARY KEY (destination, target_partition)
);

CREATE TABLE once_parked (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope INTEGER NOT NULL,
  source_partition BYTEA NOT NULL,
  at_offset BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  parked_ms BIGINT NOT NULL,
  reason BYTEA NOT NULL,
  id BYTEA NOT NULL,
  message_key BYTEA NOT NULL,
  body BYTEA NOT NULL,
  headers BYTEA NOT NULL,
  timestamp_ms BIGINT NOT NULL
);
CREATE INDEX once_parked_scope ON once_parked (scope, number);

CREATE TABLE once_operation (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope INTEGER NOT NULL,
  at_ms BIGINT NOT NULL,
  action BYTEA NOT NULL,
  subject BYTEA NOT NULL,
  reason BYTEA NOT NULL
);
CREATE INDEX once_operation_scope ON once_operation (scope, number);

CREATE TABLE once_counter (
  name TEXT COLLATE "C" PRIMARY KEY,
  last BIGINT NOT NULL
);

CREATE TABLE once_claim (
  scope INTEGER NOT NULL,
  id BYTEA NOT NULL,
  state SMALLINT NOT NULL,
  generation BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  after_loss SMALLINT NOT NULL,
  fingerprint BYTEA,
  born_ms BIGINT NOT NULL,
  changed_ms BIGINT NOT NULL,
  lease_until_ms BIGINT NOT NULL,
  owner BYTEA NOT NULL,
  result BYTEA,
  reason BYTEA NOT NULL,
  steps BYTEA NOT NULL,
  PRIMARY KEY (scope, id)
) WITH (fillfactor = 70);
CREATE INDEX once_claim_settled ON once_claim (scope, born_ms) WHERE state IN (3, 4);

CREATE VIEW once_ledger_readable AS
SELECT encode(scopes.name, 'escape') AS scope,
  CASE WHEN get_byte(id, 0) = 1 THEN encode(substr(id, 2), 'hex')::uuid::text
    WHEN get_byte(id, 0) = 0 THEN encode(substr(id, 2), 'escape')
    ELSE encode(id, 'escape') END AS id,
  CASE outcome WHEN 0 THEN 'applied' WHEN 1 THEN 'rejected' WHEN 4 THEN 'parked' ELSE '?' END
    AS outcome,
  encode(result, 'escape') AS result, encode(partitions.name, 'escape') AS partition,
  at_offset AS "offset",
  to_timestamp(born_ms / 1000.0) AS born, to_timestamp(recorded_ms / 1000.0) AS recorded,
  encode(fingerprint, 'hex') AS fingerprint
FROM once_ledger
JOIN once_name AS scopes ON scopes.number = scope
JOIN once_name AS partitions ON partitions.number = source_partition;
)";

// What version 2 added.
inline constexpr const char* postgres_schema_2 =
    R"(CREATE INDEX once_ledger_born ON once_ledger (scope, born_ms);
UPDATE once_schema SET version = 2;
)";

// ... and version 3.
inline constexpr const char* postgres_schema_3 =
    R"(CREATE TABLE once_identity (number INTEGER PRIMARY KEY, identity BYTEA NOT NULL);
ALTER TABLE once_position
  ADD COLUMN source_identity BYTEA NOT NULL DEFAULT '',
  ADD COLUMN settled_ms BIGINT NOT NULL DEFAULT -1,
  ADD COLUMN waiting_ms BIGINT NOT NULL DEFAULT -1,
  ADD COLUMN drained_ms BIGINT NOT NULL DEFAULT -1,
  ADD COLUMN witness_offset BIGINT NOT NULL DEFAULT -1,
  ADD COLUMN witness_digest BIGINT NOT NULL DEFAULT 0;
DROP INDEX once_outbox_destination;
CREATE INDEX once_outbox_order ON once_outbox (destination, target_sequence, number);
UPDATE once_schema SET version = 3;
)";

// ... and version 4.
inline constexpr const char* postgres_schema_4 =
    R"(CREATE TABLE once_deferred (number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
scope INTEGER NOT NULL, source_partition BYTEA NOT NULL, at_offset BIGINT NOT NULL,
attempts BIGINT NOT NULL, deferred_ms BIGINT NOT NULL, due_ms BIGINT NOT NULL, order_token BYTEA,
reason BYTEA NOT NULL, id BYTEA NOT NULL, message_key BYTEA NOT NULL, body BYTEA NOT NULL,
headers BYTEA NOT NULL, timestamp_ms BIGINT NOT NULL);
CREATE INDEX once_deferred_due ON once_deferred (scope, due_ms, number);
CREATE INDEX once_deferred_order ON once_deferred (scope, order_token, number)
WHERE order_token IS NOT NULL;
CREATE INDEX once_parked_id ON once_parked (scope, id);
UPDATE once_schema SET version = 4;
)";

inline constexpr const char* mysql_schema_1 =
    R"(CREATE TABLE once_schema (version INT NOT NULL) ENGINE = InnoDB;
INSERT INTO once_schema VALUES (1);
CREATE TABLE once_name (number INT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARBINARY(255) NOT
NULL UNIQUE) ENGINE = InnoDB;
CREATE TABLE once_ledger (scope INT NOT NULL, id VARBINARY(1025) NOT NULL, born_ms BIGINT NOT
NULL, recorded_ms BIGINT NOT NULL, at_offset BIGINT NOT NULL, source_partition INT NOT NULL,
outcome TINYINT NOT NULL, admitted_by BIGINT NOT NULL, fingerprint VARBINARY(17), result LONGBLOB,
PRIMARY KEY (scope, id), KEY once_ledger_born (scope, born_ms)) ENGINE = InnoDB;
CREATE TABLE once_position (scope INT NOT NULL, source_partition INT NOT NULL, at_offset BIGINT
NOT NULL, fence BIGINT NOT NULL, PRIMARY KEY (scope, source_partition)) ENGINE = InnoDB;
CREATE TABLE once_horizon (scope INT NOT NULL PRIMARY KEY, horizon_ms BIGINT NOT NULL) ENGINE =
InnoDB;
CREATE TABLE once_outbox (number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, destination INT NOT
NULL, id VARBINARY(1024) NOT NULL, message_key LONGBLOB NOT NULL, body LONGBLOB NOT NULL, headers
LONGBLOB NOT NULL, timestamp_ms BIGINT NOT NULL, target_partition BIGINT, target_sequence BIGINT,
KEY once_outbox_order (destination, number)) ENGINE = InnoDB;
CREATE TABLE once_route (destination INT NOT NULL, target_partition BIGINT NOT NULL, next_sequence
BIGINT NOT NULL, PRIMARY KEY (destination, target_partition)) ENGINE = InnoDB;
CREATE TABLE once_parked (number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, scope INT NOT NULL,
source_partition VARBINARY(255) NOT NULL, at_offset BIGINT NOT NULL, attempts BIGINT NOT NULL,
parked_ms BIGINT NOT NULL, reason LONGBLOB NOT NULL, id VARBINARY(1024) NOT NULL, message_key
LONGBLOB NOT NULL, body LONGBLOB NOT NULL, headers LONGBLOB NOT NULL, timestamp_ms BIGINT NOT
NULL, KEY once_parked_order (scope, number)) ENGINE = InnoDB;
CREATE TABLE once_operation (number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, scope INT NOT
NULL, at_ms BIGINT NOT NULL, action VARBINARY(64) NOT NULL, subject LONGBLOB NOT NULL, reason
LONGBLOB NOT NULL, KEY once_operation_order (scope, number)) ENGINE = InnoDB;
CREATE TABLE once_counter (name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
PRIMARY KEY, last BIGINT NOT NULL) ENGINE = InnoDB;
CREATE TABLE once_claim (scope INT NOT NULL, id VARBINARY(1025) NOT NULL, state TINYINT NOT NULL,
generation BIGINT NOT NULL, fence BIGINT NOT NULL, attempts BIGINT NOT NULL, after_loss TINYINT
NOT NULL, fingerprint VARBINARY(17), born_ms BIGINT NOT NULL, changed_ms BIGINT NOT NULL,
lease_until_ms BIGINT NOT NULL, owner VARBINARY(255) NOT NULL, result LONGBLOB, reason LONGBLOB
NOT NULL, steps LONGBLOB NOT NULL, PRIMARY KEY (scope, id), KEY once_claim_born (scope, born_ms))
ENGINE = InnoDB;
)";

// What version 2 added.
inline constexpr const char* mysql_schema_2 =
    R"(CREATE TABLE once_identity (number INT NOT NULL PRIMARY KEY, identity VARBINARY(255) NOT
NULL) ENGINE = InnoDB;
ALTER TABLE once_position ADD COLUMN source_identity VARBINARY(255) NOT NULL DEFAULT '', ADD COLUMN
settled_ms BIGINT NOT NULL DEFAULT -1, ADD COLUMN waiting_ms BIGINT NOT NULL DEFAULT -1, ADD COLUMN
drained_ms BIGINT NOT NULL DEFAULT -1, ADD COLUMN witness_offset BIGINT NOT NULL DEFAULT -1, ADD
COLUMN witness_digest BIGINT NOT NULL DEFAULT 0;
ALTER TABLE once_outbox ADD COLUMN send_order BIGINT GENERATED ALWAYS AS
(coalesce(target_sequence, 9223372036854775807)) VIRTUAL;
ALTER TABLE once_outbox DROP KEY once_outbox_order, ADD KEY once_outbox_send_order (destination,
send_order, number);
UPDATE once_schema SET version = 2;
)";

// ... and version 3.
inline constexpr const char* mysql_schema_3 =
    R"(CREATE TABLE once_deferred (number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, scope INT NOT
NULL, source_partition VARBINARY(255) NOT NULL, at_offset BIGINT NOT NULL, attempts BIGINT NOT NULL,
deferred_ms BIGINT NOT NULL, due_ms BIGINT NOT NULL, order_token VARBINARY(16), reason LONGBLOB NOT
NULL, id VARBINARY(1024) NOT NULL, message_key LONGBLOB NOT NULL, body LONGBLOB NOT NULL, headers
LONGBLOB NOT NULL, timestamp_ms BIGINT NOT NULL, KEY once_deferred_due (scope, due_ms, number),
KEY once_deferred_order (scope, order_token, number)) ENGINE = InnoDB;
ALTER TABLE once_parked ADD KEY once_parked_id (scope, id);
UPDATE once_schema SET version = 3;
)";

}  // namespace once::testing
