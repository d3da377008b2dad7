CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS flow (transfer TEXT, account TEXT, side TEXT, amount INTEGER,
                                 PRIMARY KEY (transfer, account));
INSERT OR IGNORE INTO account VALUES ('ann', 1000), ('bob', 1000), ('cleo', 1000), ('dan', 1000);
