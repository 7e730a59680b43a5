"""The SQL functions as users see them: one file of macros a family, with their documentation beside them."""
