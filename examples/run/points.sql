CREATE TABLE IF NOT EXISTS member (name TEXT PRIMARY KEY, points INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS points (n INTEGER PRIMARY KEY, order_id TEXT, member TEXT, points INTEGER);
INSERT OR IGNORE INTO member VALUES ('user-0', 0), ('user-1', 0), ('user-2', 0), ('user-3', 0);
