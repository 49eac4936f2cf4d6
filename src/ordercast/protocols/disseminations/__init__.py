"""One file per dissemination: how does a message reach everyone? `table.py` lists them."""
