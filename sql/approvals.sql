-- What leaves the house: who approved it.

CREATE SCHEMA IF NOT EXISTS sdc;
CREATE TABLE IF NOT EXISTS sdc.approvals (
    name VARCHAR NOT NULL,
    fingerprint VARCHAR NOT NULL,
    approved_by VARCHAR NOT NULL,
    approved_at TIMESTAMP NOT NULL,
    note VARCHAR
);
