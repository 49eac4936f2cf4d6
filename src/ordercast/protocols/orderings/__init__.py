"""One file per ordering: when may a message be delivered? `table.py` lists them."""
