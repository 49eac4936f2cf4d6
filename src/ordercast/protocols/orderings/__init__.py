"""One file per ordering: when may a message be delivered?"""
