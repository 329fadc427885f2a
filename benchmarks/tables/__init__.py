"""The tables, hand-made columns and rankers of `real_tables.py`."""
