"""A deterministic world of virtual time, seeded network and faults. Same seed, same bytes."""
