"""The PostgreSQL door: its protocol, its types and its way of writing SQL."""
