"""The programs that write the tables beside them, each named as its table, and what they share."""
